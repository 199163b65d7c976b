//! Man pages of a program's command line.

use clap::Command;
use kontig_error::files::check_directory;
use kontig_error::{Error, Failed};
use std::path::Path;

/// Writes a page for each command to a directory, which is made where it is missing.
///
/// # Errors
/// If it cannot be made, or a page not be written.
pub fn write(command: Command, dir: &Path) -> Result<(), Error> {
    check_directory(dir)?;
    clap_mangen::generate_to(command, dir)
        .map_err(|e| Failed::Write { path: dir.display().to_string(), reason: e.to_string() }.into())
}
