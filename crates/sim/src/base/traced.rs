//! A tracepoint with what ftrace prints before it: the task, the CPU and the time.

use kontig_mm::{CpuId, Event};
use std::fmt;

/// A task's name as `/proc/PID/comm` shows it, at most 15 bytes. Scripts that read traces expect
/// letters, digits and `-`, so any other character becomes a `-`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comm {
    bytes: [u8; 15],
    len: u8,
}

impl Comm {
    pub fn new(name: &str) -> Comm {
        let mut comm = Comm { bytes: [0; 15], len: 0 };
        for (byte, c) in comm.bytes.iter_mut().zip(name.chars()) {
            *byte = if c.is_ascii_alphanumeric() { c as u8 } else { b'-' };
            comm.len += 1;
        }
        comm
    }

    pub fn as_str(&self) -> &str {
        // It is ASCII by construction.
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl fmt::Display for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The identity of a task. No two tasks of a machine have the same number, unlike a
/// [`TaskId`](crate::TaskId), which is reused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caller {
    pub comm: Comm,
    pub pid: u32,
    /// The number of its process: that of its first thread.
    pub tgid: u32,
}

impl Caller {
    /// The idle task, for what happens outside any turn.
    pub(crate) fn idle() -> Caller {
        Caller { comm: Comm::new("swapper"), pid: 0, tgid: 0 }
    }
}

/// An event of a running machine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Traced {
    pub at_ns: u64,
    pub cpu: CpuId,
    pub by: Caller,
    pub event: Event,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_to_fifteen_bytes_of_plain_characters() {
        assert_eq!(Comm::new("kworker/u8:flush").as_str(), "kworker-u8-flus");
        assert_eq!(Comm::new("größe 1").as_str(), "gr--e-1");
        assert_eq!(format!("{:>5}|", Comm::new("cc1")), "  cc1|");
    }
}
