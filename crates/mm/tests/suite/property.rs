//! Whatever happens to a small machine, its state stays consistent: random histories of
//! allocations, frees, daemons and slow paths in progress at the same time, with the whole machine
//! checked after every operation.
//!
//! The histories are the same on every run; `PROPTEST_RNG_SEED=… PROPTEST_CASES=…` looks for new
//! ones. A history that finds a fault is shrunk and becomes a test of its own, at the end of this
//! file.

use crate::support;
use crate::support::strategy::{any_kernel, cases, history, one_zone_plan, plan, request};
use crate::support::text::{edit, mutate};
use crate::support::{Area, Ask, Kernel, Op, Plan, Use, World, play};
use kontig_mm::snapshot::ZoneSnapshot;
use kontig_mm::*;
use kontig_profiles::linux;
use proptest::prelude::*;

/// Switches off everything that keeps pages from a request: watermarks, boosts, and whole
/// pageblocks.
const NO_MARKS: [Op; 4] = [
    Op::Sysctl { name: "defrag_mode", value: "0" },
    Op::Sysctl { name: "watermark_boost_factor", value: "0" },
    Op::Sysctl { name: "watermark_scale_factor", value: "1" },
    Op::Sysctl { name: "min_free_kbytes", value: "0" },
];

proptest! {
    #![proptest_config(cases(1200))]

    #[test]
    fn after_every_operation_the_machine_is_consistent(plan in plan(), ops in history(60)) {
        let mut w = play(&plan, &ops);
        w.settle();
        w.verify().expect("consistent when everything has come to its end");
        prop_assert_eq!(w.isolated(), 0, "nobody is left to give these back");
    }
}

