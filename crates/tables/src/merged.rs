//! The runs of stored results, each once, in an order that does not depend on where they are
//! stored.

use crate::facts::Facts;
use kontig_error::files::check_named_once;
use kontig_error::{Error, Failed};
use kontig_lab::store::{StoredResult, StoredRun};
use kontig_results::{MemoryMap, RunResult};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A run of one or more results.
pub struct Run {
    pub facts: Facts,
    file: StoredRun,
}

impl Run {
    /// Reads its results from its file.
    ///
    /// # Errors
    /// If its file is missing, cut or changed.
    pub fn read(&self) -> Result<RunResult, Error> {
        self.file.read()
    }
}

/// The runs of several results.
pub struct Merged {
    pub runs: Vec<Run>,
    /// Runs that more than one result has.
    pub shared: usize,
    /// Runs that the results' inputs lead to and none of them has: of other shards, or of a session
    /// that was stopped.
    pub missing: usize,
}

impl Merged {
    /// Finds the runs of the results in these directories. Files of runs are read only where two
    /// results have the same run in different bytes.
    ///
    /// # Errors
    /// If one is no result, or two have different results of the same inputs.
    pub fn read(dirs: &[PathBuf]) -> Result<Merged, Error> {
        check_named_once(dirs)?;
        let (mut all, mut lacking) = (Vec::new(), BTreeSet::new());
        for dir in dirs {
            let result = StoredResult::read(dir)?;
            for (plan, identity, file) in result.planned_runs(dir)? {
                match file {
                    Some(file) => all.push(Run { facts: Facts::new(&plan, identity, &result.version), file }),
                    None => {
                        lacking.insert(identity.run);
                    }
                }
            }
        }
        for run in &all {
            lacking.remove(&run.facts.identity.run);
        }
        all.sort_by(|a, b| a.facts.place().cmp(&b.facts.place()));
        let mut merged = Merged { runs: Vec::with_capacity(all.len()), shared: 0, missing: lacking.len() };
        let mut last_is_shared = false;
        for run in all {
            match merged.runs.last().filter(|last| last.facts.identity == run.facts.identity) {
                Some(last) => {
                    same(last, &run)?;
                    merged.shared += usize::from(!last_is_shared);
                    last_is_shared = true;
                }
                None => {
                    last_is_shared = false;
                    merged.runs.push(run);
                }
            }
        }
        Ok(merged)
    }
}

/// Checks that two runs of the same inputs have the same results.
fn same(one: &Run, other: &Run) -> Result<(), Error> {
    // Of a variant's seeds only the first has pictures, and its number depends on the first seed.
    let comparable = |run: RunResult| RunResult { repetition: 0, map: MemoryMap::default(), ..run };
    if one.file.has_bytes_of(&other.file) || comparable(one.read()?) == comparable(other.read()?) {
        return Ok(());
    }
    let reason = format!(
        "this run has the same inputs as {}, but other results: one of the two was made by another build of kontig {}; \
         export them apart, or run the older again",
        one.file.path().display(),
        one.facts.version
    );
    Err(Failed::Result { path: other.file.path().display().to_string(), reason }.into())
}
