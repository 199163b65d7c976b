//! A node: its zones, its CPUs, and what its daemons are asked for.

use crate::event::CompactResult;
use crate::types::{CpuId, NodeId, Order, ZoneId, ZoneType};
use alloc::vec::Vec;

/// A node: its zones and its daemons' state.
#[derive(Clone, Debug)]
pub struct Node {
    /// The node's number.
    pub id: NodeId,
    /// Its zones, lowest first.
    pub zones: Vec<ZoneId>,
    /// Its CPUs.
    pub cpus: Vec<CpuId>,
    /// Pages present.
    pub present: u64,
    /// What kswapd is asked for and how it fared.
    pub kswapd: KswapdState,
    /// What kcompactd is asked for and how it fared.
    pub kcompactd: KcompactdState,
    /// Objects that shrinkers were to scan and did not yet, by shrinker.
    pub(crate) deferred: Vec<u64>,
    /// How far each node is, itself included, as firmware says (SLIT): 10 is itself, 20 takes twice as long.
    pub distances: Vec<u8>,
    /// All zones a request starting here may use, in order of preference.
    pub(crate) zonelist: Vec<ZoneId>,
}

/// What a node's kswapd is asked for, and how it fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KswapdState {
    /// Awake: reclaiming, or about to.
    pub running: bool,
    /// Balance runs in a row that reclaimed nothing.
    pub failures: u32,
    pub(crate) order: Order,
    pub(crate) highest: Option<ZoneType>,
}

impl KswapdState {
    /// The order it has been asked for since it began, and the highest zone, if it has been asked at all.
    pub fn asked(&self) -> (Order, Option<ZoneType>) {
        (self.order, self.highest)
    }
}

/// Zones that kcompactd was woken for and passed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassedBy {
    /// Compaction was put off there, after runs without success.
    pub put_off: u64,
    /// What it works for was there already.
    pub goal_met: u64,
    /// Too little was free for compaction to have room, or too little scattered.
    pub unsuitable: u64,
}

impl PassedBy {
    /// One more, whose test of suitability had this result.
    pub(crate) fn add(&mut self, result: CompactResult) {
        match result {
            CompactResult::Success => self.goal_met += 1,
            _ => self.unsuitable += 1,
        }
    }
}

/// Tests after which kcompactd went on to make whole pageblocks, and those of them after which no moving of pages could meet
/// its goal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WentOn {
    /// All after which it went on, whatever could come of it.
    pub all: u64,
    /// All that was free was in whole pageblocks already, but for less than one.
    pub nothing_scattered: u64,
    /// Some was scattered, but all that was free together was too little for the goal.
    pub too_little_free: u64,
}

/// What a node's kcompactd is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KcompactdState {
    pub(crate) max_order: Order,
    pub(crate) highest: Option<ZoneType>,
    pub(crate) awake: bool,
    /// Proactive runs so far.
    pub proactive_runs: u64,
    /// How often a run for a block of some order asked whether it is finished, by the answer.
    pub finished: [u64; CompactResult::Success as usize + 1],
    /// How often of these a run for whole pageblocks went on, and where nothing could come of it.
    pub went_on: WentOn,
    /// Zones it was woken for in which no run began.
    pub passed_by: PassedBy,
    /// The sysctl was written: check now.
    pub(crate) proactive_trigger: bool,
}
