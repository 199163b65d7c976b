//! The machine's memory: all state of the engine, and what a host may look at.

use super::{Frames, Locked, Lru, Lruvec, Node, Pageblocks, Shared, SwapSpace, Table, Zone};
use crate::event::Trace;
use crate::rules::Profile;
use crate::step::{Daemon, Wakes};
use crate::types::{CpuId, LruvecId, NodeId, ZoneId};
use crate::vmstat::Vmstat;
use crate::work::Work;
use alloc::vec::Vec;

/// All memory of a machine.
#[derive(Clone)]
pub struct Memory {
    pub(crate) frames: Frames,
    pub(crate) blocks: Pageblocks,
    pub(crate) lru: Lru,
    pub(crate) zones: Table<ZoneId, Zone>,
    pub(crate) nodes: Table<NodeId, Node>,
    pub(crate) shared: Shared,
    pub(crate) wakes: Wakes,
    pub(crate) cpus: usize,
}

impl Memory {
    /// The populated zones.
    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }
    /// One zone.
    pub fn zone(&self, id: ZoneId) -> &Zone {
        &self.zones[id]
    }
    /// The nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }
    /// State of every frame.
    pub fn frames(&self) -> &Frames {
        &self.frames
    }
    /// State of every pageblock.
    pub fn pageblocks(&self) -> &Pageblocks {
        &self.blocks
    }
    /// The LRU.
    pub fn lru(&self) -> &Lru {
        &self.lru
    }
    /// Keeps the order of users' pages from now on.
    ///
    /// # Errors
    /// If there are some already.
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
    /// What reclaim remembers of some lists, for a host that goes on from a state of another machine.
    pub fn lruvec_mut(&mut self, lruvec: LruvecId) -> &mut Lruvec {
        &mut self.lru.vecs[lruvec]
    }
    /// The lists of a node that keeps one set of them.
    pub(crate) fn node_lruvec(&self, node: NodeId) -> LruvecId {
        debug_assert!(!self.shared.profile.lru.lists_per_zone);
        LruvecId::new(node.index())
    }
    /// Says how much room for swapped-out pages there is. It decides whether anonymous pages can be reclaimed.
    pub fn set_swap(&mut self, swap: SwapSpace) {
        self.lru.swap = swap;
    }
    /// How much room for swapped-out pages there is.
    pub fn swap_space(&self) -> SwapSpace {
        self.lru.swap
    }
    /// The kernel generation.
    pub fn profile(&self) -> &Profile {
        &self.shared.profile
    }
    /// Event counters.
    pub fn vmstat(&self) -> &Vmstat {
        &self.shared.vmstat
    }
    /// Event counters, for what happens above the engine: page faults, huge page splits.
    pub fn vmstat_mut(&mut self) -> &mut Vmstat {
        &mut self.shared.vmstat
    }
    /// Tracepoints.
    pub fn trace(&mut self) -> &mut Trace {
        &mut self.shared.trace
    }
    /// Number of CPUs.
    pub fn nr_cpus(&self) -> usize {
        self.cpus
    }
    /// The work done since last asked; the count starts anew.
    #[inline(always)]
    pub fn take_work(&mut self) -> Work {
        core::mem::take(&mut self.shared.work)
    }
    /// Whether any work was done since last asked beyond hits in per-CPU lists.
    #[inline(always)]
    pub fn has_work(&self) -> bool {
        debug_assert!(self.shared.work.any || self.shared.work == Work::default(), "uncharged: {:?}", self.shared.work);
        self.shared.work.any
    }
    /// The daemons woken since last asked, in the order they were woken.
    pub fn take_wakes(&mut self) -> impl Iterator<Item = Daemon> {
        self.wakes.take()
    }
    /// Whether any daemon has been woken since last asked.
    #[inline(always)]
    pub fn has_wakes(&self) -> bool {
        !self.wakes.is_empty()
    }
    /// Free pages of the machine, exact.
    pub fn nr_free_pages(&self) -> u64 {
        self.zones.iter().map(Zone::nr_free_pages_exact).sum()
    }
    /// The node a CPU belongs to.
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
