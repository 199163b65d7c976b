//! Scenarios: phases one after another, in each phase tasks side by side, each task placed on CPUs.
//!
//! A phase begins when the one before it has ended: when all its tasks are done, or after a time.
//! Of a measured phase, the figures of its tasks are read when it ends. A task beside others is
//! measured and not waited for. A background task is neither, and goes on through the phases that
//! follow, up to one that ends it and waits until it is gone. Any other task that is not done when
//! its phase ends is stopped: it hands over no further batch, and what it holds stays held.
//!
//! The measurement lasts from the start of the first measured phase to the end of the last. A
//! single one bears the measurement's own name, [`MEASURE`].

use crate::benchmark::{AnyBenchmark, Benchmark, Measured, Start, Written};
use crate::group::Group;
use crate::room::Room;
use crate::wrong::Wrong;
use kontig_program::figure::named;
use kontig_program::{Batch, FileName, MEASURE, MemPolicy, Op, Outcome, Placement, Program, SplitMix64, TOTAL};
use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The phases of a run, from the machine's start to its end.
#[derive(Clone)]
pub struct Scenario {
    /// Memory control groups, each after the one it is in.
    pub groups: Vec<Group>,
    /// The phases, in order.
    pub phases: Vec<Phase>,
}

/// A stretch of a scenario.
#[derive(Clone)]
pub struct Phase {
    pub name: String,
    /// Whether its tasks are measured.
    pub measured: bool,
    pub end: End,
    /// Background tasks of earlier phases, by name, whose processes exit when it begins.
    pub stops: Vec<String>,
    /// The names of tasks that are killed as it begins, with every process they have made.
    pub kills: Vec<String>,
    /// The tasks that begin with it.
    pub tasks: Vec<Task>,
}

/// When a phase ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// When its tasks are done, background ones aside, and those that it has stopped.
    AllDone,
    After {
        ns: u64,
    },
}

/// A benchmark with its place: a copy of its program on each of some CPUs.
#[derive(Clone)]
pub struct Task {
    /// Prefix of its figures' names; none if the phase has no other task.
    pub name: Option<String>,
    /// Whether it is neither waited for nor measured.
    pub background: bool,
    /// Whether it is measured and not waited for: the phase ends when the others are done.
    pub beside: bool,
    /// Where its copies run.
    pub placements: Vec<Placement>,
    /// The number of their memory control group, from 0; without, the root.
    pub group: Option<usize>,
    /// Their NUMA memory policy.
    pub memory: MemPolicy,
    benchmark: Arc<dyn AnyBenchmark>,
}

/// A program on its way, which can be stopped at the end of the batch it is in.
#[derive(Clone)]
pub struct Started {
    program: Box<dyn Program>,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Goes,
    /// It does nothing more, and keeps what it holds.
    Stopped,
    /// Its process exits, and what it holds is given back.
    Ends,
}

impl Started {
    /// Casts a machine's program back to the one that [`Task::start`] made.
    fn of(program: &dyn Program) -> Option<&Started> {
        let any: &dyn Any = program;
        any.downcast_ref()
    }
    /// The mutable form of `of`.
    pub fn of_mut(program: &mut dyn Program) -> Option<&mut Started> {
        let any: &mut dyn Any = program;
        any.downcast_mut()
    }
    /// Makes it hand over no further operation.
    pub fn stop(&mut self) {
        self.state = State::Stopped;
    }
    /// Makes its process exit, which gives back all that it holds.
    pub fn end(&mut self) {
        self.state = State::Ends;
    }
}

impl Program for Started {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        match self.state {
            State::Goes => self.program.next(done, todo),
            State::Stopped => {}
            State::Ends => todo.push(Op::Exit),
        }
    }
    fn joined(&mut self, thread: Box<dyn Program>) {
        self.program.joined(thread);
    }
    fn progress(&self) -> f64 {
        self.program.progress()
    }
}

