//! Experiments of several cases, and of several rounds on one ageing machine: from files to tables
//! and scores.

use kontig_lab::catalog;
use kontig_lab::outcome::Outcome;
use kontig_lab::plan::Views;
use kontig_lab::resolved::Resolved;
use kontig_lab::session::Session;
use kontig_lab::store::StoredResult;
use kontig_results::{CaveatKind, MEASURE, Row, Rule, TOTAL};
use std::collections::BTreeSet;
use std::path::Path;

const EXPERIMENT: &str = r#"id = "small"
summary = "x"
assumptions = "x"
machine = "tiny-64m"
target = "target.toml"
repetitions = 2

[workload]
prepare = { kind = "fragment", holes = "random" }
measure = { kind = "hugealloc", gfp = "GFP_KERNEL", give_up_after = 3 }

[[variant]]
name = "a"
profile = "5.6"

[[variant]]
name = "b"
profile = "7.2"
"#;

const TARGET: &str = r#"id = "published"
variants = ["a", "b"]

[[row]]
name = "stalls a success"
unit = "events"
formula = "compact_stall / (compact_success + compact_fail) or 0"
stat = "mean"
values = [1.0, 1.0]

[[row]]
name = "2M hugepages allocated"
unit = "hugepages"
headline = true
values = [1.0, 2.0]
"#;

/// The outcome of these files, or the error.
fn all(experiment: &str, target: &str) -> Result<Vec<Resolved>, String> {
    let d = tempfile::tempdir().unwrap();
    let path = d.path().join("e.toml");
    std::fs::write(&path, experiment).unwrap();
    std::fs::write(d.path().join("target.toml"), target).unwrap();
    let large = include_str!("../../../../machines/tiny-64m.toml");
    let large = large.replace("\"tiny-64m\"", "\"large\"").replace("\"80 MiB\"", "\"112 MiB\"");
    std::fs::write(d.path().join("large.toml"), large).unwrap();
    let resolved = catalog::experiment(path.to_str().unwrap()).and_then(|(e, source)| Resolved::all(&e, Some(&source)));
    resolved.map_err(|e| e.to_string().replace(d.path().to_str().unwrap(), "."))
}

fn run(experiment: &str, target: &str) -> Vec<Outcome> {
    let session = Session::new(all(experiment, target).unwrap(), 1, &Views::default()).unwrap();
    let (outcomes, error) = session.run(2, &|_| Ok(()));
    assert_eq!(error, None);
    outcomes
}

fn row<'a>(outcome: &'a Outcome, name: &str, phase: &str) -> &'a Row {
    let found = outcome.result.rows.iter().find(|row| row.name == name && row.phase == phase);
    found.unwrap_or_else(|| panic!("no row '{name}' of {phase}"))
}

fn with_rounds(n: u32) -> String {
    EXPERIMENT.replace("repetitions = 2", &format!("repetitions = 2\nrounds = {n}"))
}

#[test]
fn the_first_round_is_what_a_run_of_one_round_measures() {
    let (one, three) = (run(EXPERIMENT, TARGET).remove(0), run(&with_rounds(3), TARGET).remove(0));
    assert_eq!((one.result.rounds, three.result.rounds, three.result.repetitions), (1, 3, 2));
    for (one, three) in one.runs.iter().zip(&three.runs) {
        assert!(one.rounds.is_empty() && three.rounds.len() == 3);
        let round = &three.rounds[0];
        assert_eq!((&round.histograms, &round.vmstat), (&one.histograms, &one.vmstat));
        let of_one = |name: &str, phase: &str| {
            one.figures.iter().find(|r| r.figure.name == name && r.figure.phase == phase).and_then(|r| r.value)
        };
        for reading in &round.figures {
            let figure = &reading.figure;
            assert_eq!(reading.value, of_one(&figure.name, &figure.phase), "{} of {}", figure.name, figure.phase);
        }
        let levels: Vec<&str> =
            kontig_lab::vmstat::declared().filter(|counter| counter.is_level).map(|counter| counter.name).collect();
        for (name, value) in &three.vmstat {
            let mut of_rounds = three.rounds.iter().map(|round| round.vmstat[name]);
            if levels.contains(&name.as_str()) {
                assert_eq!(of_rounds.next_back(), Some(*value), "{name} at the end");
            } else {
                assert_eq!(of_rounds.sum::<u64>(), *value, "{name}: rounds follow each other without a gap");
            }
        }
        assert_eq!(three.phases.iter().filter(|phase| phase.name == MEASURE).count(), 3);
        assert!(three.phases.windows(2).all(|w| w[0].end_ns == w[1].start_ns));
    }
}

