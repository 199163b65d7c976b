//! Settings recommended for a host, tried on a snapshot of it (`kontig explain --simulate`).
//!
//! The host as it is runs beside a copy with each setting, all under the same load: for half a
//! minute a process replaces its memory while kernel threads work; then another touches memory in
//! huge pages. Together they take the free memory and half of the clean file pages, which causes
//! reclaim and compaction. No file shows the host's own load.

use crate::experiment::{Experiment, Variant};
use crate::host_snapshot::{COSTS_OF_HOSTS, HostSnapshot};
use crate::outcome::Outcome;
use crate::plan::Views;
use crate::resolved::Resolved;
use crate::session::Session;
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_live::Snapshot;
use kontig_live::cgroup::Limit;
use kontig_live::explain::{Finding, Setting};
use kontig_live::frame::State;
use kontig_live::snapshot::FoundZone;
use kontig_mm::sysctl::Sysctl;
use kontig_results::ExperimentResult;
use kontig_text::size;
use kontig_workload::Workload;
use serde::Serialize;
use std::collections::BTreeMap;

/// The recommended settings, tried on a snapshot.
#[derive(Serialize)]
pub struct Simulation {
    /// Describes kernel, rules and load, in a few sentences.
    pub said: String,
    /// The profile for the host's kernel.
    pub profile: String,
    /// In the order of the table's columns after the first, which is the host as it is.
    pub tried: Vec<Setting>,
    /// Recommended settings that could not be tried, with reasons.
    pub not_tried: Vec<NotTried>,
    /// As in `kontig.reproduce`; null if nothing was tried.
    pub table: Option<ExperimentResult>,
}

/// A recommended setting that was not tried.
#[derive(Serialize)]
pub struct NotTried {
    pub name: String,
    pub why: String,
}

/// The name of the baseline.
const AS_IT_IS: &str = "as it is";

/// Runs a session, as [`Session::run`] does.
pub type RunSession<'a> = &'a dyn Fn(&Session) -> (Vec<Outcome>, Option<Error>);

/// Tries the settings that the findings recommend, on a snapshot of the host.
///
/// # Errors
/// If the laboratory cannot simulate this host, or a run cannot go on.
pub fn simulate(
    findings: &[Finding],
    snapshot: Snapshot,
    limit: Option<&Limit>,
    run_session: RunSession<'_>,
) -> Result<Simulation, Error> {
    let host = HostSnapshot::new("host", snapshot.clone());
    let none = || {
        let reason = format!("'{}' is no kernel's release, so no profile stands for it", host.kernel());
        Error::from(Failed::Run { run: "explain".into(), reason })
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
        "A simulation, not this host: Linux {kernel} as it was found, by the rules of {}. For 30 s a process \
         replaces {}, then another touches {} in huge pages. The load of this host is not known.",
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
    if let Some(remark) = host.on_generations(&profile) {
        said += &format!(" And {remark}.");
    }
    let mut simulation = Simulation { said, profile: profile.name, tried, not_tried, table: None };
    if !simulation.tried.is_empty() {
        let experiment = experiment(&simulation, load)?;
        simulation.table = Some(run(experiment, host, run_session)?);
    }
    Ok(simulation)
}

/// Memory of the two processes, in bytes.
#[derive(Clone, Copy)]
struct Load {
    replaced: u64,
    touched: u64,
}

impl Load {
    /// A load that fits into this machine and the control group's limit.
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

/// The experiment with a variant for each setting.
fn experiment(simulation: &Simulation, load: Load) -> Result<Experiment, Error> {
    let text = format!(
        "[[phase]]\nname = \"before\"\nseconds = 30\n[[phase.task]]\nname = \"churn\"\nbackground = true\ncopies = 1\n\
         run = {{ kind = \"churn\", size = \"{} KiB\" }}\n\
         [[phase]]\nname = \"measure\"\nmeasured = true\n[[phase.task]]\ncopies = 1\n\
         run = {{ kind = \"huge-faults\", size = \"{} KiB\", advised = true }}\n",
        load.replaced / 1024,
        load.touched / 1024
    );
    let own = |e: String| Error::from(AskedWrongly::Value(e));
    let workload: Workload = toml::from_str(&text).map_err(|e| own(e.message().into()))?;
    let variant = |name: String, sysctls: BTreeMap<String, toml::Value>| Variant {
        name,
        profile: simulation.profile.clone(),
        sysctls,
        ..Variant::default()
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

fn run(experiment: Experiment, host: HostSnapshot, run_session: RunSession<'_>) -> Result<ExperimentResult, Error> {
    experiment.validate().map_err(|wrong| AskedWrongly::Value(wrong.reason))?;
    let resolved = Resolved::new(experiment, None)?.begin_as(host)?;
    let session = Session::new(vec![resolved], 1, &Views::default())?;
    let (outcomes, error) = run_session(&session);
    let none = || Error::from(Failed::Run { run: "explain".into(), reason: "the session has no result".into() });
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
        let header = concat!(
            r#"{"schema":"kontig.snapshot/1","host":{"kernel":"6.12.9","page_size":4096,"block_order":9,"cpus":1,"#,
            r#""pinned":0,"sysctls":[]},"zones":[{"node":0,"name":"Normal","start":0,"spanned":65536,"present":65536,"#,
            r#""managed":32768,"marks":[20,25,30,35],"boost":0,"protection":[0,0],"cached":0,"deferred":32768,"#,
            r#""free":[0,0,0,0,0,0,0,0,0,0,32],"blocks":null}]}"#
        );
        let text = format!("{header}\n0 M F512 *64\n8000 M i512 *64\n");
        let snapshot = Snapshot::parse(&text).expect("a snapshot");
        let bytes = |limit| {
            let Load { replaced, touched } = Load::on(&snapshot, limit);
            replaced + touched
        };
        let limit =
            Limit { group: "/a".into(), file: "f".into(), limit_bytes: 80 << 20, used_bytes: 16 << 20, cache_bytes: 0 };
        assert!((252 << 20..=256 << 20).contains(&bytes(None)), "deferred pages count as free");
        assert!((60 << 20..=64 << 20).contains(&bytes(Some(&limit))));
    }
}
