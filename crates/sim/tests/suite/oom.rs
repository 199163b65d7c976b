//! Memory runs out: the largest process is killed and reported, and the others go on.

use crate::support::*;
use kontig_mm::{Order, VmEvent};
use kontig_program::{Gfp, Op, Region, Value};
use kontig_sim::SimError;

/// Room for about 7,900 pages.
const BLOCKS: u32 = 16;

fn all(pages: u32) -> Region {
    Region { mapping: 0, first: 0, pages }
}

/// Maps and touches this many pages, and sleeps for a minute.
fn hog(pages: u32) -> Box<Script> {
    ops(vec![Op::Mmap { pages }, Op::Touch(all(pages)), Op::Sleep(60 * SECOND)])
}

#[test]
fn the_process_with_the_most_memory_is_killed_and_who_asked_gets_its_memory() {
    let mut p = Prompt::new(machine(2, BLOCKS, linux("6.1")), 1);
    let large = fork(&mut p, hog(5000));
    pass(&mut p.m, 50 * MS);
    let small = fork(&mut p, hog(4000));
    assert_eq!(p.call(0, Op::WaitAny).unwrap().value, Value::Ended { process: large, killed: true, failed: true });
    pass(&mut p.m, 50 * MS);
    assert_eq!((p.m.rss(large), p.m.rss(small)), (None, Some(4000)));
    let [kill] = p.m.oom_kills() else { panic!("{:?}", p.m.oom_kills()) };
    assert_eq!((kill.process, kill.rss, kill.page_tables), (large, 5000, 10));
    assert_eq!(event(&p.m, VmEvent::OomKill), 1);
    p.m.memory().check().unwrap();
}

#[test]
fn a_process_that_asks_for_too_much_is_killed_in_its_fault_and_gives_all_back() {
    let mut p = Prompt::new(machine(2, BLOCKS, linux("6.1")), 1);
    let before = free_pages(&p.m);
    let other = fork(&mut p, hog(1000));
    let greedy = fork(&mut p, hog(20_000));
    assert_eq!(p.call(0, Op::WaitAny).unwrap().value, Value::Ended { process: greedy, killed: true, failed: true });
    assert_eq!(p.m.rss(other), Some(1000));
    p.call(0, Op::Kill(other)).unwrap();
    p.call(0, Op::WaitAny).unwrap();
    assert_eq!(free_pages(&p.m), before);
}

#[test]
fn a_process_killed_while_it_may_not_enter_a_file_system_ends_at_once() {
    let mut p = Prompt::new(machine(2, BLOCKS, linux("6.1")), 1);
    let mut asked = 0;
    let victim = fork(
        &mut p,
        script(move |_| {
            asked += 1;
            Some(match asked {
                1 => Op::Mmap { pages: 5000 },
                2 => Op::Touch(all(5000)),
                _ => alloc_pages(Gfp::KERNEL.without(Gfp::FS), Order::ZERO),
            })
        }),
    );
    pass(&mut p.m, 100 * MS);
    assert!(p.m.oom_kills().is_empty(), "it kills nobody at once");
    let before = p.m.now();
    fork(&mut p, hog(500));
    assert_eq!(p.call(0, Op::WaitAny).unwrap().value, Value::Ended { process: victim, killed: true, failed: true });
    assert!(p.m.now() - before < 50 * MS, "{} ms", (p.m.now() - before) / MS);
}

#[test]
fn of_two_with_as_much_the_younger_goes_and_nobody_else_before_it_has_gone() {
    let mut p = Prompt::new(machine(2, BLOCKS, linux("6.1")), 1);
    let [older, younger] = [0, 1].map(|_| fork(&mut p, hog(3000)));
    pass(&mut p.m, 50 * MS);
    let third = fork(&mut p, hog(2500));
    assert_eq!(p.call(0, Op::WaitAny).unwrap().value, Value::Ended { process: younger, killed: true, failed: true });
    pass(&mut p.m, 50 * MS);
    assert_eq!((p.m.rss(older), p.m.rss(third)), (Some(3000), Some(2500)));
    assert_eq!(p.m.oom_kills().len(), 1);
}

