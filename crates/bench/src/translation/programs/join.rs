//! The probe of a hash join.

use super::held::{Held, Timed, written};
use super::run::{output, steady, with_pages};
use crate::translation::measured::Measured;
use kontig_program::Pattern;
use std::path::Path;
use std::process::Command;

/// The table has two slots for each of 16 Mi rows, of 16 bytes each.
const SLOTS_LOG2: u32 = 25;
/// How often the keys are looked up.
const PASSES: u64 = 8;

pub(super) fn hold(dir: &Path, m: &Measured) -> Result<Held, String> {
    let source = written(dir, "join.c", include_str!("../../../programs/join.c"))?;
    let program = dir.join("join");
    output(Command::new("gcc").args(["-O2", "-o"]).arg(&program).arg(&source))?;
    let timed = Timed::by_turns(|huge| {
        let mut command = Command::new(&program);
        steady(with_pages(&mut command, huge).args([SLOTS_LOG2.to_string(), PASSES.to_string()]))
    })?;
    // The table, and the keys that are read beside it.
    let rows = 1u64 << (SLOTS_LOG2 - 1);
    let bytes = (16 << SLOTS_LOG2) + 8 * rows;
    let known = format!("{rows} lookups that do not wait, in {} MiB", bytes >> 20);
    let saved_s = timed.saved_ns(m, Pattern::Independent, bytes) * rows as f64 / 1e9;
    Ok(timed.beside(known, saved_s))
}
