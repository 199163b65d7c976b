//! One run of one variant: builds the machine and takes it through the phases of a scenario.
//!
//! A run is prepared and then measured. [`Prepared`] has gone through the phases before the first
//! measured one, or as far as runs of several kernels are the same. Runs that differ only after
//! that point may be measured on copies of one prepared machine. A run of several rounds repeats
//! the measured phases, each round on the machine as the last one left it.

use crate::figures::{Counters, Stretch, WORKLOAD, phase_figures};
use crate::ftrace::Ftrace;
use crate::groups::{self, OfGroups};
use crate::history::History;
use crate::mmtests::{Iteration, Times};
use crate::observe::{gib, machine_score, node_runs};
use crate::plan::RunPlan;
use crate::pressure::Pressure;
use crate::round::{Before, Measurements, OfPhase};
use crate::sampler::Sampler;
use crate::vmstat::proc_files;
use kontig_error::files::write_with_directory;
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_mm::Listen;
use kontig_mm::sysctl::Sysctl;
use kontig_program::Program;
use kontig_results::{Ending, Endings, Figure, Round, RunResult, TaskTime};
use kontig_sim::{CostModel, Machine, SimError, Stop, TaskId};
use kontig_workload::scenario::is_called;
use kontig_workload::{End, Measured, Phase, Scenario, Start, Started, Task};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A run's share of the progress bar, and the user's wish to stop.
#[derive(Clone, Default)]
pub struct RunControl {
    pub permille: Arc<AtomicU32>,
    /// Set to end the run as soon as possible.
    pub stop: Arc<AtomicBool>,
}

/// Carries a plan out.
///
/// # Errors
/// If the run cannot go on, or was asked to stop.
pub fn run(plan: &RunPlan, control: &RunControl) -> Result<RunResult, Error> {
    Prepared::new(plan, control)?.measure(plan, control)
}

/// A run as far as others are the same.
#[derive(Clone)]
pub struct Prepared<'a>(Running<'a>);

impl<'a> Prepared<'a> {
    /// Builds the machine of a plan and goes through the phases before the first measured one.
    ///
    /// # Errors
    /// If the run cannot go on, or was asked to stop.
    pub fn new(plan: &'a RunPlan, control: &'a RunControl) -> Result<Prepared<'a>, Error> {
        let mut run = Running::new(plan, control)?;
        while !run.has_reached_measurement() {
            run.step()?;
        }
        Ok(Prepared(run))
    }

    /// Builds the machine of a plan and goes on as long as kernels that differ in their compaction
    /// runs alone ([`RunPlan::begins_like`]) do the same. Returns the run, of this plan alone, and
    /// the last copy made before its first compaction, wherever in the workload that is.
    ///
    /// # Errors
    /// If the run cannot go on, or was asked to stop.
    pub(crate) fn until_compaction(plan: &'a RunPlan, control: &'a RunControl) -> Result<[Prepared<'a>; 2], Error> {
        let mut run = Running::new(plan, control)?;
        let mut copy = run.clone();
        // A copy costs in proportion to memory, so copies are as far apart: on 4 GiB, with a kernel
        // build, these turns take about a second, and a copy 0.06 to 0.3.
        let turns_between = plan.machine.node_pages().iter().sum::<u64>();
        while run.step()? && !run.machine.memory().has_compacted() {
            if run.machine.turns() >= copy.machine.turns() + turns_between {
                // The host needs memory for one copy beside the machine, not for two.
                drop(copy);
                copy = run.clone();
            }
        }
        Ok([run, copy].map(Prepared))
    }

    /// Goes through all that remains by this plan: the one that prepared it, or one that is the
    /// same so far.
    ///
    /// # Errors
    /// If the run cannot go on, or was asked to stop.
    pub fn measure(self, plan: &'a RunPlan, control: &'a RunControl) -> Result<RunResult, Error> {
        let mut run = Running { plan, control, ..self.0 };
        run.machine.memory_mut().switch_rules(&plan.profile);
        while run.step()? {}
        run.finish()
    }
}

