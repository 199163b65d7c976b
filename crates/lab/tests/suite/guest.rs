//! Plays the patterns that real kernels are recorded with on the guest's machine.

use kontig_lab::guest::boot::{Booted, BootedZone};
use kontig_lab::guest::{Counted, machine_of, play, run};
use kontig_lab::{catalog, profiles};
use kontig_mm::ZoneSpec;
use kontig_oracle::patterns::{NAMED, Named};
use kontig_program::FileName;
use kontig_program::act::{Act, CALL, Pages, phases};
use std::collections::BTreeMap;

fn played(pattern: usize, profile: &str, seed: u64) -> Vec<Counted> {
    let (machine, _) = catalog::machine(machine_of(NAMED[pattern].memory_pages)).expect("it is built in");
    // About what a kernel has for itself after boot.
    let zones = machine.spec().expect("a machine").zones.into_iter();
    let zone = |spec: ZoneSpec| BootedZone { taken: spec.managed / 16, spec, types: Vec::new(), unmovable_on_cpus: 0 };
    let booted = Booted { zones: zones.map(zone).collect(), anon: 100, on_cpus: 50, ..Booted::default() };
    let profile = profiles::named(profile).expect("it is built in");
    play(&machine, &booted, profile, &BTreeMap::new(), NAMED[pattern].acts(seed)).expect("it is played")
}

fn counter(counted: &Counted, name: &str) -> u64 {
    counted.counters.get(name).unwrap_or_else(|| panic!("{name} is counted"))
}

#[test]
fn every_pattern_is_played_to_its_end_and_counted_at_each_phase() {
    // Those for a larger machine take minutes here.
    let small = |pattern: &Named| machine_of(pattern.memory_pages) == "guest-512m";
    for (i, pattern) in NAMED.iter().enumerate().filter(|(_, pattern)| small(pattern)) {
        for profile in ["6.1", "7.2"] {
            let counted = played(i, profile, 1);
            let acts = pattern.acts(1);
            assert!(counted.iter().map(|c| c.phase).eq(phases(&acts)), "{} on {profile}", pattern.name);
            let [first, last] = [&counted[0], counted.last().expect("phases")];
            assert_eq!(counter(first, "pgscan_kswapd"), 0, "{} on {profile}", pattern.name);
            if pattern.name == "costs" {
                continue;
            }
            let scanned = counter(last, "pgscan_kswapd") + counter(last, "pgscan_direct");
            assert!(scanned > 10_000, "{} on {profile} is under pressure: {scanned}", pattern.name);
        }
    }
}

#[test]
fn counting_begins_with_what_the_kernel_had() {
    let (machine, _) = catalog::machine("guest-512m").expect("it is built in");
    let zones = machine.spec().expect("a machine").zones.into_iter();
    let zone = |spec: ZoneSpec| BootedZone { taken: spec.managed / 16, spec, types: Vec::new(), unmovable_on_cpus: 0 };
    let (anon, slabs) = (1142, [2299, 1446]);
    let booted = Booted {
        zones: zones.map(zone).collect(),
        anon,
        active_anon: 433,
        mapped: 600,
        shmem: 1110,
        clean: 24,
        dirty: 276,
        slabs,
        ..Booted::default()
    };
    let profile = profiles::named("6.1").expect("it is built in");
    let acts = vec![Act::Phase("start")];
    let counted = play(&machine, &booted, profile, &BTreeMap::new(), acts).expect("it is played");
    let start = |name| counter(&counted[0], name);
    assert_eq!((start("nr_active_anon"), start("nr_inactive_anon")), (433, 709));
    assert_eq!((start("nr_shmem"), start("nr_anon_pages"), start("nr_file_pages")), (1110, 32, 1110 + 300));
    assert_eq!((start("nr_dirty"), start("nr_inactive_file")), (276, 300));
    assert!(start("nr_slab_reclaimable") >= 2299 && start("nr_slab_unreclaimable") >= 1446);

    // In generations memory that has no slot in swap is young, whichever list it was on.
    let generations = BTreeMap::from([("lru_gen.enabled".to_string(), "7".to_string())]);
    let profile = profiles::named("7.2").expect("it is built in");
    let counted = play(&machine, &booted, profile, &generations, vec![Act::Phase("start")]).expect("it is played");
    let start = |name| counter(&counted[0], name);
    assert_eq!((start("nr_active_anon"), start("nr_inactive_anon"), start("nr_inactive_file")), (1142, 0, 300));
}

