//! One run of one variant: a machine is made, prepared, left to rest, and measured.

use crate::error::{AskedWrongly, Failed, LabError};
use crate::experiment::Variant;
use crate::result::{Histogram, Phase, RunResult};
use crate::sampler::Sampler;
use crate::sysctls;
use kontig_mm::sysctl::Sysctl;
use kontig_mm::{Listen, Memory, Profile};
use kontig_sim::{CostModel, Machine, MachineFile, Placement, SimError, Stop, TaskId};
use kontig_workload::{Measured, Workload};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Work of the measured task counts as "measured" from here on; the kernel's own threads have CPUs of their own.
const MEASURED_CPU: usize = 0;

/// Everything that decides a run's outcome.
#[derive(Clone)]
pub struct RunPlan {
    /// The experiment it belongs to.
    pub experiment: String,
    /// The variant.
    pub variant: Variant,
    /// Its profile, switches thrown.
    pub profile: Profile,
    /// The machine.
    pub machine: MachineFile,
    /// The workload.
    pub workload: Workload,
    /// Which repetition.
    pub repetition: u32,
    /// The seed of its randomness.
    pub seed: u64,
    /// Where to write the machine's proc files at the start and the end of the measurement.
    pub procfs: Option<PathBuf>,
}

/// A run's share of the progress bar, and the user's wish to stop.
#[derive(Clone, Default)]
pub struct RunControl {
    /// Thousandths done.
    pub permille: Arc<AtomicU32>,
    /// Set when the run shall end as soon as possible.
    pub stop: Arc<AtomicBool>,
}

impl RunPlan {
    /// A short name for messages.
    pub fn title(&self) -> String {
        format!("{} / {}", self.experiment, self.variant.name)
    }

    /// Whether the machine could be made and the sysctls be set; nothing is booted.
    ///
    /// # Errors
    /// If the machine cannot be, or a sysctl is unknown, not in the profile or out of range.
    pub fn check(&self) -> Result<(), LabError> {
        let machine = self.machine.spec().and_then(|spec| Memory::check_spec(&spec));
        machine.map_err(|e| AskedWrongly::Value(format!("machine {}: {e}", self.machine.name)))?;
        let mut settings = self.variant.sysctl_texts().into_iter();
        settings.try_for_each(|(name, value)| sysctls::check(&self.variant, &self.profile, &name, &value))
    }

    /// The machine's memory under the variant's profile and sysctls, as after boot.
    ///
    /// # Errors
    /// As [`RunPlan::check`].
    pub fn memory(&self) -> Result<Memory, LabError> {
        let asked = |reason: String| LabError::Asked(AskedWrongly::Value(reason));
        let spec = self.machine.spec().map_err(|e| asked(format!("machine {}: {e}", self.machine.name)))?;
        let mut mem = Memory::new(&spec, self.profile.clone())
            .map_err(|e| asked(format!("machine {}: {e}", self.machine.name)))?;
        for (name, value) in self.variant.sysctl_texts() {
            // Nothing is woken by it: no task runs yet.
            mem.sysctl_write(&name, &value).map_err(|e| asked(e.to_string()))?;
        }
        Ok(mem)
    }

    /// Carries the plan out.
    ///
    /// # Errors
    /// If the run cannot go on, or was asked to stop.
    pub fn run(&self, control: &RunControl) -> Result<RunResult, LabError> {
        let machine = Machine::new(self.memory()?, CostModel::new(&self.machine.costs));
        let mut run = Running { plan: self, machine, control, phases: Vec::new(), sampler: Sampler::new() };
        run.prepare()?;
        run.measure()
    }
}

/// A variant's name as part of a path.
pub(crate) fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || ".-_=+".contains(c) { c } else { '_' }).collect()
}

