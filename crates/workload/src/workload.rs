//! Workloads as files hold them.
//!
//! The short form is one preparation, a rest and one measured task, each on the first CPU:
//!
//! ```toml
//! prepare = { kind = "fragment", holes = "random" }
//! settle_s = 30
//! measure = { kind = "hugealloc", gfp = "GFP_KERNEL" }
//! ```
//!
//! The long form lists phases and their tasks, as [`crate::scenario`] has them:
//!
//! ```toml
//! [[phase]]
//! name = "measure"
//! measured = true
//!
//! [[phase.task]]
//! cpus = [0, 1]
//! run = { kind = "hugealloc", gfp = "GFP_KERNEL" }
//!
//! [[phase.task]]
//! name = "churn"
//! background = true
//! cpus = [2]
//! run = { kind = "churn", size = "64 MiB" }
//! ```
//!
//! In place of `cpus`, `copies = 4` starts four that are bound to no CPU. `memory = { bind = [1] }`
//! has a task's memory on node 1; there are `"local"`, `preferred = 1` and `interleave = [0, 1]`,
//! too. `group = "java"` puts it into a memory control group ([`crate::group`]). A phase with
//! `stops = ["churn"]` ends what an earlier one has left in the background.
//!
//! What has a short form is written in it.

mod beginning;
mod parameters;

pub use parameters::{Parameter, bytes, shown, unit};

use crate::group::{self, GroupEntry};
use crate::kind::Kind;
use crate::limits::{LONGEST_S, within};
use crate::room::Room;
use crate::scenario::{End, Phase, Scenario};
use crate::trees;
use crate::wrong::Wrong;
use kontig_program::{MEASURE, MemPolicy, Nodes};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A scenario as files hold it.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(try_from = "Written", into = "Written")]
pub struct Workload {
    /// Its memory control groups, each after the one it is in.
    pub groups: Vec<GroupEntry>,
    /// Its phases, in order.
    pub phases: Vec<PhaseEntry>,
}

/// A workload in a file of its own.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(try_from = "WrittenFile")]
pub struct WorkloadFile {
    /// One line for `kontig list`.
    pub summary: String,
    /// The machine it runs on unless another is asked for, by name.
    pub machine: String,
    /// Set where nobody sets them otherwise.
    pub sysctls: BTreeMap<String, toml::Value>,
    pub workload: Workload,
}

/// One phase, as a file says it.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PhaseEntry {
    pub name: String,
    /// Whether its tasks are measured.
    #[serde(default)]
    pub measured: bool,
    /// After how many virtual seconds it ends; without, when its tasks are done.
    pub seconds: Option<f64>,
    /// Background tasks of earlier phases, by name, whose processes exit as it begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<String>,
    /// Tasks of earlier phases that get `SIGKILL` as it begins, with every process they have made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kills: Vec<String>,
    /// The tasks that begin with it.
    #[serde(default)]
    pub task: Vec<TaskEntry>,
}

/// One task, as a file says it.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct TaskEntry {
    /// Prefix of its figures' names.
    pub name: Option<String>,
    /// Whether it is neither waited for nor measured.
    #[serde(default)]
    pub background: bool,
    /// Whether it is measured and not waited for: the phase ends when the others are done.
    #[serde(default)]
    pub beside: bool,
    /// The CPUs it has a copy on, bound to it; without, the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Vec<usize>>,
    /// Or how many copies it has, each where the machine's scheduler finds best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copies: Option<usize>,
    /// The memory control group of its processes; without, the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Its NUMA memory policy, as with `numactl`; by default the node of the allocating CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryEntry>,
    pub run: Kind,
}

/// A task's NUMA memory policy: `memory = "local"`, or `memory = { bind = [0, 1] }`.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryEntry {
    /// On the node of the allocating CPU.
    Local,
    /// On this node, if it has any.
    Preferred(u8),
    /// On these nodes alone.
    Bind(Vec<u8>),
    /// On these by turns.
    Interleave(Vec<u8>),
}

impl MemoryEntry {
    fn policy(&self) -> MemPolicy {
        let set = |nodes: &[u8]| Nodes::new(nodes.iter().copied());
        match self {
            MemoryEntry::Local => MemPolicy::Local,
            MemoryEntry::Preferred(node) => MemPolicy::Preferred(*node),
            MemoryEntry::Bind(nodes) => MemPolicy::Bind(set(nodes)),
            MemoryEntry::Interleave(nodes) => MemPolicy::Interleave(set(nodes)),
        }
    }
}

/// The most copies a task can have.
const MOST_COPIES: usize = 1 << 16;