proptest! {
    #![proptest_config(cases(350))]

    #[test]
    fn once_everything_is_free_every_pageblock_is_one_block_again(plan in plan(), ops in history(40)) {
        let mut w = play(&plan, &ops);
        w.settle();
        w.free_everything();
        NO_MARKS.iter().for_each(|op| w.apply(op));
        w.verify().expect("consistent when everything is free");
        // Up to 4.5 a request bound to a node that cannot reclaim has no second try.
        let bound = match plan.profile().slow_path.thisnode_fails_without_reclaim {
            false => Gfp::THISNODE,
            true if w.m.nodes().len() == 1 => Gfp::NONE,
            true => return Ok(()),
        };
        for z in 0..w.m.zones().len() {
            let zone = &w.m.zones()[z];
            let (node, kind) = (zone.node.index(), zone.kind);
            prop_assert_eq!(zone.nr_free_pages(), zone.managed, "all managed pages are free");
            // ATOMIC may use every free list, so the types the blocks have ended up with do not
            // matter.
            let gfp = Gfp::ATOMIC | bound | match kind {
                ZoneType::Dma => Gfp::DMA,
                ZoneType::Dma32 => Gfp::DMA32,
                ZoneType::Normal => Gfp::NONE,
                _ => Gfp::HIGHMEM | Gfp::MOVABLE,
            };
            let mut got = 0;
            // Pages that a refill leaves on the CPU's list are free, but not to the watermark
            // check, so they are drained each time.
            while let Some(id) = w.alloc_to_end(Ask { cpu: 0, node, gfp, order: 9 }, 8) {
                let at = w.book.get(id).pfn;
                got += u64::from(w.m.pageblocks().zone_of(at).index() == z);
                w.apply(&Op::DrainCpu { cpu: 0 });
                w.apply(&Op::FoldVmstat { cpu: 0 });
            }
            prop_assert_eq!(got, w.m.zones()[z].managed / 512, "order-9 blocks of zone {}", z);
        }
    }

    #[test]
    fn an_allocation_does_not_fail_while_a_block_that_fits_is_free(
        plan in one_zone_plan(),
        ops in history(40),
        wants in proptest::collection::vec(request(), 1..60),
    ) {
        let mut w = play(&plan, &ops);
        w.settle();
        NO_MARKS.iter().for_each(|op| w.apply(op));
        for r in wants {
            for cpu in 0..w.m.nr_cpus() {
                w.m.fold_vmstat(CpuId::new(cpu));
            }
            let z = &w.m.zones()[0];
            let listed = Order::new(r.order).and_up().any(|o| {
                [MigrateType::Unmovable, MigrateType::Movable, MigrateType::Reclaimable]
                    .iter()
                    .any(|t| !z.free_list(o, *t).is_empty())
            });
            let reserve = z.nr_reserved_highatomic;
            // In 3.13 the fast path fails once every zone has given its share.
            let ends_early = plan.profile().zonelist.fills_up_on_slow_path;
            let fits = listed && !ends_early && z.kind <= r.gfp.highest_zone() && z.nr_free_pages() >= reserve + (1 << r.order);
            let got = w.alloc(r);
            prop_assert!(got.is_some() || !fits, "{:?} got nothing", r);
            w.verify().expect("consistent after an allocation");
        }
    }

    #[test]
    fn a_zone_survives_being_written_as_text_and_read_back(plan in plan(), ops in history(30)) {
        let mut w = play(&plan, &ops);
        w.settle();
        for z in w.m.zones() {
            let text = ZoneSnapshot::of(&w.m, z.id).to_string();
            let read = ZoneSnapshot::parse(&text).expect("what was written can be read");
            prop_assert_eq!(read.to_string(), text.clone());
            // Rebuilt as a machine, which keeps room for its first node's zone at the bottom.
            if z.start >= Pfn::new(512) {
                let m = read.machine(plan.profile()).expect("a zone that existed is a possible one");
                prop_assert_eq!(ZoneSnapshot::of(&m, ZoneId::new(1)).to_string(), text);
                m.check().expect("a consistent zone is consistent after reading");
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn runs_of_pages_do_what_the_pages_do_one_by_one(
        plan in plan(),
        ops in history(40),
        pages in 1usize..5000,
        stretch in 1usize..2000,
        backwards in any::<bool>(),
        pairs in any::<bool>(),
    ) {
        let together = &mut play(&plan, &ops).m;
        let singly = &mut together.clone();
        // A listener to single pages gets an event for each.
        singly.trace().listen(Listen::KMEM);
        let cpu = CpuId::new(plan.cpus - 1);
        let r = Request::new(cpu, NodeId::new(0), Gfp::HIGHUSER_MOVABLE, Order::ZERO);
        let fill = |m: &mut Memory| -> Vec<Pfn> { (0..pages).map_while(|_| m.alloc(r).ok()).collect() };
        let mut held = fill(together);
        prop_assert_eq!(&held, &fill(singly));
        if backwards {
            held.reverse();
        }
        // In stretches, the last one first, and in some of them every other page first.
        for stretch in held.rchunks(stretch) {
            let (even, odd): (Vec<_>, Vec<_>) = stretch.iter().partition(|pfn| pairs || pfn.get() % 3 != 0);
            for pfn in even.into_iter().chain(odd) {
                together.free(cpu, pfn, Order::ZERO);
                singly.free(cpu, pfn, Order::ZERO);
            }
        }
        same(together, singly)?;
        prop_assert_eq!(fill(together), fill(singly));
        same(together, singly)?;
    }

    #[test]
    fn a_history_ends_the_same_whether_or_not_somebody_listens(plan in plan(), ops in history(40)) {
        let (mut unheard, mut heard) = (World::new(&plan), World::new(&plan));
        heard.m.trace().listen(Listen::KMEM);
        for op in &ops {
            unheard.apply(op);
            heard.apply(op);
        }
        same(&mut unheard.m, &mut heard.m)?;
    }
}

/// Checks that two machines are in the same state, have done the same work and woken the same
/// daemons.
fn same(a: &mut Memory, b: &mut Memory) -> Result<(), TestCaseError> {
    let (of_a, of_b) = (a.take_work(), b.take_work());
    prop_assert_eq!(Work { any: true, ..of_a }, Work { any: true, ..of_b });
    prop_assert_eq!(a.vmstat(), b.vmstat());
    for zone in 0..a.zones().len() {
        let of = |m: &Memory| ZoneSnapshot::of(m, ZoneId::new(zone)).to_string();
        prop_assert_eq!(of(a), of(b));
    }
    prop_assert!(a.take_wakes().eq(b.take_wakes()));
    a.check().map_err(TestCaseError::fail)
}

proptest! {
    #![proptest_config(cases(4000))]

    #[test]
    fn a_damaged_snapshot_is_refused_or_makes_a_machine_that_works(
        blocks in 1u32..5,
        ops in history(6),
        edits in proptest::collection::vec(edit(), 1..4),
        kernel in any_kernel(),
    ) {
        let area = Area { node: 0, kind: ZoneType::Normal, blocks, reserved: 0, hole: 1 };
        let mut w = World::new(&Plan { cpus: 2, areas: vec![area], kernel, thp: false });
        ops.iter().for_each(|op| w.apply(op));
        let text = mutate(&ZoneSnapshot::of(&w.m, ZoneId::new(0)).to_string(), &edits);
        survive(&text, kernel);
    }

    #[test]
    fn no_text_at_all_makes_the_parser_panic(
        text in "((ZONE|WM|COMPACT|VMSTAT|PCP|PL|FL|PB|SKIP|END)?( [a-z]{1,5})?( [0-9a-f]{1,9})*\n){0,12}",
    ) {
        survive(&text, Kernel::Linux6_1);
    }
}

/// Reading any text is either an error or gives a machine; one that passes its check also works.
fn survive(text: &str, kernel: Kernel) {
    let Ok(snapshot) = ZoneSnapshot::parse(text) else { return };
    assert_eq!(ZoneSnapshot::parse(&snapshot.to_string()).as_ref(), Ok(&snapshot), "{text}");
    // The engine keeps an array over all frames, and a zone at terabytes would need gigabytes here.
    let start = text.split_ascii_whitespace().skip_while(|w| *w != "start").nth(1);
    if start.and_then(|s| u32::from_str_radix(s, 16).ok()).is_none_or(|s| s > 1 << 20) {
        return;
    }
    let profile = kernel.profile();
    let Ok(mut m) = snapshot.machine(profile) else { return };
    if m.check().is_err() {
        return;
    }
    let (cpu, node) = (CpuId::new(0), NodeId::new(1));
    let mut held = Vec::new();
    for i in 0..600u32 {
        let order = Order::new([0, 0, 1, 0, 3, 9][i as usize % 6]);
        let gfp = [Gfp::HIGHUSER_MOVABLE, Gfp::KERNEL][(i / 7 % 2) as usize];
        held.extend(m.alloc(Request::new(cpu, node, gfp, order)).ok().map(|pfn| (pfn, order)));
        if i % 3 == 0
            && let Some((pfn, order)) = held.pop()
        {
            m.free(cpu, pfn, order);
        }
    }
    let mut sweep = kontig_mm::kcompactd::NodeSweep::new(node, cpu, false);
    let mut book = support::owner::Book::new(0);
    while sweep.step(&mut m, &mut book, 8) == Step::Working {}
    held.into_iter().for_each(|(pfn, order)| m.free(cpu, pfn, order));
    m.drain_cpu(cpu);
    m.check().unwrap_or_else(|e| panic!("a machine that was consistent is not any more: {e}\n{text}"));
}

/// One Normal zone of this many pageblocks.
fn small(cpus: usize, blocks: u32, kernel: Kernel) -> Plan {
    let area = Area { node: 0, kind: ZoneType::Normal, blocks, reserved: 0, hole: 0 };
    Plan { cpus, areas: vec![area], kernel, thp: false }
}

fn kernel(order: u8) -> Ask {
    Ask { cpu: 0, node: 0, gfp: Gfp::KERNEL, order }
}

#[test]
fn a_request_bound_to_its_node_gets_nothing_where_the_node_has_no_zone_low_enough() {
    let area = |node, kind| Area { node, kind, blocks: 4, reserved: 0, hole: 0 };
    let areas = vec![area(0, ZoneType::Dma32), area(1, ZoneType::Normal)];
    let mut w = World::new(&Plan { cpus: 2, areas, kernel: Kernel::Linux6_1, thp: false });
    for order in [0, 4, 9] {
        let bound = Ask { cpu: 1, node: 1, gfp: Gfp::KERNEL | Gfp::DMA32 | Gfp::THISNODE, order };
        assert_eq!(w.alloc_to_end(bound, 8), None, "only node 0 has a zone below 4 GiB");
        let free_to_go = Ask { gfp: Gfp::KERNEL | Gfp::DMA32, ..bound };
        assert!(w.alloc(free_to_go).is_some(), "unbound, it goes there");
    }
}

#[test]
fn a_kswapd_woken_at_the_moment_its_nap_ends_stays_awake() {
    let shortage = [Op::Fill(kernel(0), u16::MAX, Use::Kernel), Op::AllocToEnd(kernel(0), 8)];
    let relief = [Op::FreeSome { stride: 1, phase: 0, cpu: 0 }, Op::DrainCpu { cpu: 0 }];
    let mut ops = [shortage, relief].concat();
    ops.extend([Op::KswapdStep { node: 0, nap_over: false }; 3]);
    ops.extend([shortage, relief].concat());
    ops.push(Op::KswapdStep { node: 0, nap_over: true });
    // Every operation verifies that a running kswapd has a reason to run.
    let mut w = play(&small(1, 14, Kernel::Linux6_1), &ops);
    w.settle();
    assert!(!w.m.nodes()[0].kswapd.running);
}

#[test]
fn hints_of_a_zone_of_one_pageblock_at_the_start_of_memory_can_be_reset() {
    let ops = [
        Op::Fill(kernel(0), 355, Use::User),
        Op::FreeSome { stride: 2, phase: 0, cpu: 0 },
        Op::Fill(kernel(1), 71, Use::User),
        Op::SlowStart(kernel(4)),
    ];
    play(&small(1, 1, Kernel::Linux6_1), &ops).settle();
}

#[test]
fn a_boost_outlives_the_factor_it_was_made_with() {
    let ops = [
        Op::Sysctl { name: "watermark_boost_factor", value: "100000" },
        Op::Fill(Ask { gfp: Gfp::HIGHUSER_MOVABLE, ..kernel(0) }, u16::MAX, Use::User),
        Op::FreeSome { stride: 8, phase: 5, cpu: 0 },
        Op::DrainCpu { cpu: 0 },
        Op::Fill(kernel(0), 1000, Use::Kernel),
        Op::Sysctl { name: "watermark_boost_factor", value: "1" },
    ];
    let w = play(&small(1, 32, Kernel::Linux6_1), &ops);
    assert!(w.m.zones()[0].watermark_boost > 512, "boosted by {}", w.m.zones()[0].watermark_boost);
}

/// The kernel's count of reserved pages leaks here, and so does the engine's.
#[test]
fn a_reserved_pageblock_that_merges_into_a_foreign_block_stays_counted() {
    let mut w = World::new(&small(1, 4, Kernel::Linux5_6));
    NO_MARKS.iter().for_each(|op| w.apply(op));
    let user = |order| Ask { gfp: Gfp::HIGHUSER_MOVABLE, ..kernel(order) };
    let (cpu, node) = (CpuId::new(0), NodeId::new(0));
    let elsewhere = w.m.alloc(Request::new(cpu, node, user(10).gfp, Order::new(10))).expect("all is free");
    let first_half = w.m.alloc(Request::new(cpu, node, user(9).gfp, Order::new(9))).expect("half is free");
    let page = w.m.alloc(Request::new(cpu, node, user(0).gfp, Order::ZERO)).expect("a quarter is free");
    // On a per-CPU list the page keeps the type its pageblock has now; then an atomic request
    // reserves the pageblock.
    w.m.free(cpu, page, Order::ZERO);
    let mut path = AllocSlow::new(&w.m, Request::new(cpu, node, Gfp::ATOMIC, Order::new(1)));
    let Step::Done(Ok(atomic)) = path.step(&mut w.m, &mut w.book, 1) else { panic!("a quarter is free") };
    assert_eq!(w.m.pageblocks().migratetype(atomic.pageblock()), MigrateType::HighAtomic);
    w.m.free(cpu, atomic, Order::new(1));
    w.m.free(cpu, first_half, Order::new(9));
    w.m.free(cpu, elsewhere, Order::new(10));
    w.m.drain_cpu(cpu);
    assert_eq!(w.m.zones()[0].nr_free(Order::new(10)), 2, "the last page joins both halves");
    w.m.check().expect("a reserved half of a movable block is consistent");
    w.m.alloc(Request::new(cpu, node, Gfp::KERNEL, Order::new(10))).expect("all is free");
    assert_eq!(w.m.pageblocks().migratetype(atomic.pageblock()), MigrateType::Unmovable);
    assert_eq!(w.m.zones()[0].nr_reserved_highatomic, 512);
    w.m.check().expect("the count may run ahead of the pageblocks");
}

#[test]
fn a_snapshot_may_start_at_an_odd_pageblock() {
    let area = Area { node: 0, kind: ZoneType::Normal, blocks: 5, reserved: 0, hole: 1 };
    let w = World::new(&Plan { cpus: 1, areas: vec![area], kernel: Kernel::Linux6_1, thp: false });
    assert_eq!(w.m.zones()[0].nr_free(Order::new(10)), 2, "aligned in memory, not in the zone");
    let text = ZoneSnapshot::of(&w.m, ZoneId::new(0)).to_string();
    assert_eq!(ZoneSnapshot::parse(&text).map(|s| s.to_string()), Ok(text));
}

/// A snapshot of one pageblock: one page on this list of CPU 0, the rest allocated.
fn one_page(list: usize, change: (&str, &str)) -> Result<ZoneSnapshot, String> {
    let count = [1, 2, 4, 8, 512][(list / 3).min(4)];
    let text = format!(
        "ZONE start 200 spanned 512 present 512 managed 512\n\
         WM min 0 low 0 high 0 promo 0 boost 0 highatomic 0\n\
         COMPACT free_pfn 200 migrate_pfn 200 200 init_migrate 0 init_free 0 \
         considered 0 defer_shift 0 order_failed 0\n\
         VMSTAT 0\nPCP cpu 0 count {count} batch 1 high 100 free_factor 0 diff 0\nPL 0 {list} 0\n\
         PB 1\nSKIP 0\nEND\n"
    );
    assert!(text.contains(change.0), "'{}' is in the text", change.0);
    ZoneSnapshot::parse(&text.replacen(change.0, change.1, 1))
}

#[test]
fn a_page_in_a_snapshot_has_the_type_of_the_list_it_is_on() {
    // The pageblock is movable by now, but the page was put on the unmovable list when it was not.
    for list in 0..13 {
        let m = one_page(list, ("", "")).and_then(|s| s.machine(linux("6.1"))).expect("a possible zone");
        m.check().unwrap_or_else(|e| panic!("list {list}: {e}"));
    }
}

#[test]
fn a_snapshot_with_numbers_no_kernel_has_is_refused() {
    for (from, to) in [
        ("free_factor 0", "free_factor 255"),
        ("diff 0", "diff -9223372036854775808"),
        ("considered 0", "considered 4294967295"),
        ("defer_shift 0", "defer_shift 255"),
        ("boost 0", "boost 18446744073709551615"),
        ("highatomic 0", "highatomic 18446744073709551615"),
        ("high 0", "high 18446744073709551615"),
        ("VMSTAT 0", "VMSTAT -1"),
        ("VMSTAT 0", "VMSTAT 513"),
    ] {
        assert!(one_page(0, (from, to)).is_err(), "{to}");
    }
}

#[test]
fn a_snapshot_with_lists_the_profile_does_not_have_makes_no_machine() {
    let of_order_one = one_page(4, ("", "")).expect("fine in itself");
    assert!(of_order_one.machine(linux("5.6")).is_err(), "before 5.13 the lists held single pages only");
}

#[test]
fn a_machine_has_no_more_nodes_and_zones_than_a_word_has_bits() {
    let zone = |node: usize, i: u32| ZoneSpec {
        node,
        kind: ZoneType::Normal,
        start: i * 512,
        end: (i + 1) * 512,
        present: 512,
        managed: 512,
    };
    let new = |zones: Vec<ZoneSpec>| {
        Memory::new(&MachineSpec { cpus: 1, zones, thp: false, lru: false }, linux("6.1")).map(|_| ())
    };
    assert_eq!(new(vec![zone(63, 0)]), Ok(()));
    assert!(new(vec![zone(64, 0)]).is_err());
    assert!(new(vec![zone(256, 0)]).is_err());
    assert_eq!(new((0..64).map(|i| zone(i as usize, i)).collect()), Ok(()));
    assert!(new((0..65).map(|i| zone(0, i)).collect()).is_err());
}
