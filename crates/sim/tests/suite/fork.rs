//! Fork, exec, exit, wait and kill: processes that share memory until one of them writes to it.

use crate::support::disk::machine_with_disk;
use crate::support::family::{Family, Has, act};
use crate::support::*;
use kontig_mm::VmEvent;
use kontig_program::{Op, Process, Region, Value};
use kontig_sim::{Machine, SimError, UserPage};
use proptest::prelude::*;
use proptest::test_runner::Config;
use std::collections::BTreeMap;

/// Kernel pages of a forked process on a machine without files, without its page tables: its stack,
/// its description, and the tables above the page tables, of which the highest has two.
const OF_PROCESS: u64 = 4 + 3 + 2 + 9;

fn prompt(blocks: u32) -> Prompt {
    Prompt::new(machine(2, blocks, linux("6.1")), 1)
}

/// The frame of a process's page.
fn frame(m: &Machine, process: u32, r: Region, page: u32) -> Option<u32> {
    let at = UserPage { process, mapping: r.mapping, page };
    user_pages(m).get(&at).map(|(pfn, _)| pfn.get())
}

#[test]
fn a_fork_takes_kernel_pages_and_a_copy_of_each_page_table_and_no_page() {
    let mut p = prompt(16);
    let r = p.mmap(0, 1100);
    p.call(0, Op::Touch(r)).unwrap();
    let before = free_pages(&p.m);
    let (_, child) = p.fork(0);
    assert_eq!(before - free_pages(&p.m), OF_PROCESS + 3);
    assert_eq!((p.m.rss(child), event(&p.m, VmEvent::Pgfault)), (Some(1100), 1100));
    for page in [0, 511, 1099] {
        assert_eq!(frame(&p.m, child.get(), r, page), frame(&p.m, 0, r, page));
    }
    p.m.memory().check().unwrap();
}

#[test]
fn before_4_15_the_top_table_of_a_memory_map_is_one_page() {
    let mut p = Prompt::new(machine(2, 16, linux("4.6")), 1);
    let before = free_pages(&p.m);
    p.fork(0);
    assert_eq!(before - free_pages(&p.m), OF_PROCESS - 1);
}

#[test]
fn before_3_15_a_stack_is_half_as_large() {
    let taken = |version| {
        let mut p = Prompt::new(machine(2, 16, linux(version)), 1);
        let before = free_pages(&p.m);
        p.fork(0);
        before - free_pages(&p.m)
    };
    assert_eq!((taken("3.13"), taken("4.6")), (OF_PROCESS - 3, OF_PROCESS - 1));
}

#[test]
fn where_there_are_slabs_they_hold_what_describes_a_process_and_many_of_their_pages_stay() {
    let mut p = Prompt::new(machine_with_disk(2, 32, "6.1"), 1);
    let pages = |p: &Prompt| {
        let of = |name| p.m.slabs().iter().find(|slab| slab.name == name).map_or(0, |slab| slab.pages);
        let described = ["task_struct", "files_cache", "sighand_cache", "signal_cache", "mm_struct"].map(of);
        (described.iter().sum::<u64>(), of("vm_area_struct"))
    };
    let children: Vec<Process> = (0..10).map(|_| fork(&mut p, ops(vec![Op::Sleep(MS)]))).collect();
    let most = pages(&p);
    assert!((40..=60).contains(&most.0) && (20..=24).contains(&most.1), "40 and 21 measured: {most:?}");
    for child in children {
        p.call(0, Op::Wait(child)).unwrap();
    }
    let left = pages(&p);
    assert!(left.0 >= most.0 / 2 && left.1 > 0, "{left:?} of {most:?}");
    p.m.memory().check().unwrap();
}

