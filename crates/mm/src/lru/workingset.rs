//! Refault detection: a reclaimed page leaves a shadow in its place, which its owner keeps.
//!
//! The node has a clock that advances with evictions and activations. The refault distance of a
//! page that comes back is the number of ticks since its eviction: had the inactive list been
//! longer by that much, the page would still be there. If all other memory together could have made
//! that room, the page is activated at once. Source: kernel-behaviour §4.1.

use crate::state::{Backing, LruList, Memory, NodeStat, PageFlags};
use crate::types::{CpuId, GroupId, LruvecId, Pfn, ZoneId};

/// The shadow entry of an evicted page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shadow {
    /// The lists it was on.
    pub lruvec: LruvecId,
    /// The node's clock at its eviction; where there are generations, the oldest then, and uses.
    pub eviction: u64,
    /// Whether it was part of the working set, having once been active, or used more than once.
    pub workingset: bool,
}

impl Memory {
    /// Advances the clock for an eviction and returns the page's shadow. With memory control groups
    /// the clock is that of the group whose limit is reclaimed for, or of the root.
    pub(crate) fn workingset_eviction(&mut self, pfn: Pfn, pages: u64, target: Option<GroupId>) -> Shadow {
        if self.lru.has_generations() {
            return self.gen_eviction(pfn, pages);
        }
        let of_root = self.zones[self.blocks.zone_of(pfn)].lruvec;
        let lruvec = target.map_or(of_root, |group| self.groups.lruvec(group, of_root));
        let before = self.lru.vecs[lruvec].nonresident_age;
        self.age_nonresident(lruvec, pages);
        let after = self.lru.vecs[lruvec].nonresident_age;
        let eviction = if self.shared.profile.lru.shadow_before_aging { before } else { after };
        Shadow { lruvec, eviction, workingset: self.lru.flags(pfn).has(PageFlags::WORKINGSET) }
    }

    /// Advances the clock for an activation.
    pub(super) fn workingset_activation(&mut self, pfn: Pfn) {
        if !self.shared.profile.lru.shadows_of_anon && self.lru.flags(pfn).backing() == Backing::Anon {
            return;
        }
        let pages = u64::from(self.frames.tag(pfn).order().pages());
        self.age_nonresident(self.lruvec_of(pfn), pages);
    }

    /// Advances the clock of these lists and, with memory control groups, of all they are below.
    #[inline(always)]
    pub(crate) fn age_nonresident(&mut self, lruvec: LruvecId, pages: u64) {
        self.lru.vecs[lruvec].nonresident_age += pages;
        if self.groups.are_kept() {
            self.for_lists_above(lruvec, |vec| vec.nonresident_age += pages);
        }
    }

    /// Handles the refault of a page that left `shadow`. Returns the flags to put it on the LRU
    /// with, which say whether it is active at once.
    pub fn workingset_refault(&mut self, cpu: CpuId, pfn: Pfn, flags: PageFlags, shadow: Shadow) -> PageFlags {
        if self.lru.has_generations() {
            return self.gen_refault(cpu, pfn, flags, shadow, false);
        }
        let backing = flags.backing();
        let pages = u64::from(self.frames.tag(pfn).order().pages());
        let lruvec = self.lruvec_of_refault(pfn, shadow);
        let swap = self.lru.swap.free > 0;
        let evicted_from = &self.lru.vecs[shadow.lruvec];
        // A shadow from the time when pages were in generations has another clock.
        let distance = evicted_from.nonresident_age.wrapping_sub(shadow.eviction);
        // All pages that could have made room; anonymous ones only with free swap.
        let mut others = evicted_from.size_state(LruList::ActiveFile);
        let of_anon = self.shared.profile.lru.shadows_of_anon;
        if of_anon && backing == Backing::Anon {
            others += evicted_from.size_state(LruList::InactiveFile);
        }
        if of_anon && swap {
            others += evicted_from.size_state(LruList::ActiveAnon);
            if backing == Backing::File {
                others += evicted_from.size_state(LruList::InactiveAnon);
            }
        }
        self.count_state(lruvec, NodeStat::refault(backing), cpu, pages as i64);
        if distance > others {
            return flags;
        }
        self.age_nonresident(lruvec, pages);
        self.count_state(lruvec, NodeStat::activate(backing), cpu, pages as i64);
        if !shadow.workingset {
            return flags | PageFlags::ACTIVE;
        }
        if !self.shared.profile.reclaim.costs_from_counters {
            self.lru_note_cost(self.lruvec_of(pfn), backing, pages, 0);
        }
        self.count_state(lruvec, NodeStat::restore(backing), cpu, pages as i64);
        flags | PageFlags::ACTIVE | PageFlags::WORKINGSET
    }

