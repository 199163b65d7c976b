//! Memory control groups in the laboratory: what is refused, and what a run counts of each group.

use kontig_error::Error;
use kontig_lab::catalog;
use kontig_lab::plan::Views;
use kontig_lab::resolved::Resolved;
use kontig_lab::session::Session;
use kontig_lab::what_if::{Changes, what_if};
use kontig_results::RunResult;
use std::fs;

/// 24 MiB are written in a container of 16 MiB, and 16 MiB beside it, in a part of another.
const WORKLOAD: &str = r#"
summary = "a container above its limit"
machine = "guest-512m"

[[group]]
name = "small"
max = "16 MiB"

[[group]]
name = "other"

[[group]]
name = "part"
parent = "other"
max = "64 MiB"

[[phase]]
name = "measure"
measured = true

[[phase.task]]
name = "a"
group = "small"
run = { kind = "steps", steps = [{ do = "fill", size = "24 MiB" }, { do = "touch" }] }

[[phase.task]]
name = "b"
group = "part"
run = { kind = "steps", steps = [{ do = "fill", size = "16 MiB" }, { do = "sleep", ms = 10 }] }
"#;

/// The runs of a workload with these changes.
fn runs(text: &str, changes: &Changes) -> Result<Vec<RunResult>, Error> {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("mine.toml");
    fs::write(&path, text).expect("it is written");
    let (experiment, source, _) = catalog::to_run(path.to_str().expect("UTF-8"))?;
    let experiment = what_if(experiment, changes)?.experiment;
    let session = Session::new(Resolved::all(&experiment, Some(&source))?, 1, &Views::default())?;
    let (outcomes, error) = session.run(1, &|_| Ok(()));
    error.map_or(Ok(()), Err)?;
    Ok(outcomes.into_iter().flat_map(|outcome| outcome.runs).collect())
}

fn with(name: &str, values: &[&str]) -> Changes {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    Changes { parameters: vec![(name.into(), values)], ..Changes::default() }
}

fn figure(run: &RunResult, name: &str) -> f64 {
    let is_it = |figure: &&kontig_results::Reading| figure.figure.name == name && figure.figure.phase == "measure";
    run.figures.iter().find(is_it).and_then(|reading| reading.value).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn each_group_has_its_own_counts_and_a_group_those_of_what_is_in_it() {
    let runs = runs(WORKLOAD, &Changes::default()).unwrap_or_else(|e| panic!("{e}"));
    let [run] = runs.as_slice() else { panic!("{} runs", runs.len()) };
    let of = |name: &str| figure(run, name);
    assert_eq!(run.variant, "6.12", "the kernel whose groups are known");
    assert!(of("group small: memory.current") <= 16.0);
    let moved = of("group small: pswpout");
    assert!(moved >= 2048.0 && of("group small: events max") > 0.0, "{moved}");
    assert_eq!((of("group other: pswpout"), of("group part: pswpout")), (0.0, 0.0));
    assert!(of("group part: anon") >= 16.0 && of("group part: anon") == of("group other: anon"));
    assert_eq!(run.vmstat["pswpout"] as f64, moved, "the machine's are the group's");
}

#[test]
fn groups_have_generations_of_their_own_where_these_are_on() {
    let settings = vec![("lru_gen.enabled".into(), ["0", "1", "7"].map(String::from).to_vec())];
    let profiles = vec!["6.12".into(), "7.2".into()];
    let runs = runs(WORKLOAD, &Changes { profiles, settings, ..Changes::default() }).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(runs.len(), 6);
    for run in &runs {
        let of = |name: &str| figure(run, name);
        let (current, moved) = (of("group small: memory.current"), of("group small: pswpout"));
        assert!(current <= 16.0 && moved >= 2048.0, "{}: {current} MiB, {moved} pages", run.variant);
        assert_eq!(of("group part: pswpout"), 0.0, "{}", run.variant);
        assert!(of("group part: anon") >= 16.0, "{}", run.variant);
    }
}

#[test]
fn a_limit_is_a_parameter_of_the_workload() {
    let runs = runs(WORKLOAD, &with("group.small.max", &["20MiB", "32MiB", "max"])).unwrap_or_else(|e| panic!("{e}"));
    let [near, room, none] = runs.as_slice() else { panic!("{} runs", runs.len()) };
    assert_eq!(near.variant, "6.12+group.small.max=20MiB");
    let swapped = [near, room, none].map(|run| figure(run, "group small: pswpout") > 0.0);
    assert_eq!(swapped, [true, false, false]);
    assert!(figure(none, "group small: anon") > 23.5, "all but what is in CPUs' batches");
}

#[test]
fn a_machine_or_kernel_without_groups_is_refused_with_what_to_choose() {
    let refused = |text: &str, changes: &Changes| runs(text, changes).expect_err("refused").to_string();
    let none = Changes::default();
    let old = refused(WORKLOAD, &Changes { profiles: vec!["6.1".into()], ..none.clone() });
    assert!(old.contains("the memory control groups of 6.1 are not known: choose --profile 6.12 or 7.2"), "{old}");
    let diskless = refused(&WORKLOAD.replace("guest-512m", "tiny-64m"), &none);
    assert!(diskless.contains("machine tiny-64m has no [[disk]]"), "{diskless}");
    let unknown = refused(&WORKLOAD.replace("group = \"part\"", "group = \"prat\""), &none);
    assert!(unknown.contains("mine.toml:28:") && unknown.contains("group 'prat' is none of"), "{unknown}");
    let late = refused(&WORKLOAD.replace("parent = \"other\"", "parent = \"later\""), &none);
    assert!(late.contains("mine.toml:14:"), "{late}");
}

#[test]
fn a_task_that_no_limit_leaves_room_for_ends_the_run_with_the_groups_name() {
    let said = runs(WORKLOAD, &with("group.small.max", &["8KiB"])).expect_err("killed").to_string();
    assert!(said.contains("group small"), "{said}");
}
