//! The figures of every run: from its distributions, phases and units.
//!
//! A figure covers the phase it names, from begin to end.

use crate::groups::OfGroups;
use crate::pressure::Pressure;
use kontig_mm::{Daemon, NodeId};
use kontig_program::figure::PERCENTILES;
use kontig_results::{Figure, Histogram, Merge, Phase, Reading, TOTAL, TaskTime};
use kontig_sim::KernelThread;
use kontig_workload::latencies::Latencies;
use std::collections::BTreeMap;

/// The name of a phase's unnamed tasks.
pub(crate) const WORKLOAD: &str = "workload";

/// Counters taken at phase boundaries, since boot.
#[derive(Clone, Default)]
pub(crate) struct Counters {
    pub(crate) threads: Vec<(KernelThread, u64)>,
    /// The workload's tasks by name and whether they run in the background.
    pub(crate) tasks: BTreeMap<(String, bool), TaskTime>,
    pub(crate) lock_wait_ns: u64,
    pub(crate) proactive_runs: u64,
    pub(crate) has_disks: bool,
    pub(crate) groups: OfGroups,
    /// None before anything was counted.
    pub(crate) pressure: Option<Pressure>,
}

impl Counters {
    /// The difference to `earlier`.
    pub(crate) fn since(&self, earlier: &Counters) -> Counters {
        let before = |thread| earlier.threads.iter().find(|(t, _)| *t == thread).map_or(0, |(_, ns)| *ns);
        let since = |(task, time): (&(String, bool), &TaskTime)| {
            let before = earlier.tasks.get(task).copied().unwrap_or_default();
            let (user_ns, system_ns) = (time.user_ns - before.user_ns, time.system_ns - before.system_ns);
            (task.clone(), TaskTime { user_ns, system_ns })
        };
        Counters {
            threads: self.threads.iter().map(|&(thread, ns)| (thread, ns - before(thread))).collect(),
            tasks: self.tasks.iter().map(since).collect(),
            lock_wait_ns: self.lock_wait_ns - earlier.lock_wait_ns,
            proactive_runs: self.proactive_runs - earlier.proactive_runs,
            has_disks: self.has_disks,
            groups: self.groups.since(&earlier.groups),
            pressure: self.pressure.as_ref().map(|now| now.since(earlier.pressure.as_ref())),
        }
    }

    /// CPU time of the background tasks, or of the others.
    fn of_tasks(&self, background: bool) -> TaskTime {
        let mut sum = TaskTime::default();
        for ((_, in_background), time) in &self.tasks {
            if *in_background == background {
                add(&mut sum, *time);
            }
        }
        sum
    }
}

fn add(sum: &mut TaskTime, time: TaskTime) {
    sum.user_ns += time.user_ns;
    sum.system_ns += time.system_ns;
}

/// A phase with the counts of its length.
#[derive(Clone)]
pub(crate) struct Stretch {
    pub(crate) name: String,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) counted: Counters,
}

impl Stretch {
    /// The stored form, with tasks by name.
    pub(crate) fn kept(self) -> Phase {
        let Counters { threads, tasks, lock_wait_ns, proactive_runs, .. } = self.counted;
        let threads = threads.into_iter().map(|(t, system_ns)| (t.to_string(), TaskTime { user_ns: 0, system_ns }));
        let mut cpu: BTreeMap<String, TaskTime> = BTreeMap::new();
        for (name, time) in threads.chain(tasks.into_iter().map(|((name, _), time)| (name, time))) {
            add(cpu.entry(name).or_default(), time);
        }
        Phase { name: self.name, start_ns: self.start_ns, end_ns: self.end_ns, cpu, lock_wait_ns, proactive_runs }
    }
}

const MICROSECONDS: &str = "us";

/// The stored form of a distribution: bounds in µs, the last one exact.
pub(crate) fn histogram(of: &Latencies, phase: &str) -> Histogram {
    let longest = of.longest_ns.unwrap_or(0);
    let bound = |upper: u64| of.histogram.highest_equivalent(upper).min(longest) as f64 / 1000.0;
    let buckets = of.histogram.iter_recorded().map(|b| (bound(b.value_iterated_to()), b.count_at_value()));
    Histogram {
        name: of.name.to_string(),
        phase: phase.to_owned().into(),
        unit: MICROSECONDS.into(),
        buckets: buckets.collect(),
    }
}