/// A result with every figure and distribution that a run of this plan measures, for their names:
/// its tasks are started, and none runs.
///
/// # Errors
/// If the machine cannot be built, or a task cannot start.
pub(crate) fn unrun(plan: &RunPlan) -> Result<RunResult, Error> {
    let control = RunControl::default();
    let mut run = Running::new(plan, &control)?;
    let prepared = run.first_measured();
    for phase in &plan.scenario.phases[..prepared] {
        run.open_stretch(phase);
        run.begin(phase)?;
    }
    for _ in 0..plan.rounds {
        run.begin_round()?;
        for phase in &plan.scenario.phases[prepared..] {
            run.open_stretch(phase);
            let begun = run.begin(phase)?;
            if phase.measured {
                let measured = run.read(phase, &begun);
                run.measured.push(OfPhase { phase: phase.name.clone(), measured });
            }
        }
        run.close_stretch();
        // A task that took no time has no figure of it; beside an unnamed one that did, none has.
        let tasks = run.phases.iter_mut().flat_map(|phase| &mut phase.counted.tasks);
        let named = tasks.filter(|((name, _), _)| name != WORKLOAD);
        named.for_each(|(_, time)| time.system_ns = time.system_ns.max(1));
        run.end_round()?;
    }
    run.finish()
}

/// A program of the workload.
#[derive(Clone)]
struct Spawned {
    id: TaskId,
    /// The name of its task, and whether it runs in the background.
    task: (String, bool),
}

/// A phase in progress.
#[derive(Clone)]
struct InPhase {
    /// The copies of each foreground task.
    begun: Vec<Vec<TaskId>>,
    /// Programs that the phase still waits for.
    left: Vec<TaskId>,
    start_ns: u64,
    end_ns: u64,
    /// Its part of the progress bar, in thousandths.
    permille: (u32, u32),
}

/// A round of the measured phases in progress.
#[derive(Clone)]
struct InRound {
    before: Before,
    iteration: Option<Iteration>,
    /// The number of phases before it.
    first: usize,
}

/// A run in progress.
#[derive(Clone)]
struct Running<'a> {
    plan: &'a RunPlan,
    machine: Machine,
    control: &'a RunControl,
    /// The position among the scenario's phases of the one in progress or, between two, of the
    /// next.
    at: usize,
    phase: Option<InPhase>,
    round: Option<InRound>,
    /// The rounds that have ended.
    rounds: Vec<Round>,
    /// The beginning of the first round.
    measured_from: Option<(Before, usize)>,
    /// All programs of the workload so far, finished or not.
    programs: Vec<Spawned>,
    phases: Vec<Stretch>,
    /// The last of them has not ended.
    is_stretch_open: bool,
    phase_began: Counters,
    sampler: Sampler,
    /// Measurements of the current round so far.
    measured: Vec<OfPhase>,
    endings: Vec<Ending>,
}

