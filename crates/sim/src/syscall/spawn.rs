//! `clone` of a thread, and `pthread_join`.

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::error::SimError;
use crate::base::id::ProcessId;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::kernel::Kernel;
use crate::paging::allocation::Allocation;
use crate::state::process::family::{THREAD_PAGES, stack};
use crate::state::process::threads::Joined;
use kontig_mm::{AllocFailure, Gfp, Order, Pfn, Step};
use kontig_program::{Op, Program, Thread, Value};

/// Creation of a thread.
#[derive(Clone)]
pub(crate) struct Spawn {
    process: ProcessId,
    thread: u32,
    /// The thread's program, until it is handed over.
    program: Option<Box<dyn Program>>,
    /// The block that is being taken.
    block: Option<Allocation>,
    blocks: Vec<(Pfn, Order)>,
}

impl Spawn {
    pub(crate) fn new(process: ProcessId, thread: u32, program: Box<dyn Program>) -> Spawn {
        Spawn { process, thread, program: Some(program), block: None, blocks: Vec::new() }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<Value, Wait>, SimError> {
        let (stack, of_stack) = stack(k.mem.profile());
        while self.blocks.len() < stack + THREAD_PAGES {
            let order = if self.blocks.len() < stack { of_stack } else { Order::ZERO };
            let block = self.block.get_or_insert_with(|| Allocation::new(Gfp::KERNEL, order));
            let taken = done!(block.step(k, c), Ok);
            self.block = None;
            match taken {
                Ok(pfn) => self.blocks.push((pfn, order)),
                Err(AllocFailure::Failed) => return Ok(self.give_up(k, c)),
                Err(AllocFailure::OutOfMemory) => {
                    return Err(SimError::OutOfMemory { what: "a block of the kernel, for a thread".to_string() });
                }
            }
        }
        if k.family.must_end(self.process, self.thread) {
            return Ok(self.give_up(k, c));
        }
        let program = self.program.take().expect("it is made once");
        let thread = k.family.add_thread((self.process, self.thread), program, std::mem::take(&mut self.blocks));
        c.now += ns(k.costs.fork);
        // Ends the turn, so that the thread gets its first one.
        c.horizon = c.now;
        Ok(Step::Done(Value::Thread(Thread::new(thread))))
    }

    /// The caller has been killed; create no thread.
    fn give_up(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Value, Wait> {
        for (pfn, order) in self.blocks.drain(..) {
            k.mem.free(c.cpu, pfn, order);
        }
        k.charge(&mut c.now);
        Step::Done(Value::Unit)
    }
}

/// A wait for the end of another thread.
#[derive(Clone)]
pub(crate) struct Join {
    process: ProcessId,
    thread: Thread,
}

impl Join {
    pub(crate) fn new(process: ProcessId, thread: Thread) -> Join {
        Join { process, thread }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel) -> Result<Step<Value, Wait>, SimError> {
        let Kernel { family, queues, .. } = k;
        match family.threads(self.process).join(self.thread.get(), || queues.add()) {
            Joined::Ended => Ok(Step::Done(Value::Joined(self.thread))),
            Joined::Wait(queue) => Ok(Step::Wait(Wait::Queue(queue))),
            Joined::Nobody => Err(SimError::NoSuchProcess { op: format!("{:?}", Op::Join(self.thread)) }),
        }
    }
}
