//! Strategies for histories: machines, requests, operations.

use super::owner::Mood;
use super::{Area, Ask, Kernel, Op, Plan, Use};
use kontig_mm::{Gfp, ZoneType};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, FileFailurePersistence};

/// Runs this many cases unless `PROPTEST_CASES` says otherwise.
pub fn cases(n: u32) -> Config {
    Config {
        cases: if std::env::var_os("PROPTEST_CASES").is_some() { Config::default().cases } else { n },
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/suite/property.regressions"))),
        max_shrink_iters: 20_000,
        max_shrink_time: 120_000,
        ..Config::default()
    }
}

/// The zones of a machine, each with its node.
const SHAPES: &[&[(usize, ZoneType)]] = &[
    &[(0, ZoneType::Normal)],
    &[(0, ZoneType::Dma32), (0, ZoneType::Normal)],
    &[(0, ZoneType::Dma), (0, ZoneType::Dma32), (0, ZoneType::Normal)],
    &[(0, ZoneType::Normal), (0, ZoneType::Movable)],
    &[(0, ZoneType::Dma32), (0, ZoneType::Normal), (1, ZoneType::Normal)],
    &[(0, ZoneType::Dma32), (1, ZoneType::Normal)],
    &[(0, ZoneType::Normal), (1, ZoneType::Normal)],
    &[(0, ZoneType::Normal), (1, ZoneType::Movable)],
];

/// Machines of one to three zones on one or two nodes, and one to four CPUs.
pub fn plan() -> impl Strategy<Value = Plan> {
    let blocks = prop_oneof![4 => 1u32..5, 6 => 4u32..17, 1 => 17u32..65];
    // Whole pageblocks, part of one, or nothing; sometimes the whole zone.
    let reserved = prop_oneof![4 => Just(0u32), 2 => 1u32..512, 1 => Just(512u32), 1 => 512u32..1600];
    let hole = prop_oneof![6 => Just(0u32), 1 => 1u32..3];
    let areas = select(SHAPES).prop_flat_map(move |shape| {
        proptest::collection::vec((blocks.clone(), reserved.clone(), hole.clone()), shape.len()).prop_map(
            move |sizes| -> Vec<Area> {
                shape
                    .iter()
                    .zip(sizes)
                    .map(|(&(node, kind), (blocks, reserved, hole))| Area {
                        node,
                        kind,
                        blocks,
                        reserved: reserved.min(blocks * 512),
                        hole,
                    })
                    .collect()
            },
        )
    });
    (1usize..5, areas, any_kernel(), proptest::bool::weighted(0.2)).prop_map(|(cpus, areas, kernel, thp)| Plan {
        cpus,
        areas,
        kernel,
        thp,
    })
}

/// Machines with one Normal zone, small enough that the smallest scale factor leaves no distance
/// between the watermarks.
pub fn one_zone_plan() -> impl Strategy<Value = Plan> {
    (1usize..5, 1u32..19, 0u32..512, any_kernel()).prop_map(|(cpus, blocks, reserved, kernel)| {
        let areas = vec![Area { node: 0, kind: ZoneType::Normal, blocks, reserved, hole: 0 }];
        Plan { cpus, areas, kernel, thp: false }
    })
}

fn gfp() -> impl Strategy<Value = Gfp> {
    let base = prop_oneof![
        6 => Just(Gfp::KERNEL),
        8 => Just(Gfp::HIGHUSER_MOVABLE),
        3 => Just(Gfp::KERNEL | Gfp::RECLAIMABLE),
        3 => Just(Gfp::ATOMIC),
        1 => Just(Gfp::KSWAPD_RECLAIM),
        1 => Just(Gfp::NONE),
        2 => Just(Gfp::TRANSHUGE),
        1 => Just(Gfp::TRANSHUGE_LIGHT),
    ];
    let zone = prop_oneof![8 => Just(Gfp::NONE), 1 => Just(Gfp::DMA), 1 => Just(Gfp::DMA32)];
    let more = prop_oneof![
        8 => Just(Gfp::NONE),
        2 => Just(Gfp::THISNODE),
        1 => Just(Gfp::NORETRY),
        1 => Just(Gfp::RETRY_MAYFAIL),
        1 => Just(Gfp::THISNODE | Gfp::NORETRY),
        1 => Just(Gfp::NOMEMALLOC),
    ];
    (base, zone, more).prop_map(|(a, b, c)| a | b | c)
}

