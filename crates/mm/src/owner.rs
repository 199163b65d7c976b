//! The host's side of the engine. The owner of a page knows its use, and whether and how it can
//! move.
//!
//! The engine keeps frames without contents. It asks the [`Owner`] for everything that depends on
//! the contents, the mappings or another task's CPU.

use crate::gfp::Gfp;
use crate::lru::Shadow;
use crate::state::{FrameKind, Memory, Tag};
use crate::step::Wait;
use crate::types::{GroupId, NodeId, Order, Pfn, ZoneId};

/// The outcome of migrating one page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MigrateOutcome {
    /// The page's contents and mappings are at the new place.
    Moved,
    /// Not now: locked or referenced for the moment.
    Busy,
    /// Not at all, now or later.
    Failed,
}

/// A moment at which a task in the kernel may lose its CPU to a daemon it has woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// The task has just woken kswapd.
    Woken,
    /// The task offers the CPU itself (`cond_resched`).
    Offered,
}

/// A lock that asynchronous compaction does not wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lock {
    /// The zone's, for its free lists.
    Zone,
    /// That of the LRU lists.
    Lru,
}

/// The state of a page that reclaim has taken off the LRU, as its owner knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageState {
    /// Locked by another task, so reclaim leaves it alone.
    pub locked: bool,
    /// Locked into memory (`mlock`).
    pub unevictable: bool,
    /// Some page table maps it.
    pub mapped: bool,
    /// It must be written before it can be freed.
    pub dirty: bool,
    /// Dirty, but all its blocks have been written one by one, so there is no hurry to write it.
    pub blocks_written: bool,
    pub writeback: bool,
    /// Anonymous. On the file lists, only if it is no longer needed.
    pub anon: bool,
    /// It has a slot in swap.
    pub swap_cache: bool,
    /// Its file system has private data on it, which must be released first.
    pub private: bool,
    /// Pinned for somebody's I/O.
    pub pinned: bool,
    /// Somebody else holds a reference.
    pub held: bool,
}

/// Most entries of a page table that are looked at around one that was used.
pub const NEIGHBOURS: usize = 64;

/// Something found around an entry that was used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Around {
    /// A page whose entry was used.
    Page(Pfn),
    /// The table, by the host's own number, the entries of it that were looked at, and those of
    /// them that were used, the first included.
    Table { table: u64, entries: u32, young: u32 },
}

/// The references that page tables have made to a page since the last check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct References {
    /// Entries with the accessed bit set.
    pub ptes: u32,
    /// Whether one of them maps it executable.
    pub executable: bool,
    /// Whether one of them is locked into memory.
    pub mlocked: bool,
}

/// The outcome of writing a page out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteOut {
    Kept,
    /// The file system asks to keep it active for now.
    Activate,
    /// It turned out to be clean.
    Clean,
    /// The write has completed.
    Written,
    /// The write is under way.
    Queued,
}

/// A cache of objects that can be shrunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shrinker {
    /// Objects that could be freed.
    pub freeable: u64,
    /// The cost of making an object again, in seeks; 0 if there is none.
    pub seeks: u32,
    /// Objects it is asked to scan at a time.
    pub batch: u64,
}

/// Pages of a node, as the counters of the host's side say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodePages {
    /// In the page cache and in the swap cache (`NR_FILE_PAGES`).
    pub cached: u64,
    /// Pages of files that page tables map (`NR_FILE_MAPPED`).
    pub mapped: u64,
    /// Dirty pages of files (`NR_FILE_DIRTY`).
    pub dirty: u64,
    /// In slab caches with a shrinker (`NR_SLAB_RECLAIMABLE_B`).
    pub reclaimable_slab: u64,
}

/// The result of one scan by a shrinker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shrunk {
    pub scanned: u64,
    pub freed: u64,
    /// Pages freed along with the objects.
    pub pages: u64,
}

