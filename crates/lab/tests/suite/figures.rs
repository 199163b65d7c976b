//! From runs to rows: a table has the figures that the runs measured, over the phase and the
//! repetitions it names.

use kontig_lab::compare::{Subject, compare};
use kontig_lab::experiment::{Experiment, Variant};
use kontig_lab::outcome::Outcome;
use kontig_lab::plan::Views;
use kontig_lab::resolved::Resolved;
use kontig_lab::session::Session;
use kontig_lab::target::{Part, PublishedShares, Target, TargetRow};
use kontig_results::{
    Better, Ending, Endings, ExperimentResult, Figure, Histogram, MEASURE, Measured, Merge, Pairs, Reading, Row,
    RunResult, TOTAL,
};
use std::collections::BTreeMap;

const LATENCY: &str = "hugepage alloc latency";

/// A run without measurements.
fn run(variant: &str, repetition: u32) -> RunResult {
    RunResult {
        experiment: "e".into(),
        case: String::new(),
        variant: variant.into(),
        repetition,
        seed: u64::from(repetition) + 1,
        random: true,
        figures: vec![],
        rounds: vec![],
        endings: Endings::default(),
        vmstat: BTreeMap::new(),
        work: BTreeMap::new(),
        histograms: vec![],
        series: vec![],
        phases: vec![],
        map: Default::default(),
        events: vec![],
        event_counts: BTreeMap::new(),
        without_effect: BTreeMap::new(),
    }
}

/// A run with these latencies, in the form a real run has them.
fn timed(variant: &str, repetition: u32, buckets: &[(f64, u64)]) -> RunResult {
    let h = Histogram { name: LATENCY.into(), phase: MEASURE.into(), unit: "us".into(), buckets: buckets.to_vec() };
    let p99 = Figure::percentile(LATENCY, "us", 99.0);
    let max = Figure::new(format!("{LATENCY} max"), "us").lower().merged(Merge::Max);
    let samples = Figure::new(format!("{LATENCY} samples"), "samples").merged(Merge::Sum);
    let figures = vec![
        p99.read_or(h.percentile(99.0), "nothing was obtained"),
        max.read_or(h.percentile(100.0), "nothing was obtained"),
        samples.read(h.samples() as f64),
    ];
    RunResult { figures, histograms: vec![h], ..run(variant, repetition) }
}

/// A run that measured one figure.
fn with(variant: &str, repetition: u32, reading: Reading) -> RunResult {
    RunResult { figures: vec![reading], ..run(variant, repetition) }
}

fn table(variants: &[&str], runs: &[RunResult]) -> ExperimentResult {
    let variants: Vec<Variant> = variants.iter().map(|v| variant(v)).collect();
    compare(&about(&variants, None), runs)
}

/// A table of these variants against this target.
fn about<'a>(variants: &'a [Variant], target: Option<&'a Target>) -> Subject<'a> {
    Subject { id: "e", case: "", machine: "m", variants, target, caveats: &[], lacks: &[], notes: &[], elsewhere: None }
}

fn variant(name: &str) -> Variant {
    Variant { name: name.into(), profile: "6.1".into(), ..Variant::default() }
}

fn row<'a>(e: &'a ExperimentResult, name: &str, phase: &str) -> &'a Row {
    e.rows.iter().find(|r| r.name == name && r.phase == phase).unwrap_or_else(|| panic!("no row {name} of {phase}"))
}

fn values(row: &Row) -> Vec<Option<f64>> {
    row.measured.iter().map(|m| m.map(|m| m.value)).collect()
}

#[test]
fn percentiles_are_those_of_all_repetitions_together_and_extremes_are_real() {
    // 99 of 100 operations take 1 µs in the first repetition and 10 µs in the second: no operation
    // took the mean of the p99s, (1 + 10) / 2.
    let runs = [timed("a", 0, &[(1.0, 990), (5009.0, 10)]), timed("a", 1, &[(10.0, 999), (765.0, 1)])];
    let e = table(&["a"], &runs);
    let p99 = row(&e, "hugepage alloc latency p99", MEASURE).measured[0].unwrap();
    assert_eq!((p99.value, p99.low, p99.high), (10.0, 1.0, 10.0));
    assert_eq!((p99.samples, p99.samples_needed, p99.repetitions), (Some(2000), None, 2));
    let max = row(&e, "hugepage alloc latency max", MEASURE).measured[0].unwrap();
    assert_eq!((max.value, max.low, max.high), (5009.0, 765.0, 5009.0), "the highest, not a mean of maxima");
    assert_eq!(values(row(&e, "hugepage alloc latency samples", MEASURE)), [Some(2000.0)]);
}

