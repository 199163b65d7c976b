//! Restores settings when the process that changed them is killed.
//!
//! A killed process restores nothing. So a child of it, the restorer, waits for its end: it reads
//! its standard input, which ends with the process that holds the other end. A process that
//! completes its work says so there; one that does not was killed, and once it is gone the restorer
//! writes the journal's values back. Where it cannot be started, or is killed too, the next run
//! does.

use super::journal::{NoJournal, Setting, restore_left};
use crate::roots::Roots;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A restoring process until this is dropped.
pub struct Restorer(Option<Child>);

impl Restorer {
    /// Starts it; `command` runs [`restore_at_end`]. It has a process group of its own, so Ctrl-C
    /// does not reach it.
    pub fn start(mut command: Command) -> Restorer {
        Restorer(command.stdin(Stdio::piped()).process_group(0).spawn().ok())
    }
}

/// Sent to the restorer at the end of the work: settings are restored, or an error was printed.
const DONE: &[u8] = b"done\n";

impl Drop for Restorer {
    fn drop(&mut self) {
        // After a panic settings may be left: the restorer waits for the end of the process.
        let Some(mut child) = self.0.take().filter(|_| !std::thread::panicking()) else { return };
        let said = child.stdin.take().is_some_and(|mut stdin| stdin.write_all(DONE).is_ok());
        // It may have been killed. Untold, it would wait for this process.
        if !said {
            let _ = child.kill();
        }
        let _ = child.wait();
    }
}

/// Waits for the end of `input`, which is the end of the preparing process or of its work; restores
/// what a killed one left.
///
/// # Errors
/// As [`restore_left`].
pub fn restore_at_end(mut input: impl Read, journal: &Path, roots: &Roots) -> Result<Vec<Setting>, NoJournal> {
    let mut said = Vec::new();
    // An input that cannot be read is at its end, too.
    let _ = input.read_to_end(&mut said);
    if said == DONE {
        return Ok(Vec::new());
    }
    loop {
        match restore_left(journal, roots) {
            // A dying process closes its files first, and exists for a while after that.
            Err(NoJournal::Busy(process)) => process.wait_for_end(),
            done => return done,
        }
    }
}