/// A workload as written, in either form.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    group: Vec<GroupEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prepare: Option<Kind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    settle_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measure: Option<Kind>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    phase: Vec<PhaseEntry>,
}

/// A workload's file as written, in either form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFile {
    summary: String,
    machine: String,
    #[serde(default)]
    sysctls: BTreeMap<String, toml::Value>,
    #[serde(default)]
    group: Vec<GroupEntry>,
    prepare: Option<Kind>,
    settle_s: Option<f64>,
    measure: Option<Kind>,
    #[serde(default)]
    phase: Vec<PhaseEntry>,
}

impl TryFrom<WrittenFile> for WorkloadFile {
    type Error = String;

    fn try_from(file: WrittenFile) -> Result<WorkloadFile, String> {
        let WrittenFile { summary, machine, sysctls, group, prepare, settle_s, measure, phase } = file;
        let workload = Written { group, prepare, settle_s, measure, phase }.try_into()?;
        Ok(WorkloadFile { summary, machine, sysctls, workload })
    }
}

const PREPARE: &str = "prepare";
const SETTLE: &str = "settle";

impl TryFrom<Written> for Workload {
    type Error = String;

    fn try_from(written: Written) -> Result<Workload, String> {
        let plain = |name: &str, run: Kind| PhaseEntry {
            name: name.into(),
            measured: name == MEASURE,
            seconds: None,
            stops: Vec::new(),
            kills: Vec::new(),
            task: vec![TaskEntry::plain(run)],
        };
        match written {
            Written { group, prepare: Some(_), measure: Some(_), .. } if !group.is_empty() => {
                Err("tasks of phases are in groups: with [[group]], write a list of phases".into())
            }
            Written { prepare: Some(prepare), settle_s, measure: Some(measure), phase, .. } if phase.is_empty() => {
                let rest = settle_s.unwrap_or(0.0);
                within("settle_s", rest, LONGEST_S)?;
                let seconds = (rest > 0.0).then_some(rest);
                let settle = PhaseEntry {
                    name: SETTLE.into(),
                    measured: false,
                    seconds,
                    stops: Vec::new(),
                    kills: Vec::new(),
                    task: Vec::new(),
                };
                let settle = Some(settle).filter(|settle| settle.seconds.is_some());
                let phases = [Some(plain(PREPARE, prepare)), settle, Some(plain(MEASURE, measure))];
                Ok(Workload { groups: Vec::new(), phases: phases.into_iter().flatten().collect() })
            }
            Written { group, prepare: None, settle_s: None, measure: None, phase } if !phase.is_empty() => {
                Ok(Workload { groups: group, phases: phase })
            }
            Written { prepare: None, .. } => {
                Err("missing `prepare`, beside `measure`; or else a list of phases".into())
            }
            Written { measure: None, .. } => {
                Err("missing `measure`, beside `prepare`; or else a list of phases".into())
            }
            _ => Err("either `prepare` and `measure`, or a list of phases, not both".into()),
        }
    }
}

impl From<Workload> for Written {
    fn from(workload: Workload) -> Written {
        match workload.short() {
            Some((prepare, settle_s, measure)) => Written {
                group: Vec::new(),
                prepare: Some(prepare.clone()),
                settle_s: Some(settle_s),
                measure: Some(measure.clone()),
                phase: Vec::new(),
            },
            None => {
                Written { group: workload.groups, prepare: None, settle_s: None, measure: None, phase: workload.phases }
            }
        }
    }
}

impl TaskEntry {
    /// A task with nothing said of it but what it does.
    pub(crate) fn plain(run: Kind) -> TaskEntry {
        TaskEntry {
            name: None,
            background: false,
            beside: false,
            cpus: None,
            copies: None,
            group: None,
            memory: None,
            run,
        }
    }

    /// Whether it can be said where it runs.
    fn check(&self) -> Result<(), String> {
        match self.copies {
            Some(_) if self.cpus.is_some() => {
                Err("a task has either cpus, or copies that are not bound, not both".into())
            }
            Some(copies) if !(1..=MOST_COPIES).contains(&copies) => {
                Err(format!("copies = {copies}: a task has at least one, and at most {MOST_COPIES}"))
            }
            _ => Ok(()),
        }
    }
}

impl PhaseEntry {
    /// The work of its only task, if the phase has nothing else but its name.
    fn only(&self) -> Option<&Kind> {
        match self.task.as_slice() {
            [one] if self.seconds.is_none() && self.stops.is_empty() && self.kills.is_empty() => {
                let plain = one.name.is_none() && !one.background && one.copies.is_none();
                let plain = plain && one.memory.is_none() && one.group.is_none();
                (plain && one.cpus.as_deref().is_none_or(|cpus| cpus == [0])).then_some(&one.run)
            }
            _ => None,
        }
    }