#[test]
fn a_disk_without_files_rests_while_another_has_too_many_dirty_pages() {
    let (machine, _) = catalog::machine("guest-512m").expect("it is built in");
    let zones = machine.spec().expect("a machine").zones.into_iter();
    let zone = |spec: ZoneSpec| BootedZone { taken: spec.managed / 16, spec, types: Vec::new(), unmovable_on_cpus: 0 };
    let booted = Booted { zones: zones.map(zone).collect(), anon: 100, ..Booted::default() };
    let profile = profiles::named("7.2").expect("it is built in");
    // Reclaim meets dirty pages and wakes every disk's flusher, even the swap disk's.
    let (heap, file) = (90_000, 60_000);
    let acts = vec![
        Act::Phase("start"),
        Act::Map(0, heap),
        Act::Touch(0, Pages::ALL),
        Act::Write(FileName::new(0, 1), Pages::in_calls(0, file, CALL)),
        Act::Phase("end"),
    ];
    let counted = play(&machine, &booted, profile, &BTreeMap::new(), acts).expect("it is played");
    assert!(counter(&counted[1], "nr_dirtied") >= u64::from(file));
}

#[test]
fn the_same_steps_are_counted_the_same() {
    let counters = || played(1, "6.1", 4).into_iter().map(|c| c.counters).collect::<Vec<_>>();
    assert_eq!(counters(), counters());
}

#[test]
fn swapped_out_pages_that_are_touched_again_are_swapped_in() {
    let counted = played(1, "6.1", 2);
    let end = counted.last().expect("phases");
    let (out, back) = (counter(end, "pswpout"), counter(end, "pswpin"));
    // The process has 157,286 pages. The same number does not fit at any time, and each of those is
    // touched again.
    let managed: u64 = 480 << 8;
    let no_room = 157_286 - managed;
    assert!(out > no_room && back > no_room, "{out} out, {back} in, {no_room} have no room");
}

#[test]
fn every_range_that_is_to_be_a_huge_page_is_one_or_falls_back() {
    for profile in ["6.1", "7.2"] {
        let counted = played(3, profile, 1);
        let end = counted.last().expect("phases");
        // Also if it had to wait for its page table.
        let ranges = counter(end, "thp_fault_alloc") + counter(end, "thp_fault_fallback");
        assert_eq!(ranges, 32, "{profile}");
    }
}

#[test]
fn pages_that_return_in_order_are_read_by_eights_and_7_2_keeps_their_slots() {
    let at = |profile: &str| {
        let counted = played(1, profile, 1);
        let [before, again] = ["in-order", "again"]
            .map(|name| counted.iter().find(|counted| counted.phase == name).expect("a phase").counters.clone());
        let majors = again.get("pgmajfault").expect("counted") - before.get("pgmajfault").expect("counted");
        (majors, again.get("nr_file_pages").expect("counted"))
    };
    let ((majors, kept), (majors_of_72, kept_by_72)) = (at("6.1"), at("7.2"));
    // 157,284 pages come back. The recordings have 19,663 and 19,679 faults that wait.
    assert!(majors < 25_000 && majors_of_72 < 25_000, "{majors} {majors_of_72}");
    assert!(kept < 1000 && kept_by_72 > 10_000, "{kept} {kept_by_72}");
}

#[test]
fn a_workload_in_place_of_a_real_program_is_counted_and_looked_at_from_its_beginning_to_its_end() {
    let (machine, _) = catalog::machine("guest-620m").expect("it is built in");
    let (build, _, sysctls) = catalog::to_run("kbuild-guest").expect("it is built in");
    let scenario = build.workload.scenario();
    let zones = machine.spec().expect("a machine").zones.into_iter();
    let zone = |spec: ZoneSpec| BootedZone { taken: spec.managed / 16, spec, types: Vec::new(), unmovable_on_cpus: 0 };
    let held = 260 << 8;
    let booted = Booted { zones: zones.map(zone).collect(), anon: held, shmem: held, ..Booted::default() };
    let ran = |profile: &str, seed| {
        let profile = profiles::named(profile).expect("it is built in");
        let sysctls = sysctls.iter().cloned().collect();
        run(&machine, &booted, profile, &sysctls, (&scenario, seed), 250_000_000).expect("it runs")
    };
    for profile in ["6.1", "7.2"] {
        let (counted, looks) = ran(profile, 1);
        assert!(counted.iter().map(|c| c.phase).eq(["start", "end"]));
        let [first, last] = [&counted[0], &counted[1]];
        assert_eq!((counter(first, "thp_fault_alloc"), counter(first, "pswpout")), (0, 0));
        assert!(counter(last, "thp_fault_alloc") > 20 && counter(last, "pswpout") > 50_000, "{profile}");
        assert_eq!((looks[0].ns, looks[1].ns), (0, 250_000_000));
        assert!(looks.last().expect("looks").ns < last.took_ns);
        let free = |i: usize| looks[i].free_huge.last().expect("zones").1;
        assert!(free(0) > 100 && (0..looks.len()).any(|i| free(i) < 8), "{profile} runs out of huge pages");
    }
    let counters = |seed| ran("7.2", seed).0.into_iter().map(|c| c.counters).collect::<Vec<_>>();
    assert_eq!(counters(3), counters(3));
    assert_ne!(counters(3), counters(4));
}
