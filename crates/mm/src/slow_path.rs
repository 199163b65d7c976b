//! The allocation slow path: what a request does when no zone has a page above its low watermark.
//!
//! It wakes kswapd, allocates down to the min watermark, compacts, reclaims, compacts harder, and
//! may start over. It is a state machine because it can take tens of milliseconds, in which other
//! CPUs free and allocate pages.
//!
//! The order of these, and what a request that cannot reclaim may still do, depends on the kernel's
//! age: [`async_then_sync`], [`compact_reclaim_compact`], [`compact_then_loop`], [`one_loop`].
//! [`look`] is each attempt at the free lists, which may reclaim on near nodes. [`retry`] decides
//! whether it tries again, [`stall`] whether it waits before it mixes a pageblock. Source:
//! kernel-behaviour §3.5, §3.10, §4.5.

use crate::allocate::NoPage;
use crate::compact::Passed;
use crate::compact::direct::{CompactPriority, Compacted, DirectCompact, compact_order};
use crate::event::CompactResult;
use crate::gfp::{AllocFlags, Gfp, Wmark};
use crate::owner::{Owner, Turn};
use crate::reclaim::direct::DirectReclaim;
use crate::request::Request;
use crate::rules::{Attempts, CompactStall, Reserves};
use crate::state::Memory;
use crate::step::Step;
use crate::types::{MigrateType, Order, PAGEBLOCK_ORDER, Pfn, ZoneId};
use crate::vmstat::VmEvent;
use alloc::boxed::Box;
use look::{Look, Then};

mod async_then_sync;
mod compact_reclaim_compact;
mod compact_then_loop;
mod look;
mod one_loop;
mod retry;
mod stall;

/// The reason why a request got no block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AllocFailure {
    /// The request fails, as its flags allow.
    Failed,
    /// The request may not fail like this and nothing can be reclaimed: the kernel would invoke the
    /// OOM killer.
    OutOfMemory,
}

/// Result of one step of the slow path.
type AllocStep = Step<Result<Pfn, AllocFailure>>;

/// A request on the slow path.
#[derive(Clone)]
pub struct AllocSlow {
    request: Request,
    flags: AllocFlags,
    state: SlowPathStage,
    priority: CompactPriority,
    compact_result: CompactResult,
    compaction_retries: u32,
    no_progress_loops: u32,
    /// Rounds of reclaim and compaction begun.
    rounds: u32,
    progress: bool,
    /// In the loop's first round, which compacts without reclaiming (7.2).
    compact_first: bool,
    /// A `__GFP_HIGH` request has had its second look at the free lists (7.2).
    looked_twice: bool,
    /// Pages freed by its own reclaim (up to 4.7).
    pages_reclaimed: u64,
}

#[derive(Clone)]
enum SlowPathStage {
    Entry,
    /// Walks over the zones, and reclaims on near nodes on the way. Boxed: it is large, and few
    /// requests need it.
    Look(Box<Look>),
    /// Waits for kswapd rather than mix a pageblock; `waited` once it has.
    Stall {
        waited: bool,
    },
    /// Compaction before reclaim: in every round up to 4.7, since then once, for a costly or
    /// non-movable request.
    FirstCompact(DirectCompact),
    Retry,
    Reclaim(DirectReclaim),
    /// The compaction that follows reclaim.
    Compact(DirectCompact),
    Decide,
}

impl Memory {
    /// Allocates a block for a host that does not step: the fast path, then the slow path to its
    /// end.
    ///
    /// # Errors
    /// The reason why there is no block.
    #[inline(always)]
    pub fn alloc_pages<O: Owner>(&mut self, owner: &mut O, r: Request) -> Result<Pfn, AllocFailure> {
        self.alloc(r).or_else(|NoPage| self.alloc_slow(owner, r))
    }

    #[cold]
    #[inline(never)]
    fn alloc_slow<O: Owner>(&mut self, owner: &mut O, r: Request) -> Result<Pfn, AllocFailure> {
        AllocSlow::new(self, r).finish(self, owner)
    }
}

/// Most pageblocks a step visits where no other CPU waits for it to end. It does not affect
/// results.
const BUDGET: u64 = 64;