impl Task {
    /// A task of one copy on the first CPU.
    pub fn new(benchmark: impl Benchmark) -> Task {
        Task {
            name: None,
            background: false,
            beside: false,
            placements: vec![Placement::Cpu(0)],
            group: None,
            memory: MemPolicy::Default,
            benchmark: Arc::new(benchmark),
        }
    }
    /// Gives the task a name.
    pub fn named(self, name: impl Into<String>) -> Task {
        Task { name: Some(name.into()), ..self }
    }
    /// With a copy on each of these CPUs.
    pub fn on(self, cpus: impl IntoIterator<Item = usize>) -> Task {
        Task { placements: cpus.into_iter().map(Placement::Cpu).collect(), ..self }
    }
    /// Runs unbound copies, which the machine's scheduler places.
    pub fn anywhere(self, copies: usize) -> Task {
        Task { placements: vec![Placement::Any; copies], ..self }
    }
    /// Puts the task in the background.
    pub fn in_background(self) -> Task {
        Task { background: true, ..self }
    }

    /// Starts a copy.
    ///
    /// # Errors
    /// Which parameter cannot be read; none of a scenario that was checked.
    pub fn start(&self, start: &Start) -> Result<Started, String> {
        let start = Start { copies: self.placements.len() as u64, ..*start };
        Ok(Started { program: self.benchmark.program(&start)?, state: State::Goes })
    }

    pub(crate) fn benchmark(self) -> Arc<dyn AnyBenchmark> {
        self.benchmark
    }

    /// The CPUs that its copies are bound to.
    fn cpus(&self) -> impl Iterator<Item = usize> {
        let cpu = |place: &Placement| if let Placement::Cpu(cpu) = place { Some(*cpu) } else { None };
        self.placements.iter().filter_map(cpu)
    }

    /// Something wrong with what the `i`th task of a phase runs.
    fn in_run(&self, i: usize, reason: String) -> Wrong {
        let parameter = Wrong::parameter(&reason).unwrap_or_default().to_string();
        Wrong::at(&["task", &i.to_string(), "run", &parameter], reason)
    }

    /// The measurements of its copies, under the task's name.
    ///
    /// # Panics
    /// If a program is none that [`Task::start`] gave.
    fn measured(&self, copies: &[&dyn Program]) -> Measured {
        let own = copies
            .iter()
            .map(|program| Started::of(*program).expect("a task reads the programs it started").program.as_ref());
        let mut measured = self.benchmark.measured(&own.collect::<Vec<_>>());
        if let Some(name) = &self.name {
            for reading in &mut measured.figures {
                reading.figure = reading.figure.clone().of_task(name);
            }
            for latencies in &mut measured.latencies {
                latencies.name = named(name, &latencies.name);
            }
            if let Some(ending) = &mut measured.ending {
                ending.task.clone_from(name);
            }
        }
        measured
    }
}

impl Phase {
    /// A phase that ends when its tasks are done.
    pub fn new(name: impl Into<String>, tasks: Vec<Task>) -> Phase {
        Phase { name: name.into(), measured: false, end: End::AllDone, stops: Vec::new(), kills: Vec::new(), tasks }
    }
    /// One that is measured.
    pub fn measured(self) -> Phase {
        Phase { measured: true, ..self }
    }
    /// One that ends after a time.
    pub fn lasting(self, ns: u64) -> Phase {
        Phase { end: End::After { ns }, ..self }
    }

    /// The tasks that are over when it is, and are measured if it is.
    pub fn foreground(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(|task| !task.background)
    }

    /// Those of them it waits for, if it has no end of its own.
    fn waited_for(&self) -> impl Iterator<Item = &Task> {
        self.foreground().filter(|task| !task.beside)
    }

    /// The measurements of each foreground task, read from its programs.
    pub fn read(&self, programs: &[Vec<&dyn Program>]) -> Vec<Measured> {
        let read = |(task, programs): (&Task, &Vec<&dyn Program>)| {
            let mut measured = task.measured(programs);
            for reading in &mut measured.figures {
                reading.figure.phase = self.name.clone().into();
            }
            if let Some(ending) = &mut measured.ending {
                ending.phase = self.name.clone().into();
            }
            measured
        };
        self.foreground().zip(programs).map(read).collect()
    }

