//! Runs that several experiments share, such as their baseline, run once: each experiment has the
//! result.

use kontig_lab::experiment::Experiment;
use kontig_lab::plan::Views;
use kontig_lab::resolved::Resolved;
use kontig_lab::run::{RunControl, run};
use kontig_lab::session::{Job, Session};
use kontig_results::RunResult;
use std::sync::{Arc, Mutex};

const BASELINE: &str = r#"summary = "x"
assumptions = "x"
machine = "tiny-64m"
repetitions = 2

[[workload.phase]]
name = "prepare"
[[workload.phase.task]]
run = { kind = "fragment", holes = "random" }

[[workload.phase]]
name = "measure"
measured = true
[[workload.phase.task]]
run = { kind = "hugealloc", gfp = "GFP_KERNEL", give_up_after = 20 }

[[variant]]
name = "NAME"
profile = "7.2"
"#;

/// An experiment with that baseline under this name, and a variant that has this sysctl as well.
fn experiment(id: &str, baseline: &str, sysctl: &str) -> String {
    let other = format!("[[variant]]\nname = \"other\"\nprofile = \"7.2\"\nsysctls = {{ {sysctl} }}\n");
    format!("id = \"{id}\"\n{}\n{other}", BASELINE.replace("NAME", baseline))
}

fn session(experiments: &[String], views: &Views) -> Session {
    let resolved = |text: &String| {
        let experiment: Experiment = toml::from_str(text).unwrap_or_else(|e| panic!("{e}"));
        Resolved::new(experiment, None).unwrap_or_else(|e| panic!("{e}"))
    };
    let resolved = experiments.iter().map(resolved).collect();
    Session::new(resolved, 1, views).unwrap_or_else(|e| panic!("{e}"))
}

/// Jobs that share a run share its progress.
fn are_one_run(a: &Job, b: &Job) -> bool {
    Arc::ptr_eq(&a.control.permille, &b.control.permille)
}

#[test]
fn a_baseline_of_two_experiments_runs_once_and_each_has_its_result_under_its_own_name() {
    let experiments = [
        experiment("first", "vanilla", "\"vm.compaction_proactiveness\" = 0"),
        experiment("second", "before", "\"vm.compaction_proactiveness\" = 100"),
    ];
    let session = session(&experiments, &Views::default());
    let jobs = session.jobs();
    let one_run = |i: usize| (0..jobs.len()).filter(|&j| are_one_run(&jobs[i], &jobs[j])).collect::<Vec<_>>();
    let all: Vec<Vec<usize>> = (0..jobs.len()).map(one_run).collect();
    // Two repetitions of each variant. Those of the baseline are shared with the other experiment.
    assert_eq!(all, [vec![0, 4], vec![1, 5], vec![2], vec![3], vec![0, 4], vec![1, 5], vec![6], vec![7]]);

    for threads in [1, 3] {
        let told: Mutex<Vec<RunResult>> = Mutex::default();
        let (outcomes, error) = session.run(threads, &|run| {
            told.lock().unwrap().push(run.clone());
            Ok(())
        });
        assert_eq!((outcomes.len(), error), (2, None));
        let told = told.into_inner().unwrap();
        assert_eq!(told.len(), jobs.len());
        for (job, kept) in jobs.iter().zip(outcomes.iter().flat_map(|outcome| &outcome.runs)) {
            let alone = run(&job.plan, &RunControl::default()).unwrap_or_else(|e| panic!("{e}"));
            let json = |run: &RunResult| serde_json::to_string(run).unwrap();
            assert!(told.iter().any(|run| json(run) == json(&alone)), "{} is told of", job.plan.title());
            // What was told is not held in full.
            let held = RunResult { events: Vec::new(), ..alone };
            assert!(json(&held) == json(kept), "{}", job.plan.title());
        }
    }
}

/// Whether an experiment's baseline shares a run with that of the changed experiment.
fn shares(of: &str, by: &str, views: &Views) -> bool {
    let first = experiment("first", "vanilla", "\"vm.compaction_proactiveness\" = 0");
    let second = first.replace("\"first\"", "\"second\"").replace(of, by);
    let session = session(&[first, second], views);
    // Two variants with two repetitions each.
    are_one_run(&session.jobs()[0], &session.jobs()[4])
}

#[test]
fn the_same_under_another_experiments_name_is_one_run() {
    assert!(shares("\"vanilla\"", "\"before\"", &Views::default()));
}

#[test]
fn runs_that_differ_in_what_decides_them_are_each_done() {
    let sysctls = "profile = \"7.2\"\nsysctls = { \"vm.min_free_kbytes\" = 4096 }\n\n[[variant]]";
    for (of, by) in [
        ("profile = \"7.2\"", "profile = \"6.12\""),
        ("profile = \"7.2\"\n\n[[variant]]", sysctls),
        ("give_up_after = 20", "give_up_after = 21"),
        ("repetitions = 2", "repetitions = 2\nrounds = 2"),
        ("tiny-64m", "desktop-32g"),
    ] {
        assert!(!shares(of, by, &Views::default()), "{by}");
    }
}

#[test]
fn runs_that_leave_files_are_each_done() {
    for views in [
        Views { procfs: Some("x".into()), ..Views::default() },
        Views { mmtests: Some("x".into()), ..Views::default() },
    ] {
        assert!(!shares("", "", &views), "{views:?}");
    }
}
