//! The state of all user pages, and the engine's questions about them.
//!
//! The engine passes the number kept with a frame ([`crate::state::object`]); everything that
//! answers is reachable from here.

use crate::base::id::{MappingId, PageLocation, UserPage};
use crate::device::{Devices, Io};
use crate::state::file::{Files, Flags, Frames, Waiters};
use crate::state::group::GroupsOfMachine;
use crate::state::mapcount::Mapcounts;
use crate::state::object::{Objects, TABLE_PAGES};
use crate::state::process::address_space::AddressSpaces;
use crate::state::process::mapping::Entry;
use crate::state::swap::Swapping;
use kontig_mm::{
    Around, CpuId, Gfp, GroupId, Lock, Memory, MigrateOutcome, NodeId, NodePages, Owner, PageState, Pfn, References,
    Shadow, Shrinker, Shrunk, TableWalk, WriteOut, ZoneId,
};
use kontig_program::Region;
use std::collections::BTreeMap;

/// Address spaces, objects, files, swap and devices.
#[derive(Clone, Default)]
pub(crate) struct Pages {
    pub(crate) spaces: AddressSpaces,
    pub(crate) objects: Objects,
    pub(crate) mapcounts: Mapcounts,
    /// Files, on a machine with disks.
    pub(crate) files: Option<Files>,
    pub(crate) frames: Frames,
    pub(crate) waiters: Waiters,
    pub(crate) devices: Devices,
    pub(crate) swap: Option<Swapping>,
    /// Memory control groups: their names and counts.
    pub(crate) groups: GroupsOfMachine,
    /// Of folios whose pages are in several requests, the pages still under I/O.
    pub(crate) parts: BTreeMap<Pfn, u32>,
    /// Requests completed by a device, while they are being handled.
    pub(crate) io_done: Vec<Io>,
    /// Huge pages split by reclaim and not counted yet.
    pub(crate) splits: u64,
    /// A disk that takes no more writes; reclaim must wait for it.
    pub(crate) full: Option<u8>,
    /// Whether reclaim has met dirty pages that no flusher is writing.
    pub(crate) flushers_wanted: bool,
    /// The CPU of the running task, and whether that is kswapd.
    pub(crate) cpu: CpuId,
    pub(crate) in_kswapd: bool,
    /// Zones, and zones' or nodes' LRUs, whose lock another CPU holds as the step begins: a bit
    /// each.
    pub(crate) held: (u64, u64),
    /// The same of those that another CPU has waited for while this one held them, since its last
    /// step.
    pub(crate) wanted: (u64, u64),
    /// TLB shootdowns by migration since last taken.
    pub(crate) shootdowns: u64,
    /// Page table entries that aging has walked since last taken.
    pub(crate) walked: u64,
    /// Further page table entries of pages that reclaim has looked at, since last taken.
    pub(crate) rmap_entries: u64,
}

impl Pages {
    /// No pages yet; [`AddressSpaces::new`] says what the arguments are.
    pub(crate) fn new(reclaims: bool, takes_folios: bool) -> Pages {
        Pages { spaces: AddressSpaces::new(reclaims, takes_folios), ..Pages::default() }
    }

    /// Maps this many anonymous pages into a process; `None` if page numbers run out.
    pub(crate) fn mmap(&mut self, process: u32, pages: u32) -> Option<Region> {
        let object = self.objects.add(pages)?;
        Some(self.spaces.map_object(&mut self.objects, process, object, pages))
    }

    /// Adds a process with a copy of each of the parent's mappings, none of whose pages is mapped
    /// yet; its number.
    pub(crate) fn fork(&mut self, parent: u32) -> u32 {
        let child = self.spaces.fork(&mut self.objects, parent);
        if let Some(files) = &mut self.files {
            self.spaces.files_of(child).for_each(|inode| files.inodes[inode].pin());
        }
        child
    }

    /// Removes a mapping that maps no pages; the file to evict if this was its last user.
    pub(crate) fn remove_mapping(&mut self, mapping: MappingId) -> Option<u32> {
        let inode = self.spaces.mapping(mapping).file().map(|file| file.inode);
        if let Some(object) = self.spaces.unmap_object(&mut self.objects, mapping) {
            self.objects.remove(object);
            if let Some(inode) = inode {
                self.files().inodes[inode].object = None;
            }
        }
        let inode = inode?;
        self.files().unpin(inode)
    }

    /// Copies one page table of a parent's mapping to the child's; both already have the table
    /// page. The number of entries copied.
    pub(crate) fn share_table(&mut self, parent: MappingId, child: MappingId, page: u32) -> u64 {
        let Pages { spaces, mapcounts, swap, .. } = self;
        let mut entries = 0;
        spaces.copy_table(parent, child, page, |entry| {
            match (entry, &mut *swap) {
                (Entry::Frame(pfn), _) => mapcounts.share(pfn),
                (Entry::Swap(slot), Some(swap)) => swap.area.name(slot),
                _ => {}
            }
            entries += 1;
        });
        entries
    }

