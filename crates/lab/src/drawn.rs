//! The tables of a stored result, drawn from its runs.

use crate::outcome::Outcome;
use crate::store::StoredResult;
use kontig_error::{Error, Failed};
use kontig_results::ExperimentResult;
use std::path::Path;

/// The tables of a stored result, and the experiments that have none.
pub struct Drawn {
    /// The tables of experiments whose runs are all there.
    pub experiments: Vec<ExperimentResult>,
    /// The others: their names, how many runs are there, and of how many.
    pub parts: Vec<(String, usize, usize)>,
}

/// Reads the runs of the result at `dir`, and draws the tables anew.
///
/// # Errors
/// The first run's file that is missing, cut or changed; tables in `result.json` that are not what
/// the runs give, where this version wrote them.
pub fn drawn(stored: &StoredResult, dir: &Path) -> Result<Drawn, Error> {
    stored.check_runs(dir)?;
    let mut all = stored.stored_runs(dir)?.into_iter().peekable();
    let mut drawn = Drawn { experiments: Vec::new(), parts: Vec::new() };
    for input in &stored.inputs {
        let planned = input.identified(&stored.seed, &stored.version)?.len();
        let mut runs = Vec::new();
        while let Some((.., run)) =
            all.next_if(|(plan, ..)| (&plan.experiment, &plan.case) == (&input.experiment.id, &input.case))
        {
            runs.push(run.read()?);
        }
        if runs.len() == planned {
            drawn.experiments.push(Outcome::of(input, runs).result);
        } else {
            drawn.parts.push((input.key(), runs.len(), planned));
        }
    }
    if stored.version == env!("CARGO_PKG_VERSION") && drawn.experiments != stored.experiments {
        let reason = "its tables are not what its runs give: 'kontig rerun' makes both anew".into();
        return Err(Failed::Result { path: dir.display().to_string(), reason }.into());
    }
    Ok(drawn)
}
