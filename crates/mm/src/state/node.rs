//! A node: its zones, its CPUs, and the requests to its daemons.

use crate::event::CompactResult;
use crate::types::{CpuId, NodeId, Order, ZoneId, ZoneType};
use alloc::vec::Vec;

/// A node: its zones and its daemons' state.
#[derive(Clone, Debug)]
pub struct Node {
    pub id: NodeId,
    pub zones: Vec<ZoneId>,
    pub cpus: Vec<CpuId>,
    pub present: u64,
    pub kswapd: KswapdState,
    pub kcompactd: KcompactdState,
    /// Objects that each shrinker was to scan and has not yet.
    pub(crate) deferred: Vec<u64>,
    /// Distances to all nodes as firmware gives them (SLIT): 10 is the node itself, 20 takes twice
    /// as long.
    pub distances: Vec<u8>,
    /// All zones a request starting here may use, in order of preference.
    pub(crate) zonelist: Vec<ZoneId>,
    /// A request reclaims here before it goes to another node (`PGDAT_RECLAIM_LOCKED`); others
    /// leave the node alone meanwhile.
    pub(crate) is_reclaimed: bool,
}

/// The requests to a node's kswapd, and its results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KswapdState {
    /// Awake: reclaiming, or about to.
    pub running: bool,
    /// Balance runs in a row that reclaimed nothing.
    pub failures: u32,
    pub(crate) order: Order,
    pub(crate) highest: Option<ZoneType>,
    /// It has gone over the node since its host last asked.
    pub(crate) eased: bool,
}

impl KswapdState {
    /// The order it has been asked for since it began, and the highest zone if it has been asked at
    /// all.
    pub fn asked(&self) -> (Order, Option<ZoneType>) {
        (self.order, self.highest)
    }
}

/// Zones for which kcompactd was woken, but started no run, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassedBy {
    /// Compaction was deferred there, after runs without success.
    pub put_off: u64,
    /// Its goal was met already.
    pub goal_met: u64,
    /// Too little was free for compaction to have room, or too little was scattered.
    pub unsuitable: u64,
}

impl PassedBy {
    /// Counts one more, by the result of its test of suitability.
    pub(crate) fn add(&mut self, result: CompactResult) {
        match result {
            CompactResult::Success => self.goal_met += 1,
            _ => self.unsuitable += 1,
        }
    }
}

/// Tests after which kcompactd went on to make whole pageblocks, and those of them after which no
/// migration could meet its goal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WentOn {
    /// All of these tests.
    pub all: u64,
    /// All free pages but less than a pageblock were in whole pageblocks already.
    pub nothing_scattered: u64,
    /// Some were scattered, but all free pages together were too few for the goal.
    pub too_little_free: u64,
}

/// The requests to a node's kcompactd, and its results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KcompactdState {
    pub(crate) max_order: Order,
    pub(crate) highest: Option<ZoneType>,
    pub(crate) awake: bool,
    pub proactive_runs: u64,
    /// Checks of whether a run for a block of some order is finished, by result.
    pub finished: [u64; CompactResult::Success as usize + 1],
    /// Of these, the checks after which a run for whole pageblocks went on, and those where it
    /// could not succeed.
    pub went_on: WentOn,
    /// Zones it was woken for in which no run began.
    pub passed_by: PassedBy,
    /// The sysctl was written, so check now.
    pub(crate) proactive_trigger: bool,
}
