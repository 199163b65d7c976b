//! A process's memory by size of folio, which `smaps` does not show below the huge page.
//!
//! Its page map names the frames of its pages, and the frames' flags say where folios begin and
//! end. Both take root.

use crate::error::{ReadError, Unread};
use crate::frame::is_tail;
use crate::page_words::{PageMapEntry, PageWords};
use crate::roots::Roots;
use kontig_procfs::Smaps;
use serde::Serialize;
use std::collections::BTreeMap;

/// Memory in folios of one size: single pages are folios, too.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct OfSize {
    /// A gigabyte stands for larger ones, too.
    pub folio_bytes: u64,
    pub resident_bytes: u64,
}

/// Frames that are looked at together: folios are aligned to their size, and most are no larger.
const BLOCK: u64 = 512;
/// The largest size that is told apart: order 18.
const MOST: u64 = 1 << 18;

/// Addresses of mappings with memory, in bytes: the page map has a word for each page of them,
/// there or not.
const MOST_ADDRESSES: u64 = 256 << 30;

/// The sizes, smallest first.
///
/// # Errors
/// If the page map or the flags are not there or not permitted.
pub fn read(roots: &Roots, pid: u32, smaps: &Smaps, page_bytes: u64) -> Result<Vec<OfSize>, ReadError> {
    let path = roots.proc(format!("{pid}/pagemap"));
    let mut map = PageWords::open(&path)?;
    let (mut frames, mut hidden): (Vec<u64>, bool) = (Vec::new(), false);
    let has_some = |m: &&kontig_procfs::smaps::Mapping| {
        let kb = |name: &str| m.kb(name).unwrap_or(0);
        kb("Rss") + kb("Private_Hugetlb") + kb("Shared_Hugetlb") > 0
    };
    let size = smaps.mappings.iter().filter(has_some).map(|m| m.end - m.start).fold(0, u64::saturating_add);
    if size > MOST_ADDRESSES {
        let why = format!("{} GiB of addresses are more than are gone over", size >> 30);
        return Err(ReadError { path, why: Unread::Failed(why) });
    }
    for mapping in smaps.mappings.iter().filter(has_some) {
        map.read(mapping.start / page_bytes, mapping.end / page_bytes, |_, words| {
            for entry in words.iter().map(|word| PageMapEntry(*word)).filter(|entry| entry.is_present()) {
                hidden |= entry.pfn().is_none();
                frames.extend(entry.pfn());
            }
        })?;
    }
    if hidden && frames.is_empty() {
        return Err(ReadError { path, why: Unread::NoPermission });
    }
    frames.sort_unstable();
    let mut flags = PageWords::open(&roots.proc("kpageflags"))?;
    let mut of_size: BTreeMap<u64, u64> = BTreeMap::new();
    for run in frames.chunk_by(|a, b| b / BLOCK - a / BLOCK <= 1) {
        let first = run[0] / BLOCK * BLOCK;
        let end = (run[run.len() - 1] / BLOCK + 1) * BLOCK;
        let mut words: Vec<u64> = Vec::with_capacity((end - first) as usize);
        flags.read(first, end, |_, some| words.extend_from_slice(some))?;
        let sizes = sizes(&words);
        for frame in run {
            let pages = sizes.get((frame - first) as usize).copied().unwrap_or(1);
            *of_size.entry(pages).or_default() += page_bytes;
        }
    }
    let of = |(pages, resident_bytes)| OfSize { folio_bytes: pages * page_bytes, resident_bytes };
    Ok(of_size.into_iter().map(of).collect())
}

/// For each frame the pages of its folio. A folio that began before the first frame counts as its
/// visible part, rounded up to an order.
fn sizes(words: &[u64]) -> Vec<u64> {
    let mut sizes = Vec::with_capacity(words.len());
    let mut at = 0;
    while at < words.len() {
        let len = 1 + words[at + 1..].iter().take_while(|word| is_tail(**word)).count();
        let pages = (len as u64).next_power_of_two().min(MOST);
        sizes.resize(at + len, pages);
        at += len;
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: u64 = 1 << 15;
    const TAIL: u64 = 1 << 16;

    #[test]
    fn a_folio_is_a_head_with_its_tails() {
        assert_eq!(sizes(&[0, HEAD, TAIL, TAIL, TAIL, 0, HEAD, TAIL]), [1, 4, 4, 4, 4, 1, 2, 2]);
        assert_eq!(sizes(&[TAIL, TAIL, 0]), [2, 2, 1], "what began before is as large as is seen of it");
        assert_eq!(sizes(&[]), [0u64; 0]);
    }

    #[test]
    fn pages_are_counted_by_the_folio_that_they_are_in() {
        let tree = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(tree.path().join("7")).expect("made");
        let write = |name: &str, words: &[u64]| {
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
            std::fs::write(tree.path().join(name), bytes).expect("written");
        };
        let mut flags = vec![0; 1024];
        flags[512] = HEAD;
        flags[513..528].fill(TAIL);
        write("kpageflags", &flags);
        // Three pages of a folio of sixteen, one alone, one that is not there.
        write("7/pagemap", &[1 << 63 | 512, 1 << 63 | 513, 1 << 63 | 520, 1 << 63 | 3, 0]);
        let text = "00000000-00005000 rw-p 00000000 00:00 0 \nSize:                 20 kB\n\
            Rss:                  16 kB\nVmFlags: rd wr \n";
        let smaps = Smaps::parse("smaps", text).expect("a process");
        let roots = Roots { procfs: tree.path().into(), sysfs: tree.path().into() };
        let of = |folio_bytes, resident_bytes| OfSize { folio_bytes, resident_bytes };
        assert_eq!(read(&roots, 7, &smaps, 4096), Ok(vec![of(4096, 4096), of(65536, 12288)]));
        write("7/pagemap", &[1 << 63, 1 << 63]);
        assert!(read(&roots, 7, &smaps, 4096).is_err_and(|e| e.is_permission()), "frames are hidden");
    }
}
