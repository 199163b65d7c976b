//! Sizes of the pools of huge pages, as their directories under `/sys` are named.

use crate::roots::{Roots, names};

/// The directory of all pools, below `/sys`.
pub(crate) const DIR: &str = "kernel/mm/hugepages";

/// The sizes that the kernel has pools of, in bytes.
pub(crate) fn sizes(roots: &Roots) -> Vec<u64> {
    names(&roots.sys(DIR)).unwrap_or_default().iter().filter_map(|name| of_directory(name)).collect()
}

/// The size in a directory's name, such as `hugepages-2048kB`, in bytes.
pub(crate) fn of_directory(name: &str) -> Option<u64> {
    let kb: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
    kb.checked_mul(1024)
}
