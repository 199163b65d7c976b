//! Kernel threads: when and why kcompactd and kswapd run, and when they sleep.

use crate::support::*;
use kontig_mm::Daemon;
use kontig_mm::{Event, Listen, Profile, VmEvent};
use kontig_program::{Gfp, Op, Placement};
use kontig_sim::{Machine, Traced};

/// Without boosts, after which kswapd asks kcompactd for pageblocks.
const NO_BOOST: (&str, &str) = ("vm.watermark_boost_factor", "0");

fn sysctl(name: &str, value: &str) -> Op {
    Op::Sysctl { name: name.into(), value: value.into() }
}

/// Start of each proactive run in the next `for_ns`, to within `step`.
fn watch_runs(m: &mut Machine, for_ns: u64, step: u64) -> Vec<u64> {
    let (mut at, end) = (Vec::new(), m.now() + for_ns);
    while m.now() < end {
        let before = proactive_runs(m);
        pass(m, step);
        if proactive_runs(m) > before {
            assert_eq!(proactive_runs(m), before + 1);
            at.push(m.now());
        }
    }
    at
}

#[test]
fn without_proactive_compaction_kcompactd_never_runs_by_itself() {
    let mut m = machine_with(2, 64, linux("5.6"), &[NO_BOOST]);
    run(&mut m, 0, fragmenter(384));
    assert!(score(&m) > 90);
    let at_boot = m.daemon_ns(Daemon::Kcompactd);
    pass(&mut m, 300 * SECOND);
    assert_eq!(m.daemon_ns(Daemon::Kcompactd), at_boot);
    assert!(at_boot < 1000, "at boot it only goes to sleep: {at_boot} ns");
    assert_eq!(proactive_runs(&m), 0);
    assert_eq!(event(&m, VmEvent::CompactDaemonWake), 0);
    assert_eq!(event(&m, VmEvent::PgmigrateSuccess), 0);
    assert!(score(&m) > 90);
}

#[test]
fn proactive_compaction_brings_the_score_from_above_90_to_80_and_rests() {
    for profile in [weighted(), linux("6.1")] {
        let mut m = machine_with(2, 512, profile, &[NO_BOOST]);
        run(&mut m, 0, fragmenter(384));
        let start = m.now();
        assert!(score(&m) > 90, "{}", score(&m));
        let runs = watch_runs(&mut m, 2 * SECOND, MS);
        assert_eq!(runs.len(), 1, "one run is enough");
        assert!(runs[0] - start <= 501 * MS, "at the next check: {} ns", runs[0] - start);
        // A little below: when a per-CPU list returns pages, several blocks merge at once.
        assert!((77..=80).contains(&score(&m)), "{}", score(&m));
        let (migrated, spent, at) = (event(&m, VmEvent::PgmigrateSuccess), m.daemon_ns(Daemon::Kcompactd), score(&m));
        assert!(migrated > 0);
        pass(&mut m, 100 * SECOND);
        assert_eq!((event(&m, VmEvent::PgmigrateSuccess), score(&m), proactive_runs(&m)), (migrated, at, 1));
        // Only the checks, twice a second, a test each.
        let per_check = xeon().costs.tests.ns as u64;
        assert_eq!(m.daemon_ns(Daemon::Kcompactd) - spent, 200 * per_check);
        m.memory().check().unwrap();
    }
}

#[test]
fn proactiveness_sets_where_compaction_begins_and_ends() {
    for (proactiveness, low) in [("40", 60), ("90", 10)] {
        let sysctls = [NO_BOOST, ("vm.compaction_proactiveness", proactiveness)];
        let mut m = machine_with(2, 512, weighted(), &sysctls);
        run(&mut m, 0, fragmenter(384));
        pass(&mut m, 5 * SECOND);
        assert!((low - 3..=low).contains(&score(&m)), "{proactiveness}: {}", score(&m));
    }
    let mut m = machine_with(2, 64, weighted(), &[NO_BOOST, ("vm.compaction_proactiveness", "0")]);
    run(&mut m, 0, fragmenter(384));
    pass(&mut m, 100 * SECOND);
    assert_eq!(proactive_runs(&m), 0, "0 turns it off");
}

