//! A session: resolves a request, runs it in parallel, and compares the results.
//!
//! Every name is looked up and every file read before the first run starts. Runs go side by side as
//! far as the host's CPUs and memory allow; results do not depend on how many. Runs that differ in
//! names alone, such as the baseline of several experiments, run once.

use crate::gate::{Available, Gate, lock};
use crate::mmtests;
use crate::outcome::Outcome;
use crate::plan::{RunPlan, Views, key};
use crate::queue::{Family, Next, Queue};
use crate::resolved::Resolved;
use crate::run::{Prepared, RunControl};
use kontig_error::files::{check_new, file_name, remove};
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_live::Roots;
use kontig_results::{MemoryMap, RunResult, Seeds, is_drawn};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Concurrent runs use at most this much host memory, bytes.
const MEMORY_FOR_RUNS: u64 = 8 << 30;

/// A planned run with its progress.
pub struct Job {
    pub plan: RunPlan,
    /// Progress, and the request to stop.
    pub control: RunControl,
    pub(crate) experiment: usize,
    /// The first job of its family: jobs measured from one preparation.
    pub(crate) family: usize,
    /// The host memory it may need.
    pub(crate) bytes: u64,
}

/// Experiments that run together.
pub struct Session {
    resolved: Vec<Resolved>,
    jobs: Vec<Job>,
    /// Runs of each experiment in full, even if only some of them are wanted.
    planned: Vec<usize>,
    stop: Arc<AtomicBool>,
    /// Runs that an earlier session has finished, by job.
    finished: Vec<Option<RunResult>>,
}

impl Session {
    /// Plans the runs of the experiments.
    ///
    /// # Errors
    /// If a sysctl is wrong, or a run needs more memory than the host has.
    pub fn new(resolved: Vec<Resolved>, seeds: impl Into<Seeds>, views: &Views) -> Result<Session, Error> {
        let seeds = seeds.into();
        let stop = Arc::new(AtomicBool::new(false));
        let mut jobs: Vec<Job> = Vec::new();
        let mut like: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let Available { bytes: available, limit } = Available::read(&Roots::default());
        for (experiment, r) in resolved.iter().enumerate() {
            for alike in r.plans(&seeds, views)? {
                let first = jobs.len();
                for plan in alike {
                    let wrong = |e: String| AskedWrongly::Contradictory { path: plan.machine.name.clone(), reason: e };
                    // Repetitions differ in nothing that can be wrong.
                    if plan.repetition == 0 {
                        plan.check()?;
                    }
                    let needed = plan.machine.host_bytes().map_err(wrong)?;
                    if needed > available {
                        let what = format!("{} on machine {}", plan.title(), plan.machine.name);
                        let limit = limit.map(|limit| limit.to_string());
                        return Err(Failed::HostMemory { what, needed, available, limit }.into());
                    }
                    // Only runs alike in this can have the same result or beginning. That keeps
                    // comparisons few with ten thousand repetitions or variants.
                    let RunPlan { seed, repetition, variant, profile, machine, .. } = &plan;
                    let of = (seed, repetition, &profile.name, &machine.name, &variant.sysctls, &variant.with);
                    let candidates: &mut Vec<usize> = like.entry(format!("{of:?}")).or_default();
                    let of_job = |i: usize| (jobs[i].experiment, &jobs[i].plan);
                    let same = |i: &&usize| same_result(&resolved, of_job(**i), (experiment, &plan));
                    let control = match candidates.iter().find(same) {
                        Some(&first) => jobs[first].control.clone(),
                        None => RunControl { stop: Arc::clone(&stop), ..RunControl::default() },
                    };
                    let begins_alike =
                        |i: &&usize| jobs[**i].experiment == experiment && jobs[**i].plan.begins_like(&plan);
                    let is_swept = r.experiment.pace.is_some();
                    let beginning = candidates.iter().find(begins_alike).filter(|_| !is_swept);
                    // Without memory for a copy beside the original, each job prepares its own
                    // machine.
                    let family = match beginning.map_or(first, |&i| jobs[i].family) {
                        family if 2 * needed <= available => family,
                        _ => jobs.len(),
                    };
                    candidates.push(jobs.len());
                    jobs.push(Job { plan, control, experiment, family, bytes: needed });
                }
            }
        }
        name_files(&mut jobs, |plan| &mut plan.trace);
        name_files(&mut jobs, |plan| &mut plan.history);
        let planned = (0..resolved.len()).map(|e| jobs.iter().filter(|job| job.experiment == e).count()).collect();
        let finished = vec![None; jobs.len()];
        Ok(Session { resolved, jobs, planned, stop, finished })
    }

