//! Cells: single runs as data that any process can carry out, on any host.
//!
//! A cell has every input of its run in full and needs no file, so that a sweep's cells may run
//! anywhere and in any order; the results are those of one session.

use crate::experiment::{Experiment, Variant};
use crate::identity::Identity;
use crate::plan::{RunPlan, Views};
use crate::resolved::Resolved;
use crate::session::Session;
use kontig_error::{Error, Failed};
use kontig_mm::Profile;
use kontig_results::RunResult;
use serde::{Deserialize, Serialize};

/// A run by itself.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Cell {
    /// An experiment of one variant, without a pace sweep.
    input: Resolved,
    seed: u64,
    /// The version of kontig that made it.
    version: String,
}

impl Cell {
    /// The cells of an experiment: its variants, each with these seeds; with the first seed alone,
    /// if nothing in the workload is random.
    pub fn all(of: &Resolved, seeds: &[u64]) -> Vec<Cell> {
        let e = &of.experiment;
        let seeds = &seeds[..if e.is_random() { seeds.len() } else { seeds.len().min(1) }];
        // What all cells share, without the variants: of thousands each cell would copy all.
        let shared = Resolved {
            experiment: Experiment {
                variant: Vec::new(),
                repetitions: 1,
                target: None,
                caveat: Vec::new(),
                lack: Vec::new(),
                pace: None,
                page: None,
                ..of.experiment.clone()
            },
            profiles: Vec::new(),
            target: None,
            pace_machine: None,
            ..of.clone()
        };
        let alone = |(variant, profile): (&Variant, &Profile)| {
            let mut alone = shared.clone();
            alone.experiment.variant.push(variant.clone());
            alone.profiles.push(profile.clone());
            alone
        };
        let each = of.experiment.variant.iter().zip(&of.profiles).map(alone);
        let with_seeds = |input: Resolved| {
            let cell = move |seed: &u64| Cell { input: input.clone(), seed: *seed, version: version() };
            seeds.iter().map(cell)
        };
        each.flat_map(with_seeds).collect()
    }

    /// Its run's plan and identity.
    ///
    /// # Errors
    /// If another version made it, or its inputs contradict themselves.
    pub fn plan(&self) -> Result<(RunPlan, Identity), Error> {
        let wrong = |reason: String| Error::from(Failed::Run { run: self.input.key(), reason });
        if self.version != version() {
            return Err(wrong(format!("a cell of kontig {}, this is {}", self.version, version())));
        }
        self.input.check().map_err(|reason| wrong(format!("no cell that kontig made: {reason}")))?;
        let mut runs = self.input.identified(&self.seed.into(), &self.version)?;
        runs.pop().filter(|_| runs.is_empty()).ok_or_else(|| wrong("a cell has one run".into()))
    }

    /// Carries out its run.
    ///
    /// # Errors
    /// As [`Cell::plan`]; if the host lacks the memory, or the run cannot go on.
    pub fn run(&self) -> Result<RunResult, Error> {
        let (plan, _) = self.plan()?;
        let session = Session::new(vec![self.input.clone()], self.seed, &Views::default())?;
        // A table of a single run would take longer than many a run.
        let (runs, error) = session.results(1, &|_| Ok(()));
        let run = runs.into_iter().flatten().next();
        let none = || Error::from(Failed::Run { run: plan.title(), reason: "it left nothing".into() });
        error.map_or_else(|| run.ok_or_else(none), Err)
    }
}

/// This version of kontig.
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;
    use crate::what_if::{Changes, what_if};

    #[test]
    fn cells_are_the_runs_of_a_session_whoever_carries_them_out() {
        let (e, _, _) = catalog::to_run("watch").expect("it is built in");
        let changes = Changes {
            machines: vec!["tiny-64m".into()],
            profiles: vec!["5.9".into()],
            settings: vec![("vm.compaction_proactiveness".into(), vec!["0".into(), "60".into()])],
            ..Changes::default()
        };
        let mut e = what_if(e, &changes).expect("it fits").experiment;
        e.repetitions = 2;
        let resolved = Resolved::new(e, None).expect("it fits");
        let cells = Cell::all(&resolved, &[1, 2]);
        let session = Session::new(vec![resolved.clone()], 1, &Views::default()).expect("it fits");
        let (outcomes, error) = session.run(2, &|_| Ok(()));
        assert_eq!((error, outcomes[0].runs.len(), cells.len()), (None, 4, 4));
        let identified = resolved.identified(&1.into(), &version()).expect("hashes");
        for ((cell, run), (_, identity)) in cells.iter().zip(&outcomes[0].runs).zip(&identified) {
            let sent = serde_json::to_vec(cell).expect("JSON");
            let arrived: Cell = serde_json::from_slice(&sent).expect("a cell");
            assert_eq!(arrived.plan().expect("a plan").1, *identity);
            // A session does not hold the events that it has stored.
            let alone = RunResult { repetition: run.repetition, events: Vec::new(), ..arrived.run().expect("it runs") };
            assert_eq!(alone, *run);
        }
        let other = Cell { version: "0.0.1".into(), ..cells[0].clone() };
        assert!(other.run().expect_err("refused").to_string().contains("a cell of kontig 0.0.1, this is"));
    }
}
