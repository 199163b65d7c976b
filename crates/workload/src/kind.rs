//! The kinds of work that files can name. A new benchmark is a file of its own, and a line here.

use crate::found::{FoundProc, FoundState};
use crate::occupancy::Occupancy;
use crate::scenario::Task;
use crate::shape::{Key, keys};
use serde::{Deserialize, Serialize};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($file:ident::$benchmark:ident),)*) => {
        /// A kind of work, with its parameters.
        #[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        pub enum Kind {
            Nothing {},
            /// Nothing, on a machine that begins as a real host was found.
            Snapshot(FoundState),
            /// Nothing, on a machine in a state that is estimated from a host's files.
            Proc(FoundProc),
            /// Nothing, on a machine whose memory is in use from the start.
            Occupancy(Occupancy),
            $($(#[$doc])* $kind(crate::$file::$benchmark),)*
        }

        impl Kind {
            /// A task that does this work, one copy on the first CPU; none for nothing.
            pub(crate) fn task(&self) -> Option<Task> {
                match self.clone() {
                    Kind::Nothing {} | Kind::Snapshot(_) | Kind::Proc(_) | Kind::Occupancy(_) => None,
                    $(Kind::$kind(benchmark) => Some(Task::new(benchmark)),)*
                }
            }

            /// The keys that a file can give it, beside its kind.
            pub(crate) fn keys(&self) -> Vec<Key> {
                match self {
                    // A snapshot is a file, which `--snapshot` names.
                    Kind::Nothing {} | Kind::Snapshot(_) => Vec::new(),
                    Kind::Proc(_) => keys::<FoundProc>(),
                    Kind::Occupancy(_) => keys::<Occupancy>(),
                    $(Kind::$kind(_) => keys::<crate::$file::$benchmark>(),)*
                }
            }
        }
    };
}

kinds! {
    /// A process fills memory and unmaps part of every 2 MiB section.
    Fragment(fragmenter::Fragment),
    /// A driver takes memory as huge pages and frees the first part of each.
    FragmentUnmovable(unmovable::FragmentUnmovable),
    /// A driver allocates huge pages until it gives up.
    Hugealloc(hugealloc::HugeAlloc),
    /// A process touches a heap with MADV_HUGEPAGE.
    Heap(heap::Heap),
    /// One full compaction by `vm.compact_memory`.
    Compact(compact::Compact),
    /// Nothing for a while: the machine's own threads are watched.
    Watch(watch::Watch),
    /// A process replaces its memory, a stretch at a time.
    Churn(churn::Churn),
    /// A process that takes the steps in the file.
    Steps(steps::Steps),
    /// A process maps, touches and unmaps memory, over and over.
    MmapLatency(mmap_latency::MmapLatency),
    /// Processes go over memory and a file with more and more threads.
    Usemem(usemem::Usemem),
    /// Threads fault in huge pages where half of each is free.
    Thpscale(thpscale::Thpscale),
    /// A job of fio writes many small files or reads them at random.
    Fio(fio::Fio),
    /// A process touches memory, huge page by huge page.
    HugeFaults(huge_faults::HugeFaults),
    /// An archive is unpacked.
    Unpack(unpack::Unpack),
    /// A kernel is built.
    Kbuild(kbuild::Kbuild),
    /// A process takes and gives back huge pages in bursts.
    ThpBursts(thp_bursts::ThpBursts),
    /// A store forks to save itself.
    ForkingStore(forking_store::ForkingStore),
    /// A Java process allocates through its young generation.
    YoungGeneration(young_generation::YoungGeneration),
    /// Virtual machines come and go.
    Guests(guests::Guests),
    /// A program that is used now and then.
    Daemon(daemon::Daemon),
    /// A process fills a heap and accesses it.
    Accesses(accesses::Accesses),
    /// Allocations are replayed as they were recorded.
    Trace(trace::Trace),
    /// Processes that take steps start and end.
    Processes(processes::Processes),
    /// A driver asks for huge pages at a fixed pace, pass after pass.
    Highalloc(highalloc::HighAlloc),
}

impl Kind {
    /// Whether it is the state that a machine begins in.
    pub(crate) fn is_beginning(&self) -> bool {
        matches!(self, Kind::Snapshot(_) | Kind::Proc(_) | Kind::Occupancy(_))
    }

    /// The driver of huge pages, if this is one.
    pub(crate) fn hugealloc(&mut self) -> Option<&mut crate::hugealloc::HugeAlloc> {
        match self {
            Kind::Hugealloc(driver) => Some(driver),
            _ => None,
        }
    }
}
