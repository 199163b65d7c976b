//! The owner of the pages: files with pages and shadows, devices that write at once or on request,
//! and a cache of objects of a page each.

use super::counted::{Counted, Counts};
use crate::recording::NODE;
use crate::replay::daemons::{self, Beside, Host};
use crate::trace::BlockId;
use crate::trace::lru::{FilePage, MAX_FILES, ProcessPage};
use kontig_mm::types::PAGEBLOCK_PAGES;
use kontig_mm::{
    Around, CpuId, Gfp, GroupId, Memory, MigrateOutcome, NEIGHBOURS, NodeId, NodePages, NodeSet, Order, Owner,
    PageState, Pfn, References, Shadow, Shrinker, Shrunk, SwapSpace, TableWalk, Turn, Wait, WriteOut,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Entry of a file's tree.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entry {
    /// Number of the cached page.
    Page(u32),
    Shadow(Shadow),
}

/// A page with an owner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub(super) pfn: Pfn,
    pub(super) order: Order,
    pub(super) of: Of,
    pub(super) dirty: bool,
    pub(super) writeback: bool,
    /// Under writeback on a slow device.
    pub(super) held: bool,
    /// For a process's page: mapped, with its accessed and dirty bits.
    pub(super) mapped: bool,
    pub(super) young: bool,
    pub(super) written: bool,
    /// It has a swap slot.
    pub(super) swap_cache: bool,
    /// The page table entry is writable.
    pub(super) writable: bool,
    /// It is being read in.
    pub(super) locked: bool,
}

impl Kept {
    fn new(pfn: Pfn, order: Order, of: Of) -> Kept {
        let (dirty, writeback, held) = (false, false, false);
        let (mapped, young, written, swap_cache) = (false, false, false, false);
        let (writable, locked) = (false, false);
        Kept { pfn, order, of, dirty, writeback, held, mapped, young, written, swap_cache, writable, locked }
    }
}

/// Page table entry of the process.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mapped {
    /// Number of the mapped page.
    Page(u32),
    /// A swap entry; the page, while it is in the swap cache, or its shadow.
    Swapped { cached: Option<u32>, shadow: Option<Shadow> },
    /// The zero page: read, but never written.
    Zeroes,
}

/// Owner of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Of {
    File(FilePage),
    Process(ProcessPage),
    Block(BlockId),
    Nobody,
}

/// All owners of pages.
pub(super) struct Files {
    /// By number, which the engine keeps with the page.
    pages: Vec<Kept>,
    unused: Vec<u32>,
    pub(super) files: BTreeMap<FilePage, Entry>,
    pub(super) process: BTreeMap<ProcessPage, Mapped>,
    pub(super) slow: [bool; MAX_FILES as usize],
    /// Pages under writeback on slow devices, oldest first.
    pub(super) writing: VecDeque<u32>,
    /// Pages of the shrinker's cache, oldest first.
    pub(super) objects: VecDeque<Pfn>,
    pub(super) blocks: BTreeMap<u32, (Pfn, Order)>,
    pub(super) dumps: u32,
    /// The node that requests prefer, and all that they may use; none for that node alone.
    pub(super) prefers: NodeId,
    pub(super) allowed: NodeSet,
    /// The memory control group that the process is in.
    pub(super) group: GroupId,
    /// Pages that it charged above `memory.high` since it came into the kernel.
    pub(super) over_high: u64,
    /// The group that each of the process's pages in swap was charged to.
    swapped_of: BTreeMap<ProcessPage, GroupId>,
    /// Pages of the process's memory, and the entry of its first page in that page's table.
    process_pages: u32,
    first_entry: u32,
    /// Page tables whose own mark of use is set.
    used_tables: BTreeSet<u32>,
    /// The state of the generator from which the module has the kernel draw.
    drawn: u64,
    pub(super) counted: Counted,
    beside: Beside,
}

/// The address space of the process.
pub(super) const PROCESS: u32 = 0;

/// `seeks` and `batch` of the objects' shrinker.
const SEEKS: u32 = 2;
const SHRINK_BATCH: u64 = 128;

