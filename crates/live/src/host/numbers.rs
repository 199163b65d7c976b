//! Directories of sysfs whose files hold one number each.
//!
//! A missing file is no error: kernels differ in the files they have. One that is there and cannot
//! be read is reported.

use crate::error::ReadError;
use crate::roots::{Roots, names};
use std::os::unix::fs::PermissionsExt;

/// Files of a directory that hold one number each, and errors of those not read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Numbers {
    pub values: Vec<(String, u64)>,
    /// Not read, though the file is there to be read.
    pub unread: Vec<ReadError>,
}

impl Numbers {
    /// The number of this name.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.values.iter().find(|(n, _)| n == name).map(|(_, value)| *value)
    }
}

/// The numbers of a directory. Files of words, and those that can only be written, are none.
pub(super) fn read(roots: &Roots, dir: &str) -> Numbers {
    let mut all = Numbers::default();
    for name in names(&roots.sys(dir)).unwrap_or_default() {
        let path = roots.sys(dir).join(&name);
        let Ok(about) = path.metadata().map(|about| (about.is_file(), about.permissions().mode())) else { continue };
        if !about.0 || about.1 & 0o444 == 0 {
            continue;
        }
        let text = match roots.read_sys(format!("{dir}/{name}")) {
            Ok(text) => text,
            Err(e) => {
                all.unread.push(e);
                continue;
            }
        };
        let text = text.trim();
        match text.parse() {
            Ok(value) => all.values.push((name, value)),
            // `2048kB` and lists of words are well-formed, but numbers are known by their names.
            Err(_) if IN_NUMBERS.contains(&name.as_str()) => {
                all.unread.push(ReadError::malformed(&path, 1, format!("'{text}' is not a number")));
            }
            Err(_) => {}
        }
    }
    all
}

/// Files with numbers that something here depends on.
const IN_NUMBERS: [&str; 9] = [
    "free_hugepages",
    "hpage_pmd_size",
    "max_ptes_none",
    "nr_hugepages",
    "nr_overcommit_hugepages",
    "pages_to_scan",
    "resv_hugepages",
    "scan_sleep_millisecs",
    "use_zero_page",
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn words_and_what_can_only_be_written_are_no_numbers_and_what_should_be_one_is_named() {
        let tree = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| fs::write(tree.path().join(name), text).expect("written");
        for (name, text) in
            [("nr_hugepages", "7\n"), ("demote_size", "2048kB\n"), ("demote", ""), ("resv_hugepages", "x\n")]
        {
            write(name, text);
        }
        fs::set_permissions(tree.path().join("demote"), PermissionsExt::from_mode(0o200)).expect("set");
        let roots = Roots { procfs: tree.path().into(), sysfs: tree.path().into() };
        let numbers = read(&roots, ".");
        assert_eq!((numbers.get("nr_hugepages"), numbers.values.len()), (Some(7), 1));
        let said: Vec<String> = numbers.unread.iter().map(|e| e.to_string()).collect();
        assert!(matches!(&said[..], [one] if one.ends_with("resv_hugepages: line 1: 'x' is not a number")), "{said:?}");
    }
}
