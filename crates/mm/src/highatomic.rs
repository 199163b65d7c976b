//! The HIGHATOMIC reserve: pageblocks kept for high-order atomic requests, and released when others
//! need them. In the oldest kernels it is a fixed RESERVE, which any request may use at last.
//!
//! Source: kernel-behaviour §2.8, §2.8.1.

use crate::rules::{FreeLists, HighAtomicLimit};
use crate::state::{FrameKind, Locked, Memory};
use crate::types::{CpuId, MigrateType, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, ZoneId};

/// The most pageblocks of a zone in the fixed reserve.
const FIXED_MAX: u64 = 2;

impl Memory {
    /// Chooses the pageblocks of the fixed reserve anew, in kernels that have one: the first
    /// movable ones without a page reserved at boot. Those beyond their number become movable
    /// again.
    pub(crate) fn setup_fixed_reserve(&mut self) {
        if self.shared.profile.highatomic.limit != HighAtomicLimit::FixedByMark {
            return;
        }
        for id in self.zones.ids() {
            let zone = &self.zones[id];
            let mut missing = zone.watermarks.min.div_ceil(u64::from(PAGEBLOCK_PAGES)).min(FIXED_MAX);
            for block in zone.start.pageblock()..=zone.last_pageblock().pageblock() {
                if missing > 0 && self.is_reserved_in_part(id, block) {
                    continue;
                }
                let (to, takes) = match self.blocks.migratetype(block) {
                    MigrateType::HighAtomic if missing > 0 => (None, true),
                    MigrateType::HighAtomic => (Some(MigrateType::Movable), false),
                    MigrateType::Movable if missing > 0 => (Some(MigrateType::HighAtomic), true),
                    _ => (None, false),
                };
                missing -= u64::from(takes);
                if let Some(to) = to {
                    self.blocks.set_migratetype(block, to);
                    self.locked(id, CpuId::new(0)).move_freepages_block(Pfn::of_pageblock(block), to);
                }
            }
        }
    }

    /// Whether the pageblock has frames that are missing or were reserved at boot.
    fn is_reserved_in_part(&self, zone: ZoneId, block: usize) -> bool {
        let start = Pfn::of_pageblock(block);
        let is_reserved = |at| self.frames.tag(start.plus(at)).kind() == FrameKind::Reserved;
        start >= self.zones[zone].whole_end || (0..PAGEBLOCK_PAGES).any(is_reserved)
    }
}