    fn phase(&self, groups: &[GroupEntry]) -> Phase {
        let task = |entry: &TaskEntry| {
            let mut task = entry.run.task()?;
            match (entry.copies, &entry.cpus) {
                (Some(copies), _) => task = task.anywhere(copies),
                (None, Some(cpus)) => task = task.on(cpus.iter().copied()),
                (None, None) => {}
            }
            task.memory = entry.memory.as_ref().map_or(MemPolicy::Default, MemoryEntry::policy);
            let is_its = |group: &GroupEntry| entry.group.as_ref() == Some(&group.name);
            task.group = groups.iter().position(is_its);
            task.name.clone_from(&entry.name);
            task.background = entry.background;
            task.beside = entry.beside;
            Some(task)
        };
        Phase {
            name: self.name.clone(),
            measured: self.measured,
            stops: self.stops.clone(),
            end: self.seconds.map_or(End::AllDone, |s| End::After { ns: (s * 1e9) as u64 }),
            kills: self.kills.clone(),
            tasks: self.task.iter().filter_map(task).collect(),
        }
    }
}

impl Workload {
    /// Preparation, seconds of rest and measurement, if it is no more than that.
    fn short(&self) -> Option<(&Kind, f64, &Kind)> {
        if !self.groups.is_empty() {
            return None;
        }
        let (prepare, rest, measure) = match self.phases.as_slice() {
            [prepare, measure] => (prepare, 0.0, measure),
            [prepare, settle, measure] if settle.name == SETTLE && !settle.measured && settle.task.is_empty() => {
                (prepare, settle.seconds.filter(|s| *s > 0.0)?, measure)
            }
            _ => return None,
        };
        let named = prepare.name == PREPARE && !prepare.measured && measure.name == MEASURE && measure.measured;
        named.then_some(())?;
        Some((prepare.only()?, rest, measure.only()?))
    }

    /// Builds the scenario that it describes.
    pub fn scenario(&self) -> Scenario {
        let phases = self.phases.iter().map(|phase| phase.phase(&self.groups)).collect();
        Scenario { groups: group::groups(&self.groups), phases }
    }

    /// Whether every part of it can be read and they fit together.
    ///
    /// # Errors
    /// The part that is wrong, and the remedy.
    pub fn validate(&self) -> Result<(), Wrong> {
        group::check(&self.groups)?;
        for (i, phase) in self.phases.iter().enumerate() {
            within("seconds", phase.seconds.unwrap_or(0.0), LONGEST_S)
                .map_err(|reason| Wrong::at(&["phase", &i.to_string(), "seconds"], reason))?;
            for (t, task) in phase.task.iter().enumerate() {
                let is_there = |name: &String| self.groups.iter().any(|group| group.name == *name);
                if let Some(name) = task.group.as_ref().filter(|name| !is_there(name)) {
                    let way = ["phase", &i.to_string(), "task", &t.to_string(), "group"];
                    return Err(Wrong::at(&way, group::unknown(name, &self.groups)));
                }
                task.check().map_err(|reason| {
                    Wrong::at(&["phase", &i.to_string(), "task", &t.to_string(), "copies"], reason)
                })?;
            }
        }
        self.check_beginning().map_err(|wrong| self.in_short(wrong))?;
        let numbered = self.phases.iter().enumerate();
        let tasks =
            numbered.flat_map(|(p, phase)| phase.task.iter().enumerate().map(move |(t, task)| (p, t, &task.run)));
        trees::check(tasks).map_err(|wrong| self.in_short(wrong))?;
        self.scenario().check().map_err(|wrong| self.in_file(wrong))
    }

    /// Whether it can be run on a machine that has this.
    ///
    /// # Errors
    /// The part that does not fit.
    pub fn fits(&self, room: &Room) -> Result<(), Wrong> {
        self.scenario().fits(room).map_err(|wrong| self.in_file(wrong))
    }

    /// Translates an error in the scenario to the keys of the file: the short form has a key for
    /// each phase, and the scenario omits tasks that do nothing.
    fn in_file(&self, wrong: Wrong) -> Wrong {
        let way: Vec<&str> = wrong.way.iter().map(String::as_str).collect();
        let number = |step: &str| step.parse::<usize>().ok();
        let ["phase", p, rest @ ..] = way.as_slice() else { return wrong };
        let Some(phase) = number(p).and_then(|p| self.phases.get(p)) else { return wrong };
        if self.short().is_some() {
            return self.in_short(wrong);
        }
        let ["task", t, rest @ ..] = rest else { return wrong };
        let mut busy = phase.task.iter().enumerate().filter(|(_, task)| task.run.task().is_some());
        let Some((t, _)) = number(t).and_then(|t| busy.nth(t)) else { return wrong };
        Wrong::at(&[&["phase", p, "task", &t.to_string()], rest].concat(), wrong.reason)
    }

