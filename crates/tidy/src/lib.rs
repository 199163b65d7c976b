//! Finds the project's own text files for the tests beside it, which hold the source to its rules:
//! `floors` the order of modules, `runs` where the rules of compaction runs are read, `words` line
//! length, banned words and empty docs, `documents` links, section numbers and the README's
//! figures.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold recorded or built data, not text that people write.
const DATA: [&str; 6] = ["target", ".git", "golden", "differing", "recorded", "recordings"];

/// The project's root folder.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// All files below `folder` with one of these extensions, "" for none, sorted by path.
///
/// # Panics
/// If a folder cannot be read.
pub fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.expect("a readable folder").path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !DATA.contains(&&*name) {
            found.extend(files(&path, extensions));
        } else if path.is_file() && extensions.iter().any(|e| *e == path.extension().unwrap_or_default()) {
            found.push(path);
        }
    }
    found.sort();
    found
}
