//! The state that a machine begins in, where that is not as after boot: a host's snapshot, one
//! estimated from a host's files, or one drawn from a distribution.

mod frames;
mod occupancy;
mod proc;

use crate::host_snapshot::HostSnapshot;
use frames::Frames;
use kontig_error::Error;
use kontig_mm::{Memory, Profile};
use kontig_sim::{FoundPage, MachineFile};
use kontig_workload::Kind;
use kontig_workload::occupancy::Occupancy;
use proc::ProcTexts;
use serde::{Deserialize, Serialize};

/// The state that a machine begins in. Results store it whole, so that they can be rerun anywhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Beginning {
    /// A host whose frames are known.
    Host(HostSnapshot),
    /// A host of which only some counts are known.
    Proc(ProcTexts),
    /// Memory whose use is drawn.
    Occupancy(Occupancy),
}

impl Beginning {
    /// The state that a workload begins with, its files read.
    ///
    /// # Errors
    /// If a file cannot be read or is none of its kind, with the line.
    pub(crate) fn of(kind: &Kind) -> Result<Option<Beginning>, Error> {
        Ok(match kind {
            Kind::Snapshot(found) => Some(Beginning::Host(HostSnapshot::read(&found.file)?)),
            Kind::Proc(found) => Some(Beginning::Proc(ProcTexts::read(found)?)),
            Kind::Occupancy(occupancy) => Some(Beginning::Occupancy(occupancy.clone())),
            _ => None,
        })
    }

    /// The machine that begins so, with the costs and disks of another machine.
    ///
    /// # Errors
    /// In one line, why the laboratory cannot be it.
    pub(crate) fn on(&self, base: &MachineFile) -> Result<MachineFile, String> {
        let has_files = match self {
            Beginning::Host(_) => false,
            Beginning::Proc(texts) => texts.files() > 0.0,
            Beginning::Occupancy(occupancy) => occupancy.files > 0.0,
        };
        if has_files && !base.has_disks() {
            return Err(format!("files: {} has no disk, and no page cache: files = 0, or another machine", base.name));
        }
        match self {
            Beginning::Host(host) => host.on(base),
            Beginning::Proc(texts) => texts.on(base),
            Beginning::Occupancy(_) => Ok(base.clone()),
        }
    }

    /// Notes for a run that begins so.
    pub(crate) fn notes(&self, base: &str) -> Vec<String> {
        match self {
            Beginning::Host(host) => host.notes(base),
            Beginning::Proc(texts) => texts.notes(base),
            Beginning::Occupancy(_) => vec![
                "starts with memory in use as drawn from a distribution; made up: the order in which pages were used, \
                 by address, and that none was used lately"
                    .into(),
            ],
        }
    }

    /// The machine's memory under a profile, and its users' pages. What is drawn comes from the
    /// seed.
    ///
    /// # Errors
    /// In one line, why the engine cannot be it.
    pub(crate) fn memory(&self, machine: &MachineFile, profile: &Profile, seed: u64) -> Result<Memory, String> {
        match self {
            Beginning::Host(host) => host.memory(profile, machine.has_disks()),
            _ => self.frames(machine, seed)?.memory(profile),
        }
    }

    /// The user pages of that memory.
    ///
    /// # Errors
    /// As [`Beginning::memory`].
    pub(crate) fn pages(&self, machine: &MachineFile, seed: u64) -> Result<Vec<FoundPage>, String> {
        match self {
            Beginning::Host(host) => Ok(host.pages()),
            _ => Ok(self.frames(machine, seed)?.users()),
        }
    }

    /// The use of each frame, where it is drawn.
    fn frames(&self, machine: &MachineFile, seed: u64) -> Result<Frames, String> {
        let mut frames = Frames::new(machine.spec()?);
        match self {
            Beginning::Proc(texts) => texts.fill(&mut frames, seed)?,
            Beginning::Occupancy(occupancy) => occupancy::fill(occupancy, &mut frames, seed),
            Beginning::Host(_) => {}
        }
        Ok(frames)
    }
}
