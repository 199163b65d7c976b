//! Plans: all that decides a run's outcome, checked before anything runs.

use crate::beginning::Beginning;
use crate::experiment::Variant;
use crate::groups;
use crate::mmtests::MmtestsRun;
use crate::sysctls;
use kontig_error::{AskedWrongly, Error};
use kontig_mm::{Memory, Profile};
use kontig_sim::MachineFile;
use kontig_workload::Scenario;
use std::path::PathBuf;

pub use crate::parameters::room;

/// The name of an experiment, or of a case of it.
pub(crate) fn key(id: &str, case: &str) -> String {
    if case.is_empty() { id.into() } else { format!("{id}/{case}") }
}

/// All that decides a run's outcome.
#[derive(Clone)]
pub struct RunPlan {
    pub experiment: String,
    /// Empty if the experiment has no cases.
    pub case: String,
    /// How often the measured phases repeat.
    pub rounds: u32,
    pub variant: Variant,
    /// The variant's profile, switches thrown.
    pub profile: Profile,
    pub machine: MachineFile,
    /// The state that the machine begins in, if it is not as after boot.
    pub begins_as: Option<Beginning>,
    /// The workload's phases and tasks.
    pub scenario: Scenario,
    /// Whether the seed matters.
    pub is_random: bool,
    pub repetition: u32,
    pub seed: u64,
    /// Directory for the machine's proc files at the start and the end of the measurement.
    pub procfs: Option<PathBuf>,
    /// Directory for its iterations in MMTests' layout.
    pub mmtests: Option<MmtestsRun>,
    /// File for the measurement's tracepoints.
    pub trace: Option<PathBuf>,
    /// File for the machine's files during the measurement.
    pub history: Option<PathBuf>,
    /// Whether it takes pictures of the pageblocks.
    pub pictures: bool,
}

/// Output of a session's runs besides their figures. None of it changes what they measure.
#[derive(Clone, Debug, Default)]
pub struct Views {
    /// Directory for the machines' proc files.
    pub procfs: Option<PathBuf>,
    /// Directory for results in MMTests' layout.
    pub mmtests: Option<PathBuf>,
    /// File for the tracepoints. Of several runs, each writes one with its name inserted.
    pub trace: Option<PathBuf>,
    /// File for a history of the machine's files, named alike.
    pub history: Option<PathBuf>,
    /// Whether maps will be shown or stored. The map shown is of a variant's first repetition, so
    /// no other run takes one.
    pub maps: bool,
}

impl RunPlan {
    /// A short name for messages.
    pub fn title(&self) -> String {
        format!("{} / {}", key(&self.experiment, &self.case), self.variant.name)
    }

    /// Whether another plan of the same workload has the same result, but for names.
    pub(crate) fn has_result_of(&self, other: &RunPlan) -> bool {
        self.is_alike_but_for_profile(other) && self.profile == other.profile
    }

    /// Whether another plan of the same workload, of another kernel, has the same machine until the
    /// first compaction run.
    pub(crate) fn begins_like(&self, other: &RunPlan) -> bool {
        let is_another = self.profile != other.profile;
        is_another && self.is_alike_but_for_profile(other) && self.profile.is_same_until_compaction(&other.profile)
    }

    /// Whether another plan of the same workload differs in its profile at most, but for names. A
    /// plan that writes files of its own always runs by itself.
    fn is_alike_but_for_profile(&self, other: &RunPlan) -> bool {
        // No `..`: a new field of a plan must be considered here.
        let RunPlan {
            experiment: _,
            case: _,
            scenario: _,
            is_random: _,
            rounds,
            variant,
            profile: _,
            machine,
            begins_as,
            repetition,
            seed,
            procfs,
            mmtests,
            trace,
            history,
            pictures,
        } = self;
        let leaves_files = procfs.is_some() || mmtests.is_some() || trace.is_some() || history.is_some();
        let other_leaves = other.procfs.is_some() || other.mmtests.is_some();
        let other_leaves = other_leaves || other.trace.is_some() || other.history.is_some();
        !leaves_files
            && !other_leaves
            && *rounds == other.rounds
            && (&variant.sysctls, &variant.with) == (&other.variant.sysctls, &other.variant.with)
            && *machine == other.machine
            && *begins_as == other.begins_as
            && (*repetition, *seed, *pictures) == (other.repetition, other.seed, other.pictures)
    }

    /// Checks machine, sysctls and scenario without booting.
    ///
    /// # Errors
    /// If the machine is impossible, a sysctl is unknown, not in the profile or out of range, or
    /// the scenario contradicts itself or does not fit the machine.
    pub fn check(&self) -> Result<(), Error> {
        let machine = self.machine.check();
        machine.map_err(|e| AskedWrongly::Value(format!("machine {}: {}", self.machine.name, e.reason)))?;
        let scenario = self.scenario.check().and_then(|()| self.scenario.fits(&room(&self.machine)));
        scenario.map_err(|e| AskedWrongly::Value(format!("{} on machine {}: {e}", self.title(), self.machine.name)))?;
        groups::can_be(&self.scenario.groups, &self.machine, &self.profile)
            .map_err(|reason| AskedWrongly::Value(format!("{}: {reason}", self.title())))?;
        let mut settings = self.variant.sysctl_texts().into_iter();
        settings.try_for_each(|(name, value)| sysctls::check(&self.variant, &self.profile, &name, &value))
    }

    /// The machine's memory under the variant's profile and sysctls, as after boot or as it begins.
    ///
    /// # Errors
    /// As [`RunPlan::check`].
    pub fn memory(&self) -> Result<Memory, Error> {
        let asked = |reason: String| Error::Asked(AskedWrongly::Value(reason));
        let spec = self.machine.spec().map_err(|e| asked(format!("machine {}: {e}", self.machine.name)))?;
        let made = match &self.begins_as {
            Some(beginning) => beginning.memory(&self.machine, &self.profile, self.seed),
            None => Memory::new(&spec, self.profile.clone()),
        };
        let mut mem = made.map_err(|e| asked(format!("machine {}: {e}", self.machine.name)))?;
        // A host's own settings came with it.
        if !matches!(self.begins_as, Some(Beginning::Host(_))) {
            mem.boot_as_distributions_do();
        }
        for (name, value) in self.variant.sysctl_texts() {
            // This wakes nothing: no task runs yet.
            mem.sysctl_write(&name, &value).map_err(|e| asked(e.to_string()))?;
        }
        Ok(mem)
    }
}
