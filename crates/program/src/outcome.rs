//! Outcomes: what an operation gave, and when.

use crate::op::{Frame, OpenFile, Process, Region, Thread};

/// The result of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Unit,
    Region(Region),
    /// A block, or `None` if the allocation failed.
    Block(Option<Frame>),
    Pages(u64),
    /// The pages that a region lay on at the end of its accesses, small ones and huge ones, and the
    /// CPU time of the accesses.
    Mapped {
        small: u64,
        huge: u64,
        ns: u64,
    },
    /// A file that was opened.
    File(OpenFile),
    /// A process that was forked.
    Child(Process),
    /// A thread that was made.
    Thread(Thread),
    /// A thread that has ended.
    Joined(Thread),
    Times {
        /// In programs' own code, ns.
        user_ns: u64,
        /// In the kernel, ns.
        system_ns: u64,
    },
    /// A child that has ended.
    Ended {
        process: Process,
        /// Whether another process or the OOM killer killed it.
        killed: bool,
        /// Whether it was killed or exited with a code other than 0.
        failed: bool,
    },
}

/// An operation's result, with its start and end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    pub value: Value,
    /// When it began, ns.
    pub start_ns: u64,
    /// When it ended, ns.
    pub end_ns: u64,
}

impl Outcome {
    /// The outcome passed to a program before its first operation: nothing, at its start.
    pub const fn at_start(now_ns: u64) -> Outcome {
        Outcome { value: Value::Unit, start_ns: now_ns, end_ns: now_ns }
    }
    /// From the start of the operation to its end.
    pub fn latency_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}
