//! One run of one variant: a machine is made, and goes through the phases of a scenario.
//!
//! A run is prepared and then measured: [`Prepared`] is one that has gone through the phases before the first that is
//! measured. Runs that differ in nothing until then may be measured from copies of one that is prepared.

use crate::error::{AskedWrongly, Failed, LabError};
use crate::figures::{Counters, Stretch, WORKLOAD, distribution_figures, histogram, phase_figures};
use crate::files::write_file;
use crate::observe::{gib, machine_score, node_runs};
use crate::plan::RunPlan;
use crate::sampler::Sampler;
use kontig_mm::Listen;
use kontig_mm::sysctl::Sysctl;
use kontig_program::Program;
use kontig_results::{Endings, Figure, Histogram, Reading, RunResult, TaskTime};
use kontig_sim::{CostModel, Machine, SimError, Stop, TaskId};
use kontig_workload::{End, Measured, Phase, Scenario, Start, Started, Task};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A run's share of the progress bar, and the user's wish to stop.
#[derive(Clone, Default)]
pub struct RunControl {
    /// Thousandths done.
    pub permille: Arc<AtomicU32>,
    /// Set when the run shall end as soon as possible.
    pub stop: Arc<AtomicBool>,
}

/// Carries a plan out.
///
/// # Errors
/// If the run cannot go on, or was asked to stop.
pub fn run(plan: &RunPlan, control: &RunControl) -> Result<RunResult, LabError> {
    Prepared::new(plan, control)?.measure(plan, control)
}

/// A run that has come to its first measured phase.
#[derive(Clone)]
pub struct Prepared<'a>(Running<'a>);

impl<'a> Prepared<'a> {
    /// Makes the machine of a plan and goes through the phases before the first that is measured.
    ///
    /// # Errors
    /// If the run cannot go on, or was asked to stop.
    pub fn new(plan: &'a RunPlan, control: &'a RunControl) -> Result<Prepared<'a>, LabError> {
        let mut machine = Machine::new(plan.memory()?, CostModel::new(&plan.machine.costs))
            .with_threads_per_core(plan.machine.threads_per_core);
        let failed = |reason: String| LabError::from(Failed::Run { run: plan.title(), reason });
        machine.attach_disks(&plan.machine).map_err(|wrong| failed(wrong.reason))?;
        for (name, pages) in plan.scenario.files() {
            if !machine.lay_file(name, pages) {
                return Err(failed(format!("{name} has no room on its disk, or is there already")));
            }
        }
        let mut run = Running {
            plan,
            machine,
            control,
            programs: Vec::new(),
            phases: Vec::new(),
            phase_began: Counters::default(),
            sampler: Sampler::new(plan.pictures),
            measured: Vec::new(),
        };
        run.go_through(0..run.first_measured())?;
        Ok(Prepared(run))
    }

    /// Goes through the phases that are left: of the plan it was prepared by, or of one that prepares alike.
    ///
    /// # Errors
    /// If the run cannot go on, or was asked to stop.
    pub fn measure(self, plan: &'a RunPlan, control: &'a RunControl) -> Result<RunResult, LabError> {
        Running { plan, control, ..self.0 }.measure()
    }
}

/// A program of the workload.
#[derive(Clone)]
struct Spawned {
    id: TaskId,
    /// Its task's name, and whether it is in the background.
    task: (String, bool),
}

/// What the tasks of a measured phase have measured.
#[derive(Clone)]
struct OfPhase {
    phase: String,
    measured: Vec<Measured>,
}

/// A run in progress.
#[derive(Clone)]
struct Running<'a> {
    plan: &'a RunPlan,
    machine: Machine,
    control: &'a RunControl,
    /// The workload's programs, whether done or not.
    programs: Vec<Spawned>,
    phases: Vec<Stretch>,
    phase_began: Counters,
    sampler: Sampler,
    measured: Vec<OfPhase>,
}

