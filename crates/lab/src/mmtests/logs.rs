//! Benchmark logs: a run's measurements in the files that MMTests' benchmarks leave.

use super::BOOT;
use super::monitors::gzip;
use crate::unit;
use kontig_results::{Histogram, Round};

/// CPU and elapsed time of a round's measured phases.
pub(crate) struct Times {
    pub(crate) user_s: f64,
    pub(crate) system_s: f64,
    pub(crate) elapsed_s: f64,
}

pub(super) struct Benchmark {
    pub(super) name: &'static str,
    /// Files by their paths in an iteration.
    pub(super) files: Vec<(String, Vec<u8>)>,
}

impl Benchmark {
    fn new(name: &'static str, file: &str, log: String) -> Benchmark {
        Benchmark { name, files: vec![(format!("{name}/noprofile/{file}"), log.into_bytes())] }
    }
}

/// The benchmarks a round appears as: at least one.
pub(super) fn benchmarks(round: &Round, times: &Times) -> Vec<Benchmark> {
    let own = [usemem(round), faults("thpscale", round), faults("thpfioscale", round), passes(round)];
    let of_their_own = own.iter().any(Option::is_some);
    // Distributions with a benchmark of their own are no latencies of mmap.
    let stutter = if of_their_own { None } else { stutter(round) };
    let others = [stutter, stress_highalloc(round), Some(timedalloc(times))];
    own.into_iter().chain(others).flatten().collect()
}

/// A distribution's name without the thread count at its end, and the count.
fn with_threads(h: &Histogram) -> Option<(&str, u32)> {
    let (name, threads) = h.name.rsplit_once('-')?;
    Some((name, threads.parse().ok()?))
}

/// All values of a distribution in this unit, ascending.
fn values(h: &Histogram, unit: &str) -> Vec<f64> {
    let factor = unit::factor(&h.unit, unit).unwrap_or(1.0);
    h.buckets.iter().flat_map(|(bound, n)| std::iter::repeat_n(bound * factor, *n as usize)).collect()
}

/// System and elapsed time of each try, a file each, as `time` prints them; user time is not
/// stored. Nor is which of the two belong to one try: MMTests compares each by itself.
fn usemem(round: &Round) -> Option<Benchmark> {
    let of = |name: &'static str| {
        let named = move |h: &&Histogram| with_threads(h).is_some_and(|(own, _)| own == name);
        round.histograms.iter().filter(named)
    };
    let mut files = Vec::new();
    for (system, elapsed) in of("System").zip(of("Elapsd")) {
        let (_, threads) = with_threads(system).filter(|of| with_threads(elapsed).is_some_and(|(_, n)| n == of.1))?;
        for (i, (system, elapsed)) in values(system, "s").into_iter().zip(values(elapsed, "s")).enumerate() {
            let log = format!("-user {system:.2}system {}elapsed\n", clock(elapsed));
            files.push((format!("usemem/noprofile/usemem-{threads}-{}", i + 1), log.into_bytes()));
        }
    }
    (!files.is_empty()).then_some(Benchmark { name: "usemem", files })
}

/// Huge and base faults, a file for each number of threads (`thpscale`), or one for all programs
/// together (`thpfioscale`): a line a fault, with its time in whole µs.
fn faults(name: &'static str, round: &Round) -> Option<Benchmark> {
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for h in &round.histograms {
        let (of, threads) = match (name, with_threads(h)) {
            ("thpscale", Some(of)) => of,
            ("thpfioscale", None) => (h.name.as_str(), 1),
            _ => continue,
        };
        let class = match of {
            "fault-base" => "base",
            "fault-huge" => "huge",
            _ => continue,
        };
        let file = format!("{name}/noprofile/threads-{threads}.log");
        let log = match files.iter().position(|(name, _)| *name == file) {
            Some(at) => &mut files[at].1,
            None => {
                files.push((file, Vec::new()));
                let last = files.len() - 1;
                &mut files[last].1
            }
        };
        log.extend(values(h, "us").into_iter().flat_map(|us| format!("fault 0 {class} {us:.0}\n").into_bytes()));
    }
    (!files.is_empty()).then_some(Benchmark { name, files })
}

/// The first distribution: lines with a number of operations and the ns each took. The benchmark's
/// successor in newer versions tells logs apart by a number and has all.
fn stutter(round: &Round) -> Option<Benchmark> {
    let mut benchmark = Benchmark::new("stutter", "mmap-latency.log", latencies(round.histograms.first()?));
    for (i, h) in round.histograms.iter().enumerate() {
        let name = format!("stutterp/logs/mmap-latency-{}.log.gz", i + 1);
        benchmark.files.push((name, gzip(latencies(h).as_bytes())));
    }
    Some(benchmark)
}

fn latencies(h: &Histogram) -> String {
    // A value that is no time stays as it is.
    let ns = unit::factor(&h.unit, "ns").unwrap_or(1.0);
    h.buckets.iter().filter(|(_, n)| *n > 0).map(|(bound, n)| format!("{n} {:.0}\n", bound * ns)).collect()
}

/// A figure's value, if the round has it.
fn figure(round: &Round, name: &str) -> Option<f64> {
    round.figures.iter().find(|r| r.figure.name == name).and_then(|r| r.value)
}

