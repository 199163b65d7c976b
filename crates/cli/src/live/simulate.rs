//! `kontig explain --simulate`: recommended settings tried in the laboratory, on the host's own
//! snapshot.
//!
//! The host as it is runs beside a copy with each setting. The work is the same in each: for half a
//! minute a process replaces its memory and the kernel's own threads do what they do; then another
//! touches memory in huge pages. Together they take as much as is free and half of the files' clean
//! pages, so reclaim and compaction happen. This host's own load is not known: no file shows it.

use crate::args::COSTS_OF_HOSTS;
use crate::reproduce::run_session;
use kontig_lab::experiment::{Experiment, Variant};
use kontig_lab::host_snapshot::HostSnapshot;
use kontig_lab::plan::Views;
use kontig_lab::resolved::Resolved;
use kontig_lab::session::Session;
use kontig_lab::{AskedWrongly, Failed, LabError};
use kontig_live::Snapshot;
use kontig_live::cgroup::Limit;
use kontig_live::explain::{Finding, Setting};
use kontig_live::frame::State;
use kontig_live::lru_gen;
use kontig_live::number::size;
use kontig_live::snapshot::FoundZone;
use kontig_mm::sysctl::Sysctl;
use kontig_results::ExperimentResult;
use kontig_workload::Workload;
use serde::Serialize;
use std::collections::BTreeMap;

/// The result of a simulation.
#[derive(Serialize)]
pub struct Simulation {
    /// A sentence on what was simulated.
    pub said: String,
    /// The profile whose rules stand for the host's kernel.
    pub profile: String,
    /// Settings that were tried, in the order of the table's columns after the first, which is the
    /// host as it is.
    pub tried: Vec<Setting>,
    /// Recommended settings that could not be, and why.
    pub not_tried: Vec<NotTried>,
    /// The table, as in `kontig.reproduce`; null where nothing was tried.
    pub table: Option<ExperimentResult>,
}

/// A recommended setting that was not tried.
#[derive(Serialize)]
pub struct NotTried {
    pub name: String,
    pub why: String,
}

/// The host as it is.
const AS_IT_IS: &str = "as it is";

/// Tries what the findings recommend, on this snapshot of a host with or without the
/// multi-generational LRU.
///
/// # Errors
/// If the laboratory cannot be this host, or a run cannot go on.
pub fn simulate(
    findings: &[Finding],
    snapshot: Snapshot,
    limit: Option<&Limit>,
    lru_gen_on: Option<bool>,
) -> Result<Simulation, LabError> {
    let host = HostSnapshot::new("host", snapshot.clone());
    let none = || {
        let reason = format!("'{}' is no kernel's release, so no profile stands for it", host.kernel());
        LabError::from(Failed::Run { run: "explain".into(), reason })
    };
    let profile = host.profile().ok_or_else(none)?;
    let (mut tried, mut not_tried): (Vec<Setting>, Vec<NotTried>) = (Vec::new(), Vec::new());
    for setting in findings.iter().filter_map(Finding::setting) {
        let why = match Sysctl::find(&setting.name) {
            None => "the laboratory does not have it",
            Some(sysctl) if !sysctl.exists(&profile) => "the rules that stand for this kernel do not have it",
            Some(sysctl) if sysctl.parse(&profile, &setting.value).is_err() => {
                "the rules that stand for this kernel do not take this value"
            }
            Some(_) if tried.contains(&setting) => continue,
            Some(_) => {
                tried.push(setting);
                continue;
            }
        };
        not_tried.push(NotTried { name: setting.name, why: why.into() });
    }
    let load = Load::on(&snapshot, limit);
    let kernel = host.kernel().to_string();
    let mut said = format!(
        "A simulation, not this host: Linux {kernel} as it was found just now, by the rules of {}. For 30 s a \
         process replaces {}, then another touches {} in huge pages. Which load this host has is not known.",
        profile.name,
        size(load.replaced),
        size(load.touched)
    );
    if let Some(limit) = limit {
        said += &format!(
            " Together they have no more than control group {} still gets, {}.",
            limit.group,
            size(limit.room_bytes())
        );
    }
    if lru_gen_on == Some(true) {
        said += &format!(" And {}.", lru_gen::not_modelled());
    }
    let mut simulation = Simulation { said, profile: profile.name, tried, not_tried, table: None };
    if !simulation.tried.is_empty() {
        let experiment = experiment(&simulation, load)?;
        simulation.table = Some(run(experiment, host)?);
    }
    Ok(simulation)
}

/// Bytes of the two processes.
#[derive(Clone, Copy)]
struct Load {
    replaced: u64,
    touched: u64,
}