    /// The same by the keys of the short form, if it has one.
    fn in_short(&self, wrong: Wrong) -> Wrong {
        let way: Vec<&str> = wrong.way.iter().map(String::as_str).collect();
        let ["phase", p, rest @ ..] = way.as_slice() else { return wrong };
        let phase = p.parse().ok().and_then(|p: usize| self.phases.get(p));
        let Some(phase) = phase.filter(|_| self.short().is_some()) else { return wrong };
        let key = if phase.name == SETTLE { "settle_s" } else { phase.name.as_str() };
        Wrong::at(&[key, rest.last().copied().unwrap_or_default()], wrong.reason)
    }

    /// Sets the pause after each allocation of every driver of huge pages, µs.
    pub fn set_pause_us(&mut self, pause_us: f64) {
        let tasks = self.phases.iter_mut().flat_map(|phase| &mut phase.task);
        tasks.filter_map(|task| task.run.hugealloc()).for_each(|driver| driver.pause_us = pause_us);
    }

    /// The phases before the first that is measured.
    fn preparation(&self) -> &[PhaseEntry] {
        let first = self.phases.iter().position(|phase| phase.measured);
        &self.phases[..first.unwrap_or(self.phases.len())]
    }

    /// Whether it differs from another in parameters alone.
    pub fn is_like(&self, other: &Workload) -> bool {
        let kinds = |workload: &Workload| {
            let kind = |task: &TaskEntry| std::mem::discriminant(&task.run);
            let phase = |phase: &PhaseEntry| (phase.name.clone(), phase.task.iter().map(kind).collect::<Vec<_>>());
            workload.phases.iter().map(phase).collect::<Vec<_>>()
        };
        kinds(self) == kinds(other)
    }

    /// Whether it does the same as another until something is measured.
    pub fn prepares_as(&self, other: &Workload) -> bool {
        self.groups == other.groups && self.preparation() == other.preparation()
    }

    /// Whether all it measures is one task that drives huge pages.
    pub fn measures_one_driver(&self) -> bool {
        let mut measured = self.phases.iter().filter(|phase| phase.measured);
        let (only, more) = (measured.next(), measured.next());
        let tasks = only.iter().flat_map(|phase| &phase.task).filter(|task| !task.background);
        let mut drivers = tasks.map(|task| matches!(task.run, Kind::Hugealloc(_)));
        more.is_none() && drivers.next() == Some(true) && drivers.next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_program::Placement;

    const SHORT: &str =
        "prepare = { kind = 'fragment', holes = 'last' }\nsettle_s = 2.5\nmeasure = { kind = 'compact' }";

    fn of(text: &str) -> Workload {
        toml::from_str(text).unwrap_or_else(|e| panic!("{e}"))
    }

    fn refused(text: &str) -> String {
        match toml::from_str::<Workload>(text) {
            Ok(workload) => workload.validate().expect_err("refused").reason,
            Err(e) => e.message().to_string(),
        }
    }

    #[test]
    fn the_short_form_is_three_phases_and_is_written_as_it_was_read() {
        let workload = of(SHORT);
        let names: Vec<&str> = workload.phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names, ["prepare", "settle", "measure"]);
        assert_eq!(workload.scenario().phases[1].end, End::After { ns: 2_500_000_000 });
        let written = toml::to_string(&workload).unwrap();
        assert!(written.starts_with("settle_s = 2.5\n") && !written.contains("phase"), "{written}");
        assert_eq!(of(&written), workload);
        let without = of("prepare = { kind = 'nothing' }\nmeasure = { kind = 'compact' }");
        assert_eq!((without.phases.len(), without.scenario().phases[0].tasks.len()), (2, 0));
        assert_eq!(of(&toml::to_string(&without).unwrap()), without);
    }

    #[test]
    fn the_long_form_is_written_as_it_was_read() {
        let workload = of("[[phase]]\nname = 'measure'\nmeasured = true\nseconds = 3\n[[phase.task]]\nname = 'a'\n\
                           cpus = [1, 2]\nrun = { kind = 'churn', size = '1 MiB' }");
        let scenario = workload.scenario();
        let task = &scenario.phases[0].tasks[0];
        assert_eq!((task.name.as_deref(), task.placements.len()), (Some("a"), 2));
        assert_eq!(of(&toml::to_string(&workload).unwrap()), workload);
    }