/// The share of each pass of `highalloc`, rounded down, as the benchmark prints it: two passes
/// under load and one at rest.
fn passes(round: &Round) -> Option<Benchmark> {
    const HEADS: [&str; 3] =
        ["Under Load Test Results Pass 1", "Under Load Test Results Pass 2", "Test Results while Rested"];
    let pass = |(head, pass): (&str, usize)| {
        let share = figure(round, &format!("success {pass}"))?;
        Some(format!("HighAlloc {head}\n% Success:            {:.0}\n", share.floor()))
    };
    let log: String = HEADS.into_iter().zip(1..).filter_map(pass).collect();
    (!log.is_empty()).then(|| Benchmark::new("stress-highalloc", "log.txt", log))
}

/// The success of a driver of huge pages. The share is a whole number, as the benchmark prints it.
fn stress_highalloc(round: &Round) -> Option<Benchmark> {
    let figure = |name| figure(round, name).map(|value| value as u64);
    let (allocated, failed) = (figure("2M hugepages allocated")?, figure("failed allocations")?);
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

/// The elapsed time, as `time` prints it.
fn timedalloc(times: &Times) -> Benchmark {
    let Times { user_s, system_s, elapsed_s } = times;
    let busy = if *elapsed_s > 0.0 { 100.0 * (user_s + system_s) / elapsed_s } else { 0.0 };
    let log = format!("{user_s:.2}user {system_s:.2}system {}elapsed {busy:.0}%CPU\n", clock(*elapsed_s));
    Benchmark::new("timedalloc", "time", log)
}

fn clock(elapsed_s: f64) -> String {
    let (hours, minutes) = ((elapsed_s / 3600.0) as u64, (elapsed_s / 60.0) as u64 % 60);
    let seconds = elapsed_s % 60.0;
    match hours {
        0 => format!("{minutes}:{seconds:05.2}"),
        _ => format!("{hours}:{minutes:02}:{seconds:05.2}"),
    }
}

/// The activity log, for the script that compares all benchmarks of a directory. Every iteration
/// begins at boot here; the snapshots have the times.
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

    #[test]
    fn each_pass_of_highalloc_has_its_share_and_its_attempts_are_no_latencies_of_mmap() {
        let read = |name: &'static str, value| Figure::new(name, "%").read(value);
        let attempts = distribution("attempt", "us", &[(10.0, 3)]);
        let files = of(vec![read("success 1", 25.9), read("success 3", 85.0)], vec![attempts]);
        let log = "HighAlloc Under Load Test Results Pass 1\n% Success:            25\n\
                   HighAlloc Test Results while Rested\n% Success:            85\n";
        assert_eq!(files[0], ("stress-highalloc/noprofile/log.txt".into(), log.into()));
        assert!(files[1..].iter().all(|(name, _)| name.starts_with("timedalloc/")));
    }

    fn distribution(name: &str, unit: &str, buckets: &[(f64, u64)]) -> Histogram {
        Histogram { name: name.into(), phase: "run".into(), unit: unit.into(), buckets: buckets.to_vec() }
    }

    #[test]
    fn each_try_of_usemem_is_a_file_with_its_system_and_clock_time() {
        let of_one = distribution("System-1", "us", &[(2.5e6, 1), (3e6, 1)]);
        let of_four = distribution("System-4", "us", &[(9e6, 1)]);
        let elapsed = [("Elapsd-1", 61e6, 2), ("Elapsd-4", 7.25e6, 1)];
        let elapsed = elapsed.map(|(name, us, n)| distribution(name, "us", &[(us, n)]));
        let files = of(vec![], [vec![of_one, of_four], elapsed.to_vec()].concat());
        let expected = [
            ("usemem/noprofile/usemem-1-1", "-user 2.50system 1:01.00elapsed\n"),
            ("usemem/noprofile/usemem-1-2", "-user 3.00system 1:01.00elapsed\n"),
            ("usemem/noprofile/usemem-4-1", "-user 9.00system 0:07.25elapsed\n"),
        ];
        assert_eq!(files[..3], expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
        assert!(files[3..].iter().all(|(name, _)| name.starts_with("timedalloc/")), "no latencies of mmap");
    }

    #[test]
    fn faults_are_lines_a_file_for_each_number_of_threads() {
        let both = |base: &str, huge: &str| {
            vec![distribution(base, "us", &[(440.4, 2)]), distribution(huge, "us", &[(304.0, 1), (1500.0, 1)])]
        };
        let log = "fault 0 base 440\nfault 0 base 440\nfault 0 huge 304\nfault 0 huge 1500\n".to_owned();
        let numbered =
            of(vec![], [both("fault-base-1", "fault-huge-1"), both("fault-base-12", "fault-huge-12")].concat());
        for (i, threads) in [1, 12].into_iter().enumerate() {
            assert_eq!(numbered[i], (format!("thpscale/noprofile/threads-{threads}.log"), log.clone()));
        }
        let of_programs = of(vec![], both("fault-base", "fault-huge"));
        assert_eq!(of_programs[0], ("thpfioscale/noprofile/threads-1.log".into(), log));
    }
}