    fn check(&self) -> Result<(), Wrong> {
        let named = |reason: String| format!("phase '{}': {reason}", self.name);
        let said = |task: &Task| task.name.as_ref().map_or("a task".into(), |name| format!("task '{name}'"));
        for (i, task) in self.tasks.iter().enumerate() {
            let wrong = |key: &str, reason: String| Wrong::at(&["task", &i.to_string(), key], named(reason));
            task.start(&Start::default()).map(drop).map_err(|reason| task.in_run(i, reason))?;
            if task.placements.is_empty() {
                return Err(wrong("cpus", format!("{} has no CPU to run on: cpus = [0]", said(task))));
            }
            let cpus: Vec<usize> = task.cpus().collect();
            if let Some((_, twice)) = cpus.iter().enumerate().find(|(n, cpu)| cpus[..*n].contains(cpu)) {
                let reason = format!(
                    "{} names CPU {twice} twice in cpus = {cpus:?}: \
                     it has one copy on each CPU; a second task has more",
                    said(task)
                );
                return Err(wrong("cpus", reason));
            }
            if task.name.as_ref().is_some_and(|name| name.trim().is_empty() || name.contains(char::is_control)) {
                return Err(wrong("name", "a task's name is a word or more on one line".into()));
            }
            let same = |other: &&Task| other.background == task.background && other.name == task.name;
            if self.measured && !task.background && self.tasks[..i].iter().any(|other| same(&other)) {
                return Err(wrong("name", format!("{} is there twice: give each task another name", said(task))));
            }
            if task.beside && task.background {
                let reason = "beside = true: a task in the background is not measured: leave out one of the two";
                return Err(wrong("beside", reason.into()));
            }
            if task.benchmark.is_endless() && !task.background && !task.beside && self.end == End::AllDone {
                let ways =
                    "give the phase an end (seconds = 60), run it beside others (beside = true) or in the background";
                return Err(wrong("run", format!("{} goes on until it is stopped: {ways}", said(task))));
            }
        }
        if self.measured && self.end == End::AllDone && self.waited_for().next().is_none() && self.stops.is_empty() {
            let reason = "nothing is measured: it has no task that ends, and no end of its own (seconds = 60)";
            return Err(Wrong::at(&["name"], named(reason.into())));
        }
        if let (End::AllDone, Some(i), None) =
            (self.end, self.tasks.iter().position(|task| task.beside), self.waited_for().next())
        {
            let reason = "beside = true: there is no other task whose end it could wait for".into();
            return Err(Wrong::at(&["task", &i.to_string(), "beside"], named(reason)));
        }
        if self.end == (End::After { ns: 0 }) {
            return Err(Wrong::at(&["seconds"], named("seconds = 0: it would end as it begins".into())));
        }
        Ok(())
    }
}

/// Whether a task has this name, or is one of several that do and are numbered.
pub fn is_called(task: &str, name: &str) -> bool {
    let number = |rest: &str| !rest.is_empty() && rest.bytes().all(|c| c.is_ascii_digit());
    task == name || task.strip_prefix(name).and_then(|rest| rest.strip_prefix(' ')).is_some_and(number)
}

impl Scenario {
    /// Whether any of its tasks accesses memory at the price of address translation.
    pub fn needs_translation(&self) -> bool {
        self.phases.iter().flat_map(|phase| &phase.tasks).any(|task| task.benchmark.needs_translation())
    }

