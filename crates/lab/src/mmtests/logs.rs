//! Benchmark logs: what a run measured, in the files that MMTests' benchmarks leave.

use super::BOOT;
use super::monitors::gzip;
use crate::unit;
use kontig_results::{Histogram, Round};

/// The time of a round's measured phases, seconds.
pub(crate) struct Times {
    pub(crate) user_s: f64,
    pub(crate) system_s: f64,
    pub(crate) elapsed_s: f64,
}

/// A benchmark that MMTests knows.
pub(super) struct Benchmark {
    pub(super) name: &'static str,
    /// Its files, by their paths in an iteration.
    pub(super) files: Vec<(String, Vec<u8>)>,
}

impl Benchmark {
    /// A benchmark of one file.
    fn new(name: &'static str, file: &str, log: String) -> Benchmark {
        Benchmark { name, files: vec![(format!("{name}/noprofile/{file}"), log.into_bytes())] }
    }
}

/// What a round stands as. Every round stands at least as one.
pub(super) fn benchmarks(round: &Round, times: &Times) -> Vec<Benchmark> {
    [stutter(round), stress_highalloc(round), Some(timedalloc(times))].into_iter().flatten().collect()
}

/// The first distribution: lines of a number of operations, and the ns that each took. The benchmark's successor, which
/// newer versions have instead, tells logs apart by a number, and has all.
fn stutter(round: &Round) -> Option<Benchmark> {
    let mut benchmark = Benchmark::new("stutter", "mmap-latency.log", latencies(round.histograms.first()?));
    for (i, h) in round.histograms.iter().enumerate() {
        let name = format!("stutterp/logs/mmap-latency-{}.log.gz", i + 1);
        benchmark.files.push((name, gzip(latencies(h).as_bytes())));
    }
    Some(benchmark)
}

fn latencies(h: &Histogram) -> String {
    // What is no time stands as it is.
    let ns = unit::factor(&h.unit, "ns").unwrap_or(1.0);
    h.buckets.iter().filter(|(_, n)| *n > 0).map(|(bound, n)| format!("{n} {:.0}\n", bound * ns)).collect()
}

/// What a driver of huge pages obtained. The share is a whole number, as the benchmark prints it.
fn stress_highalloc(round: &Round) -> Option<Benchmark> {
    let figure = |name: &str| round.figures.iter().find(|r| r.figure.name == name).and_then(|r| r.value);
    let (allocated, failed) = (figure("2M hugepages allocated")? as u64, figure("failed allocations")? as u64);
    let attempted = allocated + failed;
    if attempted == 0 {
        return None;
    }
    let log = format!(
        "HighAlloc Under Load Test Results Pass 1\nOrder:                 9\nAttempted allocations: {attempted}\n\
         Success allocs:        {allocated}\nFailed allocs:         {failed}\n% Success:            {}\n",
        100 * allocated / attempted
    );
    Some(Benchmark::new("stress-highalloc", "log.txt", log))
}

/// How long it took, as `time` prints it.
fn timedalloc(times: &Times) -> Benchmark {
    let Times { user_s, system_s, elapsed_s } = times;
    let busy = if *elapsed_s > 0.0 { 100.0 * (user_s + system_s) / elapsed_s } else { 0.0 };
    let (hours, minutes) = ((elapsed_s / 3600.0) as u64, (elapsed_s / 60.0) as u64 % 60);
    let seconds = elapsed_s % 60.0;
    let clock = match hours {
        0 => format!("{minutes}:{seconds:05.2}"),
        _ => format!("{hours}:{minutes:02}:{seconds:05.2}"),
    };
    let log = format!("{user_s:.2}user {system_s:.2}system {clock}elapsed {busy:.0}%CPU\n");
    Benchmark::new("timedalloc", "time", log)
}

/// What was done when, for the script that compares all benchmarks of a directory. Every iteration begins at the
/// machine's start here: the snapshots have the times.
pub(super) fn activity(benchmarks: &[Benchmark]) -> String {
    let begun = |b: &Benchmark| format!("{BOOT} run-mmtests: begin {}\n", b.name);
    let begun: String = benchmarks.iter().map(begun).collect();
    format!("{BOOT} run-mmtests: Start\n{begun}{BOOT} run-mmtests: End\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_results::{Figure, Reading};
    use std::collections::BTreeMap;

    fn of(figures: Vec<Reading>, histograms: Vec<Histogram>) -> Vec<(String, String)> {
        let times = Times { user_s: 60.0, system_s: 2.5, elapsed_s: 3725.25 };
        let round = Round { figures, vmstat: BTreeMap::new(), histograms };
        let text = |(name, bytes): (String, Vec<u8>)| (name, String::from_utf8_lossy(&bytes).into_owned());
        benchmarks(&round, &times).into_iter().flat_map(|b| b.files).map(text).collect()
    }

    #[test]
    fn a_distribution_is_lines_of_counts_and_nanoseconds() {
        let h = |name: &str| Histogram {
            name: name.into(),
            phase: "measure".into(),
            unit: "us".into(),
            buckets: vec![(1.5, 10), (2.0, 0), (7.25, 1)],
        };
        let files = of(vec![], vec![h("a"), h("b")]);
        assert_eq!(files[0], ("stutter/noprofile/mmap-latency.log".into(), "10 1500\n1 7250\n".into()));
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names[1..3], ["stutterp/logs/mmap-latency-1.log.gz", "stutterp/logs/mmap-latency-2.log.gz"]);
    }

    #[test]
    fn a_drivers_success_is_the_share_of_its_attempts_and_time_is_as_time_prints_it() {
        let read = |name: &'static str, value| Figure::new(name, "x").read(value);
        let files = of(vec![read("2M hugepages allocated", 299.0), read("failed allocations", 101.0)], vec![]);
        assert_eq!(files[0].0, "stress-highalloc/noprofile/log.txt");
        assert!(files[0].1.contains("% Success:            74\n"), "{}", files[0].1);
        let time = ("timedalloc/noprofile/time".into(), "60.00user 2.50system 1:02:05.25elapsed 2%CPU\n".into());
        assert_eq!(files[1..], [time]);
        assert_eq!(of(vec![read("2M hugepages allocated", 0.0)], vec![]).len(), 1, "no driver, no share");
    }
}
