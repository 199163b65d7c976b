//! What every run's figures are made of: its distributions, its phases, and units.
//!
//! A figure is of the window it names: a phase's is what was counted between the phase's begin and end.

use crate::result::{Figure, Histogram, Merge, Phase, Reading, TOTAL};
use crate::run::WORKLOAD;
use kontig_workload::figure::{Latencies, PERCENTILES};

/// Pages in GiB.
pub(crate) fn gib(pages: u64) -> f64 {
    pages as f64 * 4096.0 / (1u64 << 30) as f64
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
pub(crate) fn phase_figures(phases: &[Phase]) -> Vec<Reading> {
    let mut figures = Vec::new();
    let whole = [(TOTAL.to_owned(), phases)];
    let single = phases.iter().map(|p| (p.name.clone(), std::slice::from_ref(p)));
    for (phase, of) in single.chain(whole) {
        let seconds = |ns: &dyn Fn(&Phase) -> u64| of.iter().map(ns).sum::<u64>() as f64 / 1e9;
        let threads = |p: &Phase, name: &str| {
            let of = p.cpu.iter().filter(|(task, _)| task.trim_end_matches(|c: char| c.is_ascii_digit()) == name);
            of.map(|(_, time)| time.user_ns + time.system_ns).sum::<u64>()
        };
        let workload = |p: &Phase| p.cpu.get(WORKLOAD).copied().unwrap_or_default();
        let elapsed = seconds(&|p| p.end_ns - p.start_ns);
        let kcompactd = seconds(&|p| threads(p, "kcompactd"));
        let share = (elapsed > 0.0).then(|| 100.0 * kcompactd / elapsed);
        let time = |name: &'static str| Figure::new(name, "s").lower();
        let runs: u64 = of.iter().map(|p| p.proactive_runs).sum();
        let of_phase = [
            time("elapsed").read(elapsed),
            time("user").read(seconds(&|p| workload(p).user_ns)),
            time("system").read(seconds(&|p| workload(p).system_ns)),
            time("kcompactd CPU time").read(kcompactd),
            Figure::new("kcompactd CPU share", "%").lower().read_or(share, "the phase took no time"),
            time("kswapd CPU time").read(seconds(&|p| threads(p, "kswapd"))),
            time("zone lock wait").read(seconds(&|p| p.lock_wait_ns)),
            Figure::new("proactive compaction runs", "runs").read(runs as f64),
        ];
        figures.extend(of_phase.map(|r| Reading { figure: r.figure.of_phase(phase.clone()), ..r }));
    }
    figures
}
