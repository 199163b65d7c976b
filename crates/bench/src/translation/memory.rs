//! Memory on pages of one size.

use super::pages::per_group;
use kontig_procfs::Smaps;
use kontig_translation::Mapped;
use memmap2::{Advice, MmapMut, MmapOptions};
use std::fs;
use std::time::Instant;

/// The kinds of pages that memory can be mapped with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pages {
    Small,
    /// Folios of 64 KiB (mTHP).
    Folios,
    Huge,
    /// Pages of 1 GiB, from the pool.
    Gigantic,
}

impl Pages {
    /// The name of several of them.
    pub const fn name(self) -> &'static str {
        match self {
            Pages::Small => "small pages",
            Pages::Folios => "folios of 64 KiB",
            Pages::Huge => "huge pages",
            Pages::Gigantic => "pages of 1 GiB",
        }
    }

    /// This many pages' worth of memory on such pages; small ones lie this many to a group.
    pub(super) const fn mapped(self, pages: u64, per_group: f64) -> Mapped {
        match self {
            Pages::Small => Mapped::all_small(pages, per_group),
            Pages::Folios => Mapped::all_folios(pages),
            Pages::Huge => Mapped::all_huge(pages),
            Pages::Gigantic => Mapped::all_gigantic(pages),
        }
    }
}

const HUGE: usize = 2 << 20;
const FOLIO: usize = 64 << 10;
/// Folios in the place of a huge page.
const HUGE_FOLIOS: usize = HUGE / FOLIO;
/// The binary logarithm of a gigantic page's bytes.
const GIGANTIC_BITS: u8 = 30;
/// Where the kernel has settings and counts of folios of 64 KiB.
const FOLIOS: &str = "/sys/kernel/mm/transparent_hugepage/hugepages-64kB";

pub(super) struct Memory {
    map: MmapMut,
    from: usize,
    bytes: usize,
    /// The time of touching every page for the first time, ns.
    pub(super) fill_ns: f64,
    /// Bytes of it on huge pages, as far as the kernel says so.
    huge_bytes: usize,
}

impl Memory {
    /// Maps and fills memory.
    ///
    /// # Errors
    /// If there is none, or not on such pages.
    pub(super) fn new(bytes: usize, pages: Pages) -> Result<Memory, String> {
        let map = map(bytes, pages)?;
        let from = map.as_ptr().align_offset(HUGE);
        advise(&map, from, pages)?;
        let mut memory = Memory { map, from, bytes, fill_ns: 0.0, huge_bytes: bytes };
        let (before, folios_before) = (anon_huge_pages(), folios_given());
        let begin = Instant::now();
        for page in memory.map[from..from + bytes].chunks_mut(4096) {
            page[0] = 0;
        }
        memory.fill_ns = begin.elapsed().as_nanos() as f64;
        if pages == Pages::Huge
            && let (Some(before), Some(after)) = (before, anon_huge_pages())
        {
            memory.huge_bytes = after.saturating_sub(before).min(bytes);
        }
        if pages == Pages::Folios {
            // All but the holes. Chosen: one in sixteen of the rest may be missing.
            let (given, wanted) =
                (folios_given().zip(folios_before).map_or(0, |(now, then)| now - then), bytes / FOLIO);
            if given < wanted - wanted / HUGE_FOLIOS - wanted / 16 {
                return Err(format!("the kernel gave {given} of {wanted} folios"));
            }
        }
        Ok(memory)
    }

    /// The most memory on huge pages alone, from `most` down by halves to `least`.
    ///
    /// # Errors
    /// If there is less.
    pub(super) fn all_huge(most: usize, least: usize) -> Result<Memory, String> {
        let mut bytes = most;
        loop {
            let memory = Memory::new(bytes, Pages::Huge)?;
            if memory.huge_bytes == bytes {
                return Ok(memory);
            }
            if bytes / 2 < least {
                let (got, wanted) = (memory.huge_bytes / HUGE, bytes / HUGE);
                return Err(format!(
                    "the kernel gave {got} of {wanted} huge pages: 'kontig check --need {wanted}x2M' says why not; or \
                     transparent_hugepage/enabled is 'never'"
                ));
            }
            bytes /= 2;
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.map[self.from..self.from + self.bytes]
    }

    /// How the first of its small pages lie ([`per_group`]).
    pub(super) fn per_group(&self, bytes: usize) -> Option<f64> {
        let first = self.bytes().as_ptr() as u64 / 4096;
        per_group("/proc/self/pagemap", first..first + (bytes / 4096) as u64)
    }
}

/// Maps memory for such pages, from the pool where they come from there.
fn map(bytes: usize, pages: Pages) -> Result<MmapMut, String> {
    let failed = |e: std::io::Error| format!("cannot map {}: {e}", kontig_text::size(bytes as u64));
    if pages == Pages::Gigantic {
        let has_none = |_| "none is free in the pool (nr_hugepages)".to_string();
        return MmapOptions::new().len(bytes).huge(Some(GIGANTIC_BITS)).map_anon().map_err(has_none);
    }
    MmapMut::map_anon(bytes + HUGE).map_err(failed)
}

/// Asks for such pages.
fn advise(map: &MmapMut, from: usize, pages: Pages) -> Result<(), String> {
    match pages {
        Pages::Gigantic => {}
        // A kernel without huge pages knows no advice on them, and has small ones.
        Pages::Small => drop(map.advise(Advice::NoHugePage)),
        Pages::Huge => {
            map.advise(Advice::HugePage).map_err(|e| format!("this kernel has no transparent huge pages: {e}"))?;
        }
        Pages::Folios => {
            let enabled = fs::read_to_string(format!("{FOLIOS}/enabled")).map_err(|_| "this kernel has none")?;
            if enabled.contains("[never]") {
                return Err("hugepages-64kB/enabled is 'never'".into());
            }
            let failed = |e| format!("they cannot be asked for: {e}");
            map.advise(Advice::HugePage).map_err(failed)?;
            // A hole in each aligned 2 MiB keeps the kernel from giving a huge page.
            let mut holes = (from..map.len() - FOLIO).step_by(HUGE);
            holes.try_for_each(|hole| map.advise_range(Advice::NoHugePage, hole, FOLIO)).map_err(failed)?;
        }
    }
    Ok(())
}

/// Folios that the kernel gave so far.
fn folios_given() -> Option<usize> {
    fs::read_to_string(format!("{FOLIOS}/stats/anon_fault_alloc")).ok()?.trim().parse().ok()
}

/// Bytes of this process on huge pages, if the kernel says so.
fn anon_huge_pages() -> Option<usize> {
    let path = "/proc/self/smaps_rollup";
    let all = Smaps::parse(path, &fs::read_to_string(path).ok()?).ok()?.mappings.pop()?;
    Some(all.kb("AnonHugePages")? as usize * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_of_the_length_asked_for_and_begins_where_a_huge_page_can() {
        let memory = Memory::new(4 << 20, Pages::Small).expect("4 MiB");
        assert_eq!((memory.bytes().len(), memory.bytes().as_ptr().align_offset(HUGE)), (4 << 20, 0));
        assert!(memory.fill_ns > 0.0);
    }
}