/// A walk of page tables by aging: what it wants to see of them, and what it is told.
pub trait TableWalk {
    /// Whether mappings of anonymous memory are walked, too.
    fn includes_anon(&self) -> bool;
    /// Whether to look at a page table of small pages. `used` is the table's own mark of use, which
    /// this may clear.
    fn wants(&self, m: &Memory, table: u64, used: &mut bool) -> bool;
    /// Whether a page that was used is to become young.
    fn fits(&self, m: &Memory, pfn: Pfn) -> bool;
    /// The page was used; its mark of use is cleared.
    fn found(&mut self, m: &mut Memory, pfn: Pfn);
    /// The table is done: how many of its entries were looked at, and how many of them were used.
    fn leave(&mut self, m: &mut Memory, table: u64, entries: u32, young: u32);
}

/// The owner of pages: the host's side of migration and reclaim. A host whose pages cannot be
/// reclaimed keeps the defaults of the methods after [`Owner::migrate`]: no folio can be split, and
/// every page is locked.
pub trait Owner {
    /// Whether a woken daemon waits for the CPU of the allocating task. Never on hosts that run
    /// daemons beside the task, between its steps.
    #[inline(always)]
    fn is_awaited(&self, _: &Memory) -> bool {
        false
    }
    /// Whether another CPU holds this lock of the zone, or of the LRU that the zone's pages are on.
    /// Never on hosts where tasks do not run at once.
    #[inline(always)]
    fn is_locked(&self, _: &Memory, _: ZoneId, _: Lock) -> bool {
        false
    }
    /// Whether another CPU has waited for this lock while the task held it in its last step.
    #[inline(always)]
    fn is_wanted(&self, _: &Memory, _: ZoneId, _: Lock) -> bool {
        false
    }
    /// The task may now lose its CPU to a daemon that waits for it.
    fn turn(&mut self, _: &mut Memory, _: Turn) {}
    /// Runs whatever the task waits for, on hosts where it is the only task: its next step follows
    /// at once.
    fn wait(&mut self, _: &mut Memory, _: Wait) {}
    /// Whether the movable page may be taken off the LRU now, because it is not pinned.
    fn may_isolate(&mut self, pfn: Pfn) -> bool;
    /// Whether the page must be written before it can move: it is under writeback, or dirty in a
    /// file system that moves only clean pages. `owner` is the number kept with the page.
    #[inline(always)]
    fn moves_after_writing(&mut self, _pfn: Pfn, _owner: u32) -> bool {
        false
    }
    /// Whether the page has a mapping (`page_mapping`): it belongs to a file, or is in the swap
    /// cache. Its file system's own code moves such a page. `owner` is the number kept with the
    /// page.
    #[inline(always)]
    fn has_mapping(&mut self, _pfn: Pfn, _owner: u32) -> bool {
        false
    }
    /// Moves the contents and mappings of `from` to `to`; `owner` is the number kept with `from`.
    fn migrate(&mut self, from: Pfn, to: Pfn, owner: u32) -> MigrateOutcome;

    /// Splits an isolated folio into single pages and fills in the number to keep with each. False
    /// if that is not possible now.
    fn split(&mut self, _pfn: Pfn, _owner: u32, _numbers: &mut [u32]) -> bool {
        false
    }

