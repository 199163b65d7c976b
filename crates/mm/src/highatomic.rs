//! The HIGHATOMIC reserve: pageblocks kept for high-order atomic requests, and released when others
//! need them.
//!
//! Source: kernel-behaviour §2.8.

use crate::rules::{FreeLists, HighAtomicLimit};
use crate::state::Locked;
use crate::types::{MigrateType, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};

impl Locked<'_> {
    /// After a high-order atomic allocation, reserves its pageblock for the next one (§2.8).
    pub(crate) fn reserve_highatomic(&mut self, pfn: Pfn, order: Order) {
        let pageblock = u64::from(PAGEBLOCK_PAGES);
        let percent = self.zone.managed / 100;
        let rules = self.shared.profile.highatomic;
        let limit = match rules.limit {
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
}
