//! Resolved experiments: every name looked up, every file read, and the runs planned.

use crate::beginning::Beginning;
use crate::experiment::{Case, Experiment, Variant};
use crate::gate::Available;
use crate::groups;
use crate::host_snapshot::HostSnapshot;
use crate::mmtests::MmtestsRun;
use crate::plan::{RunPlan, Views, key, room};
use crate::quantity::Quantity;
use crate::run::unrun;
use crate::source::Source;
use crate::sweep;
use crate::sysctls;
use crate::target::{Target, TargetRow, is_of_case};
use crate::{catalog, names, parameters, profiles};
use kontig_error::files::file_name;
use kontig_error::{AskedWrongly, Error};
use kontig_live::Roots;
use kontig_mm::Profile;
use kontig_results::Seeds;
use kontig_sim::MachineFile;
use kontig_workload::{Kind, Wrong};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Makes errors of an experiment, with the place in its file if it is the user's.
fn complaint<'a>(experiment: &Experiment, source: Option<&'a Source>) -> impl Fn(Wrong) -> Error + use<'a> {
    let id = experiment.id.clone();
    move |wrong: Wrong| match source {
        Some(source) if !source.built_in => source.wrong(wrong),
        _ => AskedWrongly::Contradictory { path: id.clone(), reason: wrong.reason }.into(),
    }
}

/// An experiment, or one case of it, with the content of everything it names: enough to rerun it
/// anywhere.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Resolved {
    /// The experiment; that of one case has no others.
    pub experiment: Experiment,
    /// The case; empty of an experiment that has none.
    pub case: String,
    pub machine: MachineFile,
    /// The machines of variants that have one of their own, by the name they give it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machines: BTreeMap<String, MachineFile>,
    /// The state that the machine begins in, if it is not as after boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins_as: Option<Beginning>,
    /// The profile of each variant, switches thrown.
    pub profiles: Vec<Profile>,
    pub target: Option<Target>,
    /// The machine of the pace sweep.
    pub pace_machine: Option<MachineFile>,
    /// Remarks on the request, one a line.
    pub notes: Vec<String>,
}

impl Resolved {
    /// Looks up everything an experiment names, case by case. `source` is its file, if it has one.
    ///
    /// # Errors
    /// The first name that is unknown or file that is wrong.
    pub fn all(experiment: &Experiment, source: Option<&Source>) -> Result<Vec<Resolved>, Error> {
        if experiment.case.is_empty() {
            return Ok(vec![Resolved::new(experiment.clone(), source)?]);
        }
        let cases: Vec<&str> = experiment.case.iter().map(|case| case.name.as_str()).collect();
        let of_case = |(i, case): (usize, &Case)| {
            let one = Resolved::of_case(experiment.of_case(case), &case.name, source, &["case", &i.to_string()])?;
            let rows = one.target.iter().flat_map(|t| &t.row).filter_map(|row| row.case.as_deref());
            match rows.into_iter().find(|case| !cases.contains(case)) {
                Some(other) => {
                    let reason = format!("of the target's rows: {}", names::did_you_mean("case", other, &cases));
                    Err(complaint(experiment, source)(Wrong::at(&["case"], reason)))
                }
                None => Ok(one),
            }
        };
        experiment.case.iter().enumerate().map(of_case).collect()
    }

    /// Looks up everything that an experiment without cases names.
    ///
    /// # Errors
    /// As [`Resolved::all`].
    pub fn new(experiment: Experiment, source: Option<&Source>) -> Result<Resolved, Error> {
        Resolved::of_case(experiment, "", source, &[])
    }

