//! Operations: a process's system calls and memory accesses, and what a kernel driver does with
//! blocks of pages.

use crate::access::Pattern;
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

/// A process by the machine's number, which is reused once the process is gone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Process(u32);

impl Process {
    pub const fn new(number: u32) -> Process {
        Process(number)
    }
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// A thread by its number within its process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Thread(u32);

impl Thread {
    pub const fn new(number: u32) -> Thread {
        Thread(number)
    }
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// The first page frame of a driver's block. The driver keeps it to free the block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Frame(u64);

impl Frame {
    pub const fn new(number: u64) -> Frame {
        Frame(number)
    }
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
    /// `disk` counts the machine's disks from 0.
    pub const fn new(disk: u8, number: u64) -> FileName {
        FileName { disk, number }
    }
    /// The disk it lies on, from 0.
    pub const fn disk(self) -> u8 {
        self.disk
    }
    pub const fn number(self) -> u64 {
        self.number
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file {} of disk {}", self.number, self.disk)
    }
}

/// An open file by the machine's number, which is reused once the file is closed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OpenFile(u32);

impl OpenFile {
    pub const fn new(number: u32) -> OpenFile {
        OpenFile(number)
    }
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// Pages of a huge page that a PMD maps: 2 MiB on x86-64.
pub const HPAGE_PMD_NR: u32 = 1 << Order::HUGE.get();

/// log2 of a block's size in pages. Which orders exist is up to the machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Order(u8);

impl Order {
    pub const ZERO: Order = Order(0);
    /// 2 MiB, a huge page on x86-64.
    pub const HUGE: Order = Order(9);

