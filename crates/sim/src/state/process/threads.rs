//! The threads of a process: tasks that share memory, files and children.
//!
//! The first thread's number is 0. A finished thread stays until it is joined, which returns its
//! program. A process ends with the last of its threads: `exit` in one, or a kill, makes all others
//! end as soon as they can.

use crate::base::context::TaskPolicy;
use crate::base::id::TaskId;
use crate::base::queue::QueueId;
use kontig_program::Program;

#[derive(Clone, Default)]
struct Thread {
    /// `None` until it has one.
    task: Option<TaskId>,
    /// Whether another thread has ended the process, or executes another program.
    must_end: bool,
    ended: bool,
    policy: TaskPolicy,
    /// Its program, after it has ended and until it is joined.
    program: Option<Box<dyn Program>>,
}

/// All threads of a process, by number.
#[derive(Clone, Default)]
pub(crate) struct Threads {
    threads: Vec<Thread>,
    /// Queues of tasks that join each thread, made on first use; they stay for the next process of
    /// this number.
    joiners: Vec<Option<QueueId>>,
    /// The queue of the thread that waits to be the only one.
    alone: Option<QueueId>,
}

/// The state of a thread to be joined.
#[derive(Debug)]
pub(crate) enum Joined {
    Ended,
    /// It has not ended; wait in this queue.
    Wait(QueueId),
    /// There is no such thread, or it was joined before.
    Nobody,
}

impl Threads {
    /// Begins a process with one thread.
    pub(crate) fn begin(&mut self) {
        self.threads.clear();
        self.threads.push(Thread::default());
    }

    /// Adds a thread; its number.
    pub(crate) fn add(&mut self) -> u32 {
        self.threads.push(Thread::default());
        self.threads.len() as u32 - 1
    }

    /// Sets the task of a thread.
    pub(crate) fn set_task(&mut self, thread: u32, task: TaskId) {
        self.threads[thread as usize].task = Some(task);
    }

    /// Whether the first thread has its task.
    pub(crate) fn have_begun(&self) -> bool {
        self.threads.first().is_some_and(|thread| thread.task.is_some())
    }

    /// The tasks of threads that have not ended.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = TaskId> {
        self.threads.iter().filter(|thread| !thread.ended).filter_map(|thread| thread.task)
    }

    /// A thread's memory policy.
    #[inline(always)]
    pub(crate) fn policy(&self, thread: u32) -> TaskPolicy {
        self.threads[thread as usize].policy
    }

    /// The policies of threads that have not ended.
    pub(crate) fn policies(&self) -> impl Iterator<Item = TaskPolicy> {
        self.threads.iter().filter(|thread| !thread.ended).map(|thread| thread.policy)
    }

    pub(crate) fn set_policy(&mut self, thread: u32, policy: TaskPolicy) {
        self.threads[thread as usize].policy = policy;
    }

    /// Whether a thread must end.
    #[inline(always)]
    pub(crate) fn must_end(&self, thread: u32) -> bool {
        self.threads[thread as usize].must_end
    }

    /// Makes all other threads end; adds their tasks to `tell`.
    pub(crate) fn end_others(&mut self, thread: u32, tell: &mut Vec<TaskId>) {
        for (_, other) in (0..).zip(&mut self.threads).filter(|(number, other)| *number != thread && !other.ended) {
            other.must_end = true;
            tell.extend(other.task);
        }
    }

    /// Whether all other threads have ended.
    pub(crate) fn is_alone(&self) -> bool {
        self.threads.iter().filter(|thread| !thread.ended).count() <= 1
    }

    /// The queue for the thread that waits for all others to end.
    pub(crate) fn alone(&mut self, make: impl FnOnce() -> QueueId) -> QueueId {
        *self.alone.get_or_insert_with(make)
    }

    /// Ends a thread, which leaves its program to be joined unless it is the first. Returns the
    /// queues to wake.
    pub(crate) fn end(&mut self, thread: u32, program: Option<Box<dyn Program>>) -> impl Iterator<Item = QueueId> {
        let of_thread = &mut self.threads[thread as usize];
        (of_thread.ended, of_thread.program) = (true, program);
        self.joiners.get(thread as usize).copied().flatten().into_iter().chain(self.alone)
    }

    /// Removes all threads at the end of the process.
    pub(crate) fn clear(&mut self) {
        self.threads.clear();
    }

    /// Looks up a thread to join.
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

    /// Takes the program of a finished thread.
    pub(crate) fn take_program(&mut self, thread: u32) -> Option<Box<dyn Program>> {
        self.threads.get_mut(thread as usize)?.program.take()
    }
}
