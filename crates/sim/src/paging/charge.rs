//! Charging an allocated page to a memory control group: with reclaim where a limit is in the way,
//! and with the OOM killer where that finds nothing.
//!
//! A page that cannot be charged is given back. The charge itself takes no time here, the reclaim
//! does. What a task has charged above `memory.high` is worked off before it returns to its
//! program ([`crate::task::process`]). Source: kernel-behaviour §4.11.1, `try_charge_memcg` of
//! 6.12.

use crate::base::context::Context;
use crate::base::timer::JIFFY_NS;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::paging::oom::Blame;
use kontig_mm::{AllocFailure, Charge, ChargeFailure, Gfp, GroupId, Order, OverHigh, Pfn, Step};

/// The charge of one block in progress.
#[derive(Clone)]
pub(crate) struct PageCharge {
    pfn: Pfn,
    order: Order,
    group: GroupId,
    charge: Charge,
    /// The beginning of its last step.
    stepped: u64,
}

impl PageCharge {
    /// A charge by a request with these flags.
    pub(crate) fn new(c: &Context, (pfn, order): (Pfn, Order), group: GroupId, gfp: Gfp) -> PageCharge {
        let charge = Charge::new(c.cpu, group, u64::from(order.pages()), gfp);
        PageCharge { pfn, order, group, charge, stepped: c.now }
    }

    /// A step; done with the charged block. If that fails, the block is given back.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Result<Pfn, AllocFailure>, Wait> {
        k.note_held_locks(c.now, std::mem::replace(&mut self.stepped, c.now));
        let step = self.charge.step(&mut k.mem, &mut k.pages);
        (k.pages.held, k.pages.wanted) = Default::default();
        k.charge(&mut c.now);
        let failure = match step {
            Step::Working => return k.wait_for_room(Step::Working),
            Step::Wait(wait) => return Step::Wait(k.wait_for(wait)),
            Step::Done(Ok(over_high)) => {
                k.mem.commit_charge(self.pfn, self.group);
                c.note_over_high(over_high);
                return Step::Done(Ok(self.pfn));
            }
            Step::Done(Err(ChargeFailure::OverLimit)) => AllocFailure::Failed,
            Step::Done(Err(ChargeFailure::OutOfMemory(over))) => match k.out_of_memory_in(c, over) {
                Blame::Another => {
                    self.charge.try_again();
                    return Step::Wait(Wait::Time(JIFFY_NS));
                }
                Blame::Caller => AllocFailure::Failed,
                Blame::Nobody => AllocFailure::OutOfMemory,
            },
        };
        k.mem.free(c.cpu, self.pfn, self.order);
        k.charge(&mut c.now);
        Step::Done(Err(failure))
    }
}

impl Kernel {
    /// Charges an allocated block to a group if no limit is in the way; whether it did.
    #[cold]
    #[inline(never)]
    pub(crate) fn charges_at_once(&mut self, c: &mut Context, (pfn, order): (Pfn, Order), group: GroupId) -> bool {
        let Some(over_high) = self.mem.charge_if_room(c.cpu, group, u64::from(order.pages())) else { return false };
        self.mem.commit_charge(pfn, group);
        c.note_over_high(over_high);
        true
    }

    /// A step of the work of a task that has charged above `memory.high`.
    pub(crate) fn work_off_high(&mut self, c: &mut Context, work: &mut OverHigh) -> Step<(), Wait> {
        let step = work.step(&mut self.mem, &mut self.pages);
        self.charge(&mut c.now);
        match step {
            Step::Working => self.wait_for_room(Step::Working),
            Step::Wait(wait) => Step::Wait(self.wait_for(wait)),
            Step::Done(()) => Step::Done(()),
        }
    }
}
