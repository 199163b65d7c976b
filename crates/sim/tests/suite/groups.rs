//! Memory control groups: who is charged, who is reclaimed from, and who is killed.

use crate::support::disk::*;
use crate::support::*;
use kontig_mm::{GroupId, GroupLimit, MachineSpec, Memory, VmEvent};
use kontig_program::{FileName, Op, Region, Value};
use kontig_sim::machine_file::SwapEntry;
use kontig_sim::{
    CostModel, DiskEntry, GroupEntry, GroupReport, Machine, MachineFile, PageLocation, SimError, UserPage,
};

const A: GroupId = GroupId::new(1);
const B: GroupId = GroupId::new(2);

/// A disk that writes faster than reclaim asks: a charge does not wait for pages being written, and
/// kills once all are.
fn fast() -> DiskEntry {
    DiskEntry { write_mb_s: 20_000.0, write_iops: Some(4e6), write_us: Some(1.0), ..ssd() }
}

/// 64 MiB with a disk and as much swap, and two groups: `a` with these limits, and `b` with none.
fn machine_with_groups(limits: &[(GroupLimit, u64)], swap: bool) -> Machine {
    let memory = Memory::new(&MachineSpec { lru: true, ..spec(2, 32) }, linux("6.12")).expect("a valid machine");
    let mut m = Machine::new(memory, CostModel::new(&xeon().costs));
    let swap = swap.then(|| SwapEntry { disk: fast().name, size: "64 MiB".into() });
    m.attach_disks(&MachineFile { disk: vec![fast()], swap, ..xeon() }).expect("a disk that can be");
    let entry =
        |name: &str, limits: &[_]| GroupEntry { name: name.into(), parent: GroupId::ROOT, limits: limits.into() };
    m.make_groups(&[entry("a", limits), entry("b", &[])]).expect("6.12 has groups");
    m
}

fn group(m: &Machine, id: GroupId) -> GroupReport {
    m.groups().swap_remove(id.index())
}

/// Pages of its own that a group is charged: those on its lists.
fn own(m: &mut Machine, id: GroupId) -> [u64; 2] {
    m.memory_mut().lru_add_drain_all();
    m.check().unwrap();
    let group = group(m, id);
    [group.anon, group.file]
}

#[test]
fn a_group_at_its_limit_swaps_its_own_pages_and_no_others() {
    let mut p = Prompt::new(machine_with_groups(&[(GroupLimit::Max, 3000)], true), 0);
    let (inside, beside) = (p.add_in(A, 0), p.add_in(B, 1));
    let neighbour = p.mmap(beside, 4000);
    p.call(beside, Op::Touch(neighbour)).unwrap();
    let r = p.mmap(inside, 4000);
    for _ in 0..2 {
        p.call(inside, Op::Touch(r)).unwrap();
        assert!(group(&p.m, A).memory.usage <= 3000);
    }
    let (a, b) = (group(&p.m, A), group(&p.m, B));
    assert!(a.events.max > 0 && a.events.oom == 0, "{a:?}");
    assert!(a.counts.swapped_out >= 1000 && a.counts.swapped_in >= 1000, "{a:?}");
    assert_eq!((b.counts.swapped_out, b.events.pgscan_direct, own(&mut p.m, B)[0]), (0, 0, 4000));
    // The machine itself has memory to spare.
    let direct = [VmEvent::PgscanDirect, VmEvent::PgscanKswapd, VmEvent::AllocstallNormal].map(|e| event(&p.m, e));
    assert_eq!(direct, [0; 3]);
    assert_eq!(a.events.pgsteal_direct, event(&p.m, VmEvent::PgstealAnon) + event(&p.m, VmEvent::PgstealFile));
    assert!(a.in_swap >= 1000 && b.in_swap == 0, "{a:?}");
    // A page in memory may have kept its place in swap.
    let is_there = |page| {
        let at = UserPage { process: 0, mapping: r.mapping, page };
        matches!(p.m.location_of(at), Some(PageLocation::Memory(_)))
    };
    assert_eq!((0..4000).filter(|page| !is_there(*page)).count() as u64, a.in_swap);
    p.call(inside, Op::Munmap(r)).unwrap();
    pass(&mut p.m, SECOND);
    let left = own(&mut p.m, A)[0];
    assert!(left < 200, "only what was being written is left: {left}");
}

