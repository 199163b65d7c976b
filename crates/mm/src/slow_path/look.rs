//! A look at the free lists: a walk over the request's zones, and the attempt that follows it.
//!
//! With `vm.zone_reclaim_mode`, a request that may block reclaims on the node of each zone that has
//! too little free, and checks the zone once more, before it tries the next. Such a walk takes many
//! steps; the fast path, which has none, leaves it to the slow path altogether. Source:
//! kernel-behaviour §3.4, §4.13.

use crate::allocate::ZonelistWalk;
use crate::gfp::AllocFlags;
use crate::owner::Owner;
use crate::reclaim::node_reclaim::NodeReclaim;
use crate::request::Request;
use crate::state::Memory;
use crate::step::Step;
use crate::types::{Pfn, ZoneId};

/// The next attempt of a request that has found nothing.
#[derive(Clone, Copy)]
pub(super) enum Then {
    /// It enters the slow path.
    Enter,
    /// It may compact, and then goes round.
    FirstCompact,
    /// It reclaims, if it may.
    Reclaim,
    /// It drains the per-CPU lists and looks again after reclaim, which freed these pages.
    Drain { freed: u64 },
    /// It goes on after reclaim.
    GoOn { freed: u64 },
    /// It counts its compaction's failure. A compaction that has made a block counts, too.
    CountAttempt {
        /// It was the compaction before the first reclaim.
        first: bool,
    },
    /// It looks once more with these rights, bound by no cpuset, of which there is none here.
    LookAgain { flags: AllocFlags },
    /// It begins another round.
    Retry,
}

/// A walk over the request's zones that reclaims on its way.
#[derive(Clone)]
pub(super) struct Look {
    request: Request,
    preferred: ZoneId,
    walk: ZonelistWalk,
    /// The zone that is reclaimed for, and the mark that it failed.
    reclaim: Option<(ZoneId, u64, NodeReclaim)>,
    then: Then,
}

impl Look {
    /// The fast path's walk, if the request reclaims on its way.
    pub(super) fn of_fast_path(m: &Memory, request: &Request) -> Option<Look> {
        if !m.reclaims_on_the_way(request) {
            return None;
        }
        let preferred = m.preferred_zone(request)?;
        Some(Look::new(request, preferred, m.fast_path_flags(request, preferred), Then::Enter))
    }

    pub(super) fn new(request: &Request, preferred: ZoneId, flags: AllocFlags, then: Then) -> Look {
        Look { request: *request, preferred, walk: ZonelistWalk::new(preferred, flags), reclaim: None, then }
    }

    /// Walks on until a zone gives a block, or reclaim has scanned a cluster of pages.
    pub(super) fn step<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> Step<(Then, Option<Pfn>)> {
        let r = self.request;
        loop {
            if let Some((zone, mark, reclaim)) = &mut self.reclaim {
                match reclaim.step(m, owner) {
                    Step::Working => return Step::Working,
                    Step::Wait(wait) => return Step::Wait(wait),
                    Step::Done(()) => {}
                }
                let (id, mark, flags) = (*zone, *mark, self.walk.flags);
                self.reclaim = None;
                let zone = &m.zones[id];
                let (highest, profile) = (r.gfp.highest_zone(), &m.shared.profile);
                if zone.watermark_ok(r.order, mark, highest, flags, zone.free_pages, profile)
                    && let Some(pfn) = m.take_from_zone(id, &r, flags)
                {
                    return Step::Done((self.then, Some(pfn)));
                }
            }
            let Some(id) = self.walk.next(m, &r) else { return Step::Done((self.then, None)) };
            m.shared.work.any = true;
            m.shared.work.zones_tried += u64::from(id != self.preferred);
            let flags = self.walk.flags;
            if !m.above_mark(id, &r, flags) {
                let mark = m.zones[id].wmark(flags.wmark);
                let reclaim = NodeReclaim::begin(m, owner, self.preferred, id, &r);
                self.reclaim = reclaim.map(|reclaim| (id, mark, reclaim));
            } else if let Some(pfn) = m.take_from_zone(id, &r, flags) {
                return Step::Done((self.then, Some(pfn)));
            }
        }
    }
}
