//! The checker's part for the LRU: every user page is on the one list that its flags say, the
//! counters agree, and the batches hold the pages they name.

use super::ensure;
use crate::state::{Backing, BatchKind, FrameKind, LruList, Memory, NodeStat, PageFlags, Tag, Zone};
use crate::types::{CpuId, LruvecId, Order, Pfn};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Pages found on lists, by zone and list.
pub(super) type Listed = Vec<[u64; LruList::COUNT]>;

/// Pages of a zone by their state on the LRU, counted from the frames.
#[derive(Default)]
struct Census {
    /// On the LRU, by the list of their flags.
    lru: [u64; LruList::COUNT],
    /// Isolated, by the backing of their flags.
    isolated: [u64; 2],
}

impl Memory {
    /// Checks the LRU of the whole machine, whose zones are consistent.
    pub(super) fn check_lru(&self) -> Result<(), String> {
        if !self.lru.is_ordered() {
            return self.check_unordered();
        }
        self.check_batches()?;
        self.check_groups()?;
        // Those of the groups are checked with the root's of the same node.
        for lruvec in self.lru.vecs.ids().filter(|lruvec| self.root_of(*lruvec) == *lruvec) {
            let node = self.lru.vecs[lruvec].node.index();
            self.check_lruvec(lruvec).map_err(|e| format!("node {node}: {e}"))?;
        }
        Ok(())
    }

    /// If the order is not kept, only the zones' counts are.
    fn check_unordered(&self) -> Result<(), String> {
        ensure!(self.lru.is_unused(), "something is kept of pages, and their order is not");
        for z in &self.zones {
            for list in LruList::ALL.into_iter().filter(|list| *list != LruList::InactiveAnon) {
                let counted = z.nr_listed(list);
                ensure!(counted == 0, "{counted} {} pages, and their order is not kept", list.name());
            }
        }
        for vec in self.lru.vecs() {
            let counted: i64 = LruList::ALL.iter().map(|list| vec.size_exact(*list)).sum();
            ensure!(counted == 0, "node {} counts {counted} pages, and their order is not kept", vec.node.index());
        }
        Ok(())
    }

    /// Checks every batch against the holds of its pages.
    fn check_batches(&self) -> Result<(), String> {
        let mut named = vec![0u8; self.frames.nr_frames()];
        for cpu in (0..self.cpus).map(CpuId::new) {
            for kind in BatchKind::ALL {
                let pages = self.lru.batch(cpu, kind);
                let full = self.shared.profile.lru.batch as usize;
                ensure!(pages.len() < full, "CPU {}'s batch {kind:?} of {} is full", cpu.index(), pages.len());
                for &pfn in pages {
                    ensure!(pfn.index() < named.len(), "CPU {}'s batch {kind:?} names {pfn}", cpu.index());
                    named[pfn.index()] += 1;
                    let tag = self.frames.tag(pfn);
                    let waits = match kind {
                        BatchKind::Add => tag == Tag::new(FrameKind::Kernel, Order::ZERO),
                        _ => tag.is_allocated_of(Order::ZERO) || tag == Tag::new(FrameKind::IsolatedLru, Order::ZERO),
                    };
                    let (of, order) = (tag.kind(), tag.order());
                    ensure!(waits, "{pfn} in CPU {}'s batch {kind:?} is tagged {of:?} {order:?}", cpu.index());
                }
            }
        }
        for (i, &batches) in named.iter().enumerate() {
            let pfn = Pfn::new(i as u32);
            let holds = self.lru.holds(pfn);
            ensure!(holds == batches, "{pfn} is held by {holds} batches, and {batches} name it");
            let released = self.lru.flags(pfn).has(PageFlags::RELEASED);
            ensure!(!released || holds > 0, "{pfn} has been let go, and no batch will free it");
        }
        Ok(())
    }

