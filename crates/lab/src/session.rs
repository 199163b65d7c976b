//! A session: what was asked for, resolved, run in parallel, and compared.
//!
//! Every name is looked up and every file read before the first run starts. Runs go side by side as far as the
//! host's CPUs and memory allow; results do not depend on how many.

use crate::catalog;
use crate::compare::compare;
use crate::error::{AskedWrongly, Failed, LabError};
use crate::experiment::{Experiment, Target, Variant};
use crate::run::{RunControl, RunPlan, file_name};
use kontig_mm::Profile;
use kontig_results::{ExperimentResult, MEASURE, PacePoint, RunResult};
use kontig_sim::MachineFile;
use kontig_workload::spec::Measure;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// Runs are put side by side up to this much host memory, bytes.
const MEMORY_FOR_RUNS: u64 = 8 << 30;

/// An experiment with everything its names stand for: enough to run it again anywhere.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Resolved {
    /// The experiment.
    pub experiment: Experiment,
    /// Its machine.
    pub machine: MachineFile,
    /// The profile of each variant, switches thrown.
    pub profiles: Vec<Profile>,
    /// The published figures.
    pub target: Option<Target>,
    /// The machine of the pace sweep.
    pub pace_machine: Option<MachineFile>,
    /// What had to be said about the request, a line each.
    pub notes: Vec<String>,
}

impl Resolved {
    /// Looks up all an experiment names.
    ///
    /// # Errors
    /// The first name that is unknown or file that is wrong.
    pub fn new(experiment: Experiment) -> Result<Resolved, LabError> {
        let machine = catalog::machine(&experiment.machine)?.0;
        let profiles = experiment
            .variant
            .iter()
            .map(|v| catalog::profile_with(&v.profile, &v.switches))
            .collect::<Result<_, _>>()?;
        let target = experiment.target.as_deref().map(|t| catalog::target(t).map(|(t, _)| t)).transpose()?;
        if let Some(t) = &target
            && t.variants.len() != experiment.variant.len()
        {
            let reason = format!("{} variants, but target {} has {}", experiment.variant.len(), t.id, t.variants.len());
            return Err(AskedWrongly::Contradictory { path: experiment.id, reason }.into());
        }
        let pace_machine =
            experiment.pace.as_ref().map(|p| catalog::machine(&p.machine).map(|(m, _)| m)).transpose()?;
        let resolved = Resolved { experiment, machine, profiles, target, pace_machine, notes: Vec::new() };
        resolved
            .fits()
            .map_err(|reason| AskedWrongly::Contradictory { path: resolved.experiment.id.clone(), reason })?;
        Ok(resolved)
    }

    /// Whether the workload fits the machine.
    fn fits(&self) -> Result<(), String> {
        let pages = self.machine.spec()?.zones.iter().map(|z| z.managed).sum();
        self.experiment.workload.fits(pages)
    }

