//! Memory on pages of one size.

use super::pages::per_group;
use kontig_procfs::Smaps;
use memmap2::{Advice, MmapMut};
use std::fs;
use std::time::Instant;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pages {
    Small,
    Huge,
}

const HUGE: usize = 2 << 20;

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
        let failed = |e: std::io::Error| format!("cannot map {}: {e}", kontig_text::size(bytes as u64));
        let map = MmapMut::map_anon(bytes + HUGE).map_err(failed)?;
        let advice = if pages == Pages::Huge { Advice::HugePage } else { Advice::NoHugePage };
        // A kernel without huge pages knows no advice on them, and has small ones.
        let advised = map.advise(advice);
        if pages == Pages::Huge {
            advised.map_err(|e| format!("this kernel has no transparent huge pages: {e}"))?;
        }
        let from = map.as_ptr().align_offset(HUGE);
        let mut memory = Memory { map, from, bytes, fill_ns: 0.0, huge_bytes: bytes };
        let before = anon_huge_pages();
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
