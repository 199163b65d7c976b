//! Patterns of programs recorded on a guest: a machine of one node whose kernel runs unmodified.
//!
//! The laboratory is compared only with what the kernel itself reports: `/proc` at each phase of
//! the pattern and the count of one tracepoint. A guest's disks are memory outside the kernel's,
//! with the latencies of flash (`oracle/module/disk.c`). Most patterns are steps that a program
//! plays; one is a real build, whose memory is also sampled while it runs.

use super::image;
use super::qemu::Board;
use crate::error::RecordError;
use kontig_oracle::build;
use kontig_oracle::guest::samples::{self, Sample};
use kontig_oracle::guest::{PREFIX, Pattern};
use kontig_oracle::patterns::{Named, SWAP_PAGES};
use kontig_program::act::{self, Act};
use std::path::PathBuf;

/// The script of a program that plays steps, and the file with the steps.
const SCRIPT: &str = "guest";
const STEPS: &str = "steps.txt";
/// The script of a build, and the program that looks at memory meanwhile.
const BUILD_SCRIPT: &str = "build";
const SAMPLER: &str = "sampler";
/// All texts the guest sent, one after the other.
const STATES: &str = "states.txt";
/// The samples between them.
const SAMPLES: &str = "samples.txt";
/// Texts sent at each phase.
const KINDS: [&str; 8] = ["clock", "vmstat", "zoneinfo", "buddyinfo", "pagetypeinfo", "meminfo", "extfrag", "daemons"];
/// MiB of the disk for files: the largest file and the file system's metadata.
const FILES_MIB: u32 = 1280;
/// Start of the disks, above the kernel's memory.
const DISKS_AT_MIB: u32 = 4096;
const SWAP_MIB: u32 = SWAP_PAGES >> 8;

/// The program of a guest.
#[derive(Clone, Debug)]
pub(super) enum Guest {
    Steps(Steps),
    Build(Build),
}

/// Steps that a program plays.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    acts: Vec<Act>,
    /// The same as its program reads them.
    text: String,
}

/// A build of a part of a kernel.
#[derive(Clone, Debug)]
pub(super) struct Build {
    seed: u64,
    /// The tree of the sources; those of the host's package if there is none.
    pub(super) sources: Option<PathBuf>,
}

/// The pattern an experiment is named after.
pub fn find(experiment: &str) -> Option<Pattern> {
    Pattern::find(experiment.strip_prefix(PREFIX)?)
}

/// The scripts of guests.
#[cfg(test)]
pub(super) fn scripts() -> [&'static str; 2] {
    [SCRIPT, BUILD_SCRIPT]
}

/// Whether a script or program is for builds alone. It is in no other guest: what is in its memory
/// from the start is part of a recording.
pub(super) fn is_for_builds(name: &str) -> bool {
    [BUILD_SCRIPT, SAMPLER].contains(&name)
}

impl Guest {
    pub(super) fn new(pattern: &Pattern, seed: u64, sources: Option<PathBuf>) -> Result<Guest, RecordError> {
        Ok(match pattern {
            Pattern::Steps(pattern) => Guest::Steps(Steps::of(pattern.acts(seed))?),
            Pattern::Build => Guest::Build(Build { seed, sources }),
        })
    }

    /// The machine for a pattern.
    pub(super) fn board(pattern: &Pattern) -> Board {
        match pattern {
            Pattern::Steps(Named { memory_pages, .. }) => {
                Board::Guest { memory_mib: memory_pages >> 8, disks_mib: FILES_MIB + SWAP_MIB, filled: false }
            }
            Pattern::Build => {
                Board::Guest { memory_mib: build::MEMORY_MIB, disks_mib: image::MIB + build::SWAP_MIB, filled: true }
            }
        }
    }