#[test]
fn a_machine_ages_over_its_rounds_and_is_not_booted_in_between() {
    let outcome = run(&with_rounds(2), TARGET).remove(0);
    // The first round's driver has freed its pages when the second round's begins.
    for run in &outcome.runs {
        let taken = |round: usize| {
            let figures = &run.rounds[round].figures;
            figures.iter().find(|r| r.figure.name == "2M hugepages allocated").and_then(|r| r.value).unwrap()
        };
        assert!(taken(0) > 2.0 * taken(1), "{} and then {}", taken(0), taken(1));
    }
    let own = row(&outcome, "2M hugepages allocated", MEASURE);
    assert_eq!(own.statistics[0].as_ref().map(|s| s.n), Some(4), "two repetitions of two rounds");
    assert!(outcome.result.rows.iter().any(|row| row.name == "elapsed" && row.phase == TOTAL));
}

#[test]
fn a_series_that_was_published_round_by_round_stands_beside_the_rounds() {
    let series = "rounds = 3\n[[series]]\nrow = '2M hugepages allocated'\nvariant = 'b'\nvalues = [9, 5, 3]\n";
    let target = TARGET.replace("[[row]]\nname = \"stalls", &format!("{series}[[row]]\nname = \"stalls"));
    let outcome = run(&with_rounds(3), &target).remove(0);
    let [ageing] = &outcome.result.ageing[..] else { panic!("{:?}", outcome.result.ageing) };
    assert_eq!((ageing.variant, ageing.published.as_slice()), (1, &[9.0, 5.0, 3.0][..]));
    let of_b = |i: usize| {
        let of_run = |run: &kontig_results::RunResult| {
            let figures = &run.rounds[i].figures;
            figures.iter().find(|r| r.figure.name == "2M hugepages allocated").and_then(|r| r.value).unwrap()
        };
        let values: Vec<f64> = outcome.runs.iter().filter(|run| run.variant == "b").map(of_run).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    assert_eq!(ageing.measured, [of_b(0), of_b(1), of_b(2)].map(Some), "the median of two is their mean");
    assert_eq!(ageing.step.direction_agrees, Some(true), "{ageing:?}");
    let wrong = all(&with_rounds(2), &target).unwrap_err();
    let expected =
        "./e.toml:7: rounds = 2, but the series of target published are of 3 rounds: another number goes without";
    assert_eq!(wrong, format!("{expected} target, [[lack]] and [[caveat]]"));
}

#[test]
fn a_row_is_worked_out_by_its_formula_for_each_run() {
    let outcome = run(EXPERIMENT, TARGET).remove(0);
    let shown = row(&outcome, "stalls a success", MEASURE);
    for (i, variant) in ["a", "b"].into_iter().enumerate() {
        let of_run = |run: &kontig_results::RunResult| {
            let n = |name: &str| run.vmstat[name] as f64;
            n("compact_stall") / (n("compact_success") + n("compact_fail"))
        };
        let each: Vec<f64> = outcome.runs.iter().filter(|run| run.variant == variant).map(of_run).collect();
        assert_eq!(shown.measured[i].unwrap().value, each.iter().sum::<f64>() / 2.0, "{variant}: {each:?}");
    }
    let target = TARGET.replace("compact_stall / (compact_success + compact_fail) or 0", "pgrescued + 1");
    let outcome = run(EXPERIMENT, &target).remove(0);
    let shown = row(&outcome, "stalls a success", MEASURE);
    assert_eq!((shown.measured.as_slice(), shown.steps[0].size_agrees), (&[None, None][..], Some(false)));
    let said = outcome.result.remarks.iter().map(|r| r.text.as_str()).find(|text| text.contains("pgrescued"));
    assert_eq!(said, Some("the simulated machine does not count pgrescued: no stalls a success"));
}

#[test]
fn a_declared_caveat_takes_a_row_out_of_the_score_and_into_one_of_its_own() {
    let without = run(EXPERIMENT, TARGET).remove(0).result;
    let of = without.score.measured.headline_within_2x.of;
    let caveat = "\n[[caveat]]\nkind = 'few-samples'\nreason = 'one sample'\nrows = ['2M hugepages allocated']\n";
    for (experiment, target) in
        [(EXPERIMENT.to_owned(), TARGET.to_owned() + caveat), (EXPERIMENT.to_owned() + caveat, TARGET.to_owned())]
    {
        let outcome = run(&experiment, &target).remove(0);
        let score = &outcome.result.score;
        assert_eq!(
            (score.measured.headline_within_2x.of, score.measured.direction.of),
            (of - 1, without.score.measured.direction.of - 1)
        );
        let [apart] = &score.apart[..] else { panic!("{score:?}") };
        assert_eq!((apart.kind, apart.rows, apart.size.of), (CaveatKind::FewSamples, 1, 1));
        let row = row(&outcome, "2M hugepages allocated", MEASURE);
        assert_eq!(row.caveat.as_ref().map(|c| c.reason.as_str()), Some("one sample"));
        assert_eq!(row.measured.len(), 2, "it is shown like any other");
    }
    let noise = TARGET.to_owned() + "\n[[caveat]]\nkind = 'null-test'\nreason = 'the same code'\n";
    let result = run(EXPERIMENT, &noise).remove(0).result;
    assert!(result.rows.iter().flat_map(|row| &row.steps).all(|step| step.rule == Rule::NullTest));
    assert_eq!((result.score.measured.direction.of, result.score.apart[0].rows), (0, 2), "all rows of it");
}

const CASES: &str = r#"
[[case]]
name = "small"

[[case]]
name = "large, eager"
machine = "large.toml"
sysctls = { "vm.min_free_kbytes" = 4000 }
"#;

/// The target's rows belong to the first case; the second has a target of its own.
fn of_cases() -> String {
    let own = "case = \"small\"\nname = \"2M";
    TARGET.replace("name = \"2M", own)
        + &TARGET[TARGET.rfind("[[row]]").unwrap()..].replace("name = \"2M", "case = \"large, eager\"\nname = \"2M")
}

#[test]
fn each_case_has_a_machine_settings_and_a_table_of_its_own() {
    let outcomes = run(&(EXPERIMENT.to_owned() + CASES), &of_cases());
    let names: Vec<_> = outcomes.iter().map(|o| (o.result.case.as_str(), o.result.machine.as_str())).collect();
    assert_eq!(names, [("small", "tiny-64m"), ("large, eager", "large")]);
    for outcome in &outcomes {
        let published: Vec<&str> =
            outcome.result.rows.iter().filter(|r| !r.published.is_empty()).map(|r| r.name.as_str()).collect();
        assert_eq!(published, ["stalls a success", "2M hugepages allocated"], "a row without a case is of each");
    }
    let alone = run(EXPERIMENT, TARGET).remove(0);
    let but_for_the_case = |o: &Outcome| {
        let runs = o.runs.iter().cloned().map(|run| kontig_results::RunResult { case: String::new(), ..run });
        runs.collect::<Vec<_>>()
    };
    assert_eq!(
        but_for_the_case(&outcomes[0]),
        but_for_the_case(&alone),
        "a case that changes nothing is the experiment"
    );
    let files: BTreeSet<String> =
        outcomes.iter().flat_map(|o| &o.runs).map(|run| StoredResult::run_file(run).unwrap().0).collect();
    assert_eq!(files.len(), 8, "none is stored over another: {files:?}");
    assert!(files.contains("runs/small/large__eager/a/1.json"), "{files:?}");
    assert!(files.iter().all(|file| !Path::new(file).is_absolute()));
}

#[test]
fn bad_cases_and_targets_are_refused_with_their_places() {
    let e = EXPERIMENT.to_owned() + CASES;
    let change = |from: &str, to: &str| {
        assert!(e.contains(from), "{from}");
        e.replacen(from, to, 1)
    };
    let cases = [
        (change("\"large.toml\"", "\"tiny-65m\""), "./e.toml:25: unknown machine 'tiny-65m': did you mean 'tiny-64m'?"),
        (change("large, eager", "small"), "./e.toml:24: cases 'small' and 'small' would be stored under one name"),
        (change("\"large, eager\"", "\"\""), "./e.toml:24: a case cannot be called ''"),
        (change("large, eager", "larger"), "of the target's rows: unknown case 'large, eager'"),
        (change("repetitions = 2", "rounds = 0"), "./e.toml:6: rounds = 0: nothing would run"),
        (
            EXPERIMENT.to_owned(),
            "./e.toml:5: rows of target published are of cases, such as 'small': the experiment has none",
        ),
    ];
    for (experiment, says) in cases {
        let said = all(&experiment, &of_cases()).unwrap_err();
        assert!(said.contains(says), "'{said}' instead of '{says}'");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn children_of_a_task_go_on_until_a_phase_kills_them() {
    let experiment = r#"id = "small"
summary = "x"
assumptions = "x"
machine = "tiny-64m"

[[workload.phase]]
name = "start"
measured = true

[[workload.phase.task]]
name = "script"
run = { kind = "steps", steps = [{ do = "start", run = { kind = "churn", size = "8 MiB", pause_us = 0 } }] }

[[workload.phase]]
name = "beside"
measured = true
seconds = 0.1

[[workload.phase]]
name = "killed"
measured = true
seconds = 0.1
kills = ["script"]

[[workload.phase]]
name = "after"
measured = true
seconds = 0.1

[[variant]]
name = "a"
profile = "6.1"
"#;
    let outcome = run(experiment, TARGET).remove(0);
    let [run] = &outcome.runs[..] else { panic!("{} runs", outcome.runs.len()) };
    let time = |name: &str| {
        let phase = run.phases.iter().find(|phase| phase.name == name).expect("it is a phase");
        phase.cpu.get("script").map_or(0, |time| time.user_ns + time.system_ns)
    };
    let busy = 90_000_000;
    // The time of what it has started is the script's own once that has ended.
    assert!(time("beside") == 0 && time("killed") > busy, "{} {}", time("beside"), time("killed"));
    assert_eq!(time("after"), 0);
}