impl<'a> Running<'a> {
    /// Builds the machine of a plan.
    fn new(plan: &'a RunPlan, control: &'a RunControl) -> Result<Running<'a>, Error> {
        let mut machine = Machine::new(plan.memory()?, CostModel::new(&plan.machine.costs))
            .with_threads_per_core(plan.machine.threads_per_core);
        let failed = |reason: String| Error::from(Failed::Run { run: plan.title(), reason });
        machine.set_processor(plan.machine.translation.clone());
        machine.attach_nodes(&plan.machine).map_err(|wrong| failed(wrong.reason))?;
        machine.attach_disks(&plan.machine).map_err(|wrong| failed(wrong.reason))?;
        if !plan.scenario.groups.is_empty() {
            machine.make_groups(&groups::entries(&plan.scenario.groups)).map_err(failed)?;
        }
        if let Some(beginning) = &plan.begins_as {
            machine.adopt(&beginning.pages(&plan.machine, plan.seed).map_err(failed)?).map_err(failed)?;
        }
        for (name, pages) in plan.scenario.files() {
            if !machine.lay_file(name, pages) {
                return Err(failed(format!("{name} does not fit on its disk, or exists already")));
            }
        }
        Ok(Running {
            plan,
            machine,
            control,
            at: 0,
            phase: None,
            round: None,
            rounds: Vec::new(),
            measured_from: None,
            programs: Vec::new(),
            phases: Vec::new(),
            is_stretch_open: false,
            phase_began: Counters::default(),
            sampler: Sampler::new(plan.pictures),
            measured: Vec::new(),
            endings: Vec::new(),
        })
    }

    fn failed(&self, e: &SimError) -> Error {
        Failed::Run { run: self.plan.title(), reason: e.to_string() }.into()
    }

    fn check_stop(&self) -> Result<(), Error> {
        if self.control.stop.load(Ordering::Relaxed) {
            return Err(Failed::Interrupted { kept: "nothing of this run".into() }.into());
        }
        Ok(())
    }

    /// The number of phases before the first measured one.
    fn first_measured(&self) -> usize {
        let phases = &self.plan.scenario.phases;
        phases.iter().position(|phase| phase.measured).unwrap_or(phases.len())
    }

    /// Whether the next step begins the measurement.
    fn has_reached_measurement(&self) -> bool {
        self.phase.is_none() && self.at == self.first_measured()
    }

    /// Begins or ends a phase or a round, or runs for one interval of the sampler. Whether anything
    /// is left to do.
    fn step(&mut self) -> Result<bool, Error> {
        let plan = self.plan;
        let phases = &plan.scenario.phases;
        if let Some(mut current) = self.phase.take() {
            let phase = &phases[self.at];
            match self.advance(phase, &mut current)? {
                true => self.leave(phase, &current),
                false => self.phase = Some(current),
            }
            return Ok(true);
        }
        if self.rounds.len() as u32 == plan.rounds {
            return Ok(false);
        }
        if self.at == self.first_measured() && self.round.is_none() {
            self.begin_round()?;
        }
        if let Some(phase) = phases.get(self.at) {
            self.enter(phase)?;
            return Ok(true);
        }
        self.end_round()?;
        self.at = self.first_measured();
        Ok(true)
    }

    fn begin_round(&mut self) -> Result<(), Error> {
        if self.rounds.is_empty() {
            self.write_procfs("start")?;
            self.measured_from = Some((Before::of(&self.machine), self.phases.len()));
        }
        let iteration = self.plan.mmtests.as_ref().map(|_| Iteration::begin(&self.machine));
        self.round = Some(InRound { before: Before::of(&self.machine), iteration, first: self.phases.len() });
        Ok(())
    }

    fn end_round(&mut self) -> Result<(), Error> {
        let Some(InRound { before, iteration, first }) = self.round.take() else { return Ok(()) };
        let round = self.rounds.len() as u32;
        if round + 1 == self.plan.rounds {
            self.sampler.last_look(&mut self.machine, "end");
        }
        self.close_stretch();
        let measured = self.round(&before, first);
        if let (Some(of_run), Some(iteration)) = (&self.plan.mmtests, iteration) {
            let times = self.times(first);
            let (n, monitors) = (of_run.first + round, self.sampler.monitors());
            iteration.write(&of_run.dir, n, &self.machine, (&measured, &times), monitors)?;
        }
        self.rounds.push(measured);
        Ok(())
    }

    fn enter(&mut self, phase: &Phase) -> Result<(), Error> {
        self.open_stretch(phase);
        if phase.measured && !self.sampler.is_measuring() {
            self.begin_measuring()?;
        }
        let ended = self.end_background(&phase.stops);
        let begun = self.begin(phase)?;
        let start_ns = self.machine.now();
        let (end_ns, left) = match phase.end {
            End::After { ns } => (start_ns.saturating_add(ns), Vec::new()),
            End::AllDone => (u64::MAX, ended.into_iter().chain(waited_for(phase, &begun)).rev().collect()),
        };
        self.phase = Some(InPhase { begun, left, start_ns, end_ns, permille: self.permille() });
        Ok(())
    }

    fn leave(&mut self, phase: &Phase, current: &InPhase) {
        self.stop(&current.begun);
        if phase.measured {
            let measured = self.read(phase, &current.begun);
            self.measured.push(OfPhase { phase: phase.name.clone(), measured });
        }
        self.at += 1;
    }

    /// Turns on what is recorded of the measured phases alone.
    fn begin_measuring(&mut self) -> Result<(), Error> {
        let mut listen = Listen::COMPACTION.with(Listen::VMSCAN);
        if self.plan.mmtests.is_some() || self.plan.machine.has_disks() {
            listen = listen.with(Listen::EXTFRAG);
        }
        if self.plan.mmtests.is_some() {
            self.sampler.monitors();
        }
        if let Some(path) = &self.plan.trace {
            let detail = Listen::COMPACTION_DETAIL.with(Listen::HUGE_MEMORY);
            listen = listen.with(Listen::EXTFRAG).with(detail);
            self.sampler.trace_to(Ftrace::create(path, self.machine.memory())?);
        }
        if let Some(path) = &self.plan.history {
            let run = format!("{} {}", self.plan.title(), self.plan.seed);
            let mut history = History::create(path, &run)?;
            history.look(&self.machine);
            self.sampler.record_to(history);
        }
        self.machine.memory_mut().trace().listen(listen);
        self.sampler.measured_from(&self.machine);
        Ok(())
    }

    /// The current phase's part of the progress bar. The rounds share that of the measured phases.
    fn permille(&self) -> (u32, u32) {
        let (shares, first) = (shares(&self.plan.scenario), self.first_measured());
        let (part, round, rounds) = match self.at < first {
            true => (&shares[..first], 0, 1),
            false => (&shares[first..], self.rounds.len() as u32, self.plan.rounds),
        };
        let (from, to) = (part[0].0, part[part.len() - 1].1);
        let of_round = |at: u32| from + ((to - from) * round + (at - from)) / rounds;
        let (begin, end) = shares[self.at];
        (of_round(begin), of_round(end))
    }

    /// Starts a phase's tasks. Returns the copies of each foreground task.
    fn begin(&mut self, phase: &Phase) -> Result<Vec<Vec<TaskId>>, Error> {
        let free_pages = self.machine.memory().nr_free_pages();
        for killed in self.programs.iter().filter(|program| phase.kills.contains(&program.task.0)) {
            self.machine.kill_all_of(killed.id);
        }
        let mut foreground = Vec::new();
        for task in &phase.tasks {
            let mut copies = Vec::new();
            for (copy, &placement) in (0..).zip(&task.placements) {
                let seed = Scenario::seed(self.plan.seed, self.programs.len() as u64);
                let program = task.start(&Start { free_pages, seed, copy, ..Start::default() });
                let program = program.map_err(|e| Error::Asked(AskedWrongly::Value(e)))?;
                let id = self.machine.spawn(Box::new(program), placement);
                self.machine.name_task(id, task.name.as_deref().unwrap_or(&self.plan.experiment));
                self.machine
                    .set_mempolicy(id, task.memory)
                    .map_err(|e| Error::Asked(AskedWrongly::Value(e.to_string())))?;
                if let Some(group) = task.group {
                    self.machine.set_group(id, groups::id(group));
                }
                copies.push(id);
                self.programs.push(Spawned { id, task: called(task) });
            }
            if !task.background {
                foreground.push(copies);
            }
        }
        Ok(foreground)
    }

    /// Stops the tasks of a phase that has ended.
    fn stop(&mut self, begun: &[Vec<TaskId>]) {
        for &id in begun.iter().flatten() {
            if let Some(started) = self.machine.program_mut(id).and_then(Started::of_mut) {
                started.stop();
            }
        }
    }

    /// Ends background tasks by name; their programs.
    fn end_background(&mut self, names: &[String]) -> Vec<TaskId> {
        let is_named = |spawned: &&Spawned| {
            let (task, in_background) = &spawned.task;
            *in_background && names.iter().any(|name| is_called(task, name))
        };
        let ended: Vec<TaskId> = self.programs.iter().filter(is_named).map(|spawned| spawned.id).collect();
        for id in &ended {
            if let Some(started) = self.machine.program_mut(*id).and_then(Started::of_mut) {
                started.end();
            }
        }
        ended
    }

    /// Runs for an interval of the sampler, which then looks at the machine, or to the end of the
    /// phase or of the program it waits for. Whether the phase has ended.
    fn advance(&mut self, phase: &Phase, current: &mut InPhase) -> Result<bool, Error> {
        let InPhase { begun, left, start_ns, end_ns, permille: (from, to) } = current;
        let next = left.last().copied();
        if next.is_none() && (phase.end == End::AllDone || self.machine.now() >= *end_ns) {
            return Ok(true);
        }
        self.check_stop()?;
        let until = self.machine.now().saturating_add(self.sampler.interval_ns()).min(*end_ns);
        let stop = self.run_to(until, next)?;
        let progress = match phase.end {
            End::After { ns } => (self.machine.now() - *start_ns) as f64 / ns.max(1) as f64,
            End::AllDone => self.progress(waited_for(phase, begun)),
        };
        let so_far = (f64::from(*to - *from) * progress.clamp(0.0, 1.0)) as u32;
        self.control.permille.store(*from + so_far, Ordering::Relaxed);
        self.sampler.look(&mut self.machine, &phase.name, progress);
        self.sampler.check()?;
        if stop == Stop::ProgramDone {
            left.pop();
        }
        Ok(false)
    }

    /// Runs to a moment, or until a program is done, with a stop for each sample of the history.
    /// The sampler looks no more often because of those.
    fn run_to(&mut self, until: u64, program: Option<TaskId>) -> Result<Stop, Error> {
        loop {
            let part = self.sampler.history().map_or(until, |history| history.next_ns().min(until));
            let stop = self.machine.run(part, program).map_err(|e| self.failed(&e))?;
            if let Some(history) = self.sampler.history() {
                history.look(&self.machine);
            }
            if stop == Stop::ProgramDone || part == until {
                return Ok(stop);
            }
        }
    }

    /// The progress of the slowest task.
    fn progress(&self, copies: impl Iterator<Item = TaskId>) -> f64 {
        let each = copies.filter_map(|id| self.machine.program(id)).map(Program::progress);
        each.fold(f64::INFINITY, f64::min)
    }

    /// The measurements of a phase's tasks.
    fn read(&self, phase: &Phase, begun: &[Vec<TaskId>]) -> Vec<Measured> {
        let programs = |copies: &Vec<TaskId>| copies.iter().filter_map(|id| self.machine.program(*id)).collect();
        phase.read(&begun.iter().map(programs).collect::<Vec<_>>())
    }

    /// Ends the current phase's stretch and begins the next at the same moment.
    fn open_stretch(&mut self, phase: &Phase) {
        self.close_stretch();
        let now = self.machine.now();
        let name = phase.name.clone();
        self.phases.push(Stretch { name, start_ns: now, end_ns: now, counted: Counters::default() });
        self.is_stretch_open = true;
        self.sampler.phase_begins(&self.machine, &phase.name, phase.measured);
    }

    /// Records what was counted in the current phase.
    fn close_stretch(&mut self) {
        let counters = self.counters();
        let began = std::mem::replace(&mut self.phase_began, counters);
        let ended = &self.phase_began;
        let Some(phase) = self.phases.last_mut().filter(|_| std::mem::take(&mut self.is_stretch_open)) else { return };
        phase.end_ns = self.machine.now();
        phase.counted = ended.since(&began);
    }

    fn counters(&self) -> Counters {
        let m = &self.machine;
        // Tasks that have not begun have taken no time.
        let all = self.plan.scenario.phases.iter().flat_map(|phase| &phase.tasks);
        let mut tasks: BTreeMap<_, TaskTime> = all.map(|task| (called(task), TaskTime::default())).collect();
        if tasks.is_empty() {
            tasks.insert((WORKLOAD.into(), false), TaskTime::default());
        }
        for program in &self.programs {
            let (sum, time) = (tasks.entry(program.task.clone()).or_default(), m.cpu_time(program.id));
            sum.user_ns += time.user_ns;
            sum.system_ns += time.system_ns;
        }
        Counters {
            threads: m.kernel_threads(),
            tasks,
            lock_wait_ns: m.lock_wait_ns(),
            proactive_runs: node_runs(m).sum(),
            has_disks: self.plan.machine.has_disks(),
            groups: OfGroups::of(m),
            pressure: Some(match self.plan.machine.has_disks() {
                true => Pressure::of(m, self.sampler.fragmenting()),
                false => Pressure::without_disks(m),
            }),
        }
    }

    fn write_procfs(&self, when: &str) -> Result<(), Error> {
        let Some(dir) = &self.plan.procfs else { return Ok(()) };
        for (name, text) in proc_files(&self.machine) {
            let path = dir.join(when).join(name);
            write_with_directory(&path, text.as_bytes())?;
        }
        Ok(())
    }

    /// Settings that differ from the built-in default but changed no decision, with the value boot
    /// had set.
    fn without_effect(&self) -> BTreeMap<String, u32> {
        let mem = self.machine.memory();
        let mut found = BTreeMap::new();
        for sysctl in self.plan.variant.sysctls.keys().filter_map(|name| Sysctl::find(name)) {
            let set = mem.sysctl_read(sysctl);
            let changed = set != sysctl.default_value() || set != mem.sysctl_at_boot(sysctl);
            if let Some(at_boot) = mem.sysctl_at_boot(sysctl)
                && changed
                && !mem.sysctl_mattered(sysctl)
            {
                found.insert(sysctl.name.into(), at_boot);
            }
        }
        found
    }

    /// The result of the round that has just ended; its phases are those from `first` on.
    fn round(&mut self, before: &Before, first: usize) -> Round {
        let Measurements { mut figures, histograms, endings } = Measurements::of(std::mem::take(&mut self.measured));
        self.endings.extend(endings);
        let score = |name: &'static str| Figure::new(name, "0-100, highest node").lower();
        figures.push(score("fragmentation score before").read(before.score));
        figures.push(score("fragmentation score after").read(machine_score(&self.machine)));
        let alone = self.plan.rounds == 1;
        if alone {
            figures.extend(self.sampler.figures());
        }
        figures.push(Figure::new("free memory before", "GiB").read(gib(before.free_pages)));
        figures.extend(match alone {
            true => phase_figures(&self.phases, Some(&self.phases)),
            false => phase_figures(&self.phases[first..], None),
        });
        Round { figures, histograms, vmstat: before.vmstat_until(&self.machine) }
    }

    /// CPU time of all the workload's tasks in the phases from `first` on, and the length of these
    /// phases.
    fn times(&self, first: usize) -> Times {
        let of = &self.phases[first..];
        let tasks = || of.iter().flat_map(|phase| phase.counted.tasks.values());
        let seconds = |ns: u64| ns as f64 / 1e9;
        Times {
            user_s: seconds(tasks().map(|time| time.user_ns).sum()),
            system_s: seconds(tasks().map(|time| time.system_ns).sum()),
            elapsed_s: seconds(of.iter().map(|phase| phase.end_ns - phase.start_ns).sum()),
        }
    }

    /// The result, once all rounds have ended.
    fn finish(mut self) -> Result<RunResult, Error> {
        self.write_procfs("end")?;
        self.sampler.trace().map_or(Ok(()), Ftrace::finish)?;
        let without_effect = self.without_effect();
        let (before, prepared) = self.measured_from.expect("a run has a round at least");
        let mut rounds = self.rounds;
        let (mut figures, mut histograms) = (Vec::new(), Vec::new());
        match rounds.as_mut_slice() {
            [only] => {
                (figures, histograms) = (std::mem::take(&mut only.figures), std::mem::take(&mut only.histograms));
                rounds.clear();
            }
            _ => {
                figures.extend(self.sampler.figures());
                figures.extend(phase_figures(&self.phases[..prepared], Some(&self.phases)));
            }
        }
        let work = self.machine.work().fields().into_iter().zip(before.work.fields());
        let work = work.map(|((n, a), (_, b))| (n.to_string(), a - b));
        let (series, map, events) = self.sampler.finish();
        let (events, event_counts) = events.finish();
        Ok(RunResult {
            experiment: self.plan.experiment.clone(),
            case: self.plan.case.clone(),
            variant: self.plan.variant.name.clone(),
            repetition: self.plan.repetition,
            seed: self.plan.seed,
            random: self.plan.is_random,
            without_effect,
            figures,
            rounds,
            endings: Endings(self.endings),
            vmstat: before.vmstat_until(&self.machine),
            work: work.collect(),
            histograms,
            series,
            phases: self.phases.into_iter().map(Stretch::kept).collect(),
            map,
            events,
            event_counts,
        })
    }
}

