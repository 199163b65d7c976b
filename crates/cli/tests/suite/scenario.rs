//! Several processes, a driver and a background task on their own CPUs: their figures
//! reach every table, document and page, although no code that runs, compares or
//! shows figures knows any of them.

use crate::common::{files, kontig, machine, write};
use kontig_lab::compare::{Subject, compare};
use kontig_lab::experiment::Variant;
use kontig_lab::plan::RunPlan;
use kontig_lab::run::{RunControl, run};
use kontig_lab::{catalog, profiles};
use kontig_program::figure::{Figure, MEASURE, Merge};
use kontig_program::{Batch, Frame, Gfp, Op, Order, Outcome, Program, Value};
use kontig_results::{ExperimentResult, RunResult};
use kontig_workload::churn::Churn;
use kontig_workload::fragmenter::{Fragment, Holes};
use kontig_workload::heap::Heap;
use kontig_workload::latencies::Latencies;
use kontig_workload::{Benchmark, Measured, Phase, Scenario, Start, Task};

/// A driver that allocates blocks of eight pages in pairs and frees one of each: not a kind of
/// workload in Kontig.
struct Pairs {
    pairs: u64,
}

#[derive(Clone)]
struct PairsDriver {
    left: u64,
    kept: u64,
    first: Option<Frame>,
    waits: Latencies,
}

const BLOCK: Order = Order::new(3);

impl Benchmark for Pairs {
    type Program = PairsDriver;

    fn program(&self, _: &Start) -> Result<PairsDriver, String> {
        Ok(PairsDriver {
            left: self.pairs,
            kept: 0,
            first: None,
            waits: Latencies::new("pair taken", "none was taken"),
        })
    }

    fn measured(&self, copies: &[&PairsDriver]) -> Measured {
        let kept = copies.iter().map(|driver| driver.kept).sum::<u64>();
        Measured {
            figures: vec![Figure::new("blocks kept", "blocks of 8").higher().merged(Merge::Max).read(kept as f64)],
            latencies: Latencies::of_all(copies.iter().map(|driver| &driver.waits)).into_iter().collect(),
            ending: None,
        }
    }
}

impl Program for PairsDriver {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        if let [Outcome { value: Value::Block(Some(first)), .. }, second @ Outcome { value: Value::Block(_), .. }] =
            done
        {
            self.kept += 1;
            self.waits.record(second.end_ns - done[0].start_ns);
            self.first = Some(*first);
        }
        if let Some(block) = self.first.take() {
            todo.push(Op::SplitPages { block, order: BLOCK });
            todo.push(Op::FreePages { first: block, pages: 8 });
        } else if self.left > 0 {
            self.left -= 1;
            let alloc = Op::AllocPages { gfp: Gfp::KERNEL, order: BLOCK };
            todo.extend([alloc.clone(), alloc]);
        }
    }
    fn progress(&self) -> f64 {
        0.5
    }
}

/// Fragmented memory; then two heaps, the driver and a process that replaces its memory, each on
/// its own CPU.
fn scenario(pairs: u64) -> Scenario {
    let fragment = Fragment { holes: Holes::Random, freed_per_section: 384, leave: None };
    let measured = vec![
        Task::new(Heap { size: "4 MiB".into() }).named("heaps").on([0, 1]),
        Task::new(Pairs { pairs }).on([2]),
        Task::new(Churn { size: "2 MiB".into(), stretch: 16, pause_us: 10.0 }).named("churn").on([3]).in_background(),
    ];
    Scenario {
        groups: Vec::new(),
        phases: vec![Phase::new("prepare", vec![Task::new(fragment)]), Phase::new(MEASURE, measured).measured()],
    }
}

/// A machine of four CPUs and 64 MiB, with huge pages for processes.
const MACHINE: &[(&str, &str)] = &[("cpus = 2", "cpus = 4"), ("thp = false", "thp = true")];

