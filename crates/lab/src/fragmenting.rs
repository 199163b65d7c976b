//! Requests served from a block of another type: the tracepoint `mm_page_alloc_extfrag`.
//!
//! Those with a fallback order below a pageblock's are the fragmenting events, by the requested
//! type, as MMTests counts them in a trace. Larger fallbacks leave no pageblock mixed. No trace of
//! a kernel says on which path an event happened: below the low mark, requests are on the slow
//! path.

use kontig_mm::types::PAGEBLOCK_ORDER;
use kontig_mm::{Counter, Event, Memory, MigrateType, Wanted, Wmark};
use kontig_program::figure::Text;

/// Orders below a pageblock's.
const ORDERS: usize = PAGEBLOCK_ORDER.index();

/// Fallbacks to smaller blocks by type, and those to whole pageblocks.
#[derive(Clone, Default)]
pub(crate) struct Fragmenting {
    by_type: [u64; MigrateType::COUNT],
    /// By the zone of the block: on the fast path and on the slow one.
    by_zone: Vec<[u64; 2]>,
    by_request: [u64; ORDERS],
    by_block: [u64; ORDERS],
    of_pageblocks: u64,
}

impl Fragmenting {
    /// Counts the fallbacks among these events of a machine.
    pub(crate) fn note<'a>(&mut self, m: &Memory, events: impl IntoIterator<Item = &'a Event>) {
        self.by_zone.resize(m.zones().len(), [0; 2]);
        for event in events {
            let &Event::PageAllocExtfrag { mark, pfn, alloc_order, fallback_order, alloc_migratetype, .. } = event
            else {
                continue;
            };
            if fallback_order >= PAGEBLOCK_ORDER {
                self.of_pageblocks += 1;
                continue;
            }
            self.by_type[alloc_migratetype as usize] += 1;
            let zone = m.pageblocks().zone_of(pfn);
            self.by_zone[zone.index()][usize::from(mark != Wmark::Low)] += 1;
            self.by_request[alloc_order.index()] += 1;
            self.by_block[fallback_order.index()] += 1;
        }
    }

    /// The fragmenting ones, all and by type.
    pub(crate) fn counted(&self) -> [(Counter, u64); 4] {
        let counter = |name, words| Counter::new(name, "events", Wanted::Fewer, words);
        let by_type = |t: MigrateType| self.by_type[t as usize];
        [
            (counter("extfrag events, order < 9", "Requests that mixed a pageblock"), self.small()),
            (counter("extfrag events, unmovable", "By unmovable requests"), by_type(MigrateType::Unmovable)),
            (counter("extfrag events, movable", "By movable requests"), by_type(MigrateType::Movable)),
            (counter("extfrag events, reclaimable", "By reclaimable requests"), by_type(MigrateType::Reclaimable)),
        ]
    }

    /// The fragmenting ones by zone and path, by the order asked for, and by that of the block
    /// found.
    pub(crate) fn split(&self, m: &Memory) -> Vec<(Text, u64)> {
        let paths = ["fast path", "slow path"];
        let of_zone = m.zones().iter().enumerate().flat_map(|(at, zone)| {
            let counted = self.by_zone.get(at).copied().unwrap_or_default();
            let name = format!("node {} {}", zone.node.index(), zone.kind.name());
            paths.into_iter().zip(counted).map(move |(path, n)| (format!("extfrag events, {name}, {path}"), n))
        });
        let orders =
            |what, of: [u64; ORDERS]| (0..).zip(of).map(move |(o, n)| (format!("extfrag events, {what} {o}"), n));
        let asked = orders("for a block of order", self.by_request);
        let found = orders("from a block of order", self.by_block);
        of_zone.chain(asked).chain(found).map(|(name, n)| (name.into(), n)).collect()
    }

    /// All, those to smaller blocks, and those to whole pageblocks, named as in recordings of real
    /// kernels.
    pub(crate) fn by_size(&self) -> [(&'static str, u64); 3] {
        let (small, large) = (self.small(), self.of_pageblocks);
        [("extfrag", small + large), ("extfrag_small", small), ("extfrag_pageblock", large)]
    }

    fn small(&self) -> u64 {
        self.by_type.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_mm::{MachineSpec, Order, Pfn, ZoneSpec, ZoneType};

    /// A machine of a DMA32 and a Normal zone, and events in them.
    fn two_zones() -> Memory {
        let zone = |kind, start| ZoneSpec { node: 0, kind, start, end: start + 4096, present: 4096, managed: 4096 };
        let zones = vec![zone(ZoneType::Dma32, 4096), zone(ZoneType::Normal, 1 << 20)];
        let spec = MachineSpec { cpus: 1, zones, thp: false, lru: false };
        Memory::new(&spec, kontig_profiles::linux("6.1")).expect("a valid machine")
    }

    fn event(pfn: u32, (alloc, fallback): (u8, u8), alloc_migratetype: MigrateType, mark: Wmark) -> Event {
        Event::PageAllocExtfrag {
            mark,
            pfn: Pfn::new(pfn),
            alloc_order: Order::new(alloc),
            fallback_order: Order::new(fallback),
            alloc_migratetype,
            fallback_migratetype: MigrateType::Movable,
            change_ownership: false,
        }
    }

    #[test]
    fn only_what_leaves_a_pageblock_mixed_counts_by_the_type_that_asked() {
        let (unmovable, reclaimable) = (MigrateType::Unmovable, MigrateType::Reclaimable);
        let of = |order, t| event(4096, (0, order), t, Wmark::Low);
        let mut counted = Fragmenting::default();
        counted.note(&two_zones(), &[of(8, unmovable), of(0, reclaimable), of(3, unmovable), of(9, reclaimable)]);
        assert_eq!(counted.counted().map(|(_, n)| n), [3, 2, 0, 1]);
        assert_eq!(counted.by_size().map(|(_, n)| n), [4, 3, 1]);
    }

    #[test]
    fn events_are_told_apart_by_zone_and_path_and_by_both_orders() {
        let (m, mut counted) = (two_zones(), Fragmenting::default());
        let of = |pfn, orders, mark| event(pfn, orders, MigrateType::Movable, mark);
        let normal = 1 << 20;
        counted.note(&m, &[of(4096, (0, 2), Wmark::Low), of(normal, (0, 2), Wmark::Min)]);
        counted.note(&m, &[of(normal, (3, 4), Wmark::Min), of(normal, (9, 9), Wmark::Min)]);
        let split: Vec<(Text, u64)> = counted.split(&m).into_iter().filter(|(_, n)| *n > 0).collect();
        let expected = [
            ("extfrag events, node 0 DMA32, fast path", 1),
            ("extfrag events, node 0 Normal, slow path", 2),
            ("extfrag events, for a block of order 0", 2),
            ("extfrag events, for a block of order 3", 1),
            ("extfrag events, from a block of order 2", 2),
            ("extfrag events, from a block of order 4", 1),
        ];
        assert_eq!(split, expected.map(|(name, n)| (name.into(), n)));
    }
}
