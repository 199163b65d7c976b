//! Runs that prepare the machine in the same way are measured on copies of one, with the same
//! result to the byte as if each had prepared its own. Pictures are taken where they are shown,
//! without a trace in anything else.

use kontig_lab::experiment::Experiment;
use kontig_lab::outcome::Outcome;
use kontig_lab::plan::Views;
use kontig_lab::resolved::Resolved;
use kontig_lab::run::{RunControl, run};
use kontig_lab::session::Session;
use kontig_results::{MemoryMap, RunResult};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// A process replaces its memory from the preparation to the end; a driver is measured at four
/// paces.
const EXPERIMENT: &str = r#"id = "paced"
summary = "x"
assumptions = "x"
machine = "tiny-64m"
repetitions = 2

[[workload.phase]]
name = "prepare"
[[workload.phase.task]]
run = { kind = "fragment", holes = "random" }

[[workload.phase]]
name = "settle"
seconds = 1.5
[[workload.phase.task]]
name = "churn"
background = true
cpus = [1]
run = { kind = "churn", size = "8 MiB", stretch = 16, pause_us = 30 }

[[workload.phase]]
name = "measure"
measured = true
[[workload.phase.task]]
run = { kind = "hugealloc", gfp = "GFP_KERNEL", give_up_after = 20 }

[[variant]]
name = "5.6"
profile = "5.6"

[[variant]]
name = "100"
profile = "7.2"
sysctls = { "vm.compaction_proactiveness" = 100 }

[pace]
machine = "tiny-64m"
pause_us = [0, 20, 300, 50000]
"#;