impl AllocSlow {
    /// A request that [`Memory::alloc`] could not serve. Nothing happens before its first step.
    pub fn new(m: &Memory, request: Request) -> AllocSlow {
        AllocSlow {
            request,
            flags: slow_flags(&request, m),
            state: Look::of_fast_path(m, &request)
                .map_or(SlowPathStage::Entry, |look| SlowPathStage::Look(Box::new(look))),
            priority: match m.shared.profile.slow_path.attempts {
                Attempts::AsyncThenSync | Attempts::CompactReclaimCompact => CompactPriority::Async,
                Attempts::CompactThenLoop | Attempts::OneLoop => CompactPriority::SyncLight,
            },
            compact_result: CompactResult::Skipped,
            compaction_retries: 0,
            no_progress_loops: 0,
            rounds: 0,
            progress: false,
            compact_first: false,
            looked_twice: false,
            pages_reclaimed: 0,
        }
    }

    /// The request being served.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Takes all steps at once. Where a step must wait, `owner` lets time pass.
    ///
    /// # Errors
    /// The reason why there is no block.
    pub fn finish<O: Owner>(mut self, m: &mut Memory, owner: &mut O) -> Result<Pfn, AllocFailure> {
        loop {
            match self.step(m, owner, BUDGET) {
                Step::Working => {}
                Step::Wait(wait) => owner.wait(m, wait),
                Step::Done(result) => return result,
            }
        }
    }

    /// Rounds of reclaim and compaction begun so far. Some kernels never end in defrag_mode if no
    /// pageblock can be emptied, so a caller that relies on an end must check this (§3.5.1,
    /// §4.8.1).
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    fn can_direct_reclaim(&self) -> bool {
        self.request.gfp.has(Gfp::DIRECT_RECLAIM)
    }
    /// Whether to compact before the first reclaim: for requests that reclaim helps little.
    fn compacts_early(&self) -> bool {
        let r = &self.request;
        let early = r.order.is_costly() || r.gfp.migratetype() != MigrateType::Movable;
        self.can_direct_reclaim() && self.can_compact() && early
    }
    fn can_compact(&self) -> bool {
        self.request.order > Order::ZERO && self.request.gfp.has(Gfp::IO)
    }
    /// Whether there is anything to compact for: in defrag_mode even a single page may get a
    /// pageblock made.
    fn compacts(&self, m: &Memory) -> bool {
        let allowed = match m.shared.profile.compaction.needs_file_system {
            false => Gfp::IO,
            true => Gfp::IO | Gfp::FS,
        };
        self.request.gfp.has(allowed) && compact_order(&self.request, self.flags, &m.shared.profile) > Order::ZERO
    }

    fn may_compact_again(&self, m: &Memory) -> bool {
        if m.shared.profile.slow_path.retries_for_pageblocks { self.compacts(m) } else { self.can_compact() }
    }
    /// Whether compaction makes whole pageblocks for a smaller request, and the retry rules allow
    /// for that (7.3).
    fn is_for_pageblocks(&self, m: &Memory) -> bool {
        m.shared.profile.slow_path.retries_for_pageblocks
            && compact_order(&self.request, self.flags, &m.shared.profile) != self.request.order
    }

