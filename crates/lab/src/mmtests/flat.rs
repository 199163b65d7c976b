//! The layout of MMTests before May 2019: all runs in one directory, with their names in those of
//! the files.
//!
//! `flat/1` beside the runs is such a directory for the first iteration of each, `flat/2` for the
//! second, and so on, as `compare-mmtests-R.sh --iterations` wants them. The files are those of the
//! iterations under other names. The snapshots come last: a script that finds them finds the rest.

use super::{TIMESTAMPS, logs, monitors, same};
use kontig_error::{AskedWrongly, Error};
use std::path::{Path, PathBuf};

const FLAT: &str = "flat";

/// The directory of an iteration, and the name of the run.
fn place(run: &Path, n: u32) -> (PathBuf, String) {
    let name = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
    (run.with_file_name(FLAT).join((n + 1).to_string()), name)
}

/// The snapshots of a run's `n`th iteration, which come last.
pub(super) fn stamps(run: &Path, n: u32) -> PathBuf {
    let (dir, name) = place(run, n);
    dir.join(format!("{TIMESTAMPS}-{name}"))
}

/// Checks that a run does not have this directory's name.
///
/// # Errors
/// If it has.
pub(super) fn check_name(run: &Path) -> Result<(), Error> {
    if run.file_name().is_some_and(|name| name == FLAT) {
        let reason =
            format!("--mmtests has a directory '{FLAT}' beside the variants: call this variant something else");
        return Err(AskedWrongly::Value(reason).into());
    }
    Ok(())
}

/// Checks that a run can be added.
///
/// # Errors
/// If it would overwrite an earlier one.
pub(super) fn check(run: &Path) -> Result<(), Error> {
    let stamps = stamps(run, 0);
    if stamps.symlink_metadata().is_err() {
        return Ok(());
    }
    let reason = format!(
        "{} exists, and results are never overwritten: give --mmtests another directory, or remove {} first",
        stamps.display(),
        run.with_file_name(FLAT).display()
    );
    Err(AskedWrongly::Value(reason).into())
}

/// Adds the `n`th iteration of a run, once it is complete.
pub(super) fn add(run: &Path, n: u32, benchmarks: &[logs::Benchmark]) -> Result<(), (PathBuf, std::io::Error)> {
    let (dir, name) = place(run, n);
    let iteration = run.join(format!("iter-{n}"));
    for benchmark in benchmarks {
        let (from, to) = (format!("{}/noprofile", benchmark.name), format!("{}-{name}/noprofile", benchmark.name));
        let to = dir.join(to);
        std::fs::create_dir_all(&to).map_err(|e| (to.clone(), e))?;
        let own = benchmark.files.iter().filter_map(|(file, _)| file.strip_prefix(&from)?.strip_prefix('/'));
        for file in own {
            same(&iteration.join(&from).join(file), &to.join(file))?;
        }
        for monitor in monitors::NAMES {
            let file = |of: &str| format!("{monitor}-{of}.gz");
            let to = file(&format!("{name}-{}", benchmark.name));
            same(&iteration.join(file(benchmark.name)), &dir.join(to))?;
        }
    }
    same(&iteration.join(TIMESTAMPS), &stamps(run, n))
}