    /// The files that its runs write their traces to.
    pub fn traces(&self) -> impl Iterator<Item = &Path> {
        self.jobs.iter().filter_map(|job| job.plan.trace.as_deref())
    }

    /// The files that its runs write their machines' histories to.
    pub fn histories(&self) -> impl Iterator<Item = &Path> {
        self.jobs.iter().filter_map(|job| job.plan.history.as_deref())
    }

    /// Keeps the runs that `wanted` selects. An experiment that is incomplete has no table.
    #[must_use]
    pub fn only(mut self, wanted: impl Fn(&RunPlan) -> bool) -> Session {
        self.jobs.retain(|job| wanted(&job.plan));
        self.finished = vec![None; self.jobs.len()];
        self
    }

    /// Takes over the runs that an earlier session has finished. Returns their number.
    ///
    /// # Errors
    /// Those of `earlier`.
    pub fn resume(&mut self, earlier: impl Fn(&RunPlan) -> Result<Option<RunResult>, Error>) -> Result<usize, Error> {
        self.finished = self.jobs.iter().map(|job| earlier(&job.plan)).collect::<Result<_, _>>()?;
        for sharing in self.sharing() {
            let Some(result) = sharing.iter().find_map(|&job| self.finished[job].clone()) else { continue };
            for job in sharing {
                self.finished[job] = Some(self.named(job, &result));
                self.jobs[job].control.permille.store(1000, Ordering::Relaxed);
            }
        }
        Ok(self.finished.iter().flatten().count())
    }

    /// For each job the jobs that share its result, itself first; empty if it shares an earlier
    /// one's. They share a control.
    fn sharing(&self) -> Vec<Vec<usize>> {
        let mut first = BTreeMap::new();
        let mut sharing = vec![Vec::new(); self.jobs.len()];
        for (i, job) in self.jobs.iter().enumerate() {
            sharing[*first.entry(Arc::as_ptr(&job.control.permille)).or_insert(i)].push(i);
        }
        sharing
    }

    /// A shared result under the name of one of its jobs.
    fn named(&self, job: usize, result: &RunResult) -> RunResult {
        let RunPlan { experiment, case, variant, .. } = &self.jobs[job].plan;
        let (experiment, case, variant) = (experiment.clone(), case.clone(), variant.name.clone());
        RunResult { experiment, case, variant, ..result.clone() }
    }

    /// The families, each with those of its jobs that `is_left` selects.
    fn families(&self, is_left: impl Fn(usize) -> bool) -> Vec<Vec<usize>> {
        let mut families: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (i, job) in self.jobs.iter().enumerate().filter(|(i, _)| is_left(*i)) {
            families.entry(job.family).or_default().push(i);
        }
        families.into_values().collect()
    }

    /// Prepares the machine of a family, and how far its first job has come with it.
    fn prepare(&self, family: &[usize]) -> Result<(Prepared<'_>, Option<Prepared<'_>>), Error> {
        let Job { plan, control, .. } = &self.jobs[family[0]];
        if family.iter().all(|job| self.jobs[*job].plan.profile == plan.profile) {
            return Ok((Prepared::new(plan, control)?, None));
        }
        let [ahead, prepared] = Prepared::until_compaction(plan, control)?;
        Ok((prepared, Some(ahead)))
    }

    /// Removes what an earlier session left of unfinished runs, where it would be in their way.
    ///
    /// # Errors
    /// If something cannot be removed.
    pub fn clear_unfinished(&self) -> Result<(), Error> {
        let unfinished = self.jobs.iter().zip(&self.finished).filter(|(_, run)| run.is_none());
        for plan in unfinished.map(|(job, _)| &job.plan) {
            plan.history.as_deref().map_or(Ok(()), remove)?;
            plan.mmtests.as_ref().map_or(Ok(()), |of| mmtests::clear(of, plan.rounds))?;
        }
        Ok(())
    }

    /// Checks before anything runs that nothing is where its runs write in MMTests' layout, or
    /// write histories.
    ///
    /// # Errors
    /// If something is.
    pub fn check_new(&self) -> Result<(), Error> {
        self.histories().try_for_each(check_new)?;
        self.mmtests().into_iter().try_for_each(mmtests::check_new)
    }

