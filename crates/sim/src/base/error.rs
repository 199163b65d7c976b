//! Errors of a running machine.

use kontig_mm::sysctl::SysctlError;
use kontig_mm::{Gfp, Order};
use kontig_program::{FileName, Op};
use std::fmt;

/// A request of a program that the machine cannot serve.
#[derive(Clone, Debug, PartialEq)]
pub enum SimError {
    /// A sysctl write was refused.
    Sysctl(SysctlError),
    /// Memory ran out, and there is nobody to kill, or the victim is a process that the host
    /// started.
    OutOfMemory {
        /// The allocation that failed.
        what: String,
    },
    /// A request retries without end, as it would in the kernel being simulated.
    EndlessRequest {
        order: Order,
        gfp: Gfp,
        /// Rounds of reclaim and compaction so far.
        rounds: u32,
        /// The time of these rounds.
        seconds: u64,
    },
    /// All mappings together exceed 16 TiB: page numbers would run out.
    NoAddressSpace {
        /// Size of the mapping.
        pages: u32,
    },
    /// The program waits for a process that is not its child.
    NoSuchProcess { op: String },
    /// No node in the policy has memory.
    NoSuchNode { op: String },
    /// There is no file of this name.
    NoSuchFile { name: FileName },
    /// The machine has no disk of this number.
    NoSuchDisk {
        /// The disk's number, from 0.
        disk: u8,
    },
    /// A disk has no room for a write.
    DiskFull {
        /// The file written to.
        name: FileName,
    },
    /// The program used memory that is not its own.
    BadAddress { op: String },
    /// The machine file does not say what translation costs.
    NoTranslation { op: String },
    /// The tasks arriving at a barrier disagree on its size.
    WrongBarrier {
        /// The operation of the last one.
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
                    "a request of order {order} ({gfp}) never ends: {rounds} rounds in {seconds} s gave no page; in \
                     defrag_mode some kernels retry for ever if no pageblock can be emptied (ask for less, or take \
                     another --profile, or --set vm.defrag_mode=0)"
                )
            }
            SimError::NoAddressSpace { pages } => {
                write!(f, "cannot map {pages} more pages: all mappings of a machine together are at most 16 TiB")
            }
            SimError::WrongBarrier { op } => {
                write!(f, "the workload's tasks disagree on the size of a barrier, or it is 0: {op}")
            }
            SimError::NoTranslation { op } => {
                write!(f, "the machine file has no [translation], which an access needs: {op}")
            }
            SimError::NoSuchProcess { op } => write!(f, "the workload waits for a process that is not its child: {op}"),
            SimError::NoSuchNode { op } => {
                write!(f, "the workload binds memory to nodes that have none: {op}")
            }
            SimError::NoSuchFile { name } => {
                write!(f, "the workload opens {name}, which does not exist: create it first")
            }
            SimError::NoSuchDisk { disk } => {
                write!(f, "the workload uses files on disk {disk}, which the machine does not have: give it a [[disk]]")
            }
            SimError::DiskFull { name } => write!(f, "no room on the disk for {name}: take a larger one"),
            SimError::BadAddress { op } => write!(f, "the workload used memory it does not hold: {op}"),
        }
    }
}

impl std::error::Error for SimError {}
