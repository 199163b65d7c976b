//! Records a real kernel twice: both recordings have the same bytes, and the engine agrees with
//! them.
//!
//! Booting a kernel needs packages that not every machine has. Without them a test writes a line
//! that begins with `skipped:`, which `.ci/run` counts, and passes. If they are installed and no
//! recording can be made, it fails under `CI=true`.

use kontig_oracle::{Verdict, verify};
use kontig_recorder::doctor::{Diagnosis, Finding, Health};
use kontig_recorder::experiment::{Asked, Plan};
use kontig_recorder::kernel::{Kernel, Series};
use kontig_recorder::{Control, doctor, record};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Outcome of the test on this machine.
#[derive(PartialEq, Eq, Debug)]
enum Duty {
    Record,
    Skip(String),
    Fail(String),
}

fn duty(found: &Diagnosis, ci: bool) -> Duty {
    if found.is_healthy() {
        Duty::Record
    } else if ci && found.has_all_packages() {
        Duty::Fail(format!("all packages are installed, but no kernel can be recorded: {}", found.obstacles()))
    } else {
        Duty::Skip(format!("no kernel was recorded: {}; 'kontig oracle doctor' shows a remedy", found.obstacles()))
    }
}

fn diagnosis(states: &[Health]) -> Diagnosis {
    let finding = |state: &Health| Finding { health: *state, what: format!("{state:?}") };
    Diagnosis { findings: states.iter().map(finding).collect(), remedies: Vec::new() }
}

#[test]
fn a_machine_that_has_the_packages_records_and_may_not_skip_under_ci() {
    let [fine, missing] =
        [&[Health::Fine, Health::Fine][..], &[Health::Fine, Health::Missing, Health::Wrong]].map(diagnosis);
    for ci in [false, true] {
        assert_eq!(duty(&fine, ci), Duty::Record);
        assert!(matches!(duty(&missing, ci), Duty::Skip(why) if why.contains("Missing, Wrong")));
    }
    let wrong = diagnosis(&[Health::Fine, Health::Wrong]);
    assert!(matches!(duty(&wrong, true), Duty::Fail(why) if why.contains("Wrong")));
    assert!(matches!(duty(&wrong, false), Duty::Skip(_)));
}

fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).expect("a recording");
    let one = |e: std::io::Result<std::fs::DirEntry>| {
        let e = e.expect("an entry");
        (e.file_name().to_string_lossy().into_owned(), std::fs::read(e.path()).expect("a file"))
    };
    entries.map(one).collect()
}

#[test]
fn two_boots_give_the_same_bytes_or_skipped() {
    recorded_twice("mixed", 20_000);
}

#[test]
fn two_boots_under_pressure_give_the_same_bytes_or_skipped() {
    recorded_twice("lru-kswapd", 45_000);
}

fn recorded_twice(experiment: &str, ops: usize) {
    let series = Series::V6_1;
    let ci = std::env::var("CI").is_ok_and(|v| v == "true");
    match duty(&doctor::examine(series, None), ci) {
        Duty::Record => {}
        // Not by 'eprintln', which a test that passes shows to nobody.
        Duty::Skip(why) => return writeln!(std::io::stderr(), "skipped: {why}").expect("an error stream"),
        Duty::Fail(why) => panic!("{why}"),
    }
    let dir = tempfile::tempdir().expect("a folder");
    let kernel = Kernel::find(series, None).expect("a kernel");
    let asked = Asked { experiment: experiment.into(), seed: 7, ops: Some(ops), ..Asked::default() };
    let plan = Plan::new(&asked, series).expect("an experiment");
    let stop = AtomicBool::new(false);
    let both = ["first", "second"].map(|name| {
        let out = dir.path().join(name);
        record(&plan, &kernel, &out, &Control { stop: &stop, progress: &|_| {} }).expect("a recording");
        out
    });

    let [first, second] = both.each_ref().map(|d| contents(d));
    assert!(first.keys().eq(second.keys()), "{:?} and {:?}", first.keys(), second.keys());
    for (name, bytes) in &first {
        assert!(second[name] == *bytes, "{name} differs between two boots");
    }
    let verdict = verify(&both[0]).expect("a recording that can be replayed");
    assert!(matches!(&verdict, Verdict::Equal(c) if c.operations == ops as u64), "{verdict:?}");
}