#[test]
fn a_process_that_the_host_started_is_killed_with_a_word_and_the_machine_goes_on() {
    let mut m = machine(2, BLOCKS, linux("6.1"));
    let before = free_pages(&m);
    let greedy = m.spawn(hog(20_000), kontig_program::Placement::Cpu(0));
    let other = m.spawn(ops(vec![Op::Sleep(SECOND)]), kontig_program::Placement::Cpu(1));
    let said = m.run(10 * SECOND, Some(greedy)).expect_err("it is killed").to_string();
    assert!(said.starts_with("the simulated machine is out of memory: process 0, with 7"), "{said}");
    finish(&mut m, greedy);
    finish(&mut m, other);
    assert_eq!(free_pages(&m), before);
}

#[test]
fn where_nobody_has_memory_nobody_is_killed() {
    let mut m = machine(1, BLOCKS, linux("6.1"));
    let driver = allocator(kontig_program::Gfp::KERNEL, kontig_mm::Order::ZERO, usize::MAX, 0);
    let id = m.spawn(driver, kontig_program::Placement::Cpu(0));
    let got = m.run(10 * SECOND, Some(id));
    assert!(matches!(got, Err(SimError::OutOfMemory { .. })), "{got:?}");
    assert_eq!((m.oom_kills().len(), event(&m, VmEvent::OomKill)), (0, 0));
}

#[test]
fn a_fork_that_is_killed_leaves_nothing_of_the_child() {
    let mut in_fork = 0;
    for pages in (7380..7430).step_by(3) {
        let mut p = Prompt::new(machine(2, BLOCKS, linux("6.1")), 1);
        let before = free_pages(&p.m);
        let sleeper = ops(vec![Op::Sleep(60 * SECOND)]);
        let all = vec![Op::Mmap { pages }, Op::Touch(all(pages)), Op::Fork(sleeper), Op::Exit];
        let parent = fork(&mut p, ops(all));
        let ended = p.call(0, Op::WaitAny).unwrap().value;
        if ended == (Value::Ended { process: parent, killed: true, failed: true }) {
            // It had touched everything, so the fork found no memory.
            in_fork += u32::from(p.m.oom_kills()[0].rss == u64::from(pages));
            assert_eq!(free_pages(&p.m), before, "{pages} pages");
            p.m.memory().check().unwrap();
        }
    }
    assert!(in_fork > 0);
}

/// In defrag_mode, allocates kernel pages while every other page of the movable pageblocks is free
/// and the others are unmovable.
fn asks_where_no_pageblock_can_be_emptied(profile: &str) -> Result<(), SimError> {
    let mut m = machine_with(1, BLOCKS, linux(profile), &[("vm.defrag_mode", "1")]);
    let movable = allocator(Gfp::HIGHUSER_MOVABLE.without(Gfp::RECLAIM), HUGE, usize::MAX, 0);
    let id = m.spawn(movable, kontig_program::Placement::Cpu(0));
    finish(&mut m, id);
    let frees = blocks(log(&m, id)).into_iter().flat_map(|block| {
        let page = move |at: u64| kontig_program::Frame::new(u64::from(block.get()) + at);
        let split = Op::SplitPages { block: page(0), order: kontig_program::Order::HUGE };
        let every_other = (0..512).step_by(2).map(move |at| Op::FreePages { first: page(at), pages: 1 });
        std::iter::once(split).chain(every_other)
    });
    let asks = std::iter::repeat_n(alloc_pages(Gfp::KERNEL, Order::ZERO), 600);
    let id = m.spawn(ops(frees.chain(asks).collect()), kontig_program::Placement::Cpu(0));
    m.run(200 * SECOND, Some(id)).map(|_| ())
}

#[test]
fn a_request_without_end_stops_the_machine_with_a_word() {
    for profile in ["6.15-posted", "7.2"] {
        let said = asks_where_no_pageblock_can_be_emptied(profile).expect_err("it has no end");
        assert!(matches!(said, SimError::EndlessRequest { order: Order::ZERO, .. }), "{profile}: {said}");
    }
    for profile in ["6.15", "7.3"] {
        assert_eq!(asks_where_no_pageblock_can_be_emptied(profile), Ok(()), "{profile}");
    }
}
