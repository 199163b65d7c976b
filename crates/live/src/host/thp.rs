//! Transparent huge pages: `/sys/kernel/mm/transparent_hugepage`.
//!
//! Since 6.8 each size of page has a directory with a choice of its own; `inherit` there means the
//! choice for all sizes.

use super::numbers::{self, Numbers};
use super::{Reading, sys};
use crate::error::ReadError;
use crate::roots::{Roots, names};
use kontig_procfs::Choice;

/// Settings and counts of transparent huge pages.
#[derive(Clone, Debug)]
pub struct Thp {
    /// The mappings that get them.
    pub enabled: Choice,
    /// Effort of a fault to get one.
    pub defrag: Reading<Choice>,
    /// Whether shared memory gets them.
    pub shmem_enabled: Reading<Choice>,
    /// Bytes of the largest size, which a page table's middle level maps.
    pub pmd_size: Option<u64>,
    /// Numbers in the directory itself, as `use_zero_page`, by name.
    pub numbers: Numbers,
    /// Settings and counts of khugepaged, by name.
    pub khugepaged: Numbers,
    /// Each size, smallest first.
    pub sizes: Vec<Size>,
}

/// A size of huge page.
#[derive(Clone, Debug)]
pub struct Size {
    pub bytes: u64,
    /// `None` for a size of shared memory only.
    pub enabled: Option<Choice>,
    /// Whether shared memory gets it.
    pub shmem_enabled: Option<Choice>,
    /// Counts of this size, by name.
    pub stats: Numbers,
    /// Its files that were not read.
    unread: Vec<ReadError>,
}

const DIR: &str = "kernel/mm/transparent_hugepage";

impl Thp {
    /// The choice and the largest size, and nothing else.
    pub(crate) fn of(enabled: Choice, pmd_size: Option<u64>) -> Thp {
        let missing = || Err(ReadError { path: DIR.into(), why: crate::error::Unread::Missing });
        Thp {
            enabled,
            defrag: missing(),
            shmem_enabled: missing(),
            pmd_size,
            numbers: Numbers::default(),
            khugepaged: Numbers::default(),
            sizes: Vec::new(),
        }
    }

    /// Files that were not read, though they are there.
    pub(super) fn unread(&self) -> impl Iterator<Item = &ReadError> {
        let choices = [self.defrag.as_ref().err(), self.shmem_enabled.as_ref().err()].into_iter().flatten();
        let of_sizes = self.sizes.iter().flat_map(|size| size.unread.iter().chain(&size.stats.unread));
        let own = self.numbers.unread.iter().chain(&self.khugepaged.unread).chain(of_sizes);
        choices.chain(own).filter(|e| !e.is_missing())
    }

    /// A setting or count of khugepaged.
    pub fn khugepaged(&self, name: &str) -> Option<u64> {
        self.khugepaged.get(name)
    }

    /// The choice for pages of this size, where `inherit` means the choice for all.
    pub fn enabled_for(&self, bytes: u64) -> &str {
        let own = self.sizes.iter().find(|size| size.bytes == bytes).and_then(|size| size.enabled.as_ref());
        own.map(|choice| choice.chosen.as_str()).filter(|word| *word != "inherit").unwrap_or(&self.enabled.chosen)
    }
}

pub(super) fn read(roots: &Roots) -> Reading<Thp> {
    let enabled = sys(roots, &format!("{DIR}/enabled"), Choice::parse)?;
    let sizes = names(&roots.sys(DIR))?;
    let mut sizes: Vec<Size> = sizes.iter().filter_map(|name| size(roots, name)).collect();
    sizes.sort_by_key(|size| size.bytes);
    let own = numbers::read(roots, DIR);
    Ok(Thp {
        enabled,
        defrag: sys(roots, &format!("{DIR}/defrag"), Choice::parse),
        shmem_enabled: sys(roots, &format!("{DIR}/shmem_enabled"), Choice::parse),
        pmd_size: own.get("hpage_pmd_size"),
        numbers: own,
        khugepaged: numbers::read(roots, &format!("{DIR}/khugepaged")),
        sizes,
    })
}

fn size(roots: &Roots, name: &str) -> Option<Size> {
    let dir = format!("{DIR}/{name}");
    let bytes = crate::pool_sizes::of_directory(name)?;
    let (mut choices, mut unread) = ([None, None], Vec::new());
    for (choice, file) in choices.iter_mut().zip(["enabled", "shmem_enabled"]) {
        match sys(roots, &format!("{dir}/{file}"), Choice::parse) {
            Ok(read) => *choice = Some(read),
            Err(e) if e.is_missing() => {}
            Err(e) => unread.push(e),
        }
    }
    let [enabled, shmem_enabled] = choices;
    Some(Size { bytes, enabled, shmem_enabled, stats: numbers::read(roots, &format!("{dir}/stats")), unread })
}