#[test]
fn without_swap_the_largest_of_the_group_is_killed_though_another_is_larger() {
    let mut p = Prompt::new(machine_with_groups(&[(GroupLimit::Max, 3000)], false), 0);
    let (inside, beside) = (p.add_in(A, 0), p.add_in(B, 1));
    let larger = p.mmap(beside, 6000);
    p.call(beside, Op::Touch(larger)).unwrap();
    let all = |pages| Region { mapping: 0, first: 0, pages };
    let hog = |pages| ops(vec![Op::Mmap { pages }, Op::Touch(all(pages)), Op::Sleep(60 * SECOND)]);
    let children: Vec<_> = [2000, 1500]
        .map(|pages| match p.call(inside, Op::Fork(hog(pages))).unwrap().value {
            Value::Child(child) => {
                pass(&mut p.m, 20 * MS);
                child
            }
            other => panic!("{other:?}"),
        })
        .into();
    let ended = p.call(inside, Op::WaitAny).unwrap().value;
    assert_eq!(ended, Value::Ended { process: children[0], killed: true, failed: true });
    pass(&mut p.m, 50 * MS);
    assert_eq!(p.m.rss(children[1]), Some(1500), "it goes on");
    let (a, b) = (group(&p.m, A), group(&p.m, B));
    assert_eq!((a.counts.oom_kill, b.counts.oom_kill, event(&p.m, VmEvent::OomKill)), (1, 0, 1));
    assert!(a.events.oom > 0);
    assert_eq!(own(&mut p.m, A), [1500, 0]);
}

#[test]
fn a_program_of_the_run_that_is_killed_ends_it_and_the_error_names_the_group() {
    let mut p = Prompt::new(machine_with_groups(&[(GroupLimit::Max, 1000)], false), 0);
    let inside = p.add_in(A, 0);
    let r = p.mmap(inside, 2000);
    let error = p.call(inside, Op::Touch(r)).unwrap_err();
    assert!(matches!(&error, SimError::OutOfMemory { what } if what.contains("group a:")), "{error}");
}

#[test]
fn a_huge_page_beyond_the_limit_becomes_small_pages() {
    for (defrag, splits) in [("always", true), ("madvise", false)] {
        let mut m = machine_with_groups(&[(GroupLimit::Max, 1800)], true);
        for (name, value) in [("thp.enabled", "always"), ("thp.defrag", defrag)] {
            m.memory_mut().sysctl_write(name, value).unwrap();
        }
        let mut p = Prompt::new(m, 0);
        let inside = p.add_in(A, 0);
        let r = p.mmap(inside, 5 * 512);
        p.call(inside, Op::Touch(part(r, 0, 4 * 512))).unwrap();
        let a = group(&p.m, A);
        let counts = [a.counts.thp_fault_alloc, a.counts.thp_fault_fallback, a.counts.thp_fault_fallback_charge];
        if splits {
            // The charge reclaims: huge pages are split and swapped until there is room.
            assert!(a.events.pgsteal_direct > 0 && a.counts.thp_split_page > 0, "{a:?}");
        } else {
            // It may not; small pages then do.
            assert_eq!(counts, [3, 1, 1], "{a:?}");
        }
        assert_eq!(event(&p.m, VmEvent::ThpFaultAlloc), counts[0]);
        assert_eq!(event(&p.m, VmEvent::ThpFaultFallback), counts[1]);
        assert!(a.memory.usage <= 1800);
        p.m.check().unwrap();
    }
}

#[test]
fn khugepaged_charges_the_group_of_the_process() {
    let mut m = machine_with_groups(&[(GroupLimit::Max, 2300)], true);
    m.memory_mut().sysctl_write("thp.khugepaged.scan_sleep_millisecs", "20").unwrap();
    let mut p = Prompt::new(m, 0);
    let inside = p.add_in(A, 0);
    let r = p.mmap(inside, 4 * 512);
    p.call(inside, Op::Touch(r)).unwrap();
    p.m.memory_mut().sysctl_write("thp.enabled", "always").unwrap();
    // A fault in another range makes khugepaged know the process.
    let other = p.mmap(inside, 512);
    p.call(inside, Op::Touch(part(other, 0, 1))).unwrap();
    p.call(inside, Op::Touch(r)).unwrap();
    pass(&mut p.m, 2 * SECOND);
    let a = group(&p.m, A);
    assert_eq!(a.counts.thp_collapse_alloc, 0, "an order of nine has no room beside the small pages: {a:?}");
    assert!(event(&p.m, VmEvent::ThpCollapseAlloc) > 0);
    assert_eq!(p.m.khugepaged().pages_collapsed, 0);
    p.m.check().unwrap();
}