impl Running<'_> {
    fn failed(&self, e: &SimError) -> LabError {
        Failed::Run { run: self.plan.title(), reason: e.to_string() }.into()
    }

    fn check_stop(&self) -> Result<(), LabError> {
        if self.control.stop.load(Ordering::Relaxed) {
            return Err(Failed::Interrupted { kept: "nothing of this run".into() }.into());
        }
        Ok(())
    }

    /// How many phases go before the measurement.
    fn first_measured(&self) -> usize {
        let phases = &self.plan.scenario.phases;
        phases.iter().position(|phase| phase.measured).unwrap_or(phases.len())
    }

    /// Runs the measurement: it begins with the first phase that is measured, and ends with the last phase.
    fn measure(mut self) -> Result<RunResult, LabError> {
        self.write_procfs("start")?;
        let before = Before::of(&self.machine);
        self.go_through(self.first_measured()..self.plan.scenario.phases.len())?;
        self.end_phase();
        self.sampler.last_look(&mut self.machine, "end");
        self.write_procfs("end")?;
        Ok(self.result(&before))
    }

    /// Goes through some of the phases.
    fn go_through(&mut self, phases: Range<usize>) -> Result<(), LabError> {
        let scenario = &self.plan.scenario;
        for (phase, permille) in scenario.phases.iter().zip(shares(scenario)).take(phases.end).skip(phases.start) {
            self.phase(phase);
            if phase.measured && !self.sampler.is_measuring() {
                self.machine.memory_mut().trace().listen(Listen::COMPACTION.with(Listen::VMSCAN));
                self.sampler.measured_from(&self.machine);
            }
            let begun = self.begin(phase)?;
            self.advance(phase, &begun, permille)?;
            self.stop(&begun);
            if phase.measured {
                let measured = self.read(phase, &begun);
                self.measured.push(OfPhase { phase: phase.name.clone(), measured });
            }
        }
        Ok(())
    }

    /// Begins a phase's tasks; the copies of each that it waits for are returned.
    fn begin(&mut self, phase: &Phase) -> Result<Vec<Vec<TaskId>>, LabError> {
        let free_pages = self.machine.memory().nr_free_pages();
        let mut foreground = Vec::new();
        for task in &phase.tasks {
            let mut copies = Vec::new();
            for &placement in &task.placements {
                let seed = Scenario::seed(self.plan.seed, self.programs.len() as u64);
                let program = task.start(&Start { free_pages, seed, ..Start::default() });
                let program = program.map_err(|e| LabError::Asked(AskedWrongly::Value(e)))?;
                let id = self.machine.spawn(Box::new(program), placement);
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

    /// Runs to the end of a phase, looking at the machine at intervals.
    fn advance(&mut self, phase: &Phase, begun: &[Vec<TaskId>], (from, to): (u32, u32)) -> Result<(), LabError> {
        let start = self.machine.now();
        let (end, mut waited_for) = match phase.end {
            End::After { ns } => (start.saturating_add(ns), Vec::new()),
            End::AllDone => (u64::MAX, begun.iter().flatten().rev().copied().collect()),
        };
        loop {
            let next = waited_for.last().copied();
            if next.is_none() && (phase.end == End::AllDone || self.machine.now() >= end) {
                return Ok(());
            }
            self.check_stop()?;
            let until = self.machine.now().saturating_add(self.sampler.interval_ns()).min(end);
            let stop = self.machine.run(until, next).map_err(|e| self.failed(&e))?;
            let progress = match phase.end {
                End::After { ns } => (self.machine.now() - start) as f64 / ns.max(1) as f64,
                End::AllDone => self.progress(begun),
            };
            self.control
                .permille
                .store(from + (f64::from(to - from) * progress.clamp(0.0, 1.0)) as u32, Ordering::Relaxed);
            self.sampler.look(&mut self.machine, &phase.name, progress);
            if stop == Stop::ProgramDone {
                waited_for.pop();
            }
        }
    }

    /// How far the task is that is least far.
    fn progress(&self, begun: &[Vec<TaskId>]) -> f64 {
        let copies = begun.iter().flatten();
        let each = copies.filter_map(|id| self.machine.program(*id)).map(Program::progress);
        each.fold(f64::INFINITY, f64::min)
    }

    /// What a phase's tasks have measured.
    fn read(&self, phase: &Phase, begun: &[Vec<TaskId>]) -> Vec<Measured> {
        let programs = |copies: &Vec<TaskId>| copies.iter().filter_map(|id| self.machine.program(*id)).collect();
        phase.read(&begun.iter().map(programs).collect::<Vec<_>>())
    }

    /// Ends the current phase and begins another: phases follow each other without a gap.
    fn phase(&mut self, phase: &Phase) {
        self.end_phase();
        let now = self.machine.now();
        let name = phase.name.clone();
        self.phases.push(Stretch { name, start_ns: now, end_ns: now, counted: Counters::default() });
        self.sampler.phase_begins(&self.machine, &phase.name, phase.measured);
    }

    /// Settles what belongs to the current phase.
    fn end_phase(&mut self) {
        let counters = self.counters();
        let began = std::mem::replace(&mut self.phase_began, counters);
        let ended = &self.phase_began;
        let Some(phase) = self.phases.last_mut() else { return };
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
        }
    }

    fn write_procfs(&self, when: &str) -> Result<(), LabError> {
        let Some(dir) = &self.plan.procfs else { return Ok(()) };
        for (name, text) in kontig_procfs::from_mm::files(self.machine.memory()) {
            let path = dir.join(when).join(name);
            write_file(&path, text.as_bytes())?;
        }
        Ok(())
    }

    /// The settings that differ from the built-in default, and yet made no difference; with what boot had set.
    fn without_effect(&self) -> BTreeMap<String, u32> {
        let mem = self.machine.memory();
        let mut found = BTreeMap::new();
        for sysctl in self.plan.variant.sysctls.keys().filter_map(|name| Sysctl::find(name)) {
            let changed = mem.sysctl_read(sysctl) != sysctl.default_value();
            if let Some(at_boot) = mem.sysctl_at_boot(sysctl)
                && changed
                && !mem.sysctl_mattered(sysctl)
            {
                found.insert(sysctl.name.into(), at_boot);
            }
        }
        found
    }

    fn result(self, before: &Before) -> RunResult {
        let m = &self.machine;
        let mut figures: Vec<Reading> = Vec::new();
        let mut histograms: Vec<Histogram> = Vec::new();
        let mut endings = Vec::new();
        let without_effect = self.without_effect();
        for OfPhase { phase, measured } in self.measured {
            for measured in measured {
                for of in &measured.latencies {
                    let h = histogram(of, &phase);
                    figures.extend(distribution_figures(&h, of));
                    histograms.push(h);
                }
                figures.extend(measured.figures);
                endings.extend(measured.ending);
            }
        }
        let score = |name: &'static str| Figure::new(name, "0-100, highest node").lower();
        figures.push(score("fragmentation score before").read(before.score));
        figures.push(score("fragmentation score after").read(machine_score(m)));
        figures.extend(self.sampler.figures());
        figures.push(Figure::new("free memory before", "GiB").read(gib(before.free_pages)));
        figures.extend(phase_figures(&self.phases));
        let vmstat = m.memory().vmstat().iter();
        let vmstat = vmstat.map(|(e, v)| (e.name().to_string(), v - before.vmstat.get(e))).collect();
        let work = m.work().fields().into_iter().zip(before.work.fields());
        let work = work.map(|((n, a), (_, b))| (n.to_string(), a - b));
        let (series, map, events) = self.sampler.finish();
        let (events, event_counts) = events.finish();
        RunResult {
            experiment: self.plan.experiment.clone(),
            variant: self.plan.variant.name.clone(),
            repetition: self.plan.repetition,
            seed: self.plan.seed,
            random: self.plan.scenario.is_random(),
            without_effect,
            figures,
            endings: Endings(endings),
            vmstat,
            work: work.collect(),
            histograms,
            series,
            phases: self.phases.into_iter().map(Stretch::kept).collect(),
            map,
            events,
            event_counts,
        }
    }
}

/// What a task is called among those of a phase, and whether it is in the background.
fn called(task: &Task) -> (String, bool) {
    (task.name.clone().unwrap_or_else(|| WORKLOAD.into()), task.background)
}

/// Each phase's part of the progress bar, thousandths: one in which nothing is waited for has a small one.
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

/// The machine when the measurement began.
struct Before {
    free_pages: u64,
    score: f64,
    vmstat: kontig_mm::Vmstat,
    work: kontig_mm::Work,
}

impl Before {
    fn of(m: &Machine) -> Before {
        Before {
            free_pages: m.memory().nr_free_pages(),
            score: machine_score(m),
            vmstat: m.memory().vmstat().clone(),
            work: *m.work(),
        }
    }
}