/// A machine on which nothing can be gained.
fn vain(profile: Profile) -> Machine {
    let mut m = machine_with(2, 64, profile, &[NO_BOOST, ("vm.compaction_proactiveness", "40")]);
    fill_unmovable(&mut m, 384);
    assert!(score(&m) > 95, "{}", score(&m));
    m
}

#[test]
fn after_a_vain_run_the_seeds_kcompactd_passes_over_64_checks() {
    let mut m = vain(weighted());
    let runs = watch_runs(&mut m, 200 * SECOND, MS);
    assert!(runs.len() >= 6, "{runs:?}");
    for gap in runs.windows(2).map(|w| w[1] - w[0]) {
        // 64 checks and the one that counts, half a second each, and the run itself.
        assert!((32_500 * MS..32_502 * MS).contains(&gap), "{gap} ns");
    }
    assert_eq!(event(&m, VmEvent::PgmigrateSuccess), 0);
}

#[test]
fn after_a_vain_run_6_1s_kcompactd_sleeps_for_32_seconds() {
    let mut m = vain(linux("6.1"));
    let runs = watch_runs(&mut m, 200 * SECOND, MS);
    assert!(runs.len() >= 6, "{runs:?}");
    for gap in runs.windows(2).map(|w| w[1] - w[0]) {
        assert!((32_000 * MS..32_002 * MS).contains(&gap), "{gap} ns");
    }
    assert_eq!(event(&m, VmEvent::PgmigrateSuccess), 0);
}

#[test]
fn on_6_1_a_write_to_the_sysctl_wakes_kcompactd_at_once() {
    let mut m = vain(linux("6.1"));
    while watch_runs(&mut m, 100 * MS, MS).is_empty() {}
    // Ten seconds into its long sleep.
    pass(&mut m, 10 * SECOND);
    let before = proactive_runs(&m);
    let start = m.now();
    run(&mut m, 0, ops(vec![sysctl("vm.compaction_proactiveness", "50")]));
    while proactive_runs(&m) == before {
        pass(&mut m, 1000);
        assert!(m.now() < start + MS, "within a millisecond");
    }
    assert!(m.now() - start >= xeon().costs.wakeup.ns as u64, "but not before it can be awake");
    // Its next sleep is the long one again.
    let next = watch_runs(&mut m, 40 * SECOND, MS);
    assert_eq!(next.len(), 1);
    assert!((31_999 * MS..32_003 * MS).contains(&(next[0] - start)), "{} ns", next[0] - start);
}

#[test]
fn on_the_seeds_kernel_a_write_to_the_sysctl_waits_for_the_next_check() {
    let mut m = machine_with(2, 64, weighted(), &[NO_BOOST, ("vm.compaction_proactiveness", "0")]);
    run(&mut m, 0, fragmenter(384));
    pass(&mut m, 10 * SECOND);
    let start = m.now();
    run(&mut m, 0, ops(vec![sysctl("vm.compaction_proactiveness", "20")]));
    let runs = watch_runs(&mut m, SECOND, MS);
    assert!(!runs.is_empty());
    assert!(runs[0] - start > MS, "after {} ns", runs[0] - start);
}

#[test]
fn what_is_triggered_from_outside_wakes_kcompactd_at_once() {
    let mut m = vain(linux("6.1"));
    while watch_runs(&mut m, 100 * MS, MS).is_empty() {}
    pass(&mut m, SECOND);
    let before = proactive_runs(&m);
    m.memory_mut().trigger_proactive_compaction();
    pass(&mut m, MS);
    assert_eq!(proactive_runs(&m), before + 1);
}

#[test]
fn kswapd_sleeps_while_memory_is_plentiful() {
    let mut m = machine_with(2, 64, linux("6.1"), &[NO_BOOST]);
    run(&mut m, 0, fragmenter(384));
    pass(&mut m, 10 * SECOND);
    assert_eq!((m.daemon_ns(Daemon::Kswapd), event(&m, VmEvent::Pageoutrun)), (0, 0));
}

