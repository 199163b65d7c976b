//! Accesses to memory take what address translation takes on the pages it lies on at that moment.

use crate::support::disk::machine_with_disk;
use crate::support::*;
use kontig_program::{Op, Pattern, Region, Value};
use kontig_sim::SimError;
use kontig_translation::{Backing, Independent, Mapped, Processor, Tlb};

/// A processor whose TLB holds less than the memory of these tests.
fn processor() -> Processor {
    let far = Independent { size: "1 GiB".into(), small_ns: 12.0, huge_ns: 10.0 };
    Processor {
        processor: "one with a small TLB".into(),
        source: "a test".into(),
        backing: Backing::Native,
        tlb1: Tlb::of(4),
        tlb2: Tlb::of(64),
        l2: "64 KiB".into(),
        l3: "64 KiB".into(),
        work_ns: 2.0,
        tlb2_ns: 2.0,
        walk_ns: 10.0,
        l2_ns: 4.0,
        l3_ns: 40.0,
        memory_ns: 100.0,
        sequential_ns: 2.0,
        fresh_ns: None,
        independent: vec![far],
        error_percent: 0.0,
    }
}

const PAGES: u32 = 2048;
/// The time of a call of the kernel's, ns.
const CALL_NS: u64 = 100;

fn prompt(settings: &[(&str, &str)]) -> Prompt {
    let mut m = machine_with_disk(2, 48, "6.1");
    m.set_processor(Some(processor()));
    for (name, value) in settings {
        m.memory_mut().sysctl_write(name, value).unwrap();
    }
    Prompt::new(m, 1)
}

fn access(region: Region, accesses: u64) -> Op {
    Op::Access { region, used: region.pages, pattern: Pattern::Chase, accesses }
}

/// Small and huge pages that accesses found.
fn lies(value: &Value) -> (u64, u64) {
    let Value::Mapped { small, huge, .. } = value else { panic!("not of accesses: {value:?}") };
    (*small, *huge)
}

#[test]
fn an_access_takes_what_the_processor_says_of_the_pages_it_finds() {
    let all = |mapped: Mapped| processor().access_ns(Pattern::Chase, mapped);
    for (enabled, ns, lies_on) in
        [("never", all(Mapped::all_small(2048, 8.0)), (2048, 0)), ("always", all(Mapped::all_huge(2048)), (0, 4))]
    {
        let mut p = prompt(&[("thp.enabled", enabled), ("thp.khugepaged.scan_sleep_millisecs", "1000000")]);
        let r = p.mmap(0, PAGES);
        p.call(0, Op::Touch(r)).unwrap();
        let outcome = p.call(0, access(r, 1_000_000)).unwrap();
        assert_eq!(lies(&outcome.value), lies_on);
        let took = outcome.latency_ns() as f64 / 1e6;
        assert!((took / ns - 1.0).abs() < 0.01, "{enabled}: {took} ns for {ns} ns");
    }
}

#[test]
fn small_pages_that_lie_scattered_take_more_on_small_pages_of_the_host() {
    let mut m = machine_with_disk(2, 48, "6.1");
    m.set_processor(Some(Processor { backing: Backing::Small, ..processor() }));
    m.memory_mut().sysctl_write("thp.enabled", "never").unwrap();
    let mut p = Prompt::new(m, 1);
    let (beside, apart, between) = (p.mmap(0, PAGES / 4), p.mmap(0, PAGES / 4), p.mmap(0, 8 * PAGES / 4));
    p.call(0, Op::Touch(beside)).unwrap();
    for page in 0..PAGES / 4 {
        p.call(0, Op::Touch(part(apart, page, 1))).unwrap();
        p.call(0, Op::Touch(part(between, 8 * page, 8))).unwrap();
    }
    let mut ns = |r| p.call(0, access(r, 100_000)).unwrap().latency_ns() as f64 / 1e5;
    let (near, far) = (ns(beside), ns(apart));
    let says = |per_group| {
        let cpu = Processor { backing: Backing::Small, ..processor() };
        cpu.access_ns(Pattern::Chase, Mapped::all_small(u64::from(PAGES / 4), per_group))
    };
    assert!((near / says(8.0) - 1.0).abs() < 0.02, "{near} ns for {}", says(8.0));
    assert!((far / says(1.0) - 1.0).abs() < 0.02, "{far} ns for {}", says(1.0));
    assert!(far > 1.05 * near, "{near} {far}");
}

#[test]
fn a_page_that_is_there_is_used_in_no_time_and_one_that_is_missing_is_faulted_in() {
    for enabled in ["never", "always"] {
        let again = |first: fn(Region) -> Op, second: fn(Region) -> Op| {
            let mut p = prompt(&[("thp.enabled", enabled)]);
            let r = p.mmap(0, PAGES);
            [first, second].map(|op| p.call(0, op(r)).unwrap().latency_ns())
        };
        let (touched, used) = (again(Op::Touch, Op::Touch), again(Op::Use, Op::Use));
        // A small page is written as it is faulted in, a huge page once it is there.
        let not_charged = if enabled == "always" { touched[1] } else { CALL_NS };
        assert_eq!(used, [touched[0] - not_charged, 0], "{enabled}");
        assert!(touched[1] > CALL_NS, "{enabled}");
    }
}

#[test]
fn accesses_become_faster_while_khugepaged_collapses_the_pages() {
    let mut p = prompt(&[("thp.enabled", "never"), ("thp.khugepaged.scan_sleep_millisecs", "10")]);
    let r = p.mmap(0, PAGES);
    p.call(0, Op::Touch(r)).unwrap();
    let begin = p.call(0, access(r, 1_000_000)).unwrap().latency_ns();
    p.m.memory_mut().lru_add_drain_all();
    p.m.memory_mut().sysctl_write("thp.enabled", "always").unwrap();
    p.call(0, Op::AdviseHuge(r)).unwrap();
    p.call(0, access(r, 100_000_000)).unwrap();
    let outcome = p.call(0, access(r, 1_000_000)).unwrap();
    assert_eq!(lies(&outcome.value), (0, 4));
    assert!(outcome.latency_ns() < begin);
}

#[test]
fn pages_that_are_not_in_memory_are_not_counted_and_stay_away() {
    let mut p = prompt(&[("thp.enabled", "never")]);
    let r = p.mmap(0, PAGES);
    p.call(0, Op::Touch(part(r, 100, 700))).unwrap();
    let outcome = p.call(0, access(r, 1000)).unwrap();
    assert_eq!(lies(&outcome.value), (700, 0));
    let of_part = p.call(0, access(part(r, 0, 200), 1000)).unwrap();
    assert_eq!(lies(&of_part.value), (100, 0));
}

#[test]
fn a_machine_that_does_not_say_what_translation_costs_refuses_them() {
    let mut p = Prompt::new(machine_with_disk(1, 48, "6.1"), 1);
    let r = p.mmap(0, PAGES);
    let refused = p.call(0, access(r, 1)).unwrap_err();
    assert!(matches!(refused, SimError::NoTranslation { .. }));
    assert!(refused.to_string().contains("no [translation]"), "{refused}");
}