/// The figures of every distribution: percentiles, the maximum, and the number of samples.
pub(crate) fn distribution_figures(h: &Histogram, of: &Latencies) -> Vec<Reading> {
    let Latencies { name, missing, .. } = of;
    let mut figures: Vec<Reading> = PERCENTILES
        .iter()
        .map(|&p| Figure::percentile(name.clone(), MICROSECONDS, p).read_or(h.percentile(p), *missing))
        .collect();
    let longest = Figure::new(format!("{name} max"), MICROSECONDS).lower().merged(Merge::Max);
    figures.push(longest.read_or(h.percentile(100.0), *missing));
    let samples = Figure::new(format!("{name} samples"), "samples").merged(Merge::Sum);
    figures.push(samples.read(h.samples() as f64));
    figures.iter_mut().for_each(|reading| reading.figure.phase = h.phase.clone());
    figures
}

/// CPU time of each of several concurrent tasks, if all have names.
fn by_task(phases: &[Stretch]) -> Vec<Reading> {
    let mut tasks: BTreeMap<&str, TaskTime> = BTreeMap::new();
    for ((name, in_background), time) in phases.iter().flat_map(|p| &p.counted.tasks) {
        if !in_background && (time.user_ns, time.system_ns) != (0, 0) {
            add(tasks.entry(name).or_default(), *time);
        }
    }
    if tasks.len() < 2 || tasks.contains_key(WORKLOAD) {
        return Vec::new();
    }
    let of =
        |name: &str, what: &'static str, ns: u64| Figure::new(what, "s").lower().of_task(name).read(ns as f64 / 1e9);
    tasks.iter().flat_map(|(name, t)| [of(name, "user", t.user_ns), of(name, "system", t.system_ns)]).collect()
}

/// The figures of each phase in `phases`, and of `all` together if given.
pub(crate) fn phase_figures(phases: &[Stretch], all: Option<&[Stretch]>) -> Vec<Reading> {
    let mut figures = Vec::new();
    let whole = all.map(|all| (TOTAL.to_owned(), all));
    let single = phases.iter().map(|p| (p.name.clone(), std::slice::from_ref(p)));
    for (phase, of) in single.chain(whole) {
        let seconds = |ns: &dyn Fn(&Stretch) -> u64| of.iter().map(ns).sum::<u64>() as f64 / 1e9;
        let threads = |p: &Stretch, kind: fn(NodeId) -> Daemon| {
            p.counted.threads.iter().filter(|(t, _)| t.is_daemon(kind)).map(|(_, ns)| ns).sum::<u64>()
        };
        let others = |p: &Stretch| {
            let others = p.counted.threads.iter().filter(|(t, _)| !matches!(t, KernelThread::Daemon(_)));
            others.map(|(_, ns)| ns).sum::<u64>()
        };
        let elapsed = seconds(&|p| p.end_ns - p.start_ns);
        let kcompactd = seconds(&|p| threads(p, Daemon::Kcompactd));
        let share = (elapsed > 0.0).then(|| 100.0 * kcompactd / elapsed);
        let time = |name: &'static str| Figure::new(name, "s").lower();
        let runs: u64 = of.iter().map(|p| p.counted.proactive_runs).sum();
        let of_phase = [
            time("elapsed").read(elapsed),
            time("user").read(seconds(&|p| p.counted.of_tasks(false).user_ns)),
            time("system").read(seconds(&|p| p.counted.of_tasks(false).system_ns)),
            time("kcompactd CPU time").read(kcompactd),
            Figure::new("kcompactd CPU share", "% of a CPU").lower().read_or(share, "the phase took no time"),
            time("kswapd CPU time").read(seconds(&|p| threads(p, Daemon::Kswapd))),
            time("zone lock wait").read(seconds(&|p| p.counted.lock_wait_ns)),
            Figure::new("proactive compaction runs", "runs").read(runs as f64),
        ];
        let has_others = of.iter().any(|p| p.counted.has_disks);
        let others =
            has_others.then(|| time("CPU time of khugepaged, flushers and XFS's threads").read(seconds(&others)));
        let background = of.iter().any(|p| p.counted.tasks.keys().any(|(_, background)| *background)).then(|| {
            let time = |p: &Stretch| p.counted.of_tasks(true);
            Figure::new("background CPU time", "s").read(seconds(&|p| time(p).user_ns + time(p).system_ns))
        });
        let by_task = by_task(of);
        let pressed: Option<Vec<Pressure>> = of.iter().map(|p| p.counted.pressure.clone()).collect();
        let pressure = pressed.into_iter().flat_map(|of| Pressure::figures(&of));
        let groups = OfGroups::figures(&of.iter().map(|p| &p.counted.groups).collect::<Vec<_>>());
        figures.extend(
            of_phase
                .into_iter()
                .chain(others)
                .chain(background)
                .chain(by_task)
                .chain(pressure)
                .chain(groups)
                .map(|r| Reading { figure: r.figure.of_phase(phase.clone()), ..r }),
        );
    }
    figures
}
