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

fn unwritten(path: &Path, reason: String) -> LabError {
    Failed::Write { path: path.display().to_string(), reason }.into()
}

/// Writes a file of a result, making its directory.
///
/// # Errors
/// As [`write_file`].
pub(crate) fn write_with_directory(path: &Path, bytes: &[u8]) -> Result<(), LabError> {
    let dir = directory(path);
    std::fs::create_dir_all(dir).map_err(|e| unwritten(path, e.to_string()))?;
    write_file(path, bytes)
}

/// The directory of a file.
fn directory(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Refuses a file whose directory is not there: a directory with a mistake in its name is not made.
fn has_directory(path: &Path) -> Result<(), LabError> {
    let dir = directory(path);
    match std::fs::metadata(dir) {
        Ok(there) if there.is_dir() => Ok(()),
        Ok(_) => Err(unwritten(path, format!("{} is no directory", dir.display()))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            Err(unwritten(path, format!("there is no directory {}: make it first", dir.display())))
        }
        Err(e) => Err(unwritten(path, e.to_string())),
    }
}

/// Writes a file into a directory that is there.
///
/// # Errors
/// Where it could not be written, and why.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), LabError> {
    let fail = |e: std::io::Error| unwritten(path, e.to_string());
    if is_device(path) {
        return std::fs::write(path, bytes).map_err(fail);
    }
    has_directory(path)?;
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
    let fail = |e: std::io::Error| unwritten(path, e.to_string());
    // To open a pipe waits for its reader, and to close it is the end of what it reads.
    if is_device(path) {
        return Ok(());
    }
    if path.exists() {
        std::fs::OpenOptions::new().append(true).open(path).map_err(fail)?;
    }
    has_directory(path)?;
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

/// Makes a directory to write files to, and tries it, before anything runs. Its parent must be there, as that of a file.
///
/// # Errors
/// If it cannot be made or written to.
pub fn check_directory(dir: &Path) -> Result<(), LabError> {
    has_directory(dir)?;
    let probe = dir.join(".kontig");
    write_with_directory(&probe, b"")?;
    let _ = std::fs::remove_file(probe);
    Ok(())
}
