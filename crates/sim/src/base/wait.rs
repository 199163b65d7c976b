//! What a task waits for: a time, a wake by name, or a wait queue, or whichever of a queue and a time is first; or for
//! its own computing.

use crate::base::queue::QueueId;

/// What a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// A daemon sleeps until it is woken.
    Wakeup,
    /// Until so many nanoseconds have passed; a daemon also until it is woken.
    Time(u64),
    /// Until the queue wakes it.
    Queue(QueueId),
    /// Until the queue wakes it, and for so many nanoseconds at most.
    QueueAtMost(QueueId, u64),
    /// Until the queue wakes it, which stands for a device: the CPU waits for I/O meanwhile, if it has nothing else to
    /// do.
    Io(QueueId),
    /// For nothing but a CPU: it computes for so many nanoseconds.
    Compute(u64),
}

/// The value of a step that is done. While it works or waits, the function returns the same; with a second argument, such as
/// `Ok`, inside of that.
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
