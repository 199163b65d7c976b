//! The result of an experiment whose runs are all there.

use crate::compare::{Subject, compare};
use crate::elsewhere::Elsewhere;
use crate::experiment::Experiment;
use crate::resolved::Resolved;
use crate::sweep;
use kontig_results::{ExperimentResult, PacePoint, RunResult};
use std::collections::BTreeSet;

/// The result of one experiment.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub result: ExperimentResult,
    /// In the order of the plans.
    pub runs: Vec<RunResult>,
    /// Empty without a pace sweep.
    pub pace: Vec<PacePoint>,
}

impl Outcome {
    /// Of all runs of an experiment, in the order of its plans.
    pub(crate) fn of(r: &Resolved, all: Vec<RunResult>) -> Outcome {
        let variants: BTreeSet<&str> = r.experiment.variant.iter().map(|v| v.name.as_str()).collect();
        let (runs, swept): (Vec<_>, Vec<_>) = all.into_iter().partition(|run| variants.contains(run.variant.as_str()));
        let Experiment { id, variant, caveat, lack, .. } = &r.experiment;
        let notes: Vec<String> = r.notes.iter().cloned().chain(r.rests_on()).collect();
        let elsewhere = Elsewhere::of(&r.experiment);
        let subject = Subject {
            id,
            case: &r.case,
            machine: &r.machine_names(),
            variants: variant,
            target: r.target.as_ref(),
            caveats: caveat,
            lacks: lack,
            notes: &notes,
            elsewhere: elsewhere.as_ref(),
        };
        let result = compare(&subject, &runs);
        let pace = sweep::points(&r.variants(), r.experiment.pace.as_ref(), &swept);
        Outcome { result, runs, pace }
    }
}
