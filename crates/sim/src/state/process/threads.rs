//! The threads of a process: tasks with the same memory, files and children.
//!
//! The first thread's number is 0. One that has ended stays until it is joined; what it has run is given back then. A
//! process ends when the last of its threads does: `exit` in one, or a kill, has all others end as soon as they can.

use crate::base::context::TaskPolicy;
use crate::base::id::TaskId;
use crate::base::queue::QueueId;
use kontig_program::Program;

/// A thread.
#[derive(Clone, Default)]
struct Thread {
    /// `None` until it has one.
    task: Option<TaskId>,
    /// Another thread has ended the process, or runs another program in it.
    must_end: bool,
    ended: bool,
    policy: TaskPolicy,
    /// What it has run, once it has ended and until it is joined.
    program: Option<Box<dyn Program>>,
}

/// All threads of a process, by number.
#[derive(Clone, Default)]
pub(crate) struct Threads {
    threads: Vec<Thread>,
    /// Where each is waited for, once somebody has; they stay when the process is another.
    joiners: Vec<Option<QueueId>>,
    /// Where one waits until it is the only one.
    alone: Option<QueueId>,
}

/// What there is of a thread that is to be joined.
#[derive(Debug)]
pub(crate) enum Joined {
    /// It has ended.
    Ended,
    /// It goes on: here it is waited for.
    Wait(QueueId),
    /// There is none of this number, or it was joined before.
    Nobody,
}

impl Threads {
    /// A process begins, with one thread.
    pub(crate) fn begin(&mut self) {
        self.threads.clear();
        self.threads.push(Thread::default());
    }

    /// Adds a thread; its number.
    pub(crate) fn add(&mut self) -> u32 {
        self.threads.push(Thread::default());
        self.threads.len() as u32 - 1
    }

    /// A thread has its task.
    pub(crate) fn set_task(&mut self, thread: u32, task: TaskId) {
        self.threads[thread as usize].task = Some(task);
    }

    /// Whether the first thread has its task.
    pub(crate) fn have_begun(&self) -> bool {
        self.threads.first().is_some_and(|thread| thread.task.is_some())
    }

    /// The tasks of those that have not ended.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = TaskId> {
        self.threads.iter().filter(|thread| !thread.ended).filter_map(|thread| thread.task)
    }

    /// Where a thread's memory is to be.
    #[inline(always)]
    pub(crate) fn policy(&self, thread: u32) -> TaskPolicy {
        self.threads[thread as usize].policy
    }

    /// The same of all that have not ended.
    pub(crate) fn policies(&self) -> impl Iterator<Item = TaskPolicy> {
        self.threads.iter().filter(|thread| !thread.ended).map(|thread| thread.policy)
    }

    /// Says so.
    pub(crate) fn set_policy(&mut self, thread: u32, policy: TaskPolicy) {
        self.threads[thread as usize].policy = policy;
    }

    /// Whether a thread has to end.
    #[inline(always)]
    pub(crate) fn must_end(&self, thread: u32) -> bool {
        self.threads[thread as usize].must_end
    }

    /// All threads but this one have to end; their tasks are to be told.
    pub(crate) fn end_others(&mut self, thread: u32, tell: &mut Vec<TaskId>) {
        for (_, other) in (0..).zip(&mut self.threads).filter(|(number, other)| *number != thread && !other.ended) {
            other.must_end = true;
            tell.extend(other.task);
        }
    }

    /// Whether all others have ended.
    pub(crate) fn is_alone(&self) -> bool {
        self.threads.iter().filter(|thread| !thread.ended).count() <= 1
    }

    /// Where the only one that is not to end waits for the others.
    pub(crate) fn alone(&mut self, make: impl FnOnce() -> QueueId) -> QueueId {
        *self.alone.get_or_insert_with(make)
    }

    /// A thread has ended, which ran this; nobody joins the first. Those who wait for that are to be woken.
    pub(crate) fn end(&mut self, thread: u32, program: Option<Box<dyn Program>>) -> impl Iterator<Item = QueueId> {
        let of_thread = &mut self.threads[thread as usize];
        (of_thread.ended, of_thread.program) = (true, program);
        self.joiners.get(thread as usize).copied().flatten().into_iter().chain(self.alone)
    }

    /// The process has ended.
    pub(crate) fn clear(&mut self) {
        self.threads.clear();
    }

    /// Whether a thread has ended, or where it is waited for.
    pub(crate) fn join(&mut self, thread: u32, make: impl FnOnce() -> QueueId) -> Joined {
        match self.threads.get_mut(thread as usize) {
            Some(Thread { ended: true, program: Some(_), .. }) => Joined::Ended,
            Some(of_thread) if !of_thread.ended => {
                let place = thread as usize;
                self.joiners.resize(self.joiners.len().max(place + 1), None);
                Joined::Wait(*self.joiners[place].get_or_insert_with(make))
            }
            _ => Joined::Nobody,
        }
    }

    /// What a thread that has ended has run.
    pub(crate) fn take_program(&mut self, thread: u32) -> Option<Box<dyn Program>> {
        self.threads.get_mut(thread as usize)?.program.take()
    }
}
