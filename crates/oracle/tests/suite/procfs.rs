//! Compares proc files with those of a real kernel, byte by byte.
//!
//! Items that the recorded machine had and this one lacks (slab, kernel stacks) are first set to 0
//! in the real text, by name; every other byte must be the same. NUMA counters must grow as much as
//! the kernel's.

use kontig_mm::Memory;
use kontig_mm::snapshot::ZoneSnapshot;
use kontig_oracle::Recording;
use kontig_oracle::recording::Part;
use kontig_oracle::replay::operations::Runner;
use kontig_procfs::{BuddyInfo, PageTypeInfo, VmStat, ZoneInfo};
use kontig_profiles::linux;
use std::path::Path;

const BOOSTED: &str = include_str!("../data/procfs/6.1-boosted.zoneinfo");
const USER_MEMORY: &str = include_str!("../data/procfs/6.1-user-memory.zoneinfo");
const NOT_HERE: [&str; 3] = ["nr_slab_reclaimable", "nr_slab_unreclaimable", "nr_kernel_stack"];
/// Counted since boot, which was before the recording.
const SINCE_BOOT: [&str; 6] = ["numa_hit", "numa_miss", "numa_foreign", "numa_interleave", "numa_local", "numa_other"];

fn recording(name: &str) -> Recording {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracle/golden");
    Recording::open(&golden.join(name)).unwrap_or_else(|e| panic!("{e}"))
}

/// A file recorded with the 100,000 operations; `t0` before them, `t1` after.
fn recorded(file: &str) -> String {
    recording("6.1-mixed100k").text(file).unwrap_or_else(|e| panic!("{e}"))
}

/// The recorded machine before and after the operations.
fn before_and_after() -> [(&'static str, Memory); 2] {
    let recording = recording("6.1-mixed100k");
    let before = recording.machine(Part::Operations).unwrap_or_else(|e| panic!("{e}"));
    let ops = recording.trace().unwrap_or_else(|e| panic!("{e}"));
    let mut runner = Runner::new(before.clone(), &ops, false);
    ops.iter().for_each(|op| {
        runner.carry_out(op);
    });
    [("t0", before), ("t1", runner.memory)]
}

/// The lines from the one that starts with `from` to the end.
fn tail<'a>(text: &'a str, from: &str) -> &'a str {
    let at = text.match_indices(from).find(|(at, _)| text[..*at].chars().next_back().is_none_or(|c| c == '\n'));
    &text[at.unwrap_or_else(|| panic!("no line '{from}…' in:\n{text}")).0..]
}

/// pagetypeinfo's second node: headings and all.
fn second_node(pagetypeinfo: &str) -> &str {
    let at = pagetypeinfo.rfind("Page block order").expect("a heading");
    assert_ne!(at, 0, "the headings are repeated for every node");
    &pagetypeinfo[at..]
}