    /// Checks before anything runs that each variant can be written in MMTests' layout, if
    /// requested.
    ///
    /// # Errors
    /// If it cannot.
    pub fn check_mmtests(&self) -> Result<(), Error> {
        self.mmtests().into_iter().try_for_each(mmtests::check_writable)
    }

    /// The directories of its variants in MMTests' layout.
    fn mmtests(&self) -> Vec<&Path> {
        let mut of_variants: Vec<&Path> =
            self.jobs.iter().filter_map(|job| Some(&*job.plan.mmtests.as_ref()?.dir)).collect();
        of_variants.dedup();
        of_variants
    }

    /// The runs with their progress.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// The experiments in the order asked for.
    pub fn resolved(&self) -> &[Resolved] {
        &self.resolved
    }

    /// Set it to end the session early.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Runs everything on up to `threads` CPUs and calls `finished` with every run as it ends, in
    /// any order. Returns the experiments whose runs all finished, and the first error.
    pub fn run(
        &self,
        threads: usize,
        finished: &(dyn Fn(&RunResult) -> Result<(), Error> + Sync),
    ) -> (Vec<Outcome>, Option<Error>) {
        let is_drawn = self.drawn();
        let (results, error) = self.carry_out(threads, finished, &|job, run| held(is_drawn[job], run));
        (self.outcomes(results), error)
    }

    /// The same without tables: the whole run of each job that has finished.
    pub(crate) fn results(
        &self,
        threads: usize,
        finished: &(dyn Fn(&RunResult) -> Result<(), Error> + Sync),
    ) -> (Vec<Option<RunResult>>, Option<Error>) {
        self.carry_out(threads, finished, &|_, run| run)
    }

    /// Of each job, whether a page draws its values over time.
    pub(crate) fn drawn(&self) -> Vec<bool> {
        let variants = |r: &Resolved| r.variants().into_iter().zip(0..).collect::<BTreeMap<String, usize>>();
        let variants: Vec<BTreeMap<String, usize>> = self.resolved.iter().map(variants).collect();
        let of = |job: &Job| {
            let variants = &variants[job.experiment];
            let place = variants.get(&job.plan.variant.name);
            place.is_some_and(|place| is_drawn(*place, variants.len(), job.plan.repetition as usize))
        };
        self.jobs.iter().map(of).collect()
    }

    /// Runs everything. `hold` takes away what of a job's run is not to be held in memory.
    fn carry_out(
        &self,
        threads: usize,
        finished: &(dyn Fn(&RunResult) -> Result<(), Error> + Sync),
        hold: &(dyn Fn(usize, RunResult) -> RunResult + Sync),
    ) -> (Vec<Option<RunResult>>, Option<Error>) {
        let gate = Gate::new(memory_for_runs());
        let sharing = self.sharing();
        let mut families = self.families(|job| !sharing[job].is_empty() && self.finished[job].is_none());
        // Largest first, so that small ones fill the gaps.
        families.sort_by_key(|family| (std::cmp::Reverse(self.jobs[family[0]].bytes), family[0]));
        let queue = Queue::new(families);
        let earlier = self.finished.iter().enumerate().map(|(job, run)| Some(hold(job, run.clone()?)));
        let results: Mutex<Vec<Option<RunResult>>> = Mutex::new(earlier.collect());
        let error: Mutex<Option<Error>> = Mutex::new(self.finished.iter().flatten().find_map(|r| finished(r).err()));
        let failed = |e: Error| {
            // Store the error first: jobs that then stop must not be taken for the cause.
            lock(&error).get_or_insert(e);
            self.stop.store(true, Ordering::Relaxed);
        };
        let measure = |family: &Family<'_>| {
            while !self.stop.load(Ordering::Relaxed)
                && let Some((i, prepared)) = family.next()
            {
                let Job { plan, control, .. } = &self.jobs[i];
                let keep = |r: RunResult| {
                    sharing[i].iter().try_for_each(|&job| {
                        let named = self.named(job, &r);
                        finished(&named)?;
                        lock(&results)[job] = Some(hold(job, named));
                        Ok(())
                    })
                };
                match prepared.measure(plan, control).and_then(keep) {
                    // A workload that gives up has not come to the end of its own progress.
                    Ok(()) => control.permille.store(1000, Ordering::Relaxed),
                    Err(e) => failed(e),
                }
            }
        };
        let work = || {
            while !self.stop.load(Ordering::Relaxed)
                && let Some(next) = queue.next()
            {
                match next {
                    Next::Prepare(family) => {
                        let bytes = self.jobs[family.jobs[0]].bytes;
                        // The machine, and a copy of it if there is more than one job.
                        let _room = gate.enter(bytes * family.jobs.len().min(2) as u64);
                        match self.prepare(&family.jobs) {
                            Ok((prepared, ahead)) => measure(&family.done(prepared, ahead)),
                            Err(e) => failed(e),
                        }
                    }
                    Next::Help(family) => {
                        let _room = gate.enter(self.jobs[family.first].bytes);
                        measure(&family);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            // If no further thread can be created, the existing ones do its work.
            let more = 1..threads.min(self.jobs.len());
            let _ =
                more.map(|_| std::thread::Builder::new().spawn_scoped(scope, work)).take_while(Result::is_ok).count();
            work();
        });
        let results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut error = error.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        // It was stopped between two runs.
        if error.is_none() && results.iter().any(Option::is_none) {
            error = Some(Failed::Interrupted { kept: "some runs had not begun".into() }.into());
        }
        (results, error)
    }

    fn outcomes(&self, mut results: Vec<Option<RunResult>>) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for (e, r) in self.resolved.iter().enumerate() {
            let of_e = |i: &usize| self.jobs[*i].experiment == e;
            let indices: Vec<usize> = (0..self.jobs.len()).filter(of_e).collect();
            if indices.len() < self.planned[e] || indices.iter().any(|&i| results[i].is_none()) {
                continue;
            }
            let all: Vec<RunResult> = indices.iter().filter_map(|&i| results[i].take()).collect();
            outcomes.push(Outcome::of(r, all));
        }
        outcomes
    }
}

