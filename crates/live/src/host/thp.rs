//! Transparent huge pages: `/sys/kernel/mm/transparent_hugepage`.
//!
//! Since 6.8 each size of page has a directory with a choice of its own; `inherit` there means that of all.

use super::{Reading, sys, sys_number};
use crate::roots::{Roots, names};
use kontig_procfs::Choice;

/// What is set, and what the kernel counts.
#[derive(Clone, Debug)]
pub struct Thp {
    /// Who gets them.
    pub enabled: Choice,
    /// What a fault does to get one.
    pub defrag: Reading<Choice>,
    /// Whether shared memory gets them.
    pub shmem_enabled: Reading<Choice>,
    /// The size of the largest, bytes: what a page table's middle level maps.
    pub pmd_size: Option<u64>,
    /// Numbers in the directory itself, such as `use_zero_page`, by name.
    pub numbers: Vec<(String, u64)>,
    /// What khugepaged is set to and has done, by name.
    pub khugepaged: Vec<(String, u64)>,
    /// Each size, smallest first.
    pub sizes: Vec<Size>,
}

/// A size of huge page.
#[derive(Clone, Debug)]
pub struct Size {
    /// Bytes.
    pub bytes: u64,
    /// Who gets it; a size of shared memory only has none.
    pub enabled: Option<Choice>,
    /// Whether shared memory gets it.
    pub shmem_enabled: Option<Choice>,
    /// What the kernel counts of it, by name.
    pub stats: Vec<(String, u64)>,
}

const DIR: &str = "kernel/mm/transparent_hugepage";

impl Thp {
    /// What khugepaged is set to or has done.
    pub fn khugepaged(&self, name: &str) -> Option<u64> {
        self.khugepaged.iter().find(|(n, _)| n == name).map(|(_, value)| *value)
    }

    /// What is chosen for pages of this size, where `inherit` means what is chosen for all.
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
    Ok(Thp {
        enabled,
        defrag: sys(roots, &format!("{DIR}/defrag"), Choice::parse),
        shmem_enabled: sys(roots, &format!("{DIR}/shmem_enabled"), Choice::parse),
        pmd_size: sys_number(roots, &format!("{DIR}/hpage_pmd_size")).ok(),
        numbers: numbers(roots, DIR),
        khugepaged: numbers(roots, &format!("{DIR}/khugepaged")),
        sizes,
    })
}

fn size(roots: &Roots, name: &str) -> Option<Size> {
    let dir = format!("{DIR}/{name}");
    Some(Size {
        bytes: super::pools::size_of_directory(name)?,
        enabled: sys(roots, &format!("{dir}/enabled"), Choice::parse).ok(),
        shmem_enabled: sys(roots, &format!("{dir}/shmem_enabled"), Choice::parse).ok(),
        stats: numbers(roots, &format!("{dir}/stats")),
    })
}

/// The files of a directory that hold one number each.
pub(super) fn numbers(roots: &Roots, dir: &str) -> Vec<(String, u64)> {
    let names = names(&roots.sys(dir)).unwrap_or_default();
    let numbers = names.into_iter().filter(|name| roots.sys(dir).join(name).is_file());
    numbers.filter_map(|name| sys_number(roots, &format!("{dir}/{name}")).ok().map(|value| (name, value))).collect()
}