    /// Lists and counters against the frames of their zones.
    fn check_lruvec(&self, lruvec: LruvecId) -> Result<(), String> {
        let vec = &self.lru.vecs[lruvec];
        let mut listed: Listed = vec![[0u64; LruList::COUNT]; self.zones.len()];
        let with_groups = self.lru.vecs.ids().filter(|other| self.root_of(*other) == lruvec);
        for of_group in with_groups {
            let mut of_it: Listed = vec![[0u64; LruList::COUNT]; self.zones.len()];
            if self.lru.has_generations() {
                self.check_generations(of_group, &mut of_it)?;
            }
            for list in LruList::EVICTABLE {
                self.check_lru_list(of_group, list, &mut of_it).map_err(|e| format!("{}: {e}", list.name()))?;
            }
            self.check_group_lists(of_group, &of_it)?;
            for (sums, pages) in listed.iter_mut().zip(of_it) {
                sums.iter_mut().zip(pages).for_each(|(sum, pages)| *sum += pages);
            }
        }
        let mut of_node = Census::default();
        for z in vec.zones.iter().map(|z| &self.zones[*z]) {
            let census = self.take_lru_census(z);
            let listed = &mut listed[z.id.index()];
            // The kernel keeps no order of these either.
            listed[LruList::Unevictable.index()] = census.lru[LruList::Unevictable.index()];
            check_zone_counts(z, &census, listed).map_err(|e| format!("{}: {e}", z.kind.name()))?;
            of_node.lru.iter_mut().zip(census.lru).for_each(|(sum, pages)| *sum += pages);
            of_node.isolated.iter_mut().zip(census.isolated).for_each(|(sum, pages)| *sum += pages);
        }
        for list in LruList::ALL {
            let (is, counted) = (of_node.lru[list.index()], vec.size_exact(list));
            ensure!(i128::from(is) == i128::from(counted), "{is} {} pages, counted {counted}", list.name());
        }
        for backing in Backing::ALL {
            let item = NodeStat::isolated(backing);
            let (is, counted) = (of_node.isolated[backing.index()], vec.stats.exact(item as usize));
            ensure!(i128::from(is) == i128::from(counted), "{is} isolated pages, {} is {counted}", item.name());
        }
        let (kept, threshold) = (vec.stats.largest_part(), vec.stat_threshold);
        ensure!(kept <= threshold, "a CPU keeps {kept} of a counter to itself, above {threshold}");
        Ok(())
    }

    /// Walks a list: every page is tagged so and belongs to it. Counts its pages by zone.
    fn check_lru_list(
        &self,
        lruvec: LruvecId,
        list: LruList,
        listed: &mut [[u64; LruList::COUNT]],
    ) -> Result<(), String> {
        let pages = &self.lru.vecs[lruvec].lists[list.index()];
        if let Err(e) = pages.check() {
            return Err(format!("the list has {e}"));
        }
        for (pfn, place) in pages.places() {
            ensure!(pfn.index() < self.frames.nr_frames(), "{pfn} is no frame");
            let tag = self.frames.tag(pfn);
            let (kind, order) = (tag.kind(), tag.order());
            ensure!(kind == FrameKind::Lru && pfn.is_aligned(order), "{pfn} is listed, tagged {kind:?} {order:?}");
            ensure!(self.lru.place(pfn) == place, "{pfn} has lost its place");
            let says = self.lru.flags(pfn).list();
            ensure!(says == list, "the flags of {pfn} say {}", says.name());
            let zone = self.blocks.zone_of(pfn);
            ensure!(self.lruvec_of(pfn) == lruvec, "{pfn} is of another node, zone or group");
            listed[zone.index()][list.index()] += u64::from(order.pages());
        }
        Ok(())
    }

    fn take_lru_census(&self, z: &Zone) -> Census {
        let mut census = Census::default();
        let mut at = z.start;
        while at < z.end {
            let tag = self.frames.tag(at);
            let pages = u64::from(tag.order().pages());
            let flags = self.lru.flags(at);
            match tag.kind() {
                FrameKind::Lru => census.lru[self.counted_on(at).index()] += pages,
                FrameKind::IsolatedLru => census.isolated[flags.backing().index()] += pages,
                _ => {}
            }
            at = at.plus(tag.order().pages());
        }
        census
    }
}

/// A zone's counters match its lists, and every page tagged so is listed.
fn check_zone_counts(z: &Zone, census: &Census, listed: &[u64; LruList::COUNT]) -> Result<(), String> {
    for list in LruList::ALL {
        let (is, tagged, counted) = (listed[list.index()], census.lru[list.index()], z.lru.exact(list.index()));
        let name = list.name();
        ensure!(is == tagged, "{is} pages on list {name}, the flags of {tagged} say that");
        ensure!(i128::from(is) == i128::from(counted), "{is} {name} pages, counted {counted}");
    }
    let (kept, threshold) = (z.lru.largest_part(), z.largest_threshold);
    ensure!(kept <= threshold, "a CPU keeps {kept} of a counter to itself, above {threshold}");
    Ok(())
}

