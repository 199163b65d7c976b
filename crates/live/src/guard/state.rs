//! The state of a guard at work, in a file that others may read: `kontig metrics` makes series of
//! it.
//!
//! It is written whole, when a reason changes and every few seconds, and removed at the end. What a
//! killed guard has left is old, which the time in it shows.

use super::event::Tally;
use crate::clock::unix_s;
use crate::error::ReadError;
use crate::roots;
use kontig_error::files::write_file_for_all;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Name and version of the file's schema.
const SCHEMA: &str = "kontig.guard-state/1";
/// Seconds after which it is not the state of a guard at work any more.
pub const OLD_S: f64 = 60.0;

/// All nodes of a guard.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct State {
    schema: String,
    pub unix_s: f64,
    /// CPU time of the guard itself, without its runs.
    pub own_cpu_s: f64,
    pub nodes: Vec<NodeState>,
}

/// A node that is watched.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NodeState {
    pub block_bytes: u64,
    pub at_hand: u64,
    /// Blocks that are kept; null where it is a score.
    pub target: Option<u64>,
    /// Whether the node has what is kept.
    pub is_kept: bool,
    /// The reason for its rest; null while it is compacted.
    pub rests: Option<Resting>,
    #[serde(flatten)]
    pub tally: Tally,
    /// The runs that gained nothing, by the reason.
    pub fruitless_by: BTreeMap<String, u64>,
}

/// A reason for rest, by its name in the log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Resting {
    pub why: String,
    /// The reason why the last run gained nothing, where that is why.
    pub no_gain: Option<String>,
}

impl State {
    /// The state of this moment.
    pub fn now(own_cpu_s: f64, nodes: Vec<NodeState>) -> State {
        State { schema: SCHEMA.into(), unix_s: unix_s(), own_cpu_s, nodes }
    }

    fn path(dir: &Path) -> PathBuf {
        dir.join("guard.state")
    }

    /// Writes it, in the directory of guard's hold and lock.
    ///
    /// # Errors
    /// The path, and the reason.
    pub fn write(&self, dir: &Path) -> Result<(), kontig_error::Error> {
        let text = serde_json::to_string(self).expect("strings and numbers are JSON");
        write_file_for_all(&State::path(dir), format!("{text}\n").as_bytes())
    }

    /// Removes it, at the end of a guard.
    pub fn remove(dir: &Path) {
        // Where that fails, it grows old.
        let _ = fs::remove_file(State::path(dir));
    }

    /// Reads it; `None` where no guard has left one.
    ///
    /// # Errors
    /// If it is not for this user, or no guard of this version writes such a file.
    pub fn read(dir: &Path) -> Result<Option<State>, ReadError> {
        let path = State::path(dir);
        let text = match roots::read(&path) {
            Ok(text) => text,
            Err(e) if e.is_missing() => return Ok(None),
            Err(e) => return Err(e),
        };
        let read = serde_json::from_str(&text);
        let state: State = read.map_err(|e| ReadError::malformed(&path, e.line(), e.to_string()))?;
        match state.schema == SCHEMA {
            true => Ok(Some(state)),
            false => Err(ReadError::malformed(&path, 1, format!("its schema is no {SCHEMA}"))),
        }
    }

    /// Whether a guard wrote it of late.
    pub fn is_of_a_guard_at_work(&self) -> bool {
        (unix_s() - self.unix_s).abs() < OLD_S
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written_and_anything_else_is_refused_with_its_line() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = dir.path();
        assert_eq!(State::read(dir), Ok(None));
        let resting = Resting { why: "back_off".into(), no_gain: Some("poisoned".into()) };
        let node = NodeState {
            block_bytes: 2 << 20,
            at_hand: 7,
            target: Some(10),
            is_kept: false,
            rests: Some(resting),
            tally: Tally { node: 1, runs: 3, fruitless: 2, cpu_s: Some(0.25), ..Tally::default() },
            fruitless_by: [("poisoned".to_string(), 2)].into(),
        };
        let state = State::now(0.5, vec![node]);
        state.write(dir).expect("written");
        assert_eq!(State::read(dir), Ok(Some(state.clone())));
        assert!(state.is_of_a_guard_at_work());
        assert!(!State { unix_s: state.unix_s - OLD_S, ..state.clone() }.is_of_a_guard_at_work());
        for (text, why) in [
            ("{", "line 1: EOF"),
            ("{}", "line 1: missing field"),
            (r#"{"schema":"x/1","unix_s":0,"own_cpu_s":0,"nodes":[]}"#, "its schema is no kontig.guard-state/1"),
        ] {
            fs::write(State::path(dir), text).expect("written");
            let said = State::read(dir).expect_err("refused").to_string();
            assert!(said.contains("guard.state: line 1: ") && said.contains(why), "{said}");
        }
        State::remove(dir);
        assert_eq!(State::read(dir), Ok(None));
    }
}
