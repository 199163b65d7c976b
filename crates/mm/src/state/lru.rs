//! The LRU lists: their pages, their order, and what is kept with each page.
//!
//! A node has an active and an inactive list each for anonymous and for file pages, and counts its
//! unevictable pages. Up to 4.7 each zone has its own lists. New pages enter at the head, reclaim
//! takes from the tail. A page carries two bytes of flags and counts, and its position in its list
//! (four bytes); the list takes four to seven more. Source: kernel-behaviour §4.1.
//!
//! A machine whose memory cannot be reclaimed (only anonymous pages, no swap) may leave the order
//! out ([`Lru::is_ordered`]): its pages are counted as inactive anonymous ones, and nothing of this
//! is touched.

use super::generations::{Generations, Used};
use super::list::{List, ListPos};
use super::mm_list::MmList;
use super::{FrameKind, Node, Stats, Table, Tag, Zone};
use crate::prefetch::prefetch;
use crate::types::{Backing, CpuId, LruList, LruvecId, NodeId, Order, Pfn, ZoneId};
use crate::vmstat::counters;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::BitOr;

/// The LRU's flags of a page, named as the kernel's page flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageFlags(u8);

impl PageFlags {
    /// No flags: a new anonymous page.
    pub const ANON: PageFlags = PageFlags(0);
    /// A file page; the kernel's flag (swapbacked) is the inverse.
    pub const FILE: PageFlags = PageFlags(1);
    /// On an active list, or on the way there.
    pub const ACTIVE: PageFlags = PageFlags(2);
    /// Used once since it was last scanned.
    pub const REFERENCED: PageFlags = PageFlags(4);
    pub const WORKINGSET: PageFlags = PageFlags(8);
    pub const UNEVICTABLE: PageFlags = PageFlags(16);
    /// Reclaim it as soon as it is written.
    pub const RECLAIM: PageFlags = PageFlags(32);
    /// Its owner has freed it, but a batch still holds it; it is freed with the batch.
    pub(crate) const RELEASED: PageFlags = PageFlags(64);
    /// In a batch for early reclaim, and must be written first.
    pub(crate) const WRITE_FIRST: PageFlags = PageFlags(128);

    /// Whether all flags of `o` are set.
    #[inline(always)]
    pub const fn has(self, o: PageFlags) -> bool {
        self.0 & o.0 == o.0
    }
    /// These flags without those of `o`.
    #[inline(always)]
    pub const fn without(self, o: PageFlags) -> PageFlags {
        PageFlags(self.0 & !o.0)
    }
    /// Whether the page is a file's or anonymous.
    #[inline(always)]
    pub const fn backing(self) -> Backing {
        if self.has(PageFlags::FILE) { Backing::File } else { Backing::Anon }
    }
    /// The list a page with these flags belongs on.
    #[inline(always)]
    pub const fn list(self) -> LruList {
        if self.has(PageFlags::UNEVICTABLE) {
            return LruList::Unevictable;
        }
        let backing = self.backing();
        if self.has(PageFlags::ACTIVE) { backing.active() } else { backing.inactive() }
    }
}

impl BitOr for PageFlags {
    type Output = PageFlags;
    fn bitor(self, o: PageFlags) -> PageFlags {
        PageFlags(self.0 | o.0)
    }
}

/// A page's flags, and the number of batches that hold it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Known(u16);

impl Known {
    /// A page with these flags that no batch holds.
    #[inline(always)]
    pub(crate) const fn new(flags: PageFlags) -> Known {
        Known(flags.0 as u16)
    }
    /// The same, held by one more batch.
    #[inline(always)]
    pub(crate) const fn held(self) -> Known {
        Known(self.0 + (1 << 8))
    }
    #[inline(always)]
    pub(crate) const fn flags(self) -> PageFlags {
        PageFlags(self.0 as u8)
    }
    #[inline(always)]
    pub(crate) const fn holds(self) -> u8 {
        (self.0 >> 8) as u8
    }
}

