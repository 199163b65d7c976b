//! Huge pages by the administrator's settings: who gets them, the effort of a fault, and collapse
//! by khugepaged.

use crate::support::*;
use kontig_mm::{CpuId, NodeId, Order, Request, VmEvent};
use kontig_program::{Op, Region, Value};
use kontig_sim::Machine;

/// A machine without a free huge page, on which compaction can make many, and a process that takes
/// orders.
fn fragmented(profile: &str, settings: &[(&str, &str)]) -> Prompt {
    let mut m = machine(2, 48, linux(profile));
    run(&mut m, 0, fragmenter(256));
    take_huge(&mut m);
    for (name, value) in settings {
        m.memory_mut().sysctl_write(name, value).unwrap_or_else(|e| panic!("{e}"));
    }
    // The fragmenter is process 0; the others took the rest.
    Prompt::new(m, 1)
}

/// The effort of a huge-page fault.
fn does(p: &mut Prompt, advised: bool) -> (&'static str, bool) {
    let r = p.mmap(0, 512);
    if advised {
        p.call(0, Op::AdviseHuge(r)).unwrap();
    }
    let counts = |m: &Machine| {
        let daemons = [VmEvent::Pageoutrun, VmEvent::CompactDaemonWake].map(|e| event(m, e)).iter().sum::<u64>();
        [event(m, VmEvent::CompactStall), daemons, event(m, VmEvent::ThpFaultAlloc)]
    };
    let before = counts(&p.m);
    p.call(0, Op::Touch(part(r, 0, 1))).unwrap();
    pass(&mut p.m, 100 * MS);
    let after = counts(&p.m);
    let what = match (after[0] > before[0], after[1] > before[1]) {
        (true, _) => "compacts",
        (false, true) => "wakes daemons",
        (false, false) => "nothing",
    };
    let is_huge = after[2] > before[2];
    (what, is_huge)
}

#[test]
fn a_fault_works_for_a_huge_page_as_defrag_says() {
    let table = [
        ("always", ["compacts", "compacts"]),
        ("defer", ["wakes daemons", "wakes daemons"]),
        ("defer+madvise", ["wakes daemons", "compacts"]),
        ("madvise", ["nothing", "compacts"]),
        ("never", ["nothing", "nothing"]),
    ];
    for profile in ["5.10", "6.1", "7.2"] {
        for (defrag, does_what) in table {
            for (advised, expected) in [false, true].into_iter().zip(does_what) {
                let mut p = fragmented(profile, &[("thp.enabled", "always"), ("thp.defrag", defrag)]);
                let (what, is_huge) = does(&mut p, advised);
                assert_eq!((what, is_huge), (expected, expected == "compacts"), "{profile} {defrag} advised {advised}");
                assert_eq!(event(&p.m, VmEvent::ThpFaultFallback), u64::from(!is_huge));
            }
        }
    }
}

#[test]
fn a_mapping_begins_at_a_huge_page_from_6_7_on_and_inside_one_before() {
    let faults = |profile: &str, pages: u32| {
        let mut p = Prompt::new(machine(1, 64, linux(profile)), 1);
        p.m.memory_mut().sysctl_write("thp.enabled", "always").unwrap();
        let outcome = p.call(0, Op::MmapAnywhere { pages }).expect("a mapping");
        let Value::Region(r) = outcome.value else { panic!("{outcome:?} is not a mapping") };
        p.call(0, Op::Touch(r)).unwrap();
        assert_eq!(event(&p.m, VmEvent::ThpFaultFallback), 0);
        event(&p.m, VmEvent::ThpFaultAlloc)
    };
    for (profile, expected) in [("5.6", [0, 0, 1, 3]), ("6.1", [0, 0, 1, 3]), ("6.12", [0, 1, 2, 4])] {
        assert_eq!([511, 512, 1024, 2048].map(|pages| faults(profile, pages)), expected, "{profile}");
    }
    // 7.2.12 was seen to align none of these, 3 MiB, 4 MiB + 4 KiB and 5 MiB long.
    assert_eq!([768, 1025, 1280].map(|pages| faults("7.2", pages)), [0, 1, 1], "only multiples are aligned");
}

#[test]
fn a_huge_page_for_a_copy_of_a_shared_one_is_asked_for_as_a_first_one_is() {
    for (defrag, compacts) in [("always", true), ("never", false)] {
        // Up to 5.7, a write to a shared huge page gets another huge page.
        let mut p = fragmented("5.6", &[("thp.enabled", "always"), ("thp.defrag", "always")]);
        let r = p.mmap(0, 512);
        p.call(0, Op::Touch(part(r, 0, 1))).unwrap();
        assert_eq!(event(&p.m, VmEvent::ThpFaultAlloc), 1);
        p.fork(0);
        take_huge(&mut p.m);
        p.m.memory_mut().sysctl_write("thp.defrag", defrag).unwrap();
        let stalls = event(&p.m, VmEvent::CompactStall);
        p.call(0, Op::Touch(part(r, 0, 1))).unwrap();
        assert_eq!(event(&p.m, VmEvent::CompactStall) > stalls, compacts, "{defrag}");
        assert_eq!(event(&p.m, VmEvent::ThpFaultFallback), u64::from(!compacts), "{defrag}");
    }
}