    /// The same of one case, which begins at this place of the file.
    fn of_case(experiment: Experiment, case: &str, source: Option<&Source>, at: &[&str]) -> Result<Resolved, Error> {
        let wrong = complaint(&experiment, source);
        let base = catalog::machine(&experiment.machine)?.0;
        let begins_as = experiment.workload.beginning().map(Beginning::of).transpose()?.flatten();
        let (machine, notes) = match &begins_as {
            None => (base, Vec::new()),
            Some(beginning) => {
                let wrong = |reason: String| match experiment.workload.beginning() {
                    Some(Kind::Snapshot(found)) => format!("{}: {reason}", found.file),
                    _ => reason,
                };
                let machine = beginning.on(&base).map_err(|reason| AskedWrongly::Value(wrong(reason)))?;
                (machine, beginning.notes(&base.name))
            }
        };
        let own: BTreeSet<&String> = experiment.variant.iter().filter_map(|v| v.machine.as_ref()).collect();
        let own = own.into_iter().map(|name| catalog::machine(name).map(|(machine, _)| (name.clone(), machine)));
        let machines: BTreeMap<String, MachineFile> = own.collect::<Result<_, _>>()?;
        if begins_as.is_some() && !machines.is_empty() {
            let reason = "a snapshot is of one machine: name no other for a variant";
            return Err(wrong(Wrong::at(&["variant"], reason)));
        }
        let profiles = profiles::of_each(experiment.variant.iter().map(Variant::kernel))?;
        let (target, of_target) = experiment.target.as_deref().map(catalog::target).transpose()?.unzip();
        if let Some(t) = &target
            && t.variants.len() != experiment.variant.len()
        {
            let reason = format!("{} variants, but target {} has {}", experiment.variant.len(), t.id, t.variants.len());
            return Err(wrong(Wrong::at(&["target"], reason)));
        }
        let pace_machine =
            experiment.pace.as_ref().map(|p| catalog::machine(&p.machine).map(|(m, _)| m)).transpose()?;
        let case = case.to_owned();
        let resolved =
            Resolved { experiment, case, machine, machines, begins_as, profiles, target, pace_machine, notes };
        resolved.check_target().map_err(&wrong)?;
        resolved.fits().map_err(|e| wrong(if at.is_empty() { e } else { Wrong::at(at, e.reason) }))?;
        // A test checks those that are built in.
        if let Some(source) = of_target.filter(|source| !source.built_in) {
            resolved.check_rows()?.map_err(|wrong| source.wrong(wrong))?;
        }
        Ok(resolved)
    }

    /// Checks that the runs of a variant measure what the target's rows are of. An experiment that
    /// cannot run, or has no room in this host's memory, is not checked: it is refused elsewhere.
    ///
    /// # Errors
    /// If a run cannot be built. The inner error is the first row that is of nothing.
    pub(crate) fn check_rows(&self) -> Result<Result<(), Wrong>, Error> {
        let rows = self.target.iter().flat_map(|t| t.row.iter().enumerate());
        let mut left: Vec<(usize, &TargetRow)> = rows.filter(|(_, row)| is_of_case(&row.case, &self.case)).collect();
        let mut lacking = None;
        let available = Available::read(&Roots::default()).bytes;
        for variant in 0..self.experiment.variant.len() {
            let plan = self.plan(variant, 1)?;
            if plan.check().is_err() || plan.machine.host_bytes().is_ok_and(|bytes| bytes > available) {
                return Ok(Ok(()));
            }
            let runs = [unrun(&plan)?];
            left.retain(|(_, row)| Quantity::unmeasured(row, &runs).is_some());
            let Some((i, row)) = left.first() else { return Ok(Ok(())) };
            lacking = Quantity::unmeasured(row, &runs).map(|wrong| wrong.below(&["row", &i.to_string()]));
        }
        Ok(lacking.map_or(Ok(()), Err))
    }

    /// The experiment's name, followed by a slash and the case.
    pub fn key(&self) -> String {
        key(&self.experiment.id, &self.case)
    }