counters! {
    /// A counter of a node that CPUs keep parts of; the sizes of the LRU lists come before these.
    pub enum NodeStat {
        /// Anonymous pages isolated from their lists.
        IsolatedAnon(LruList::COUNT as u8) = "nr_isolated_anon", "pages", Either, level;
        /// File pages isolated from their lists.
        IsolatedFile = "nr_isolated_file", "pages", Either, level;
        /// Evicted anonymous pages that came back.
        WorkingsetRefaultAnon = "workingset_refault_anon", "pages", Fewer;
        /// Evicted file pages that came back.
        WorkingsetRefaultFile = "workingset_refault_file", "pages", Fewer;
        /// Anonymous pages that came back soon enough to be active.
        WorkingsetActivateAnon = "workingset_activate_anon", "pages", Fewer;
        /// File pages that came back soon enough to be active.
        WorkingsetActivateFile = "workingset_activate_file", "pages", Fewer;
        /// Anonymous pages that came back and had been active before.
        WorkingsetRestoreAnon = "workingset_restore_anon", "pages", Fewer;
        /// File pages that came back and had been active before.
        WorkingsetRestoreFile = "workingset_restore_file", "pages", Fewer;
        /// Pages that reclaim wrote out.
        VmscanWrite = "nr_vmscan_write", "pages", Fewer;
        /// Dirty pages that reclaim met and marked for reclaim after writeback.
        VmscanImmediate = "nr_vmscan_immediate_reclaim", "pages", Fewer;
        /// Anonymous pages that were scanned and stayed; from 7.3 on.
        RotateAnon = "pgrotate_anon", "pages", Either;
        /// File pages that were scanned and stayed; from 7.3 on.
        RotateFile = "pgrotate_file", "pages", Either;
    }
}

impl NodeStat {
    /// The lists' sizes included.
    pub const COUNT: usize = LruList::COUNT + NodeStat::ALL.len();

    pub(crate) const fn isolated(of: Backing) -> NodeStat {
        match of {
            Backing::Anon => NodeStat::IsolatedAnon,
            Backing::File => NodeStat::IsolatedFile,
        }
    }
    pub(crate) const fn refault(of: Backing) -> NodeStat {
        match of {
            Backing::Anon => NodeStat::WorkingsetRefaultAnon,
            Backing::File => NodeStat::WorkingsetRefaultFile,
        }
    }
    pub(crate) const fn activate(of: Backing) -> NodeStat {
        match of {
            Backing::Anon => NodeStat::WorkingsetActivateAnon,
            Backing::File => NodeStat::WorkingsetActivateFile,
        }
    }
    pub(crate) const fn restore(of: Backing) -> NodeStat {
        match of {
            Backing::Anon => NodeStat::WorkingsetRestoreAnon,
            Backing::File => NodeStat::WorkingsetRestoreFile,
        }
    }
    pub(crate) const fn rotate(of: Backing) -> NodeStat {
        match of {
            Backing::Anon => NodeStat::RotateAnon,
            Backing::File => NodeStat::RotateFile,
        }
    }
}

/// How far reclaim has read the counters that costs come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CostsRead {
    /// Pages scanned that stayed.
    pub rotated: u64,
    /// Pages written, or read again.
    pub io: u64,
}

/// The LRU lists of a node, or of a zone where the kernel keeps one set a zone, and reclaim's
/// memory of them.
#[derive(Clone, Debug)]
pub struct Lruvec {
    /// The node of these lists, or of their zone.
    pub node: NodeId,
    /// The zones whose pages are listed, lowest first.
    pub(crate) zones: Vec<ZoneId>,
    pub(crate) lists: [List; 4],
    /// The generations of the pages, where they are in some instead of on these lists.
    pub(crate) generations: Option<Box<Generations>>,
    /// The sizes of the lists, and the node's other counters.
    pub(crate) stats: Stats<{ NodeStat::COUNT }>,
    /// A CPU's part of a counter is folded in above this.
    pub(crate) stat_threshold: i64,
    /// Recent cost of reclaim from the anonymous and from the file lists, in pages.
    pub cost: [u64; 2],
    /// The part of it that has been read from counters, where costs are read from them.
    pub costs_read: [CostsRead; 2],
    /// Pages of the anonymous and of the file lists that were scanned recently. Up to 5.7 the share
    /// of `recent_rotated` among them decides the balance of the two.
    pub recent_scanned: [u64; 2],
    /// Those of [`Lruvec::recent_scanned`] that were in use.
    pub recent_rotated: [u64; 2],
    /// The clock of evicted pages, which each eviction and activation advances.
    pub nonresident_age: u64,
    /// Activations by refault when reclaim last ended, anonymous and file.
    pub refaults: [u64; 2],
    /// All dirty pages that were met are waiting to be written, for the second time.
    pub congested: bool,
    /// Pages that nobody has queued for writing are at the tail of the lists, so kswapd may write.
    pub dirty: bool,
    /// All pages that were met were under writeback.
    pub writeback: bool,
    /// The counts of these lists, where there are memory control groups.
    pub in_group: Option<Box<GroupLists>>,
}

