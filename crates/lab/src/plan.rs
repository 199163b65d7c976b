//! Plans: everything that decides a run's outcome, checked before anything runs.

use crate::error::{AskedWrongly, LabError};
use crate::experiment::Variant;
use crate::host_snapshot::HostSnapshot;
use crate::mmtests::MmtestsRun;
use crate::sysctls;
use kontig_mm::{Memory, Profile};
use kontig_sim::MachineFile;
use kontig_workload::{Room, Scenario};
use std::path::PathBuf;

/// What an experiment or a case of it is called.
pub(crate) fn key(id: &str, case: &str) -> String {
    if case.is_empty() { id.into() } else { format!("{id}/{case}") }
}

/// What a machine has for a workload.
pub(crate) fn room(machine: &MachineFile) -> Room {
    Room { nodes: machine.node_pages(), swap: machine.swap_pages(), cpus: machine.cpus, disks: machine.file_pages() }
}

/// Everything that decides a run's outcome.
#[derive(Clone)]
pub struct RunPlan {
    /// The experiment it belongs to.
    pub experiment: String,
    /// The case of it; empty if it has none.
    pub case: String,
    /// How often the measured phases follow each other.
    pub rounds: u32,
    /// The variant.
    pub variant: Variant,
    /// Its profile, switches thrown.
    pub profile: Profile,
    /// The machine.
    pub machine: MachineFile,
    /// The host that its machine begins as, if it is one that was found.
    pub begins_as: Option<HostSnapshot>,
    /// What runs on it.
    pub scenario: Scenario,
    /// Which repetition.
    pub repetition: u32,
    /// The seed of its randomness.
    pub seed: u64,
    /// Where to write the machine's proc files at the beginning and the end of the measurement.
    pub procfs: Option<PathBuf>,
    /// Where to write its iterations in the layout of MMTests.
    pub mmtests: Option<MmtestsRun>,
    /// Whether it takes pictures of the machine's pageblocks.
    pub pictures: bool,
}

/// What is seen of a session's runs besides their figures. None of it changes what they measure.
#[derive(Clone, Debug, Default)]
pub struct Views {
    /// The directory for the machines' proc files.
    pub procfs: Option<PathBuf>,
    /// The directory for results in the layout of MMTests.
    pub mmtests: Option<PathBuf>,
    /// Whether somebody will look at the maps, or at files that hold them. The one that is shown is of a variant's first
    /// repetition, so no other run has a map.
    pub maps: bool,
}

impl RunPlan {
    /// A short name for messages.
    pub fn title(&self) -> String {
        format!("{} / {}", key(&self.experiment, &self.case), self.variant.name)
    }

    /// Whether another plan of the same workload has the same result, but for names. A plan whose files somebody wants is carried out itself.
    pub(crate) fn has_result_of(&self, other: &RunPlan) -> bool {
        // Without `..`: whatever a plan comes to hold has to be thought of here.
        let RunPlan {
            experiment: _,
            case: _,
            scenario: _,
            rounds,
            variant,
            profile,
            machine,
            begins_as,
            repetition,
            seed,
            procfs,
            mmtests,
            pictures,
        } = self;
        let leaves_files = procfs.is_some() || mmtests.is_some() || other.procfs.is_some() || other.mmtests.is_some();
        !leaves_files
            && *rounds == other.rounds
            && variant.sysctls == other.variant.sysctls
            && *profile == other.profile
            && *machine == other.machine
            && *begins_as == other.begins_as
            && (*repetition, *seed, *pictures) == (other.repetition, other.seed, other.pictures)
    }

    /// Whether the machine could be made, the sysctls be set and the scenario be run; nothing is booted.
    ///
    /// # Errors
    /// If the machine cannot be, a sysctl is unknown, not in the profile or out of range, or the scenario contradicts
    /// itself or does not fit the machine.
    pub fn check(&self) -> Result<(), LabError> {
        let machine = self.machine.check();
        machine.map_err(|e| AskedWrongly::Value(format!("machine {}: {}", self.machine.name, e.reason)))?;
        let scenario = self.scenario.check().and_then(|()| self.scenario.fits(&room(&self.machine)));
        scenario.map_err(|e| AskedWrongly::Value(format!("{} on machine {}: {e}", self.title(), self.machine.name)))?;
        let mut settings = self.variant.sysctl_texts().into_iter();
        settings.try_for_each(|(name, value)| sysctls::check(&self.variant, &self.profile, &name, &value))
    }

    /// The machine's memory under the variant's profile and sysctls, as after boot or as a host was found with it.
    ///
    /// # Errors
    /// As [`RunPlan::check`].
    pub fn memory(&self) -> Result<Memory, LabError> {
        let asked = |reason: String| LabError::Asked(AskedWrongly::Value(reason));
        let spec = self.machine.spec().map_err(|e| asked(format!("machine {}: {e}", self.machine.name)))?;
        let made = match &self.begins_as {
            Some(host) => host.memory(&self.profile, spec.lru),
            None => Memory::new(&spec, self.profile.clone()),
        };
        let mut mem = made.map_err(|e| asked(format!("machine {}: {e}", self.machine.name)))?;
        for (name, value) in self.variant.sysctl_texts() {
            // Nothing is woken by it: no task runs yet.
            mem.sysctl_write(&name, &value).map_err(|e| asked(e.to_string()))?;
        }
        Ok(mem)
    }
}