impl Files {
    pub(super) fn new(m: &Memory, counted: Counted, kcompactd_is_real_time: bool) -> Files {
        Files {
            pages: Vec::new(),
            unused: Vec::new(),
            files: BTreeMap::new(),
            process: BTreeMap::new(),
            slow: [false; MAX_FILES as usize],
            writing: VecDeque::new(),
            objects: VecDeque::new(),
            blocks: BTreeMap::new(),
            dumps: 0,
            prefers: NODE,
            allowed: NodeSet::NONE,
            group: GroupId::ROOT,
            over_high: 0,
            swapped_of: BTreeMap::new(),
            process_pages: 0,
            first_entry: 0,
            used_tables: BTreeSet::new(),
            drawn: 0,
            counted,
            beside: Beside::new(m, kcompactd_is_real_time),
        }
    }

    /// The group that a page in swap was charged to.
    pub(super) fn swapped_of(&self, page: ProcessPage) -> GroupId {
        self.swapped_of.get(&page).copied().unwrap_or_default()
    }

    /// Moves the task to another CPU.
    pub(super) fn run_on(&mut self, cpu: CpuId) {
        self.beside.run_on(cpu);
    }

    /// Gives the daemons a CPU of their own.
    pub(super) fn keep_daemons_on(&mut self, cpu: CpuId) {
        self.beside.have_own_cpu(cpu);
    }

    /// The CPU at work.
    pub(super) fn cpu(&self) -> CpuId {
        self.beside.cpu()
    }

    /// The process has this much memory, and its first page is this entry of its page table.
    pub(super) fn set_process(&mut self, pages: u32, first_entry: u32) {
        (self.process_pages, self.first_entry) = (pages, first_entry);
    }

    /// Number of a cached page, or of the folio it is in.
    pub(super) fn find(&self, page: FilePage) -> Option<u32> {
        let from = FilePage { index: page.index & !0x3ff, ..page };
        self.files.range(from..=page).rev().find_map(|(at, entry)| match entry {
            Entry::Page(number) if page.index - at.index < self.kept(*number).order.pages() => Some(*number),
            _ => None,
        })
    }

    /// Entries of a file in a folio's range.
    fn range(&self, first: FilePage, order: Order) -> impl Iterator<Item = (FilePage, Entry)> {
        let end = FilePage { index: first.index + order.pages(), ..first };
        self.files.range(first..end).map(|(at, entry)| (*at, *entry))
    }

    /// Pages of the process that are looked at around one: in its page table, in its memory, and as
    /// many as the engine asks for.
    fn window(&self, ProcessPage(at): ProcessPage) -> std::ops::Range<u32> {
        let (most, place) = (NEIGHBOURS as u32, at + self.first_entry);
        let table = place / PAGEBLOCK_PAGES * PAGEBLOCK_PAGES;
        let start = table.saturating_sub(self.first_entry);
        let end = (table + PAGEBLOCK_PAGES - self.first_entry).min(self.process_pages);
        match () {
            () if end - start <= most => start..end,
            () if at - start < most / 2 => start..start + most,
            () if end - at < most / 2 => end - most..end,
            () => at - most / 2..at + most / 2,
        }
    }

    /// The number of the page table that maps a page of the process.
    fn table(&self, at: u32) -> u32 {
        (at + self.first_entry) / PAGEBLOCK_PAGES
    }

    /// The process uses a page, and so the page table that maps it.
    pub(super) fn use_table(&mut self, ProcessPage(at): ProcessPage) {
        self.used_tables.insert(self.table(at));
    }

    /// Takes the mark of use off a page of the process, if it has one and fits; whether so.
    fn take_young(&mut self, at: u32, fits: &dyn Fn(Pfn) -> bool, found: impl FnOnce(Pfn)) -> bool {
        let Some(Mapped::Page(number)) = self.process.get(&ProcessPage(at)) else { return false };
        let kept = &mut self.pages[*number as usize];
        let takes = kept.mapped && kept.young && fits(kept.pfn);
        if takes {
            kept.young = false;
            found(kept.pfn);
        }
        takes
    }

    /// Whether any page of this range is cached; of a split folio only some may be.
    pub(super) fn is_in_part(&self, first: FilePage, order: Order) -> bool {
        self.range(first, order).any(|(_, entry)| matches!(entry, Entry::Page(_)))
    }

