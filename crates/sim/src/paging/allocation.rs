//! An allocation that may take the slow path, as a value with a step.
//!
//! When memory runs out, it retries after a process has been killed, and fails if the caller itself
//! is the victim. A request without `__GFP_FS` kills nobody, because others could free memory that
//! it may not (`out_of_memory`). The kernel retries such a request at once and for ever; here it
//! retries after a tick, and kills after a second of retries.
//!
//! A block that a memory control group pays for is charged once it is allocated
//! ([`crate::paging::charge`]), and given back where that fails.
//!
//! In defrag_mode, an unmovable request on 7.2 loops for ever if no pageblock can be emptied:
//! reclaim reports progress because compaction could begin. On 6.15 as posted, so does any request
//! that finds nothing. The kernel hangs there; the machine stops with an error.

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::error::SimError;
use crate::base::id::At;
use crate::base::timer::JIFFY_NS;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::kernel::Kernel;
use crate::paging::charge::PageCharge;
use crate::paging::oom::Blame;
use crate::paging::purpose::Purpose;
use kontig_mm::{AllocFailure, AllocSlow, Gfp, GroupId, Order, Pfn, Request, Step, Work};

#[derive(Clone)]
pub(crate) struct Allocation {
    wanted: Wanted,
    effort: Option<Effort>,
    /// The group that pays for the block, with the flags of the charge; the root does not pay.
    pays: GroupId,
    charged_as: Gfp,
    /// Ticks waited because a request without `__GFP_FS` kills nobody.
    spared: u8,
    /// Whether the last failure is that of a charge.
    over_limit: bool,
}

/// The work of a block that the fast path has not got.
#[derive(Clone)]
enum Effort {
    Slow(Box<Slow>),
    /// The block is allocated, and a limit is in the way of its charge.
    Charge(Box<PageCharge>),
}

/// The block wanted and, for a page of a process, the place whose policy decides the node.
#[derive(Clone, Copy)]
enum Wanted {
    Block(Gfp, Order, Option<At>),
    Fault(Purpose, At),
}

impl Wanted {
    /// The request, under the policy in force now.
    fn request(self, k: &mut Kernel, c: &mut Context) -> Request {
        match self {
            Wanted::Block(gfp, order, None) => k.request(c, gfp, order),
            Wanted::Block(gfp, order, Some(at)) => k.request_at(c, at, gfp, order),
            Wanted::Fault(purpose, at) => k.fault_request(c, purpose, at),
        }
    }
}

/// Ticks after which a request without `__GFP_FS` kills a process all the same.
const MOST_SPARED: u8 = 250;

impl Allocation {
    pub(crate) fn new(gfp: Gfp, order: Order) -> Allocation {
        Allocation::of(Wanted::Block(gfp, order, None))
    }

    /// A page for this place in a process, allocated without a fault.
    pub(crate) fn at(gfp: Gfp, order: Order, at: At) -> Allocation {
        Allocation::of(Wanted::Block(gfp, order, Some(at)))
    }

    /// The allocation of a fault that has already tried the fast path.
    pub(crate) fn of_fault(k: &mut Kernel, c: &mut Context, purpose: Purpose, at: At) -> Allocation {
        let wanted = Wanted::Fault(purpose, at);
        let effort = Effort::Slow(Box::new(Slow::new(k, c, wanted)));
        Allocation::of(wanted).charged(k.charge_of_fault(c, purpose, at)).with(effort)
    }

    /// That of a fault which has allocated the block, and whose charge meets a limit.
    pub(crate) fn of_charge(k: &mut Kernel, c: &mut Context, purpose: Purpose, at: At, pfn: Pfn) -> Allocation {
        let allocation = Allocation::of(Wanted::Fault(purpose, at)).charged(k.charge_of_fault(c, purpose, at));
        let charge = allocation.begin_charge(c, pfn);
        allocation.with(charge)
    }

    fn of(wanted: Wanted) -> Allocation {
        Allocation { wanted, effort: None, pays: GroupId::ROOT, charged_as: Gfp::NONE, spared: 0, over_limit: false }
    }

    fn with(self, effort: Effort) -> Allocation {
        Allocation { effort: Some(effort), ..self }
    }

    fn charged(self, to: Option<(GroupId, Gfp)>) -> Allocation {
        match to {
            Some((group, gfp)) => self.charged_to(group, gfp),
            None => self,
        }
    }

    /// The same, charged to a memory control group by a request with these flags.
    pub(crate) fn charged_to(self, group: GroupId, gfp: Gfp) -> Allocation {
        Allocation { pays: group, charged_as: gfp, ..self }
    }

    /// Changes the group that the next block is charged to. It has no effect on one that is being
    /// charged already.
    pub(crate) fn pay(&mut self, group: GroupId, gfp: Gfp) {
        (self.pays, self.charged_as) = (group, gfp);
    }

    /// Whether the last failure is that of a charge.
    pub(crate) fn is_over_limit(&self) -> bool {
        self.over_limit
    }