    /// Splits a huge page in every mapping of it. `number` is the owner word of its head frame.
    pub(crate) fn split_huge(&mut self, pfn: Pfn, number: u32) {
        let (object, page) = self.objects.at(number);
        for mapping in self.objects.mappings(object) {
            self.spaces.split_huge(MappingId(*mapping), page, pfn);
        }
        if let Some(first) = self.objects.mappings(object).first() {
            let group = self.spaces.group_of(self.spaces.process_of(MappingId(*first)));
            self.groups.count(group, |counts| counts.thp_split_page += 1);
        }
        self.mapcounts.split(pfn, TABLE_PAGES);
    }

    /// The pages of processes that map this frame; `number` is its owner word.
    pub(crate) fn mapped_as(&self, pfn: Pfn, number: u32) -> impl Iterator<Item = UserPage> {
        // The owner word of an unmapped page is stale.
        let is_mapped = self.mapcounts.is_mapped(pfn) && !self.frames.flags(pfn).any(Flags::FILE);
        let (mappings, page) = match is_mapped.then(|| self.objects.at(number)) {
            Some((object, page)) => (self.objects.mappings(object), page),
            None => (&[][..], 0),
        };
        mappings.iter().filter_map(move |mapping| self.spaces.mapped_as(*mapping, page, pfn))
    }

    /// Reclaim looks at all page table entries of a page; the first is part of looking at the page.
    #[inline(always)]
    pub(crate) fn note_entries(&mut self, pfn: Pfn) {
        if self.mapcounts.is_mapped(pfn) {
            self.rmap_entries += u64::from(self.mapcounts.more(pfn));
        }
    }

    /// The files of a machine that has them.
    #[inline(always)]
    pub(crate) fn files(&mut self) -> &mut Files {
        self.files.as_mut().expect("only a machine with disks has files")
    }

    /// Whether there is deferred work, which needs `Memory` or the time: see
    /// [`crate::kernel::Kernel::charge`].
    #[inline(always)]
    pub(crate) fn has_deferred(&self) -> bool {
        self.devices.must_submit()
            || self.flushers_wanted
            || self.splits > 0
            || self.files.as_ref().is_some_and(Files::has_gone)
            || self.swap.as_ref().is_some_and(Swapping::has_deferred)
    }

    /// The location of a process's page.
    pub(crate) fn location_of(&self, at: UserPage) -> Option<PageLocation> {
        let (entry, huge) = self.spaces.entry_of(at)?;
        match entry {
            Entry::Frame(pfn) if self.frames.flags(pfn).any(Flags::SWAP_CACHE) => {
                Some(PageLocation::Swap(self.frames.word(pfn)))
            }
            Entry::Frame(pfn) => Some(PageLocation::Memory(pfn)),
            Entry::Swap(slot) => Some(PageLocation::Swap(slot.get())),
            Entry::Zero | Entry::None => huge.map(PageLocation::Memory),
        }
    }

    /// TLB shootdowns by migration since last taken.
    pub(crate) fn take_shootdowns(&mut self) -> u64 {
        std::mem::take(&mut self.shootdowns)
    }
}

impl Owner for Pages {
    fn start_plug(&mut self) {
        self.devices.plug.start();
    }

    fn finish_plug(&mut self) {
        self.devices.plug.finish();
    }

    fn is_locked(&self, m: &Memory, zone: ZoneId, lock: Lock) -> bool {
        match lock {
            Lock::Zone => self.held.0 >> zone.index() & 1 == 1,
            Lock::Lru => self.held.1 >> m.zones()[zone.index()].lruvec.index() & 1 == 1,
        }
    }

    fn is_wanted(&self, m: &Memory, zone: ZoneId, lock: Lock) -> bool {
        match lock {
            Lock::Zone => self.wanted.0 >> zone.index() & 1 == 1,
            Lock::Lru => self.wanted.1 >> m.zones()[zone.index()].lruvec.index() & 1 == 1,
        }
    }

    fn may_isolate(&mut self, _pfn: Pfn) -> bool {
        // Nothing pins user pages on this machine: no direct I/O, no device access.
        true
    }

    #[inline]
    fn moves_after_writing(&mut self, pfn: Pfn, _number: u32) -> bool {
        // The file system migrates dirty pages.
        self.frames.flags(pfn).any(Flags::WRITEBACK)
    }

    #[inline]
    fn has_mapping(&mut self, pfn: Pfn, _number: u32) -> bool {
        self.frames.flags(pfn).any(Flags::FILE | Flags::SWAP_CACHE)
    }

    #[inline]
    fn migrate(&mut self, from: Pfn, to: Pfn, number: u32) -> MigrateOutcome {
        if self.frames.flags(from).any(Flags::FILE) {
            return self.migrate_file(from, to, number);
        }
        self.migrate_anon(from, to, number)
    }

