//! Replays of real kernels: the engine returns every pfn, scans every range, moves every page and
//! counts every event as the kernel did, and leaves the zone with the same lists in the same order.
//!
//! Every folder under `oracle/golden` is replayed. The engine's checker walks the whole machine on
//! the way.

use crate::replayed::{golden, verdict};
use kontig_oracle::Recording;
use kontig_oracle::recording::NODE;
use kontig_oracle::replay::Compared;
use kontig_oracle::verify::Verdict;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The counts of what was compared in a recording that the engine reproduces, or why it does not.
fn compared(name: &str) -> Result<Compared, String> {
    match verdict(&golden().join(name)).map_err(|e| e.to_string())? {
        Verdict::Equal(compared) => Ok(compared),
        Verdict::Different(difference) => Err(format!("{name}: {difference}")),
        Verdict::NotReplayed(why) => Err(format!("{name}: {why}")),
    }
}

#[track_caller]
fn reproduced(name: &str) -> Compared {
    compared(name).unwrap_or_else(|why| panic!("{why}"))
}

/// All recordings, those with a test of their own among them.
fn all() -> Vec<String> {
    let entries = std::fs::read_dir(golden()).expect("the golden recordings are part of the source");
    let paths = entries.map(|entry| entry.expect("a readable folder").path()).filter(|path| path.is_dir());
    let mut names: Vec<String> =
        paths.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect();
    names.sort();
    names
}

/// All that can be equal is, to the final state.
#[test]
fn every_recording_is_reproduced() {
    let names = all();
    assert!(names.len() >= 124, "{names:?}");
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let replay_the_next = || {
        while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
            let why = match compared(name) {
                Ok(of) if of.operations + of.events > 0 && of.final_states > 0 || of.close.is_some() => continue,
                Ok(of) => format!("{name}: {of:?}"),
                Err(why) => why,
            };
            wrong.lock().expect("no replay panics").push(why);
        }
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|threads| (0..cpus).for_each(|_| _ = threads.spawn(replay_the_next)));
    let wrong = wrong.into_inner().expect("no replay panicked");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_file_of_a_recording_stands_twice() {
    let mut seen = std::collections::HashMap::<Vec<u8>, PathBuf>::new();
    let mut twice = Vec::new();
    for dir in
        std::fs::read_dir(golden()).expect("a folder").map(|e| e.expect("readable").path()).filter(|d| d.is_dir())
    {
        for file in std::fs::read_dir(&dir).expect("a recording").map(|e| e.expect("readable").path()) {
            // Each folder keeps its own, even if two have the same bytes.
            if file.ends_with("recording.toml") {
                continue;
            }
            if let Some(first) = seen.insert(std::fs::read(&file).expect("readable"), file.clone()) {
                twice.push(format!("{} is {}", file.display(), first.display()));
            }
        }
    }
    assert!(twice.is_empty(), "remove one and name the other under [files] in recording.toml: {}", twice.join(", "));
}

#[test]
fn every_recording_is_of_the_patch_level_its_profile_states() {
    for name in all() {
        let other = kontig_oracle::other_patch_level(&golden().join(&name), None).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(other, None, "{name}");
    }
}

#[test]
fn linux_6_1_mixed_100k_is_reproduced_operation_by_operation() {
    let compared = reproduced("6.1-mixed100k");
    assert_eq!((compared.operations, compared.pfns), (100_000, 62_764));
}

#[test]
fn linux_6_1_compacts_anonymous_memory_range_by_range() {
    assert_eq!(reproduced("6.1-anon-compact-random").events, 6_147);
}

#[test]
fn linux_6_1_moves_every_page_to_the_same_place_in_the_same_order() {
    let compared = reproduced("6.1-module-compact");
    assert_eq!((compared.events, compared.migrations), (6_061, 93_349));
}

#[test]
fn linux_5_10_and_6_12_move_every_page_to_the_same_place_in_the_same_order() {
    let moved = |name| {
        let compared = reproduced(name);
        (compared.events, compared.migrations)
    };
    assert_eq!(moved("5.10-module-compact"), (6_066, 94_109));
    assert_eq!(moved("6.12-module-compact"), (5_302, 79_207));
}

#[test]
fn linux_6_1_proactive_compaction_stops_at_the_same_page() {
    assert_eq!(reproduced("6.1-anon-proactive40-random").events, 2_396);
}

#[test]
fn linux_6_1_gives_every_request_that_compacts_the_same_block() {
    assert_eq!(reproduced("6.1-direct-movable").pfns, 704);
    assert_eq!(reproduced("6.1-direct-unmovable").pfns, 749);
}

#[test]
fn linux_7_2_huge_page_faults_beside_kcompactd_come_within_five_percent() {
    let close = reproduced("7.2-defrag1-thp").close.expect("a recording of faults");
    assert!(close.figures.iter().all(|f| f.kernel > 0 && (f.is_close() || !f.held)), "{close:?}");
    // As far as the scheduler's share can be told from the recording, everything is the same.
    assert!(close.faults_same >= 27 && close.events_same >= 475, "{close:?}");
}