#[test]
fn huge_pages_are_for_everybody_or_for_those_who_ask_or_for_nobody() {
    for (enabled, gets) in [("always", [true, true]), ("madvise", [false, true]), ("never", [false, false])] {
        for (advised, gets) in [false, true].into_iter().zip(gets) {
            let mut p = Prompt::new(machine_with(2, 16, linux("6.1"), &[("thp.enabled", enabled)]), 1);
            assert_eq!(does(&mut p, advised).1, gets, "{enabled} advised {advised}");
            assert_eq!(event(&p.m, VmEvent::ThpFaultFallback), 0, "where none is wanted none is missed");
        }
    }
}

#[test]
fn the_table_that_is_put_by_is_asked_for_after_the_huge_page_and_wakes_kswapd_if_that_was_the_last() {
    let settings = [("thp.enabled", "always"), ("thp.defrag", "never")];
    let mut p = Prompt::new(machine_with(1, 16, linux("5.10"), &settings), 1);
    let r = p.mmap(0, 512);
    // With the huge page, free memory is just at the low mark; one more page is below it.
    loop {
        let zone = &p.m.memory().zones()[0];
        let beyond = zone.nr_free_pages_exact() - (zone.watermarks.low + 512);
        let Some(order) = beyond.checked_ilog2() else { break };
        let order = Order::new(order.min(9) as u8);
        let request = Request::new(CpuId::new(0), NodeId::new(0), kontig_mm::Gfp::HIGHUSER_MOVABLE, order);
        p.m.memory_mut().alloc(request).expect("there is more");
    }
    p.call(0, Op::Touch(part(r, 0, 1))).unwrap();
    pass(&mut p.m, 100 * MS);
    assert!(event(&p.m, VmEvent::ThpFaultAlloc) == 1 && event(&p.m, VmEvent::Pageoutrun) > 0);
    p.call(0, Op::Munmap(r)).unwrap();
    p.m.memory().check().unwrap();
}

#[test]
fn a_mode_that_is_none_is_refused_with_those_there_are() {
    let mut m = machine(1, 8, linux("6.1"));
    let mut said = |name, value| m.memory_mut().sysctl_write(name, value).unwrap_err().to_string();
    assert_eq!(
        said("thp.defrag", "sometimes"),
        "thp.defrag: 'sometimes' is none of always, defer, defer+madvise, madvise, never"
    );
    assert_eq!(said("thp.enabled", "1"), "thp.enabled: '1' is none of always, madvise, never");
    assert_eq!(
        said("thp.khugepaged.max_ptes_none", "512"),
        "thp.khugepaged.max_ptes_none: '512' is not a whole number from 0 to 511"
    );
    // A profile of a kernel without `defer+madvise`, and one without it and `defer`.
    for (requests, value, words) in [
        (kontig_mm::rules::HugeRequests::OnceOrDeferred, "defer+madvise", "always, defer, madvise, never"),
        (kontig_mm::rules::HugeRequests::OnceDirect, "defer", "always, madvise, never"),
    ] {
        let mut profile = linux("6.1");
        profile.huge_pages.requests = requests;
        let mut m = machine(1, 8, profile);
        let said = m.memory_mut().sysctl_write("thp.defrag", value).unwrap_err().to_string();
        assert_eq!(said, format!("thp.defrag: profile '6.1' does not have '{value}', only {words}"));
    }
}

/// A process with a range of small pages, of which `touched` are in memory; huge pages are always
/// on from then on.
fn small(profile: &str, touched: std::ops::Range<u32>) -> (Prompt, Region) {
    let mut p = Prompt::new(ordered_machine(2, 16, linux(profile)), 1);
    let r = p.mmap(0, 512);
    p.call(0, Op::Touch(part(r, touched.start, touched.len() as u32))).unwrap();
    p.m.memory_mut().lru_add_drain_all();
    for (name, value) in [("thp.enabled", "always"), ("thp.khugepaged.scan_sleep_millisecs", "100")] {
        p.m.memory_mut().sysctl_write(name, value).unwrap();
    }
    (p, r)
}

/// Registers the process with khugepaged, and lets it complete a round.
fn scan(p: &mut Prompt, r: Region) -> u64 {
    p.call(0, Op::AdviseHuge(r)).unwrap();
    pass(&mut p.m, 300 * MS);
    p.m.memory().check().unwrap();
    p.m.khugepaged().pages_collapsed
}

