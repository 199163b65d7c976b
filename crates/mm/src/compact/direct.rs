//! Direct compaction: a request compacts the zones it may use, one after the other, until one succeeds.
//!
//! Source: kernel-behaviour §3.5 ("direct compact wrapper"), §5.9.1, §5.9.4.

use super::run::{CompactControl, CompactRun, RunStep};
use crate::event::{CompactResult, Event, Listen, MigrateMode};
use crate::gfp::{AllocFlags, Gfp};
use crate::host::Owner;
use crate::rules::Profile;
use crate::state::Memory;
use crate::types::{CpuId, MigrateType, NodeId, Order, PAGEBLOCK_ORDER, Pfn, ZoneId};

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
    gfp: Gfp,
    /// The request's order.
    request: Order,
    /// The order to make: the request's, or a whole pageblock for it to sit in.
    order: Order,
    flags: AllocFlags,
    node: NodeId,
    cpu: CpuId,
    priority: CompactPriority,
    next_zone: usize,
    run: Option<CompactRun>,
    result: CompactResult,
}

/// The order compaction makes for a request: in defrag_mode a request that is not movable gets a pageblock of its own.
pub(crate) fn compact_order(request: Order, gfp: Gfp, flags: AllocFlags, profile: &Profile) -> Order {
    let own_block =
        profile.fallback.defrag_mode && flags.any(AllocFlags::NOFRAGMENT) && gfp.migratetype() != MigrateType::Movable;
    if own_block { request.max(PAGEBLOCK_ORDER) } else { request }
}

/// What a step came to.
pub(crate) enum DirectStep {
    Working,
    /// The overall result, and a captured block with its zone.
    Done(CompactResult, Option<(Pfn, ZoneId)>),
}

impl DirectCompact {
    pub(crate) fn new(
        m: &mut Memory,
        cpu: CpuId,
        node: NodeId,
        gfp: Gfp,
        request: Order,
        flags: AllocFlags,
        priority: CompactPriority,
    ) -> DirectCompact {
        let order = compact_order(request, gfp, flags, &m.sh.profile);
        m.sh.emit(Listen::COMPACTION, || Event::TryToCompactPages { order, priority: priority as u8 });
        let result = CompactResult::Skipped;
        DirectCompact { gfp, request, order, flags, node, cpu, priority, next_zone: 0, run: None, result }
    }

    fn control(&self) -> CompactControl {
        let full = self.priority == CompactPriority::SyncFull;
        CompactControl {
            order: Some(self.order),
            migratetype: self.gfp.migratetype(),
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
            highest: self.gfp.highest_zone(),
            request_order: Some(self.request),
        }
    }

    /// The next zone the request may use.
    fn next(&mut self, m: &Memory) -> Option<ZoneId> {
        let list = &m.nodes[self.node.index()].zonelist;
        while let Some(&id) = list.get(self.next_zone) {
            self.next_zone += 1;
            let z = &m.zones[id.index()];
            if z.kind <= self.gfp.highest_zone() && (!self.gfp.has(Gfp::THISNODE) || z.node == self.node) {
                return Some(id);
            }
        }
        None
    }

    /// Advances by one step of one zone's run.
    pub(crate) fn step<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, budget: u64) -> DirectStep {
        let Some(run) = &mut self.run else {
            let Some(zone) = self.next(m) else {
                return DirectStep::Done(self.result, None);
            };
            if self.priority != CompactPriority::SyncFull && m.locked(zone, self.cpu).compaction_deferred(self.order) {
                self.result = self.result.max(CompactResult::Deferred);
                return DirectStep::Working;
            }
            self.run = Some(CompactRun::new(self.control(), zone, self.cpu));
            return DirectStep::Working;
        };
        let RunStep::Done(mut status) = run.step(m, owner, budget) else {
            return DirectStep::Working;
        };
        let zone = run.zone();
        let captured = run.captured();
        if captured.is_some() {
            status = CompactResult::Success;
        }
        self.run = None;
        self.result = self.result.max(status);
        if status == CompactResult::Success {
            m.locked(zone, self.cpu).compaction_defer_reset(self.order, false);
            return DirectStep::Done(self.result, captured.map(|pfn| (pfn, zone)));
        }
        if self.priority != CompactPriority::Async
            && matches!(status, CompactResult::Complete | CompactResult::PartialSkipped)
        {
            m.locked(zone, self.cpu).defer_compaction(self.order);
        }
        DirectStep::Working
    }
}
