//! The kinds of work that files can name. A new benchmark is a file of its own, and a line in each list here.

use crate::churn::Churn;
use crate::compact::Compact;
use crate::fio::Fio;
use crate::forking_store::ForkingStore;
use crate::found::FoundState;
use crate::fragmenter::Fragment;
use crate::guests::Guests;
use crate::heap::Heap;
use crate::highalloc::HighAlloc;
use crate::huge_faults::HugeFaults;
use crate::hugealloc::HugeAlloc;
use crate::kbuild::Kbuild;
use crate::mmap_latency::MmapLatency;
use crate::scenario::Task;
use crate::steps::Steps;
use crate::thp_bursts::ThpBursts;
use crate::thpscale::Thpscale;
use crate::unmovable::FragmentUnmovable;
use crate::unpack::Unpack;
use crate::usemem::Usemem;
use crate::watch::Watch;
use crate::young_generation::YoungGeneration;
use serde::{Deserialize, Serialize};

/// A kind of work, with its parameters.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Kind {
    /// Nothing at all.
    Nothing {},
    /// Nothing, on a machine that begins as a real host was found.
    Snapshot(FoundState),
    /// A process fills memory and unmaps part of every 2 MiB section.
    Fragment(Fragment),
    /// A driver takes memory as huge pages and frees the first part of each.
    FragmentUnmovable(FragmentUnmovable),
    /// A driver allocates huge pages until it gives up.
    Hugealloc(HugeAlloc),
    /// A process touches a heap with MADV_HUGEPAGE.
    Heap(Heap),
    /// One full compaction by `vm.compact_memory`.
    Compact(Compact),
    /// Nothing, for so long: the machine's own threads are watched.
    Watch(Watch),
    /// A process replaces its memory, a stretch at a time.
    Churn(Churn),
    /// A process that does what the file says, with files and memory.
    Steps(Steps),
    /// A process maps, touches and unmaps memory, over and over.
    MmapLatency(MmapLatency),
    /// Processes go over memory and a file with more and more threads.
    Usemem(Usemem),
    /// Threads fault in huge pages where half of each is free.
    Thpscale(Thpscale),
    /// A job of fio writes many small files or reads them at random.
    Fio(Fio),
    /// A process touches memory, huge page by huge page.
    HugeFaults(HugeFaults),
    /// An archive is unpacked.
    Unpack(Unpack),
    /// A kernel is built.
    Kbuild(Kbuild),
    /// A process takes and gives back huge pages in bursts.
    ThpBursts(ThpBursts),
    /// A store forks to save itself.
    ForkingStore(ForkingStore),
    /// A Java process allocates through its young generation.
    YoungGeneration(YoungGeneration),
    /// Virtual machines come and go.
    Guests(Guests),
    /// A driver asks for huge pages at a fixed pace, pass after pass.
    Highalloc(HighAlloc),
}

impl Kind {
    /// The driver of huge pages, if this is one.
    pub(crate) fn hugealloc(&mut self) -> Option<&mut HugeAlloc> {
        match self {
            Kind::Hugealloc(driver) => Some(driver),
            _ => None,
        }
    }

    /// A task that does this work, one copy on the first CPU; none for nothing.
    pub(crate) fn task(&self) -> Option<Task> {
        Some(match self.clone() {
            Kind::Nothing {} | Kind::Snapshot(_) => return None,
            Kind::Fragment(b) => Task::new(b),
            Kind::FragmentUnmovable(b) => Task::new(b),
            Kind::Hugealloc(b) => Task::new(b),
            Kind::Heap(b) => Task::new(b),
            Kind::Compact(b) => Task::new(b),
            Kind::Watch(b) => Task::new(b),
            Kind::Churn(b) => Task::new(b),
            Kind::Steps(b) => Task::new(b),
            Kind::MmapLatency(b) => Task::new(b),
            Kind::Usemem(b) => Task::new(b),
            Kind::Thpscale(b) => Task::new(b),
            Kind::Fio(b) => Task::new(b),
            Kind::HugeFaults(b) => Task::new(b),
            Kind::Unpack(b) => Task::new(b),
            Kind::Kbuild(b) => Task::new(b),
            Kind::ThpBursts(b) => Task::new(b),
            Kind::ForkingStore(b) => Task::new(b),
            Kind::YoungGeneration(b) => Task::new(b),
            Kind::Guests(b) => Task::new(b),
            Kind::Highalloc(b) => Task::new(b),
        })
    }
}
