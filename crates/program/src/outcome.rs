//! Outcomes: what an operation gave, and when.

use crate::op::{Frame, OpenFile, Process, Region, Thread};

/// What an operation gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Unit,
    /// A new mapping.
    Region(Region),
    /// A block, or `None` if the allocation failed.
    Block(Option<Frame>),
    /// A number of pages.
    Pages(u64),
    /// A file that was opened.
    File(OpenFile),
    /// A process that was forked.
    Child(Process),
    /// A thread that was made.
    Thread(Thread),
    /// A thread that has ended.
    Joined(Thread),
    /// Time on CPUs.
    Times {
        /// In programs' own code, ns.
        user_ns: u64,
        /// In the kernel, ns.
        system_ns: u64,
    },
    /// A child that has ended.
    Ended {
        /// Which.
        process: Process,
        /// Whether it was killed, by another process or for want of memory.
        killed: bool,
        /// Whether it was killed or says itself that it has failed: an exit code other than 0.
        failed: bool,
    },
}

/// How an operation went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// What it gave.
    pub value: Value,
    /// When it began, ns.
    pub start_ns: u64,
    /// When it ended, ns.
    pub end_ns: u64,
}

impl Outcome {
    /// What a program is told before its first operation: nothing, at the time it starts.
    pub const fn at_start(now_ns: u64) -> Outcome {
        Outcome { value: Value::Unit, start_ns: now_ns, end_ns: now_ns }
    }
    /// How long it took.
    pub fn latency_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}