impl Locked<'_> {
    /// After a high-order atomic allocation, reserves its pageblock for the next one (§2.8).
    pub(crate) fn reserve_highatomic(&mut self, pfn: Pfn, order: Order) {
        let pageblock = u64::from(PAGEBLOCK_PAGES);
        let percent = self.zone.managed / 100;
        let rules = self.shared.profile.highatomic;
        let limit = match rules.limit {
            HighAtomicLimit::FixedByMark => 0,
            HighAtomicLimit::PercentAndBlock => percent + pageblock,
            HighAtomicLimit::PercentRoundedUp if percent < pageblock => 0,
            HighAtomicLimit::PercentRoundedUp => percent.next_multiple_of(pageblock),
        };
        let t = self.blocks.migratetype(pfn.pageblock());
        if self.zone.nr_reserved_highatomic >= limit || !t.is_mergeable() {
            return;
        }
        if rules.reserves_by_block {
            if order >= PAGEBLOCK_ORDER {
                self.set_range_type(pfn, order, MigrateType::HighAtomic);
                self.zone.nr_reserved_highatomic += u64::from(order.pages());
            } else if self.zone.spans(pfn.pageblock_start()) && self.zone.spans(pfn.pageblock_end().minus(1)) {
                self.move_freepages_block(pfn, MigrateType::HighAtomic);
                self.blocks.set_migratetype(pfn.pageblock(), MigrateType::HighAtomic);
                self.zone.nr_reserved_highatomic += pageblock;
            }
            return;
        }
        self.zone.nr_reserved_highatomic += pageblock;
        self.blocks.set_migratetype(pfn.pageblock(), MigrateType::HighAtomic);
        self.move_freepages_block(pfn, MigrateType::HighAtomic);
    }

    /// Releases one reserved pageblock to type `t`; true if that freed any page (§2.8).
    pub(crate) fn unreserve_highatomic(&mut self, t: MigrateType, force: bool) -> bool {
        let pageblock = u64::from(PAGEBLOCK_PAGES);
        if !force && self.zone.nr_reserved_highatomic <= pageblock {
            return false;
        }
        for o in Order::all() {
            let Some(pfn) = self.zone.lists[o.index()][MigrateType::HighAtomic.index()].first() else {
                continue;
            };
            if self.shared.profile.buddy.free_lists == FreeLists::AsPageblock {
                let size = pageblock.max(u64::from(o.pages())).min(self.zone.nr_reserved_highatomic);
                self.zone.nr_reserved_highatomic -= size;
                let moved = if o < PAGEBLOCK_ORDER {
                    let moved = self.move_freepages_block(pfn, t).0;
                    self.blocks.set_migratetype(pfn.pageblock(), t);
                    moved
                } else {
                    self.move_to_free_list(pfn, o, MigrateType::HighAtomic, t);
                    self.set_range_type(pfn, o, t);
                    o.pages()
                };
                if moved > 0 {
                    return true;
                }
                continue;
            }
            if self.blocks.migratetype(pfn.pageblock()) == MigrateType::HighAtomic {
                self.zone.nr_reserved_highatomic -= pageblock.min(self.zone.nr_reserved_highatomic);
            }
            self.blocks.set_migratetype(pfn.pageblock(), t);
            if self.move_freepages_block(pfn, t).0 > 0 {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use crate::gfp::Gfp;
    use crate::request::Request;
    use crate::state::Memory;
    use crate::testing::{linux, machine_with};
    use crate::types::{CpuId, MigrateType, NodeId, Order, Pfn};

    const CPU: CpuId = CpuId::new(0);
    /// Too large for the per-CPU lists.
    const ORDER: Order = Order::new(4);

    fn atomic(m: &mut Memory) -> Pfn {
        m.alloc(Request::new(CPU, NodeId::default(), Gfp::ATOMIC, ORDER)).expect("memory is free")
    }

    #[test]
    fn from_7_3_on_the_reserve_is_used_before_memory_is_short() {
        let served_from = |profile: &str| {
            let mut m = machine_with(256, linux(profile));
            let first = atomic(&mut m);
            m.locked(m.blocks.zone_of(first), CPU).reserve_highatomic(first, ORDER);
            let next = atomic(&mut m);
            m.blocks.migratetype(next.pageblock())
        };
        assert_eq!(["6.12", "7.2"].map(served_from), [MigrateType::Unmovable; 2]);
        assert_eq!(served_from("7.3"), MigrateType::HighAtomic);
    }

    #[test]
    fn nothing_is_reserved_while_memory_is_not_short() {
        for profile in ["7.2", "7.3"] {
            let mut m = machine_with(256, linux(profile));
            atomic(&mut m);
            assert_eq!(m.zones().iter().map(|z| z.nr_reserved_highatomic).sum::<u64>(), 0, "{profile}");
        }
    }

    /// A zone whose first pageblock is reserved in part, with this min mark.
    fn with_fixed_reserve(min_free_kbytes: &str) -> Memory {
        use crate::boot::{MachineSpec, ZoneSpec};
        use crate::types::ZoneType;
        let (pages, end) = (64 * 512, 72 * 512);
        let zone =
            ZoneSpec { node: 0, kind: ZoneType::Normal, start: 8 * 512, end, present: pages, managed: pages - 9 };
        let spec = MachineSpec { cpus: 1, zones: alloc::vec![zone], thp: true, lru: false };
        let mut m = Memory::new(&spec, linux("3.13")).expect("a machine");
        m.sysctl_write("min_free_kbytes", min_free_kbytes).expect("it takes the value");
        m.check().expect("a consistent machine");
        m
    }

    fn reserve(m: &Memory) -> alloc::vec::Vec<usize> {
        (8..72).filter(|block| m.blocks.migratetype(*block) == MigrateType::HighAtomic).collect()
    }

    #[test]
    fn the_fixed_reserve_is_a_pageblock_or_two_at_the_zones_start() {
        assert_eq!(reserve(&with_fixed_reserve("4096")), [9, 10]);
        let mut m = with_fixed_reserve("1024");
        assert_eq!(reserve(&m), [9], "256 pages need one");
        m.sysctl_write("min_free_kbytes", "4096").expect("it takes the value");
        assert_eq!(reserve(&m), [9, 10]);
        m.check().expect("a consistent machine");
    }

    #[test]
    fn any_request_takes_from_the_fixed_reserve_but_last_and_gives_it_back() {
        let mut m = with_fixed_reserve("4096");
        m.zones[crate::types::ZoneId::new(0)].watermarks = Default::default();
        let huge = Order::new(9);
        let request = Request::new(CPU, NodeId::default(), Gfp::HIGHUSER_MOVABLE, huge);
        let got: alloc::vec::Vec<_> = core::iter::from_fn(|| crate::testing::take(&mut m, request)).collect();
        assert_eq!(got.len(), 63);
        let last: alloc::vec::Vec<_> = got[60..].iter().map(|pfn| pfn.pageblock()).collect();
        assert_eq!(last, [9, 10, 11], "a block of two pageblocks is on the list of its first");
        m.split_page(got[60], huge);
        (0..512).for_each(|page| m.free(CPU, got[60].plus(page), Order::ZERO));
        m.drain_cpu(CPU);
        let listed = |t| m.zones()[0].free_list(huge, t).len();
        assert_eq!((listed(MigrateType::HighAtomic), listed(MigrateType::Movable)), (1, 0));
        m.check().expect("a consistent machine");
    }
}