fn order() -> impl Strategy<Value = u8> {
    prop_oneof![4 => Just(0u8), 3 => 1u8..4, 2 => 4u8..9, 3 => Just(9u8), 1 => Just(10u8)]
}

pub fn request() -> impl Strategy<Value = Ask> {
    (0usize..4, 0usize..2, gfp(), order()).prop_map(|(cpu, node, gfp, order)| Ask { cpu, node, gfp, order })
}

fn budget() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1u64), 2u64..8, Just(1000u64)]
}

const SYSCTLS: &[(&str, &[&str])] = &[
    ("vm.min_free_kbytes", &["0", "64", "1024", "4096", "4294967295", "-1", "4294967296"]),
    ("vm.watermark_scale_factor", &["1", "10", "1000", "3000", "0", "3001"]),
    ("vm.watermark_boost_factor", &["0", "1", "15000", "100000", "4294967295", "x"]),
    ("vm.extfrag_threshold", &["0", "500", "1000", "1001", ""]),
    ("compaction_proactiveness", &["0", "20", "100", "101"]),
    ("compact_unevictable_allowed", &["0", "1", "2"]),
    ("vm.defrag_mode", &["0", "1", "2"]),
    ("vm.compact_memory", &["1", "0", "2"]),
    ("vm.zone_reclaim_mode", &["0", "1", "2", "7", "8", "2147483647", "2147483648"]),
    ("vm.min_unmapped_ratio", &["0", "1", "100", "101"]),
    ("vm.min_slab_ratio", &["0", "5", "100", "101"]),
    ("vm.no_such_thing", &["1"]),
];

fn sysctl() -> impl Strategy<Value = Op> {
    select(SYSCTLS).prop_flat_map(|(name, values)| select(values).prop_map(move |value| Op::Sysctl { name, value }))
}

fn mood() -> impl Strategy<Value = Mood> {
    let share = || prop_oneof![3 => Just(0u8), 2 => 1u8..64, 1 => 64u8..=255];
    (share(), share(), share(), any::<u32>()).prop_map(|(pinned, busy, failed, seed)| Mood {
        pinned,
        busy,
        failed,
        seed,
    })
}

/// Operations weighted so that memory runs short, is freed in fragments, and is compacted while in
/// use.
pub fn op() -> impl Strategy<Value = Op> {
    let steps = || prop_oneof![Just(1u8), 1u8..30];
    let which = || any::<u16>().prop_map(usize::from);
    prop_oneof![
        6 => request().prop_map(Op::Alloc),
        4 => (request(), budget()).prop_map(|(r, b)| Op::AllocToEnd(r, b)),
        5 => (request(), prop_oneof![1u16..64, 64u16..4000], what_for()).prop_map(|(r, n, u)| Op::Fill(r, n, u)),
        4 => request().prop_map(Op::SlowStart),
        8 => (which(), budget(), steps()).prop_map(|(which, budget, steps)| Op::SlowStep { which, budget, steps }),
        4 => (0usize..2, any::<bool>()).prop_map(|(node, nap_over)| Op::KswapdStep { node, nap_over }),
        4 => (0usize..2, budget(), any::<bool>(), steps())
            .prop_map(|(node, budget, timed_out, steps)| Op::KcompactdStep { node, budget, timed_out, steps }),
        2 => (0usize..2, 0usize..4, any::<bool>())
            .prop_map(|(node, cpu, proactive)| Op::SweepStart { node, cpu, proactive }),
        4 => (which(), budget(), steps()).prop_map(|(which, budget, steps)| Op::SweepStep { which, budget, steps }),
        4 => (which(), 0usize..4).prop_map(|(which, cpu)| Op::Free { which, cpu }),
        3 => (1usize..9, 0usize..9, 0usize..4).prop_map(|(stride, phase, cpu)| Op::FreeSome { stride, phase, cpu }),
        2 => which().prop_map(|which| Op::SplitPage { which }),
        2 => which().prop_map(|which| Op::LruAdd { which }),
        1 => which().prop_map(|which| Op::SetMovableOps { which }),
        2 => (0usize..4).prop_map(|cpu| Op::DrainCpu { cpu }),
        1 => (0usize..4).prop_map(|cpu| Op::FoldVmstat { cpu }),
        2 => sysctl(),
        1 => mood().prop_map(Op::Mood),
    ]
}