#[test]
fn the_first_to_write_gets_a_copy_and_the_last_to_map_a_page_keeps_it() {
    let mut p = prompt(16);
    let r = p.mmap(0, 600);
    p.call(0, Op::Touch(r)).unwrap();
    let (who, child) = p.fork(0);
    let (free, faults) = (free_pages(&p.m), event(&p.m, VmEvent::Pgfault));
    let shared = frame(&p.m, 0, r, 7);
    p.call(who, Op::Touch(part(r, 0, 100))).unwrap();
    assert_eq!((free - free_pages(&p.m), event(&p.m, VmEvent::Pgfault) - faults), (100, 100));
    assert_eq!(frame(&p.m, 0, r, 7), shared);
    assert_ne!(frame(&p.m, child.get(), r, 7), shared);
    // The parent is the last user of these: a fault each, and no page.
    p.call(0, Op::Touch(part(r, 0, 100))).unwrap();
    assert_eq!((free - free_pages(&p.m), event(&p.m, VmEvent::Pgfault) - faults), (100, 200));
    assert_eq!(frame(&p.m, 0, r, 7), shared);
    p.call(0, Op::Touch(part(r, 0, 100))).unwrap();
    p.call(who, Op::Load(r)).unwrap();
    assert_eq!((free - free_pages(&p.m), event(&p.m, VmEvent::Pgfault) - faults), (100, 200), "neither faults again");
    p.m.memory().check().unwrap();
}

#[test]
fn a_shared_page_is_freed_by_the_last_who_unmaps_it() {
    let mut p = prompt(16);
    let before = free_pages(&p.m);
    let r = p.mmap(0, 100);
    p.call(0, Op::Touch(r)).unwrap();
    let (who, child) = p.fork(0);
    p.call(0, Op::Munmap(r)).unwrap();
    assert_eq!(user_pages(&p.m).len(), 100);
    assert_eq!(p.m.rss(child), Some(100));
    p.call(who, Op::Munmap(r)).unwrap();
    assert_eq!(before - free_pages(&p.m), OF_PROCESS);
    p.m.memory().check().unwrap();
}

#[test]
fn memory_that_was_only_read_is_zeros_and_takes_no_page() {
    let mut p = prompt(16);
    let r = p.mmap(0, 100);
    let before = free_pages(&p.m);
    p.call(0, Op::Load(r)).unwrap();
    assert_eq!((before - free_pages(&p.m), event(&p.m, VmEvent::Pgfault)), (1, 100), "the page table");
    let (who, child) = p.fork(0);
    p.call(who, Op::Touch(part(r, 0, 30))).unwrap();
    p.call(0, Op::Touch(part(r, 20, 30))).unwrap();
    assert_eq!((p.m.rss(child), p.m.rss(kontig_program::Process::new(0))), (Some(30), Some(30)));
    assert_eq!(user_pages(&p.m).len(), 60);
    for who in [who, 0] {
        p.call(who, Op::Munmap(r)).unwrap();
    }
    assert_eq!(before - free_pages(&p.m), OF_PROCESS);
    p.m.memory().check().unwrap();
}

#[test]
fn an_exit_gives_everything_back_and_the_parent_is_told() {
    let mut p = prompt(16);
    let r = p.mmap(0, 1100);
    p.call(0, Op::Touch(r)).unwrap();
    let before = free_pages(&p.m);
    let child = fork(&mut p, ops(vec![Op::Mmap { pages: 700 }, Op::Touch(part(r, 300, 600)), Op::Exit, Op::Touch(r)]));
    let ended = p.call(0, Op::Wait(child)).unwrap();
    assert_eq!(ended.value, Value::Ended { process: child, killed: false, failed: false });
    assert_eq!((free_pages(&p.m), p.m.rss(child)), (before, None));
    // A program that ends exits, too; the number of the last child is reused.
    assert_eq!(fork(&mut p, ops(Vec::new())), child);
    assert_eq!(p.call(0, Op::WaitAny).unwrap().value, Value::Ended { process: child, killed: false, failed: false });
    let none = p.call(0, Op::WaitAny);
    assert!(matches!(none, Err(SimError::NoSuchProcess { .. })), "{none:?}");
}

#[test]
fn a_wait_that_does_not_block_sees_a_child_once_it_has_ended() {
    let mut p = prompt(16);
    let child = fork(&mut p, ops(vec![Op::Sleep(1_000_000)]));
    assert_eq!(p.call(0, Op::WaitNoHang).unwrap().value, Value::Unit, "it sleeps");
    p.call(0, Op::Sleep(2_000_000)).unwrap();
    assert_eq!(p.call(0, Op::WaitNoHang).unwrap().value, Value::Ended { process: child, killed: false, failed: false });
    let none = p.call(0, Op::WaitNoHang);
    assert!(matches!(none, Err(SimError::NoSuchProcess { .. })), "{none:?}");
}

