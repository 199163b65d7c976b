//! Each golden recording is replayed once in this program, whichever test needs it first.

use kontig_oracle::error::BadRecording;
use kontig_oracle::replay::Care;
use kontig_oracle::verify::{Verdict, verify_with};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

/// Recordings during which the engine's checker walks the machine more often than every
/// [`CHECK_EVERY`] operations.
const CHECKED_OFTEN: [(&str, usize); 6] = [
    ("6.1-anon-compact-random", 1),
    ("6.1-anon-proactive40-random", 1),
    ("6.1-direct-", 1_000),
    ("6.1-lru-", 10_000),
    ("6.1-mixed100k", 10_000),
    ("7.2-defrag1-thp", 1),
];

/// Operations between two walks of the checker.
const CHECK_EVERY: usize = 100_000;

pub fn golden() -> PathBuf {
    root().join("oracle/golden")
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

type Once = Arc<OnceLock<Result<Verdict, BadRecording>>>;

/// The verdict on the recording in a folder, with the checker on.
pub fn verdict(dir: &Path) -> Result<Verdict, BadRecording> {
    static VERDICTS: Mutex<BTreeMap<PathBuf, Once>> = Mutex::new(BTreeMap::new());
    let once = VERDICTS.lock().expect("no test panics with it").entry(dir.to_path_buf()).or_default().clone();
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let often = CHECKED_OFTEN.iter().find(|(start, _)| name.starts_with(start));
    let check_every = Some(often.map_or(CHECK_EVERY, |(_, every)| *every));
    once.get_or_init(|| verify_with(dir, Care { check_every })).clone()
}
