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
        let eviction = vec.nonresident_age;
        vec.nonresident_age += pages;
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
        self.lru_note_cost(node, backing, pages);
        self.lru.vecs[node].count(NodeStat::restore(backing), cpu, pages as i64);
        flags | PageFlags::ACTIVE | PageFlags::WORKINGSET
    }

    /// Notes what taking from, or failing to keep, pages of one kind has cost. Old costs fade.
    pub(crate) fn lru_note_cost(&mut self, node: NodeId, backing: Backing, pages: u64) {
        let vec = &mut self.lru.vecs[node];
        vec.cost[backing.index()] += pages;
        let listed: u64 = LruList::EVICTABLE.iter().map(|list| vec.size(*list)).sum();
        if vec.cost[0] + vec.cost[1] > listed / 4 {
            vec.cost.iter_mut().for_each(|cost| *cost /= 2);
        }
    }

    pub(crate) fn node_of(&self, pfn: Pfn) -> NodeId {
        self.zones[self.blocks.zone_of(pfn)].node
    }
}
