//! Generated traces: the same for the same name and seed, and each goes where it says it goes.

use kontig_mm::sysctl::Sysctl;
use kontig_mm::{Event, Listen, Memory, MigrateType, Order, VmEvent, Wmark, Zone};
use kontig_oracle::Recording;
use kontig_oracle::recording::{CPU, Part, ZONE};
use kontig_oracle::replay::operations::Runner;
use kontig_oracle::trace::{self, FAILED, Op, Recipe, decode, encode, generate, recipes};
use std::collections::HashSet;
use std::path::Path;

/// The recorded node as boot left it, nearly all of it free.
fn fresh() -> Memory {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracle/golden/6.1-mixed100k");
    Recording::open(&golden).and_then(|r| r.machine(Part::Operations)).unwrap_or_else(|e| panic!("{e}"))
}

fn recipe(name: &str) -> &'static Recipe {
    recipes().find(|r| r.name == name).expect("a known trace")
}

fn made(name: &str) -> Vec<Op> {
    generate(name, 1, recipe(name).ops).expect("a known trace")
}

/// A fresh node with what the trace wants set, as far as the engine has it.
fn runner(name: &str, ops: &[Op]) -> Runner {
    let mut m = fresh();
    for (sysctl, value) in recipe(name).sysctls.iter().filter(|(n, _)| Sysctl::find(n).is_some()) {
        m.sysctl_write(sysctl, value).expect("a possible value");
    }
    Runner::new(m, ops, false)
}

/// Carries a trace out on a fresh node and looks at every state and result on the way.
fn carry_out(name: &str, mut look: impl FnMut(&Memory, &Op, u32)) -> Memory {
    let ops = made(name);
    let mut runner = runner(name, &ops);
    for op in &ops {
        let result = runner.carry_out(op);
        look(&runner.memory, op, result);
    }
    runner.memory.check().unwrap_or_else(|e| panic!("{name}: {e}"));
    runner.memory
}

fn zone(m: &Memory) -> &Zone {
    m.zone(ZONE)
}

#[test]
fn a_trace_is_the_same_for_the_same_seed_and_another_for_another() {
    for recipe in recipes() {
        let make = |seed| generate(recipe.name, seed, recipe.ops).expect("a known trace");
        let first = make(1);
        assert!(first == make(1) && first != make(2) && first.len() == recipe.ops, "{}", recipe.name);
    }
    assert_eq!(generate("nonsense", 1, 100), None);
}

#[test]
fn a_trace_can_be_carried_out_by_the_module() {
    for recipe in recipes() {
        let ops = made(recipe.name);
        assert_eq!(ops.len(), recipe.ops, "{}", recipe.name);
        assert_eq!(decode(&encode(&ops)).as_ref(), Ok(&ops), "{}", recipe.name);
        let mut held = HashSet::new();
        for (i, op) in ops.iter().enumerate() {
            match op {
                Op::Alloc { id, .. } => assert!(held.insert(*id), "{}: operation {i} asks again", recipe.name),
                Op::Free { id } => assert!(held.remove(id), "{}: operation {i} frees too early", recipe.name),
            }
        }
    }
}

#[test]
fn mixed_uses_a_good_part_of_the_node_and_never_runs_out() {
    let (mut failed, mut least) = (0, u64::MAX);
    carry_out("mixed", |m, op, result| {
        // Blocks of order 10 may run out; pages do not.
        failed += usize::from(result == FAILED && matches!(op, Op::Alloc { order, .. } if *order == Order::ZERO));
        least = least.min(zone(m).nr_free_pages());
    });
    assert_eq!(failed, 0);
    assert!((10_000..350_000).contains(&least), "{least}");
}

#[test]
fn stress_runs_the_node_dry_and_makes_types_take_from_each_other() {
    let (mut failed, mut steals, mut claims) = (0, 0, 0);
    let ops = made("stress");
    let mut runner = runner("stress", &ops);
    runner.memory.trace().listen(Listen::EXTFRAG);
    for op in &ops {
        failed += usize::from(runner.carry_out(op) == FAILED);
    }
    for event in runner.memory.trace().take() {
        let Event::PageAllocExtfrag { change_ownership, .. } = event else { continue };
        if change_ownership { claims += 1 } else { steals += 1 }
    }
    assert!(failed > 1_000 && steals > 20 && claims > 1_000, "{failed} failed, {steals} steals, {claims} claims");
}

