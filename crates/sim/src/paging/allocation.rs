//! An allocation of the kernel's own, which may take the slow path: a value with a step.
//!
//! Where memory has run out it tries again once somebody has been killed. It fails if the asker itself is to go. Who may not
//! enter a file system kills nobody, as others could free memory that it may not (`out_of_memory`). A kernel tries again at
//! once, for ever; here it does after a tick, and has somebody killed after a second of it.
//!
//! A request of 7.2 that is not movable tries for ever, in defrag_mode, where no pageblock can be emptied: reclaim calls it progress
//! that compaction could begin. So does any that finds nothing in 6.15 as it was posted. The kernel hangs there; the machine stops and
//! says so.

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::error::SimError;
use crate::base::id::At;
use crate::base::timer::JIFFY_NS;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::paging::oom::Blame;
use kontig_mm::{AllocFailure, AllocSlow, Gfp, Order, Pfn, Request, Step, Work};

/// An allocation in progress.
#[derive(Clone)]
pub(crate) struct Allocation {
    gfp: Gfp,
    order: Order,
    /// What it is for, if that is a page of a process's.
    at: Option<At>,
    /// Once the fast path has failed.
    slow: Option<Slow>,
    /// Ticks that it has waited because it may have nobody killed.
    spared: u32,
}

/// Ticks after which a request that may not enter a file system has somebody killed all the same.
const MOST_SPARED: u32 = 250;

/// Whether nobody is killed for a request yet that has waited so many ticks. Who was killed itself is to end.
fn spares_all(k: &Kernel, c: &Context, gfp: Gfp, waited: u32) -> bool {
    !gfp.has(Gfp::FS) && waited < MOST_SPARED && !c.process.is_some_and(|asker| k.family.is_killed(asker))
}

impl Allocation {
    pub(crate) fn new(gfp: Gfp, order: Order) -> Allocation {
        Allocation { gfp, order, at: None, slow: None, spared: 0 }
    }

    /// The same, for a page of a process's.
    pub(crate) fn at(self, at: At) -> Allocation {
        Allocation { at: Some(at), ..self }
    }

    /// A step; the block, or that there is none. When it is done the same value allocates the next block.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Result<Pfn, AllocFailure>, Wait> {
        let Some(slow) = &mut self.slow else {
            let request = match self.at {
                Some(at) => k.request_at(c, at, self.gfp, self.order),
                None => k.request(c, self.gfp, self.order),
            };
            let got = k.mem.alloc(request);
            c.now += ns(k.costs.kernel_alloc);
            k.charge(&mut c.now);
            return match got {
                Ok(pfn) => Step::Done(Ok(pfn)),
                Err(_) => {
                    self.slow = Some(Slow::new(k, c, request));
                    Step::Working
                }
            };
        };
        match slow.step(k, c) {
            Step::Done(Err(AllocFailure::OutOfMemory)) if spares_all(k, c, self.gfp, self.spared) => {
                self.spared += 1;
                self.slow = None;
                Step::Wait(Wait::Time(JIFFY_NS))
            }
            Step::Done(Err(AllocFailure::OutOfMemory)) => match k.out_of_memory(c, slow.request().nodes()) {
                Blame::Another => {
                    (self.slow, self.spared) = (None, 0);
                    Step::Wait(Wait::Time(JIFFY_NS))
                }
                Blame::Asker => Step::Done(Err(AllocFailure::Failed)),
                Blame::Nobody => Step::Done(Err(AllocFailure::OutOfMemory)),
            },
            Step::Done(got) => {
                (self.slow, self.spared) = (None, 0);
                Step::Done(got)
            }
            step => step,
        }
    }
}

/// A request has no end if it has gone so many rounds, and they took so long. What others do in that time could have helped it, and a
/// round of a real kernel takes ten times as long as a round is charged with here.
const ENDLESS_ROUNDS: u32 = 1_000_000;
const ENDLESS_NS: u64 = 1_000_000_000;

/// Rounds without any work that the engine counts take no time: it does not count the first zone of a walk, whatever comes of the walk. More of them
/// than this in a row, of a request that may hope for ever, would stop the machine's clock. No recorded or published run has as many: their results are
/// the same without it.
const TIMELESS_ROUNDS: u32 = 1_000;

/// A request on the slow path, and when it began.
#[derive(Clone)]
pub(crate) struct Slow {
    path: Box<AllocSlow>,
    began: u64,
    /// The rounds it has gone, when the last of them ended, and how many before that in a row took no time.
    rounds: (u32, u64),
    timeless: u32,
}

impl Slow {
    pub(crate) fn new(k: &Kernel, c: &Context, request: Request) -> Slow {
        Slow { path: Box::new(AllocSlow::new(&k.mem, request)), began: c.now, rounds: (0, c.now), timeless: 0 }
    }

    /// What is asked for.
    pub(crate) fn request(&self) -> &Request {
        self.path.request()
    }

    /// A step. Where the request has no end the machine stops.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Result<Pfn, AllocFailure>, Wait> {
        let budget = k.budget(c);
        let step = self.path.step(&mut k.mem, &mut k.pages, budget);
        k.charge(&mut c.now);
        if self.path.rounds() > self.rounds.0 {
            self.timeless = if c.now == self.rounds.1 { self.timeless + 1 } else { 0 };
            if self.timeless > TIMELESS_ROUNDS {
                // Even a round in which there was nothing to reclaim has gone over the zones.
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