    /// Whether its parts fit together, as they do when they were looked up, but may not when they were stored.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.experiment.validate()?;
        if self.profiles.len() != self.experiment.variant.len() {
            return Err(format!("{} variants, {} profiles", self.experiment.variant.len(), self.profiles.len()));
        }
        self.profiles.iter().try_for_each(kontig_profiles::check)?;
        self.target.as_ref().map_or(Ok(()), Target::validate)?;
        [Some(&self.machine), self.pace_machine.as_ref()].into_iter().flatten().try_for_each(catalog::check_machine)?;
        self.fits()
    }

    /// The kernels of this experiment that nothing but a description stands for, a line.
    fn not_recorded(&self) -> Option<String> {
        let mut names: Vec<&str> = self.profiles.iter().filter(|p| !p.recorded).map(|p| p.name.as_str()).collect();
        names.dedup();
        let are = if names.len() == 1 { "profile" } else { "profiles" };
        (!names.is_empty())
            .then(|| format!("{are} {}: followed from descriptions of the kernel, none was recorded", names.join(", ")))
    }

    /// The variants' names, baseline first.
    pub fn variants(&self) -> Vec<String> {
        self.experiment.variant.iter().map(|v| v.name.clone()).collect()
    }

    fn plan(&self, i: usize, seed: u64) -> RunPlan {
        RunPlan {
            experiment: self.experiment.id.clone(),
            variant: self.experiment.variant[i].clone(),
            profile: self.profiles[i].clone(),
            machine: self.machine.clone(),
            workload: self.experiment.workload.clone(),
            repetition: 0,
            seed,
            procfs: None,
        }
    }

    /// How often each variant runs: once where nothing is random, because a copy of a run is no evidence.
    fn repetitions(&self) -> u32 {
        if self.experiment.workload.is_random() { self.experiment.repetitions } else { 1 }
    }

    /// All runs: variants × repetitions, then the pace sweep's points for each variant.
    fn plans(&self, seed: u64, procfs: Option<&Path>) -> Vec<RunPlan> {
        let mut plans = Vec::new();
        for (i, v) in self.experiment.variant.iter().enumerate() {
            let base = procfs.map(|d| d.join(&self.experiment.id).join(file_name(&v.name)));
            for repetition in 0..self.repetitions() {
                let procfs = base.as_ref().map(|d| d.join(repetition.to_string()));
                plans.push(RunPlan {
                    repetition,
                    seed: seed.wrapping_add(u64::from(repetition)),
                    procfs,
                    ..self.plan(i, seed)
                });
            }
        }
        if let (Some(pace), Some(machine)) = (&self.experiment.pace, &self.pace_machine) {
            for i in 0..self.experiment.variant.len() {
                plans.extend(pace.pause_us.iter().map(|&pause| self.pace_plan(i, seed, machine, pause)));
            }
        }
        plans
    }

    /// A point of the pace sweep: the same workload with another pause, on the sweep's machine.
    fn pace_plan(&self, i: usize, seed: u64, machine: &MachineFile, pause: f64) -> RunPlan {
        let mut plan = RunPlan { machine: machine.clone(), ..self.plan(i, seed) };
        if let Measure::Hugealloc { pause_us, .. } = &mut plan.workload.measure {
            *pause_us = pause;
        }
        plan.variant = Variant { name: pace_name(&plan.variant.name, pause), ..plan.variant };
        plan
    }
}

/// The name under which a point of the pace sweep is kept.
fn pace_name(variant: &str, pause_us: f64) -> String {
    format!("{variant}, pause {pause_us} us")
}

/// What became of one experiment.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The table.
    pub result: ExperimentResult,
    /// Its runs, in plan order.
    pub runs: Vec<RunResult>,
    /// The pace sweep, if it has one.
    pub pace: Vec<PacePoint>,
}

/// A planned run with its progress.
pub struct Job {
    /// What is to be run.
    pub plan: RunPlan,
    /// How far it is.
    pub control: RunControl,
    experiment: usize,
    bytes: u64,
}

/// Experiments to be run together.
pub struct Session {
    resolved: Vec<Resolved>,
    jobs: Vec<Job>,
    stop: Arc<AtomicBool>,
}

