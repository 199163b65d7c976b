//! What is remembered of a page after it has been reclaimed: a shadow, kept by the owner in its place.
//!
//! The node has a clock that advances with evictions and activations. A page that comes back has been away for as many
//! ticks as the clock has advanced; had the inactive list been longer by that much, it would still be there. If all
//! other memory together would make room for it, it is active at once. Source: kernel-behaviour §4.1.

use crate::state::{Backing, LruList, Memory, NodeStat, PageFlags};
use crate::types::{CpuId, NodeId, Pfn};

/// What stands for an evicted page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shadow {
    /// The node it was on.
    pub node: NodeId,
    /// The node's clock when it went.
    pub eviction: u64,
    /// Whether it had ever been active.
    pub workingset: bool,
}

impl Memory {
    /// Notes that a page goes, and says what is to be remembered of it.
    pub(crate) fn workingset_eviction(&mut self, pfn: Pfn, pages: u64) -> Shadow {
        let node = self.node_of(pfn);
        let vec = &mut self.lru.vecs[node];
        let before = vec.nonresident_age;
        vec.nonresident_age += pages;
        let eviction = if self.shared.profile.lru.shadow_before_aging { before } else { vec.nonresident_age };
        Shadow { node, eviction, workingset: self.lru.flags(pfn).has(PageFlags::WORKINGSET) }
    }

    /// A page is active from now on.
    pub(super) fn workingset_activation(&mut self, pfn: Pfn) {
        let pages = u64::from(self.frames.tag(pfn).order().pages());
        let node = self.node_of(pfn);
        self.lru.vecs[node].nonresident_age += pages;
    }

    /// A page comes back, of which `shadow` was kept: whether it is active at once. Its flags, to be put on the LRU with,
    /// say so.
    pub fn workingset_refault(&mut self, cpu: CpuId, pfn: Pfn, flags: PageFlags, shadow: Shadow) -> PageFlags {
        let backing = flags.backing();
        let pages = u64::from(self.frames.tag(pfn).order().pages());
        let node = self.node_of(pfn);
        let swap = self.lru.swap.free > 0;
        let evicted_from = &self.lru.vecs[shadow.node];
        let distance = evicted_from.nonresident_age - shadow.eviction;
        // Everything that could have made room; anonymous pages only where they can go.
        let mut others = evicted_from.size(LruList::ActiveFile);
        if backing == Backing::Anon {
            others += evicted_from.size(LruList::InactiveFile);
        }
        if swap {
            others += evicted_from.size(LruList::ActiveAnon);
            if backing == Backing::File {
                others += evicted_from.size(LruList::InactiveAnon);
            }
        }
        let vec = &mut self.lru.vecs[node];
        vec.count(NodeStat::refault(backing), cpu, pages as i64);
        if distance > others {
            return flags;
        }
        vec.nonresident_age += pages;
        vec.count(NodeStat::activate(backing), cpu, pages as i64);
        if !shadow.workingset {
            return flags | PageFlags::ACTIVE;
        }
        if !self.shared.profile.reclaim.costs_from_counters {
            self.lru_note_cost(node, backing, pages, 0);
        }
        self.lru.vecs[node].count(NodeStat::restore(backing), cpu, pages as i64);
        flags | PageFlags::ACTIVE | PageFlags::WORKINGSET
    }

    pub(crate) fn node_of(&self, pfn: Pfn) -> NodeId {
        self.zones[self.blocks.zone_of(pfn)].node
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::SwapSpace;
    use crate::testing::{ordered_machine, user_page};

    const CPU: CpuId = CpuId::new(0);
    const NODE: NodeId = NodeId::new(0);

    /// A machine that counts so many pages on its lists, and a page of it.
    fn listing(pages: [i64; 4], swap: u64) -> (Memory, Pfn) {
        let mut m = ordered_machine(1);
        let pfn = user_page(&mut m, PageFlags::FILE);
        for (list, pages) in LruList::EVICTABLE.iter().zip(pages) {
            m.lru.vecs[NODE].stats.add_to_total(list.index(), pages);
        }
        m.set_swap(SwapSpace { total: 10, free: swap });
        (m, pfn)
    }

    /// The longest that a page may have been away to be active at once.
    fn longest(flags: PageFlags, pages: [i64; 4], swap: u64) -> u64 {
        let (machine, pfn) = listing(pages, swap);
        let comes_back_active = |distance: u64| {
            let mut m = machine.clone();
            m.lru.vecs[NODE].nonresident_age = 1000 + distance;
            let shadow = Shadow { node: NODE, eviction: 1000, workingset: false };
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
    fn the_clock_advances_with_evictions_and_activations() {
        let (mut m, pfn) = listing([0; 4], 0);
        let age = |m: &Memory| m.lru.vecs[NODE].nonresident_age;
        assert_eq!(m.workingset_eviction(pfn, 8), Shadow { node: NODE, eviction: 0, workingset: false });
        assert_eq!(age(&m), 8);
        m.lru.set_flags(pfn, PageFlags::FILE | PageFlags::WORKINGSET);
        let shadow = m.workingset_eviction(pfn, 1);
        assert_eq!(shadow, Shadow { node: NODE, eviction: 8, workingset: true });
        m.workingset_refault(CPU, pfn, PageFlags::FILE, shadow);
        assert_eq!(age(&m), 9, "a page that does not become active leaves it");
        m.lru.vecs[NODE].stats.add_to_total(LruList::ActiveFile.index(), 1);
        m.workingset_refault(CPU, pfn, PageFlags::FILE, shadow);
        assert_eq!(age(&m), 10);
    }

    #[test]
    fn a_page_that_had_been_active_is_known_again_and_its_loss_is_a_cost() {
        let (mut m, pfn) = listing([0, 0, 0, 100], 0);
        let mut back = |workingset| {
            let flags = m.workingset_refault(CPU, pfn, PageFlags::FILE, Shadow { node: NODE, eviction: 0, workingset });
            let vec = &m.lru.vecs[NODE];
            let counts =
                [NodeStat::WorkingsetRefaultFile, NodeStat::WorkingsetActivateFile, NodeStat::WorkingsetRestoreFile];
            (flags.has(PageFlags::WORKINGSET), vec.cost, counts.map(|item| vec.stat_exact(item)))
        };
        assert_eq!(back(false), (false, [0, 0], [1, 1, 0]));
        assert_eq!(back(true), (true, [0, 1], [2, 2, 1]));
    }
}
