//! Resolved experiments: every name looked up, every file read, and the runs planned.

use crate::catalog;
use crate::error::{AskedWrongly, LabError};
use crate::experiment::{Experiment, Target};
use crate::files::file_name;
use crate::plan::{RunPlan, Views};
use crate::source::Source;
use crate::sweep;
use kontig_mm::Profile;
use kontig_sim::MachineFile;
use kontig_workload::Wrong;
use serde::{Deserialize, Serialize};

/// An experiment with everything its names stand for: enough to run it again anywhere.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Resolved {
    /// The experiment.
    pub experiment: Experiment,
    /// Its machine.
    pub machine: MachineFile,
    /// The profile of each variant, switches thrown.
    pub profiles: Vec<Profile>,
    /// The published figures.
    pub target: Option<Target>,
    /// The machine of the pace sweep.
    pub pace_machine: Option<MachineFile>,
    /// What had to be said about the request, a line each.
    pub notes: Vec<String>,
}

impl Resolved {
    /// Looks up all an experiment names; `source` is the file it was read from, if it was.
    ///
    /// # Errors
    /// The first name that is unknown or file that is wrong.
    pub fn new(experiment: Experiment, source: Option<&Source>) -> Result<Resolved, LabError> {
        let id = experiment.id.clone();
        let wrong = |wrong: Wrong| match source {
            Some(source) if !source.built_in => source.wrong(wrong),
            _ => AskedWrongly::Contradictory { path: id.clone(), reason: wrong.reason }.into(),
        };
        let machine = catalog::machine(&experiment.machine)?.0;
        let profiles = experiment
            .variant
            .iter()
            .map(|v| catalog::profile_with(&v.profile, &v.switches))
            .collect::<Result<_, _>>()?;
        let target = experiment.target.as_deref().map(|t| catalog::target(t).map(|(t, _)| t)).transpose()?;
        if let Some(t) = &target
            && t.variants.len() != experiment.variant.len()
        {
            let reason = format!("{} variants, but target {} has {}", experiment.variant.len(), t.id, t.variants.len());
            return Err(wrong(Wrong::at(&["target"], reason)));
        }
        let pace_machine =
            experiment.pace.as_ref().map(|p| catalog::machine(&p.machine).map(|(m, _)| m)).transpose()?;
        let resolved = Resolved { experiment, machine, profiles, target, pace_machine, notes: Vec::new() };
        resolved.fits().map_err(wrong)?;
        Ok(resolved)
    }

    /// Whether the workload fits the machine.
    fn fits(&self) -> Result<(), Wrong> {
        let fits = |machine: &MachineFile| {
            let spec = machine.spec().map_err(|reason| Wrong::at(&["machine"], reason))?;
            let pages = spec.zones.iter().map(|z| z.managed).sum();
            self.experiment
                .workload
                .fits(pages, machine.cpus, &machine.file_pages())
                .map_err(|wrong| wrong.below(&["workload"]))
        };
        fits(&self.machine)?;
        let Some(machine) = &self.pace_machine else { return Ok(()) };
        let of_pace = |wrong: Wrong| format!("on {}, the pace sweep's machine: {}", machine.name, wrong.reason);
        fits(machine).map_err(|wrong| Wrong::at(&["pace", "machine"], of_pace(wrong)))
    }

    /// Whether its parts fit together, as they do when they were looked up, but may not when they were stored.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.experiment.validate().map_err(|wrong| wrong.reason)?;
        if self.profiles.len() != self.experiment.variant.len() {
            return Err(format!("{} variants, {} profiles", self.experiment.variant.len(), self.profiles.len()));
        }
        self.profiles.iter().try_for_each(kontig_profiles::check)?;
        self.target.as_ref().map_or(Ok(()), Target::validate)?;
        [Some(&self.machine), self.pace_machine.as_ref()].into_iter().flatten().try_for_each(catalog::check_machine)?;
        self.fits().map_err(|wrong| wrong.reason)
    }

    /// The kernels of this experiment that nothing but a description stands for, a line.
    pub(crate) fn not_recorded(&self) -> Option<String> {
        let mut names: Vec<&str> = self.profiles.iter().filter(|p| !p.recorded).map(|p| p.name.as_str()).collect();
        names.dedup();
        let are = if names.len() == 1 { "profile" } else { "profiles" };
        (!names.is_empty())
            .then(|| format!("{are} {}: followed from descriptions of the kernel, none was recorded", names.join(", ")))
    }

    /// The variants' names, baseline first.
    pub fn variants(&self) -> Vec<String> {
        self.experiment.variant.iter().map(|v| v.name.clone()).collect()
    }

    fn plan(&self, i: usize, seed: u64) -> RunPlan {
        RunPlan {
            experiment: self.experiment.id.clone(),
            variant: self.experiment.variant[i].clone(),
            profile: self.profiles[i].clone(),
            machine: self.machine.clone(),
            scenario: self.experiment.workload.scenario(),
            repetition: 0,
            seed,
            procfs: None,
            pictures: false,
        }
    }

    /// How often each variant runs: once where nothing is random, because a copy of a run is no evidence.
    fn repetitions(&self) -> u32 {
        if self.experiment.workload.scenario().is_random() { self.experiment.repetitions } else { 1 }
    }

    /// All runs: variants × repetitions, then the pace sweep's points for each variant. Those that prepare the machine
    /// alike are together.
    pub(crate) fn plans(&self, seed: u64, views: &Views) -> Vec<Vec<RunPlan>> {
        let mut plans = Vec::new();
        for (i, v) in self.experiment.variant.iter().enumerate() {
            let base = views.procfs.as_ref().map(|d| d.join(&self.experiment.id).join(file_name(&v.name)));
            for repetition in 0..self.repetitions() {
                let procfs = base.as_ref().map(|d| d.join(repetition.to_string()));
                plans.push(vec![RunPlan {
                    repetition,
                    seed: seed.wrapping_add(u64::from(repetition)),
                    procfs,
                    pictures: views.maps && repetition == 0,
                    ..self.plan(i, seed)
                }]);
            }
        }
        if let (Some(pace), Some(machine)) = (&self.experiment.pace, &self.pace_machine) {
            for i in 0..self.experiment.variant.len() {
                plans.extend(sweep::plans(&self.plan(i, seed), &self.experiment.workload, pace, machine));
            }
        }
        plans
    }
}