impl Session {
    /// Plans the runs of these experiments.
    ///
    /// # Errors
    /// If a sysctl is wrong, or a run needs more memory than the host has.
    pub fn new(resolved: Vec<Resolved>, seed: u64, procfs: Option<PathBuf>) -> Result<Session, LabError> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut jobs = Vec::new();
        let available = available_memory();
        for (experiment, r) in resolved.iter().enumerate() {
            for plan in r.plans(seed, procfs.as_deref()) {
                let wrong = |e: String| AskedWrongly::Contradictory { path: plan.machine.name.clone(), reason: e };
                // Repetitions differ in nothing that can be wrong.
                if plan.repetition == 0 {
                    plan.check()?;
                }
                let needed = plan.machine.host_bytes().map_err(wrong)?;
                if needed > available {
                    let what = format!("{} on machine {}", plan.title(), plan.machine.name);
                    return Err(Failed::HostMemory { what, needed, available }.into());
                }
                let control = RunControl { stop: Arc::clone(&stop), ..RunControl::default() };
                jobs.push(Job { plan, control, experiment, bytes: needed });
            }
        }
        Ok(Session { resolved, jobs, stop })
    }

    /// The runs, for a display of their progress.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// The experiments.
    pub fn resolved(&self) -> &[Resolved] {
        &self.resolved
    }

    /// Raised when the session shall end early.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Runs everything on up to `threads` CPUs. `finished` is told of every run as it ends, in whatever order.
    /// Returns the experiments all of whose runs finished, and the first error.
    pub fn run(
        &self,
        threads: usize,
        finished: &(dyn Fn(&RunResult) -> Result<(), LabError> + Sync),
    ) -> (Vec<Outcome>, Option<LabError>) {
        let gate = Gate::new(MEMORY_FOR_RUNS.min(available_memory()));
        // The largest first, so that small ones fill the gaps.
        let mut order: Vec<usize> = (0..self.jobs.len()).collect();
        order.sort_by_key(|&i| (std::cmp::Reverse(self.jobs[i].bytes), i));
        let queue = Mutex::new(order.into_iter());
        let results: Mutex<Vec<Option<RunResult>>> = Mutex::new((0..self.jobs.len()).map(|_| None).collect());
        let error: Mutex<Option<LabError>> = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, self.jobs.len().max(1)) {
                scope.spawn(|| {
                    loop {
                        let next = lock(&queue).next();
                        let Some(i) = next else { break };
                        if self.stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let job = &self.jobs[i];
                        let _room = gate.enter(job.bytes);
                        match job.plan.run(&job.control).and_then(|r| finished(&r).map(|()| r)) {
                            Ok(r) => lock(&results)[i] = Some(r),
                            Err(e) => {
                                // The error first: others that then stop must not be taken for the cause.
                                lock(&error).get_or_insert(e);
                                self.stop.store(true, Ordering::Relaxed);
                            }
                        }
                    }
                });
            }
        });
        let results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut error = error.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        // Stopped between two runs.
        if error.is_none() && results.iter().any(Option::is_none) {
            error = Some(Failed::Interrupted { kept: "not all runs were begun".into() }.into());
        }
        (self.outcomes(results), error)
    }

    /// The experiments whose runs are complete.
    fn outcomes(&self, mut results: Vec<Option<RunResult>>) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for (e, r) in self.resolved.iter().enumerate() {
            let of_e = |i: &usize| self.jobs[*i].experiment == e;
            let indices: Vec<usize> = (0..self.jobs.len()).filter(of_e).collect();
            if indices.iter().any(|&i| results[i].is_none()) {
                continue;
            }
            let all: Vec<RunResult> = indices.iter().filter_map(|&i| results[i].take()).collect();
            let variants = r.variants();
            let (runs, swept): (Vec<_>, Vec<_>) = all.into_iter().partition(|run| variants.contains(&run.variant));
            let Experiment { id, variant, .. } = &r.experiment;
            let notes: Vec<String> = r.notes.iter().cloned().chain(r.not_recorded()).collect();
            let result = compare(id, &r.machine.name, variant, r.target.as_ref(), &notes, &runs);
            let pace = pace_points(r, &swept);
            outcomes.push(Outcome { result, runs, pace });
        }
        outcomes
    }
}

const PACE_PERCENTILES: [f64; 6] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9];

/// The pace sweep's runs as points.
fn pace_points(r: &Resolved, swept: &[RunResult]) -> Vec<PacePoint> {
    let mut points = Vec::new();
    let pauses = r.experiment.pace.iter().flat_map(|p| p.pause_us.iter().copied());
    let pauses: Vec<f64> = pauses.collect();
    for variant in r.variants() {
        for &pause_us in &pauses {
            let name = pace_name(&variant, pause_us);
            let Some(run) = swept.iter().find(|s| s.variant == name) else { continue };
            let Some(h) = run.histograms.first() else { continue };
            let samples = h.samples();
            let elapsed = run.figure("elapsed", MEASURE).filter(|s| *s > 0.0 && samples > 0);
            let per_second = elapsed.map(|s| samples as f64 / s);
            let latency_us = PACE_PERCENTILES.iter().filter_map(|&p| Some((p, h.percentile(p)?))).collect();
            points.push(PacePoint { variant: variant.clone(), pause_us, per_second, samples, latency_us });
        }
    }
    points
}

fn lock<T>(m: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    m.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Lets runs in while their memory fits.
struct Gate {
    free: Mutex<u64>,
    changed: Condvar,
    total: u64,
}

/// A run's place; given back when dropped.
struct Room<'a>(&'a Gate, u64);

impl Gate {
    fn new(total: u64) -> Gate {
        Gate { free: Mutex::new(total), changed: Condvar::new(), total }
    }

    fn enter(&self, bytes: u64) -> Room<'_> {
        // A run that needs more than the budget gets it all, alone.
        let bytes = bytes.min(self.total);
        let mut free = lock(&self.free);
        while *free < bytes {
            free = self.changed.wait(free).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        *free -= bytes;
        Room(self, bytes)
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        *lock(&self.0.free) += self.1;
        self.0.changed.notify_all();
    }
}

/// Memory the host can give without swapping, bytes; unlimited where that cannot be known.
fn available_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|l| l.strip_prefix("MemAvailable:")?.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib * 1024)
}