    /// Removes the shadows in this range. Returns the numbers of its pages.
    pub(super) fn cut(&mut self, first: FilePage, order: Order) -> Vec<u32> {
        let mut pages = Vec::new();
        for (at, entry) in self.range(first, order).collect::<Vec<_>>() {
            match entry {
                Entry::Page(number) => pages.push(number),
                Entry::Shadow(_) => drop(self.files.remove(&at)),
            }
        }
        pages
    }

    pub(super) fn kept(&self, number: u32) -> &Kept {
        &self.pages[number as usize]
    }
    pub(super) fn kept_mut(&mut self, number: u32) -> &mut Kept {
        &mut self.pages[number as usize]
    }

    /// Marks a page as dirty or as clean.
    pub(super) fn set_dirty(&mut self, number: u32, dirty: bool) {
        let (cpu, kept) = (self.cpu(), &mut self.pages[number as usize]);
        let was = std::mem::replace(&mut kept.dirty, dirty);
        if was != dirty && matches!(kept.of, Of::File(_)) {
            let pages = i64::from(kept.order.pages());
            self.counted.add(Counts::Dirty, kept.pfn, cpu, if dirty { pages } else { -pages });
        }
    }

    /// Adds a page to the swap cache or removes it from there.
    pub(super) fn set_swap_cache(&mut self, number: u32, cached: bool) {
        let (cpu, kept) = (self.cpu(), &mut self.pages[number as usize]);
        if std::mem::replace(&mut kept.swap_cache, cached) != cached {
            self.counted.add(Counts::Cached, kept.pfn, cpu, if cached { 1 } else { -1 });
        }
    }

    fn keep(&mut self, kept: Kept) -> u32 {
        if let Some(number) = self.unused.pop() {
            self.pages[number as usize] = kept;
            return number;
        }
        self.pages.push(kept);
        self.pages.len() as u32 - 1
    }

    /// Adds a page to a file. Returns its number and the shadow it replaced.
    pub(super) fn add(&mut self, page: FilePage, pfn: Pfn, order: Order) -> (u32, Option<Shadow>) {
        let number = self.keep(Kept::new(pfn, order, Of::File(page)));
        let mut shadow = None;
        for i in 0..order.pages() {
            let at = FilePage { index: page.index + i, ..page };
            if let Some(Entry::Shadow(last)) = self.files.remove(&at) {
                shadow = Some(last);
            }
        }
        self.files.insert(page, Entry::Page(number));
        self.counted.add(Counts::Cached, pfn, self.cpu(), order.pages().into());
        (number, shadow)
    }

    /// Adds a movable block of the trace. Returns its number.
    pub(super) fn keep_block(&mut self, id: BlockId) -> u32 {
        self.keep(Kept::new(Pfn::default(), Order::ZERO, Of::Block(id)))
    }

    /// Maps a page for the process. Returns its number.
    pub(super) fn map(&mut self, page: ProcessPage, pfn: Pfn) -> u32 {
        self.keep(Kept::new(pfn, Order::ZERO, Of::Process(page)))
    }

    /// Removes a page from its file or process, leaving the shadow, if any, in its place.
    pub(super) fn remove(&mut self, number: u32, shadow: Option<Shadow>) -> Kept {
        let kept = *self.kept(number);
        self.set_swap_cache(number, false);
        if let Of::File(_) = kept.of {
            self.set_dirty(number, false);
            self.counted.add(Counts::Cached, kept.pfn, self.cpu(), -i64::from(kept.order.pages()));
        }
        match (kept.of, shadow) {
            (Of::File(page), Some(shadow)) => drop(self.files.insert(page, Entry::Shadow(shadow))),
            (Of::File(page), None) => drop(self.files.remove(&page)),
            (Of::Process(page), Some(_)) => drop(self.process.insert(page, Mapped::Swapped { cached: None, shadow })),
            (Of::Process(_), None) | (Of::Block(_) | Of::Nobody, _) => {}
        }
        self.kept_mut(number).of = Of::Nobody;
        self.unused.push(number);
        kept
    }
}

/// Frees a swap slot.
pub(super) fn free_place(m: &mut Memory) {
    let space = m.swap_space();
    m.set_swap(SwapSpace { free: space.free + 1, ..space });
}

impl Host for Files {
    fn beside(&mut self) -> &mut Beside {
        &mut self.beside
    }
}