/// A run in progress.
struct Running<'a> {
    plan: &'a RunPlan,
    machine: Machine,
    control: &'a RunControl,
    phases: Vec<Phase>,
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

    fn phase(&mut self, name: &str) {
        let now = self.machine.now();
        if let Some(last) = self.phases.last_mut() {
            last.end_ns = now;
        }
        self.phases.push(Phase { name: name.into(), start_ns: now, end_ns: now });
        self.sampler.phase_begins(&self.machine, name);
    }

    fn prepare(&mut self) -> Result<(), LabError> {
        self.phase("prepare");
        let wrong = |e: String| LabError::Asked(AskedWrongly::Value(e));
        if let Some(program) = self.plan.workload.preparation(self.plan.seed).map_err(wrong)? {
            let task = self.machine.spawn(program, Placement { cpu: MEASURED_CPU });
            self.advance(Some(task), None, (0, 500))?;
        }
        if self.plan.workload.settle_s > 0.0 {
            self.phase("settle");
            self.advance(None, Some((self.plan.workload.settle_s * 1e9) as u64), (500, 520))?;
        }
        Ok(())
    }

    fn measure(mut self) -> Result<RunResult, LabError> {
        self.phase("measure");
        self.write_procfs("start")?;
        let wrong = |e: String| LabError::Asked(AskedWrongly::Value(e));
        let before = Before::of(&self.machine);
        let program = self.plan.workload.measurement(before.free_pages).map_err(wrong)?;
        self.machine.memory_mut().trace().listen(Listen::COMPACTION.with(Listen::VMSCAN));
        self.sampler.measured_from(&self.machine);
        let task = self.machine.spawn(program.into_program(), Placement { cpu: MEASURED_CPU });
        self.advance(Some(task), None, (520, 1000))?;
        let now = self.machine.now();
        self.phases.last_mut().expect("the measurement is a phase").end_ns = now;
        let measured = self.machine.program(task).map(Workload::measured).unwrap_or_default();
        self.sampler.last_look(&mut self.machine, "end");
        self.write_procfs("end")?;
        Ok(self.result(task, &before, measured))
    }

    fn write_procfs(&self, when: &str) -> Result<(), LabError> {
        let Some(dir) = &self.plan.procfs else { return Ok(()) };
        for (name, text) in self.machine.memory().procfs_files() {
            let path = dir.join(when).join(name);
            crate::store::write_file(&path, text.as_bytes())?;
        }
        Ok(())
    }

    /// The settings that differ from the default of every machine, and yet made no difference; with what boot had set.
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

    fn result(self, task: TaskId, before: &Before, measured: Measured) -> RunResult {
        let m = &self.machine;
        let mut figures: BTreeMap<String, f64> = measured.figures.iter().map(|(n, v)| ((*n).to_string(), *v)).collect();
        let time = m.cpu_time(task);
        let elapsed = (m.now() - before.now) as f64 / 1e9;
        let kcompactd = (m.kcompactd_ns() - before.kcompactd_ns) as f64 / 1e9;
        let kswapd = (m.kswapd_ns() - before.kswapd_ns) as f64 / 1e9;
        let runs = proactive_runs(m) - before.proactive_runs;
        for (name, value) in [
            ("user", time.user_ns as f64 / 1e9),
            ("system", time.system_ns as f64 / 1e9),
            ("elapsed", elapsed),
            ("proactive compaction runs", runs as f64),
            ("kcompactd CPU time", kcompactd),
            ("kcompactd CPU share", if elapsed > 0.0 { 100.0 * kcompactd / elapsed } else { 0.0 }),
            ("kswapd CPU time", kswapd),
            ("zone lock wait", (m.lock_wait_ns() - before.lock_wait_ns) as f64 / 1e9),
            ("fragmentation score before", before.score),
            ("fragmentation score after", machine_score(m)),
            ("free memory before", before.free_pages as f64 * 4096.0 / (1u64 << 30) as f64),
        ] {
            figures.insert(name.into(), value);
        }
        figures.extend(self.sampler.figures());
        let vmstat = m.memory().vmstat().iter();
        let vmstat = vmstat.map(|(e, v)| (e.name().to_string(), v - before.vmstat.get(e))).collect();
        let work = m.work().fields().into_iter().zip(before.work.fields());
        let work = work.map(|((n, a), (_, b))| (n.to_string(), a - b));
        let histograms = measured.latencies.iter().map(|(name, h)| Histogram {
            name: (*name).into(),
            unit: "us".into(),
            buckets: h
                .iter_recorded()
                .map(|b| (h.highest_equivalent(b.value_iterated_to()) as f64 / 1000.0, b.count_at_value()))
                .collect(),
        });
        let without_effect = self.without_effect();
        let (series, map, events) = self.sampler.finish();
        let (events, event_counts) = events.finish();
        RunResult {
            experiment: self.plan.experiment.clone(),
            variant: self.plan.variant.name.clone(),
            repetition: self.plan.repetition,
            seed: self.plan.seed,
            without_effect,
            figures,
            vmstat,
            work: work.collect(),
            histograms: histograms.collect(),
            series,
            phases: self.phases,
            map,
            events,
            event_counts,
        }
    }
}

/// The machine when the measurement began.
struct Before {
    now: u64,
    free_pages: u64,
    score: f64,
    vmstat: kontig_mm::Vmstat,
    work: kontig_mm::Work,
    kcompactd_ns: u64,
    kswapd_ns: u64,
    lock_wait_ns: u64,
    proactive_runs: u64,
}

impl Before {
    fn of(m: &Machine) -> Before {
        Before {
            now: m.now(),
            free_pages: m.memory().nr_free_pages(),
            score: machine_score(m),
            vmstat: m.memory().vmstat().clone(),
            work: *m.work(),
            kcompactd_ns: m.kcompactd_ns(),
            kswapd_ns: m.kswapd_ns(),
            lock_wait_ns: m.lock_wait_ns(),
            proactive_runs: proactive_runs(m),
        }
    }
}

pub(crate) fn proactive_runs(m: &Machine) -> u64 {
    m.memory().nodes().iter().map(|n| n.kcompactd.proactive_runs).sum()
}

/// The highest of the nodes' fragmentation scores.
pub(crate) fn machine_score(m: &Machine) -> f64 {
    let mem = m.memory();
    mem.nodes().iter().map(|n| mem.fragmentation_score_node(n.id)).max().unwrap_or(0) as f64
}
