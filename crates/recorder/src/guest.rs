//! Patterns of programs recorded on a guest: a machine of one node whose kernel runs unmodified.
//!
//! The laboratory is compared only with what the kernel itself reports: `/proc` at each phase of
//! the pattern and the count of one tracepoint. A guest's disks are memory outside the kernel's,
//! with the latencies of flash (`oracle/module/disk.c`).

use super::qemu::Board;
use crate::error::RecordError;
use kontig_oracle::guest::PREFIX;
use kontig_oracle::patterns::{Named, SWAP_PAGES};
use kontig_program::act::{self, Act};

/// The script, and the file it executes.
pub(super) const SCRIPT: &str = "guest";
const STEPS: &str = "steps.txt";
/// All texts the guest sent, one after the other.
const STATES: &str = "states.txt";
/// Texts sent at each phase.
const KINDS: [&str; 8] = ["clock", "vmstat", "zoneinfo", "buddyinfo", "pagetypeinfo", "meminfo", "extfrag", "daemons"];
/// MiB of the disk for files: the largest file and the file system's metadata.
const FILES_MIB: u32 = 1280;
/// Start of the disks, above the kernel's memory.
const DISKS_AT_MIB: u32 = 4096;
const SWAP_MIB: u32 = SWAP_PAGES >> 8;

/// The program of a guest.
#[derive(Clone, Debug)]
pub(super) struct Guest {
    acts: Vec<Act>,
    /// The same as its program reads them.
    steps: String,
}

/// The pattern an experiment is named after.
pub fn find(experiment: &str) -> Option<&'static Named> {
    kontig_oracle::guest::find(experiment.strip_prefix(PREFIX)?)
}

impl Guest {
    pub(super) fn new(pattern: &Named, seed: u64) -> Result<Guest, RecordError> {
        Guest::of(pattern.acts(seed))
    }

    fn of(acts: Vec<Act>) -> Result<Guest, RecordError> {
        let steps = act::text(&acts).map_err(RecordError::Failed)?;
        Ok(Guest { acts, steps })
    }

    /// The machine for a pattern.
    pub(super) fn board(pattern: &Named) -> Board {
        Board::Guest { memory_mib: pattern.memory_pages >> 8, disks_mib: FILES_MIB + SWAP_MIB }
    }

    /// The file its program executes.
    pub(super) fn file(&self) -> (&'static str, &str) {
        (STEPS, &self.steps)
    }

    /// Shell variables for the script.
    pub(super) fn parameters(&self) -> String {
        let swap_at = DISKS_AT_MIB + FILES_MIB;
        format!(
            "MODULE=guest=1\nFILES_AT={DISKS_AT_MIB}\nFILES_MIB={FILES_MIB}\nSWAP_AT={swap_at}\nSWAP_MIB={SWAP_MIB}\n"
        )
    }

    pub(super) fn expected(&self) -> impl Iterator<Item = String> {
        act::phases(&self.acts).flat_map(|phase| KINDS.iter().map(move |kind| format!("{phase}.{kind}")))
    }

    /// Puts all texts into one file, each under a line `== PHASE KIND`, and adds the steps.
    pub(super) fn gather(&self, sent: &mut Vec<(String, Vec<u8>)>) {
        let mut states = Vec::new();
        for (name, text) in sent.drain(..) {
            let (phase, kind) = name.split_once('.').unwrap_or((&name, ""));
            states.extend(format!("== {phase} {kind}\n").into_bytes());
            states.extend(text);
        }
        let (name, steps) = self.file();
        sent.extend([(name.to_string(), steps.as_bytes().to_vec()), (STATES.to_string(), states)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_gathered_under_their_phases() {
        let guest = Guest::of(vec![Act::Phase("start")]).expect("an act of patterns");
        let mut sent = vec![("start.vmstat".to_string(), b"a 1\n".to_vec()), ("start.extfrag".into(), b"b\n".to_vec())];
        guest.gather(&mut sent);
        assert_eq!(sent[0], (STEPS.to_string(), b"phase start\n".to_vec()));
        assert_eq!(sent[1], (STATES.to_string(), b"== start vmstat\na 1\n== start extfrag\nb\n".to_vec()));
    }
}
