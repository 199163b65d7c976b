//! Whether a host's pages age by generations (the multi-generational LRU), and whether predictions
//! about it leave that out.
//!
//! Debian 13, Ubuntu since 23.10 and Fedora run so. `/sys/kernel/mm/lru_gen/enabled` is a mask of
//! its parts, in hexadecimal; a kernel without it has no such file.

use crate::error::ReadError;
use crate::roots::Roots;

const FILE: &str = "kernel/mm/lru_gen/enabled";

/// The remark on such a host, if this release of its kernel has generations that are not modelled.
pub fn left_out(release: Option<&str>) -> Option<String> {
    (!is_modelled(release)).then(|| kontig_profiles::lru_gen_left_out("this host runs"))
}

/// Whether the rules that stand for this release have generations.
pub fn is_modelled(release: Option<&str>) -> bool {
    release.and_then(kontig_profiles::of_kernel).is_some_and(|profile| kontig_profiles::has_lru_gen(&profile))
}

/// The parts that are on: 0 if none is.
///
/// # Errors
/// If the file is missing, as on a kernel without it, cannot be read, or holds no number.
pub fn enabled(roots: &Roots) -> Result<u64, ReadError> {
    let text = roots.read_sys(FILE)?;
    let text = text.trim();
    let mask = u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16);
    mask.map_err(|_| ReadError::malformed(&roots.sys(FILE), 1, format!("'{text}' is no hexadecimal number")))
}

/// Whether any part of it is on. `None` where that cannot be read; a kernel without it has it off.
pub fn is_on(enabled: &Result<u64, ReadError>) -> Option<bool> {
    match enabled {
        Ok(mask) => Some(*mask != 0),
        Err(e) if e.is_missing() => Some(false),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_on_if_any_part_is_and_off_where_the_kernel_has_none() {
        let tree = tempfile::tempdir().expect("a directory");
        let roots = Roots { procfs: tree.path().join("proc"), sysfs: tree.path().join("sys") };
        assert_eq!(is_on(&enabled(&roots)), Some(false));
        let file = roots.sys(FILE);
        std::fs::create_dir_all(file.parent().expect("a parent")).expect("made");
        for (text, on) in [("0x0007\n", Some(true)), ("0x0001", Some(true)), ("0x0000\n", Some(false)), ("y\n", None)] {
            std::fs::write(&file, text).expect("written");
            assert_eq!(is_on(&enabled(&roots)), on, "{text}");
        }
    }
}