impl Owner for Files {
    fn is_awaited(&self, m: &Memory) -> bool {
        self.beside.is_awaited(m)
    }
    fn turn(&mut self, m: &mut Memory, turn: Turn) {
        daemons::turn(self, m, turn);
    }
    fn wait(&mut self, m: &mut Memory, _: Wait) {
        daemons::run(self, m);
    }
    fn may_isolate(&mut self, _: Pfn) -> bool {
        true
    }
    fn moves_after_writing(&mut self, _: Pfn, owner: u32) -> bool {
        // The module's files have no `migrate_folio`.
        let kept = self.kept(owner);
        kept.writeback || kept.dirty && matches!(kept.of, Of::File(_))
    }
    fn has_mapping(&mut self, _: Pfn, owner: u32) -> bool {
        let kept = self.kept(owner);
        matches!(kept.of, Of::File(_)) || kept.swap_cache
    }
    fn migrate(&mut self, _: Pfn, to: Pfn, owner: u32) -> MigrateOutcome {
        let kept = self.kept_mut(owner);
        if kept.held || kept.writeback {
            return MigrateOutcome::Busy;
        }
        kept.pfn = to;
        // Whether the process wrote to it is known from the page table entry alone, which migration
        // replaces.
        kept.dirty |= std::mem::take(&mut kept.written);
        if let Of::Block(id) = kept.of
            && let Some(block) = self.blocks.get_mut(&id.0)
        {
            block.0 = to;
        }
        MigrateOutcome::Moved
    }
    fn split(&mut self, pfn: Pfn, owner: u32, numbers: &mut [u32]) -> bool {
        let whole = *self.kept(owner);
        let Of::File(first) = whole.of else { return false };
        if whole.held || whole.writeback || whole.locked {
            return false;
        }
        for (i, number) in (0..).zip(numbers) {
            let page = FilePage { index: first.index + i, ..first };
            let part = Kept { pfn: pfn.plus(i), order: Order::ZERO, of: Of::File(page), ..whole };
            *number = if i == 0 { owner } else { self.keep(part) };
            *self.kept_mut(*number) = part;
            self.files.insert(page, Entry::Page(*number));
        }
        true
    }

