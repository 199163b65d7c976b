//! What a machine cannot do for a program.

use kontig_mm::sysctl::SysctlError;
use kontig_mm::{Gfp, Order};
use kontig_program::{FileName, Op};
use std::fmt;

/// A program asked for something the machine cannot give.
#[derive(Clone, Debug, PartialEq)]
pub enum SimError {
    /// A sysctl write was refused.
    Sysctl(SysctlError),
    /// Memory ran out, and there is nobody to kill, or a process that nobody waits for is killed.
    OutOfMemory {
        /// What got no memory.
        what: String,
    },
    /// A request tries again and again without end, as the kernel that is followed does.
    EndlessRequest {
        /// How large the block is that it asks for.
        order: Order,
        /// What else it says.
        gfp: Gfp,
        /// Rounds of reclaim and compaction so far.
        rounds: u32,
        /// And how long they took.
        seconds: u64,
    },
    /// All that is mapped together is more than 16 TiB: no page of this mapping could have an owner.
    NoAddressSpace {
        /// The pages of the mapping.
        pages: u32,
    },
    /// The program waits for a process that is not its child.
    NoSuchProcess {
        /// What it asked for.
        op: String,
    },
    /// No node that a policy names has memory.
    NoSuchNode {
        /// What was asked for.
        op: String,
    },
    /// There is no file of this name.
    NoSuchFile {
        /// The name.
        name: FileName,
    },
    /// The machine has no disk of this number.
    NoSuchDisk {
        /// The number, from 0.
        disk: u8,
    },
    /// A disk has no room for what is written.
    DiskFull {
        /// The file.
        name: FileName,
    },
    /// The program used memory that is not its own.
    BadAddress {
        /// What it asked for.
        op: String,
    },
    /// Those who come to a barrier do not agree on how many they are.
    WrongBarrier {
        /// What the last one asked for.
        op: String,
    },
}

impl SimError {
    pub(crate) fn bad_address(op: &Op) -> SimError {
        SimError::BadAddress { op: format!("{op:?}") }
    }
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimError::Sysctl(e) => e.fmt(f),
            SimError::OutOfMemory { what } => {
                write!(f, "the simulated machine is out of memory: {what} (ask for less)")
            }
            SimError::EndlessRequest { order, gfp, rounds, seconds } => {
                let order = order.get();
                write!(
                    f,
                    "a request of order {order} ({gfp}) has no end: {rounds} rounds in {seconds} s gave no page; in defrag_mode some \
                     kernels try for ever where no pageblock can be emptied (ask for less, or take another --profile, or \
                     --set vm.defrag_mode=0)"
                )
            }
            SimError::NoAddressSpace { pages } => {
                write!(f, "no room to map {pages} pages: all mappings of a machine together are at most 16 TiB")
            }
            SimError::WrongBarrier { op } => {
                write!(f, "the workload's tasks do not agree on how many a barrier is for, at least one: {op}")
            }
            SimError::NoSuchProcess { op } => write!(f, "the workload waits for a child it does not have: {op}"),
            SimError::NoSuchNode { op } => {
                write!(f, "the workload wants memory of nodes that the machine has no memory on: {op}")
            }
            SimError::NoSuchFile { name } => {
                write!(f, "the workload opens {name}, which is not there: create it first")
            }
            SimError::NoSuchDisk { disk } => {
                write!(f, "the workload uses files on disk {disk}, and the machine has none: give it a [[disk]]")
            }
            SimError::DiskFull { name } => write!(f, "no room on the disk for {name}: take a larger one"),
            SimError::BadAddress { op } => write!(f, "the workload used memory it does not hold: {op}"),
        }
    }
}

impl std::error::Error for SimError {}
