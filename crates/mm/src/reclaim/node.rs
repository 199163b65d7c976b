//! Shrinks a node at one priority: its lists and its caches; for a large request again, as long as compaction has too
//! little room to work in and something is found.
//!
//! Source: kernel-behaviour §4.5.

use super::control::{DEF_PRIORITY, Met, ScanControl};
use super::lruvec::ShrinkLruvec;
use super::throttle::Throttle;
use crate::event::CompactResult;
use crate::gfp::{AllocFlags, Gfp, Wmark};
use crate::host::Owner;
use crate::state::{LruList, Memory};
use crate::step::{Step, Wait};
use crate::types::{NodeId, Order};

/// A node, being shrunk.
#[derive(Clone, Debug)]
pub(crate) struct ShrinkNode {
    node: NodeId,
    state: State,
    /// Reclaimed before this round, and whether any round reclaimed anything.
    before: u64,
    reclaimable: bool,
}

#[derive(Clone, Debug)]
enum State {
    Begin,
    Lists(ShrinkLruvec),
    /// The lists are done; whether it has been seen to what there is to wait for.
    End {
        waited: bool,
    },
}

impl ShrinkNode {
    pub(crate) fn new(node: NodeId) -> ShrinkNode {
        ShrinkNode { node, state: State::Begin, before: 0, reclaimable: false }
    }

    /// A cluster of pages. Where the lists are empty all is done at once.
    pub(crate) fn step<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, sc: &mut ScanControl) -> Step<()> {
        m.shared.work.any = true;
        loop {
            if let Some(step) = self.advance(m, owner, sc) {
                return step;
            }
        }
    }

    /// A step of it, unless it goes on at once.
    fn advance<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, sc: &mut ScanControl) -> Option<Step<()>> {
        match &mut self.state {
            State::Begin => {
                sc.met = Met::default();
                self.before = sc.nr_reclaimed;
                m.prepare_scan_count(self.node, sc);
                m.offer_cpu(owner);
                self.state = State::Lists(ShrinkLruvec::new(m, self.node, sc));
                None
            }
            State::Lists(lists) => {
                let step = lists.step(m, owner, sc);
                if step != Step::Done(()) {
                    return Some(step);
                }
                sc.nr_reclaimed += m.shrink_slab(owner, self.node, sc);
                self.reclaimable |= sc.nr_reclaimed > self.before;
                self.state = State::End { waited: false };
                None
            }
            State::End { waited } => {
                if !core::mem::replace(waited, true)
                    && let Some(wait) = self.wait_for_writing(m, owner, sc)
                {
                    return Some(Step::Wait(wait));
                }
                if self.should_continue(m, sc) {
                    self.state = State::Begin;
                    return None;
                }
                if !self.reclaimable {
                    sc.trim_failed |= sc.cache_trim_mode;
                } else if !m.shared.profile.kswapd.hopeless_until_balanced
                    || m.pgdat_balanced(self.node, sc.order, sc.highest)
                {
                    m.nodes[self.node].kswapd.failures = 0;
                }
                Some(Step::Done(()))
            }
        }
    }

    /// What follows from the pages that were met and are dirty or being written.
    fn wait_for_writing<O: Owner>(&self, m: &mut Memory, owner: &mut O, sc: &ScanControl) -> Option<Wait> {
        let (met, vec) = (&sc.met, &mut m.lru.vecs[self.node]);
        if sc.kswapd {
            vec.writeback |= met.writeback > 0 && met.writeback == met.taken;
            vec.dirty |= met.unqueued_dirty == met.file_taken;
            vec.congested |= met.dirty > 0 && met.dirty == met.congested;
            let immediate = met.immediate > 0;
            return immediate.then(|| m.reclaim_throttle(self.node, Throttle::Writeback, 0)).flatten();
        }
        let congested = vec.congested;
        let pending = owner.write_pending(self.node);
        congested.then(|| m.reclaim_throttle(self.node, Throttle::Congested, pending)).flatten()
    }

    /// Whether to go on for a large request, because compaction would not have room enough.
    fn should_continue(&self, m: &mut Memory, sc: &ScanControl) -> bool {
        let compacts =
            sc.gfp.has(Gfp::IO) && sc.order > Order::ZERO && (sc.order.is_costly() || sc.priority < DEF_PRIORITY - 2);
        if !compacts || sc.nr_reclaimed == self.before {
            return false;
        }
        let plain = AllocFlags::mark(Wmark::Min);
        for i in 0..m.nodes[self.node].zones.len() {
            let zone = m.nodes[self.node].zones[i];
            if m.zones[zone].managed == 0 || m.zones[zone].kind > sc.highest {
                continue;
            }
            let z = &m.zones[zone];
            let min = z.wmark(Wmark::Min);
            if m.shared.profile.compaction.success_is_untraced
                && z.watermark_ok(sc.order, min, sc.highest, plain, z.free_pages, &m.shared.profile)
            {
                return false;
            }
            let suits = m.compaction_suitable(zone, Some(sc.order), plain, sc.highest, false);
            if matches!(suits, CompactResult::Success | CompactResult::Continue) {
                return false;
            }
        }
        let vec = &m.lru.vecs[self.node];
        let mut inactive = vec.size(LruList::InactiveFile);
        if m.can_reclaim_anon() {
            inactive += vec.size(LruList::InactiveAnon);
        }
        inactive > m.shared.profile.compaction.gap(sc.order)
    }
}