/// The counts of a memory control group's lists. The node's own counters are kept with the root's
/// lists.
#[derive(Clone, Debug)]
pub struct GroupLists {
    /// The lists' sizes in each of the node's zones: these are exact.
    pub sizes: Vec<[i64; LruList::COUNT]>,
    /// The counters of the group alone.
    pub own: [i64; NodeStat::COUNT],
    /// The counters with those of all groups below, as they were when they were last added up.
    pub flushed: [i64; NodeStat::COUNT],
}

impl Lruvec {
    /// The zones whose pages are listed, lowest first.
    pub fn zones(&self) -> &[ZoneId] {
        &self.zones
    }

    /// Empty lists for these zones of a node.
    pub(crate) fn new(node: NodeId, zones: Vec<ZoneId>, cpus: usize) -> Lruvec {
        Lruvec {
            node,
            zones,
            lists: [const { List::new() }; 4],
            generations: None,
            stats: Stats::new(cpus),
            stat_threshold: 0,
            cost: [0; 2],
            costs_read: [CostsRead::default(); 2],
            recent_scanned: [0; 2],
            recent_rotated: [0; 2],
            nonresident_age: 0,
            refaults: [0; 2],
            congested: false,
            dirty: false,
            writeback: false,
            in_group: None,
        }
    }

    /// Counts for a group, from nothing on.
    pub(crate) fn count_for_group(&mut self) {
        let counters = [0; NodeStat::COUNT];
        let sizes = vec![[0; LruList::COUNT]; self.zones.len()];
        self.in_group = Some(Box::new(GroupLists { sizes, own: counters, flushed: counters }));
    }

    /// A counter as reclaim reads it of these lists (`lruvec_page_state`): of a group, as it was
    /// when last added up.
    #[inline(always)]
    pub(crate) fn state(&self, item: usize) -> u64 {
        match &self.in_group {
            None => self.stats.get(item),
            Some(counted) => counted.flushed[item].max(0) as u64,
        }
    }
    /// The same of a list's size.
    #[inline(always)]
    pub(crate) fn size_state(&self, list: LruList) -> u64 {
        self.state(list.index())
    }

    /// The pages of a list, newest first. Empty if the order is not kept.
    pub fn list(&self, list: LruList) -> impl Iterator<Item = Pfn> + '_ {
        self.lists.get(list.index()).into_iter().flat_map(List::iter)
    }
    /// A list's size in pages as reclaim reads it.
    #[inline(always)]
    pub fn size(&self, list: LruList) -> u64 {
        self.stats.get(list.index())
    }
    /// A list's size, with every CPU's part folded in.
    pub fn size_exact(&self, list: LruList) -> i64 {
        self.stats.exact(list.index())
    }
    /// A CPU's part of a list's size, or of a counter ([`NodeStat`]), not yet folded in.
    pub fn unfolded(&self, item: usize, cpu: CpuId) -> i64 {
        self.stats.part(item, cpu)
    }
    /// A counter as reclaim reads it.
    #[inline(always)]
    pub fn stat(&self, item: NodeStat) -> u64 {
        self.stats.get(item as usize)
    }
    /// A counter, with every CPU's part folded in.
    pub fn stat_exact(&self, item: NodeStat) -> u64 {
        self.stats.exact(item as usize).max(0) as u64
    }
    /// Adds pages that reclaim has written or marked. Up to 5.15 each counts as one, by a function
    /// of its own.
    pub(crate) fn count_met(&mut self, item: NodeStat, cpu: CpuId, pages: u64, singly: bool) {
        if singly {
            self.stats.increment(item as usize, cpu, self.stat_threshold);
        } else {
            self.count(item, cpu, pages as i64);
        }
    }
    #[inline(always)]
    pub(crate) fn count(&mut self, item: NodeStat, cpu: CpuId, delta: i64) {
        self.stats.add(item as usize, cpu, delta, self.stat_threshold);
    }
}