    /// The lists on which a page's refault counts.
    #[inline(always)]
    fn lruvec_of_refault(&self, pfn: Pfn, shadow: Shadow) -> LruvecId {
        if !self.shared.profile.lru.refaults_where_evicted {
            return self.lruvec_of(pfn);
        }
        match self.groups.are_kept() {
            true => self.groups.lruvec(self.groups.of_page(pfn), self.groups.root_of(shadow.lruvec)),
            false => shadow.lruvec,
        }
    }

    /// The lists that a page belongs to.
    #[inline(always)]
    pub(crate) fn lruvec_of(&self, pfn: Pfn) -> LruvecId {
        self.lruvec_in(self.blocks.zone_of(pfn), pfn)
    }

    /// The same of a page of this zone.
    #[inline(always)]
    pub(crate) fn lruvec_in(&self, zone: ZoneId, pfn: Pfn) -> LruvecId {
        let of_root = self.zones[zone].lruvec;
        if self.groups.are_kept() { self.groups.lruvec(self.groups.of_page(pfn), of_root) } else { of_root }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::{MachineSpec, ZoneSpec};
    use crate::state::SwapSpace;
    use crate::testing::{linux, ordered_machine, user_page};
    use crate::types::ZoneType;
    use alloc::vec;

    const CPU: CpuId = CpuId::new(0);
    const VEC: LruvecId = LruvecId::new(0);

    /// A machine with these counts on its lists, and one of its pages.
    fn listing(pages: [i64; 4], swap: u64) -> (Memory, Pfn) {
        let mut m = ordered_machine(1);
        let pfn = user_page(&mut m, PageFlags::FILE);
        for (list, pages) in LruList::EVICTABLE.iter().zip(pages) {
            m.lru.vecs[VEC].stats.add_to_total(list.index(), pages);
        }
        m.set_swap(SwapSpace { total: 10, free: swap });
        (m, pfn)
    }

    /// The longest refault distance at which a page is active at once.
    fn longest(flags: PageFlags, pages: [i64; 4], swap: u64) -> u64 {
        let (machine, pfn) = listing(pages, swap);
        let comes_back_active = |distance: u64| {
            let mut m = machine.clone();
            m.lru.vecs[VEC].nonresident_age = 1000 + distance;
            let shadow = Shadow { lruvec: VEC, eviction: 1000, workingset: false };
            m.workingset_refault(CPU, pfn, flags, shadow).has(PageFlags::ACTIVE)
        };
        let longest = (0..2000).take_while(|distance| comes_back_active(*distance)).count() as u64 - 1;
        assert!(!comes_back_active(longest + 2));
        longest
    }

    #[test]
    fn a_page_is_active_if_all_others_together_would_have_made_room_for_it() {
        let lists = [1, 20, 300, 400];
        assert_eq!(longest(PageFlags::FILE, lists, 0), 400, "active files");
        assert_eq!(longest(PageFlags::FILE, lists, 1), 421, "with swap all anonymous pages");
        assert_eq!(longest(PageFlags::ANON, lists, 1), 720, "all files and active anonymous pages");
        assert_eq!(longest(PageFlags::ANON, lists, 0), 700, "the last place in swap has just been taken");
    }

    #[test]
    fn up_to_5_8_only_active_files_make_room_and_anonymous_pages_leave_no_trace() {
        let mut m = crate::testing::ordered_machine_with(1, crate::testing::linux("4.6"));
        let [file, anon] = [PageFlags::FILE, PageFlags::ANON].map(|flags| user_page(&mut m, flags));
        m.set_swap(SwapSpace { total: 10, free: 1 });
        for (list, pages) in LruList::EVICTABLE.iter().zip([1, 20, 300, 400]) {
            m.lru.vecs[VEC].stats.add_to_total(list.index(), pages);
        }
        let mut is_active = |age| {
            m.lru.vecs[VEC].nonresident_age = age;
            let shadow = Shadow { lruvec: VEC, eviction: 0, workingset: false };
            m.workingset_refault(CPU, file, PageFlags::FILE, shadow).has(PageFlags::ACTIVE)
        };
        assert!(is_active(400) && !is_active(401));
        m.lru.vecs[VEC].nonresident_age = 0;
        m.workingset_activation(anon);
        assert_eq!(m.lru.vecs[VEC].nonresident_age, 0, "the clock is of files");
        m.workingset_activation(file);
        assert_eq!(m.lru.vecs[VEC].nonresident_age, 1);
    }

    #[test]
    fn up_to_6_4_a_refault_counts_on_the_node_that_the_page_left() {
        let counts = |profile: &str| {
            let zone = |node: usize| ZoneSpec {
                node,
                kind: ZoneType::Normal,
                start: (8 + 8 * node as u32) * 512,
                end: (16 + 8 * node as u32) * 512,
                present: 8 * 512,
                managed: 8 * 512,
            };
            let spec = MachineSpec { cpus: 1, zones: vec![zone(0), zone(1)], thp: false, lru: true };
            let mut m = Memory::new(&spec, linux(profile)).expect("a valid machine");
            let pfn = user_page(&mut m, PageFlags::FILE);
            let shadow = Shadow { lruvec: LruvecId::new(1), eviction: 0, workingset: false };
            m.workingset_refault(CPU, pfn, PageFlags::FILE, shadow);
            [0, 1].map(|node| {
                let vec = &m.lru.vecs[LruvecId::new(node)];
                (vec.stat_exact(NodeStat::WorkingsetRefaultFile), vec.nonresident_age)
            })
        };
        assert_eq!(counts("6.1"), [(0, 0), (1, 1)]);
        assert_eq!(counts("6.12"), [(1, 1), (0, 0)]);
    }

    #[test]
    fn the_clock_advances_with_evictions_and_activations() {
        let (mut m, pfn) = listing([0; 4], 0);
        let age = |m: &Memory| m.lru.vecs[VEC].nonresident_age;
        assert_eq!(m.workingset_eviction(pfn, 8, None), Shadow { lruvec: VEC, eviction: 0, workingset: false });
        assert_eq!(age(&m), 8);
        m.lru.set_flags(pfn, PageFlags::FILE | PageFlags::WORKINGSET);
        let shadow = m.workingset_eviction(pfn, 1, None);
        assert_eq!(shadow, Shadow { lruvec: VEC, eviction: 8, workingset: true });
        m.workingset_refault(CPU, pfn, PageFlags::FILE, shadow);
        assert_eq!(age(&m), 9, "a page that does not become active leaves it");
        m.lru.vecs[VEC].stats.add_to_total(LruList::ActiveFile.index(), 1);
        m.workingset_refault(CPU, pfn, PageFlags::FILE, shadow);
        assert_eq!(age(&m), 10);
    }

    #[test]
    fn a_page_that_had_been_active_is_known_again_and_its_loss_is_a_cost() {
        let (mut m, pfn) = listing([0, 0, 0, 100], 0);
        let mut back = |workingset| {
            let flags =
                m.workingset_refault(CPU, pfn, PageFlags::FILE, Shadow { lruvec: VEC, eviction: 0, workingset });
            let vec = &m.lru.vecs[VEC];
            let counts =
                [NodeStat::WorkingsetRefaultFile, NodeStat::WorkingsetActivateFile, NodeStat::WorkingsetRestoreFile];
            (flags.has(PageFlags::WORKINGSET), vec.cost, counts.map(|item| vec.stat_exact(item)))
        };
        assert_eq!(back(false), (false, [0, 0], [1, 1, 0]));
        assert_eq!(back(true), (true, [0, 1], [2, 2, 1]));
    }
}