    fn split(&mut self, pfn: Pfn, number: u32, numbers: &mut [u32]) -> bool {
        if self.frames.flags(pfn).any(Flags::FILE) {
            return self.split_file(pfn, number, numbers);
        }
        if self.frames.flags(pfn) != Flags::default() {
            return false;
        }
        self.split_huge(pfn, number);
        (number..).zip(numbers).for_each(|(number, of)| *of = number);
        self.splits += 1;
        true
    }

    fn page_state(&mut self, pfn: Pfn, number: u32) -> PageState {
        if self.frames.flags(pfn).any(Flags::FILE) { self.file_state(pfn, number) } else { self.anon_state(pfn) }
    }

    fn references(&mut self, pfn: Pfn, number: u32) -> References {
        self.note_entries(pfn);
        match self.frames.flags(pfn).any(Flags::FILE) {
            true => self.file_references(pfn, number),
            false => self.anon_references(pfn, number),
        }
    }

    fn references_around(
        &mut self,
        pfn: Pfn,
        number: u32,
        counts: &dyn Fn(GroupId) -> bool,
        fits: &dyn Fn(Pfn) -> bool,
        found: &mut dyn FnMut(Around),
    ) -> References {
        self.note_entries(pfn);
        match self.frames.flags(pfn).any(Flags::FILE) {
            true => self.file_references_around(pfn, number, counts, fits, found),
            false => self.anon_references_around(pfn, number, counts, fits, found),
        }
    }

    fn draw(&mut self, below: u32) -> u32 {
        self.groups.draw(below)
    }

    fn references_within(&mut self, m: &Memory, pfn: Pfn, number: u32, target: Option<GroupId>) -> References {
        match target {
            Some(target) => self.references_in_group(m, pfn, number, target),
            None => self.references(pfn, number),
        }
    }

    fn walk(&mut self, m: &mut Memory, process: u32, walk: &mut dyn TableWalk) {
        self.walk_process(m, process, walk);
    }

    fn add_to_swap(&mut self, m: &mut Memory, pfn: Pfn, _number: u32) -> bool {
        self.add_anon_to_swap(m, pfn)
    }

    fn may_free_swap(&mut self, _m: &mut Memory, pfn: Pfn, _number: u32) {
        self.free_swap_of(pfn);
    }

    fn unmap(&mut self, pfn: Pfn, number: u32) -> bool {
        self.note_entries(pfn);
        match self.frames.flags(pfn).any(Flags::FILE) {
            true => self.unmap_file_page(pfn, number),
            false => self.unmap_anon(pfn, number),
        }
    }

    fn release(&mut self, pfn: Pfn, _number: u32) -> bool {
        let Pages { files, frames, .. } = self;
        if frames.flags(pfn).any(Flags::HELD) {
            return false;
        }
        if let Some(files) = files {
            files.drop_buffers(frames, pfn);
        }
        true
    }

    fn write_out(&mut self, pfn: Pfn, number: u32) -> WriteOut {
        if self.frames.flags(pfn).any(Flags::FILE) { self.write_out_page(pfn, number) } else { self.write_anon(pfn) }
    }

    fn is_congested(&mut self) -> bool {
        self.devices.full().is_some()
    }

    fn wake_flushers(&mut self) {
        self.flushers_wanted = true;
    }

    fn removed(&mut self, pfn: Pfn, number: u32, shadow: Option<Shadow>) {
        let flags = self.frames.flags(pfn);
        if flags.any(Flags::FILE) {
            let order = flags.order();
            self.frames.end_folio(pfn, order);
            self.mapcounts.reset_folio(pfn, order);
            let files = self.files();
            files.by_node.with(pfn).cached -= u64::from(order.pages());
            files.remove_folio(number, order, shadow);
        } else {
            self.anon_removed(pfn, shadow);
        }
    }

    fn write_pending(&mut self, node: NodeId) -> u64 {
        self.files.as_ref().map_or(0, |files| files.write_pending(node))
    }

    fn node_pages(&mut self, node: NodeId) -> NodePages {
        self.files.as_ref().map_or_else(NodePages::default, |files| files.node_pages(node))
    }

    fn shrinker(&mut self, node: NodeId, number: usize) -> Option<Shrinker> {
        self.files.as_ref()?.shrinker(node, number)
    }

    fn shrink(&mut self, m: &mut Memory, node: NodeId, number: usize, objects: u64, gfp: Gfp) -> Option<Shrunk> {
        let (cpu, in_kswapd) = (self.cpu, self.in_kswapd);
        let Pages { files, frames, mapcounts, .. } = self;
        let files = files.as_mut()?;
        if !files.may_shrink(number, gfp) {
            return None;
        }
        let before = files.counts.inodes_took;
        let shrunk = files.shrink(m, cpu, (frames, mapcounts), node, (number, objects));
        if in_kswapd {
            files.counts.inodes_took_in_kswapd += files.counts.inodes_took - before;
            files.counts.inodes_took = before;
        }
        Some(shrunk)
    }
}