    /// Whether it can be run, on a machine that is large enough.
    ///
    /// # Errors
    /// What contradicts itself or cannot be read, and what would be right.
    pub fn check(&self) -> Result<(), Wrong> {
        let of_phase = |i: usize, reason: String| Wrong::at(&["phase", &i.to_string(), "name"], reason);
        let first = |is: &dyn Fn(&Phase) -> bool| self.phases.iter().position(is).unwrap_or(0);
        for (i, phase) in self.phases.iter().enumerate() {
            let name = &phase.name;
            if name.trim().is_empty() || name.contains(char::is_control) || name == TOTAL {
                return Err(of_phase(i, format!("a phase cannot be called '{}'", name.escape_debug())));
            }
            if self.phases[..i].iter().any(|other| other.name == *name) {
                return Err(of_phase(i, format!("two phases are called '{name}'")));
            }
            let before =
                || self.phases[..i].iter().flat_map(|phase| &phase.tasks).filter_map(|task| task.name.as_ref());
            if let Some(unknown) = phase.kills.iter().find(|name| !before().any(|known| known == *name)) {
                let reason = format!("phase '{name}' kills '{unknown}', and no task before it has this name");
                return Err(Wrong::at(&["phase", &i.to_string(), "kills"], reason));
            }
            phase.check().map_err(|wrong| wrong.below(&["phase", &i.to_string()]))?;
            let runs = |stopped: &String| {
                let earlier = self.phases[..i].iter().flat_map(|phase| &phase.tasks);
                earlier
                    .into_iter()
                    .any(|task| task.background && task.name.as_ref().is_some_and(|name| is_called(name, stopped)))
            };
            if let Some(unknown) = phase.stops.iter().find(|stopped| !runs(stopped)) {
                let reason = format!(
                    "phase '{name}': stops = [\"{unknown}\"]: \
                     no earlier phase has a task of that name in the background"
                );
                return Err(Wrong::at(&["phase", &i.to_string(), "stops"], reason));
            }
        }
        let measured: Vec<&Phase> = self.phases.iter().filter(|phase| phase.measured).collect();
        match measured.as_slice() {
            [] => Err(of_phase(self.phases.len().saturating_sub(1), "no phase is measured: measured = true".into())),
            [one] if one.name != MEASURE => {
                let reason = format!("the only phase that is measured is called '{MEASURE}': call '{}' so", one.name);
                Err(of_phase(first(&|phase| phase.measured), reason))
            }
            [_, _, ..] if self.phases.iter().any(|phase| phase.name == MEASURE) => {
                let reason = format!(
                    "where several phases are measured none is called '{MEASURE}': give it a name of its own, too"
                );
                Err(of_phase(first(&|phase| phase.name == MEASURE), reason))
            }
            _ if self.phases.last().is_some_and(|last| !last.measured) => {
                let reason = "nothing is seen of a phase after the last that is measured: leave it out";
                Err(of_phase(self.phases.len().saturating_sub(1), reason.into()))
            }
            _ => Ok(()),
        }
    }

    /// Files that lie on the machine's disks before anything runs, with their length in pages: each
    /// once, though several tasks may use it.
    pub fn files(&self) -> impl Iterator<Item = (FileName, u32)> {
        let mut named = BTreeSet::new();
        let all = self.phases.iter().flat_map(|phase| &phase.tasks).flat_map(|task| task.benchmark.files());
        all.filter(move |file| named.insert(*file))
    }