    /// Order `n`: 2ⁿ pages.
    pub const fn new(n: u8) -> Order {
        Order(n)
    }
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "order {}", self.0)
    }
}

/// One system call, memory access or driver's request.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Map anonymous pages, aligned to 2 MiB; gives [`Value::Region`](crate::Value::Region).
    Mmap {
        pages: u32,
    },
    /// Map anonymous pages where the kernel puts them: multiples of 2 MiB as [`Op::Mmap`] does, on
    /// kernels that align them, all else across the boundaries of 2 MiB.
    MmapAnywhere {
        pages: u32,
    },
    /// `madvise(MADV_HUGEPAGE)` on the region.
    AdviseHuge(Region),
    /// `madvise(MADV_COLD)` on the region: its pages count as unused, and active ones are
    /// deactivated.
    AdviseCold(Region),
    /// `set_mempolicy`: later pages of the process and its children are placed by this policy.
    SetMempolicy(MemPolicy),
    /// `mbind`: later pages of the region are placed by this policy.
    Mbind {
        region: Region,
        policy: MemPolicy,
    },
    /// Write a word of every page of the range, in address order.
    Touch(Region),
    /// Write all of the range, in address order, as `memset` does.
    Fill(Region),
    /// Read every page of the range once, in address order.
    Load(Region),
    /// Use every page of the range, as the accesses of [`Op::Access`] do: pages that are missing
    /// are faulted in as by [`Op::Touch`]; those that are there count as used and take no time,
    /// since an access takes its own.
    Use(Region),
    /// `mincore`: how many pages of the range are in memory; gives
    /// [`Value::Pages`](crate::Value::Pages).
    Mincore(Region),
    /// Unmap the range. A part of a mapping can be touched again, as if newly mapped; unmapping all
    /// of it at once removes the mapping.
    Munmap(Region),
    /// Fork: the child shares all memory copy-on-write, knows the parent's regions, and runs this
    /// program; gives [`Value::Child`](crate::Value::Child). It exits when the program hands over
    /// nothing more.
    Fork(Box<dyn Program>),
    /// Drop all memory and run this program instead.
    Exec(Box<dyn Program>),
    /// Free all memory and exit, with all threads.
    Exit,
    /// Create a thread that runs this program in the caller's memory; gives
    /// [`Value::Thread`](crate::Value::Thread). It ends when the program hands over nothing more.
    Spawn(Box<dyn Program>),
    /// Wait until a thread has ended, whose program is then [given back](Program::joined); gives
    /// [`Value::Joined`](crate::Value::Joined).
    Join(Thread),
    /// Wait until this child has ended; gives [`Value::Ended`](crate::Value::Ended).
    Wait(Process),
    /// Wait until any child has ended; gives [`Value::Ended`](crate::Value::Ended).
    WaitAny,
    /// `waitpid(-1, WNOHANG)`: reap any child that has ended; gives
    /// [`Value::Ended`](crate::Value::Ended), or nothing if none has.
    WaitNoHang,
    /// `getrusage(RUSAGE_CHILDREN)`: the CPU time of children that were waited for, and of theirs;
    /// gives [`Value::Times`](crate::Value::Times).
    ChildTimes,
    /// `SIGKILL`: the process frees all memory and exits as soon as it can.
    Kill(Process),
    /// A kernel driver's allocation; gives [`Value::Block`](crate::Value::Block).
    AllocPages {
        gfp: Gfp,
        order: Order,
    },
    /// A kernel driver frees a block as it was allocated.
    FreeBlock {
        block: Frame,
        order: Order,
    },
    /// A kernel driver splits its block into single pages.
    SplitPages {
        block: Frame,
        order: Order,
    },
    /// A kernel driver frees single pages, from `first` on.
    FreePages {
        first: Frame,
        pages: u32,
    },
    /// Read `MemFree`; gives [`Value::Pages`](crate::Value::Pages), less what must stay above the
    /// high watermarks.
    FreeAboveHigh,
    /// Write a sysctl; `vm.compact_memory` returns when the compaction is done.
    Sysctl {
        name: String,
        value: String,
    },
    /// Open a file; gives [`Value::File`](crate::Value::File).
    Open {
        name: FileName,
        /// Whether to create the file if it is missing.
        create: bool,
    },
    /// `stat`: brings what the kernel keeps of a file into memory, without opening it.
    Stat(FileName),
    /// `posix_fadvise(POSIX_FADV_RANDOM)`: reads of this open file read nothing ahead.
    AdviseRandom(OpenFile),
    /// Map pages of an open file for reading; gives [`Value::Region`](crate::Value::Region). The
    /// mapping outlives the open file.
    MmapFile {
        file: OpenFile,
        first: u32,
        pages: u32,
    },
    /// Read pages of an open file, up to its end; gives the number read,
    /// [`Value::Pages`](crate::Value::Pages).
    Read {
        file: OpenFile,
        first: u32,
        pages: u32,
    },
    /// Write whole pages to an open file, which grows as needed; gives
    /// [`Value::Pages`](crate::Value::Pages).
    Write {
        file: OpenFile,
        first: u32,
        pages: u32,
    },
    /// Write an open file's dirty pages to its disk.
    Fsync(OpenFile),
    /// Write all dirty pages of files to their disks.
    Sync,
    /// Truncate an open file.
    Truncate {
        file: OpenFile,
        /// The most pages it keeps.
        pages: u32,
    },
    /// Unlink a file; it is deleted when nobody has it open.
    Unlink(FileName),
    /// The same if the file is there, as `rm -f` does.
    UnlinkIfThere(FileName),
    /// Close an open file.
    Close(OpenFile),
    Sleep(u64),
    /// Access `used` small pages' worth of a region so often, on whatever pages it lies on. What is
    /// not there stays so.
    Access {
        region: Region,
        used: u32,
        pattern: Pattern,
        accesses: u64,
    },
    /// Compute, in nanoseconds of CPU time.
    Compute(u64),
    /// Call `schedule()` again and again for this many nanoseconds, as a driver does that waits and
    /// stays runnable: it takes its share of a CPU, all of it system time.
    Spin(u64),
    /// Wait until all parties have reached this barrier.
    Barrier {
        /// The same number for all parties.
        barrier: u32,
        parties: u32,
    },
}