/// A pagevec's operation on its pages. Batches are drained in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum BatchKind {
    /// Add to the LRU.
    Add,
    /// Written, and next to be reclaimed: move to the tail of the inactive list.
    Rotate,
    /// A file page that could not be dropped: reclaim it soon.
    DeactivateFile,
    /// Move to the inactive list.
    Deactivate,
    /// Anonymous and no longer needed: drop it like a file page.
    Lazyfree,
    /// Move to the active list.
    Activate,
}

impl BatchKind {
    /// In the order of draining.
    pub const ALL: [BatchKind; 6] = [
        BatchKind::Add,
        BatchKind::Rotate,
        BatchKind::DeactivateFile,
        BatchKind::Deactivate,
        BatchKind::Lazyfree,
        BatchKind::Activate,
    ];
}

/// The largest batch of any generation.
pub(crate) const BATCH_MAX: usize = 31;

/// Pages on their way, each with a reference held by the batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LruBatch {
    pages: [Pfn; BATCH_MAX],
    len: u8,
}

impl LruBatch {
    const EMPTY: LruBatch = LruBatch { pages: [Pfn::new(0); BATCH_MAX], len: 0 };

    #[inline(always)]
    pub(crate) fn push(&mut self, pfn: Pfn) -> usize {
        self.pages[usize::from(self.len)] = pfn;
        self.len += 1;
        usize::from(self.len)
    }
    pub(crate) fn pages(&self) -> &[Pfn] {
        &self.pages[..usize::from(self.len)]
    }
    /// Empties the batch and returns its pages.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> LruBatch {
        let taken = *self;
        self.len = 0;
        taken
    }
}

/// Slots for swapped-out pages on all devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SwapSpace {
    pub total: u64,
    pub free: u64,
}

/// The LRU of a machine.
#[derive(Clone)]
pub struct Lru {
    ordered: bool,
    pub(super) generations: bool,
    /// Flags in the low byte, the number of batches that hold the page in the high one.
    words: Vec<u16>,
    places: Vec<u32>,
    /// The byte that pages carry besides, where they are in generations.
    pub(super) used: Vec<Used>,
    pub(crate) vecs: Table<LruvecId, Lruvec>,
    /// How many of these there are without memory control groups; those of the groups follow.
    of_root: usize,
    pub(crate) batches: Table<CpuId, [LruBatch; 6]>,
    pub(crate) swap: SwapSpace,
    /// Pages that reclaim passes over wait here. Kept to reuse its allocation.
    pub(crate) aside: Vec<Pfn>,
    /// Address spaces whose page tables aging walks.
    pub(crate) mms: MmList,
    /// Page tables in which enough was found used beside a page. Kept to reuse its allocation.
    pub(crate) hot_tables: Vec<u64>,
    /// The page that comes back next, and the count of uses that its shadow has, where generations
    /// keep it.
    pub(crate) comes_back: Option<(Pfn, u8)>,
}

// The memory kept for a page in all.
const _: () = assert!(super::Frames::BYTES_PER_FRAME + Lru::MOST_BYTES_PER_FRAME <= 18);