fn what_for() -> impl Strategy<Value = Use> {
    prop_oneof![3 => Just(Use::User), 2 => Just(Use::Kernel), 1 => Just(Use::Driver)]
}

/// Memory is filled with single pages, some are freed, and then a large block is requested: the
/// case that compaction exists for, which single random operations seldom reach.
fn shortage_of_large_blocks() -> impl Strategy<Value = Vec<Op>> {
    let filler = prop_oneof![4 => Just(Gfp::HIGHUSER_MOVABLE), 1 => Just(Gfp::KERNEL)];
    let large = prop_oneof![2 => 1u8..9, 3 => Just(9u8), 1 => Just(10u8)];
    (filler, 0usize..4, 0usize..2, what_for(), 2usize..9, request(), large, any::<bool>()).prop_map(
        |(gfp, cpu, node, use_, stride, wanted, order, settle)| {
            let fill = Ask { cpu, node, gfp, order: 0 };
            let wanted = Ask { node, order, ..wanted };
            let mut ops = vec![
                Op::Fill(fill, u16::MAX, use_),
                Op::FreeSome { stride, phase: cpu, cpu },
                Op::DrainCpu { cpu },
                Op::SlowStart(wanted),
            ];
            if settle {
                ops.push(Op::AllocToEnd(wanted, 3));
            } else {
                ops.push(Op::KswapdStep { node, nap_over: true });
                ops.push(Op::KcompactdStep { node, budget: 2, timed_out: true, steps: 5 });
            }
            ops
        },
    )
}

/// High-order atomic requests while memory is short, so that pageblocks are reserved for them; then
/// everything is freed, and the pageblocks are split up again by requests of other types.
fn atomic_shortage() -> impl Strategy<Value = Vec<Op>> {
    let what = (0usize..4, 0usize..2, 1u8..11, what_for(), 1usize..9, request(), 1u16..600);
    what.prop_map(|(cpu, node, order, use_, stride, after, n)| {
        let fill = Ask { cpu, node, gfp: Gfp::HIGHUSER_MOVABLE, order: 0 };
        let atomic = Ask { gfp: Gfp::ATOMIC, order, ..fill };
        vec![
            Op::Fill(fill, u16::MAX, use_),
            Op::FreeSome { stride, phase: cpu, cpu },
            Op::DrainCpu { cpu },
            Op::Fill(Ask { order: order.min(3), ..atomic }, u16::MAX, Use::Kernel),
            Op::AllocToEnd(atomic, 10),
            Op::AllocToEnd(atomic, 10),
            Op::FreeSome { stride: 1, phase: 0, cpu },
            Op::DrainCpu { cpu },
            Op::Fill(Ask { cpu, node, ..after }, n, Use::Kernel),
        ]
    })
}

/// A history of up to `longest` scenes, most of them single operations.
pub fn history(longest: usize) -> impl Strategy<Value = Vec<Op>> {
    let scene = prop_oneof![12 => op().prop_map(|o| vec![o]), 1 => shortage_of_large_blocks(), 1 => atomic_shortage()];
    proptest::collection::vec(scene, 1..=longest).prop_map(|scenes| scenes.concat())
}

/// One of the kernels whose rules the engine knows.
pub fn any_kernel() -> impl Strategy<Value = Kernel> {
    select(Kernel::ALL.as_slice())
}
