//! Strategies for histories of full machines.

use super::full::{Change, Do, Kind};
use super::strategy::{plan, request};
use super::tenant::Temper;
use super::{Ask, Plan};
use kontig_mm::Gfp;
use proptest::prelude::*;
use proptest::sample::select;

/// Machines small enough to be filled often.
pub fn small_plan() -> impl Strategy<Value = Plan> {
    plan().prop_map(|mut plan| {
        plan.areas.iter_mut().for_each(|a| a.blocks = a.blocks.min(6));
        plan.areas.iter_mut().for_each(|a| a.reserved = a.reserved.min(a.blocks * 512 - 256));
        plan
    })
}

/// Pages of swap: none, too few, plenty.
pub fn swap() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0u64), 1u64..200, Just(100_000u64)]
}

fn kind() -> impl Strategy<Value = Kind> {
    let rarely = || proptest::bool::weighted(0.25);
    (rarely(), rarely(), rarely(), any::<bool>(), rarely()).prop_map(|(anon, active, dirty, mapped, private)| Kind {
        anon,
        active,
        dirty,
        mapped,
        private,
    })
}

/// A request for a user page; sometimes for a large one, or one with fewer rights.
fn user() -> impl Strategy<Value = Ask> {
    let gfp = prop_oneof![
        8 => Just(Gfp::HIGHUSER_MOVABLE),
        1 => Just(Gfp::HIGHUSER_MOVABLE.without(Gfp::FS)),
        1 => Just(Gfp::HIGHUSER_MOVABLE.without(Gfp::FS).without(Gfp::IO)),
        1 => Just(Gfp::HIGHUSER_MOVABLE | Gfp::THISNODE),
        1 => Just(Gfp::KERNEL),
        1 => Just(Gfp::KERNEL | Gfp::DMA32),
    ];
    let order = prop_oneof![12 => Just(0u8), 2 => 1u8..5, 1 => Just(9u8)];
    (0usize..4, 0usize..2, gfp, order).prop_map(|(cpu, node, gfp, order)| Ask { cpu, node, gfp, order })
}

fn temper() -> impl Strategy<Value = Temper> {
    let share = || prop_oneof![2 => Just(0u8), 2 => 1u8..64, 1 => 64u8..=255];
    (share(), share(), share(), any::<u32>()).prop_map(|(used, fails, slow, seed)| Temper { used, fails, slow, seed })
}

const CHANGES: &[Change] = &[
    Change::Dirty,
    Change::Mapped,
    Change::Pinned,
    Change::Locked,
    Change::Held,
    Change::Private,
    Change::Writeback,
    Change::Writeback,
];

const SYSCTLS: &[(&str, &[&str])] = &[
    ("vm.swappiness", &["0", "1", "60", "100", "200"]),
    ("vm.min_free_kbytes", &["0", "64", "1024", "4096"]),
    ("vm.watermark_scale_factor", &["1", "10", "1000", "3000"]),
    ("vm.watermark_boost_factor", &["0", "15000", "100000"]),
    ("compact_unevictable_allowed", &["0", "1"]),
    ("vm.defrag_mode", &["0", "1"]),
    ("lru_gen.enabled", &["0", "1", "3", "7"]),
];

fn sysctl() -> impl Strategy<Value = Do> {
    select(SYSCTLS).prop_flat_map(|(name, values)| select(values).prop_map(move |value| Do::Sysctl { name, value }))
}

