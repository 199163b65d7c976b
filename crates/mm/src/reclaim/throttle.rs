//! Waiting, where reclaim goes on faster than it can have success.
//!
//! Source: kernel-behaviour §4.3 (throttling).

use crate::state::Memory;
use crate::step::Wait;
use crate::types::NodeId;

/// Why a task waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Throttle {
    /// Pages are met again before they are written: 100 ms, or until enough of them are.
    Writeback,
    /// All dirty pages wait for a slow device: a tick.
    Congested,
    /// Nothing was reclaimed at nearly the last priority: a tick.
    NoProgress,
}

/// A clock tick of a kernel with 250 of them a second.
const TICK_NS: u64 = 4_000_000;
const WRITEBACK_NS: u64 = 100_000_000;

impl Memory {
    /// What a task waits for, if it waits: without much to be written it does not, nor where kswapd has given up.
    pub(super) fn reclaim_throttle(&self, node: NodeId, reason: Throttle, write_pending: u64) -> Option<Wait> {
        match reason {
            Throttle::Writeback => Some(Wait::Time(WRITEBACK_NS)),
            Throttle::Congested | Throttle::NoProgress => {
                let hopeless = self.nodes[node].kswapd.hopeless();
                let zones = self.nodes[node].zones.iter().filter(|z| self.zones[**z].managed > 0);
                let reclaimable: i64 = zones.map(|z| self.reclaimable_pages(*z)).sum();
                let waits = !hopeless && 2 * write_pending as i64 > reclaimable;
                waits.then_some(Wait::Time(TICK_NS))
            }
        }
    }
}