/// The preparation pauses too: it ends with all memory taken, so nothing else maps any.
const PACED_PREPARATION: [(&str, &str); 2] = [
    (
        r#"{ kind = "fragment", holes = "random" }"#,
        r#"{ kind = "hugealloc", gfp = "GFP_HIGHUSER_MOVABLE", give_up_after = 1 }"#,
    ),
    (r#"{ kind = "churn", size = "8 MiB", stretch = 16, pause_us = 30 }"#, r#"{ kind = "compact" }"#),
];

fn session(text: &str, maps: bool) -> Session {
    let experiment: Experiment = toml::from_str(text).unwrap_or_else(|e| panic!("{e}"));
    let resolved = Resolved::new(experiment, None).unwrap_or_else(|e| panic!("{e}"));
    Session::new(vec![resolved], 1, &Views { maps, ..Views::default() }).unwrap_or_else(|e| panic!("{e}"))
}

/// Every run in its stored form, by variant and repetition, and all outcomes.
fn runs(session: &Session, threads: usize) -> (BTreeMap<(String, u32), RunResult>, Outcome) {
    let finished = Mutex::new(BTreeMap::new());
    let (mut outcomes, error) = session.run(threads, &|run| {
        let before = finished.lock().unwrap().insert((run.variant.clone(), run.repetition), run.clone());
        assert!(before.is_none(), "{} ran twice", run.variant);
        Ok(())
    });
    assert_eq!(error, None);
    (finished.into_inner().unwrap(), outcomes.remove(0))
}

fn json(run: &RunResult) -> String {
    serde_json::to_string(run).unwrap()
}

#[test]
fn a_run_measured_on_a_copy_is_to_the_byte_the_run_that_prepared_its_own_machine() {
    let session = session(EXPERIMENT, false);
    let (together, outcome) = runs(&session, 1);
    assert_eq!((together.len(), outcome.pace.len()), (2 * 2 + 2 * 4, 2 * 4));
    for job in session.jobs() {
        let alone = run(&job.plan, &RunControl::default()).unwrap_or_else(|e| panic!("{e}"));
        let name = (job.plan.variant.name.clone(), job.plan.repetition);
        assert!(alone.vmstat["compact_stall"] > 0, "{name:?}: nothing but quick allocations");
        assert!(json(&alone) == json(&together[&name]), "{name:?}");
    }
    for threads in [2, 16] {
        let (again, of_all) = runs(&session, threads);
        assert!(again.iter().zip(&together).all(|(a, b)| (a.0, json(a.1)) == (b.0, json(b.1))), "{threads} threads");
        assert_eq!((of_all.result, of_all.pace), (outcome.result.clone(), outcome.pace.clone()));
    }
}

/// Kernels that differ in compaction runs alone, some of them by one rule more.
const MENDED: &str = r#"id = "mended"
summary = "x"
assumptions = "x"
machine = "tiny-64m"
repetitions = 2

[[workload.phase]]
name = "prepare"
[[workload.phase.task]]
run = { kind = "fragment", holes = "random" }

[[workload.phase]]
name = "pages"
seconds = 2
measured = true
[[workload.phase.task]]
run = { kind = "churn", size = "4 MiB", stretch = 16, pause_us = 30 }
background = true
name = "churn"

[[workload.phase]]
name = "huge pages"
measured = true
[[workload.phase.task]]
run = { kind = "hugealloc", gfp = "GFP_HIGHUSER_MOVABLE", give_up_after = 20 }

[[variant]]
name = "as it was"
profile = "3.13"

[[variant]]
name = "3"
profile = "3.13"
switches = ["compaction-early-reset"]

[[variant]]
name = "3 to 6"
profile = "3.13"
switches = [
    "compaction-early-reset",
    "compaction-meets",
    "compaction-spares-unsuitable",
    "compaction-resets-on-meeting",
]

[[variant]]
name = "otherwise"
profile = "3.13"
sysctls = { "vm.min_free_kbytes" = 4000 }

[[variant]]
name = "later"
profile = "4.6"
"#;

/// As it is, with compaction in its preparation, and with none at all.
const OTHERWISE: [(&str, &str); 3] = [
    ("", ""),
    ("name = \"prepare\"", "name = \"prepare\"\n[[workload.phase.task]]\nrun = { kind = \"compact\" }"),
    (
        "run = { kind = \"hugealloc\", gfp = \"GFP_HIGHUSER_MOVABLE\", give_up_after = 20 }",
        "run = { kind = \"heap\", size = \"1 MiB\" }",
    ),
];

#[test]
fn kernels_that_differ_in_compaction_runs_alone_begin_as_one_and_end_to_the_byte_as_each_by_itself() {
    for (n, (of, by)) in OTHERWISE.into_iter().enumerate() {
        let text = if of.is_empty() { MENDED.to_string() } else { MENDED.replace(of, by) };
        let session = session(&text, false);
        let (together, _) = runs(&session, 2);
        assert_eq!(together.len(), 5 * 2);
        let mut results = std::collections::BTreeSet::new();
        for job in session.jobs() {
            let alone = run(&job.plan, &RunControl::default()).unwrap_or_else(|e| panic!("{e}"));
            let name = (job.plan.variant.name.clone(), job.plan.repetition);
            assert_eq!(alone.vmstat["compact_stall"] > 0, n < 2, "{name:?}");
            assert!(json(&alone) == json(&together[&name]), "{name:?}");
            if job.plan.repetition == 0 {
                results.insert(format!("{:?}", alone.vmstat));
            }
        }
        assert!(n == 2 || results.len() > 3, "the kernels differ once they compact: {}", results.len());
    }
}

#[test]
fn points_whose_preparation_has_the_pause_prepare_each_their_own() {
    let paced = PACED_PREPARATION.iter().fold(EXPERIMENT.to_string(), |text, (of, by)| text.replace(of, by));
    let session = session(&paced, false);
    let (together, _) = runs(&session, 2);
    let start = |name: &str| together[&(name.to_string(), 0)].phases[2].start_ns;
    assert!(start("5.6, pause 50000 us") > start("5.6, pause 0 us"), "the pause is in the preparation");
    for job in session.jobs().iter().filter(|job| job.plan.variant.name.contains("pause")) {
        let alone = run(&job.plan, &RunControl::default()).unwrap_or_else(|e| panic!("{e}"));
        assert!(json(&alone) == json(&together[&(job.plan.variant.name.clone(), 0)]), "{}", job.plan.title());
    }
}

#[test]
fn pictures_are_taken_of_the_first_repetitions_if_somebody_looks_and_change_nothing_else() {
    let of = |maps| runs(&session(EXPERIMENT, maps), 2);
    let ((with, of_all), (without, of_none)) = (of(true), of(false));
    let pictured: Vec<_> = with.iter().filter(|(_, run)| !run.map.frames.is_empty()).map(|(name, _)| name).collect();
    assert_eq!(pictured, [&("100".to_string(), 0), &("5.6".to_string(), 0)]);
    assert!(without.values().all(|run| run.map == MemoryMap::default()));
    for (name, run) in &with {
        let bare = RunResult { map: MemoryMap::default(), ..run.clone() };
        assert!(json(&bare) == json(&without[name]), "{name:?}");
    }
    assert_eq!((of_all.result, of_all.pace), (of_none.result, of_none.pace));
}

#[test]
fn a_session_that_is_stopped_or_fails_ends_though_threads_wait_for_a_preparation() {
    let session = session(EXPERIMENT, false);
    session.stop_flag().store(true, std::sync::atomic::Ordering::Relaxed);
    let (outcomes, error) = session.run(3, &|_| Ok(()));
    assert!(outcomes.is_empty() && error.is_some());
    // A preparation that fails does not leave helpers waiting.
    let session = self::session(EXPERIMENT, false);
    let wrong = || kontig_error::Error::Asked(kontig_error::AskedWrongly::Value("no".into()));
    let (outcomes, error) = session.run(16, &|run| if run.variant.contains("pause") { Err(wrong()) } else { Ok(()) });
    assert_eq!((outcomes.len(), error), (0, Some(wrong())));
}