/// Operations weighted so that memory is full most of the time.
fn op() -> impl Strategy<Value = Do> {
    let steps = || prop_oneof![Just(1u8), 1u8..30];
    let which = || any::<u16>().prop_map(usize::from);
    let stride = || prop_oneof![1usize..4, 4usize..60];
    let cpu = || 0usize..4;
    prop_oneof![
        8 => (user(), prop_oneof![1u16..64, 64u16..4000], kind()).prop_map(|(r, n, k)| Do::Fill(r, n, k)),
        6 => (user(), kind()).prop_map(|(r, k)| Do::Fault(r, k)),
        2 => (request(), 1u16..300).prop_map(|(r, n)| Do::Kernel(r, n)),
        2 => (which(), any::<u8>(), cpu()).prop_map(|(number, pages, cpu)| Do::Cache { number, pages, cpu }),
        4 => (which(), 1u8..80, cpu()).prop_map(|(which, count, cpu)| Do::Refault { which, count, cpu }),
        4 => (stride(), which(), 1u8..4, cpu())
            .prop_map(|(stride, phase, times, cpu)| Do::Use { stride, phase, times, cpu }),
        2 => (stride(), which(), cpu()).prop_map(|(stride, phase, cpu)| Do::Deactivate { stride, phase, cpu }),
        1 => (stride(), which(), cpu()).prop_map(|(stride, phase, cpu)| Do::Lazyfree { stride, phase, cpu }),
        2 => (stride(), which(), cpu()).prop_map(|(stride, phase, cpu)| Do::DeactivateFile { stride, phase, cpu }),
        6 => (stride(), which(), select(CHANGES), proptest::bool::weighted(0.6))
            .prop_map(|(stride, phase, what, to)| Do::Change { stride, phase, what, to }),
        2 => (cpu(), proptest::bool::weighted(0.2))
            .prop_map(|(cpu, dirty_again)| Do::EndWriteback { cpu, dirty_again }),
        3 => (which(), cpu()).prop_map(|(which, cpu)| Do::Free { which, cpu }),
        2 => (stride(), which(), cpu()).prop_map(|(stride, phase, cpu)| Do::FreeSome { stride, phase, cpu }),
        4 => prop_oneof![user(), request()].prop_map(Do::SlowStart),
        8 => (which(), steps()).prop_map(|(which, steps)| Do::SlowStep { which, steps }),
        6 => (0usize..2, steps(), any::<bool>())
            .prop_map(|(node, steps, nap_over)| Do::KswapdStep { node, steps, nap_over }),
        2 => (0usize..2, steps()).prop_map(|(node, steps)| Do::KcompactdStep { node, steps }),
        2 => (0usize..2, cpu()).prop_map(|(node, cpu)| Do::SweepStart { node, cpu }),
        4 => steps().prop_map(|steps| Do::SweepStep { steps }),
        2 => cpu().prop_map(|cpu| Do::LruDrain { cpu }),
        1 => Just(Do::LruDrainAll),
        1 => cpu().prop_map(|cpu| Do::DrainCpu { cpu }),
        1 => cpu().prop_map(|cpu| Do::FoldVmstat { cpu }),
        2 => sysctl(),
        2 => temper().prop_map(Do::Temper),
    ]
}

/// A command to the multi-generational LRU.
fn command() -> impl Strategy<Value = Do> {
    let swappiness = || select(&[None, Some(0), Some(1), Some(60), Some(200)]);
    prop_oneof![
        (0usize..2, swappiness(), any::<bool>())
            .prop_map(|(node, swappiness, force)| { Do::Age { node, swappiness, force } }),
        (0usize..2, swappiness(), 1u16..2000)
            .prop_map(|(node, swappiness, pages)| { Do::Evict { node, swappiness, pages } }),
    ]
}

/// A history of a machine whose pages are in generations.
pub fn history_in_generations(longest: usize) -> impl Strategy<Value = Vec<Do>> {
    let scene = prop_oneof![
        7 => op().prop_map(|o| vec![o]),
        2 => command().prop_map(|o| vec![o]),
        1 => shortage(),
    ];
    proptest::collection::vec(scene, 1..=longest).prop_map(|scenes| scenes.concat())
}

/// Fills memory with pages of two kinds, uses some of them, and then requests more.
fn shortage() -> impl Strategy<Value = Vec<Do>> {
    let parts = (user(), kind(), kind(), 2usize..9, 1u8..4, 1u16..3000, user(), kind(), steps_of_daemons());
    parts.prop_map(|(fill, one, other, stride, times, n, wanted, kind, daemons)| {
        let fill = Ask { order: 0, gfp: Gfp::HIGHUSER_MOVABLE, ..fill };
        let mut ops = vec![
            Do::Fill(fill, n, one),
            Do::Fill(fill, u16::MAX, other),
            Do::Use { stride, phase: n.into(), times, cpu: fill.cpu },
            Do::SlowStart(wanted),
        ];
        ops.extend(daemons);
        ops.extend([Do::SlowStep { which: 0, steps: 40 }, Do::Fault(wanted, kind)]);
        ops.push(Do::Refault { which: n.into(), count: 40, cpu: fill.cpu });
        ops
    })
}

fn steps_of_daemons() -> impl Strategy<Value = Vec<Do>> {
    let step = (0usize..2, 1u8..60).prop_map(|(node, steps)| Do::KswapdStep { node, steps, nap_over: true });
    proptest::collection::vec(step, 0..3)
}

/// A history of up to `longest` scenes, most of them single operations.
pub fn history(longest: usize) -> impl Strategy<Value = Vec<Do>> {
    let scene = prop_oneof![8 => op().prop_map(|o| vec![o]), 1 => shortage()];
    proptest::collection::vec(scene, 1..=longest).prop_map(|scenes| scenes.concat())
}