impl Lru {
    /// Bytes for each page on an LRU with order, beside [`super::Frames::BYTES_PER_FRAME`].
    pub const BYTES_PER_FRAME: usize = size_of::<u16>() + size_of::<u32>() + List::BYTES_PER_BLOCK;
    /// The most bytes for each: lists have holes, and rings that have just grown.
    pub const MOST_BYTES_PER_FRAME: usize = Lru::BYTES_PER_FRAME - List::BYTES_PER_BLOCK + List::MOST_BYTES_PER_BLOCK;

    pub(crate) fn new(ordered: bool, frames: usize, vecs: Table<LruvecId, Lruvec>, cpus: usize) -> Lru {
        let kept = if ordered { frames } else { 0 };
        Lru {
            ordered,
            generations: false,
            used: Vec::new(),
            words: vec![0; kept],
            places: vec![0; kept],
            of_root: vecs.len(),
            vecs,
            batches: (0..cpus).map(|_| [LruBatch::EMPTY; 6]).collect(),
            swap: SwapSpace::default(),
            aside: Vec::new(),
            mms: MmList::default(),
            hot_tables: Vec::new(),
            comes_back: None,
        }
    }

    /// Adds lists for memory control groups, as many as there are of the root for each.
    pub(crate) fn keep_groups(&mut self, groups: usize, cpus: usize) {
        let of_root = || self.vecs.iter().take(self.of_root);
        let more = (1..groups).flat_map(|_| of_root().map(|vec| Lruvec::new(vec.node, vec.zones.clone(), cpus)));
        let mut vecs: Vec<Lruvec> = of_root().cloned().chain(more).collect();
        vecs.iter_mut().for_each(Lruvec::count_for_group);
        if self.generations {
            vecs.iter_mut().for_each(Lruvec::begin_generations);
        }
        self.vecs = vecs.into_iter().collect();
    }

    /// All lists by node and, where each zone has its own, lowest zone first. With memory control
    /// groups, the root's come first, and then those of each.
    pub fn vecs(&self) -> &[Lruvec] {
        &self.vecs
    }

    /// A node's lists; with memory control groups, the root's.
    ///
    /// # Panics
    /// If the kernel keeps lists by zone.
    pub fn of_node(&self, node: NodeId) -> &Lruvec {
        let of_root = self.vecs.iter().take(self.of_root);
        let mut of_node = of_root.filter(|vec| vec.node == node);
        let vec = of_node.next().expect("every node has lists");
        assert!(of_node.next().is_none(), "the lists of this node's zones are kept apart");
        vec
    }

    /// Whether the order of pages is kept, so that reclaim can find the oldest.
    #[inline(always)]
    pub fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Frames of which something is kept.
    pub(super) fn nr_frames(&self) -> usize {
        self.words.len()
    }

    /// Whether nothing is kept of any page, as when the order is not.
    pub(crate) fn is_unused(&self) -> bool {
        let no_list = self.vecs.iter().all(|vec| vec.lists.iter().all(List::is_empty));
        no_list && self.words.is_empty() && self.places.is_empty()
    }

    /// A user page's flags, if the order is kept.
    #[inline(always)]
    pub fn flags(&self, pfn: Pfn) -> PageFlags {
        PageFlags(self.words.get(pfn.index()).map_or(0, |w| *w as u8))
    }

    /// Whether the page's owner has freed it, but batches still hold it. The owner must not be
    /// asked about it.
    #[inline(always)]
    pub fn is_released(&self, pfn: Pfn) -> bool {
        self.flags(pfn).has(PageFlags::RELEASED)
    }

    /// Flags and holds of a page; the order must be kept.
    #[inline(always)]
    pub(crate) fn known(&self, pfn: Pfn) -> Known {
        Known(self.words[pfn.index()])
    }

    #[inline(always)]
    pub(crate) fn set_known(&mut self, pfn: Pfn, known: Known) {
        self.words[pfn.index()] = known.0;
    }

    #[inline(always)]
    pub(crate) fn set_flags(&mut self, pfn: Pfn, flags: PageFlags) {
        let word = &mut self.words[pfn.index()];
        *word = *word & 0xff00 | u16::from(flags.0);
    }