    /// Checks that the target's series have as many rounds as the experiment, and that its caveats
    /// and lacks name rows of the target.
    fn check_target(&self) -> Result<(), Wrong> {
        let (e, target) = (&self.experiment, self.target.as_ref());
        if let Some(t) = target
            && t.series.iter().any(|series| is_of_case(&series.case, &self.case))
            && t.rounds.is_some_and(|rounds| rounds != e.rounds)
        {
            let published = t.rounds.unwrap_or_default();
            let reason = format!(
                "rounds = {}, but the series of target {} are of {published} rounds: \
                 another number goes without target, [[lack]] and [[caveat]]",
                e.rounds, t.id
            );
            return Err(Wrong::at(&["rounds"], reason));
        }
        let rows: Vec<&TargetRow> = target.iter().flat_map(|t| &t.row).collect();
        if let (true, Some(t)) = (self.case.is_empty(), target)
            && let Some(case) = t.row.iter().find_map(|row| row.case.as_ref())
        {
            let reason = format!("rows of target {} are of cases, such as '{case}': the experiment has none", t.id);
            return Err(Wrong::at(&["target"], reason));
        }
        for (i, caveat) in e.caveat.iter().enumerate() {
            let number = i.to_string();
            if target.is_none() {
                return Err(Wrong::at(&["caveat", &number], "a [[caveat]] is of published rows: name their target"));
            }
            // Of several cases each has its own target, and this caveat may be of another's rows.
            if self.case.is_empty() || caveat.case.as_ref() == Some(&self.case) {
                caveat.check(&rows).map_err(|wrong| wrong.below(&["caveat", &number]))?;
            }
        }
        for (i, lack) in e.lack.iter().enumerate() {
            let number = i.to_string();
            if target.is_none() {
                return Err(Wrong::at(&["lack", &number], "a [[lack]] is of published rows: name their target"));
            }
            if let Some(case) = lack.case.as_ref().filter(|case| **case != self.case)
                && !rows.iter().any(|row| row.case.as_ref() == Some(case))
            {
                let known: Vec<&str> = rows.iter().filter_map(|row| row.case.as_deref()).collect();
                let reason = match known.is_empty() {
                    true => format!("case '{case}': the target's rows are of no case: leave it out"),
                    false => names::did_you_mean("case", case, &known),
                };
                return Err(Wrong::at(&["lack", &number, "case"], reason));
            }
            if is_of_case(&lack.case, &self.case) {
                lack.check(&rows).map_err(|wrong| wrong.below(&["lack", &number]))?;
            }
        }
        Ok(())
    }

    /// The machine of a variant.
    fn machine_of(&self, v: &Variant) -> &MachineFile {
        v.machine.as_ref().and_then(|name| self.machines.get(name)).unwrap_or(&self.machine)
    }

    /// The names of all machines that variants run on.
    pub(crate) fn machine_names(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for machine in self.experiment.variant.iter().map(|v| self.machine_of(v)) {
            if !names.contains(&machine.name.as_str()) {
                names.push(&machine.name);
            }
        }
        names.join(" and ")
    }

    /// Checks that workload and settings of each variant fit its machine.
    fn fits(&self) -> Result<(), Wrong> {
        let all = || self.experiment.variant.iter().enumerate();
        all().try_for_each(|(i, v)| self.variant_fits(i, self.machine_of(v)))?;
        let Some(machine) = &self.pace_machine else { return Ok(()) };
        let of_pace = |wrong: Wrong| format!("on {}, the pace sweep's machine: {}", machine.name, wrong.reason);
        all()
            .try_for_each(|(i, _)| self.variant_fits(i, machine))
            .map_err(|wrong| Wrong::at(&["pace", "machine"], of_pace(wrong)))
    }

    fn variant_fits(&self, i: usize, machine: &MachineFile) -> Result<(), Wrong> {
        let (variant, number) = (&self.experiment.variant[i], i.to_string());
        machine.check().map_err(|wrong| Wrong::at(&["machine"], wrong.reason))?;
        let pages = machine.node_pages().iter().sum();
        let leaves = |(name, value): &(String, String)| sysctls::leaves_memory(name, value, pages);
        let all = variant.sysctl_texts();
        all.iter().try_for_each(leaves).map_err(|e| Wrong::at(&["variant", &number, "sysctls"], e))?;
        let of_variant = |reason: String| Wrong::at(&["variant", &number, "with"], reason);
        let workload = self.experiment.workload_of(variant).map_err(of_variant)?;
        let groups = workload.scenario().groups;
        groups::can_be(&groups, machine, &self.profiles[i])
            .map_err(|reason| Wrong::at(&["workload", "group"], reason))?;
        parameters::fits(&workload, &room(machine)).map_err(|wrong| match (&variant.machine, variant.with.is_empty()) {
            (None, true) => wrong.below(&["workload"]),
            _ => Wrong::at(&["variant", &number], format!("'{}': {}", variant.name, wrong.reason)),
        })
    }