/// A task's name in the phase's figures, and whether it runs in the background.
fn called(task: &Task) -> (String, bool) {
    (task.name.clone().unwrap_or_else(|| WORKLOAD.into()), task.background)
}

/// The copies of the tasks that a phase ending with its tasks waits for.
fn waited_for(phase: &Phase, begun: &[Vec<TaskId>]) -> impl DoubleEndedIterator<Item = TaskId> {
    let each = phase.foreground().zip(begun).filter(|(task, _)| !task.beside).flat_map(|(_, copies)| copies);
    each.copied().collect::<Vec<_>>().into_iter()
}

/// Each phase's part of the progress bar, in thousandths; small for a phase that waits for no task.
fn shares(scenario: &Scenario) -> Vec<(u32, u32)> {
    let weight = |phase: &Phase| if phase.foreground().next().is_some() { 25 } else { 1 };
    let all: u32 = scenario.phases.iter().map(weight).sum();
    let mut so_far = 0;
    let share = |phase: &Phase| {
        let from = so_far;
        so_far += weight(phase);
        (1000 * from / all, 1000 * so_far / all)
    };
    scenario.phases.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;
    use crate::experiment::{Experiment, Variant};
    use crate::plan::Views;
    use crate::resolved::Resolved;
    use kontig_results::Seeds;
    use std::collections::BTreeSet;

    /// The figures and distributions of a run, with their phases.
    fn names(run: &RunResult) -> BTreeSet<(String, String)> {
        let rounds = run.rounds.iter();
        let figures = rounds.clone().flat_map(|round| &round.figures).chain(&run.figures);
        let histograms = rounds.flat_map(|round| &round.histograms).chain(&run.histograms);
        let figures = figures.map(|r| (r.figure.name.to_string(), r.figure.phase.to_string()));
        figures.chain(histograms.map(|h| (h.name.clone(), h.phase.to_string()))).collect()
    }

    #[test]
    fn a_run_that_does_not_run_names_all_that_one_measures() {
        let of = |(name, rounds): (&str, u32)| {
            let (file, ..) = catalog::workload(name).unwrap_or_else(|e| panic!("{e}"));
            let (compact, _) = catalog::experiment("compact-32g").unwrap_or_else(|e| panic!("{e}"));
            let e = Experiment {
                id: name.into(),
                workload: file.workload,
                machine: "box-2g".into(),
                variant: vec![Variant { name: "v".into(), profile: "6.1".into(), ..Variant::default() }],
                rounds,
                ..compact
            };
            let e = Experiment { target: None, caveat: Vec::new(), lack: Vec::new(), pace: None, ..e };
            let resolved = Resolved::new(e, None).unwrap_or_else(|e| panic!("{e}"));
            let plans = resolved.plans(&Seeds::From(1), &Views::default()).expect("plans");
            let plan = &plans[0][0];
            let measured = names(&run(plan, &RunControl::default()).unwrap_or_else(|e| panic!("{e}")));
            assert!(measured.len() > 100, "{name}");
            let named = names(&unrun(plan).unwrap_or_else(|e| panic!("{e}")));
            let lost: Vec<_> = measured.difference(&named).collect();
            assert!(lost.is_empty(), "{name}: {lost:?}");
        };
        [("hugealloc-busy", 1), ("hugealloc", 2), ("java", 1), ("forking-store", 1), ("highalloc", 1)]
            .into_iter()
            .for_each(of);
    }

    #[test]
    fn a_machine_for_several_kernels_is_copied_in_the_middle_of_a_phase() {
        let text = r#"id = "mended"
summary = "x"
assumptions = "x"
machine = "tiny-64m"
[[workload.phase]]
name = "pages"
measured = true
seconds = 2
[[workload.phase.task]]
run = { kind = "churn", size = "4 MiB", stretch = 16, pause_us = 30 }
background = true
name = "churn"
[[workload.phase]]
name = "compact"
measured = true
[[workload.phase.task]]
run = { kind = "compact" }
[[variant]]
name = "3.13"
profile = "3.13"
"#;
        let experiment: Experiment = toml::from_str(text).unwrap_or_else(|e| panic!("{e}"));
        let resolved = Resolved::new(experiment, None).unwrap_or_else(|e| panic!("{e}"));
        let plans = resolved.plans(&Seeds::From(1), &Views::default()).expect("plans");
        let control = RunControl::default();
        let [ahead, copy] = Prepared::until_compaction(&plans[0][0], &control).unwrap_or_else(|e| panic!("{e}"));
        assert!(ahead.0.machine.memory().has_compacted());
        let Prepared(copy) = copy;
        assert!(copy.phase.is_some() && copy.at == 0 && copy.machine.now() > 1_000_000_000, "{}", copy.machine.now());
        assert!(!copy.machine.memory().has_compacted());
    }
}
