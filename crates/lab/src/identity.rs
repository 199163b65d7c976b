//! Identities: hashes of all that decides a run, so that it is known again in whatever result it
//! is.
//!
//! The same inputs give the same bytes on every host, so two runs with the same hash are one. A
//! repetition's number is no input: its seed is.

use crate::experiment::Variant;
use crate::hash::sha256;
use crate::plan::{RunPlan, Views};
use crate::resolved::Resolved;
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_results::Seeds;
use serde::Serialize;
use std::collections::BTreeMap;

/// Digits of a hash that are kept: among a million runs, two share one
/// once in forty million times.
const DIGITS: usize = 16;

/// The hashes of a run, in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// Of its inputs and of its names: experiment, case and variant.
    pub run: String,
    /// Of its inputs alone: machine, host snapshot, profile, sysctls, workload, rounds, seed, and
    /// the version of kontig.
    pub inputs: String,
}

impl Resolved {
    /// All its runs, each with its identity as a run of this version of kontig.
    ///
    /// # Errors
    /// If an input has no JSON form.
    pub fn identified(&self, seeds: &Seeds, version: &str) -> Result<Vec<(RunPlan, Identity)>, Error> {
        let e = &self.experiment;
        // What all runs share, a host snapshot above all, is hashed once.
        let shared = hash(&(version, &self.begins_as, e.rounds))?;
        let mut of_workload = (BTreeMap::new(), hash(&e.workload)?);
        let identified = |plan: RunPlan| {
            let name = plan.variant.name.as_str();
            // The runs of a pace sweep are named after their pause, which the workload lacks.
            let pause = (e.pace.is_some() && e.variant.iter().all(|v| v.name != name)).then_some(name);
            // As this variant runs it: a parameter may be its own, or every variant's.
            if of_workload.0 != plan.variant.with {
                let workload = e.workload_of(&plan.variant).map_err(AskedWrongly::Value)?;
                of_workload = (plan.variant.with.clone(), hash(&workload)?);
            }
            let own = (pause, &plan.machine, &plan.profile, settings(&plan.variant), plan.seed);
            let inputs = hash(&(&shared, &of_workload.1, own))?;
            let run = hash(&(&inputs, &plan.experiment, &plan.case, name))?;
            Ok((plan, Identity { run, inputs }))
        };
        self.plans(seeds, &Views::default())?.into_iter().flatten().map(identified).collect()
    }
}

/// All that a variant sets, under the kernel's names; its profile and switches are in the plan's
/// profile.
fn settings(variant: &Variant) -> Variant {
    let mut settings = variant.clone();
    settings.name.clear();
    settings.profile.clear();
    // The plan has the machine itself.
    settings.machine = None;
    settings.switches.clear();
    settings.sysctls = variant.sysctls_by_full_name().into_iter().map(|(name, value)| (name, value.into())).collect();
    settings
}

fn hash(inputs: &impl Serialize) -> Result<String, Error> {
    let json = serde_json::to_vec(inputs)
        .map_err(|e| Failed::Run { run: "the hash of a run's inputs".into(), reason: e.to_string() })?;
    let mut digits = sha256(&json);
    digits.truncate(DIGITS);
    Ok(digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;
    use crate::experiment::Experiment;

    fn identities(seed: u64, change: impl Fn(&mut Experiment)) -> Vec<Identity> {
        let (mut e, _) = catalog::experiment("hugepage-latency").expect("it is built in");
        (e.machine, e.target) = ("tiny-64m".into(), None);
        e.lack.clear();
        // Seeds matter.
        for variant in &mut e.variant {
            variant.with.insert("holes".into(), "random".into());
        }
        change(&mut e);
        let resolved = Resolved::new(e, None).expect("it fits");
        resolved.identified(&seed.into(), "0.1.0").expect("hashes").into_iter().map(|(_, identity)| identity).collect()
    }

    /// The second variant's run, without a pace sweep.
    fn second(change: impl Fn(&mut Experiment)) -> Identity {
        let all = identities(1, |e| {
            e.pace = None;
            change(e);
        });
        all[1].clone()
    }

    #[test]
    fn every_run_of_an_experiment_has_its_own_identity() {
        let of = identities(1, |e| e.repetitions = 3);
        let mut inputs: Vec<&str> = of.iter().map(|identity| identity.inputs.as_str()).collect();
        assert_eq!((of.len(), inputs[0].len()), (2 * 3 + 2 * 7, DIGITS), "variants × seeds, and the pace sweep");
        inputs.sort_unstable();
        inputs.dedup();
        assert_eq!(inputs.len(), of.len());
    }

    #[test]
    fn a_repetition_is_the_first_run_of_its_seed() {
        let (several, third) = (identities(1, |e| e.repetitions = 3), identities(3, |_| ()));
        assert_eq!([&several[2], &several[5]], [&third[0], &third[1]]);
    }

    #[test]
    fn a_name_changes_the_run_and_not_its_inputs_and_an_input_changes_both() {
        let before = second(|_| ());
        let renamed = second(|e| e.variant[1].name = "mine".into());
        assert!(before.inputs == renamed.inputs && before.run != renamed.run);
        let short = second(|e| {
            let value = e.variant[1].sysctls.remove("vm.compaction_proactiveness").expect("it sets it");
            e.variant[1].sysctls.insert("compaction_proactiveness".into(), value);
        });
        assert_eq!(before, short, "a sysctl is the same under its short name");
        for changed in [second(|e| e.rounds = 2), second(|e| e.machine = "box-2g".into())] {
            assert!(before.inputs != changed.inputs && before.run != changed.run);
        }
    }
}