/// Of every recording under pressure: how many operations had the kernel's answer (which page,
/// found, brought back or new, with which flags); how many pages lay in the kernel's order on the
/// LRU lists, half-way and in the end; and how many of reclaim's and compaction's tracepoints were
/// the kernel's, line by line.
#[test]
fn linux_6_1_takes_the_same_pages_in_the_same_order_under_pressure() {
    let recordings = [
        ("6.1-lru-active", 100_000, 60_182, 5_275),
        ("6.1-lru-anon", 90_000, 60_961, 43_227),
        ("6.1-lru-boost", 60_000, 36_759, 5_621),
        ("6.1-lru-dirty", 80_000, 50_306, 8_709),
        ("6.1-lru-file", 70_000, 56_583, 2_862),
        ("6.1-lru-large", 60_000, 3_881, 29_297),
        ("6.1-lru-mixed", 90_000, 60_963, 20_096),
        ("6.1-lru-order3", 50_000, 27_007, 11_530),
        ("6.1-lru-order9", 50_000, 32_754, 3_947),
        ("6.1-lru-refault", 110_000, 60_683, 6_980),
        ("6.1-lru-shrinker", 70_000, 38_472, 7_060),
        ("6.1-lru-two-zones", 110_000, 60_981, 10_246),
    ];
    for (name, operations, pages, events) in recordings {
        let compared = reproduced(name);
        let figures = (compared.operations, compared.lru_pages, compared.events);
        assert_eq!(figures, (operations, pages, events), "{name}");
    }
}

/// The same where pages are in generations, whose lists are those of the kernel.
#[test]
fn linux_6_12_has_the_same_pages_in_the_same_generations() {
    same_generations(&[
        ("6.12-gen-anon", 90_000, 60_356, 37_288),
        ("6.12-gen-commands", 24_000, 2_095, 2_194),
        ("6.12-gen-compact", 70_000, 54_113, 2_826),
        ("6.12-gen-dirty", 80_000, 50_250, 447),
        ("6.12-gen-file", 70_000, 42_670, 690),
        ("6.12-gen-large", 24_000, 4_736, 5_375),
        ("6.12-gen-mixed", 90_000, 51_008, 12_630),
        ("6.12-gen-no-room", 60_000, 42_824, 1_343),
        ("6.12-gen-order9", 50_000, 37_877, 1_451),
        ("6.12-gen-tiers", 40_000, 5_542, 743),
        ("6.12-gen-two-zones", 110_000, 56_722, 6_549),
        ("6.12-gen-walk-anon", 90_000, 59_839, 36_575),
        ("6.12-gen-walk-commands", 24_000, 1_974, 2_155),
        ("6.12-gen-walk-compact", 70_000, 53_962, 2_885),
        ("6.12-gen-walk-mixed", 90_000, 51_194, 10_923),
        ("6.12-gen-walk-no-room", 60_000, 42_622, 3_398),
        ("6.12-gen-walk-tiers", 40_000, 5_256, 1_449),
    ]);
}

#[test]
fn linux_7_2_has_the_same_pages_in_the_same_generations() {
    same_generations(&[
        ("7.2-gen-anon", 90_000, 58_699, 39_037),
        ("7.2-gen-commands", 24_000, 1_429, 2_321),
        ("7.2-gen-compact", 70_000, 55_995, 4_152),
        ("7.2-gen-dirty", 80_000, 49_632, 3_244),
        ("7.2-gen-file", 70_000, 44_576, 685),
        ("7.2-gen-large", 24_000, 5_771, 5_081),
        ("7.2-gen-mixed", 90_000, 51_550, 11_864),
        ("7.2-gen-no-room", 60_000, 46_838, 5_447),
        ("7.2-gen-order9", 50_000, 47_599, 1_719),
        ("7.2-gen-tiers", 40_000, 5_901, 826),
        ("7.2-gen-two-zones", 110_000, 56_600, 3_545),
        ("7.2-gen-walk-anon", 90_000, 58_679, 39_927),
        ("7.2-gen-walk-commands", 24_000, 1_279, 2_384),
        ("7.2-gen-walk-compact", 70_000, 55_995, 4_016),
        ("7.2-gen-walk-mixed", 90_000, 51_906, 11_918),
        ("7.2-gen-walk-no-room", 60_000, 47_210, 5_295),
        ("7.2-gen-walk-tiers", 40_000, 5_939, 1_157),
    ]);
}

fn same_generations(recordings: &[(&str, u64, u64, u64)]) {
    for &(name, operations, pages, events) in recordings {
        let compared = reproduced(name);
        let figures = (compared.operations, compared.lru_pages, compared.events);
        assert_eq!(figures, (operations, pages, events), "{name}");
    }
}

#[test]
fn since_6_15_the_kernel_counts_the_pages_of_whole_free_pageblocks_as_the_engine_does() {
    let mut states = 0;
    let is_since = |name: &String| {
        let series = name.split('-').next().unwrap_or_default();
        let (major, minor) = series.split_once('.').expect("a recording's name begins with its kernel's");
        (major.parse::<u32>().expect("a number"), minor.parse::<u32>().expect("a number")) >= (6, 15)
    };
    for name in all().into_iter().filter(is_since) {
        let rec = Recording::open(&golden().join(&name)).unwrap_or_else(|e| panic!("{e}"));
        for part in rec.parts().unwrap_or_else(|e| panic!("{e}")) {
            let file = part.before("snap");
            let text = rec.text(&file).unwrap_or_else(|e| panic!("{e}"));
            // The zone's second counter.
            let counters = text.lines().find_map(|l| l.strip_prefix("VMSTAT ")).expect("a zone has counters");
            let counted: i64 = counters.split(' ').nth(1).expect("it has two").parse().expect("a number");
            let machine = rec.machine(part).unwrap_or_else(|e| panic!("{e}"));
            // Normal, the last one of the first recorded node.
            let zone = machine.nodes()[NODE.index()].zones.last().expect("it has zones");
            assert_eq!(machine.zone(*zone).free_pages_in_blocks(), counted, "{name}/{file}");
            states += 1;
        }
    }
    assert!(states >= 35, "{states} states");
}