#[test]
fn kswapd_is_woken_by_an_order_9_request_that_finds_no_block() {
    let mut m = machine_with(2, 64, linux("5.6"), &[NO_BOOST]);
    fill_unmovable(&mut m, 384);
    m.memory_mut().trace().listen(Listen::VMSCAN);
    run(&mut m, 0, allocator(Gfp::KERNEL, HUGE, 1, 0));
    pass(&mut m, MS);
    let events: Vec<Event> = m.take_events(u64::MAX).into_iter().map(|traced| traced.event).collect();
    assert!(events.iter().any(|e| matches!(e, Event::WakeupKswapd { order, .. } if *order == HUGE)), "{events:?}");
    assert!(events.iter().any(|e| matches!(e, Event::KswapdWake { order, .. } if *order == HUGE)), "{events:?}");
    assert!(m.daemon_ns(Daemon::Kswapd) > 0);
    assert!(m.memory().nodes()[0].kswapd.failures > 0);
}

#[test]
fn kswapd_gives_up_as_hopeless_after_16_vain_runs() {
    for profile in [linux("5.6"), linux("6.1")] {
        let mut m = machine_with(2, 64, profile, &[NO_BOOST, ("vm.compact_unevictable_allowed", "1")]);
        fill_unmovable(&mut m, 384);
        m.memory_mut().trace().listen(Listen::VMSCAN);
        let mut woken = 0;
        for _ in 0..60 {
            run(&mut m, 0, allocator(Gfp::KERNEL, HUGE, 1, 0));
            pass(&mut m, 300 * MS);
            let wakeup = |traced: &&Traced| matches!(traced.event, Event::WakeupKswapd { .. });
            let now = m.take_events(u64::MAX).iter().filter(wakeup).count();
            let hopeless = m.memory().nodes()[0].kswapd.failures >= 16;
            assert!(now == 0 || woken < 16, "nobody wakes a hopeless kswapd");
            woken += now;
            assert!(!m.memory().nodes()[0].kswapd.running, "it sleeps again");
            assert_eq!(hopeless, m.memory().nodes()[0].kswapd.failures == 16, "it stops counting with 16");
        }
        assert_eq!(m.memory().nodes()[0].kswapd.failures, 16);
        assert_eq!(event(&m, VmEvent::Pageoutrun), 16);
        assert_eq!(event(&m, VmEvent::PgscanKswapd), 0);
    }
}

#[test]
fn a_kcompactd_that_kswapd_asks_starts_at_once_and_not_after_kswapds_nap() {
    // A request that cannot compact itself: kswapd fails it, and asks kcompactd.
    let mut m = machine_with(4, 64, linux("5.6"), &[NO_BOOST]);
    run(&mut m, 0, fragmenter(384));
    take_huge(&mut m);
    m.memory_mut().trace().listen(Listen::VMSCAN.with(Listen::COMPACTION));
    // Many of them, so that one arrives while kswapd works on the first and leaves it to kcompactd.
    let request = alloc_pages(Gfp::KERNEL.without(Gfp::DIRECT_RECLAIM), HUGE);
    let start = m.now();
    m.spawn(ops(vec![request; 1000]), Placement::Cpu(0));
    let (mut asked, mut woken) = (None, None);
    while woken.is_none() && m.now() < start + SECOND {
        pass(&mut m, 1000);
        for Traced { at_ns: at, event, .. } in m.take_events(m.now()) {
            match event {
                Event::WakeupKcompactd { .. } => asked = asked.or(Some(at)),
                Event::KcompactdWake { .. } => woken = woken.or(Some(at)),
                _ => {}
            }
        }
    }
    let (asked, woken) = (asked.expect("kswapd asks"), woken.expect("kcompactd wakes"));
    let wakeup = xeon().costs.wakeup.ns as u64;
    assert!((wakeup..wakeup + 5000).contains(&(woken - asked)), "after {} ns", woken - asked);
    pass(&mut m, 100 * MS);
    assert!(m.memory().zones()[0].nr_free(HUGE) > 0, "it made what was asked for");
    m.memory().check().unwrap();
}
