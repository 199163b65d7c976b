//! The machine's memory: all state of the engine, and a host's view of it.

use super::{Frames, Group, Groups, Locked, Lru, Lruvec, Node, Pageblocks, Shared, SwapSpace, Table, Zone};
use crate::event::Trace;
use crate::rules::Profile;
use crate::step::{Daemon, Wakes};
use crate::types::{CpuId, GroupId, LruvecId, NodeId, ZoneId};
use crate::vmstat::Vmstat;
use crate::work::Work;
use alloc::vec::Vec;

/// All memory of a machine.
#[derive(Clone)]
pub struct Memory {
    pub(crate) frames: Frames,
    pub(crate) blocks: Pageblocks,
    pub(crate) lru: Lru,
    pub(crate) groups: Groups,
    pub(crate) zones: Table<ZoneId, Zone>,
    pub(crate) nodes: Table<NodeId, Node>,
    pub(crate) shared: Shared,
    pub(crate) wakes: Wakes,
    pub(crate) cpus: usize,
}

impl Memory {
    /// All populated zones of the machine.
    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }
    /// The zone with this id.
    pub fn zone(&self, id: ZoneId) -> &Zone {
        &self.zones[id]
    }
    /// All nodes of the machine.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }
    /// The state of every frame.
    pub fn frames(&self) -> &Frames {
        &self.frames
    }
    /// The state of every pageblock.
    pub fn pageblocks(&self) -> &Pageblocks {
        &self.blocks
    }
    /// The LRU of the machine.
    pub fn lru(&self) -> &Lru {
        &self.lru
    }
    /// The memory control groups.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }
    /// A group, for a host that continues from the state of another machine.
    pub fn group_mut(&mut self, group: GroupId) -> &mut Group {
        self.groups.get_mut(group)
    }
    /// Keeps the order of users' pages from now on.
    ///
    /// # Errors
    /// If there are user pages already.
    pub fn keep_lru_order(&mut self) -> Result<(), &'static str> {
        if self.zones.iter().any(|z| z.nr_lru() + z.nr_isolated > 0) {
            return Err("there are pages on the LRU already, and their order is not known");
        }
        let thresholds: Vec<i64> = self.lru.vecs.iter().map(|vec| vec.stat_threshold).collect();
        let vecs = super::lru::new_lruvecs(&self.nodes, &self.zones, self.cpus, self.shared.profile.lru.lists_per_zone);
        self.lru = Lru::new(true, self.frames.nr_frames(), vecs, self.cpus);
        self.lru.vecs.iter_mut().zip(thresholds).for_each(|(vec, threshold)| vec.stat_threshold = threshold);
        Ok(())
    }
    /// Reclaim's memory of some lists, for a host that continues from the state of another machine.
    pub fn lruvec_mut(&mut self, lruvec: LruvecId) -> &mut Lruvec {
        &mut self.lru.vecs[lruvec]
    }
    /// The lists of a node that has one set of them.
    pub(crate) fn node_lruvec(&self, node: NodeId) -> LruvecId {
        debug_assert!(!self.shared.profile.lru.lists_per_zone);
        LruvecId::new(node.index())
    }
    /// Sets the swap space, which decides whether anonymous pages can be reclaimed.
    pub fn set_swap(&mut self, swap: SwapSpace) {
        self.lru.swap = swap;
    }
    /// The swap space, as the host has set it.
    pub fn swap_space(&self) -> SwapSpace {
        self.lru.swap
    }
    /// The rules of the kernel generation.
    pub fn profile(&self) -> &Profile {
        &self.shared.profile
    }
    /// Goes on by rules that differ from those so far in compaction runs at most, before the first
    /// of them.
    ///
    /// # Panics
    /// If this would be another machine by these rules.
    pub fn switch_rules(&mut self, rules: &Profile) {
        let same = !self.has_compacted() && self.profile().is_same_until_compaction(rules);
        assert!(same || self.profile() == rules, "by these rules the machine would be another");
        self.shared.profile.clone_from(rules);
    }
    /// Whether a compaction run has begun since boot.
    pub fn has_compacted(&self) -> bool {
        self.shared.has_compacted
    }
    /// The event counters of `/proc/vmstat`.
    pub fn vmstat(&self) -> &Vmstat {
        &self.shared.vmstat
    }
    /// The event counters, for events above the engine: page faults, huge page splits.
    pub fn vmstat_mut(&mut self) -> &mut Vmstat {
        &mut self.shared.vmstat
    }
    /// The tracepoints and their recording.
    pub fn trace(&mut self) -> &mut Trace {
        &mut self.shared.trace
    }
    /// Number of CPUs of the machine.
    pub fn nr_cpus(&self) -> usize {
        self.cpus
    }
    /// The work done since the last call; the count then restarts.
    #[inline(always)]
    pub fn take_work(&mut self) -> Work {
        core::mem::take(&mut self.shared.work)
    }
    /// Whether any work beyond hits in per-CPU lists was done since the last [`Memory::take_work`].
    #[inline(always)]
    pub fn has_work(&self) -> bool {
        // Holds of an LRU's lock take no time of their own: they wait for the next work.
        debug_assert!(
            self.shared.work.any || Work { lrus: 0, listed: 0, ..self.shared.work } == Work::default(),
            "uncharged: {:?}",
            self.shared.work
        );
        self.shared.work.any
    }
    /// The daemons woken since the last call, in the order of their wakeups.
    pub fn take_wakes(&mut self) -> impl Iterator<Item = Daemon> {
        self.wakes.take()
    }
    /// Whether any daemon was woken since the last [`Memory::take_wakes`].
    #[inline(always)]
    pub fn has_wakes(&self) -> bool {
        !self.wakes.is_empty()
    }
    /// Free pages of the machine, exact.
    pub fn nr_free_pages(&self) -> u64 {
        self.zones.iter().map(Zone::nr_free_pages_exact).sum()
    }
    /// The node of a CPU.
    pub fn node_of_cpu(&self, cpu: CpuId) -> NodeId {
        self.nodes.iter().find(|n| n.cpus.contains(&cpu)).map_or(NodeId::default(), |n| n.id)
    }

    #[inline(always)]
    pub(crate) fn locked(&mut self, zone: ZoneId, cpu: CpuId) -> Locked<'_> {
        Locked {
            zone: &mut self.zones[zone],
            frames: &mut self.frames,
            blocks: &mut self.blocks,
            shared: &mut self.shared,
            cpu,
        }
    }
}