    /// Steps towards the block. The error is [`AllocFailure::Failed`] also if the caller was
    /// killed. After `Done`, the same value allocates the next block.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Result<Pfn, AllocFailure>, Wait> {
        let got = match &mut self.effort {
            None => done!(self.at_once(k, c)),
            Some(effort) => match effort {
                Effort::Slow(slow) => {
                    let got = done!(slow.step(k, c));
                    let request = *slow.request();
                    self.effort = None;
                    if got == Err(AllocFailure::OutOfMemory) {
                        return self.out_of_memory(k, c, request);
                    }
                    self.spared = 0;
                    got
                }
                Effort::Charge(charge) => {
                    let got = done!(charge.step(k, c));
                    self.effort = None;
                    self.over_limit = got.is_err();
                    return Step::Done(got);
                }
            },
        };
        match got {
            Ok(pfn) if self.pays != GroupId::ROOT => self.charge(k, c, pfn),
            got => Step::Done(got),
        }
    }

    /// A step without more effort than the fast path has.
    #[inline(always)]
    fn at_once(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Result<Pfn, AllocFailure>, Wait> {
        let request = self.wanted.request(k, c);
        let got = k.mem.alloc(request);
        c.now += ns(k.costs.kernel_alloc);
        k.charge(&mut c.now);
        match got {
            Ok(pfn) => Step::Done(Ok(pfn)),
            Err(_) => {
                self.effort = Some(Effort::Slow(Box::new(Slow::of(k, c, request))));
                Step::Working
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn charge(&mut self, k: &mut Kernel, c: &mut Context, pfn: Pfn) -> Step<Result<Pfn, AllocFailure>, Wait> {
        if k.charges_at_once(c, (pfn, self.order()), self.pays) {
            return Step::Done(Ok(pfn));
        }
        self.effort = Some(self.begin_charge(c, pfn));
        Step::Working
    }

    fn begin_charge(&self, c: &Context, pfn: Pfn) -> Effort {
        Effort::Charge(Box::new(PageCharge::new(c, (pfn, self.order()), self.pays, self.charged_as)))
    }

    fn order(&self) -> Order {
        match self.wanted {
            Wanted::Block(_, order, _) => order,
            Wanted::Fault(purpose, _) => purpose.order(),
        }
    }

    /// Kills a process and retries after a tick, unless the caller is the victim or there is nobody
    /// to kill.
    fn out_of_memory(
        &mut self,
        k: &mut Kernel,
        c: &mut Context,
        request: Request,
    ) -> Step<Result<Pfn, AllocFailure>, Wait> {
        let is_killed = c.process.is_some_and(|caller| k.family.is_killed(caller));
        if !request.gfp.has(Gfp::FS) && self.spared < MOST_SPARED && !is_killed {
            self.spared += 1;
        } else {
            match k.out_of_memory(c, request.nodes()) {
                Blame::Another => self.spared = 0,
                Blame::Caller => return Step::Done(Err(AllocFailure::Failed)),
                Blame::Nobody => return Step::Done(Err(AllocFailure::OutOfMemory)),
            }
        }
        if let Wanted::Fault(..) = self.wanted {
            // It stays on the slow path, as the kernel's does (`goto retry`).
            self.effort = Some(Effort::Slow(Box::new(Slow::new(k, c, self.wanted))));
        }
        Step::Wait(Wait::Time(JIFFY_NS))
    }
}

/// A request counts as endless after this many rounds that took at least this long. In that time
/// other tasks could have freed memory for it, and a round of a real kernel takes ten times as long
/// as it is charged here.
const ENDLESS_ROUNDS: u32 = 1_000_000;
const ENDLESS_NS: u64 = 1_000_000_000;

/// The engine does not count the first zone of a walk, so a round that does nothing else takes no
/// time. A request that retries for ever would then stop the machine's clock, so after this many
/// such rounds in a row each one is charged. No recorded or published run has as many, so their
/// results do not depend on it.
const TIMELESS_ROUNDS: u32 = 1_000;

#[derive(Clone)]
struct Slow {
    path: AllocSlow,
    began: u64,
    /// Rounds so far, and when the last of them ended.
    rounds: (u32, u64),
    timeless: u32,
    /// The beginning of its last step.
    stepped: u64,
}

impl Slow {
    fn new(k: &mut Kernel, c: &mut Context, wanted: Wanted) -> Slow {
        let request = wanted.request(k, c);
        Slow::of(k, c, request)
    }

    fn of(k: &Kernel, c: &Context, request: Request) -> Slow {
        Slow { path: AllocSlow::new(&k.mem, request), began: c.now, rounds: (0, c.now), timeless: 0, stepped: c.now }
    }

    fn request(&self) -> &Request {
        self.path.request()
    }

    /// A step. An endless request stops the machine.
    fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Result<Pfn, AllocFailure>, Wait> {
        let budget = k.budget(c);
        k.note_held_locks(c.now, std::mem::replace(&mut self.stepped, c.now));
        let step = self.path.step(&mut k.mem, &mut k.pages, budget);
        (k.pages.held, k.pages.wanted) = Default::default();
        k.charge(&mut c.now);
        if self.path.rounds() > self.rounds.0 {
            self.timeless = if c.now == self.rounds.1 { self.timeless + 1 } else { 0 };
            if self.timeless > TIMELESS_ROUNDS {
                // Even a round with nothing to reclaim has walked the zones.
                c.now += k.costs.work_ns(&Work { zones_tried: 1, ..Work::default() });
            }
            self.rounds = (self.path.rounds(), c.now);
        }
        match step {
            Step::Working if self.path.rounds() >= ENDLESS_ROUNDS && c.now - self.began >= ENDLESS_NS => {
                let Request { order, gfp, .. } = *self.request();
                let (rounds, seconds) = (self.path.rounds(), (c.now - self.began) / 1_000_000_000);
                k.failed = Some(SimError::EndlessRequest { order, gfp, rounds, seconds });
                Step::Wait(Wait::Time(JIFFY_NS))
            }
            Step::Working => {
                k.walk_on(c, &mut self.path);
                k.wait_for_room(Step::Working)
            }
            Step::Wait(wait) => Step::Wait(k.wait_for(wait)),
            Step::Done(got) => Step::Done(got),
        }
    }
}