#[test]
fn a_task_above_the_high_mark_reclaims_or_sleeps_before_it_goes_on() {
    let time = |high, swap| {
        let mut p = Prompt::new(machine_with_groups(&[(GroupLimit::High, high)], swap), 0);
        let inside = p.add_in(A, 0);
        let r = p.mmap(inside, 2100);
        let took = p.call(inside, Op::Touch(r)).unwrap().latency_ns();
        own(&mut p.m, A);
        (took, group(&p.m, A))
    };
    let (free, a) = time(3000, false);
    assert_eq!((a.events.high, a.anon), (0, 2100));
    let (slept, a) = time(2000, false);
    // Nothing can be reclaimed. The fifth of the batches above the mark finds the usage 2048.
    assert!(a.events.high > 0 && slept > free + 20 * MS, "{slept} {free} {a:?}");
    let (_, a) = time(2000, true);
    assert!(a.counts.swapped_out > 0 && a.memory.usage < 2100, "{a:?}");
}

#[test]
fn the_first_to_read_a_file_pays_for_it_and_readahead_gives_way_to_the_limit() {
    let mut m = machine_with_groups(&[(GroupLimit::Max, 1000)], false);
    assert!(m.lay_file(FILE, 640) && m.lay_file(FileName::new(0, 2), 4000));
    let mut p = Prompt::new(m, 0);
    let (inside, beside) = (p.add_in(A, 0), p.add_in(B, 1));
    let mut read = |who, name, pages| {
        let Value::File(file) = p.call(who, Op::Open { name, create: false }).unwrap().value else { panic!() };
        for first in (0..pages).step_by(CHUNK as usize) {
            p.call(who, Op::Read { file, first, pages: CHUNK }).unwrap();
        }
        [own(&mut p.m, A)[1], own(&mut p.m, B)[1]]
    };
    // An inode's own block, too, is a page that who opens the file pays for.
    let [a, b] = read(inside, FILE, 640);
    assert!((640..690).contains(&a) && b == 0, "{a} {b}");
    assert_eq!(read(beside, FILE, 640)[1], 0, "it is there already");
    let [a, b] = read(inside, FileName::new(0, 2), 4000);
    assert!(a <= 1000 && b == 0, "{a} {b}");
    let [_, b] = read(beside, FileName::new(0, 2), 4000);
    assert!(b > 2500, "{b}");
    let a = group(&p.m, A);
    assert!(a.events.pgsteal_direct > 3000 && a.events.oom == 0, "{a:?}");
}

#[test]
fn a_child_is_in_its_parents_group_and_pays_for_its_copies() {
    let mut p = Prompt::new(machine_with_groups(&[], true), 0);
    let inside = p.add_in(A, 0);
    let r = p.mmap(inside, 1000);
    p.call(inside, Op::Touch(r)).unwrap();
    let (child, _) = p.fork(inside);
    assert_eq!(own(&mut p.m, A), [1000, 0], "page tables and stacks are charged to nobody");
    p.call(child, Op::Touch(part(r, 0, 300))).unwrap();
    assert_eq!(own(&mut p.m, A), [1300, 0]);
    p.last_call(child, Op::Exit);
    pass(&mut p.m, 10 * MS);
    assert_eq!(own(&mut p.m, A), [1000, 0]);
    p.call(inside, Op::Munmap(r)).unwrap();
    assert_eq!(own(&mut p.m, A), [0, 0]);
    let stocks = group(&p.m, A).memory.usage;
    assert!(stocks <= 2 * 64, "{stocks}");
}

#[test]
fn a_group_without_limits_changes_no_fault_and_no_time() {
    let run = |group: Option<GroupId>| {
        let mut p = Prompt::new(machine_with_groups(&[], true), 0);
        let who = p.add_in(group.unwrap_or(GroupId::ROOT), 0);
        let r = p.mmap(who, 3000);
        let took = p.call(who, Op::Touch(r)).unwrap().latency_ns();
        p.m.memory_mut().lru_add_drain_all();
        (took, user_pages(&p.m).into_values().collect::<Vec<_>>())
    };
    assert_eq!(run(Some(A)), run(None));
}

#[test]
fn groups_are_refused_where_they_are_not_known() {
    let refused = |profile: &str| {
        let spec = MachineSpec { lru: true, ..spec(1, 16) };
        let mut m = Machine::new(Memory::new(&spec, linux(profile)).unwrap(), CostModel::new(&xeon().costs));
        m.make_groups(&[GroupEntry { name: "a".into(), parent: GroupId::ROOT, limits: Vec::new() }]).is_err()
    };
    let all: Vec<&str> = recorded().filter(|profile| !refused(profile)).collect();
    assert_eq!(all, ["6.12", "7.2"]);
}
