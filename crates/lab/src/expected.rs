//! The time and memory that a session is expected to take, from the measured cost of runs.
//!
//! `costs.toml` has the CPU time of a run of every workload, and the time of a short loop on the
//! same host; this host's time for that loop says how fast it is. A run on another machine costs
//! as much more as that has more memory, as far as the workload uses all of it. Of a workload that
//! is in no file of Kontig's nothing is known. `cargo run --release -p kontig-lab --example costs`
//! writes the file.

use crate::catalog;
use crate::experiment::Experiment;
use crate::plan::{RunPlan, Views, key};
use crate::resolved::Resolved;
use crate::session::{Job, Session, memory_for_runs};
use kontig_error::{AskedWrongly, Error};
use kontig_sim::MachineFile;
use kontig_workload::Workload;
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The time and memory of the runs that are left, together.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Until the last has ended; none if that is not known of one of them.
    pub seconds: Option<f64>,
    /// Whether every run has the parameters of its workload's file: others can take longer.
    pub as_published: bool,
    /// Runs side by side.
    pub at_once: usize,
    /// Whether memory for more of them is lacking.
    pub short_of_memory: bool,
    /// Host memory that runs side by side may need, and the results of all until the last has
    /// ended, bytes.
    pub bytes: u64,
}

/// Host memory that the result of a run takes until all have ended, bytes: 38 KB were measured of
/// `watch`, and 70 KB of `hugealloc`.
const HELD: u64 = 64 << 10;
/// The memory it takes more if a page draws its values over time, with its part of the page.
/// Chosen: sweeps took less in all than what these constants give.
const DRAWN: u64 = 256 << 10;
/// The memory that the command's allocator keeps of an ended run for the next, and the most of all.
/// Chosen: of mappings that were kept 43 MiB were seen, and none in other sweeps.
const KEPT: u64 = 2 << 20;
const KEPT_OF_ALL: u64 = 128 << 20;

/// The contents of `costs.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Costs {
    /// The time of [`a_loop`] on that host, s.
    loop_s: f64,
    /// By workload, or by experiment or case with a workload of its own.
    run: BTreeMap<String, Cost>,
}

/// The CPU time of a run.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cost {
    /// However large the machine is, s.
    seconds: f64,
    /// For each GiB that it has, s.
    #[serde(default)]
    seconds_a_gib: f64,
    /// The part of it after the first compaction run, which kernels that differ in nothing else do
    /// not share.
    #[serde(default = "all")]
    after_compaction: f64,
}

fn all() -> f64 {
    1.0
}

fn costs() -> Costs {
    toml::from_str(include_str!("../costs.toml")).expect("it is built in, and a test reads it")
}

/// A workload with what it costs.
struct Known {
    /// The workload or experiment.
    id: String,
    workload: Workload,
    rounds: u32,
    cost: Cost,
}

/// The workloads of which a cost was measured.
struct Book {
    loop_s: f64,
    known: Vec<Known>,
}

/// The CPU time of a run on the host where costs were measured.
struct Found {
    seconds: f64,
    /// The part of it left to a run that begins as another does ([`RunPlan::begins_like`]).
    seconds_of_end: f64,
    /// Whether it was measured with these parameters.
    same: bool,
}

impl Book {
    fn read() -> Result<Book, Error> {
        let costs = costs();
        let mut known = Vec::new();
        for (name, file) in catalog::workloads()? {
            known.extend(costs.run.get(name).map(|cost| Known {
                id: name.into(),
                workload: file.workload,
                rounds: 1,
                cost: *cost,
            }));
        }
        for e in catalog::experiments()? {
            let of = |name: &str, workload: &Workload| {
                Some(Known {
                    id: e.id.clone(),
                    workload: workload.clone(),
                    rounds: e.rounds,
                    cost: *costs.run.get(name)?,
                })
            };
            known.extend(of(&e.id, &e.workload));
            let cases = e.case.iter().filter_map(|case| Some((key(&e.id, &case.name), case.workload.as_ref()?)));
            known.extend(cases.filter_map(|(name, workload)| of(&name, workload)));
        }
        Ok(Book { loop_s: costs.loop_s, known })
    }

    /// The cost of a workload, or of this experiment's own with other parameters.
    fn find(&self, id: &str, workload: &Workload, machine: &MachineFile, rounds: u32) -> Option<Found> {
        let same = self.known.iter().find(|known| known.workload == *workload);
        let found =
            same.or_else(|| self.known.iter().find(|known| known.id == id && known.workload.is_like(workload)))?;
        let gib = machine.node_pages().iter().sum::<u64>() as f64 / f64::from(1 << 18);
        let Cost { seconds, seconds_a_gib, after_compaction } = found.cost;
        let seconds = (seconds + seconds_a_gib * gib) * f64::from(rounds) / f64::from(found.rounds);
        Some(Found { seconds, seconds_of_end: seconds * after_compaction, same: same.is_some() })
    }
}