    /// Advances by one step that visits at most `budget` pageblocks.
    pub fn step<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, budget: u64) -> AllocStep {
        let attempts = m.shared.profile.slow_path.attempts;
        match &mut self.state {
            SlowPathStage::Reclaim(_) => match core::mem::replace(&mut self.state, SlowPathStage::Decide) {
                SlowPathStage::Reclaim(reclaim) => self.reclaim(m, owner, reclaim),
                _ => unreachable!("the state has just been looked at"),
            },
            SlowPathStage::Entry => self.entry(m, owner),
            SlowPathStage::Look(look) => match look.step(m, owner) {
                Step::Done((then, page)) => self.looked(m, owner, then, page),
                step => step.map(|_| unreachable!("it is not done")),
            },
            SlowPathStage::Stall { waited } => {
                let waited = core::mem::replace(waited, true);
                self.stall(m, owner, waited)
            }
            SlowPathStage::FirstCompact(c) => match c.step(m, owner, budget) {
                Step::Working => Step::Working,
                Step::Wait(wait) => Step::Wait(wait),
                Step::Done(Compacted { result, captured }) => {
                    let gave_way = c.gave_way();
                    match attempts {
                        Attempts::AsyncThenSync => self.round_compacted(m, owner, result, gave_way),
                        Attempts::CompactReclaimCompact => {
                            self.compact_result = result;
                            self.compacted_before_reclaim(m, owner, captured, gave_way)
                        }
                        Attempts::CompactThenLoop | Attempts::OneLoop => {
                            self.compact_result = result;
                            self.attempt_made(m, owner, captured, true)
                        }
                    }
                }
            },
            SlowPathStage::Retry => self.retry(m, owner),
            SlowPathStage::Compact(c) => match c.step(m, owner, budget) {
                Step::Working => Step::Working,
                Step::Wait(wait) => Step::Wait(wait),
                Step::Done(Compacted { result, captured }) => match attempts {
                    Attempts::AsyncThenSync => self.last_compacted(m, owner, result),
                    Attempts::CompactReclaimCompact => {
                        self.compact_result = result;
                        Step::Done(self.compacted(m, owner, captured).ok_or(AllocFailure::Failed))
                    }
                    Attempts::CompactThenLoop | Attempts::OneLoop => {
                        self.compact_result = result;
                        self.attempt_made(m, owner, captured, false)
                    }
                },
            },
            SlowPathStage::Decide => self.decide(m, owner),
        }
    }

    /// Continues a walk over pageblocks that the last step left unfinished; see
    /// [`crate::compact::CompactRun::walk_on`].
    pub fn walk_on(&mut self, m: &mut Memory, budget: u64, next: impl FnMut(Passed) -> Option<u64>) {
        if let SlowPathStage::FirstCompact(c) | SlowPathStage::Compact(c) = &mut self.state {
            c.walk_on(m, budget, next);
        }
    }

    fn entry<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> AllocStep {
        match m.shared.profile.slow_path.attempts {
            Attempts::AsyncThenSync => self.enter_async_then_sync(m, owner),
            Attempts::CompactReclaimCompact => self.begin_compact_reclaim_compact(m, owner),
            Attempts::CompactThenLoop => self.enter_with_compaction(m, owner),
            Attempts::OneLoop => self.enter_loop(),
        }
    }

    /// Looks at the free lists with these rights, and goes on by what it finds.
    fn look<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, flags: AllocFlags, then: Then) -> AllocStep {
        if m.reclaims_on_the_way(&self.request)
            && let Some(preferred) = m.preferred_zone(&self.request)
        {
            self.state = SlowPathStage::Look(Box::new(Look::new(&self.request, preferred, flags, then)));
            return Step::Working;
        }
        let page = m.get_page_from_freelist(&self.request, flags);
        self.looked(m, owner, then, page)
    }

    /// A look at the free lists has ended.
    fn looked<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, then: Then, page: Option<Pfn>) -> AllocStep {
        if let Then::CountAttempt { .. } = then {
            self.count_attempt(m, owner, page);
        }
        if let Some(pfn) = page {
            return Step::Done(Ok(pfn));
        }
        match then {
            Then::Enter => self.entry(m, owner),
            Then::FirstCompact => self.first_compact(m),
            Then::Reclaim => self.begin_reclaim(m, owner),
            Then::Drain { freed } => self.drain(m, owner, freed),
            Then::GoOn { freed } => self.without_page(m, owner, freed),
            Then::CountAttempt { first } => self.attempt_failed(m, first),
            Then::LookAgain { flags } => self.look(m, owner, flags, Then::Retry),
            Then::Retry => {
                offer_cpu(m, owner);
                self.state = SlowPathStage::Retry;
                Step::Working
            }
        }
    }

    /// Begins a round: wakes kswapd, tries the free lists, reclaims; compaction follows.
    fn retry<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> AllocStep {
        self.rounds = self.rounds.saturating_add(1);
        match m.shared.profile.slow_path.attempts {
            Attempts::AsyncThenSync => return self.begin_async_then_sync(m, owner),
            Attempts::CompactReclaimCompact => return self.begin_compact_reclaim_compact(m, owner),
            Attempts::CompactThenLoop | Attempts::OneLoop => {}
        }
        self.wake_all_kswapds(m, owner);
        if m.shared.profile.slow_path.attempts != Attempts::OneLoop {
            self.leave_nodes(m);
        }
        self.look(m, owner, self.flags, Then::Reclaim)
    }

    /// The round's look at the free lists has found nothing.
    fn begin_reclaim<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> AllocStep {
        if !self.can_direct_reclaim() {
            return match m.shared.profile.slow_path.attempts {
                Attempts::OneLoop => self.without_reclaim(m),
                _ => Step::Done(Err(AllocFailure::Failed)),
            };
        }
        if self.compact_first {
            return self.reclaimed(m, owner, 0);
        }
        offer_cpu(m, owner);
        // Reclaims for a whole pageblock if compaction will make one.
        let order = compact_order(&self.request, self.flags, &m.shared.profile);
        self.reclaim(m, owner, DirectReclaim::new(self.request, order))
    }

    /// Lets an urgent request go to nodes that no policy has bound it to.
    fn leave_nodes(&mut self, m: &Memory) {
        if m.shared.profile.slow_path.atomic_leaves_nodes && is_urgent(&self.request, m) {
            self.request = self.request.anywhere();
        }
    }

    /// Advances reclaim by one step.
    fn reclaim<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, mut reclaim: DirectReclaim) -> AllocStep {
        let step = reclaim.step(m, owner);
        if let Step::Done(freed) = step {
            return self.reclaimed(m, owner, freed);
        }
        self.state = SlowPathStage::Reclaim(reclaim);
        step.map(|_| unreachable!("it is not done"))
    }

    /// Reclaim has ended, or was left out.
    fn reclaimed<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, freed: u64) -> AllocStep {
        self.progress = freed > 0;
        match self.progress {
            true => self.look(m, owner, self.flags, Then::Drain { freed }),
            false => self.without_page(m, owner, freed),
        }
    }

    /// Reclaim has given no page.
    fn without_page<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, freed: u64) -> AllocStep {
        match m.shared.profile.slow_path.attempts {
            Attempts::AsyncThenSync => return self.reclaimed_in_round(m, owner, freed),
            Attempts::CompactReclaimCompact => return self.after_reclaim(m, owner, freed),
            Attempts::CompactThenLoop | Attempts::OneLoop => {}
        }
        self.state = if self.compacts(m) {
            SlowPathStage::Compact(self.direct_compact(m, self.priority))
        } else {
            SlowPathStage::Decide
        };
        Step::Working
    }

    /// After reclaim made progress but gave no page: releases a highatomic pageblock and drains the
    /// per-CPU lists, which may hold one.
    fn drain<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, freed: u64) -> AllocStep {
        self.unreserve_highatomic(m, false);
        // The kernel drains every zone, whichever ones the request may use.
        for zone in 0..m.zones.len() {
            m.drain_all(ZoneId::new(zone), self.request.cpu);
        }
        self.look(m, owner, self.flags, Then::GoOn { freed })
    }

    /// Decides whether to retry or to give up.
    fn decide<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> AllocStep {
        let costly = self.request.order.is_costly();
        if self.request.gfp.has(Gfp::NORETRY)
            || costly && !(self.can_compact() && self.request.gfp.has(Gfp::RETRY_MAYFAIL))
        {
            return self.give_up(m, owner, AllocFailure::Failed);
        }
        if self.should_reclaim_retry(m, owner)
            || self.progress && self.may_compact_again(m) && self.should_compact_retry(m)
        {
            self.state = SlowPathStage::Retry;
            return Step::Working;
        }
        if self.flags.any(AllocFlags::NOFRAGMENT) {
            // In defrag_mode, better a mixed pageblock than none.
            if self.is_for_pageblocks(m) {
                (self.no_progress_loops, self.compaction_retries) = (0, 0);
            }
            self.flags = match m.shared.profile.slow_path.breaks_up_at_last {
                true => self.flags.without(AllocFlags::NOFRAGMENT),
                false => AllocFlags::mark(Wmark::Min).with(AllocFlags::NOFRAGMENT),
            };
            self.state = SlowPathStage::Retry;
            return Step::Working;
        }
        if costly || self.request.gfp.has(Gfp::RETRY_MAYFAIL) || self.request.gfp.has(Gfp::THISNODE) {
            return self.give_up(m, owner, AllocFailure::Failed);
        }
        self.give_up(m, owner, AllocFailure::OutOfMemory)
    }

    /// Gives up. A request with `__GFP_NOFAIL` tries once more with part of the reserves, and goes
    /// on.
    fn give_up<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, why: AllocFailure) -> AllocStep {
        if !self.request.gfp.has(Gfp::NOFAIL) {
            return Step::Done(Err(why));
        }
        let reserve = match m.shared.profile.watermark.reserves {
            Reserves::HighWaitless | Reserves::HighHarder => AllocFlags::NON_BLOCK,
            Reserves::MinReserveNonBlock => AllocFlags::MIN_RESERVE,
        };
        let flags = AllocFlags::mark(Wmark::Min).with(reserve);
        // A second look finds no more than the first, unless that reclaims on its way.
        let again = m.reclaims_on_the_way(&self.request);
        self.look(m, owner, flags, if again { Then::LookAgain { flags } } else { Then::Retry })
    }

    fn wake_all_kswapds<O: Owner>(&self, m: &mut Memory, owner: &mut O) {
        if !self.flags.any(AllocFlags::KSWAPD) {
            return;
        }
        let for_pageblocks = m.shared.tunables.defrag_mode && m.shared.profile.slow_path.asks_for_pageblocks;
        let order = if for_pageblocks { self.request.order.max(PAGEBLOCK_ORDER) } else { self.request.order };
        // A node's zones are adjacent in the zonelist; its kswapd is woken once, for the first of
        // them.
        let (mut at, mut asked) = (0, None);
        let per_zone = m.shared.profile.lru.lists_per_zone;
        let preferred = m.preferred_zone(&self.request).map(|zone| m.zones[zone].kind);
        let highest = preferred.filter(|_| per_zone).unwrap_or(self.request.gfp.highest_zone());
        while let Some(zone) = m.next_zone(&self.request, &mut at) {
            let node = Some(m.zones[zone].node);
            if asked != node || per_zone {
                asked = node;
                m.wakeup_kswapd(zone, self.request.gfp, order, highest);
                if owner.is_awaited(m) {
                    owner.turn(m, Turn::Woken);
                }
            }
        }
    }

    fn try_freelist(&self, m: &mut Memory) -> Option<Pfn> {
        m.get_page_from_freelist(&self.request, self.flags)
    }

    fn direct_compact(&self, m: &mut Memory, priority: CompactPriority) -> DirectCompact {
        self.count_stall(m, true);
        DirectCompact::new(m, self.request, self.flags, priority)
    }

    /// Counts a `compact_stall` where the profile does: at the entry or when it has run.
    fn count_stall(&self, m: &mut Memory, at_entry: bool) {
        if (m.shared.profile.slow_path.compact_stall == CompactStall::AtEntry) == at_entry {
            m.shared.vmstat.add(VmEvent::CompactStall, 1);
        }
    }

    /// Whether the last compaction counts as an attempt.
    fn counts_attempt(&self, m: &Memory) -> bool {
        match m.shared.profile.slow_path.compact_stall {
            CompactStall::AtEntry | CompactStall::Always => true,
            CompactStall::UnlessSkipped => self.compact_result != CompactResult::Skipped,
            CompactStall::UnlessSkippedOrDeferred => {
                !matches!(self.compact_result, CompactResult::Skipped | CompactResult::Deferred)
            }
        }
    }

    /// After direct compaction: takes the captured block or one from the free lists, and counts the
    /// attempt. `first` if it was the compaction before the first reclaim.
    fn attempt_made<O: Owner>(
        &mut self,
        m: &mut Memory,
        owner: &mut O,
        captured: Option<Pfn>,
        first: bool,
    ) -> AllocStep {
        let counts = self.counts_attempt(m);
        if !counts {
            return self.attempt_failed(m, first);
        }
        self.count_stall(m, false);
        let Some(pfn) = captured else { return self.look(m, owner, self.flags, Then::CountAttempt { first }) };
        m.tag_alloc(pfn, &self.request);
        self.count_attempt(m, owner, captured);
        Step::Done(Ok(pfn))
    }

    /// Direct compaction has given no page.
    fn attempt_failed(&mut self, m: &Memory, first: bool) -> AllocStep {
        match () {
            () if first => self.first_compact_failed(m),
            () if self.compact_first => self.first_round_done(m),
            () => {
                self.state = SlowPathStage::Decide;
                Step::Working
            }
        }
    }

    /// The same for kernels up to 4.7, whose looks at the free lists take no steps.
    fn compacted<O: Owner>(&self, m: &mut Memory, owner: &mut O, captured: Option<Pfn>) -> Option<Pfn> {
        if !self.counts_attempt(m) {
            return None;
        }
        self.count_stall(m, false);
        if let Some(pfn) = captured {
            m.tag_alloc(pfn, &self.request);
        }
        let page = captured.or_else(|| self.try_freelist(m));
        self.count_attempt(m, owner, page);
        page
    }

    /// Counts an attempt by the block that it gave.
    fn count_attempt<O: Owner>(&self, m: &mut Memory, owner: &mut O, page: Option<Pfn>) {
        match page {
            Some(pfn) => {
                let made = compact_order(&self.request, self.flags, &m.shared.profile);
                let zone = m.blocks.zone_of(pfn);
                let mut locked = m.locked(zone, self.request.cpu);
                locked.zone.compaction.blockskip_flush = false;
                locked.compaction_defer_reset(made, true);
                m.shared.vmstat.add(VmEvent::CompactSuccess, 1);
            }
            None => {
                m.shared.vmstat.add(VmEvent::CompactFail, 1);
                offer_cpu(m, owner);
            }
        }
    }

    /// Releases one pageblock of the highatomic reserve, in the first zone where that frees a page.
    fn unreserve_highatomic(&self, m: &mut Memory, force: bool) -> bool {
        let t = self.request.gfp.migratetype();
        let mut at = 0;
        while let Some(zone) = m.next_zone(&self.request, &mut at) {
            if m.locked(zone, self.request.cpu).unreserve_highatomic(t, force) {
                return true;
            }
        }
        false
    }
}

