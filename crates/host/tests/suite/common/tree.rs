//! Texts and files that a test changes or lists.

use std::path::{Path, PathBuf};

/// Replaces parts of a text, which must be in it.
pub fn changed(text: &str, replace: &[(&str, &str)]) -> String {
    replace.iter().fold(text.to_string(), |text, (from, to)| {
        assert!(text.contains(from), "'{from}' is not in the text");
        text.replacen(from, to, 1)
    })
}

/// All files below a directory, relative to it, sorted.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_path_buf()];
    while let Some(d) = left.pop() {
        for entry in std::fs::read_dir(&d).unwrap().map(|e| e.unwrap().path()) {
            if entry.is_dir() { left.push(entry) } else { found.push(entry.strip_prefix(dir).unwrap().to_path_buf()) }
        }
    }
    found.sort();
    found
}
