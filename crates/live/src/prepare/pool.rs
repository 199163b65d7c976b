//! The size of a pool of huge pages that leaves a number of its pages free.
//!
//! Free pages that are promised to a mapping (`resv_hugepages`) count as used. A node's directory
//! does not show them.

use crate::error::ReadError;
use crate::roots;
use std::path::Path;

/// The size that leaves `free` pages of the pool of this `nr_hugepages` free; `None` where they are
/// free already.
///
/// # Errors
/// If one of its files cannot be read.
pub(super) fn larger(path: &Path, free: u64) -> Result<Option<u64>, ReadError> {
    let now = number(path)?;
    Ok(in_use(path)?.checked_add(free).filter(|size| *size > now))
}

/// Pages of the pool of this `nr_hugepages` that are in use or promised.
///
/// # Errors
/// If one of its files cannot be read.
pub(super) fn in_use(path: &Path) -> Result<u64, ReadError> {
    let now = number(path)?;
    let unused = number(&path.with_file_name("free_hugepages"))?;
    let promised = match number(&path.with_file_name("resv_hugepages")) {
        Err(e) if e.is_missing() => 0,
        promised => promised?,
    };
    Ok(now.saturating_sub(unused.saturating_sub(promised)))
}

/// The number in a file.
///
/// # Errors
/// If it cannot be read, or is none.
pub(super) fn number(path: &Path) -> Result<u64, ReadError> {
    let text = roots::read(path)?;
    let text = text.trim();
    text.parse().map_err(|_| ReadError::malformed(path, 1, format!("'{text}' is not a number")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn free_pages_count_and_used_and_promised_ones_do_not() {
        let tree = tempfile::tempdir().expect("a directory");
        let path = tree.path().join("nr_hugepages");
        let write = |name: &str, pages: u64| fs::write(tree.path().join(name), format!("{pages}\n")).expect("written");
        assert!(larger(&path, 1).is_err_and(|e| e.is_missing()));
        write("nr_hugepages", 10);
        write("free_hugepages", 7);
        assert_eq!([7, 8].map(|free| larger(&path, free)), [Ok(None), Ok(Some(11))]);
        write("resv_hugepages", 2);
        assert_eq!([5, 7].map(|free| larger(&path, free)), [Ok(None), Ok(Some(12))]);
    }
}