    fn page_state(&mut self, _: Pfn, owner: u32) -> PageState {
        let kept = self.kept(owner);
        PageState {
            locked: kept.locked,
            mapped: kept.mapped,
            dirty: kept.dirty,
            writeback: kept.writeback,
            anon: matches!(kept.of, Of::Process(_)),
            swap_cache: kept.swap_cache,
            held: kept.held,
            ..PageState::default()
        }
    }
    fn references(&mut self, _: Pfn, owner: u32) -> References {
        let young = std::mem::take(&mut self.kept_mut(owner).young);
        References { ptes: u32::from(young), ..References::default() }
    }
    fn references_within(&mut self, m: &Memory, pfn: Pfn, owner: u32, target: Option<GroupId>) -> References {
        // The process uses the page, wherever it was charged.
        match target {
            Some(target) if !m.groups().is_within(self.group, target) => References::default(),
            _ => self.references(pfn, owner),
        }
    }
    fn add_to_swap(&mut self, m: &mut Memory, pfn: Pfn, owner: u32) -> bool {
        let space = m.swap_space();
        let Some(free) = space.free.checked_sub(1) else { return false };
        m.set_swap(SwapSpace { free, ..space });
        self.set_swap_cache(owner, true);
        self.set_dirty(owner, true);
        if let Of::Process(page) = self.kept(owner).of {
            self.swapped_of.insert(page, m.groups().of_page(pfn));
        }
        true
    }
    fn may_free_swap(&mut self, m: &mut Memory, _: Pfn, owner: u32) {
        if self.kept(owner).swap_cache {
            self.set_swap_cache(owner, false);
            self.set_dirty(owner, true);
            free_place(m);
        }
    }
    fn references_around(
        &mut self,
        pfn: Pfn,
        owner: u32,
        counts: &dyn Fn(GroupId) -> bool,
        fits: &dyn Fn(Pfn) -> bool,
        found: &mut dyn FnMut(Around),
    ) -> References {
        // The process uses the page, wherever it was charged.
        if !counts(self.group) {
            return References::default();
        }
        let by = self.references(pfn, owner);
        // The trace's files are not mapped.
        let Of::Process(page) = self.kept(owner).of else { return by };
        if by.ptes == 0 {
            return by;
        }
        let window = self.window(page);
        let mut young = 1;
        for at in window.clone() {
            young += u32::from(self.take_young(at, fits, |pfn| found(Around::Page(pfn))));
        }
        if window.len() > 1 {
            found(Around::Table { table: self.table(page.0).into(), entries: window.len() as u32, young });
        }
        by
    }
    fn walk(&mut self, m: &mut Memory, _: u32, walk: &mut dyn TableWalk) {
        // The module has the process count as used again when aging begins.
        m.lru_gen_use_mm(PROCESS);
        if !walk.includes_anon() {
            return;
        }
        let mut at = 0;
        while at < self.process_pages {
            let table = self.table(at);
            let end = ((table + 1) * PAGEBLOCK_PAGES - self.first_entry).min(self.process_pages);
            let (pages, first) = (at..end, at);
            at = end;
            // There is a table where anything was used.
            if self.process.range(ProcessPage(first)..ProcessPage(end)).next().is_none() {
                continue;
            }
            let mut used = self.used_tables.contains(&table);
            let wanted = walk.wants(m, table.into(), &mut used);
            if !used {
                self.used_tables.remove(&table);
            }
            if !wanted {
                continue;
            }
            let mut found = Vec::new();
            for at in pages {
                self.take_young(at, &|pfn| walk.fits(m, pfn), |pfn| found.push(pfn));
            }
            found.iter().for_each(|pfn| walk.found(m, *pfn));
            walk.leave(m, table.into(), end - first, found.len() as u32);
        }
    }
    fn draw(&mut self, below: u32) -> u32 {
        // As the module has the kernel draw.
        const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
        const INCREMENT: u64 = 1_442_695_040_888_963_407;
        self.drawn = self.drawn.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
        // Of a byte, as many parts.
        (((self.drawn >> 56) as u32) * below) >> 8
    }
    fn unmap(&mut self, _: Pfn, owner: u32) -> bool {
        let kept = self.kept_mut(owner);
        kept.mapped = false;
        kept.dirty |= std::mem::take(&mut kept.written);
        if let Of::Process(page) = kept.of {
            self.process.insert(page, Mapped::Swapped { cached: Some(owner), shadow: None });
        }
        true
    }
    fn write_out(&mut self, _: Pfn, owner: u32) -> WriteOut {
        self.set_dirty(owner, false);
        let Of::File(page) = self.kept(owner).of else { return WriteOut::Written };
        if !self.slow[usize::from(page.file)] {
            return WriteOut::Written;
        }
        let kept = self.kept_mut(owner);
        (kept.writeback, kept.held) = (true, true);
        self.writing.push_back(owner);
        WriteOut::Queued
    }
    fn removed(&mut self, _: Pfn, owner: u32, shadow: Option<Shadow>) {
        self.remove(owner, shadow);
    }
    fn write_pending(&mut self, _: NodeId) -> u64 {
        // Dirty pages of a process are not for the flushers.
        let pending = |kept: &&Kept| matches!(kept.of, Of::File(_)) && (kept.dirty || kept.writeback);
        self.pages.iter().filter(pending).map(|kept| u64::from(kept.order.pages())).sum()
    }
    fn node_pages(&mut self, node: NodeId) -> NodePages {
        self.counted.pages(node)
    }
    fn shrinker(&mut self, node: NodeId, number: usize) -> Option<Shrinker> {
        // All objects are on the first recorded node.
        (node == NODE && number == 0).then_some(Shrinker {
            freeable: self.objects.len() as u64,
            seeks: SEEKS,
            batch: SHRINK_BATCH,
        })
    }
    fn shrink(&mut self, m: &mut Memory, _: NodeId, _: usize, objects: u64, _: Gfp) -> Option<Shrunk> {
        let mut freed = 0;
        while freed < objects
            && let Some(pfn) = self.objects.pop_front()
        {
            m.free(self.beside.cpu(), pfn, Order::ZERO);
            freed += 1;
        }
        // The kernel counts pages freed by shrinkers only for its own slabs.
        (freed > 0).then_some(Shrunk { scanned: objects, freed, pages: 0 })
    }
}
