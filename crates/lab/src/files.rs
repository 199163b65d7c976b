//! Files: what a name becomes as part of a path, and writing whole or not at all.

use crate::error::{Failed, LabError};
use std::path::{Path, PathBuf};

/// A name as part of a path.
pub(crate) fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || ".-_=+".contains(c) { c } else { '_' }).collect()
}

/// Whether a name can stand for a file as it is.
pub(crate) fn is_file_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && file_name(name) == name
}

/// Writes a file, making its directory.
///
/// # Errors
/// Where it could not be written, and why.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), LabError> {
    let fail =
        |e: std::io::Error| LabError::from(Failed::Write { path: path.display().to_string(), reason: e.to_string() });
    if is_device(path) {
        return std::fs::write(path, bytes).map_err(fail);
    }
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).map_err(fail)?;
    }
    // Whole or not at all: a full disk never leaves half a file under the final name.
    let part = part_of(path);
    std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path)).map_err(|e| {
        let _ = std::fs::remove_file(&part);
        fail(e)
    })
}

/// Finds out whether a file can be written, leaving what is there as it is.
///
/// # Errors
/// Where it cannot, and why.
pub fn check_writable(path: &Path) -> Result<(), LabError> {
    let fail =
        |e: std::io::Error| LabError::from(Failed::Write { path: path.display().to_string(), reason: e.to_string() });
    if path.exists() {
        std::fs::OpenOptions::new().append(true).open(path).map_err(fail)?;
    }
    if is_device(path) {
        return Ok(());
    }
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).map_err(fail)?;
    }
    let part = part_of(path);
    std::fs::write(&part, b"").and_then(|()| std::fs::remove_file(&part)).map_err(fail)
}

/// Where a file is written before it takes its name.
fn part_of(path: &Path) -> PathBuf {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    part.into()
}

/// Whether the path is something to write into, such as a pipe or `/dev/stdout`, never to be replaced by a file.
fn is_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// Makes a directory to write files to, and tries it, before anything runs.
///
/// # Errors
/// If it cannot be made or written to.
pub fn check_directory(dir: &Path) -> Result<(), LabError> {
    let probe = dir.join(".kontig");
    write_file(&probe, b"")?;
    let _ = std::fs::remove_file(probe);
    Ok(())
}
