//! A snapshot of the host the tests run on: a real kernel's files, whatever it is. Reading them
//! takes root. Without it a test writes a line that begins with `skipped:`, which `.ci/run` counts,
//! and passes.

use kontig_live::caller::Caller;
use kontig_live::check::{Check, Verdict};
use kontig_live::frame::State;
use kontig_live::need::Need;
use kontig_live::stalls::instance::Instance;
use kontig_live::stalls::watch::Watch;
use kontig_live::{Roots, Snapshot};
use std::io::Write;

/// Says so where it is seen though the test passes: the harness keeps what `eprintln` writes.
fn skipped(why: &str) {
    writeln!(std::io::stderr(), "skipped: {why}").expect("an error stream");
}

fn snapshot() -> Option<Snapshot> {
    let page_size = rustix::param::page_size() as u64;
    match Snapshot::take(&Roots::default(), page_size) {
        Ok(snapshot) => Some(snapshot),
        Err(e) if e.is_missing() || e.is_permission() => {
            skipped(&format!("no snapshot of this host was taken: {e}"));
            None
        }
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn its_free_blocks_are_those_that_the_kernel_lists_or_skipped() {
    let Some(snapshot) = snapshot() else { return };
    // It goes on between the two.
    assert!(snapshot.agreement() > 0.8, "{}", snapshot.agreement());
    for zone in &snapshot.zones {
        // What is initialised when it is wanted is not managed yet.
        let given: u64 = State::ALL
            .iter()
            .filter(|s| !matches!(s, State::Hole | State::NotManaged | State::Reserved | State::Deferred))
            .map(|s| snapshot.census(zone.frames())[*s as usize])
            .sum();
        let differs = given.abs_diff(zone.managed) as f64 / zone.managed.max(1) as f64;
        assert!(differs < 0.02, "{}: {given} frames in use or free, {} managed", zone.title(), zone.managed);
    }
}

#[test]
fn its_file_is_read_as_it_was_written_or_skipped() {
    let Some(snapshot) = snapshot() else { return };
    assert!(Snapshot::parse(&snapshot.to_text()).expect("it was written just now") == snapshot);
}

#[test]
fn it_is_a_consistent_machine_of_the_engine_or_skipped() {
    let Some(snapshot) = snapshot() else { return };
    for lru in [false, true] {
        let made = snapshot.machine(&kontig_profiles::linux("6.12"), lru);
        match snapshot.suits() {
            Ok(()) => made.expect("a host that suits").check().expect("it is consistent"),
            Err(why) => {
                assert_eq!(made.err(), Some(why.clone()));
                skipped(&format!("no machine was made of this host's snapshot: {why}"));
            }
        }
    }
}

#[test]
fn one_page_is_there_and_more_than_all_memory_is_not_or_skipped() {
    let Some(snapshot) = snapshot() else { return };
    let size = snapshot.host.page_size;
    let check = |text: &str| {
        let ladder = Need::parse_ladder(text, size).expect("a need");
        Check::of_snapshot(&snapshot, &kontig_profiles::linux("6.12"), &[ladder], &Caller::default(), |_| {}).verdict
    };
    assert_eq!(check("1xorder0"), Verdict::Met);
    assert!(matches!(check("1000000x1G"), Verdict::NotReachable | Verdict::Unknown));
    // Of a ladder the second rung is enough.
    assert_eq!(check("1000000x1G|1xorder0"), Verdict::Met);
}

#[test]
fn a_trace_of_its_own_is_made_read_and_removed_or_skipped() {
    let watch = match Watch::begin(&Roots::default()) {
        Ok(watch) => watch,
        Err(e) => return skipped(&format!("this host is not traced: {e}")),
    };
    let mut instance = Instance::make(&Roots::default()).expect("a process may have several");
    let dir = instance.dir().to_path_buf();
    let is_on = std::fs::read_to_string(dir.join("events/compaction/mm_compaction_begin/enable"));
    assert_eq!(is_on.expect("an event").trim(), "1");
    assert!(std::fs::remove_dir(&dir).is_err(), "what is being read is not removed");
    assert!(instance.pipe().is_some());
    drop(instance);
    assert!(!dir.exists());
    let stalls = watch.take();
    assert_eq!(stalls.not_known, None);
    drop(watch);
    let left = std::fs::read_dir(dir.parent().expect("all instances")).expect("read").flatten();
    let mine = format!("kontig-{}-", std::process::id());
    assert_eq!(left.filter(|entry| entry.file_name().to_string_lossy().starts_with(&mine)).count(), 0);
}