/// A run as it is held in memory until all have ended: without what neither tables nor pages show.
/// Its file, if there is one, has all.
fn held(is_drawn: bool, run: RunResult) -> RunResult {
    let run = RunResult { events: Vec::new(), ..run };
    if is_drawn { run } else { RunResult { series: Vec::new(), map: MemoryMap::default(), ..run } }
}

/// Host memory that runs share, bytes: what is available, within control groups, of 8 GiB.
pub fn memory_for_runs() -> u64 {
    MEMORY_FOR_RUNS.min(Available::read(&Roots::default()).bytes)
}

/// Whether two plans, each with its experiment's number, have the same result. Plans of experiments
/// with a pace sweep never do: the workload differs from point to point, and points share a
/// preparation.
fn same_result(resolved: &[Resolved], (a, plan_a): (usize, &RunPlan), (b, plan_b): (usize, &RunPlan)) -> bool {
    let same_workload = a == b || resolved[a].experiment.workload == resolved[b].experiment.workload;
    let is_single = |of: usize| resolved[of].experiment.pace.is_none();
    is_single(a) && is_single(b) && same_workload && plan_a.has_result_of(plan_b)
}

/// Gives each of several runs a file of its own: `t.txt` becomes `t-EXPERIMENT-VARIANT-0.txt`.
fn name_files(jobs: &mut [Job], file: impl Fn(&mut RunPlan) -> &mut Option<PathBuf>) {
    if jobs.iter_mut().map(|job| file(&mut job.plan)).filter(|file| file.is_some()).count() < 2 {
        return;
    }
    for plan in jobs.iter_mut().map(|job| &mut job.plan) {
        let RunPlan { experiment, case, variant, repetition, .. } = &*plan;
        let run = file_name(&format!("{}-{}-{repetition}", key(experiment, case), variant.name));
        let Some(file) = file(plan) else { continue };
        let of = |part: Option<&std::ffi::OsStr>| part.map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
        let (stem, extension) = (of(file.file_stem()), of(file.extension()));
        let dot = if extension.is_empty() { "" } else { "." };
        *file = file.with_file_name(format!("{stem}-{run}{dot}{extension}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;

    #[test]
    fn the_columns_of_a_seed_that_differ_in_compaction_runs_are_a_family() {
        let of = |id: &str| {
            let (e, _) = catalog::experiment(id).unwrap_or_else(|e| panic!("{e}"));
            let resolved = Resolved::all(&e, None).unwrap_or_else(|e| panic!("{e}"));
            let session = Session::new(resolved, 1, &Views::default()).unwrap_or_else(|e| panic!("{e}"));
            session.families(|_| true).iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(of("stress-highalloc"), [5, 5, 5], "a family for each repetition");
        assert_eq!(of("stutter"), [1, 1], "another kernel, and other requests");
        assert!(of("thpfioscale-series").iter().all(|jobs| *jobs == 1));
    }
}
