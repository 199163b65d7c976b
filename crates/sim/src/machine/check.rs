//! What holds between processes, frames and swap whenever a machine stands still, looked for in all of it.
//!
//! The engine has its own walk ([`kontig_mm::Memory::check`]). This one begins where that ends: at every entry of every
//! page table. It is slow and changes nothing; tests call it after whatever they have a machine do.

use crate::machine::Machine;
use crate::state::file::Flags;
use crate::state::object::TABLE_PAGES;
use crate::state::process::address_space::{Entry, Mapping};
use crate::state::swap::Slot;
use kontig_mm::state::FrameKind;
use kontig_mm::types::PAGEBLOCK_ORDER as HUGE;
use kontig_mm::{Order, Pfn};
use std::collections::BTreeMap;

/// How many entries have each frame and name each place in swap; whose kernel page a frame is.
#[derive(Default)]
struct Census {
    maps: BTreeMap<Pfn, u32>,
    names: BTreeMap<u32, u32>,
    kernel: BTreeMap<Pfn, String>,
}

impl Machine {
    /// Walks the whole machine.
    ///
    /// - A page table's entry has a frame of the LRU, singly or as a huge page, with the number of its page if it is a process's: a process's own in a
    ///   mapping of its own, some file's in a mapping of a file. Huge pages are processes' own.
    /// - A frame is mapped by as many entries as is kept of it, and a place in swap is named by as many.
    /// - A page that nobody maps is a file's, or of the swap cache, which has it at the place it names.
    /// - A page table, and a process's other kernel pages, are one process's.
    ///
    /// # Errors
    ///
    /// The first that does not hold, in words.
    pub fn check(&self) -> Result<(), String> {
        self.kernel.mem.check().map_err(|e| e.to_string())?;
        let mut census = Census::default();
        for mapping in self.kernel.pages.spaces.mappings() {
            self.check_mapping(mapping, &mut census)?;
        }
        for pfn in self.kernel.pages.spaces.all_upper() {
            self.check_kernel_page(pfn, "a process's own".into(), &mut census)?;
        }
        self.check_counts(&census)?;
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
                self.check_frame(m, first, pfn, HUGE)?;
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

    /// The frame that a page of a mapping is in.
    fn check_frame(&self, m: &Mapping, page: u32, pfn: Pfn, order: Order) -> Result<(), String> {
        let frames = self.kernel.mem.frames();
        let tag = frames.tag(pfn);
        let says = |what: String| Err(format!("{what}: {pfn}, page {page} of {m}"));
        // What is on its way to the LRU is in a batch of a CPU's.
        let is_on_its_way = tag.kind() == FrameKind::Kernel && self.kernel.mem.lru().holds(pfn) > 0;
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
        let number = frames.owner(pfn, order);
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
        match census.kernel.insert(pfn, whose.clone()) {
            None => Ok(()),
            Some(other) => Err(format!("{pfn} is {whose} and {other}")),
        }
    }

    /// As many entries map a frame as is kept of it.
    fn check_counts(&self, census: &Census) -> Result<(), String> {
        let pages = &self.kernel.pages;
        for zone in self.kernel.mem.zones() {
            for pfn in (zone.start.get()..zone.end.get()).map(Pfn::new) {
                let kind = self.kernel.mem.frames().tag(pfn).kind();
                let maps = census.maps.get(&pfn).copied().unwrap_or(0);
                // A page that was given back stays as long as a CPU's batch or compaction holds it.
                let is_held = kind == FrameKind::IsolatedLru || self.kernel.mem.lru().holds(pfn) > 0;
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
                if maps == 0 && !flags.any(Flags::FILE | Flags::SWAP_CACHE) {
                    return Err(format!("{pfn} is on the LRU and nobody's"));
                }
            }
        }
        Ok(())
    }

    /// As many entries name a place in swap as is kept of it; the swap cache and its pages name each other.
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
            }
        }
        Ok(())
    }
}