    #[test]
    fn copies_are_bound_to_no_cpu() {
        let with = |place: &str| {
            of(&format!("[[phase]]\nname = 'a'\n[[phase.task]]\n{place}\nrun = {{ kind = 'churn', size = '1 MiB' }}\n"))
        };
        let workload = with("copies = 3");
        assert_eq!(workload.scenario().phases[0].tasks[0].placements, [Placement::Any; 3]);
        assert_eq!(of(&toml::to_string(&workload).unwrap()), workload);
        for (place, said) in
            [("copies = 3\ncpus = [1]", "not both"), ("copies = 0", "copies = 0: a task has at least one")]
        {
            let wrong = with(place).validate().unwrap_err();
            assert_eq!(wrong.way, ["phase", "0", "task", "0", "copies"]);
            assert!(wrong.reason.contains(said), "{wrong}");
        }
    }

    #[test]
    fn a_pause_reaches_every_driver() {
        let mut workload = of(&SHORT.replace("'compact'", "'hugealloc', gfp = 'GFP_KERNEL'"));
        workload.set_pause_us(1.0);
        assert_eq!(workload, of(&SHORT.replace("'compact'", "'hugealloc', gfp = 'GFP_KERNEL', pause_us = 1.0")));
    }

    #[test]
    fn errors_are_found_in_either_form() {
        let way = |text: &str| of(text).validate().expect_err("refused").way;
        let long = "[[phase]]\nname = 'measure'\nmeasured = true\ntask = [{ run = { kind = 'nothing' } }, \
                    { run = { kind = 'heap', size = 'lots' } }]";
        assert_eq!(way(long), ["phase", "0", "task", "1", "run", "size"]);
        assert_eq!(way(&SHORT.replace("'compact'", "'heap', size = 'lots'")), ["measure", "size"]);
    }

    #[test]
    fn one_driver_is_measured_where_the_only_measured_phase_waits_for_nothing_else() {
        let driver = "run = { kind = 'hugealloc', gfp = 'GFP_KERNEL' }";
        let phase = format!("[[phase]]\nname = 'measure'\nmeasured = true\n[[phase.task]]\n{driver}\n");
        let churn = "[[phase.task]]\nname = 'churn'\nrun = { kind = 'churn', size = '1 MiB' }\n";
        assert!(of(&phase).measures_one_driver());
        assert!(of(&format!("{phase}{churn}background = true")).measures_one_driver());
        assert!(!of(&format!("{phase}{churn}")).measures_one_driver());
        assert!(!of(&format!("{phase}[[phase.task]]\nname = 'b'\n{driver}")).measures_one_driver());
        assert!(!of(SHORT).measures_one_driver());
    }

    #[test]
    fn nonsense_is_refused_with_the_reason() {
        let measuring = |text: &str| refused(&format!("prepare = {{ kind = 'nothing' }}\nmeasure = {{ {text} }}"));
        assert!(measuring("kind = 'hugealloc', gfp = 'GFP_NONSENSE'").contains("GFP_NONSENSE"));
        let never = measuring("kind = 'hugealloc', gfp = 'GFP_KERNEL', give_up_after = 0");
        assert!(never.contains("give_up_after = 0"), "{never}");
        assert!(measuring("kind = 'heap', size = 'lots'").contains("lots"));
        assert!(measuring("kind = 'heap', size = '4095'").contains("less than a page"));
        assert!(measuring("kind = 'watch', seconds = -1.0").contains("seconds = -1 is not from 0"));
        assert!(measuring("kind = 'watch', seconds = 0").contains("seconds = 0: nothing is seen in no time"));
        assert!(measuring("kind = 'fragment', freed_per_section = 513").contains("a section has 512 pages"));
        assert!(measuring("kind = 'churn', size = '1 MiB'").contains("until it is stopped"));
        assert!(measuring("kind = 'something'").contains("unknown variant `something`"));
        assert!(measuring("kind = 'compact', sise = 3").contains("unknown field `sise`"));
        assert!(refused(&SHORT.replace("2.5", "-1.0")).contains("settle_s = -1"));
        assert!(refused("measure = { kind = 'compact' }").contains("missing `prepare`"));
        assert!(refused("prepare = { kind = 'nothing' }").contains("missing `measure`"));
        assert!(refused(&format!("{SHORT}\n[[phase]]\nname = 'a'")).contains("not both"));
        let seconds = refused("[[phase]]\nname = 'measure'\nmeasured = true\nseconds = -2");
        assert!(seconds.contains("seconds = -2 is not from 0"), "{seconds}");
    }
}