/// The CPU time of a loop that waits for a CPU's own caches, in seconds, the best of five: the
/// host's other work does not count. What a host shares with others varies more than runs do: with
/// 16 MiB instead of one, the best of five took 0.8 to 1.8 ms within a minute.
pub fn a_loop() -> f64 {
    const WORDS: usize = 128 << 10;
    let mut table = vec![1_u64; WORDS];
    let mut turn = || {
        let begin = clock_gettime(ClockId::ThreadCPUTime);
        let mut at = 1_usize;
        for _ in 0..100_000 {
            table[at] = table[at].wrapping_mul(6_364_136_223_846_793_005).wrapping_add(at as u64);
            at = (table[at] >> 20) as usize % WORDS;
        }
        black_box(at);
        let took = clock_gettime(ClockId::ThreadCPUTime) - begin;
        took.tv_sec as f64 + took.tv_nsec as f64 / 1e9
    };
    (0..5).map(|_| turn()).fold(f64::INFINITY, f64::min)
}

impl Expected {
    /// Of the runs of a session that are left, on up to `threads` CPUs.
    pub fn of(session: &Session, threads: usize) -> Expected {
        // Runs that share a result run once.
        let mut begun = BTreeSet::new();
        let is_left = |job: &&Job| job.control.permille.load(Ordering::Relaxed) < 1000;
        let mut is_first = |job: &&Job| begun.insert(Arc::as_ptr(&job.control.permille));
        let left: Vec<&Job> = session.jobs().iter().filter(is_left).filter(|job| is_first(job)).collect();
        let (at_once, bytes) = side_by_side(bytes_of(&left), threads, memory_for_runs());
        let drawn = session.drawn().into_iter().filter(|is_drawn| *is_drawn).count() as u64;
        let results = session.jobs().len() as u64 * HELD + drawn * DRAWN;
        let bytes = bytes + results + (left.len() as u64 * KEPT).min(KEPT_OF_ALL);
        let (cpu_s, as_published) = cpu_time(session, &left);
        Expected {
            seconds: cpu_s.map(|all| all / at_once.max(1) as f64),
            as_published,
            at_once,
            short_of_memory: at_once < threads.min(left.len()),
            bytes,
        }
    }
}

/// The time of each experiment's runs on this many CPUs of the host where costs were measured, s;
/// none if that of one of them is not known.
///
/// # Errors
/// If an experiment is wrong.
pub fn of_each(experiments: &[Experiment], threads: usize) -> Result<Vec<Option<f64>>, Error> {
    let book = Book::read()?;
    experiments.iter().map(|e| of_experiment(e, threads, &book)).collect()
}

fn of_experiment(e: &Experiment, threads: usize, book: &Book) -> Result<Option<f64>, Error> {
    let (mut seconds, mut runs) = (0.0, 0);
    for r in Resolved::all(e, None)? {
        let mut begun: Vec<RunPlan> = Vec::new();
        // Runs on copies of one machine take what its preparation does.
        for alike in r.plans(&1.into(), &Views::default())? {
            let Some(plan) = alike.first() else { continue };
            let workload = r.experiment.workload_of(&plan.variant).map_err(AskedWrongly::Value)?;
            let Some(found) = book.find(&plan.experiment, &workload, &plan.machine, plan.rounds) else {
                return Ok(None);
            };
            runs += alike.len();
            if begun.iter().any(|other| other.begins_like(plan)) {
                seconds += found.seconds_of_end;
            } else {
                seconds += found.seconds;
                begun.push(plan.clone());
            }
        }
    }
    Ok(Some(seconds / threads.min(runs).max(1) as f64))
}

/// The memory of each run. A machine that is prepared for several runs is copied for each.
fn bytes_of(left: &[&Job]) -> Vec<u64> {
    let mut of_family: BTreeMap<usize, u64> = BTreeMap::new();
    left.iter().for_each(|job| *of_family.entry(job.family).or_default() += 1);
    left.iter().map(|job| job.bytes * of_family[&job.family].min(2)).collect()
}

/// How many of the largest runs go side by side, and the memory they need.
fn side_by_side(mut bytes: Vec<u64>, threads: usize, room: u64) -> (usize, u64) {
    bytes.sort_unstable_by_key(|bytes| std::cmp::Reverse(*bytes));
    let (mut n, mut sum) = (0, 0);
    for bytes in bytes.into_iter().take(threads) {
        // One that needs more than there is for all runs goes alone.
        if n > 0 && sum + bytes > room {
            break;
        }
        (n, sum) = (n + 1, sum + bytes);
    }
    (n, sum)
}

