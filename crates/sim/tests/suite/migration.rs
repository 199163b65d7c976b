//! Compaction moves pages, and their owners' page tables follow; two CPUs compact side by side.

use crate::support::*;
use kontig_mm::{Order, Pfn, VmEvent};
use kontig_program::{Gfp, Op, Placement, Region, Value};
use kontig_sim::{Machine, UserPage};
use std::collections::BTreeSet;

fn compact() -> Op {
    Op::Sysctl { name: "vm.compact_memory".into(), value: "1".into() }
}

fn region(at: UserPage, order: Order) -> Region {
    Region { mapping: at.mapping, first: at.page, pages: order.pages() }
}

/// Checks that every page is mapped to the frame whose owner word names it: unmapping a page frees
/// that frame and no other. Half of the pages go one by one, then the rest.
fn assert_page_tables_agree_with_owners(p: &mut Prompt) {
    let pages = user_pages(&p.m);
    let mut kept = pages.clone();
    for (i, (at, (pfn, order))) in pages.into_iter().enumerate() {
        if i % 2 == 0 {
            p.call(at.process as usize, Op::Munmap(region(at, order))).unwrap();
            assert!(!p.m.memory().frames().tag(pfn).is_allocated(), "{at:?} was not at {pfn}");
            kept.remove(&at);
        }
    }
    assert!(user_pages(&p.m) == kept, "another page lost its frame");
    p.m.memory().check().unwrap();
    for (at, (_, order)) in kept {
        p.call(at.process as usize, Op::Munmap(region(at, order))).unwrap();
    }
    assert_eq!(user_pages(&p.m).len(), 0);
    assert_eq!(kernel_pages(&p.m), 0);
    p.m.memory().check().unwrap();
}

#[test]
fn after_compaction_every_page_is_mapped_to_the_frame_that_names_it() {
    for profile in [linux("5.6"), weighted(), linux("6.1")] {
        let mut p = Prompt::new(machine(2, 32, profile), 2);
        let maps = [p.mmap(0, 4000), p.mmap(1, 5000), p.mmap(0, 2048)];
        p.call(0, Op::AdviseHuge(maps[2])).unwrap();
        for (r, who) in [(maps[0], 0), (maps[1], 1), (maps[2], 0)] {
            p.call(who, Op::Touch(r)).unwrap();
        }
        // Holes everywhere, in huge pages too.
        for (r, who, step, hole) in [(maps[0], 0, 7, 4), (maps[1], 1, 512, 384), (maps[2], 0, 1024, 400)] {
            for first in (0..r.pages - hole).step_by(step) {
                p.call(who, Op::Munmap(part(r, first, hole))).unwrap();
            }
        }
        let before = user_pages(&p.m);
        p.call(1, compact()).unwrap();
        p.m.memory().check().unwrap();
        let after = user_pages(&p.m);
        assert!(before.keys().eq(after.keys()), "no page is lost or invented");
        let moved = before.iter().filter(|(k, v)| after[k] != **v).count() as u64;
        assert!(moved > 500, "{moved} pages moved");
        assert!(event(&p.m, VmEvent::PgmigrateSuccess) >= moved);
        assert_page_tables_agree_with_owners(&mut p);
    }
}

#[test]
fn a_page_moved_twice_is_where_it_was_moved_last() {
    let mut p = Prompt::new(machine(2, 32, linux("5.6")), 1);
    let r = p.mmap(0, 10_000);
    p.call(0, Op::Touch(r)).unwrap();
    for round in 0..4 {
        for first in (round * 64..r.pages - 64).step_by(512) {
            p.call(0, Op::Munmap(part(r, first, 64))).unwrap();
        }
        p.call(0, compact()).unwrap();
        p.m.memory().check().unwrap();
    }
    assert!(event(&p.m, VmEvent::PgmigrateSuccess) > 1000);
    assert_page_tables_agree_with_owners(&mut p);
}

/// Two drivers on two CPUs of a fragmented machine, each until it fails; the machine is checked
/// throughout.
fn race(mut m: Machine, order: Order) -> (Machine, [Vec<Pfn>; 2]) {
    run(&mut m, 0, fragmenter(384));
    let before = user_pages(&m).len();
    let ids = [0, 1].map(|cpu| m.spawn(allocator(Gfp::KERNEL, order, usize::MAX, 0), Placement::Cpu(cpu)));
    for slice in 0.. {
        pass(&mut m, 5_000);
        if slice % 8 == 0 {
            m.memory().check().unwrap();
        }
        if ids.iter().all(|id| log(&m, *id).iter().any(|o| o.value == Value::Block(None))) {
            break;
        }
        assert!(slice < 100_000, "both give up in the end");
    }
    m.memory().check().unwrap();
    assert_eq!(user_pages(&m).len(), before, "no user page is lost");
    let got = ids.map(|id| blocks(log(&m, id)));
    (m, got)
}

#[test]
fn two_cpus_after_huge_pages_both_make_progress_and_share_no_block() {
    for profile in [linux("5.6"), weighted(), linux("6.1")] {
        let name = profile.name.clone();
        let (m, [a, b]) = race(machine(4, 64, profile), HUGE);
        assert!(a.len() >= 5 && b.len() >= 5, "{name}: {} and {} huge pages", a.len(), b.len());
        let all: BTreeSet<Pfn> = a.iter().chain(&b).copied().collect();
        assert_eq!(all.len(), a.len() + b.len(), "{name}: a block was handed out twice");
        for pfn in all {
            let tag = m.memory().frames().tag(pfn);
            assert!(pfn.is_pageblock_aligned() && tag.is_huge() && tag.movable_pages() == 0, "{name}: {pfn}");
        }
        assert!(event(&m, VmEvent::CompactSuccess) > 0 && event(&m, VmEvent::PgmigrateSuccess) > 0, "{name}");
    }
}

#[test]
fn while_one_cpu_compacts_another_takes_the_blocks_it_has_freed() {
    let mut m = machine_with(4, 64, linux("5.6"), &[("vm.watermark_boost_factor", "0")]);
    run(&mut m, 0, fragmenter(384));
    take_huge(&mut m);
    // The thief does not compact: its blocks were merged by the other CPU, and recently.
    let thief = m.spawn(
        script(move |log| match log.iter().filter(|o| matches!(o.value, Value::Block(Some(_)))).count() {
            5 => None,
            _ => Some(alloc_pages(Gfp::KERNEL.without(Gfp::RECLAIM), HUGE)),
        }),
        Placement::Cpu(1),
    );
    let drivers = [0, 2].map(|cpu| m.spawn(allocator(Gfp::KERNEL, HUGE, 10, 0), Placement::Cpu(cpu)));
    let compactor = m.spawn(ops(vec![compact()]), Placement::Cpu(3));
    for id in [compactor, thief, drivers[0], drivers[1]] {
        finish(&mut m, id);
        m.memory().check().unwrap();
    }
    let compacting = log(&m, compactor)[0];
    let taken = *log(&m, thief).last().unwrap();
    assert!(taken.end_ns < compacting.end_ns, "taken by {}, compacted until {}", taken.end_ns, compacting.end_ns);
    let all: Vec<Pfn> = [thief, drivers[0], drivers[1]].iter().flat_map(|id| blocks(log(&m, *id))).collect();
    assert!(drivers.iter().all(|id| !blocks(log(&m, *id)).is_empty()), "those who compact get something too");
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "no block goes to two");
}