#[test]
fn khugepaged_makes_a_huge_page_of_small_ones_and_pays_for_it() {
    for profile in ["5.10", "6.1", "7.2"] {
        let (mut p, r) = small(profile, 0..300);
        let (free, kernel) = (free_pages(&p.m), kernel_pages(&p.m));
        assert_eq!(scan(&mut p, r), 1);
        assert_eq!(event(&p.m, VmEvent::ThpCollapseAlloc), 1);
        let pages = user_pages(&p.m);
        assert_eq!(pages.values().map(|(_, order)| *order).collect::<Vec<_>>(), [HUGE]);
        assert_eq!((free - free_pages(&p.m), kernel_pages(&p.m)), (512 - 300, kernel), "the page table stays");
        assert!(p.m.khugepaged().full_scans > 0);
        p.call(0, Op::Munmap(r)).unwrap();
        assert_eq!(kernel_pages(&p.m), 0);
    }
}

#[test]
fn khugepaged_leaves_alone_what_is_too_empty_or_was_never_used() {
    let (mut p, r) = small("6.1", 0..300);
    p.m.memory_mut().sysctl_write("thp.khugepaged.max_ptes_none", "100").unwrap();
    assert_eq!((scan(&mut p, r), event(&p.m, VmEvent::ThpScanExceedNonePte) > 0), (0, true));
    let (mut p, r) = small("6.1", 0..0);
    p.call(0, Op::Load(r)).unwrap();
    assert_eq!(scan(&mut p, r), 0, "nothing but zeros");
}

#[test]
fn khugepaged_copies_what_others_have_too_and_leaves_theirs() {
    for (shared, collapsed) in [(200, 1), (300, 0)] {
        let (mut p, r) = small("6.1", 0..512);
        let (child, process) = p.fork(0);
        // From here on the child has its own pages, and the parent's are no longer shared.
        p.call(child, Op::Touch(part(r, shared, 512 - shared))).unwrap();
        p.call(0, Op::Touch(part(r, shared, 512 - shared))).unwrap();
        p.m.memory_mut().sysctl_write("thp.enabled", "madvise").unwrap();
        assert_eq!(scan(&mut p, r), collapsed, "{shared} shared");
        assert_eq!(p.m.rss(process), Some(512));
        p.last_call(child, Op::Exit);
        p.call(0, Op::WaitAny).unwrap();
        p.call(0, Op::Munmap(r)).unwrap();
        assert_eq!(kernel_pages(&p.m), 0);
    }
}

#[test]
fn later_kernels_collapse_what_may_not_be_written_to_and_what_others_have() {
    for (profile, with_zeros, with_shared) in [("3.13", 0, 0), ("4.6", 1, 0), ("5.6", 1, 0), ("5.9", 1, 1)] {
        let (mut p, r) = small(profile, 0..500);
        assert_eq!(scan(&mut p, r), 1, "{profile}: its own pages, some missing");
        let (mut p, r) = small(profile, 0..500);
        p.call(0, Op::Load(part(r, 500, 12))).unwrap();
        assert_eq!(scan(&mut p, r), with_zeros, "{profile}: zero pages");
        let (mut p, r) = small(profile, 0..512);
        let (child, _) = p.fork(0);
        p.call(child, Op::Touch(part(r, 10, 502))).unwrap();
        p.call(0, Op::Touch(part(r, 10, 502))).unwrap();
        assert_eq!(scan(&mut p, r), with_shared, "{profile}: ten pages are the child's, too");
    }
    for (profile, collapsed) in [("6.1", 0), ("7.2", 1)] {
        let (mut p, r) = small(profile, 0..512);
        let (child, _) = p.fork(0);
        p.last_call(child, Op::Exit);
        p.call(0, Op::WaitAny).unwrap();
        assert_eq!(scan(&mut p, r), collapsed, "{profile}: all are its own, and protected since the fork");
    }
}

#[test]
fn without_a_huge_page_khugepaged_sleeps_for_long() {
    let (mut p, r) = small("6.1", 0..512);
    run(&mut p.m, 1, allocator(kontig_program::Gfp::KERNEL.without(kontig_program::Gfp::RECLAIM), HUGE, 13, 0));
    take_huge(&mut p.m);
    p.m.memory_mut().sysctl_write("thp.khugepaged.defrag", "0").unwrap();
    assert_eq!(scan(&mut p, r), 0);
    pass(&mut p.m, 50 * SECOND);
    assert_eq!(event(&p.m, VmEvent::ThpCollapseAllocFailed), 1, "it tries again after a minute");
    pass(&mut p.m, 30 * SECOND);
    assert!(event(&p.m, VmEvent::ThpCollapseAllocFailed) > 1);
}
