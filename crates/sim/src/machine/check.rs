//! Checks the invariants between processes, frames and swap over a whole machine at rest.
//!
//! The engine has a check of its own ([`kontig_mm::Memory::check`]). This one adds every entry of
//! every page table. It is slow and changes nothing; tests run it after each scenario.

use crate::machine::Machine;
use crate::state::file::{Counts, Flags, Tag};
use crate::state::object::TABLE_PAGES;
use crate::state::process::mapping::{Entry, Mapping};
use crate::state::swap::Slot;
use kontig_mm::state::FrameKind;
use kontig_mm::types::HPAGE_PMD_ORDER;
use kontig_mm::{GroupId, Order, Pfn};
use std::collections::BTreeMap;

/// Counts gathered from all page tables: entries for each frame and each swap slot, and the owner
/// of each kernel page.
#[derive(Default)]
struct Census {
    maps: BTreeMap<Pfn, u32>,
    names: BTreeMap<u32, u32>,
    kernel: BTreeMap<Pfn, String>,
}

impl Machine {
    /// Checks the whole machine.
    ///
    /// - A page table entry names a frame on the LRU, as a small page or as part of a huge page: an
    ///   anonymous page in an anonymous mapping, a file's page in a mapping of a file. An anonymous
    ///   page's owner word is its number. Huge pages are anonymous.
    /// - The map count of a frame, and the use count of a swap slot, equal the number of entries
    ///   that name it.
    /// - An unmapped page is a file's, or in the swap cache at the slot it names. Where pages are
    ///   in generations, the engine knows which are in the swap cache.
    /// - A page in the swap cache is charged to the memory control group that its slot names; a
    ///   page of the kernel, to none. (That a group's lists have the pages charged to it, and that
    ///   it is charged no more than these and the CPUs' stocks, the engine's check sees.)
    /// - A page of a file lies in its folio as in the file; the engine has the folio, of the same
    ///   order and with the number of its first page. It is dirty if one of its pages is.
    /// - A node of a file's pages that is part of the inode is the file's only one, and the tree
    ///   knows which nodes have dirty pages, or such under writeback.
    /// - A page table, and each other block that the kernel has for a process, belongs to that one
    ///   alone.
    ///
    /// # Errors
    /// The first violation, in words.
    pub fn check(&self) -> Result<(), String> {
        self.kernel.mem.check().map_err(|e| e.to_string())?;
        let mut census = Census::default();
        for mapping in self.kernel.pages.spaces.mappings() {
            self.check_mapping(mapping, &mut census)?;
        }
        for (pfn, order) in self.kernel.pages.spaces.all_own() {
            self.check_kernel_page(pfn, "a process's own".into(), &mut census)?;
            let there = self.kernel.mem.frames().tag(pfn).order();
            if there != order {
                return Err(format!("{pfn} is a process's own block of order {}, not {}", order.get(), there.get()));
            }
        }
        self.check_counts(&census)?;
        self.check_folios(&census)?;
        self.check_swap(&census)
    }

