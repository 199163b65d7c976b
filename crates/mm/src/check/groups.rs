//! The checker's part for memory control groups: what a group is charged is what its pages, the
//! groups below it and the CPUs' stocks have, the sizes of its lists are those of its pages, and it
//! has one place in the order of groups on each node.

use super::ensure;
use super::lru::Listed;
use crate::state::{LruList, Memory, NodeStat};
use crate::types::{CpuId, GroupId, LruvecId};
use alloc::format;
use alloc::string::String;
use alloc::vec;

impl Memory {
    /// Adds up the charges of all pages and compares them with the groups' counters.
    pub(super) fn check_groups(&self) -> Result<(), String> {
        let groups = self.groups();
        if !groups.are_kept() {
            return Ok(());
        }
        for of_root in (0..groups.nodes()).map(LruvecId::new) {
            groups.order(of_root).check().map_err(|e| format!("the order of groups: {e}"))?;
        }
        let mut charged = vec![0u64; groups.len()];
        for zone in self.zones() {
            let mut at = zone.start;
            while at < zone.end {
                let (tag, group) = (self.frames.tag(at), groups.of_page(at));
                ensure!(group.index() < charged.len(), "{at} is of group {}, which there is not", group.index());
                ensure!(
                    group == GroupId::ROOT || tag.is_allocated() || tag.kind() == crate::state::FrameKind::IsolatedLru,
                    "{at} is free, and charged to group {}",
                    group.index()
                );
                charged[group.index()] += u64::from(tag.order().pages());
                at = at.plus(tag.order().pages());
            }
        }
        charged[GroupId::ROOT.index()] = 0;
        for stock in (0..self.cpus).flat_map(|cpu| groups.stocks(CpuId::new(cpu))) {
            if let Some(group) = stock.group {
                charged[group.index()] += stock.pages;
            }
        }
        for group in groups.ids().rev() {
            let (is, counted) = (charged[group.index()], groups.get(group).memory.usage);
            ensure!(is == counted, "group {} has {is} pages, and is charged {counted}", group.index());
            if let Some(parent) = groups.get(group).parent {
                charged[parent.index()] += is;
            }
        }
        Ok(())
    }

    /// Compares what is counted of a group's lists with their pages, found by zone.
    pub(super) fn check_group_lists(&self, lruvec: LruvecId, listed: &Listed) -> Result<(), String> {
        let vec = &self.lru.vecs[lruvec];
        let Some(counted) = &vec.in_group else { return Ok(()) };
        for list in LruList::EVICTABLE {
            let name = list.name();
            let mut all = 0;
            for (zone, sizes) in vec.zones.iter().zip(&counted.sizes) {
                let (is, counted) = (listed[zone.index()][list.index()], sizes[list.index()]);
                ensure!(i128::from(is) == i128::from(counted), "a group has {is} {name} pages, counted {counted}");
                all += is;
            }
            let own = counted.own[list.index()];
            ensure!(i128::from(all) == i128::from(own), "a group has {all} {name} pages on a node, counted {own}");
        }
        let isolated = counted.own[NodeStat::IsolatedAnon as usize];
        ensure!(isolated == 0, "{isolated} isolated pages are counted for a group, not for the node");
        Ok(())
    }
}
