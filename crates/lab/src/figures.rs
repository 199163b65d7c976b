//! What every run's figures are made of: its distributions, its phases, and units.
//!
//! A figure is of the window it names: a phase's is what was counted between the phase's begin and end.

use kontig_results::figure::PERCENTILES;
use kontig_results::{Figure, Histogram, Merge, Phase, Reading, TOTAL, TaskTime};
use kontig_sim::{KernelThread, KernelThreadKind};
use kontig_workload::latencies::Latencies;

/// The workload's programs among the tasks of a phase.
const WORKLOAD: &str = "workload";

/// What is counted phase by phase, since the machine's start.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) threads: Vec<(KernelThread, u64)>,
    pub(crate) workload: TaskTime,
    pub(crate) lock_wait_ns: u64,
    pub(crate) proactive_runs: u64,
}

impl Counters {
    /// What was counted since `earlier`.
    pub(crate) fn since(&self, earlier: &Counters) -> Counters {
        let before = |thread| earlier.threads.iter().find(|(t, _)| *t == thread).map_or(0, |(_, ns)| *ns);
        Counters {
            threads: self.threads.iter().map(|&(thread, ns)| (thread, ns - before(thread))).collect(),
            workload: TaskTime {
                user_ns: self.workload.user_ns - earlier.workload.user_ns,
                system_ns: self.workload.system_ns - earlier.workload.system_ns,
            },
            lock_wait_ns: self.lock_wait_ns - earlier.lock_wait_ns,
            proactive_runs: self.proactive_runs - earlier.proactive_runs,
        }
    }
}

/// A phase with what was counted in it.
pub(crate) struct Stretch {
    pub(crate) name: String,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) counted: Counters,
}

impl Stretch {
    /// As it is kept, its tasks by name.
    pub(crate) fn kept(self) -> Phase {
        let Counters { threads, workload, lock_wait_ns, proactive_runs } = self.counted;
        let threads = threads.into_iter().map(|(t, system_ns)| (t.to_string(), TaskTime { user_ns: 0, system_ns }));
        let cpu = threads.chain([(WORKLOAD.to_owned(), workload)]).collect();
        Phase { name: self.name, start_ns: self.start_ns, end_ns: self.end_ns, cpu, lock_wait_ns, proactive_runs }
    }
}

/// Unit of latencies.
const MICROSECONDS: &str = "us";

/// A distribution as it is kept: bounds in µs, the last one exact.
pub(crate) fn histogram(of: &Latencies) -> Histogram {
    let longest = of.longest_ns.unwrap_or(0);
    let bound = |upper: u64| of.histogram.highest_equivalent(upper).min(longest) as f64 / 1000.0;
    let buckets = of.histogram.iter_recorded().map(|b| (bound(b.value_iterated_to()), b.count_at_value()));
    Histogram { name: of.name.into(), unit: MICROSECONDS.into(), buckets: buckets.collect() }
}

/// What is shown of every distribution: percentiles, the longest, and of how many.
pub(crate) fn distribution_figures(h: &Histogram, of: &Latencies) -> Vec<Reading> {
    let Latencies { name, missing, .. } = *of;
    let mut figures: Vec<Reading> = PERCENTILES
        .iter()
        .map(|&p| Figure::percentile(name, MICROSECONDS, p).read_or(h.percentile(p), missing))
        .collect();
    let longest = Figure::new(format!("{name} max"), MICROSECONDS).lower().merged(Merge::Max);
    figures.push(longest.read_or(h.percentile(100.0), missing));
    let samples = Figure::new(format!("{name} samples"), "samples").merged(Merge::Sum);
    figures.push(samples.read(h.samples() as f64));
    figures
}

/// Figures of every phase, and of all together.
pub(crate) fn phase_figures(phases: &[Stretch]) -> Vec<Reading> {
    let mut figures = Vec::new();
    let whole = [(TOTAL.to_owned(), phases)];
    let single = phases.iter().map(|p| (p.name.clone(), std::slice::from_ref(p)));
    for (phase, of) in single.chain(whole) {
        let seconds = |ns: &dyn Fn(&Stretch) -> u64| of.iter().map(ns).sum::<u64>() as f64 / 1e9;
        let threads = |p: &Stretch, kind: KernelThreadKind| {
            let of_kind = p.counted.threads.iter().filter(|(t, _)| t.kind == kind);
            of_kind.map(|(_, ns)| ns).sum::<u64>()
        };
        let elapsed = seconds(&|p| p.end_ns - p.start_ns);
        let kcompactd = seconds(&|p| threads(p, KernelThreadKind::Kcompactd));
        let share = (elapsed > 0.0).then(|| 100.0 * kcompactd / elapsed);
        let time = |name: &'static str| Figure::new(name, "s").lower();
        let runs: u64 = of.iter().map(|p| p.counted.proactive_runs).sum();
        let of_phase = [
            time("elapsed").read(elapsed),
            time("user").read(seconds(&|p| p.counted.workload.user_ns)),
            time("system").read(seconds(&|p| p.counted.workload.system_ns)),
            time("kcompactd CPU time").read(kcompactd),
            Figure::new("kcompactd CPU share", "% of a CPU").lower().read_or(share, "the phase took no time"),
            time("kswapd CPU time").read(seconds(&|p| threads(p, KernelThreadKind::Kswapd))),
            time("zone lock wait").read(seconds(&|p| p.counted.lock_wait_ns)),
            Figure::new("proactive compaction runs", "runs").read(runs as f64),
        ];
        figures.extend(of_phase.map(|r| Reading { figure: r.figure.of_phase(phase.clone()), ..r }));
    }
    figures
}