    /// Batches that hold the page; a page in two of them counts twice.
    #[inline(always)]
    pub fn holds(&self, pfn: Pfn) -> u8 {
        self.words.get(pfn.index()).map_or(0, |w| (*w >> 8) as u8)
    }

    #[inline(always)]
    pub(crate) fn hold(&mut self, pfn: Pfn) {
        let word = &mut self.words[pfn.index()];
        *word = word.checked_add(1 << 8).expect("fewer than 256 batches hold a page");
    }

    #[inline(always)]
    pub(crate) fn let_go(&mut self, pfn: Pfn) {
        debug_assert!(self.holds(pfn) > 0);
        self.words[pfn.index()] -= 1 << 8;
    }

    /// Pages in a CPU's batch.
    pub fn batch(&self, cpu: CpuId, kind: BatchKind) -> &[Pfn] {
        if self.ordered { self.batches[cpu][kind as usize].pages() } else { &[] }
    }

    /// The position of a page in its list.
    #[inline(always)]
    pub(crate) fn place(&self, pfn: Pfn) -> ListPos {
        ListPos(self.places[pfn.index()])
    }

    #[inline(always)]
    pub(super) fn set_place(&mut self, pfn: Pfn, ListPos(place): ListPos) {
        self.places[pfn.index()] = place;
    }

    /// Prefetches what is kept of a page.
    #[inline(always)]
    pub(crate) fn prefetch(&self, pfn: u32) {
        prefetch(self.words.as_ptr().wrapping_add(pfn as usize));
        prefetch(self.places.as_ptr().wrapping_add(pfn as usize));
    }

    /// Links a page into its list, at the head or at the tail.
    #[inline(always)]
    pub(crate) fn link(&mut self, lruvec: LruvecId, pfn: Pfn, list: LruList, tail: bool) {
        if let Some(list) = self.vecs[lruvec].lists.get_mut(list.index()) {
            let place = if tail { list.push_back(pfn) } else { list.push_front(pfn) };
            self.places[pfn.index()] = place.0;
        }
    }

    /// Links pages into their list one after the other, at the head.
    #[inline(always)]
    pub(crate) fn link_row(&mut self, lruvec: LruvecId, pages: &[Pfn], list: LruList) {
        if let Some(list) = self.vecs[lruvec].lists.get_mut(list.index()) {
            let first = list.push_front_row(pages);
            for (i, pfn) in (0..).zip(pages) {
                self.places[pfn.index()] = first.before(i).0;
            }
        }
    }

    /// Unlinks pages that stand one before the other in their list, the rearmost first.
    #[inline(always)]
    pub(crate) fn unlink_row(&mut self, lruvec: LruvecId, pages: &[Pfn], list: LruList) {
        let first = self.place(pages[0]);
        if let Some(list) = self.vecs[lruvec].lists.get_mut(list.index()) {
            list.remove_row(pages, first);
            if list.is_sparse() {
                list.pack(|pfn, place| self.places[pfn.index()] = place.0);
            }
        }
    }

    /// Takes a page out of its list.
    #[inline(always)]
    pub(crate) fn unlink(&mut self, lruvec: LruvecId, pfn: Pfn, list: LruList) {
        let place = self.place(pfn);
        if let Some(list) = self.vecs[lruvec].lists.get_mut(list.index()) {
            list.remove(pfn, place);
            if list.is_sparse() {
                list.pack(|pfn, place| self.places[pfn.index()] = place.0);
            }
        }
    }
}

/// The order of a page on the LRU, from its frame's tag; `None` for other frames.
#[inline(always)]
pub(crate) fn order_on_lru(tag: Tag) -> Option<Order> {
    (tag.kind() == FrameKind::Lru).then(|| tag.order())
}

/// One set of lists for each node, or each zone.
pub(crate) fn new_lruvecs(nodes: &[Node], zones: &[Zone], cpus: usize, per_zone: bool) -> Table<LruvecId, Lruvec> {
    if per_zone {
        return zones.iter().map(|zone| Lruvec::new(zone.node, Vec::from([zone.id]), cpus)).collect();
    }
    nodes.iter().map(|node| Lruvec::new(node.id, node.zones.clone(), cpus)).collect()
}
