//! The pages that a process lies on.

use kontig_live::page_words::{PageMapEntry, PageWords};
use kontig_procfs::Smaps;
use kontig_translation::PAGES_OF_A_LINE;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// How the anonymous memory of a process lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lying {
    pub(super) bytes: u64,
    /// The part of it on huge pages.
    pub(super) in_huge: u64,
    /// Pages of its largest mapping to a group of frames, if the kernel shows frames.
    pub(super) per_group: Option<f64>,
}

impl Lying {
    /// Looks at a process; none if it has ended, or has no memory of its own.
    pub(super) fn of(process: u32) -> Option<Lying> {
        let path = format!("/proc/{process}/smaps");
        let all = Smaps::parse(&path, &fs::read_to_string(&path).ok()?).ok()?.mappings;
        let anonymous = || all.iter().filter(|mapping| mapping.inode == 0 && mapping.permissions.starts_with("rw"));
        let sum = |name: &str| anonymous().filter_map(|mapping| mapping.kb(name)).sum::<u64>() << 10;
        let largest = anonymous().max_by_key(|mapping| mapping.kb("Rss"))?;
        let per_group = per_group(&format!("/proc/{process}/pagemap"), largest.start / 4096..largest.end / 4096);
        Some(Lying { bytes: sum("Rss"), in_huge: sum("AnonHugePages"), per_group })
    }
}

/// How many of these pages lie in each aligned group of eight frames that has any of them; none
/// where the kernel shows frames to root alone.
pub(super) fn per_group(pagemap: &str, pages: Range<u64>) -> Option<f64> {
    let mut groups = Vec::new();
    let mut map = PageWords::open(Path::new(pagemap)).ok()?;
    map.read(pages.start, pages.end, |_, words| {
        groups.extend(words.iter().filter_map(|word| Some(PageMapEntry(*word).pfn()? / u64::from(PAGES_OF_A_LINE))));
    })
    .ok()?;
    let seen = groups.len();
    groups.sort_unstable();
    groups.dedup();
    (seen > 0).then(|| seen as f64 / groups.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_lies_nowhere() {
        assert_eq!(Lying::of(u32::MAX), None);
        let own = Lying::of(std::process::id()).expect("this one has memory");
        assert!(own.bytes > 0 && own.in_huge <= own.bytes);
    }

    #[test]
    fn pages_are_counted_by_their_groups_of_frames() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let word = |pfn: u64| (1u64 << 63 | pfn).to_ne_bytes();
        // A page that is away, three of one group, one of another, and one behind the range.
        let words = [[0; 8], word(16), word(23), word(17), word(24), word(80)].concat();
        std::fs::write(file.path(), words).expect("written");
        let path = file.path().display().to_string();
        assert_eq!(per_group(&path, 0..5), Some(2.0));
        // Frames that the kernel does not show are 0.
        std::fs::write(file.path(), [word(0), word(0)].concat()).expect("written");
        assert_eq!(per_group(&path, 0..2), None);
    }
}