#[test]
fn a_target_may_name_any_percentile_of_a_distribution() {
    let row_of =
        |name: &str| TargetRow { name: name.into(), unit: "us".into(), values: vec![7.0], ..TargetRow::default() };
    let rows = vec![row_of("hugepage alloc latency p30"), row_of("hugepage alloc latency p101"), row_of("something")];
    let target = Target { id: "t".into(), variants: vec!["a".into()], row: rows, ..Target::default() };
    let runs = [timed("a", 0, &[(1.0, 29), (2.0, 71)])];
    let e = compare(&about(&[variant("a")], Some(&target)), &runs);
    assert_eq!(values(&e.rows[0]), [Some(2.0)], "p30 is the thirtieth of a hundred");
    assert_eq!((values(&e.rows[1]), values(&e.rows[2])), (vec![None], vec![None]));
}

#[test]
fn rows_that_count_work_know_which_part_of_the_published_work_was_done() {
    let row_of = |name: &str, value: f64| TargetRow {
        name: name.into(),
        unit: "s".into(),
        values: vec![value],
        ..TargetRow::default()
    };
    let row = vec![row_of("user", 100.0), row_of("stalls", 50.0), row_of("mean", 7.0)];
    let part = Some(Part { by: "user".into(), not: vec!["mean".into()] });
    let target = Target { id: "t".into(), variants: vec!["a".into()], row, part, ..Target::default() };
    let mut run = with("a", 0, Figure::new("user", "s").read(60.0));
    run.figures.extend(["stalls", "mean"].map(|name| Figure::new(name, "s").read(9.0)));
    let e = compare(&about(&[variant("a")], Some(&target)), &[run]);
    let parts: Vec<_> = e.rows.iter().map(|row| row.part).collect();
    assert_eq!(parts, [Some(0.6), Some(0.6), None]);
}

#[test]
fn published_shares_of_a_figure_that_no_run_has_are_named_and_not_left_out() {
    let shares = |figures: &[&str]| {
        let of = PublishedShares {
            what: "ends".into(),
            variant: "a".into(),
            figures: figures.iter().map(|name| name.to_string()).collect(),
            values: vec![3.0, 1.0],
        };
        let target = Target { id: "t".into(), variants: vec!["a".into()], shares: vec![of], ..Target::default() };
        let mut run = with("a", 0, Figure::new("met", "events").read(9.0));
        run.figures.push(Figure::new("full", "events").read(1.0));
        let said = compare(&about(&[variant("a")], Some(&target)), &[run]).remarks;
        said.into_iter().map(|remark| remark.text).collect::<Vec<_>>()
    };
    assert_eq!(
        shares(&["met", "full"]),
        ["ends, published (here): met 75.0 % (90.0 %), full 25.0 % (10.0 %); of 4 (10)"]
    );
    assert_eq!(shares(&["met", "ful"]), ["ends: not held against the published shares, no run has 'ful'"]);
}

#[test]
fn a_percentile_from_few_samples_says_of_how_many_and_how_many_it_takes() {
    let e = table(&["a", "b"], &[timed("a", 0, &[(3.0, 10)]), timed("b", 0, &[(3.0, 299)])]);
    let p99 = &row(&e, "hugepage alloc latency p99", MEASURE).measured;
    let told = |m: Option<Measured>| (m.unwrap().samples, m.unwrap().samples_needed);
    assert_eq!((told(p99[0]), told(p99[1])), ((Some(10), Some(299)), (Some(299), None)));
}

#[test]
fn scalar_figures_are_medians_with_their_range_and_variants_are_paired_by_seed() {
    let time = |v, i, x| with(v, i, Figure::new("time", "s").lower().read(x));
    // b is faster on three of five seeds, and once much slower: by the mean it would be worse than
    // a.
    let a = [5.0, 6.0, 7.0, 8.0, 9.0].iter().enumerate().map(|(i, x)| time("a", i as u32, *x));
    let b = [4.0, 5.0, 6.0, 8.5, 60.0].iter().enumerate().map(|(i, x)| time("b", i as u32, *x));
    let e = table(&["a", "b"], &a.chain(b).collect::<Vec<_>>());
    let row = row(&e, "time", MEASURE);
    let b = row.measured[1].unwrap();
    assert_eq!((b.value, b.low, b.high, b.repetitions), (6.0, 4.0, 60.0, 5));
    assert_eq!((row.pairs[0], row.pairs[1]), (None, Some(Pairs { of: 5, lower: 3, higher: 2, overlap: true })));
    assert_eq!((row.better, e.repetitions), (Better::Lower, 5));
}

