//! Real programs, each on small pages and on huge ones, and what the model says of them.
//!
//! What the model must know of a program is in its source or counted before the program is timed:
//! how often it accesses how much memory; and, once it is filled, on which pages that lies. The
//! program's time on small pages is measured; the gain is not.

mod compiler;
pub mod held;
mod java;
mod join;
mod run;

use super::measured::Measured;
use held::Held;
use std::fs;
use std::path::Path;

/// Runs a program on both kinds of pages, with files in this directory, beside what the model says.
type Program = fn(&Path, &Measured) -> Result<Held, String>;

/// Holds each program against the model; what is missing for one is its error.
pub fn hold(m: &Measured, mut begins: impl FnMut(&str)) -> Vec<(&'static str, Result<Held, String>)> {
    let dir = std::env::temp_dir().join(format!("kontig-translation-{}", std::process::id()));
    let made = fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()));
    let all: [(&'static str, Program); 3] =
        [("Java, HashMap", java::hold), ("hash join, C", join::hold), ("gcc -O1", compiler::hold)];
    let held = all.map(|(name, hold)| {
        begins(name);
        (name, made.clone().and_then(|()| hold(&dir, m)))
    });
    // Only what was made here is in it.
    let _ = fs::remove_dir_all(&dir);
    held.into()
}