    fn check_mapping(&self, m: &Mapping, census: &mut Census) -> Result<(), String> {
        for first in (0..m.pages()).step_by(TABLE_PAGES as usize) {
            let table = m.table(first);
            let says = |what: &str| Err(format!("{what}: {m}, table of page {first}"));
            if let Some(pfn) = table.page() {
                self.check_kernel_page(pfn, format!("the table of page {first} of {m}"), census)?;
            }
            let pages = first..(first + TABLE_PAGES).min(m.pages());
            if let Some(pfn) = table.huge() {
                if m.file().is_some() {
                    return says("a huge page in a file's mapping");
                }
                if pages.clone().any(|page| m.entry(page) != Entry::None) {
                    return says("a huge page, and entries beside it");
                }
                self.check_frame(m, first, pfn, HPAGE_PMD_ORDER)?;
                *census.maps.entry(pfn).or_default() += 1;
            }
            if table.page().is_none() && (table.huge().is_some() || pages.clone().any(|p| m.entry(p) != Entry::None)) {
                return says("pages without a page table");
            }
            for page in pages {
                match m.entry(page) {
                    Entry::None | Entry::Zero => {}
                    Entry::Swap(slot) => *census.names.entry(slot.get()).or_default() += 1,
                    Entry::Frame(pfn) => {
                        self.check_frame(m, page, pfn, Order::ZERO)?;
                        *census.maps.entry(pfn).or_default() += 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks the frame of one page of a mapping.
    fn check_frame(&self, m: &Mapping, page: u32, pfn: Pfn, order: Order) -> Result<(), String> {
        let frames = self.kernel.mem.frames();
        // A file's page may be a part of a large folio.
        let (folio, order) = match m.file() {
            Some(_) => (self.kernel.pages.frames.head(pfn), self.kernel.pages.frames.flags(pfn).order()),
            None => (pfn, order),
        };
        let tag = frames.tag(folio);
        let says = |what: String| Err(format!("{what}: {pfn}, page {page} of {m}"));
        // A page on its way to the LRU is in a CPU's batch.
        let is_on_its_way = tag.kind() == FrameKind::Kernel && self.kernel.mem.lru().holds(folio) > 0;
        let is_user = is_on_its_way || matches!(tag.kind(), FrameKind::Lru | FrameKind::IsolatedLru);
        if !is_user || tag.order() != order {
            return says(format!(
                "mapped with order {}, but {:?} of order {}",
                order.get(),
                tag.kind(),
                tag.order().get()
            ));
        }
        if self.kernel.pages.frames.flags(pfn).any(Flags::FILE) != m.file().is_some() {
            return says("a file's page in a mapping that is a process's own, or the other way round".into());
        }
        let number = frames.owner(folio, order);
        if m.file().is_none() && number != m.number(page) {
            return says(format!("its number is {number}, not {}", m.number(page)));
        }
        Ok(())
    }

    fn check_kernel_page(&self, pfn: Pfn, whose: String, census: &mut Census) -> Result<(), String> {
        let tag = self.kernel.mem.frames().tag(pfn);
        if tag.kind() != FrameKind::Kernel {
            return Err(format!("{pfn} is {whose}, but {:?}", tag.kind()));
        }
        if self.kernel.mem.groups().of_page(pfn) != GroupId::ROOT {
            return Err(format!("{pfn} is {whose}, and charged to a group"));
        }
        match census.kernel.insert(pfn, whose.clone()) {
            None => Ok(()),
            Some(other) => Err(format!("{pfn} is {whose} and {other}")),
        }
    }

    /// Map counts equal the entries that were found.
    fn check_counts(&self, census: &Census) -> Result<(), String> {
        let pages = &self.kernel.pages;
        for zone in self.kernel.mem.zones() {
            for pfn in (zone.start.get()..zone.end.get()).map(Pfn::new) {
                // Of a large folio of a file each page has a count.
                let folio = pages.frames.head(pfn);
                let kind = self.kernel.mem.frames().tag(folio).kind();
                let maps = census.maps.get(&pfn).copied().unwrap_or(0);
                // A freed page stays while a CPU's batch or compaction holds it.
                let is_held = kind == FrameKind::IsolatedLru || self.kernel.mem.lru().holds(folio) > 0;
                if !matches!(kind, FrameKind::Lru | FrameKind::IsolatedLru) || maps == 0 && is_held {
                    continue;
                }
                let flags = pages.frames.flags(pfn);
                let kept = if pages.mapcounts.is_mapped(pfn) { u32::from(pages.mapcounts.more(pfn)) + 1 } else { 0 };
                if maps != kept {
                    let whose = if flags.any(Flags::FILE) { "a file" } else { "a process" };
                    return Err(format!(
                        "{pfn}, a page of {whose}, is mapped by {maps} entries, and {kept} are kept of it"
                    ));
                }
                let has_place = |slot| pages.swap.as_ref().is_some_and(|swap| swap.area.page(slot) == Some(pfn));
                if flags.any(Flags::SWAP_CACHE) && !has_place(Slot::new(pages.frames.word(pfn))) {
                    return Err(format!("{pfn} is in the swap cache, which does not have it"));
                }
                let lru = self.kernel.mem.lru();
                if lru.has_generations() && lru.is_in_swap_cache(pfn) != flags.any(Flags::SWAP_CACHE) {
                    let is = if flags.any(Flags::SWAP_CACHE) { "in" } else { "not in" };
                    return Err(format!("{pfn} is {is} the swap cache, and the engine takes it for the opposite"));
                }
                if maps == 0 && !flags.any(Flags::FILE | Flags::SWAP_CACHE) {
                    return Err(format!("{pfn} is on the LRU and nobody's"));
                }
            }
        }
        Ok(())
    }

    /// The pages of files that are in memory are in folios that the engine has, too, each with the
    /// number of its first page; a folio that is dirty has a dirty page.
    fn check_folios(&self, census: &Census) -> Result<(), String> {
        let Some(files) = &self.kernel.pages.files else { return Ok(()) };
        let (frames, mem) = (&self.kernel.pages.frames, &self.kernel.mem);
        let (mut inode, mut total) = (0, 0);
        while let Some((number, of)) = files.inodes.next(inode) {
            inode = number + 1;
            files.check_tree(number)?;
            let mut pages = 0;
            for (index, pfn) in files.pages_from(number, 0) {
                let says = |what: &str| Err(format!("{what}: {pfn}, page {index} of file {number}"));
                pages += 1;
                let (folio, order) = (frames.head(pfn), frames.flags(pfn).order());
                let first = index & !(order.pages() - 1);
                if !frames.flags(pfn).any(Flags::FILE) || pfn != folio.plus(index - first) {
                    return says("not where its folio has it");
                }
                if mem.frames().tag(folio).order() != order {
                    return says("in a folio of another order than the engine's");
                }
                if mem.frames().owner(folio, order) != files.number(number, first) {
                    return says("in a folio with the number of another");
                }
                let is_dirty = frames.flags(folio).any(Flags::DIRTY);
                if files.is_tagged(files.number(number, index), Tag::Dirty) && !is_dirty {
                    return says("dirty, in a folio that is not");
                }
                if index == first
                    && is_dirty
                    && files.next_tagged(number, first, Tag::Dirty).is_none_or(|at| at >= first + order.pages())
                {
                    return says("dirty, and no page of its folio is");
                }
            }
            if pages != of.pages {
                return Err(format!("file {number} has {pages} pages in memory, and counts {}", of.pages));
            }
            total += u64::from(pages);
        }
        let in_swap_cache = self.kernel.pages.swap.as_ref().map_or(0, |swap| {
            (0..swap.area.slots()).filter(|slot| swap.area.page(Slot::new(*slot)).is_some()).count() as u64
        });
        if total + in_swap_cache != files.counts.file_pages {
            return Err(format!(
                "{total} pages of files and {in_swap_cache} in the swap cache, and {} are counted",
                files.counts.file_pages
            ));
        }
        let of_zones = self.counts_of_zones();
        for (counter, all) in self.counters() {
            let each = of_zones.iter().map(|of| of.get(counter.name)).collect::<Option<Vec<u64>>>();
            if let Some(sum) = each.map(|each| each.iter().sum::<u64>()).filter(|sum| *sum != all) {
                return Err(format!("{} is {sum} in all zones, and {all} in the machine", counter.name));
            }
        }
        let by_node = files.by_node.total();
        let Counts { file_pages, dirty, .. } = files.counts;
        let mapped = census.maps.keys().filter(|pfn| frames.flags(**pfn).any(Flags::FILE)).count() as u64;
        if (by_node.cached, by_node.dirty, by_node.mapped) != (file_pages, dirty, mapped) {
            return Err(format!(
                "{file_pages} pages are cached, {dirty} dirty and {mapped} mapped; of all nodes {by_node:?}"
            ));
        }
        Ok(())
    }

    /// Use counts of swap slots equal the entries found; the swap cache and its pages name each
    /// other.
    fn check_swap(&self, census: &Census) -> Result<(), String> {
        let Some(swap) = &self.kernel.pages.swap else {
            return census.names.keys().next().map_or(Ok(()), |slot| Err(format!("place {slot} in swap, and no swap")));
        };
        for slot in (0..swap.area.slots()).map(Slot::new) {
            let (names, kept) = (census.names.get(&slot.get()).copied().unwrap_or(0), swap.area.users(slot));
            if names != kept {
                return Err(format!(
                    "place {} in swap is named by {names} entries, and {kept} are kept of it",
                    slot.get()
                ));
            }
            if let Some(pfn) = swap.area.page(slot) {
                let frames = &self.kernel.pages.frames;
                if !frames.flags(pfn).any(Flags::SWAP_CACHE) || frames.word(pfn) != slot.get() {
                    return Err(format!("place {} in swap has {pfn}, which does not name it", slot.get()));
                }
                let (pays, noted) = (self.kernel.mem.groups().of_page(pfn), swap.area.group_of(slot));
                if pays != noted {
                    let (pays, noted) = (pays.index(), noted.index());
                    return Err(format!("{pfn} in swap is charged to group {pays}, and its place names {noted}"));
                }
            }
        }
        Ok(())
    }
}
