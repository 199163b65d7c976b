//! One run of one variant: a machine is made, prepared, left to rest, and measured.

use crate::error::{AskedWrongly, Failed, LabError};
use crate::figures::{Counters, Stretch, distribution_figures, histogram, phase_figures};
use crate::files::write_file;
use crate::observe::{gib, machine_score, node_runs};
use crate::plan::RunPlan;
use crate::sampler::Sampler;
use kontig_mm::Listen;
use kontig_mm::sysctl::Sysctl;
use kontig_program::{Placement, Program};
use kontig_results::{Figure, Histogram, MEASURE, Reading, RunResult, TaskTime};
use kontig_sim::{CostModel, Machine, SimError, Stop, TaskId};
use kontig_workload::Measured;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The CPU the workload's programs run on; the kernel's own threads have CPUs of their own.
const WORKLOAD_CPU: usize = 0;

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
    let machine = Machine::new(plan.memory()?, CostModel::new(&plan.machine.costs));
    let mut run = Running {
        plan,
        machine,
        control,
        programs: Vec::new(),
        phases: Vec::new(),
        phase_began: Counters::default(),
        sampler: Sampler::new(),
    };
    run.prepare()?;
    run.measure()
}

/// A run in progress.
struct Running<'a> {
    plan: &'a RunPlan,
    machine: Machine,
    control: &'a RunControl,
    /// The workload's programs, whether done or not.
    programs: Vec<TaskId>,
    phases: Vec<Stretch>,
    phase_began: Counters,
    sampler: Sampler,
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

    /// Runs until `task` is done, or for `for_ns`, looking at the machine at intervals.
    fn advance(&mut self, task: Option<TaskId>, for_ns: Option<u64>, permille: (u32, u32)) -> Result<(), LabError> {
        let start = self.machine.now();
        let end = for_ns.map_or(u64::MAX, |ns| start.saturating_add(ns));
        loop {
            self.check_stop()?;
            let until = self.machine.now().saturating_add(self.sampler.interval_ns()).min(end);
            let stop = self.machine.run(until, task).map_err(|e| self.failed(&e))?;
            let progress = match (task.and_then(|t| self.machine.program(t)), for_ns) {
                (Some(p), _) => p.progress(),
                (None, Some(ns)) => (self.machine.now() - start) as f64 / ns.max(1) as f64,
                _ => 0.0,
            };
            let (from, to) = permille;
            self.control
                .permille
                .store(from + (f64::from(to - from) * progress.clamp(0.0, 1.0)) as u32, Ordering::Relaxed);
            let phase = &self.phases.last().expect("a phase has begun").name;
            self.sampler.look(&mut self.machine, phase, progress);
            if stop == Stop::ProgramDone || self.machine.now() >= end {
                return Ok(());
            }
        }
    }

    /// Ends the current phase and begins another: phases follow each other without a gap.
    fn phase(&mut self, name: &str) {
        self.end_phase();
        let now = self.machine.now();
        self.phases.push(Stretch { name: name.into(), start_ns: now, end_ns: now, counted: Counters::default() });
        self.sampler.phase_begins(&self.machine, name);
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
        let mut workload = TaskTime::default();
        for time in self.programs.iter().map(|task| m.cpu_time(*task)) {
            workload.user_ns += time.user_ns;
            workload.system_ns += time.system_ns;
        }
        Counters {
            threads: m.kernel_threads(),
            workload,
            lock_wait_ns: m.lock_wait_ns(),
            proactive_runs: node_runs(m).sum(),
        }
    }

    fn spawn(&mut self, program: Box<dyn Program>) -> TaskId {
        let task = self.machine.spawn(program, Placement { cpu: WORKLOAD_CPU });
        self.programs.push(task);
        task
    }

    fn prepare(&mut self) -> Result<(), LabError> {
        self.phase("prepare");
        let wrong = |e: String| LabError::Asked(AskedWrongly::Value(e));
        if let Some(program) = self.plan.workload.preparation(self.plan.seed).map_err(wrong)? {
            let task = self.spawn(program);
            self.advance(Some(task), None, (0, 500))?;
        }
        if self.plan.workload.settle_s > 0.0 {
            self.phase("settle");
            self.advance(None, Some((self.plan.workload.settle_s * 1e9) as u64), (500, 520))?;
        }
        Ok(())
    }

    fn measure(mut self) -> Result<RunResult, LabError> {
        self.phase(MEASURE);
        self.write_procfs("start")?;
        let wrong = |e: String| LabError::Asked(AskedWrongly::Value(e));
        let before = Before::of(&self.machine);
        let (program, read) = self.plan.workload.measurement(before.free_pages).map_err(wrong)?.start();
        self.machine.memory_mut().trace().listen(Listen::COMPACTION.with(Listen::VMSCAN));
        self.sampler.measured_from(&self.machine);
        let task = self.spawn(program);
        self.advance(Some(task), None, (520, 1000))?;
        self.end_phase();
        let measured = self.machine.program(task).map(read).unwrap_or_default();
        self.sampler.last_look(&mut self.machine, "end");
        self.write_procfs("end")?;
        Ok(self.result(&before, measured))
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

    fn result(self, before: &Before, measured: Measured) -> RunResult {
        let m = &self.machine;
        let mut figures: Vec<Reading> = Vec::new();
        let histograms: Vec<Histogram> = measured.latencies.iter().map(histogram).collect();
        for (h, of) in histograms.iter().zip(&measured.latencies) {
            figures.extend(distribution_figures(h, of));
        }
        figures.extend(measured.figures);
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
        let without_effect = self.without_effect();
        let (series, map, events) = self.sampler.finish();
        let (events, event_counts) = events.finish();
        RunResult {
            experiment: self.plan.experiment.clone(),
            variant: self.plan.variant.name.clone(),
            repetition: self.plan.repetition,
            seed: self.plan.seed,
            random: self.plan.workload.is_random(),
            without_effect,
            figures,
            ending: measured.ending,
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