/// The CPU time of all runs on this host, if it is known of each, and whether each has the
/// parameters of its file.
fn cpu_time(session: &Session, left: &[&Job]) -> (Option<f64>, bool) {
    let Ok(book) = Book::read() else { return (None, true) };
    let of = |job: &Job| {
        let r = &session.resolved()[job.experiment];
        let workload = r.experiment.workload_of(&job.plan.variant).ok()?;
        book.find(&job.plan.experiment, &workload, &job.plan.machine, job.plan.rounds)
    };
    let mut families: BTreeMap<usize, &Job> = BTreeMap::new();
    let (mut there, mut same) = (0.0, true);
    for job in left {
        let Some(found) = of(job) else { return (None, true) };
        same &= found.same;
        there += match families.get(&job.family) {
            None => found.seconds,
            Some(first) if first.plan.begins_like(&job.plan) => found.seconds_of_end,
            // A preparation that runs share costs more than what each measures on its copy.
            Some(_) => 0.0,
        };
        families.entry(job.family).or_insert(job);
    }
    // The loop is worth its time where runs take longer.
    let here = if there < 2.0 { there } else { there * a_loop() / book.loop_s };
    (Some(here), same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::what_if::{Changes, what_if};

    fn expected(id: &str, changes: &Changes, repetitions: u32) -> Expected {
        let mut e = what_if(catalog::to_run(id).unwrap().0, changes).unwrap_or_else(|e| panic!("{e}")).experiment;
        e.repetitions = repetitions;
        let resolved = Resolved::all(&e, None).unwrap_or_else(|e| panic!("{e}"));
        let session = Session::new(resolved, 1, &Views::default()).unwrap_or_else(|e| panic!("{e}"));
        Expected::of(&session, 2)
    }

    #[test]
    fn the_time_of_every_workload_and_experiment_is_known() {
        let costs = costs();
        let names = catalog::workloads().unwrap().into_iter().map(|(name, _)| name.to_owned());
        let all: Vec<String> = names.chain(catalog::experiments().unwrap().into_iter().map(|e| e.id)).collect();
        let is_there = |name: &String| name.split('/').next().is_some_and(|id| all.iter().any(|known| known == id));
        assert!(costs.run.keys().all(is_there), "{:?}", costs.run.keys());
        let book = Book::read().unwrap_or_else(|e| panic!("{e}"));
        for id in all {
            let e = catalog::to_run(&id).unwrap().0;
            for case in Resolved::all(&e, None).unwrap() {
                let workload = case.experiment.workload;
                let known = book.known.iter().any(|known| known.workload == workload);
                assert!(known, "{id}: costs.toml has no such workload");
            }
        }
    }

    #[test]
    fn every_experiment_says_how_long_it_takes() {
        let all = catalog::experiments().unwrap();
        let known: BTreeMap<&str, Option<f64>> =
            all.iter().map(|e| e.id.as_str()).zip(of_each(&all, 2).unwrap()).collect();
        assert!(known.values().all(|seconds| seconds.is_some_and(|s| s > 0.1)), "{known:?}");
        let whole = costs().run["hugealloc-kbuild-handoff"].seconds;
        assert_eq!(known["hugealloc-kbuild-handoff"], Some(whole), "two runs side by side take as long as one");
    }

    #[test]
    fn runs_that_begin_as_one_take_less_than_runs_by_themselves() {
        let (five, _) = catalog::experiment("stress-highalloc").unwrap();
        let seconds = |variants, repetitions| {
            let e = Experiment { target: None, lack: Vec::new(), repetitions, ..five.clone() };
            let e = Experiment { variant: e.variant[..variants].to_vec(), ..e };
            of_each(&[e], 1).unwrap()[0].expect("it is known")
        };
        let of_five = seconds(5, 1) / seconds(1, 1);
        assert!((2.0..4.0).contains(&of_five), "five columns take {of_five} times as long as one");
        assert!((seconds(5, 3) / seconds(5, 1) - 3.0).abs() < 1e-9, "each seed begins by itself");
    }

    #[test]
    fn more_seeds_larger_machines_and_more_variants_take_longer() {
        let none = Changes::default();
        let on = |machine: &str| Changes { machines: vec![machine.into()], ..Changes::default() };
        let seconds = |changes: &Changes, seeds| expected("watch", changes, seeds).seconds.expect("it is known");
        let (small, large) = (seconds(&on("tiny-64m"), 1), seconds(&on("xeon-4g"), 1));
        assert!(small < large && small < seconds(&on("tiny-64m"), 3), "{small} {large}");
        let two = Changes { parameters: vec![("size".into(), vec!["1GiB".into(), "2GiB".into()])], ..none.clone() };
        let of_two = expected("heap", &two, 1);
        assert!(!of_two.as_published && expected("heap", &none, 1).as_published);
        assert_eq!((of_two.at_once, expected("heap", &none, 1).at_once), (2, 1));
    }

    #[test]
    fn results_that_are_held_until_all_have_ended_take_memory() {
        let on = Changes { machines: vec!["tiny-64m".into()], ..Changes::default() };
        let bytes = |seeds| expected("watch", &on, seeds).bytes;
        assert!(bytes(2000) - bytes(1000) == 1000 * HELD, "{} {}", bytes(1000), bytes(2000));
        assert!(bytes(1000) - bytes(2) > 998 * HELD + 50 * DRAWN, "{} {}", bytes(2), bytes(1000));
    }

    #[test]
    fn runs_go_side_by_side_as_memory_allows_and_one_always_does() {
        assert_eq!(side_by_side(vec![1, 3, 2], 2, 8), (2, 5));
        assert_eq!(side_by_side(vec![1, 3, 2], 3, 5), (2, 5));
        assert_eq!(side_by_side(vec![9, 1], 2, 5), (1, 9));
        assert_eq!(side_by_side(vec![], 2, 5), (0, 0));
    }
}