impl Load {
    /// A load that fits this machine and the limits of control groups.
    fn on(snapshot: &Snapshot, limit: Option<&Limit>) -> Load {
        const HUGE: u64 = 2 << 20;
        let pages = |zone: &FoundZone| {
            let census = snapshot.census(zone.frames());
            let of = |state: State| census[state as usize];
            of(State::Free)
                + of(State::Cached)
                + of(State::Deferred)
                + (of(State::FileClean) + of(State::FileMapped)) / 2
        };
        let free = snapshot.zones.iter().map(pages).sum::<u64>() * snapshot.host.page_size;
        let room = limit.map_or(free, |limit| free.min(limit.room_bytes()));
        let replaced = (room / 64).clamp(1 << 20, 64 << 20);
        Load { replaced, touched: (room.saturating_sub(replaced) / HUGE).max(1) * HUGE }
    }
}

/// The experiment with this load.
fn experiment(simulation: &Simulation, load: Load) -> Result<Experiment, LabError> {
    let text = format!(
        "[[phase]]\nname = \"before\"\nseconds = 30\n[[phase.task]]\nname = \"churn\"\nbackground = true\ncopies = 1\n\
         run = {{ kind = \"churn\", size = \"{} KiB\" }}\n[[phase]]\nname = \"measure\"\nmeasured = \
         true\n[[phase.task]]\ncopies = 1\n\
         run = {{ kind = \"huge-faults\", size = \"{} KiB\", advised = true }}\n",
        load.replaced / 1024,
        load.touched / 1024
    );
    let own = |e: String| LabError::from(AskedWrongly::Value(e));
    let workload: Workload = toml::from_str(&text).map_err(|e| own(e.message().into()))?;
    let variant = |name: String, sysctls: BTreeMap<String, toml::Value>| Variant {
        name,
        profile: simulation.profile.clone(),
        switches: Vec::new(),
        sysctls,
    };
    let with = |setting: &Setting| {
        let value = toml::Value::String(setting.value.clone());
        variant(format!("{}={}", setting.name, setting.value), BTreeMap::from([(setting.name.clone(), value)]))
    };
    let as_it_is = variant(AS_IT_IS.into(), BTreeMap::new());
    Ok(Experiment {
        id: "simulation".into(),
        summary: "recommended settings, tried on a snapshot".into(),
        assumptions: String::new(),
        machine: COSTS_OF_HOSTS.into(),
        target: None,
        repetitions: 1,
        workload,
        rounds: 1,
        variant: std::iter::once(as_it_is).chain(simulation.tried.iter().map(with)).collect(),
        case: Vec::new(),
        caveat: Vec::new(),
        lack: Vec::new(),
        pace: None,
        page: None,
    })
}

fn run(experiment: Experiment, host: HostSnapshot) -> Result<ExperimentResult, LabError> {
    experiment.validate().map_err(|wrong| AskedWrongly::Value(wrong.reason))?;
    let resolved = Resolved::new(experiment, None)?.begin_as(host)?;
    let session = Session::new(vec![resolved], 1, &Views::default())?;
    let (outcomes, error) = run_session(&session, None, &|_| Ok(()));
    let none = || LabError::from(Failed::Run { run: "explain".into(), reason: "nothing came of it".into() });
    match error {
        Some(e) => Err(e),
        None => Ok(outcomes.into_iter().next().ok_or_else(none)?.result),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_processes_have_no_more_than_control_groups_let_them_have() {
        let header = r#"{"schema":"kontig.snapshot/1","host":{"kernel":"6.12.9","page_size":4096,"block_order":9,"cpus":1,"pinned":0,"sysctls":[]},"zones":[{"node":0,"name":"Normal","start":0,"spanned":65536,"present":65536,"managed":32768,"marks":[20,25,30,35],"boost":0,"protection":[0,0],"cached":0,"deferred":32768,"free":[0,0,0,0,0,0,0,0,0,0,32],"blocks":null}]}"#;
        let text = format!("{header}\n0 M F512 *64\n8000 M i512 *64\n");
        let snapshot = Snapshot::parse(&text).expect("a snapshot");
        let bytes = |limit| {
            let Load { replaced, touched } = Load::on(&snapshot, limit);
            replaced + touched
        };
        let limit =
            Limit { group: "/a".into(), file: "f".into(), limit_bytes: 80 << 20, used_bytes: 16 << 20, cache_bytes: 0 };
        assert!((252 << 20..=256 << 20).contains(&bytes(None)), "what is initialised when it is wanted is room");
        assert!((60 << 20..=64 << 20).contains(&bytes(Some(&limit))));
    }
}