#[test]
fn long_runs_of_frees_raise_the_share_given_back_to_its_limit() {
    let mut factors = HashSet::new();
    carry_out("pcp-small-runs", |m, _, _| {
        factors.insert(zone(m).pcp(CPU).free_factor);
    });
    assert!((0..=5).all(|f| factors.contains(&f)), "{factors:?}");
}

#[test]
fn huge_pages_are_on_both_of_their_lists() {
    let mut longest = [0; 2];
    carry_out("pcp-order9", |m, _, _| {
        for (i, l) in longest.iter_mut().enumerate() {
            *l = (*l).max(zone(m).pcp(CPU).list(12 + i).count());
        }
    });
    assert!(longest.iter().all(|l| *l >= 2), "{longest:?}");
}

#[test]
fn the_walks_stay_at_the_marks() {
    for name in ["watermark-walk", "kswapd-walk", "reserves"] {
        let (mut near, mut failed, mut all) = (0, 0, 0);
        let m = carry_out(name, |m, _, result| {
            let z = zone(m);
            near += usize::from(z.nr_free_pages() < z.wmark(Wmark::Low) + 400);
            failed += usize::from(result == FAILED);
            all += 1;
        });
        assert!(near > all / 2 && failed > 1_000, "{name}: {near} of {all} near the marks, {failed} failed");
        // After sixteen runs that reclaim nothing kswapd gives the node up.
        assert!(name != "kswapd-walk" || m.vmstat().get(VmEvent::Pageoutrun) >= 16, "{name}");
    }
}

#[test]
fn reserves_go_below_the_min_mark() {
    let mut least = u64::MAX;
    carry_out("reserves", |m, _, _| least = least.min(zone(m).nr_free_pages()));
    assert!(least < zone(&fresh()).watermarks.min / 2, "{least}");
}

#[test]
fn boost_rises_to_its_ceiling_and_is_taken_back() {
    let (mut most, mut taken_back, mut last) = (0, 0, 0);
    carry_out("boost", |m, _, _| {
        let boost = zone(m).watermark_boost;
        taken_back += usize::from(boost < last);
        most = most.max(boost);
        last = boost;
    });
    assert_eq!(most, zone(&fresh()).watermarks.high * 3 / 2);
    assert!(taken_back >= 10, "{taken_back}");
}

#[test]
fn atomic_requests_reserve_up_to_the_limit() {
    let (mut most, mut used) = (0, 0);
    carry_out("highatomic", |m, _, result| {
        most = most.max(zone(m).nr_reserved_highatomic);
        let block = result as usize >> 9;
        used += usize::from(result < trace::SKIPPED && m.pageblocks().migratetype(block) == MigrateType::HighAtomic);
    });
    assert!(most >= zone(&fresh()).managed / 100 && used > 1_000, "{most} reserved, {used} used");
}

#[test]
fn nearly_empty_is_nearly_empty() {
    let (mut small, mut all) = (0, 0);
    carry_out("nearly-empty", |m, _, _| {
        small += usize::from(zone(m).nr_free_pages() < 8_000);
        all += 1;
    });
    assert!(small > all * 4 / 5, "{small} of {all}");
}

#[test]
fn all_freed_merges_back_every_time() {
    let largest = |m: &Memory| zone(m).nr_free(Order::new(10));
    let (mut rounds, mut low) = (0, false);
    let whole = largest(&fresh());
    carry_out("all-freed", |m, _, _| {
        low |= largest(m) < 50;
        // Pages on the per-CPU lists prevent a few.
        if low && largest(m) + 25 > whole {
            (rounds, low) = (rounds + 1, false);
        }
    });
    assert!(rounds >= 4, "{rounds}");
}

#[test]
fn claims_are_decided_both_ways_by_free_and_by_alike_pages() {
    ["claim", "claim-free"].into_iter().for_each(are_decided_both_ways);
}

fn are_decided_both_ways(name: &str) {
    let ops = made(name);
    let mut runner = runner(name, &ops);
    runner.memory.trace().listen(Listen::EXTFRAG);
    ops.iter().for_each(|op| {
        runner.carry_out(op);
    });
    let mut decided = [[0; 2]; 2];
    for event in runner.memory.trace().take() {
        if let Event::PageAllocExtfrag { fallback_order, alloc_migratetype, change_ownership, .. } = event
            && !fallback_order.is_whole_pageblock()
        {
            decided[usize::from(alloc_migratetype == MigrateType::Movable)][usize::from(change_ownership)] += 1;
        }
    }
    assert!(decided.iter().flatten().all(|n| *n > 20), "{name}: {decided:?}");
}