#[test]
fn ranges_that_have_nothing_in_common_do_not_overlap() {
    let time = |v, i, x| with(v, i, Figure::new("time", "s").lower().read(x));
    let runs = [time("a", 0, 5.0), time("a", 1, 6.0), time("b", 0, 3.0), time("b", 1, 4.9)];
    let pairs = row(&table(&["a", "b"], &runs), "time", MEASURE).pairs[1];
    assert_eq!(pairs, Some(Pairs { of: 2, lower: 2, higher: 0, overlap: false }));
    let single = table(&["a", "b"], &[time("a", 0, 5.0), time("b", 0, 3.0)]);
    assert_eq!(row(&single, "time", MEASURE).pairs[1], None, "one seed says nothing of a spread");
}

#[test]
fn a_figure_nobody_has_heard_of_is_shown_like_any_other() {
    let new = Figure::new("compaction stalls", "stalls").higher();
    let e = table(&["a"], &[with("a", 0, new.clone().read(3.0)), with("a", 1, new.read(4.0))]);
    let row = row(&e, "compaction stalls", MEASURE);
    assert_eq!((row.unit.as_str(), row.better, values(row)), ("stalls", Better::Higher, vec![Some(3.5)]));
}

#[test]
fn extremes_of_several_repetitions_are_their_extremes() {
    let of = |i, merge, x| with("a", i, Figure::new("score", "0-100").merged(merge).read(x));
    let both = |merge: Merge| {
        let e = table(&["a"], &[of(0, merge.clone(), 12.0), of(1, merge, 40.0)]);
        values(&e.rows[0])[0]
    };
    assert_eq!((both(Merge::Min), both(Merge::Max), both(Merge::Median)), (Some(12.0), Some(40.0), Some(26.0)));
}

#[test]
fn nothing_obtained_is_no_latency_and_says_why() {
    let ending = |reached| {
        let (rule, goal) = ("the first failed allocation".into(), "the free memory".into());
        let phase = MEASURE.into();
        Endings(vec![Ending {
            task: String::new(),
            phase,
            rule,
            reached: Some(reached),
            goal,
            remedy: "try again".into(),
        }])
    };
    let none = RunResult { endings: ending(0.0), ..timed("a", 0, &[]) };
    let some = RunResult { endings: ending(61.04), ..timed("b", 0, &[(2.0, 900)]) };
    let again = RunResult { endings: ending(63.0), ..timed("b", 1, &[(2.0, 900)]) };
    let e = table(&["a", "b"], &[none, some, again]);
    for name in ["hugepage alloc latency p99", "hugepage alloc latency max"] {
        assert_eq!(values(row(&e, name, MEASURE)), [None, Some(2.0)], "{name}");
    }
    assert_eq!(values(row(&e, "hugepage alloc latency samples", MEASURE))[0], Some(0.0), "none is a number of samples");
    let said: Vec<_> = e.remarks.iter().map(|r| (r.variant, r.text.as_str())).collect();
    assert_eq!(
        said,
        [
            (Some(0), "ended at the first failed allocation, with 0.0 % of the free memory taken"),
            (Some(1), "ended at the first failed allocation, with 61.0 to 63.0 % of the free memory taken"),
            (Some(0), "nothing was obtained: no hugepage alloc latency"),
            (None, "try again"),
        ]
    );
}

#[test]
fn repetitions_that_ended_otherwise_or_have_no_value_are_counted() {
    let ending = |rule: &str, phase: &'static str| Ending {
        task: String::new(),
        phase: phase.into(),
        rule: rule.into(),
        reached: None,
        goal: "the free memory".into(),
        remedy: "try again".into(),
    };
    let ended = |i, endings: &[Ending]| RunResult { endings: Endings(endings.to_vec()), ..timed("a", i, &[(2.0, 9)]) };
    let none = RunResult { endings: Endings(vec![ending("rule 1", MEASURE)]), ..timed("a", 2, &[]) };
    let runs = [
        ended(0, &[ending("rule 1", MEASURE), ending("rule 1", "later")]),
        ended(1, &[ending("rule 2", MEASURE), ending("rule 1", "later")]),
        none,
    ];
    let e = table(&["a"], &runs);
    let said: Vec<_> = e.remarks.iter().map(|r| r.text.as_str()).collect();
    assert_eq!(
        said,
        [
            "ended at rule 1 in 2 of 3 repetitions",
            "ended in later at rule 1 in 2 of 3 repetitions",
            "ended at rule 2 in 1 of 3 repetitions",
            "in 1 of 3 repetitions, which its value leaves out, nothing was obtained: no hugepage alloc latency",
            "try again",
        ]
    );
}