    /// The state of a page that reclaim has taken off the LRU; `owner` is the number kept with it.
    fn page_state(&mut self, _pfn: Pfn, _owner: u32) -> PageState {
        PageState { locked: true, ..PageState::default() }
    }
    /// The references to the page since the last call, which also clears them.
    fn references(&mut self, _pfn: Pfn, _owner: u32) -> References {
        References::default()
    }
    /// As [`Owner::references`], where the LRU has generations. Only what tasks use in memory
    /// control groups that `counts` names counts, and is cleared. Besides, of each entry of a small
    /// page that was used it hands the pages used beside it to `found`, in the order of their
    /// entries, and clears their marks of use. Looked at are those of [`NEIGHBOURS`] entries of the
    /// same page table and mapping: the first or the last, if the page's is within half as many of
    /// that end, else those from half as many before it on. Only pages that `fits` names count. At
    /// the end of each window of more than one entry it names the table. A folio has an entry for
    /// each page and is named by its first; where all tiers decide, its entries from the first used
    /// one on that follow each other in a table are one, and all count as used.
    fn references_around(
        &mut self,
        pfn: Pfn,
        owner: u32,
        _counts: &dyn Fn(GroupId) -> bool,
        _fits: &dyn Fn(Pfn) -> bool,
        _found: &mut dyn FnMut(Around),
    ) -> References {
        self.references(pfn, owner)
    }
    /// As [`Owner::references`], where reclaim is for a memory control group's limit: what tasks
    /// outside of it use does not count, and is not cleared.
    #[inline(always)]
    fn references_within(&mut self, _m: &Memory, pfn: Pfn, owner: u32, _target: Option<GroupId>) -> References {
        self.references(pfn, owner)
    }
    /// Walks the page tables of an address space that the host has listed
    /// ([`Memory::lru_gen_add_mm`]): of each mapping that `walk` includes, in order, each table
    /// that it wants. Hands over the pages that were used and fit, clears their marks of use, and
    /// leaves each table with the number of its entries and of those. A huge page is an entry
    /// without a table.
    fn walk(&mut self, _m: &mut Memory, _mm: u32, _walk: &mut dyn TableWalk) {}
    /// Gives an anonymous page a slot in swap, which makes it dirty, and reports the swap space
    /// left ([`Memory::set_swap`]). False if there is no slot.
    fn add_to_swap(&mut self, _m: &mut Memory, _pfn: Pfn, _owner: u32) -> bool {
        false
    }
    /// The page is active again, so its swap slot may be freed.
    fn may_free_swap(&mut self, _m: &mut Memory, _pfn: Pfn, _owner: u32) {}
    /// Removes the page from all page tables. False if that is not possible now.
    fn unmap(&mut self, _pfn: Pfn, _owner: u32) -> bool {
        false
    }
    /// Reclaim begins to shrink lists: pages that it writes before the matching
    /// [`Owner::finish_plug`] may be submitted together (`blk_start_plug`). It may sleep between.
    #[inline(always)]
    fn start_plug(&mut self) {}
    /// Submits the pages that reclaim has written of these lists.
    #[inline(always)]
    fn finish_plug(&mut self) {}
    /// A number below this, drawn at random: the bin that a memory control group is put into, or
    /// where a walk over the bins begins.
    fn draw(&mut self, _below: u32) -> u32 {
        0
    }
    /// Starts writing the page.
    fn write_out(&mut self, _pfn: Pfn, _owner: u32) -> WriteOut {
        WriteOut::Kept
    }
    /// Releases the file system's private data on the page. False if it refuses.
    fn release(&mut self, _pfn: Pfn, _owner: u32) -> bool {
        true
    }
    /// The page is reclaimed and will be freed next; its owner keeps the shadow in its place.
    fn removed(&mut self, _pfn: Pfn, _owner: u32, _shadow: Option<Shadow>) {}
    /// Pages of the node's files that are dirty or being written.
    fn write_pending(&mut self, _node: NodeId) -> u64 {
        0
    }
    /// The node's pages by their use. Only a machine with `vm.zone_reclaim_mode` asks.
    fn node_pages(&mut self, _node: NodeId) -> NodePages {
        NodePages::default()
    }
    /// Whether the queue of some device that pages are written to is full.
    fn is_congested(&mut self) -> bool {
        false
    }
    /// Reclaim met dirty pages that nobody had queued for writing.
    fn wake_flushers(&mut self) {}
    /// The node's shrinker with this number, from 0; `None` after the last.
    fn shrinker(&mut self, _node: NodeId, _number: usize) -> Option<Shrinker> {
        None
    }
    /// Makes a shrinker scan this number of objects and free those it can within the limits of the
    /// reclaiming request: a file system's shrinker is not entered again from the file system.
    /// `None` if it cannot run now.
    fn shrink(&mut self, _m: &mut Memory, _node: NodeId, _number: usize, _objects: u64, _gfp: Gfp) -> Option<Shrunk> {
        None
    }
}

impl Memory {
    /// Makes an allocated order-0 page movable through operations of its owner, not on the LRU.
    pub fn set_movable_ops(&mut self, pfn: Pfn) {
        debug_assert!(self.frames.tag(pfn) == Tag::new(FrameKind::Kernel, Order::ZERO));
        self.frames.set(pfn, FrameKind::MovableOps, Order::ZERO);
    }

    /// Keeps a number for the owner with an allocated block: [`crate::state::Frames::set_owner`].
    #[inline(always)]
    pub fn set_owner(&mut self, pfn: Pfn, order: Order, owner: u32) {
        self.frames.set_owner(pfn, order, owner);
    }
}
