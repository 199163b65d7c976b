//! Tasks: the bodies that take turns on a CPU, and their state between turns.

mod ahead;
pub(crate) mod process;

use crate::base::context::Context;
use crate::base::error::SimError;
use crate::base::traced::Caller;
use crate::base::wait::Wait;
use crate::device::Plug;
use crate::kernel::Kernel;
use crate::task::process::Process;
use crate::thread::KernelThread;
use crate::thread::flusher::FlusherThread;
use crate::thread::kcompactd::KcompactdThread;
use crate::thread::khugepaged::KhugepagedThread;
use crate::thread::kswapd::KswapdThread;
use crate::thread::slab::SlabThread;
use crate::thread::xfs::{CheckpointThread, PushThread};
use kontig_mm::{Daemon, Step};
use std::convert::Infallible;

/// A task. The scheduler knows when its next turn is and where its time went.
#[derive(Clone)]
pub(crate) struct Task {
    pub(crate) body: Body,
    pub(crate) state: TaskState,
    /// I/O that it has asked for and not submitted, while it is not on a CPU.
    pub(crate) plug: Plug,
    /// Its identity in traces.
    pub(crate) caller: Caller,
}

/// The state of a task between turns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum TaskState {
    Runnable,
    /// Runnable because its wait timed out.
    TimedOut,
    /// Sleeps until a time, or until it is woken by name.
    Resting,
    Queued,
    Done,
}

/// The kinds of tasks.
#[derive(Clone)]
pub(crate) enum Body {
    Kswapd(KswapdThread),
    Kcompactd(KcompactdThread),
    Flusher(FlusherThread),
    XfsCheckpoint(CheckpointThread),
    XfsPush(PushThread),
    Khugepaged(KhugepagedThread),
    SlabReaper(SlabThread),
    Process(Box<Process>),
    /// A test's steps, and the daemon that the task stands for.
    #[cfg(test)]
    Steps(Option<Daemon>, Steps),
}

/// The turns of a test's task.
#[cfg(test)]
pub(crate) type Steps = std::rc::Rc<std::cell::RefCell<dyn FnMut(&mut Kernel, &mut Context) -> Step<(), Wait>>>;

impl Body {
    /// Its kernel thread, if it is one.
    pub(crate) fn kernel_thread(&self) -> Option<KernelThread> {
        match self {
            Body::Kswapd(thread) => Some(KernelThread::Daemon(thread.daemon())),
            Body::Kcompactd(thread) => Some(KernelThread::Daemon(thread.daemon())),
            Body::Flusher(thread) => Some(KernelThread::Flusher { disk: thread.disk() }),
            Body::XfsCheckpoint(thread) => Some(KernelThread::XfsCheckpoint { disk: thread.disk() }),
            Body::XfsPush(thread) => Some(KernelThread::XfsPush { disk: thread.disk() }),
            Body::Khugepaged(_) => Some(KernelThread::Khugepaged),
            Body::SlabReaper(_) => Some(KernelThread::SlabReaper),
            Body::Process(_) => None,
            #[cfg(test)]
            Body::Steps(daemon, _) => daemon.map(KernelThread::Daemon),
        }
    }

    /// Its daemon, if it is one.
    pub(crate) fn daemon(&self) -> Option<Daemon> {
        match self.kernel_thread()? {
            KernelThread::Daemon(daemon) => Some(daemon),
            _ => None,
        }
    }

    /// Tells the task that another has taken its CPU.
    pub(crate) fn leave_cpu(&mut self, k: &mut Kernel) {
        if let Body::Process(process) = self {
            process.leave_cpu(k);
        }
    }

    /// Whether it is a process that can end at this point.
    pub(crate) fn may_end(&self) -> bool {
        matches!(self, Body::Process(process) if process.may_end())
    }

    pub(crate) fn turn(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<(), Wait>, SimError> {
        match self {
            Body::Kswapd(thread) => Ok(never_done(thread.turn(k, c))),
            Body::Kcompactd(thread) => Ok(never_done(thread.turn(k, c)).map_wait(|wait| k.wait_for(wait))),
            Body::Flusher(thread) => Ok(thread.turn(k, c)),
            Body::XfsCheckpoint(thread) => Ok(thread.turn(k, c)),
            Body::XfsPush(thread) => Ok(thread.turn(k, c)),
            Body::Khugepaged(thread) => Ok(thread.turn(k, c)),
            Body::SlabReaper(thread) => Ok(thread.turn(k, c)),
            Body::Process(process) => process.turn(k, c),
            #[cfg(test)]
            Body::Steps(_, steps) => Ok((steps.borrow_mut())(k, c)),
        }
    }
}

fn never_done<W>(step: Step<Infallible, W>) -> Step<(), W> {
    step.map(|never| match never {})
}