/// Both variants of a small experiment: 6.1 with moderate and with eager proactiveness.
fn small(holes: &str, repetitions: u32, resting_s: u32) -> Outcome {
    small_with(holes, repetitions, resting_s, 1)
}

/// The same experiment with another seed.
fn small_with(holes: &str, repetitions: u32, resting_s: u32, seed: u64) -> Outcome {
    let text = format!(
        r#"id = "small"
summary = "x"
assumptions = "x"
machine = "tiny-64m"
repetitions = {repetitions}
[workload]
prepare = {{ kind = "fragment", holes = "{holes}" }}
settle_s = {resting_s}
measure = {{ kind = "hugealloc", gfp = "GFP_KERNEL", pause_us = 200000 }}
[[variant]]
name = "20"
profile = "6.1"
sysctls = {{ "vm.compaction_proactiveness" = 20 }}
[[variant]]
name = "100"
profile = "6.1"
sysctls = {{ "vm.compaction_proactiveness" = 100 }}
"#
    );
    run_text(&text, seed)
}

fn run_text(text: &str, seed: u64) -> Outcome {
    let experiment: Experiment = toml::from_str(text).unwrap();
    let session = Session::new(vec![Resolved::new(experiment, None).unwrap()], seed, &Views::default()).unwrap();
    let (mut outcomes, error) = session.run(2, &|_| Ok(()));
    assert_eq!(error, None);
    outcomes.remove(0)
}

#[test]
fn work_done_before_the_measurement_is_seen_beside_it() {
    let outcome = small("random", 1, 30);
    let of = |phase| values(row(&outcome.result, "kcompactd CPU time", phase));
    let [prepare, settle, measure, total] = ["prepare", "settle", MEASURE, TOTAL].map(of);
    for i in 0..2 {
        let sum = [&prepare, &settle, &measure].iter().map(|p| p[i].unwrap()).sum::<f64>();
        assert!((sum - total[i].unwrap()).abs() < 1e-9, "{sum} is not {:?}", total[i]);
    }
    // The eager variant has done its work before the measurement, which alone would show no cost.
    assert!(measure[1] < measure[0], "{measure:?}");
    assert!(settle[1] > settle[0] && settle[1] > measure[1], "{settle:?}");
    for name in ["elapsed", "user", "system", "kcompactd CPU share", "kswapd CPU time", "zone lock wait"] {
        assert_eq!(of_phases(&outcome.result, name), ["prepare", "settle", MEASURE, TOTAL], "{name}");
    }
}

fn of_phases(e: &ExperimentResult, name: &str) -> Vec<String> {
    e.rows.iter().filter(|r| r.name == name).map(|r| r.phase.clone()).collect()
}

#[test]
fn every_task_has_its_time_in_every_phase_and_phases_follow_without_a_gap() {
    for run in small("random", 1, 30).runs {
        let phases = &run.phases;
        assert_eq!(phases[0].start_ns, 0);
        assert!(phases.windows(2).all(|w| w[0].end_ns == w[1].start_ns));
        let end = phases.last().unwrap().end_ns;
        assert_eq!(run.figure("elapsed", TOTAL), Some(end as f64 / 1e9));
        for phase in phases {
            let tasks: Vec<_> = phase.cpu.keys().map(String::as_str).collect();
            assert_eq!(tasks, ["kcompactd0", "kswapd0", "workload"], "{}", phase.name);
            for (task, time) in &phase.cpu {
                assert!(time.user_ns + time.system_ns <= phase.end_ns - phase.start_ns, "{task} in {}", phase.name);
            }
        }
    }
}

#[test]
fn series_are_of_all_phases() {
    for run in small("random", 1, 30).runs {
        let end = run.phases.last().unwrap().end_ns;
        for s in &run.series {
            assert_eq!((s.points[0].0, s.points.last().unwrap().0), (0, end), "{}", s.name);
            assert!(s.points.windows(2).all(|w| w[0].0 < w[1].0), "{}", s.name);
            for phase in &run.phases {
                let within = s.points.iter().filter(|p| (phase.start_ns..=phase.end_ns).contains(&p.0)).count();
                assert!(within >= 2, "{} has {within} points in {}", s.name, phase.name);
            }
        }
        let kcompactd = run.series.iter().find(|s| s.name == "kcompactd CPU time").unwrap();
        let last = kcompactd.points.last().unwrap().1;
        assert_eq!(Some(last), run.figure("kcompactd CPU time", TOTAL), "the curve ends at the table's total");
    }
}

