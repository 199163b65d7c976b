//! Requests served from a block of another type: the tracepoint `mm_page_alloc_extfrag`.
//!
//! Those with a fallback order below a pageblock's are the fragmenting events, by the requested
//! type, as MMTests counts them in a trace. Larger fallbacks leave no pageblock mixed.

use kontig_mm::types::PAGEBLOCK_ORDER;
use kontig_mm::{Counter, Event, MigrateType, Wanted};

/// Fallbacks to smaller blocks by type, and those to whole pageblocks.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fragmenting {
    by_type: [u64; MigrateType::COUNT],
    of_pageblocks: u64,
}

impl Fragmenting {
    /// Counts the fallbacks among these events.
    pub(crate) fn note<'a>(&mut self, events: impl IntoIterator<Item = &'a Event>) {
        for event in events {
            match event {
                Event::PageAllocExtfrag { fallback_order, alloc_migratetype, .. }
                    if *fallback_order < PAGEBLOCK_ORDER =>
                {
                    self.by_type[*alloc_migratetype as usize] += 1;
                }
                Event::PageAllocExtfrag { .. } => self.of_pageblocks += 1,
                _ => {}
            }
        }
    }

    /// The fragmenting ones, all and by type.
    pub(crate) fn counted(self) -> [(Counter, u64); 4] {
        let counter = |name, words| Counter::new(name, "events", Wanted::Fewer, words);
        let of = |t: MigrateType| self.by_type[t as usize];
        [
            (counter("extfrag events, order < 9", "Requests that mixed a pageblock"), self.small()),
            (counter("extfrag events, unmovable", "By unmovable requests"), of(MigrateType::Unmovable)),
            (counter("extfrag events, movable", "By movable requests"), of(MigrateType::Movable)),
            (counter("extfrag events, reclaimable", "By reclaimable requests"), of(MigrateType::Reclaimable)),
        ]
    }

    /// All, those to smaller blocks, and those to whole pageblocks, named as in recordings of real
    /// kernels.
    pub(crate) fn by_size(self) -> [(&'static str, u64); 3] {
        let (small, large) = (self.small(), self.of_pageblocks);
        [("extfrag", small + large), ("extfrag_small", small), ("extfrag_pageblock", large)]
    }

    fn small(self) -> u64 {
        self.by_type.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_mm::{Order, Pfn};

    #[test]
    fn only_what_leaves_a_pageblock_mixed_counts_by_the_type_that_asked() {
        let event = |order, t| Event::PageAllocExtfrag {
            pfn: Pfn::new(0),
            alloc_order: Order::ZERO,
            fallback_order: Order::new(order),
            alloc_migratetype: t,
            fallback_migratetype: MigrateType::Movable,
            change_ownership: false,
        };
        let mut counted = Fragmenting::default();
        let (unmovable, reclaimable) = (MigrateType::Unmovable, MigrateType::Reclaimable);
        counted.note(&[event(8, unmovable), event(0, reclaimable), event(3, unmovable), event(9, reclaimable)]);
        assert_eq!(counted.counted().map(|(_, n)| n), [3, 2, 0, 1]);
        assert_eq!(counted.by_size().map(|(_, n)| n), [4, 3, 1]);
    }
}
