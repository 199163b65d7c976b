//! The size of the host's pages.
//!
//! The kernel tells a process: `AT_PAGESZ` in `/proc/self/auxv`. Below other roots that file is
//! often missing; then the size follows from used and from free memory, each of which files give in
//! KiB and in pages. They are read one after the other and differ a little, sizes by a factor of 4.
//! Memory not initialised yet is in `MemTotal` and `MemFree`, but not in the zones' pages, so one
//! of the two may seem too large: the smaller one counts.

use crate::roots::Roots;
use kontig_procfs::{MemInfo, ZoneInfo};

/// A page's size, and how it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageSize {
    pub bytes: u64,
    /// Whether it was concluded from the amounts of used and free memory.
    pub concluded: bool,
}

/// Sizes that Linux has pages of.
pub const SIZES: [u64; 5] = [4 << 10, 8 << 10, 16 << 10, 64 << 10, 256 << 10];
const AT_PAGESZ: u64 = 6;

pub(super) fn of(roots: &Roots, meminfo: Option<&MemInfo>, zones: Option<&ZoneInfo>) -> Option<PageSize> {
    let told = told(roots).map(|bytes| PageSize { bytes, concluded: false });
    told.or_else(|| PageSize::concluded(meminfo, zones))
}

impl PageSize {
    /// The size that follows from the two files.
    pub(crate) fn concluded(meminfo: Option<&MemInfo>, zones: Option<&ZoneInfo>) -> Option<PageSize> {
        let managed: u64 = zones?.zones.iter().filter_map(|zone| zone.sizes.get("managed")).sum();
        let free: u64 = zones?.zones.iter().map(|zone| zone.free).sum();
        let used_kb = meminfo?.kb("MemTotal")?.checked_sub(meminfo?.kb("MemFree")?)?;
        let of_used = concluded(used_kb, managed.checked_sub(free)?);
        let of_free = concluded(meminfo?.kb("MemFree")?, free);
        let bytes = of_used.into_iter().chain(of_free).min()?;
        Some(PageSize { bytes, concluded: true })
    }
}

/// The size in the auxiliary vector: pairs of words of this machine's width and byte order.
pub(crate) fn told(roots: &Roots) -> Option<u64> {
    const WORD: usize = size_of::<usize>();
    let vector = std::fs::read(roots.proc("self/auxv")).ok()?;
    let word = |bytes: &[u8]| bytes.try_into().map(usize::from_ne_bytes).ok();
    let mut pairs = vector.chunks_exact(2 * WORD).filter_map(|pair| Some((word(&pair[..WORD])?, word(&pair[WORD..])?)));
    let (_, bytes) = pairs.find(|(key, _)| *key as u64 == AT_PAGESZ)?;
    SIZES.into_iter().find(|size| *size == bytes as u64)
}

/// Such a vector that tells this size.
pub(crate) fn vector_with(bytes: u64) -> Vec<u8> {
    [AT_PAGESZ as usize, bytes as usize, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn concluded(kb: u64, pages: u64) -> Option<u64> {
    let bytes = u128::from(kb) * 1024;
    // Nearer than a quarter: sizes are apart by factors of 2 and 4.
    SIZES.into_iter().find(|size| {
        let all = u128::from(*size) * u128::from(pages);
        pages > 0 && bytes * 4 > all * 3 && bytes * 3 < all * 4
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_follows_from_memory_in_kib_and_in_pages() {
        assert_eq!(concluded(4000, 1000), Some(4096));
        assert_eq!(concluded(4100, 1000), Some(4096), "some was freed between the two");
        assert_eq!(concluded(64_000, 1000), Some(65_536));
        assert_eq!(concluded(16_300, 1000), Some(16_384));
        assert_eq!((concluded(11_600, 1000), concluded(0, 0)), (None, None), "between two sizes, none is known");
    }
}
