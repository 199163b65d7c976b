//! Operations: a process's system calls and memory accesses, and what a kernel driver does with blocks of pages.

use crate::gfp::Gfp;
use crate::mempolicy::MemPolicy;
use crate::program::Program;
use std::fmt;

/// A stretch of a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    /// The mapping, as numbered by the machine.
    pub mapping: u32,
    /// Its first page, counted from the mapping's start.
    pub first: u32,
    /// Its length in pages.
    pub pages: u32,
}

/// A process, as numbered by the machine. The number of one that is gone is another's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Process(u32);

impl Process {
    /// The process with this number.
    pub const fn new(number: u32) -> Process {
        Process(number)
    }
    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// A thread of a process, as numbered in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Thread(u32);

impl Thread {
    /// The thread with this number.
    pub const fn new(number: u32) -> Thread {
        Thread(number)
    }
    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// The first page frame of a driver's block, as the machine numbers it. A program keeps it to give it back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Frame(u64);

impl Frame {
    /// The frame with this number.
    pub const fn new(number: u64) -> Frame {
        Frame(number)
    }
    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// A file, by the disk it lies on and a number that the workload chooses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileName {
    disk: u8,
    number: u64,
}

impl FileName {
    /// The file of this number on this disk of the machine, counted from 0.
    pub const fn new(disk: u8, number: u64) -> FileName {
        FileName { disk, number }
    }
    /// The disk.
    pub const fn disk(self) -> u8 {
        self.disk
    }
    /// The number.
    pub const fn number(self) -> u64 {
        self.number
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file {} of disk {}", self.number, self.disk)
    }
}

/// A file that a process has open, as the machine numbers it. The number of one that was closed is another's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OpenFile(u32);

impl OpenFile {
    /// The open file with this number.
    pub const fn new(number: u32) -> OpenFile {
        OpenFile(number)
    }
    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// Pages of a huge page that a PMD maps: 2 MiB on x86-64.
pub const HPAGE_PMD_NR: u32 = 1 << Order::HUGE.get();

/// log2 of a block's size in pages. Whether a block of that order can exist is for the machine to say.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Order(u8);

impl Order {
    /// One page.
    pub const ZERO: Order = Order(0);
    /// 2 MiB, a huge page on x86-64.
    pub const HUGE: Order = Order(9);

    /// The order `n`.
    pub const fn new(n: u8) -> Order {
        Order(n)
    }
    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "order {}", self.0)
    }
}

/// Something a program asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Map so many anonymous pages, aligned to 2 MiB; gives [`Value::Region`](crate::Value::Region).
    Mmap {
        /// Length in pages.
        pages: u32,
    },
    /// `madvise(MADV_HUGEPAGE)` on the region.
    AdviseHuge(Region),
    /// `set_mempolicy`: memory that the process comes to have is there, and that of its children.
    SetMempolicy(MemPolicy),
    /// `mbind`: pages of the region that come to be are there.
    Mbind {
        /// The region.
        region: Region,
        /// Where.
        policy: MemPolicy,
    },
    /// Write a word of every page of the range, in address order.
    Touch(Region),
    /// Write all of the range, in address order, as `memset` does.
    Fill(Region),
    /// Read every page of the range once, in address order.
    Load(Region),
    /// `mincore`: how many pages of the range are in memory; gives [`Value::Pages`](crate::Value::Pages).
    Mincore(Region),
    /// Unmap the range. A part may be used again, as if it were mapped anew; all of a mapping at once takes it away.
    Munmap(Region),
    /// Make a process that shares all memory, copy-on-write, and runs this program; gives
    /// [`Value::Child`](crate::Value::Child). The regions of the one who forks are the child's, too. A program that was
    /// forked and hands over nothing more exits.
    Fork(Box<dyn Program>),
    /// Drop all memory and run this program instead.
    Exec(Box<dyn Program>),
    /// Give all memory back and be gone, with all threads.
    Exit,
    /// Make a thread: it runs this program in the memory of the one who asks; gives
    /// [`Value::Thread`](crate::Value::Thread). It ends when it hands over nothing more.
    Spawn(Box<dyn Program>),
    /// Wait until a thread has ended, whose program is then [given back](Program::joined); gives
    /// [`Value::Joined`](crate::Value::Joined).
    Join(Thread),
    /// Wait until this child has ended; gives [`Value::Ended`](crate::Value::Ended).
    Wait(Process),
    /// Wait until any child has ended; gives [`Value::Ended`](crate::Value::Ended).
    WaitAny,
    /// `waitpid(-1, WNOHANG)`: take leave of any child that has ended; gives [`Value::Ended`](crate::Value::Ended), or nothing while none has.
    WaitNoHang,
    /// `getrusage(RUSAGE_CHILDREN)`: the CPU time of children that were waited for, and of theirs; gives
    /// [`Value::Times`](crate::Value::Times).
    ChildTimes,
    /// `SIGKILL`: the process gives all memory back and is gone as soon as it can.
    Kill(Process),
    /// A kernel driver's allocation; gives [`Value::Block`](crate::Value::Block).
    AllocPages {
        /// Its flags.
        gfp: Gfp,
        /// Its order.
        order: Order,
    },
    /// A kernel driver splits its block into single pages.
    SplitPages {
        /// The block.
        block: Frame,
        /// Its order.
        order: Order,
    },
    /// A kernel driver frees so many single pages from `first` on.
    FreePages {
        /// The first page.
        first: Frame,
        /// How many.
        pages: u32,
    },
    /// Read `MemFree`; gives [`Value::Pages`](crate::Value::Pages), less what must stay above the high watermarks.
    FreeAboveHigh,
    /// Write a sysctl; `vm.compact_memory` returns when the compaction is done.
    Sysctl {
        /// Its name.
        name: String,
        /// The value.
        value: String,
    },
    /// Open a file; gives [`Value::File`](crate::Value::File).
    Open {
        /// Its name.
        name: FileName,
        /// Whether it is made where it is not there.
        create: bool,
    },
    /// Map pages of an open file, to be read; gives [`Value::Region`](crate::Value::Region). The file may be closed after it.
    MmapFile {
        /// The file.
        file: OpenFile,
        /// The first page.
        first: u32,
        /// How many.
        pages: u32,
    },
    /// Read pages of an open file, as far as it has them; gives [`Value::Pages`](crate::Value::Pages), those read.
    Read {
        /// The file.
        file: OpenFile,
        /// The first page.
        first: u32,
        /// How many.
        pages: u32,
    },
    /// Write whole pages to an open file, which is as long as that needs from then on; gives
    /// [`Value::Pages`](crate::Value::Pages).
    Write {
        /// The file.
        file: OpenFile,
        /// The first page.
        first: u32,
        /// How many.
        pages: u32,
    },
    /// Have an open file written to its disk.
    Fsync(OpenFile),
    /// Have all files written to their disks.
    Sync,
    /// Cut an open file off.
    Truncate {
        /// The file.
        file: OpenFile,
        /// Its length in pages from then on, at most.
        pages: u32,
    },
    /// Take a file's name away; it is gone when nobody has it open.
    Unlink(FileName),
    /// Close an open file.
    Close(OpenFile),
    /// Do nothing for so many nanoseconds.
    Sleep(u64),
    /// Compute for so many nanoseconds of a CPU's time.
    Compute(u64),
    /// Wait until so many tasks have come to this barrier.
    Barrier {
        /// Its number, the same for all of them.
        barrier: u32,
        /// How many.
        parties: u32,
    },
}