    pub(super) fn script(&self) -> &'static str {
        match self {
            Guest::Steps(_) => SCRIPT,
            Guest::Build(_) => BUILD_SCRIPT,
        }
    }

    /// The file its program executes.
    pub(super) fn file(&self) -> Option<(&'static str, &str)> {
        match self {
            Guest::Steps(steps) => Some((STEPS, &steps.text)),
            Guest::Build(_) => None,
        }
    }

    /// Shell variables for the script.
    pub(super) fn parameters(&self) -> String {
        let disks = |files_mib: u32, swap_mib: u32| {
            let swap_at = DISKS_AT_MIB + files_mib;
            let files = format!("FILES_AT={DISKS_AT_MIB}\nFILES_MIB={files_mib}\n");
            format!("MODULE=guest=1\n{files}SWAP_AT={swap_at}\nSWAP_MIB={swap_mib}\n")
        };
        match self {
            Guest::Steps(_) => disks(FILES_MIB, SWAP_MIB),
            Guest::Build(of) => {
                let sources: Vec<&str> = build::order(of.seed).collect();
                let (jobs, held, ms) = (build::JOBS, build::HELD_MIB, build::SAMPLE_MS);
                let own = format!("JOBS={jobs}\nHELD_MIB={held}\nSAMPLE_MS={ms}\nSOURCES='{}'\n", sources.join(" "));
                disks(image::MIB, build::SWAP_MIB) + &own
            }
        }
    }

    pub(super) fn expected(&self) -> Vec<String> {
        let phases: Vec<&str> = match self {
            Guest::Steps(steps) => act::phases(&steps.acts).collect(),
            Guest::Build(_) => build::PHASES.to_vec(),
        };
        phases.iter().flat_map(|phase| KINDS.iter().map(move |kind| format!("{phase}.{kind}"))).collect()
    }

    /// Puts all texts into one file, each under a line `== PHASE KIND`, and adds the steps or the
    /// samples.
    pub(super) fn gather(&self, sent: &mut Vec<(String, Vec<u8>)>) -> Result<(), RecordError> {
        let (mut states, mut taken) = (Vec::new(), Vec::new());
        for (name, text) in sent.drain(..) {
            match name.split_once('.') {
                None if matches!(self, Guest::Build(_)) => {
                    taken.push(Sample::of_texts(&name, &String::from_utf8_lossy(&text)).map_err(RecordError::Failed)?);
                }
                of => {
                    let (phase, kind) = of.unwrap_or((&name, ""));
                    states.extend(format!("== {phase} {kind}\n").into_bytes());
                    states.extend(text);
                }
            }
        }
        let (name, text) = match self.file() {
            Some((name, steps)) => (name, steps.to_string()),
            None => (SAMPLES, samples::text(&taken)),
        };
        sent.extend([(name.to_string(), text.into_bytes()), (STATES.to_string(), states)]);
        Ok(())
    }
}

impl Steps {
    fn of(acts: Vec<Act>) -> Result<Steps, RecordError> {
        let text = act::text(&acts).map_err(RecordError::Failed)?;
        Ok(Steps { acts, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_gathered_under_their_phases() {
        let guest = Guest::Steps(Steps::of(vec![Act::Phase("start")]).expect("an act of patterns"));
        let mut sent = vec![("start.vmstat".to_string(), b"a 1\n".to_vec()), ("start.extfrag".into(), b"b\n".to_vec())];
        guest.gather(&mut sent).expect("texts");
        assert_eq!(sent[0], (STEPS.to_string(), b"phase start\n".to_vec()));
        assert_eq!(sent[1], (STATES.to_string(), b"== start vmstat\na 1\n== start extfrag\nb\n".to_vec()));
    }

    #[test]
    fn samples_of_a_build_are_a_table_of_their_own() {
        let build = Guest::new(&Pattern::Build, 2, None).expect("a pattern");
        let sample = b"ns 7\nNode 0, zone DMA 0 0 0 0 0 0 0 0 0 1 1 \nnr_free_pages 9\n".to_vec();
        let mut sent = vec![("start.vmstat".to_string(), b"a 1\n".to_vec()), ("s00000".into(), sample)];
        build.gather(&mut sent).expect("texts");
        let names: Vec<&str> = sent.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, [SAMPLES, STATES]);
        assert_eq!(sent[0].1, b"ns free_huge_DMA nr_free_pages allocstall\n7 3 9 0\n");
        assert_eq!(sent[1].1, b"== start vmstat\na 1\n");
        let refused = build.gather(&mut vec![("s00001".into(), b"x".to_vec())]).expect_err("refused").to_string();
        assert!(refused.starts_with("s00001: "), "{refused}");
    }
}