#[cfg(test)]
mod tests {
    //! Each kind of damage is done once, and must be reported.
    use super::*;
    use crate::gfp::Gfp;
    use crate::request::Request;
    use crate::state::List;
    use crate::testing::{machine, ordered_machine};
    use crate::types::{NodeId, ZoneId};

    const CPU: CpuId = CpuId::new(0);
    const NODE: NodeId = NodeId::new(0);
    const VEC: LruvecId = LruvecId::new(0);
    const ZONE: ZoneId = ZoneId::new(0);

    /// A machine with pages of every list but the unevictable one, and some in batches.
    struct Sample {
        m: Memory,
        anon: Pfn,
        file: Pfn,
        active: Pfn,
        /// Not on the LRU yet.
        waiting: Pfn,
        /// On the LRU, and in a batch for activation.
        rising: Pfn,
    }

    fn sample() -> Sample {
        let mut m = ordered_machine(6);
        let page = |m: &mut Memory, flags: PageFlags| {
            let pfn = m.alloc(Request::new(CPU, NODE, Gfp::HIGHUSER_MOVABLE, Order::ZERO)).expect("memory is free");
            m.lru_add(CPU, pfn, Order::ZERO, flags);
            pfn
        };
        let anon = page(&mut m, PageFlags::ANON);
        let file = page(&mut m, PageFlags::FILE);
        let active = page(&mut m, PageFlags::FILE | PageFlags::ACTIVE);
        page(&mut m, PageFlags::ANON | PageFlags::ACTIVE);
        let rising = page(&mut m, PageFlags::FILE | PageFlags::REFERENCED);
        m.lru_add_drain(CPU);
        let waiting = page(&mut m, PageFlags::FILE);
        m.mark_accessed(CPU, rising);
        m.check().expect("nothing is damaged yet");
        Sample { m, anon, file, active, waiting, rising }
    }

    #[track_caller]
    fn damage(does: impl FnOnce(&mut Sample), says: &str) {
        let mut s = sample();
        does(&mut s);
        let found = s.m.check().expect_err("the damage goes unnoticed");
        assert!(found.contains(says), "the checker says '{found}', not '{says}'");
    }

    fn list(s: &mut Sample, list: LruList) -> &mut List {
        &mut s.m.lru.vecs[VEC].lists[list.index()]
    }

    #[test]
    fn damaged_lists_are_named() {
        damage(|s| *list(s, LruList::InactiveFile) = List::new(), "0 pages on list inactive_file, the flags of 2");
        damage(|s| s.m.lru.link(VEC, s.file, LruList::InactiveFile, false), "has lost its place");
        damage(|s| s.m.lru.link(VEC, s.file, LruList::ActiveAnon, false), "the flags of");
        damage(|s| s.m.lru.unlink(VEC, s.anon, LruList::InactiveAnon), "0 pages on list inactive_anon");
        damage(|s| s.m.lru.link(VEC, s.waiting, LruList::InactiveFile, false), "is listed, tagged Kernel");
        let no_frame = Pfn::new(0x7fff_fe00);
        damage(|s| _ = list(s, LruList::ActiveFile).push_back(no_frame), "is no frame");
        damage(
            |s| {
                // An entry in the middle goes and leaves no hole behind.
                let list = list(s, LruList::InactiveFile);
                let lost = list.places().last().expect("the sample has two").1;
                list.push_back(no_frame);
                list.overwrite(lost, 1 << 31 | 1);
            },
            "the list has holes",
        );
    }

    #[test]
    fn damaged_flags_are_named() {
        damage(|s| s.m.lru.set_flags(s.file, PageFlags::FILE | PageFlags::ACTIVE), "say active_file");
        damage(|s| s.m.lru.set_flags(s.anon, PageFlags::FILE), "say inactive_file");
        damage(|s| s.m.lru.set_flags(s.active, PageFlags::FILE | PageFlags::UNEVICTABLE), "say unevictable");
        damage(|s| s.m.lru.set_flags(s.anon, PageFlags::RELEASED), "no batch will free it");
    }