fn plan(scenario: Scenario, profile: &str, repetition: u32) -> RunPlan {
    let d = tempfile::tempdir().unwrap();
    RunPlan {
        experiment: "pairs".into(),
        case: String::new(),
        rounds: 1,
        variant: Variant { name: profile.into(), profile: profile.into(), ..Variant::default() },
        profile: profiles::named(profile).unwrap(),
        machine: catalog::machine(&d.path().join(machine(d.path(), MACHINE)).display().to_string()).unwrap().0,
        begins_as: None,
        is_random: scenario.is_random(),
        scenario,
        repetition,
        seed: 1 + u64::from(repetition),
        mmtests: None,
        procfs: None,
        trace: None,
        history: None,
        pictures: true,
    }
}

fn carried_out(plan: &RunPlan) -> RunResult {
    plan.check().unwrap_or_else(|e| panic!("{e}"));
    run(plan, &RunControl::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn table(runs: &[RunResult], profiles: &[&str]) -> ExperimentResult {
    let variants: Vec<Variant> = profiles.iter().map(|profile| plan(scenario(1), profile, 0).variant).collect();
    let (id, machine, variants) = ("pairs", "four CPUs", variants.as_slice());
    compare(
        &Subject {
            id,
            case: "",
            machine,
            variants,
            target: None,
            caveats: &[],
            lacks: &[],
            notes: &[],
            elsewhere: None,
        },
        runs,
    )
}

#[test]
fn a_benchmark_that_nothing_else_knows_has_its_figures_in_the_table_the_json_and_the_page() {
    let profiles = ["5.6", "6.1"];
    let plans = profiles.iter().flat_map(|profile| (0..2).map(move |i| plan(scenario(50), profile, i)));
    let runs: Vec<RunResult> = plans.map(|plan| carried_out(&plan)).collect();
    let e = table(&runs, &profiles);
    let value = |name: &str| {
        let row = e.rows.iter().find(|row| row.name == name && row.phase == MEASURE);
        row.unwrap_or_else(|| panic!("no row {name}")).measured[1]
            .unwrap_or_else(|| panic!("{name} has no value"))
            .value
    };
    assert_eq!(value("blocks kept"), 50.0);
    assert_eq!(value("pair taken samples"), 100.0, "of both repetitions");
    assert_eq!(value("heaps: 2 MiB of heap touched samples"), 8.0, "two processes of 4 MiB, twice");
    assert!(value("pair taken p50") > 0.0 && value("background CPU time") > 0.0);
    assert!(!e.rows.iter().any(|row| row.name.contains("pages replaced")), "what is in the background is not measured");
    let json = serde_json::to_string(&e).unwrap();
    let page = kontig_report::html::page(&kontig_report::html::Page {
        title: "t".into(),
        subtitle: String::new(),
        overview: None,
        experiments: vec![kontig_report::html::PageExperiment {
            result: &e,
            runs: &runs,
            pace: &[],
            pace_machine: String::new(),
            summary: String::new(),
            notes: String::new(),
        }],
    });
    let text = kontig_report::table::render(&e, &kontig_report::table::Figures::All, None, false);
    for name in ["blocks kept", "pair taken p99", "heaps: 2 MiB of heap touched p50", "background CPU time"] {
        for (what, shown) in [("table", &text), ("JSON", &json), ("page", &page)] {
            assert!(shown.contains(name), "{name} is not in the {what}");
        }
    }
    let curve = |name: &str| format!("\"name\":\"{name}\",\"unit\":\"us\",\"buckets\"");
    assert!(page.contains(&curve("pair taken")) && page.contains(&curve("heaps: 2 MiB of heap touched")));
    let cpu = &runs[0].phases[1].cpu;
    let tasks: Vec<&str> = cpu.keys().map(String::as_str).collect();
    assert_eq!(tasks, ["churn", "heaps", "kcompactd0", "kswapd0", "workload"]);
    assert!(["churn", "heaps", "workload"].iter().all(|task| cpu[*task].system_ns > 0), "{cpu:?}");
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_other_holes() {
    let of = |repetition| carried_out(&plan(scenario(20), "6.1", repetition));
    assert_eq!(of(0), of(0));
    assert_ne!(of(0).map, of(1).map);
}

#[test]
fn phases_of_more_and_more_drivers_are_told_apart() {
    let drivers =
        |n: usize| Phase::new(format!("{n} drivers"), vec![Task::new(Pairs { pairs: 10 }).on(0..n)]).measured();
    let run = carried_out(&plan(Scenario { groups: Vec::new(), phases: vec![drivers(1), drivers(3)] }, "6.1", 0));
    assert_eq!(run.figure("blocks kept", "1 drivers"), Some(10.0));
    assert_eq!(run.figure("blocks kept", "3 drivers"), Some(30.0));
    let e = table(&[run], &["6.1"]);
    let samples = |phase: &str| {
        let row = e.rows.iter().find(|row| row.name == "pair taken p50" && row.phase == phase).unwrap();
        row.measured[0].and_then(|m| m.samples)
    };
    assert_eq!(
        [samples("1 drivers"), samples("3 drivers")],
        [Some(10), Some(30)],
        "each phase has its own distribution"
    );
    let text = kontig_report::table::render(&e, &kontig_report::table::Figures::All, None, false);
    let kept = text.lines().find(|line| line.starts_with(" blocks kept, blocks of 8")).expect(&text);
    assert_eq!(kept.split_whitespace().rev().take(3).collect::<Vec<_>>(), ["–", "30", "10"], "{text}");
}

#[test]
fn a_measured_task_ends_with_a_phase_that_lasts_a_time_and_a_background_task_goes_on() {
    let churn = || Task::new(Churn { size: "1 MiB".into(), stretch: 16, pause_us: 10.0 });
    let first = Phase::new("first", vec![churn().named("measured"), churn().named("behind").on([1]).in_background()]);
    let phases = vec![first.measured().lasting(5_000_000), Phase::new("second", vec![]).measured().lasting(5_000_000)];
    let run = carried_out(&plan(Scenario { groups: Vec::new(), phases }, "6.1", 0));
    assert_eq!(run.phases[1].end_ns - run.phases[1].start_ns, 5_000_000);
    assert!(run.figure("measured: pages replaced", "first").is_some_and(|pages| pages > 100.0));
    let busy = |phase: usize, task: &str| run.phases[phase].cpu[task].system_ns;
    assert!(busy(0, "measured") > 500_000 && busy(1, "measured") < 100_000, "{:?}", run.phases[1].cpu);
    assert!(busy(0, "behind") > 500_000 && busy(1, "behind") > 500_000);
}

/// The same as a file: four CPUs, two heaps, a huge page driver, and
/// memory replaced in the background.
const EXPERIMENT: &str = r#"id = "busy"
summary = "Heaps and a driver beside a process that replaces its memory"
assumptions = "None."
machine = "machine.toml"
repetitions = 2

[[workload.phase]]
name = "prepare"
task = [{ run = { kind = "fragment", holes = "random" } }]

[[workload.phase]]
name = "measure"
measured = true

[[workload.phase.task]]
name = "heaps"
cpus = [0, 1]
run = { kind = "heap", size = "4 MiB" }

[[workload.phase.task]]
name = "driver"
cpus = [2]
run = { kind = "hugealloc", gfp = "GFP_KERNEL", give_up_after = 2 }

[[workload.phase.task]]
name = "churn"
background = true
cpus = [3]
run = { kind = "churn", size = "2 MiB" }

[[variant]]
name = "6.1"
profile = "6.1"
"#;

#[test]
fn a_file_of_several_tasks_runs_like_any_other_and_again() {
    let d = tempfile::tempdir().unwrap();
    machine(d.path(), MACHINE);
    let file = write(d.path(), "busy.toml", EXPERIMENT);
    let run = |more: &[&str]| {
        let args = [&["run", &file][..], more].concat();
        let out = kontig(d.path(), &args).assert().success().stderr("").get_output().stdout.clone();
        String::from_utf8(out).unwrap()
    };
    let text = run(&["--out", "result", "--html", "page.html", "--all-figures"]);
    let json = run(&["--json"]);
    let page = std::fs::read_to_string(d.path().join("page.html")).unwrap();
    for name in ["heaps: 2 MiB of heap touched p50", "driver: 2M hugepages allocated", "background CPU time"] {
        assert!([&text, &json, &page].iter().all(|shown| shown.contains(name)), "{name} in\n{text}");
    }
    assert!(text.contains("driver: ended at 2 failed allocations in a row, with "), "{text}");
    let again = kontig(d.path(), &["rerun", "result"]).assert().success();
    let again = String::from_utf8(again.get_output().stdout.clone()).unwrap();
    assert!(again.contains("identical, 2 runs byte for byte"), "{again}");
    assert!(files(d.path()).iter().any(|f| f.ends_with("runs/busy/6.1/1.json")), "{:?}", files(d.path()));
}

#[test]
fn a_bad_scenario_is_refused_in_one_line() {
    let d = tempfile::tempdir().unwrap();
    machine(d.path(), MACHINE);
    let refused = |from: &str, to: &str| {
        assert!(EXPERIMENT.contains(from));
        let file = write(d.path(), "wrong.toml", &EXPERIMENT.replace(from, to));
        let assert = kontig(d.path(), &["run", &file]).assert().code(2).stdout("");
        String::from_utf8(assert.get_output().stderr.clone()).unwrap()
    };
    let cases = [
        ("cpus = [3]", "cpus = [4]", "cpus = [4]: the machine has CPUs 0 to 3"),
        ("cpus = [0, 1]", "cpus = [0, 0]", "task 'heaps' names CPU 0 twice in cpus = [0, 0]"),
        ("\"4 MiB\"", "\"32 MiB\"", "size = \"32 MiB\" in 2 copies: the machine has 63 MiB: choose less"),
        ("\"2 MiB\"", "\"64 MiB\"", "size = \"64 MiB\": the machine has 63 MiB: choose less"),
        ("measured = true", "measured = true\nseconds = 0", "phase 'measure': seconds = 0"),
        ("cpus = [2]", "cpu = [2]", "unknown key 'cpu': did you mean 'cpus'?"),
        ("background = true", "background = false", "task 'churn' goes on until it is stopped"),
        ("name = \"driver\"", "name = \"heaps\"", "task 'heaps' is there twice: give each task another name"),
        ("measured = true", "measured = false", "no phase is measured: measured = true"),
        ("name = \"measure\"", "name = \"allocate\"", "the only phase that is measured is called 'measure'"),
        ("kind = \"churn\"", "kind = \"chrun\"", "unknown value 'chrun': did you mean 'churn'?"),
        (
            "[[workload.phase]]\nname = \"prepare\"",
            "[workload]\nsettle_s = 3\n[[workload.phase]]\nname = \"prepare\"",
            "'prepare'",
        ),
    ];
    for (from, to, said) in cases {
        let message = refused(from, to);
        assert!(message.contains(said) && message.lines().count() == 1, "{said}: {message}");
        let line =
            message.strip_prefix("kontig: ./wrong.toml:").and_then(|rest| rest.split_once(": ")).expect(&message).0;
        // The line is the changed one, or that of the part it contradicts.
        let changed = EXPERIMENT[..EXPERIMENT.find(from).unwrap()].matches('\n').count() + 1;
        assert!(line.parse::<usize>().unwrap().abs_diff(changed) <= 2, "line {changed}: {message}");
    }
}