/// Sets the values of the named lines to 0.
fn without(text: &str, names: &[&str]) -> String {
    let blank = |line: &str| match line.rsplit_once(' ') {
        Some((head, _)) if names.contains(&head.trim()) => format!("{head} 0\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(blank).collect()
}

#[test]
fn buddyinfo_and_pagetypeinfo_are_the_kernels_before_and_after_100k_operations() {
    for (t, m) in before_and_after() {
        let real = recorded(&format!("{t}.buddyinfo"));
        assert_eq!(tail(&BuddyInfo::of(&m).to_string(), "Node 1"), tail(&real, "Node 1"), "{t}");
        let real = recorded(&format!("{t}.pagetypeinfo"));
        assert_eq!(second_node(&PageTypeInfo::of(&m).to_string()), second_node(&real), "{t}");
    }
}

#[test]
fn zoneinfo_of_the_node_is_the_kernels_before_and_after_100k_operations() {
    for (t, m) in before_and_after() {
        let real = recorded(&format!("{t}.zoneinfo"));
        let from = "Node 1, zone      DMA";
        let shown = without(&ZoneInfo::of(&m).to_string(), &SINCE_BOOT);
        assert_eq!(tail(&shown, from), without(&without(tail(&real, from), &NOT_HERE), &SINCE_BOOT), "{t}");
    }
}

#[test]
fn numa_counters_count_100k_operations_as_the_kernel_does() {
    let counters = |text: &str| -> Vec<u64> {
        let zone = tail(text, "Node 1, zone   Normal");
        let value = |name: &str| {
            let line =
                zone.lines().find(|line| line.trim().starts_with(&format!("{name} "))).expect("every zone has it");
            line.rsplit_once(' ').expect("a value").1.parse::<u64>().expect("a number")
        };
        SINCE_BOOT.iter().map(|name| value(name)).collect()
    };
    let [before, after] = before_and_after()
        .map(|(t, m)| (counters(&ZoneInfo::of(&m).to_string()), counters(&recorded(&format!("{t}.zoneinfo")))));
    let more = |before: &[u64], after: &[u64]| -> Vec<u64> { after.iter().zip(before).map(|(a, b)| a - b).collect() };
    // The CPU is on the other node: all it gets here it wanted here, and none of it is local.
    assert_eq!(more(&before.0, &after.0), more(&before.1, &after.1));
    assert_eq!(more(&before.1, &after.1), [62_764, 0, 0, 0, 0, 62_764]);
}

#[test]
fn the_marks_include_the_boost() {
    // The boosted file is from another recording on the same machine, with the same zone and
    // unboosted watermarks.
    let text = recorded("t1.snap").replace(" boost 0 ", " boost 3295 ");
    let m = machine(&text);
    let marks = |text: &str| -> Vec<String> {
        let zone = tail(text, "Node 1, zone   Normal").lines();
        zone.skip_while(|l| !l.starts_with("        boost")).take(9).map(str::to_owned).collect()
    };
    assert_eq!(marks(&ZoneInfo::of(&m).to_string()), marks(BOOSTED));
    assert_eq!(marks(BOOSTED)[..2], ["        boost    3295", "        min      4464"]);
}

#[test]
fn user_memory_is_listed_where_the_kernel_lists_it() {
    let recording = recording("6.1-anon-compact-random");
    let m = recording.machine(Part::Sweep { proactive: false }).unwrap_or_else(|e| panic!("{e}"));
    let from = "Node 1, zone   Normal";
    let shown = without(&ZoneInfo::of(&m).to_string(), &SINCE_BOOT);
    let real = without(&without(USER_MEMORY, &NOT_HERE), &SINCE_BOOT);
    assert_eq!(tail(&shown, from), tail(&real, from));
    assert!(shown.contains("\n      nr_anon_pages 127139\n"));
}

#[test]
fn vmstat_has_the_kernels_names_in_its_order() {
    let m = machine(&recorded("t0.snap"));
    let names = |text: &str| -> Vec<String> {
        text.lines().map(|l| l.split_once(' ').expect("a name and a value").0.to_owned()).collect()
    };
    assert_eq!(names(&VmStat::of(&m).to_string()), names(&recorded("t0.vmstat")));
    assert!(VmStat::of(&m).to_string().ends_with("\nnr_unstable 0\n"));
}

#[test]
fn vmstat_counts_the_recorded_allocations() {
    // Only the node under test has a Normal zone, so nothing else counts there.
    let value = |text: &str| -> u64 {
        let line = tail(text, "pgalloc_normal ").lines().next().expect("found above");
        line.rsplit_once(' ').expect("a name and a value").1.parse().expect("a number")
    };
    let [(_, before), (_, after)] = before_and_after();
    assert_eq!(
        value(&VmStat::of(&after).to_string()) - value(&VmStat::of(&before).to_string()),
        value(&recorded("t1.vmstat")) - value(&recorded("t0.vmstat"))
    );
}

#[test]
fn each_kernel_has_its_own_fields() {
    let recording = recording("7.2-defrag1-thp");
    let m = recording.machine(Part::Faults).unwrap_or_else(|e| panic!("{e}"));
    let real = |file: &str| recording.text(file).unwrap_or_else(|e| panic!("{e}"));
    let vmstat = VmStat::parse("f1.vmstat", &real("f1.vmstat")).unwrap_or_else(|e| panic!("{e}"));
    assert!(VmStat::of(&m).0.names().eq(vmstat.0.names()));

    let recorded = ZoneInfo::parse("f1.zoneinfo", &real("f1.zoneinfo")).unwrap_or_else(|e| panic!("{e}"));
    let (shown, text) = (ZoneInfo::of(&m), ZoneInfo::of(&m).to_string());
    let of = |info: &ZoneInfo| info.zone(1, "Normal").expect("the recorded zone").clone();
    let (shown, recorded) = (of(&shown), of(&recorded));
    // The marks are those of after the faults, so the sizes agree in full.
    assert_eq!(shown.sizes, recorded.sizes);
    let (shown, recorded) = (shown.populated.expect("has memory"), recorded.populated.expect("has memory"));
    assert!(shown.counters.names().eq(recorded.counters.names()));
    assert!(shown.last.names().eq(recorded.last.names()));
    assert_eq!(ZoneInfo::parse("zoneinfo", &text).unwrap_or_else(|e| panic!("{e}")).to_string(), text);
    for line in ["              count:    ", "              high_min: ", "  free_highatomic:     0\n"] {
        assert!(text.contains(line), "no '{line}' in:\n{text}");
    }
}

fn machine(snapshot: &str) -> Memory {
    let snapshot = ZoneSnapshot::parse(snapshot).unwrap_or_else(|e| panic!("{e}"));
    snapshot.machine(linux("6.1")).expect("a possible zone")
}