    #[test]
    fn damaged_counters_are_named() {
        let inactive_file = LruList::InactiveFile.index();
        damage(|s| s.m.zones[ZONE].lru.add_to_total(inactive_file, 1), "5 LRU pages, counted 6");
        damage(
            |s| {
                s.m.zones[ZONE].lru.add_to_total(inactive_file, 1);
                s.m.zones[ZONE].lru.add_to_total(LruList::ActiveFile.index(), -1);
            },
            "2 inactive_file pages, counted 3",
        );
        damage(|s| s.m.lru.vecs[VEC].stats.add_to_total(inactive_file, -1), "2 inactive_file pages, counted 1");
        damage(|s| s.m.lru.vecs[VEC].stats.add_to_total(LruList::Unevictable.index(), 1), "0 unevictable pages");
        let isolated = NodeStat::IsolatedFile as usize;
        damage(|s| s.m.lru.vecs[VEC].stats.add_to_total(isolated, 1), "0 isolated pages, nr_isolated_file is 1");
        damage(
            |s| {
                let stats = &mut s.m.lru.vecs[VEC].stats;
                stats.add_to_total(0, -100);
                stats.add(0, CpuId::new(1), 100, 125);
            },
            "a CPU keeps 100 of a counter to itself",
        );
        damage(
            |s| {
                let stats = &mut s.m.zones[ZONE].lru;
                stats.add_to_total(0, 100);
                stats.add(0, CpuId::new(1), -100, 125);
            },
            "Normal: a CPU keeps 100 of a counter to itself",
        );
    }

    #[test]
    fn a_page_that_is_isolated_and_not_counted_is_named() {
        damage(
            |s| {
                s.m.lru_isolate(CPU, s.file, Order::ZERO);
                s.m.lru.vecs[VEC].count(NodeStat::IsolatedFile, CPU, -1);
            },
            "1 isolated pages, nr_isolated_file is 0",
        );
    }

    #[test]
    fn damaged_batches_are_named() {
        damage(|s| s.m.lru.hold(s.file), "is held by 1 batches, and 0 name it");
        damage(|s| s.m.lru.let_go(s.rising), "is held by 0 batches, and 1 name it");
        damage(
            |s| {
                s.m.lru.batches[CPU][BatchKind::Rotate as usize].push(s.rising);
            },
            "is held by 1 batches, and 2 name it",
        );
        damage(|s| s.m.frames.set(s.waiting, FrameKind::MovableOps, Order::ZERO), "batch Add is tagged MovableOps");
        damage(
            |s| {
                s.m.lru.batches[CPU][BatchKind::Add as usize].push(s.file);
                s.m.lru.hold(s.file);
            },
            "batch Add is tagged Lru",
        );
        damage(
            |s| {
                // Freed behind the batch's back.
                s.m.lru_del(CPU, s.rising, Order::ZERO);
                s.m.free_untagged(ZONE, CPU, s.rising, Order::ZERO);
            },
            "batch Activate is tagged Pcp",
        );
        damage(
            |s| {
                let full = s.m.shared.profile.lru.batch;
                for _ in 0..full {
                    s.m.lru.hold(s.file);
                    s.m.lru.batches[CPU][BatchKind::Rotate as usize].push(s.file);
                }
            },
            "is full",
        );
    }

    #[test]
    fn something_kept_where_the_order_is_not_is_named() {
        let damage = |does: &dyn Fn(&mut Memory), says: &str| {
            let mut m = machine(2);
            does(&mut m);
            let found = m.check().expect_err("the damage goes unnoticed");
            assert!(found.contains(says), "the checker says '{found}', not '{says}'");
        };
        let pfn = Pfn::new(5);
        damage(&|m| _ = m.lru.vecs[VEC].lists[0].push_back(pfn), "something is kept of pages");
        damage(
            &|m| {
                let page = Request::new(CPU, NODE, Gfp::HIGHUSER_MOVABLE, Order::ZERO);
                let pfn = m.alloc(page).expect("memory is free");
                m.lru_add(CPU, pfn, Order::ZERO, PageFlags::ANON);
                m.zones[ZONE].lru.add_to_total(LruList::ActiveFile.index(), 1);
                m.zones[ZONE].lru.add_to_total(LruList::InactiveAnon.index(), -1);
            },
            "1 active_file pages",
        );
        damage(&|m| m.lru.vecs[VEC].stats.add_to_total(0, 1), "node 0 counts 1 pages");
    }
}