#[test]
fn a_child_that_was_not_waited_for_is_gone_with_its_parent() {
    let mut p = prompt(16);
    let before = free_pages(&p.m);
    let (parent, middle) = p.fork(0);
    let (grandchild, _) = p.fork(parent);
    p.last_call(grandchild, Op::Exit);
    p.last_call(parent, Op::Exit);
    p.call(0, Op::Wait(middle)).unwrap();
    assert_eq!(free_pages(&p.m), before);
    let numbers = [p.fork(0).1, p.fork(0).1].map(kontig_program::Process::get);
    assert!(numbers.iter().all(|n| [1, 2].contains(n)), "{numbers:?}: both numbers are free");
}

#[test]
fn exec_drops_all_memory_and_goes_on_with_another_program() {
    let mut p = prompt(16);
    let r = p.mmap(0, 1100);
    p.call(0, Op::Touch(r)).unwrap();
    let before = free_pages(&p.m);
    let next = ops(vec![Op::Mmap { pages: 40 }, Op::Touch(part(r, 0, 40)), Op::Sleep(SECOND)]);
    let child = fork(&mut p, ops(vec![Op::Touch(part(r, 0, 10)), Op::Exec(next), Op::Touch(r)]));
    pass(&mut p.m, 10 * MS);
    assert_eq!(p.m.rss(child), Some(40));
    assert_eq!(before - free_pages(&p.m), OF_PROCESS + 40 + 1);
    p.call(0, Op::Wait(child)).unwrap();
    assert_eq!(free_pages(&p.m), before);
}

#[test]
fn a_killed_process_ends_wherever_it_is() {
    let mut p = prompt(64);
    let r = p.mmap(0, 20_000);
    let before = free_pages(&p.m);
    let fates =
        [vec![Op::Sleep(SECOND)], vec![Op::Touch(r)], vec![Op::Fork(ops(vec![Op::Sleep(SECOND)])), Op::WaitAny]];
    for list in fates {
        let child = fork(&mut p, ops(list));
        pass(&mut p.m, MS);
        let killed = p.call(0, Op::Kill(child)).unwrap();
        let ended = p.call(0, Op::Wait(child)).unwrap();
        assert_eq!(ended.value, Value::Ended { process: child, killed: true, failed: true });
        assert!(ended.end_ns - killed.end_ns < 20 * MS, "it does not finish what it does");
        p.call(0, Op::Kill(child)).unwrap();
    }
    pass(&mut p.m, SECOND);
    assert_eq!(free_pages(&p.m), before);
}

#[test]
fn the_time_of_forked_processes_is_that_of_the_one_who_was_started() {
    let mut m = machine(1, 16, linux("6.1"));
    let touched = Region { mapping: 0, first: 0, pages: 1000 };
    let child = || Op::Fork(ops(vec![Op::Touch(touched)]));
    let id = run(&mut m, 0, ops(vec![Op::Mmap { pages: 1000 }, child(), Op::WaitAny, child(), Op::WaitAny]));
    let touch = 2 * 1000 * xeon().costs.touch.ns as u64;
    assert_eq!(m.cpu_time(id).user_ns, touch);
    assert!(m.cpu_time(id).system_ns > touch);
}

#[test]
fn a_huge_page_that_is_shared_is_copied_up_to_5_7_and_split_from_5_8_on() {
    for (profile, frames, splits, machine) in [
        ("5.6", 512 + 512, 0, machine as fn(_, _, _) -> _),
        ("6.1", 512 + 1, 1, machine),
        ("6.1", 512 + 1, 1, ordered_machine),
    ] {
        let mut p = Prompt::new(machine(2, 16, linux(profile)), 1);
        let r = p.mmap(0, 512);
        p.call(0, Op::AdviseHuge(r)).unwrap();
        p.call(0, Op::Touch(r)).unwrap();
        let before = free_pages(&p.m);
        let (who, child) = p.fork(0);
        assert_eq!(before - free_pages(&p.m), OF_PROCESS + 1);
        assert_eq!((p.m.rss(child), event(&p.m, VmEvent::ThpSplitPage)), (Some(512), 0));
        p.call(who, Op::Touch(part(r, 77, 1))).unwrap();
        assert_eq!(before + 512 - free_pages(&p.m), OF_PROCESS + 1 + frames, "{profile}");
        assert_eq!(event(&p.m, VmEvent::ThpSplitPage), splits, "{profile}");
        // A frame of a huge page is its head's.
        let page = 77 * splits as u32;
        assert_ne!(frame(&p.m, child.get(), r, page), frame(&p.m, 0, r, page));
        p.call(0, Op::Touch(r)).unwrap();
        p.call(0, Op::Munmap(r)).unwrap();
        p.last_call(who, Op::Exit);
        p.m.memory().check().unwrap();
        assert_eq!(kernel_pages(&p.m), 0, "{profile}");
    }
}

