//! Settings restored when the process that has changed them is killed.
//!
//! A process that is killed restores nothing. So another one waits for its end: the guard reads its standard input, to which
//! nobody writes, and which ends with the process that holds the other end. What it finds in the journal then, it restores.
//! Where the guard cannot be started, or is killed too, the next run restores what is in the journal.

use super::journal::{NoJournal, Setting, restore_left};
use crate::roots::Roots;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A guard, until this is dropped.
pub struct Guard(Option<Child>);

impl Guard {
    /// Starts the guard; `command` is a process that does [`restore_at_end`]. It is of a group of its own, so that Ctrl-C is not for it.
    pub fn start(mut command: Command) -> Guard {
        Guard(command.stdin(Stdio::piped()).process_group(0).spawn().ok())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            drop(child.stdin.take());
            // It finds no journal, and ends.
            let _ = child.wait();
        }
    }
}

/// Waits for the end of `input`, which is the end of the process that prepares the host, and restores what it has left.
///
/// # Errors
/// As [`restore_left`].
pub fn restore_at_end(mut input: impl Read, journal: &Path, roots: &Roots) -> Result<Vec<Setting>, NoJournal> {
    // An input that cannot be read is at its end, too.
    let _ = std::io::copy(&mut input, &mut std::io::sink());
    restore_left(journal, roots)
}
