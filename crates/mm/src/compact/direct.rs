//! Direct compaction: a request compacts the zones it may use, one after the other, until one succeeds.
//!
//! Source: kernel-behaviour §3.5 ("direct compact wrapper"), §5.9.

use super::state::{CompactControl, CompactRun};
use super::walk::Passed;
use crate::event::{CompactResult, Event, Listen, MigrateMode};
use crate::gfp::AllocFlags;
use crate::host::Owner;
use crate::request::Request;
use crate::rules::Profile;
use crate::state::Memory;
use crate::step::Step;
use crate::types::{MigrateType, Order, PAGEBLOCK_ORDER, Pfn, ZoneId};

/// How hard direct compaction tries; the number is the kernel's, smaller is harder.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CompactPriority {
    /// Everything: no hints, no deferral.
    SyncFull = 0,
    /// Waits a little.
    SyncLight = 1,
    /// Takes what is easy.
    Async = 2,
}

/// A direct compaction in progress over a request's zones.
#[derive(Clone)]
pub(crate) struct DirectCompact {
    request: Request,
    /// The order to make: the request's, or a whole pageblock for it to sit in.
    order: Order,
    flags: AllocFlags,
    priority: CompactPriority,
    next_zone: usize,
    run: Option<CompactRun>,
    result: CompactResult,
}

/// The order compaction makes for a request: in defrag_mode a request that is not movable gets a pageblock of its own.
pub(crate) fn compact_order(request: &Request, flags: AllocFlags, profile: &Profile) -> Order {
    let own_block = profile.fallback.defrag_mode
        && flags.any(AllocFlags::NOFRAGMENT)
        && request.gfp.migratetype() != MigrateType::Movable;
    if own_block { request.order.max(PAGEBLOCK_ORDER) } else { request.order }
}

/// How a direct compaction ended.
pub(crate) struct Compacted {
    /// The overall result.
    pub(crate) result: CompactResult,
    /// A captured block and its zone.
    pub(crate) captured: Option<(Pfn, ZoneId)>,
}

impl DirectCompact {
    pub(crate) fn new(m: &mut Memory, request: Request, flags: AllocFlags, priority: CompactPriority) -> DirectCompact {
        let order = compact_order(&request, flags, &m.shared.profile);
        m.shared.emit(Listen::COMPACTION, || Event::TryToCompactPages { order, priority: priority as u8 });
        let result = CompactResult::Skipped;
        DirectCompact { request, order, flags, priority, next_zone: 0, run: None, result }
    }

    fn control(&self) -> CompactControl {
        let full = self.priority == CompactPriority::SyncFull;
        CompactControl {
            order: Some(self.order),
            migratetype: self.request.gfp.migratetype(),
            mode: match self.priority {
                CompactPriority::Async => MigrateMode::Async,
                _ => MigrateMode::SyncLight,
            },
            direct: true,
            whole_zone: full,
            ignore_skip_hint: full,
            ignore_block_suitable: full,
            proactive: false,
            alloc_flags: self.flags,
            highest: self.request.gfp.highest_zone(),
            request_order: Some(self.request.order),
        }
    }

    /// Goes on with a walk of the run in progress: [`CompactRun::walk_on`].
    pub(crate) fn walk_on(&mut self, m: &mut Memory, budget: u64, next: impl FnMut(Passed) -> Option<u64>) {
        if let Some(run) = &mut self.run {
            run.walk_on(m, budget, next);
        }
    }

    /// Advances by one step of one zone's run.
    pub(crate) fn step<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, budget: u64) -> Step<Compacted> {
        let Some(run) = &mut self.run else {
            let Some(zone) = m.next_zone(&self.request, &mut self.next_zone) else {
                return Step::Done(Compacted { result: self.result, captured: None });
            };
            if self.priority != CompactPriority::SyncFull
                && m.locked(zone, self.request.cpu).compaction_deferred(self.order)
            {
                self.result = self.result.max(CompactResult::Deferred);
                return Step::Working;
            }
            self.run = Some(CompactRun::new(self.control(), zone, self.request.cpu));
            return Step::Working;
        };
        let Step::Done(mut status) = run.step(m, owner, budget) else {
            return Step::Working;
        };
        let zone = run.zone();
        let captured = run.captured();
        if captured.is_some() && m.shared.profile.compaction.captured_is_success {
            status = CompactResult::Success;
        }
        self.run = None;
        self.result = self.result.max(status);
        if status == CompactResult::Success {
            m.locked(zone, self.request.cpu).compaction_defer_reset(self.order, false);
            return Step::Done(Compacted { result: self.result, captured: captured.map(|pfn| (pfn, zone)) });
        }
        if self.priority != CompactPriority::Async
            && matches!(status, CompactResult::Complete | CompactResult::PartialSkipped)
        {
            m.locked(zone, self.request.cpu).defer_compaction(self.order);
        }
        if self.priority == CompactPriority::Async && owner.is_awaited(m) {
            // Somebody waits for the CPU: the other zones are not worth that.
            return Step::Done(Compacted { result: self.result, captured: None });
        }
        Step::Working
    }
}