    /// Whether it can be run on a machine that has this.
    ///
    /// # Errors
    /// The part that does not fit.
    pub fn fits(&self, room: &Room) -> Result<(), Wrong> {
        let (cpus, disks) = (room.cpus, &room.disks);
        let (mut left, mut laid) = (disks.clone(), BTreeSet::new());
        let phases = self.phases.iter().enumerate();
        for (p, t, task) in
            phases.flat_map(|(p, phase)| phase.tasks.iter().enumerate().map(move |(t, task)| (p, t, task)))
        {
            let of_phase = |wrong: Wrong| wrong.below(&["phase", &p.to_string()]);
            if let Some(cpu) = task.cpus().find(|cpu| *cpu >= cpus) {
                let last = cpus.saturating_sub(1);
                let others = "choose another machine, or give the task other CPUs";
                let reason = format!("cpus = [{cpu}]: the machine has CPUs 0 to {last}: {others}");
                return Err(of_phase(Wrong::at(&["task", &t.to_string(), "cpus"], reason)));
            }
            let no_node = |reason| of_phase(Wrong::at(&["task", &t.to_string(), "memory"], reason));
            room.has_nodes(task.memory).map_err(no_node)?;
            let (pages, copies) = (room.pages(task.memory), task.placements.len() as u64);
            task.benchmark.fits(pages, copies).map_err(|reason| of_phase(task.in_run(t, reason)))?;
            if task.benchmark.needs_translation() && !room.translates {
                return Err(of_phase(task.in_run(t, NO_TRANSLATION.into())));
            }
            if let Some(last) = task.benchmark.last_disk().filter(|disk| usize::from(*disk) >= disks.len()) {
                let reason =
                    format!("steps = files on disk {last}, and the machine has {}: {GIVE_A_DISK}", disks.len());
                return Err(of_phase(task.in_run(t, reason)));
            }
            for (name, length) in task.benchmark.files().into_iter().filter(|file| laid.insert(*file)) {
                let room = &mut left[usize::from(name.disk())];
                let Some(rest) = room.checked_sub(length) else {
                    let [is, has] = [length, *room].map(|pages| pages / 256);
                    let reason =
                        format!("files = {name} is {is} MiB, and its disk has room for {has} MiB: take a larger one");
                    return Err(of_phase(task.in_run(t, reason)));
                };
                *room = rest;
            }
            for Written { key, disk, pages } in task.benchmark.written() {
                let has = u64::from(left[usize::from(disk)]);
                if pages > has {
                    let [is, has] = [pages, has].map(|pages| pages / 256);
                    let reason = format!(
                        "{key} = {is} MiB are written to disk {disk}, which has room for {has} MiB: write less"
                    );
                    return Err(of_phase(task.in_run(t, reason)));
                }
            }
        }
        Ok(())
    }

    /// Whether anything in it is random: if not, repetitions are identical and the seed has no
    /// effect.
    pub fn is_random(&self) -> bool {
        self.phases.iter().flat_map(|phase| &phase.tasks).any(|task| task.benchmark.is_random())
    }

    /// The seed of the `number`th program a run starts: the first has the run's own. Repetitions
    /// have neighbouring seeds, so those of further programs lie far from them and from each other.
    pub fn seed(run: u64, number: u64) -> u64 {
        if number == 0 { run } else { SplitMix64::new(SplitMix64::new(run).next_u64() ^ number).next_u64() }
    }
}

/// The remedy for a disk that the machine lacks.
const NO_TRANSLATION: &str = "kind = \"accesses\": the machine does not say what address translation costs: choose one \
                              with a [translation], or make one of this host: kontig bench translation --out FILE";