    /// Checks that its parts fit together, which a stored result may violate.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.experiment.validate().map_err(|wrong| wrong.reason)?;
        if self.profiles.len() != self.experiment.variant.len() {
            return Err(format!("{} variants, {} profiles", self.experiment.variant.len(), self.profiles.len()));
        }
        self.profiles.iter().try_for_each(kontig_profiles::check)?;
        self.target.as_ref().map_or(Ok(()), Target::validate).and(self.check_target()).map_err(|wrong| wrong.reason)?;
        let named = self.experiment.variant.iter().filter_map(|v| v.machine.as_ref());
        if let Some(name) = named.into_iter().find(|name| !self.machines.contains_key(*name)) {
            return Err(format!("machine {name} of a variant is not there"));
        }
        let mut machines = [Some(&self.machine), self.pace_machine.as_ref()].into_iter().flatten();
        machines.try_for_each(MachineFile::check).map_err(|wrong| wrong.reason)?;
        self.fits().map_err(|wrong| wrong.reason)
    }

    /// Begins as a host that is at hand instead of one in a file. Costs and disks stay the
    /// machine's.
    ///
    /// # Errors
    /// In one line, why the laboratory cannot be this host, or what does not fit it.
    pub fn begin_as(mut self, host: HostSnapshot) -> Result<Resolved, Error> {
        let wrong = |reason: String| Error::from(AskedWrongly::Value(reason));
        let base = self.machine.name.clone();
        self.machine = host.on(&self.machine).map_err(wrong)?;
        self.notes.extend(host.notes(&base));
        self.begins_as = Some(Beginning::Host(host));
        self.fits().map_err(|e| wrong(e.reason))?;
        Ok(self)
    }

    /// Whether its machine begins as a host whose frames and settings are known.
    pub fn begins_as_host(&self) -> bool {
        matches!(self.begins_as, Some(Beginning::Host(_)))
    }

    /// Lines on the parts of this experiment that rest on a model which was held against less than
    /// the rest.
    pub(crate) fn rests_on(&self) -> Vec<String> {
        let mut lines = self.not_recorded();
        for variant in &self.experiment.variant {
            let of = self.experiment.workload_of(variant).is_ok_and(|of| of.scenario().needs_translation());
            let machine = self.machine_of(variant);
            if let Some(translation) = machine.translation.as_ref().filter(|_| of) {
                let line = format!("{}: {}", machine.name, translation.said());
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        lines
    }

    /// The kernels of this experiment that nothing but their sources stands for, or that were
    /// recorded without reclaim: a line each.
    fn not_recorded(&self) -> Vec<String> {
        let reclaims = self.machine.has_disks();
        let said = |what: &str, is: &dyn Fn(&Profile) -> bool| {
            let names = self.names_of(is);
            let are = if names.len() == 1 { "profile" } else { "profiles" };
            (!names.is_empty()).then(|| format!("{are} {}: {what}", names.join(", ")))
        };
        let without =
            said("recorded without reclaim, which follows the sources", &|p| p.recorded && !p.reclaim_recorded);
        let none = said("followed from source, none was recorded", &|p| !p.recorded);
        none.into_iter().chain(without.filter(|_| reclaims)).collect()
    }

    /// The variants' profiles of this kind, each with its switches.
    fn names_of(&self, is: &dyn Fn(&Profile) -> bool) -> Vec<String> {
        let these = self.profiles.iter().zip(&self.experiment.variant).filter(|(p, _)| is(p));
        let name = |(profile, variant): (&Profile, &Variant)| match variant.switches.as_slice() {
            [] => profile.name.clone(),
            switches => format!("{} with {}", profile.name, switches.join(" and ")),
        };
        let mut names: Vec<String> = these.map(name).collect();
        names.dedup();
        names
    }

    /// The variants' names, baseline first.
    pub fn variants(&self) -> Vec<String> {
        self.experiment.variant.iter().map(|v| v.name.clone()).collect()
    }

    fn plan(&self, i: usize, seed: u64) -> Result<RunPlan, Error> {
        let v = &self.experiment.variant[i];
        let workload = self.experiment.workload_of(v).map_err(AskedWrongly::Value)?;
        Ok(RunPlan {
            experiment: self.experiment.id.clone(),
            case: self.case.clone(),
            rounds: self.experiment.rounds,
            variant: v.clone(),
            profile: self.profiles[i].clone(),
            machine: self.machine_of(v).clone(),
            begins_as: self.begins_as.clone(),
            scenario: workload.scenario(),
            is_random: workload.is_random(),
            repetition: 0,
            seed,
            procfs: None,
            mmtests: None,
            trace: None,
            history: None,
            pictures: false,
        })
    }

    /// Where its files are below a directory of several experiments'.
    fn directory(&self, of_all: &Path) -> PathBuf {
        match self.case.as_str() {
            "" => of_all.join(&self.experiment.id),
            case => of_all.join(&self.experiment.id).join(file_name(case)),
        }
    }

    /// All runs: variants × repetitions, then the pace sweep's points for each variant. Runs that
    /// prepare the machine alike are grouped.
    ///
    /// # Errors
    /// If a variant has a parameter that its workload does not take.
    pub(crate) fn plans(&self, seeds: &Seeds, views: &Views) -> Result<Vec<Vec<RunPlan>>, Error> {
        let mut plans = Vec::new();
        let each = (0..self.experiment.variant.len()).map(|i| self.plan(i, seeds.of(0)));
        let each: Vec<RunPlan> = each.collect::<Result<_, _>>()?;
        // If nothing is random, once: a copy of a run is no evidence.
        let repetitions = if self.experiment.is_random() { self.experiment.repetitions } else { 1 };
        for (plan, v) in each.iter().zip(&self.experiment.variant) {
            let of_variant = |d: &PathBuf| self.directory(d).join(file_name(&v.name));
            let (base, mmtests) = (views.procfs.as_ref().map(of_variant), views.mmtests.as_ref().map(of_variant));
            for repetition in 0..repetitions {
                let procfs = base.as_ref().map(|d| d.join(repetition.to_string()));
                let first = repetition * self.experiment.rounds;
                plans.push(vec![RunPlan {
                    repetition,
                    seed: seeds.of(repetition),
                    procfs,
                    mmtests: mmtests.clone().map(|dir| MmtestsRun { dir, first }),
                    trace: views.trace.clone(),
                    history: views.history.clone(),
                    pictures: views.maps && repetition == 0,
                    ..plan.clone()
                }]);
            }
        }
        if let (Some(pace), Some(machine)) = (&self.experiment.pace, &self.pace_machine) {
            for plan in &each {
                plans.extend(sweep::plans(plan, &self.experiment.workload, pace, machine));
            }
        }
        Ok(plans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_were_not_recorded_or_without_reclaim_are_named() {
        let said = |machine: &str| {
            let (e, _) = catalog::experiment("compact-32g").unwrap_or_else(|e| panic!("{e}"));
            let of = |profile: &str| Variant { name: profile.into(), profile: profile.into(), ..Variant::default() };
            let variant = ["3.13", "4.6", "5.0", "6.1"].map(of).to_vec();
            let (target, machine) = (None, machine.into());
            let e = Experiment { variant, target, machine, caveat: Vec::new(), lack: Vec::new(), pace: None, ..e };
            Resolved::new(e, None).unwrap_or_else(|e| panic!("{e}")).not_recorded()
        };
        let none = "profile 4.6: followed from source, none was recorded";
        let without = "profiles 3.13, 5.0: recorded without reclaim, which follows the sources";
        assert_eq!(said("box-2g"), [none, without]);
        assert_eq!(said("xeon-64g"), [none], "nothing is reclaimed without a disk");
    }

    #[test]
    fn every_row_of_a_built_in_target_is_of_something_that_its_experiment_measures() {
        for e in catalog::experiments().unwrap_or_else(|e| panic!("{e}")) {
            for case in Resolved::all(&e, None).unwrap_or_else(|e| panic!("{e}")) {
                let rows = case.check_rows().unwrap_or_else(|e| panic!("{e}"));
                assert_eq!(rows, Ok(()), "{}", case.key());
            }
        }
    }
}