#[test]
fn a_workload_without_anything_random_says_that_the_seed_has_no_effect() {
    let said = |holes, repetitions| {
        let e = small(holes, repetitions, 1).result;
        e.remarks.into_iter().filter(|r| r.variant.is_none()).map(|r| r.text).collect::<Vec<_>>().join("; ")
    };
    assert!(said("first", 2).contains("the seed has no effect"));
    assert!(said("first", 1).contains("the seed has no effect"));
    assert!(!said("random", 2).contains("seed"));
}

#[test]
fn a_workload_that_is_called_deterministic_is_and_runs_once() {
    let outcome = small("first", 5, 1);
    assert_eq!((outcome.runs.len(), outcome.result.repetitions), (2, 1), "one run of each variant");
    let of_seed = |seed| small_with("first", 1, 1, seed).runs.remove(0);
    assert_eq!(RunResult { seed: 2, ..of_seed(1) }, of_seed(2));
    let runs = small("random", 2, 1).runs;
    assert_ne!(runs[0].vmstat, runs[1].vmstat, "other holes with another seed");
}

/// The time between the runs of a kcompactd, on several nodes of 64 MiB each that are filled with
/// unmovable pages.
fn time_between_proactive_runs(nodes: u32) -> f64 {
    let text = r#"id = "gaps"
summary = "x"
assumptions = "x"
machine = "tiny-64m"
[workload]
prepare = { kind = "fragment-unmovable", leave = "4 MiB" }
measure = { kind = "watch", seconds = 150 }
[[variant]]
name = "v"
profile = "5.6"
switches = ["proactive-compaction"]
sysctls = { "vm.compaction_proactiveness" = 40 }
"#;
    let experiment: Experiment = toml::from_str(text).unwrap();
    let mut resolved = Resolved::new(experiment, None).unwrap();
    let first = resolved.machine.zone[0].clone();
    let zone = |node: u32| {
        let (start, end) = (format!("{} MiB", 16 + 64 * node), format!("{} MiB", 80 + 64 * node));
        kontig_sim::machine_file::ZoneEntry { node: node as usize, start, end, ..first.clone() }
    };
    resolved.machine.zone = (0..nodes).map(zone).collect();
    resolved.machine.cpus = 2 * nodes as usize;
    let session = Session::new(vec![resolved], 1, &Views::default()).unwrap();
    let (mut outcomes, error) = session.run(1, &|_| Ok(()));
    assert_eq!(error, None);
    values(row(&outcomes.remove(0).result, "time between proactive runs", MEASURE))[0].unwrap()
}

#[test]
fn the_time_between_proactive_runs_is_that_of_each_nodes_kcompactd() {
    let [one, three] = [1, 3].map(time_between_proactive_runs);
    // A run that gains nothing defers the next by 64 checks half a second apart (kernel-behaviour
    // §5.10), and takes a moment itself.
    assert!((32.0..34.0).contains(&one), "one node: {one} s");
    assert!((three - one).abs() < 1.0, "one node: {one} s, three: {three} s");
}

#[test]
fn a_task_beside_others_is_measured_until_they_are_done() {
    let text = r#"id = "beside"
summary = "x"
assumptions = "x"
machine = "tiny-64m"
[[workload.phase]]
name = "measure"
measured = true
[[workload.phase.task]]
name = "beside"
beside = true
cpus = [1]
run = { kind = "mmap-latency", size = "4 MiB", pause_us = 5000 }
[[workload.phase.task]]
run = { kind = "watch", seconds = 2 }
[[variant]]
name = "6.1"
profile = "6.1"
"#;
    let e = run_text(text, 1).result;
    assert_eq!(values(row(&e, "elapsed", MEASURE)), [Some(2.0)], "the phase lasts as long as the other task");
    let rounds = values(row(&e, "beside: mmap latency samples", MEASURE))[0].unwrap();
    let longest = values(row(&e, "beside: mmap latency max", MEASURE))[0].unwrap();
    // A round is a pause of 5 ms and the measured operation.
    assert!(longest > 0.0 && longest < 5000.0, "{longest} µs");
    assert!((200.0..=400.0).contains(&rounds) && rounds <= 2.0 / 0.005, "{rounds}");
}