proptest! {
    #![proptest_config(Config {
        cases: 60,
        failure_persistence: None,
        ..Config::default()
    })]

    #[test]
    fn two_processes_have_one_frame_exactly_where_neither_has_written_since_the_fork(
        acts in proptest::collection::vec(act(1100, 400), 1..40),
        ordered: bool,
    ) {
        let m = if ordered { ordered_machine } else { machine };
        let mut p = Prompt::new(m(2, 48, linux("6.1")), 1);
        let mut family = Family::new(&mut p, 1100);
        for act in acts {
            family.act(&mut p, &act);
            // Pages in batches would not be seen.
            p.m.memory_mut().lru_add_drain_all();
            p.m.memory().check().unwrap();
            let seen = user_pages(&p.m);
            let mut of_frame = BTreeMap::new();
            for (at, has) in family.pages() {
                let pfn = seen.get(&at).map(|(pfn, _)| *pfn);
                if let Has::Contents(number) = has {
                    let pfn = pfn.expect("it is mapped");
                    prop_assert_eq!(*of_frame.entry(number).or_insert(pfn), pfn, "{:?} is shared", at);
                } else {
                    prop_assert_eq!(pfn, None, "{:?} is not mapped", at);
                }
            }
            for (process, rss) in family.rss() {
                prop_assert_eq!(p.m.rss(process), Some(rss));
            }
            let frames: std::collections::BTreeSet<_> = of_frame.values().collect();
            prop_assert_eq!(frames.len(), of_frame.len(), "what is not shared has frames of its own");
            let user = seen.values().map(|(pfn, _)| *pfn).collect::<std::collections::BTreeSet<_>>().len();
            prop_assert_eq!(frames.len(), user, "no frame is lost");
        }
    }
}

#[test]
fn all_that_a_program_has_made_is_killed_orphans_too_and_nothing_else() {
    let endless = || script(|_| Some(Op::Compute(MS)));
    // A child whose own child outlives it.
    let parent = move |log: &[kontig_program::Outcome]| match log.len() {
        0 => Some(Op::Fork(script(|_| Some(Op::Compute(MS))))),
        _ => None,
    };
    let starter = move || {
        script(move |log| match log.len() {
            0 => Some(Op::Fork(script(parent))),
            1 => Some(Op::Fork(script(|_| Some(Op::Sleep(MS))))),
            _ => None,
        })
    };
    let mut m = machine(2, 64, linux("6.1"));
    let before = free_pages(&m);
    let [killed, other] = [0, 1].map(|_| m.spawn(starter(), kontig_program::Placement::Any));
    let alone = m.spawn(endless(), kontig_program::Placement::Any);
    pass(&mut m, 20 * MS);
    let of_both = before - free_pages(&m);
    let [user, of_other, of_alone] = [killed, other, alone].map(|id| m.cpu_time(id).user_ns);
    m.kill_all_of(killed);
    pass(&mut m, 40 * MS);
    assert_eq!(before - free_pages(&m), of_both / 2, "their kernel pages are free");
    assert!(m.cpu_time(killed).user_ns > user, "the time of those that have ended counts as its own");
    assert!(m.cpu_time(alone).user_ns > of_alone);
    let user = m.cpu_time(killed).user_ns;
    pass(&mut m, 80 * MS);
    assert_eq!(m.cpu_time(killed).user_ns, user);
    m.kill_all_of(other);
    pass(&mut m, 90 * MS);
    assert!(m.cpu_time(other).user_ns > of_other);
    assert_eq!(free_pages(&m), before);
    m.memory().check().unwrap();
}
