//! Tasks: what has turns on a CPU, and how it rests between them.

mod ahead;
pub(crate) mod process;

use crate::base::context::Context;
use crate::base::error::SimError;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::task::process::Process;
use crate::thread::KernelThread;
use crate::thread::flusher::FlusherThread;
use crate::thread::kcompactd::KcompactdThread;
use crate::thread::khugepaged::KhugepagedThread;
use crate::thread::kswapd::KswapdThread;
use crate::thread::xfs::{CheckpointThread, PushThread};
use kontig_mm::{Daemon, Step};
use std::convert::Infallible;

/// A task. When it has its next turn, and what its time went into, is the scheduler's to know.
#[derive(Clone)]
pub(crate) struct Task {
    pub(crate) body: Body,
    pub(crate) state: TaskState,
}

/// What a task does between two turns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum TaskState {
    Runnable,
    /// Runnable, because the time it waited for has come before anybody woke it.
    TimedOut,
    /// Sleeps until a time, or until it is woken by name.
    Resting,
    /// Waits in a queue.
    Queued,
    Done,
}

/// What a task is.
#[derive(Clone)]
pub(crate) enum Body {
    Kswapd(KswapdThread),
    Kcompactd(KcompactdThread),
    Flusher(FlusherThread),
    XfsCheckpoint(CheckpointThread),
    XfsPush(PushThread),
    Khugepaged(KhugepagedThread),
    Process(Box<Process>),
    /// Steps given by a test, and the daemon the task stands for.
    #[cfg(test)]
    Steps(Option<Daemon>, Steps),
}

/// What a test's task does in its turns.
#[cfg(test)]
pub(crate) type Steps = std::rc::Rc<std::cell::RefCell<dyn FnMut(&mut Kernel, &mut Context) -> Step<(), Wait>>>;

impl Body {
    /// The thread of the kernel it is, if it is one.
    pub(crate) fn kernel_thread(&self) -> Option<KernelThread> {
        match self {
            Body::Kswapd(thread) => Some(KernelThread::Daemon(thread.daemon())),
            Body::Kcompactd(thread) => Some(KernelThread::Daemon(thread.daemon())),
            Body::Flusher(thread) => Some(KernelThread::Flusher { disk: thread.disk() }),
            Body::XfsCheckpoint(thread) => Some(KernelThread::XfsCheckpoint { disk: thread.disk() }),
            Body::XfsPush(thread) => Some(KernelThread::XfsPush { disk: thread.disk() }),
            Body::Khugepaged(_) => Some(KernelThread::Khugepaged),
            Body::Process(_) => None,
            #[cfg(test)]
            Body::Steps(daemon, _) => daemon.map(KernelThread::Daemon),
        }
    }

    /// The daemon it is, if it is one.
    pub(crate) fn daemon(&self) -> Option<Daemon> {
        match self.kernel_thread()? {
            KernelThread::Daemon(daemon) => Some(daemon),
            _ => None,
        }
    }

    /// Another task has taken its CPU.
    pub(crate) fn leave_cpu(&mut self, k: &mut Kernel) {
        if let Body::Process(process) = self {
            process.leave_cpu(k);
        }
    }

    /// Whether it is a process that can end where it is.
    pub(crate) fn may_end(&self) -> bool {
        matches!(self, Body::Process(process) if process.may_end())
    }

    /// A turn.
    pub(crate) fn turn(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<(), Wait>, SimError> {
        match self {
            Body::Kswapd(thread) => Ok(never_done(thread.turn(k, c))),
            Body::Kcompactd(thread) => Ok(never_done(thread.turn(k, c)).map_wait(|wait| k.wait_for(wait))),
            Body::Flusher(thread) => Ok(thread.turn(k, c)),
            Body::XfsCheckpoint(thread) => Ok(thread.turn(k, c)),
            Body::XfsPush(thread) => Ok(thread.turn(k, c)),
            Body::Khugepaged(thread) => Ok(thread.turn(k, c)),
            Body::Process(process) => process.turn(k, c),
            #[cfg(test)]
            Body::Steps(_, steps) => Ok((steps.borrow_mut())(k, c)),
        }
    }
}

fn never_done<W>(step: Step<Infallible, W>) -> Step<(), W> {
    step.map(|never| match never {})
}
