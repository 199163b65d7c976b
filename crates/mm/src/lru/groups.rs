//! Memory control groups: each has LRU lists of its own on each node, and counters of them.
//!
//! The node's counters count all pages, of whatever group, and are kept with the root's lists. What
//! reclaim reads of a group's lists is as old as the last time that the CPUs' parts were added up:
//! the kernel does so every two seconds, the host by [`Memory::flush_group_stats`]. Only the sizes
//! by zone, which the number of pages to scan comes from, are exact. Source: kernel-behaviour
//! §4.11.

use crate::rules::GroupCharges;
use crate::state::{Groups, LruList, Lruvec, MemcgLru, Memory, NodeStat};
use crate::types::{CpuId, GroupId, LruvecId, NodeId, Order, Pfn, ZoneId};
use alloc::string::String;

impl Memory {
    /// Makes memory control groups: one for each of these, in the one that it names by number; 0 is
    /// the root. A group comes after the one it is in. Says why not, if pages are on the LRU
    /// already, or the kernel's groups are not known.
    ///
    /// # Errors
    /// In one line.
    pub fn enable_groups(&mut self, parents: &[GroupId]) -> Result<(), String> {
        let rules = &self.shared.profile;
        if rules.groups.charges == GroupCharges::Unmodelled {
            return Err(alloc::format!("the memory control groups of {} are not known", rules.name));
        }
        let listed = self.zones.iter().any(|zone| zone.nr_lru() + zone.nr_isolated > 0);
        if !self.lru.is_ordered() || listed || self.groups.are_kept() {
            return Err("memory control groups begin with empty lists whose order is kept".into());
        }
        if parents.is_empty() {
            return Err("all pages are the root's without another group: name one".into());
        }
        let too_early = parents.iter().enumerate().any(|(i, parent)| parent.index() > i);
        let sets = (parents.len() + 1) * self.nodes.len();
        if too_early || sets > usize::from(u16::MAX) {
            return Err("a group comes after the one it is in, and there are at most 65,535 on all nodes".into());
        }
        let nodes = self.nodes.len();
        self.groups = Groups::new(parents, rules.groups.charges, nodes, self.cpus, self.frames.nr_frames());
        self.lru.keep_groups(self.groups.len(), self.cpus);
        Ok(())
    }

    /// The lists of a group on a node.
    pub fn lruvec_of_group(&self, group: GroupId, node: NodeId) -> LruvecId {
        let of_root = self.node_lruvec(node);
        if self.groups.are_kept() { self.groups.lruvec(group, of_root) } else { of_root }
    }

    /// The order in which reclaim for the whole machine comes to groups on a node, where pages are
    /// in generations.
    pub fn group_order(&self, node: NodeId) -> &MemcgLru {
        self.groups.order(self.node_lruvec(node))
    }

    /// The same, to be set.
    pub fn group_order_mut(&mut self, node: NodeId) -> &mut MemcgLru {
        let of_root = self.node_lruvec(node);
        self.groups.order_mut(of_root)
    }

    /// Takes a page's charge off its group; it is being freed.
    #[cold]
    #[inline(never)]
    pub(crate) fn uncharge_page(&mut self, pfn: Pfn, order: Order) {
        let group = self.groups.of_page(pfn);
        if group != GroupId::ROOT {
            self.groups.set_of_page(pfn, GroupId::ROOT);
            self.groups.uncharge(group, u64::from(order.pages()));
        }
    }

    /// A block becomes single pages, which belong to its group.
    pub(crate) fn split_group(&mut self, pfn: Pfn, order: Order) {
        if self.groups.are_kept() {
            let group = self.groups.of_page(pfn);
            (0..order.pages()).for_each(|i| self.groups.set_of_page(pfn.plus(i), group));
        }
    }

    /// The root's lists on the same node, where the node's counters are.
    #[inline(always)]
    pub(crate) fn root_of(&self, lruvec: LruvecId) -> LruvecId {
        if self.groups.are_kept() { self.groups.root_of(lruvec) } else { lruvec }
    }

    /// Does something to the lists, on the same node, of all groups that a group is in.
    #[cold]
    #[inline(never)]
    pub(crate) fn for_lists_above(&mut self, lruvec: LruvecId, mut what: impl FnMut(&mut Lruvec)) {
        let (of_root, group) = (self.groups.root_of(lruvec), self.groups.group_of(lruvec));
        for above in self.groups.up(group).skip(1) {
            what(&mut self.lru.vecs[self.groups.lruvec(above, of_root)]);
        }
    }

    /// Counts pages that joined a list of a group or left it.
    #[cold]
    #[inline(never)]
    pub(super) fn count_listed_in_group(&mut self, zone: ZoneId, lruvec: LruvecId, list: LruList, pages: i64) {
        let vec = &mut self.lru.vecs[lruvec];
        let at = vec.zones.iter().position(|z| *z == zone);
        if let (Some(counted), Some(at)) = (&mut vec.in_group, at) {
            counted.sizes[at][list.index()] += pages;
            counted.own[list.index()] += pages;
        }
    }

    /// Counts something of a group's lists, and of their node.
    #[inline(always)]
    pub(super) fn count_state(&mut self, lruvec: LruvecId, item: NodeStat, cpu: CpuId, delta: i64) {
        let of_root = self.root_of(lruvec);
        self.lru.vecs[of_root].count(item, cpu, delta);
        if let Some(counted) = &mut self.lru.vecs[lruvec].in_group {
            counted.own[item as usize] += delta;
        }
    }

    /// Adds up the CPUs' parts of all groups' counters: reclaim reads these until the next time.
    pub fn flush_group_stats(&mut self) {
        for vec in &mut self.lru.vecs {
            if let Some(counted) = &mut vec.in_group {
                counted.flushed = counted.own;
            }
        }
        // A group comes after the one it is in: from the last on, each is complete when its turn
        // comes.
        for group in self.groups.ids().rev() {
            let Some(parent) = self.groups.get(group).parent else { continue };
            for of_root in (0..self.groups.nodes()).map(LruvecId::new) {
                let below = &self.lru.vecs[self.groups.lruvec(group, of_root)].in_group;
                let Some(below) = below.as_ref().map(|counted| counted.flushed) else { continue };
                let above = &mut self.lru.vecs[self.groups.lruvec(parent, of_root)].in_group;
                let sums = above.iter_mut().flat_map(|counted| counted.flushed.iter_mut());
                sums.zip(below).for_each(|(sum, pages)| *sum += pages);
            }
        }
    }

    /// A migrated page's charge goes to the page that replaces it.
    #[inline(always)]
    pub(super) fn move_charge(&mut self, from: Pfn, to: Pfn) {
        if self.groups.are_kept() {
            let group = self.groups.of_page(from);
            self.groups.set_of_page(from, GroupId::ROOT);
            self.groups.set_of_page(to, group);
        }
    }
}
