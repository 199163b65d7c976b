//! The waits of a task: for a time, a wake by name, a wait queue, the first of a queue and a time,
//! or its own computing.

use crate::base::queue::QueueId;

/// The condition that a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// A daemon sleeps until it is woken.
    Wakeup,
    /// For this many nanoseconds; a daemon also until it is woken.
    Time(u64),
    /// Until the queue wakes it.
    Queue(QueueId),
    /// Until the queue wakes it, for this many nanoseconds at most.
    QueueAtMost(QueueId, u64),
    /// Until the queue of a device wakes it: meanwhile an idle CPU counts as waiting for I/O.
    Io(QueueId),
    /// It computes for this many nanoseconds of CPU time.
    Compute(u64),
    /// The same in the kernel: it is system time.
    Spin(u64),
}

/// The value of a finished step. If the step works or waits, the function returns the same, wrapped
/// in the second argument, such as `Ok`, if there is one.
macro_rules! done {
    ($step:expr $(, $wrap:path)?) => {
        match $step {
            kontig_mm::Step::Working => return $($wrap)?(kontig_mm::Step::Working),
            kontig_mm::Step::Wait(wait) => return $($wrap)?(kontig_mm::Step::Wait(wait)),
            kontig_mm::Step::Done(done) => done,
        }
    };
}
pub(crate) use done;
