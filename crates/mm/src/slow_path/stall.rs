//! The stall of movable requests that would mix a pageblock: posted with the watermark boost for
//! 5.0, and never merged.
//!
//! The slow path's first attempt takes no foreign block below `vm.fragment_stall_order`, and none
//! of another node. If it finds nothing, it boosts the preferred zone strongly, wakes kswapd and
//! waits until kswapd has gone over the node once, for 20 ms at most. The next attempt takes any
//! block. Source: kernel-behaviour §3.10.

use super::{AllocSlow, AllocStep, SlowPathStage};
use crate::event::{Event, Listen};
use crate::gfp::{AllocFlags, Gfp};
use crate::owner::Owner;
use crate::state::Memory;
use crate::step::{Step, Wait};
use crate::types::{MigrateType, Order};

/// The longest wait: a fiftieth of a second.
const LONGEST_NS: u64 = 20_000_000;
/// The boost of a stall, in pageblocks.
const PAGEBLOCKS: u64 = 7;

impl AllocSlow {
    /// Whether the first attempt must not mix pageblocks.
    pub(super) fn would_rather_stall(&self, m: &Memory) -> bool {
        let gfp = self.request.gfp;
        m.shared.profile.fallback.stalls_movable
            && gfp.migratetype() == MigrateType::Movable
            && gfp.has(Gfp::DIRECT_RECLAIM)
    }

    /// The first attempt. If it fails, the request boosts the preferred zone and wakes kswapd.
    pub(super) fn try_without_mixing(&mut self, m: &mut Memory) -> AllocStep {
        if let Some(pfn) = m.get_local_page(&self.request, self.flags.with(AllocFlags::FRAGMENT_STALL)) {
            return Step::Done(Ok(pfn));
        }
        if let Some(zone) = m.preferred_zone(&self.request) {
            m.locked(zone, self.request.cpu).boost_watermark(PAGEBLOCKS);
            let highest = m.zones[zone].kind;
            m.wakeup_kswapd(zone, Gfp::NONE, Order::ZERO, highest);
        }
        self.state = SlowPathStage::Stall { waited: false };
        Step::Working
    }

    /// Waits for kswapd, and then begins as if it had never stalled.
    pub(super) fn stall<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, waited: bool) -> AllocStep {
        let Some(zone) = m.preferred_zone(&self.request).filter(|_| !waited) else {
            return self.begin_with_compaction(m, owner);
        };
        let node = m.zones[zone].node;
        m.shared.emit(Listen::VMSCAN, || Event::FragmentationStall { nid: node });
        Step::Wait(Wait::Throttled { node, at_most_ns: Some(LONGEST_NS) })
    }
}