const UNDER_PRESSURE: &str = r#"id = "pressed"
summary = "x"
assumptions = "x"
machine = "guest-512m"

[[workload.phase]]
name = "write"
measured = true

[[workload.phase.task]]
run = { kind = "steps", steps = [{ do = "write", file = 1, size = "600 MiB", piece = "1 MiB" }] }

[[workload.phase]]
name = "rest"
measured = true

[[workload.phase.task]]
run = { kind = "steps", steps = [{ do = "sleep", ms = 1 }] }

[[variant]]
name = "a"
profile = "6.1"
"#;

#[test]
fn pressure_is_counted_phase_by_phase_as_vmstat_counts_it() {
    let outcome = run_text(UNDER_PRESSURE, 1);
    let of = |name, phase| values(row(&outcome.result, name, phase))[0].unwrap();
    let vmstat = &outcome.runs[0].vmstat;
    for name in ["pgscan_kswapd", "pswpout", "workingset_refault_file", "compact_stall"] {
        assert_eq!(of(name, "write") + of(name, "rest"), vmstat[name] as f64, "{name}");
        assert_eq!(of(name, TOTAL), vmstat[name] as f64, "{name}");
    }
    let stalls: u64 = vmstat.iter().filter(|(name, _)| name.starts_with("allocstall_")).map(|(_, n)| n).sum();
    assert_eq!(of("allocstall", TOTAL), stalls as f64);
    assert!(of("pgscan_kswapd", "write") > 30_000.0, "a file larger than memory was written");
    assert!(of("pgscan_kswapd", "rest") < 100.0);
}

#[test]
fn machines_without_disks_have_of_pressure_what_a_workload_suffers() {
    let small = small("random", 1, 30);
    assert_eq!(of_phases(&small.result, "pgscan_kswapd"), [""; 0]);
    let vmstat = &small.runs[0].vmstat;
    let total = |name| values(row(&small.result, name, TOTAL))[0];
    assert_eq!(total("allocstall"), Some(vmstat["allocstall"] as f64));
    assert_eq!(total("compact_stall"), Some(vmstat["compact_stall"] as f64));
    assert!(vmstat["compact_stall"] > 0, "it asks for huge pages on fragmented memory");
    assert_eq!((total("pswpout"), total("oom_kill")), (Some(0.0), Some(0.0)), "there is no swap");
    for name in ["pswpin", "workingset_refault_file", "nr_slab_reclaimable"] {
        assert_eq!(vmstat.get(name), None, "{name}");
    }
    assert!(vmstat["numa_hit"] > 0);
}

#[test]
fn a_formula_can_name_every_counter_that_procfs_prints() {
    let run = &run_text(UNDER_PRESSURE, 1).runs[0];
    for counter in kontig_lab::vmstat::declared() {
        assert!(run.vmstat.contains_key(counter.name), "{}", counter.name);
    }
    for name in ["nr_dirtied", "nr_written", "nr_free_pages", "nr_file_pages", "numa_hit"] {
        assert!(run.vmstat[name] > 0, "{name}");
    }
    assert!(run.vmstat["nr_free_pages"] < 512 << 8, "a level is what it is at the end");
}

#[test]
fn tasks_side_by_side_have_their_own_time_where_each_has_a_name() {
    let named = |second: &str| {
        let text = format!(
            "id = 'two'\nsummary = 'x'\nassumptions = 'x'\nmachine = 'tiny-64m'\n\
             [[workload.phase]]\nname = 'measure'\nmeasured = true\n\
             [[workload.phase.task]]\nname = 'first'\nrun = {{ kind = 'heap', size = '4 MiB' }}\n\
             [[workload.phase.task]]\n{second}\ncpus = [1]\nrun = {{ kind = 'heap', size = '8 MiB' }}\n\
             [[variant]]\nname = 'a'\nprofile = '6.1'\n"
        );
        run_text(&text, 1)
    };
    let both = named("name = 'second'");
    let of = |name: &str| values(row(&both.result, name, MEASURE))[0].unwrap();
    assert!(of("second: user") > of("first: user") && of("first: system") > 0.0);
    let sum = of("first: user") + of("second: user");
    assert!((sum - of("user")).abs() < 1e-9, "{sum} s of {} s", of("user"));
    assert!(of_phases(&named("").result, "first: user").is_empty(), "the other could not be told");
}