/// A rescheduling point: offers the CPU to a task that waits for it.
fn offer_cpu<O: Owner>(m: &mut Memory, owner: &mut O) {
    if owner.is_awaited(m) {
        owner.turn(m, Turn::Offered);
    }
}

/// Whether a request is atomic: it may not wait, and says so in the words of its time.
fn is_urgent(r: &Request, m: &Memory) -> bool {
    let marked = match m.shared.profile.watermark.reserves {
        Reserves::HighWaitless | Reserves::MinReserveNonBlock => Gfp::HIGH,
        Reserves::HighHarder => Gfp::ATOMIC_MARK,
    };
    r.gfp.has(marked) && !r.gfp.has(Gfp::DIRECT_RECLAIM)
}

/// The `alloc_flags` of the slow path (§3.1).
fn slow_flags(r: &Request, m: &Memory) -> AllocFlags {
    let rules = m.shared.profile.watermark.reserves;
    let mut flags = AllocFlags::mark(Wmark::Min);
    if r.gfp.has(Gfp::KSWAPD_RECLAIM) {
        flags = flags.with(AllocFlags::KSWAPD);
    }
    if r.gfp.has(Gfp::HIGH) {
        flags = flags.with(AllocFlags::MIN_RESERVE);
    }
    // A request that may reclaim is not atomic, whatever it says.
    if r.gfp.has(Gfp::ATOMIC_MARK) && !r.gfp.has(Gfp::DIRECT_RECLAIM) {
        flags = flags.with(AllocFlags::ATOMIC_MARK);
    }
    let (non_block, highatomic) = match rules {
        // The reserve of that time is for all.
        Reserves::HighWaitless => (true, false),
        Reserves::HighHarder => (r.gfp.has(Gfp::ATOMIC_MARK), true),
        Reserves::MinReserveNonBlock => (true, r.gfp.has(Gfp::HIGH)),
    };
    if !r.gfp.has(Gfp::DIRECT_RECLAIM) && !r.gfp.has(Gfp::NOMEMALLOC) && non_block {
        flags = flags.with(AllocFlags::NON_BLOCK);
        if r.order > Order::ZERO && highatomic {
            flags = flags.with(AllocFlags::HIGHATOMIC);
        }
    }
    if m.shared.tunables.defrag_mode {
        flags = flags.with(AllocFlags::NOFRAGMENT);
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Listen};
    use crate::testing::{AllMove, linux, machine_with, with_single_pages};
    use crate::types::{CpuId, NodeId};
    use alloc::vec::Vec;

    /// Names of what a failing request tries, from its events.
    fn tries(profile: &str, gfp: Gfp, order: u8) -> Vec<&'static str> {
        let mut m = with_single_pages(16, usize::from(order > 0) * 2, linux(profile));
        m.trace().listen(Listen::COMPACTION.with(Listen::VMSCAN));
        let request = Request::new(CpuId::new(0), NodeId::default(), gfp, Order::new(order));
        assert!(AllocSlow::new(&m, request).finish(&mut m, &mut AllMove).is_err());
        let name = |event: Event| match event {
            Event::TryToCompactPages { .. } => Some("compact"),
            Event::DirectReclaimBegin { .. } => Some("reclaim"),
            _ => None,
        };
        m.trace().take().into_iter().filter_map(name).collect()
    }

    #[test]
    fn up_to_4_7_requests_of_any_order_compact_reclaim_and_compact() {
        let movable = Gfp::HIGHUSER_MOVABLE | Gfp::NORETRY;
        assert_eq!(tries("4.6", movable, 2), ["compact", "reclaim", "compact"]);
        assert_eq!(tries("5.6", movable, 2), ["reclaim", "compact"], "later small movable ones reclaim first");
        assert_eq!(tries("4.6", movable, 0), ["reclaim"]);
    }

    #[test]
    fn since_5_5_a_costly_request_that_gives_up_easily_does_where_too_little_is_free_to_compact() {
        let huge = Gfp::HIGHUSER_MOVABLE | Gfp::NORETRY;
        assert_eq!(tries("4.20-rc3", huge, 9), ["compact", "reclaim", "compact"]);
        assert_eq!(tries("5.6", huge, 9), ["compact"]);
    }

    #[test]
    fn up_to_4_8_who_may_not_enter_a_file_system_does_not_compact() {
        let bound = (Gfp::HIGHUSER_MOVABLE | Gfp::NORETRY).without(Gfp::FS);
        assert_eq!(
            (tries("4.6", bound, 2), tries("5.6", bound, 2)),
            (["reclaim"].into(), ["reclaim", "compact"].into())
        );
    }

    #[test]
    fn up_to_4_5_a_request_bound_to_a_node_that_may_not_reclaim_fails_at_once() {
        let got = |profile: &str| {
            let mut m = machine_with(16, linux(profile));
            let zone = &mut m.zones[ZoneId::new(0)];
            zone.watermarks.low = zone.managed;
            let request =
                Request::new(CpuId::new(0), NodeId::default(), Gfp::THISNODE | Gfp::KSWAPD_RECLAIM, Order::ZERO);
            let got = AllocSlow::new(&m, request).finish(&mut m, &mut AllMove).is_ok();
            (got, m.nodes[NodeId::default()].kswapd.asked().1.is_some())
        };
        assert_eq!(got("4.4-kcompactd"), (false, false));
        assert!(got("4.6").0, "above the min mark there is enough");
    }

    /// A machine in defrag_mode, of which only single pages in movable pageblocks are free.
    fn without_pageblocks(profile: &str) -> Memory {
        let mut m = with_single_pages(16, 2, linux(profile));
        m.shared.tunables.defrag_mode = true;
        m
    }

    #[test]
    fn since_6_15_kswapd_is_asked_for_a_pageblock_in_defrag_mode() {
        for (profile, asks) in [("6.14", 0), ("6.15-posted", 9)] {
            let mut m = without_pageblocks(profile);
            let zone = &mut m.zones[ZoneId::new(0)];
            zone.watermarks.high = zone.managed;
            let request = Request::new(CpuId::new(0), NodeId::default(), Gfp::KSWAPD_RECLAIM, Order::ZERO);
            let _ = AllocSlow::new(&m, request).finish(&mut m, &mut AllMove);
            assert_eq!(m.nodes[NodeId::default()].kswapd.asked().0, Order::new(asks), "{profile}");
        }
    }

    #[test]
    fn up_to_6_2_only_a_request_marked_atomic_tries_harder() {
        let rights = |profile: &str, gfp: Gfp| {
            let request = Request::new(CpuId::new(0), NodeId::default(), gfp, Order::new(3));
            let flags = slow_flags(&request, &machine_with(16, linux(profile)));
            (flags.any(AllocFlags::NON_BLOCK), flags.any(AllocFlags::HIGHATOMIC))
        };
        // Requests that cannot wait: unmarked, `__GFP_HIGH`, marked atomic, and both.
        let requests = [Gfp::NONE, Gfp::HIGH, Gfp::ATOMIC_MARK, Gfp::ATOMIC];
        let none = (false, false);
        assert_eq!(requests.map(|gfp| rights("3.13", gfp)), [(true, false); 4], "before 4.4 all that cannot wait did");
        assert_eq!(requests.map(|gfp| rights("5.10", gfp)), [none, none, (true, true), (true, true)]);
        assert_eq!(requests.map(|gfp| rights("6.1", gfp)), [(true, false), (true, true), (true, false), (true, true)]);
    }
}