const GIVE_A_DISK: &str = "choose a machine with disks, or give it a [[disk]]";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::churn::Churn;
    use crate::compact::Compact;
    use std::collections::BTreeSet;

    fn measuring(tasks: Vec<Task>) -> Phase {
        Phase::new(MEASURE, tasks).measured()
    }

    fn refused(phases: Vec<Phase>) -> String {
        Scenario { groups: Vec::new(), phases }.check().expect_err("refused").to_string()
    }

    fn churn() -> Task {
        Task::new(Churn { size: "1 MiB".into(), stretch: 64, pause_us: 5.0 })
    }

    #[test]
    fn every_program_of_every_repetition_has_a_seed_of_its_own() {
        let seeds: BTreeSet<u64> = (0..200).flat_map(|run| (0..50).map(move |n| Scenario::seed(run, n))).collect();
        assert_eq!(seeds.len(), 200 * 50);
        assert_eq!(Scenario::seed(7, 0), 7);
    }

    #[test]
    fn a_single_measured_phase_bears_the_measurements_name_and_several_have_names_of_their_own() {
        let one = |name: &str| Phase::new(name, vec![Task::new(Compact {})]).measured();
        assert_eq!(Scenario { groups: Vec::new(), phases: vec![one(MEASURE)] }.check(), Ok(()));
        assert_eq!(Scenario { groups: Vec::new(), phases: vec![one("1 task"), one("2 tasks")] }.check(), Ok(()));
        assert!(refused(vec![one("x")]).contains("is called 'measure'"));
        assert!(refused(vec![one("x"), one(MEASURE)]).contains("a name of its own"));
        assert!(refused(vec![one("x"), one("x")]).contains("two phases are called 'x'"));
        assert!(refused(vec![one(TOTAL)]).contains("cannot be called 'total'"));
        assert!(refused(vec![Phase::new("a", vec![])]).contains("no phase is measured"));
        assert!(refused(vec![one(MEASURE), Phase::new("after", vec![])]).contains("leave it out"));
    }

    #[test]
    fn a_phase_kills_tasks_of_phases_before_it() {
        let kills = |name: &str| Phase { kills: vec![name.into()], ..Phase::new("second", vec![]) };
        let last = || Phase::new(MEASURE, vec![Task::new(Compact {})]).measured();
        let first = || Phase::new("first", vec![churn().named("build").in_background()]);
        assert_eq!(Scenario { groups: Vec::new(), phases: vec![first(), kills("build"), last()] }.check(), Ok(()));
        let said = refused(vec![first(), kills("make"), last()]);
        assert!(said.contains("phase 'second' kills 'make', and no task before it has this name"), "{said}");
    }

    #[test]
    fn a_task_that_never_ends_needs_a_phase_that_does_or_the_background() {
        assert!(refused(vec![measuring(vec![churn()])]).contains("until it is stopped"));
        assert_eq!(Scenario { groups: Vec::new(), phases: vec![measuring(vec![churn()]).lasting(1)] }.check(), Ok(()));
        let behind = vec![Task::new(Compact {}), churn().in_background()];
        assert_eq!(Scenario { groups: Vec::new(), phases: vec![measuring(behind)] }.check(), Ok(()));
        assert!(refused(vec![measuring(vec![churn().in_background()])]).contains("nothing is measured"));
    }

    #[test]
    fn measured_tasks_are_told_apart_by_their_names() {
        let twice = |a: Task, b: Task| Scenario { groups: Vec::new(), phases: vec![measuring(vec![a, b])] }.check();
        let task = || Task::new(Compact {});
        assert!(twice(task(), task()).unwrap_err().reason.contains("another name"));
        assert!(twice(task().named("a"), task().named("a")).unwrap_err().reason.contains("task 'a' is there twice"));
        assert_eq!(twice(task().named("a"), task()), Ok(()));
        assert!(twice(task().named("a"), task().on([])).unwrap_err().reason.contains("no CPU"));
    }

    fn room(pages: u64, cpus: usize, disks: &[u32]) -> Room {
        Room { nodes: vec![pages], cpus, disks: disks.to_vec(), ..Room::default() }
    }

    #[test]
    fn tasks_run_on_cpus_that_the_machine_has() {
        let scenario = Scenario { groups: Vec::new(), phases: vec![measuring(vec![Task::new(Compact {}).on([0, 3])])] };
        assert_eq!(scenario.fits(&room(512, 4, &[])), Ok(()));
        let wrong = scenario.fits(&room(512, 2, &[])).unwrap_err();
        assert!(wrong.reason.starts_with("cpus = [3]: the machine has CPUs 0 to 1: choose"), "{wrong}");
        assert_eq!(wrong.way, ["phase", "0", "task", "0", "cpus"]);
        let said = refused(vec![measuring(vec![Task::new(Compact {}).on([1, 0, 1])])]);
        assert!(said.contains("names CPU 1 twice in cpus = [1, 0, 1]"), "{said}");
    }

    #[test]
    fn the_copies_of_a_process_together_fit_the_machines_memory() {
        let behind = Scenario { groups: Vec::new(), phases: vec![measuring(vec![churn().on([0, 1])]).lasting(1)] };
        assert_eq!(behind.fits(&room(512, 2, &[])), Ok(()));
        let wrong = behind.fits(&room(511, 2, &[])).unwrap_err();
        assert_eq!(
            wrong.reason,
            "size = \"1 MiB\" in 2 copies: the machine has 1 MiB: choose less, or another machine"
        );
        assert_eq!(wrong.way, ["phase", "0", "task", "0", "run", "size"]);
    }

    #[test]
    fn files_lie_on_disks_that_the_machine_has_and_that_are_large_enough() {
        let text = "files = [{ file = 1, size = '8 MiB' }]\nsteps = [{ do = 'read', file = 1 }]";
        let steps: crate::steps::Steps = toml::from_str(text).expect("well-formed");
        let scenario = Scenario { groups: Vec::new(), phases: vec![measuring(vec![Task::new(steps)])] };
        assert_eq!(scenario.fits(&room(512, 1, &[2048])), Ok(()));
        let none = scenario.fits(&room(512, 1, &[])).unwrap_err();
        assert!(none.reason.starts_with("steps = files on disk 0, and the machine has 0: choose a machine"), "{none}");
        assert_eq!(none.way, ["phase", "0", "task", "0", "run", "steps"]);
        let large = scenario.fits(&room(512, 1, &[1024])).unwrap_err();
        assert_eq!(
            large.reason,
            "files = file 1 of disk 0 is 8 MiB, and its disk has room for 4 MiB: take a larger one"
        );
        assert_eq!(large.way, ["phase", "0", "task", "0", "run", "files"]);
    }

    #[test]
    fn a_task_beside_others_is_measured_and_waits_for_their_end() {
        let compact = || Task::new(Compact {});
        let beside = || Task { beside: true, ..churn().named("beside") };
        assert_eq!(Scenario { groups: Vec::new(), phases: vec![measuring(vec![compact(), beside()])] }.check(), Ok(()));
        assert_eq!(measuring(vec![compact(), beside()]).foreground().count(), 2);
        assert!(refused(vec![measuring(vec![beside()])]).contains("nothing is measured"));
        let alone = Phase::new("before", vec![beside()]);
        assert!(refused(vec![alone, measuring(vec![compact()])]).contains("no other task whose end it could wait for"));
        assert!(
            refused(vec![measuring(vec![compact(), beside().in_background()])]).contains("leave out one of the two")
        );
    }

    #[test]
    fn a_phase_of_no_time_is_refused() {
        assert!(refused(vec![measuring(vec![churn()]).lasting(0)]).contains("seconds = 0: it would end as it begins"));
    }

    #[test]
    fn a_stopped_program_hands_over_nothing_more() {
        let mut program = churn().start(&Start::default()).expect("it can be read");
        let (mut todo, now) = (Batch::new(), [Outcome::at_start(0)]);
        program.next(&now, &mut todo);
        assert!(!todo.is_empty());
        while todo.pop().is_some() {}
        program.stop();
        program.next(&now, &mut todo);
        assert!(todo.is_empty());
    }

    #[test]
    fn a_program_that_is_ended_exits_with_all_that_it_holds() {
        let mut program = churn().start(&Start::default()).expect("it can be read");
        let (mut todo, now) = (Batch::new(), [Outcome::at_start(0)]);
        program.end();
        program.next(&now, &mut todo);
        assert_eq!((todo.pop(), todo.pop()), (Some(Op::Exit), None));
    }

    #[test]
    fn a_phase_stops_what_an_earlier_one_has_left_in_the_background_and_measures_until_it_is_gone() {
        let stops = |name: &str| Phase { stops: vec![name.into()], ..measuring(Vec::new()) };
        let before = Phase::new("before", vec![churn().named("churn 2").in_background()]);
        assert_eq!(Scenario { groups: Vec::new(), phases: vec![before.clone(), stops("churn")] }.check(), Ok(()));
        assert_eq!(Scenario { groups: Vec::new(), phases: vec![before.clone(), stops("churn 2")] }.check(), Ok(()));
        let unknown = Scenario { groups: Vec::new(), phases: vec![before, stops("chur")] }
            .check()
            .expect_err("nothing has that name");
        assert!(unknown.reason.contains("no earlier phase has a task of that name"), "{}", unknown.reason);
    }
}
