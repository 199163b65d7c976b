//! What the engine asks of its host: the owner of pages knows what they are for, whether they can move now, and how.
//!
//! The engine keeps frames without contents. Everything that needs the contents, the mappings or another task's CPU is
//! a question to the [`Owner`].

use crate::gfp::Gfp;
use crate::lru::Shadow;
use crate::state::Memory;
use crate::step::Wait;
use crate::types::{NodeId, Pfn};

/// How moving one page went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MigrateOutcome {
    /// The page's contents and mappings are at the new place.
    Moved,
    /// Not now: locked or referenced for the moment.
    Busy,
    /// Not at all.
    Failed,
}

/// A moment at which a task in the kernel may lose the CPU to a daemon it has woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// It has just woken kswapd.
    Woken,
    /// It offers the CPU itself (`cond_resched`).
    Offered,
}

/// What a page's owner says of it when reclaim has taken it off the LRU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageState {
    /// Somebody has locked it: it is left alone.
    pub locked: bool,
    /// It cannot be evicted: locked into memory.
    pub unevictable: bool,
    /// Some page table maps it.
    pub mapped: bool,
    /// It has to be written before it can go.
    pub dirty: bool,
    /// It is dirty, but all its blocks have been written one by one: nobody has to hurry because of it.
    pub blocks_written: bool,
    /// It is being written.
    pub writeback: bool,
    /// It is anonymous; on the lists of files only if it is no longer needed.
    pub anon: bool,
    /// It has a place in swap.
    pub swap_cache: bool,
    /// Its file system keeps something with it, which has to be dropped first.
    pub private: bool,
    /// It is pinned for somebody's I/O.
    pub pinned: bool,
    /// Somebody else holds a reference to it.
    pub held: bool,
}

/// The page tables' references to a page since they were last asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct References {
    /// Entries through which it was used.
    pub ptes: u32,
    /// One of them executes it.
    pub executable: bool,
    /// One of them is locked into memory.
    pub mlocked: bool,
}

/// What came of writing a page out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteOut {
    /// Not now.
    Kept,
    /// Its file system would rather not: the page is active for now.
    Activate,
    /// It was clean after all.
    Clean,
    /// It is written.
    Written,
    /// It is being written.
    Queued,
}

/// A cache of objects that can be shrunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shrinker {
    /// Objects that could be freed.
    pub freeable: u64,
    /// What an object costs to make again, in seeks; 0 where it costs nothing.
    pub seeks: u32,
    /// Objects it would be asked to scan at a time.
    pub batch: u64,
}

/// What a shrinker did when asked to scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shrunk {
    /// Objects it looked at.
    pub scanned: u64,
    /// Objects it freed.
    pub freed: u64,
    /// Pages that their going has freed.
    pub pages: u64,
}

/// Who owns pages: the host's side of migration and of reclaim. A host whose pages cannot be reclaimed leaves the part
/// after [`Owner::migrate`] as it is: no folio can be split, and every page is locked.
pub trait Owner {
    /// Whether a daemon that was woken waits for the CPU of the task that allocates. On hosts where daemons run beside
    /// it, between its steps, none ever does.
    #[inline(always)]
    fn is_awaited(&self, _: &Memory) -> bool {
        false
    }
    /// The task may lose its CPU now, to a daemon that waits for it.
    fn turn(&mut self, _: &mut Memory, _: Turn) {}
    /// Lets happen what the task waits for, where it is the only one: its next step comes at once after this.
    fn wait(&mut self, _: &mut Memory, _: Wait) {}
    /// Whether the movable page may be taken off the LRU now (it is not pinned).
    fn may_isolate(&mut self, pfn: Pfn) -> bool;
    /// Whether the page has to be written before it can move: it is under writeback, or it is dirty and its file system
    /// moves only clean pages. `owner` is the number kept with it.
    #[inline(always)]
    fn moves_after_writing(&mut self, _pfn: Pfn, _owner: u32) -> bool {
        false
    }
    /// Whether the page has a mapping (`page_mapping`): it is a file's, or in the swap cache. Such a page is moved by code of
    /// its file system. `owner` is the number kept with it.
    #[inline(always)]
    fn has_mapping(&mut self, _pfn: Pfn, _owner: u32) -> bool {
        false
    }
    /// Moves the contents and mappings of `from`, with which the number `owner` is kept, to `to`.
    fn migrate(&mut self, from: Pfn, to: Pfn, owner: u32) -> MigrateOutcome;

    /// Makes single pages of a folio that is isolated, and says what number to keep with each of them. False where that
    /// is not possible now.
    fn split(&mut self, _pfn: Pfn, _owner: u32, _numbers: &mut [u32]) -> bool {
        false
    }

    /// What reclaim finds in the page it has taken off the LRU; `owner` is the number kept with it.
    fn page_state(&mut self, _pfn: Pfn, _owner: u32) -> PageState {
        PageState { locked: true, ..PageState::default() }
    }
    /// The references to the page, which are forgotten by that.
    fn references(&mut self, _pfn: Pfn, _owner: u32) -> References {
        References::default()
    }
    /// Gives an anonymous page a place in swap, which makes it dirty, and says so of the room left
    /// ([`Memory::set_swap`]). False where there is none.
    fn add_to_swap(&mut self, _m: &mut Memory, _pfn: Pfn, _owner: u32) -> bool {
        false
    }
    /// The page is active again: its place in swap may be given back.
    fn may_free_swap(&mut self, _m: &mut Memory, _pfn: Pfn, _owner: u32) {}
    /// Takes the page out of all page tables. False where that is not possible now.
    fn unmap(&mut self, _pfn: Pfn, _owner: u32) -> bool {
        false
    }
    /// Begins to write the page.
    fn write_out(&mut self, _pfn: Pfn, _owner: u32) -> WriteOut {
        WriteOut::Kept
    }
    /// Drops what the file system keeps with the page. False where it does not.
    fn release(&mut self, _pfn: Pfn, _owner: u32) -> bool {
        true
    }
    /// The page has been reclaimed and is about to be freed; its owner keeps the shadow in its place.
    fn removed(&mut self, _pfn: Pfn, _owner: u32, _shadow: Option<Shadow>) {}
    /// Pages of the node's files that are dirty or being written.
    fn write_pending(&mut self, _node: NodeId) -> u64 {
        0
    }
    /// Whether the queue of some device that pages are written to is full.
    fn is_congested(&mut self) -> bool {
        false
    }
    /// Dirty pages were met that nobody had queued for writing.
    fn wake_flushers(&mut self) {}
    /// The node's shrinker of this number, counted from 0; `None` after the last.
    fn shrinker(&mut self, _node: NodeId, _number: usize) -> Option<Shrinker> {
        None
    }
    /// Has a shrinker look at so many objects and free what it can, as the request that reclaims may: a file system's own
    /// is not entered again. `None` where it cannot do that now.
    fn shrink(&mut self, _m: &mut Memory, _node: NodeId, _number: usize, _objects: u64, _gfp: Gfp) -> Option<Shrunk> {
        None
    }
}
