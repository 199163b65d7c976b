//! What a real kernel's compaction did, replayed: from the recorded zone the engine must scan the same ranges, move
//! the same pages to the same places in the same order, give every request the same block, and leave the same zone.
//!
//! One thing the recordings do not tell: which of the kernel's own pages belong together as slabs. The scanner steps
//! over a slab's later pages without counting them, so `nr_scanned` is held against the recording wherever the zone
//! holds user pages, which is everywhere but in its first six pageblocks.

#[path = "recording/files.rs"]
mod files;

use files::{text, words};
use kontig_mm::compact::{MigrateOutcome, Owner};
use kontig_mm::kcompactd::NodeSweep;
use kontig_mm::kswapd::{DaemonStep, Kswapd};
use kontig_mm::snapshot::ZoneSnapshot;
use kontig_mm::{
    AllocSlow, AllocStep, CpuId, Event, Gfp, Listen, Memory, NodeId, Order, Pfn, Profile, VmEvent, ZoneId,
};
use std::collections::HashMap;

const CPU: CpuId = CpuId::new(0);
const NODE: NodeId = NodeId::new(1);
const ZONE: ZoneId = ZoneId::new(1);
/// Where the kernel's own pages end.
const USER_START: u32 = 0x100c00;

/// Moves every page and remembers the order.
#[derive(Default)]
struct Moves(Vec<(Pfn, Pfn)>);

impl Owner for Moves {
    fn may_isolate(&mut self, _: Pfn) -> bool {
        true
    }
    fn migrate(&mut self, from: Pfn, to: Pfn, _: (u32, u32)) -> MigrateOutcome {
        self.0.push((from, to));
        MigrateOutcome::Moved
    }
}

fn snapshot(name: &str, file: &str) -> ZoneSnapshot {
    ZoneSnapshot::parse(&text(name, file)).unwrap_or_else(|e| panic!("{name}/{file}: {e}"))
}

/// A machine whose node 1 is as recorded before compaction, given what its frames are used for.
fn start(name: &str, pages: &str) -> Memory {
    let snapshot = snapshot(name, "f0.snap");
    let m = snapshot.machine_with_pages(Profile::linux_6_1(), pages).unwrap_or_else(|e| panic!("{name}: {e}"));
    m.check().unwrap_or_else(|e| panic!("{name}: at the start: {e}"));
    m
}

fn assert_final_state(name: &str, m: &Memory) {
    m.check().unwrap_or_else(|e| panic!("{name}: at the end: {e}"));
    let (want, got) = (snapshot(name, "f1.snap").to_string(), ZoneSnapshot::of(m, ZONE).to_string());
    for (want, got) in want.lines().zip(got.lines()) {
        assert_eq!(got, want, "{name}: final state");
    }
    assert_eq!(got.lines().count(), want.lines().count(), "{name}: final state");
}

/// Compacts the node as a whole; returns the events and the moves.
fn sweep(m: &mut Memory, proactive: bool) -> (Vec<Event>, Moves) {
    m.trace().listen(Listen::COMPACTION.with(Listen::COMPACTION_DETAIL));
    let mut moves = Moves::default();
    let mut sweep = NodeSweep::new(NODE, CPU, proactive);
    while !sweep.step(m, &mut moves, 64) {}
    (m.trace().take(), moves)
}

/// Holds the engine's events against the kernel's, line by line.
fn assert_events(name: &str, got: &[Event]) {
    const WHAT: [&str; 6] =
        ["begin:", "end:", "isolate_migratepages:", "isolate_freepages:", "migratepages:", "finished:"];
    let recorded = text(name, "trace.txt");
    let mut want = recorded
        .lines()
        .filter_map(|l| l.find("mm_compaction_").map(|at| l[at..].trim_end()))
        .filter(|l| WHAT.iter().any(|w| l["mm_compaction_".len()..].starts_with(w)));
    for (i, event) in got.iter().enumerate() {
        let (mut want, mut got) = (want.next().unwrap_or("(no more events)").to_string(), event.to_string());
        if matches!(event, Event::IsolateMigratepages { start_pfn, .. } if start_pfn.get() < USER_START) {
            // Slabs: see above.
            for line in [&mut want, &mut got] {
                line.truncate(line.find(" nr_scanned").unwrap_or(line.len()));
            }
        }
        assert_eq!(got.trim_end(), want, "{name}: event {i}");
    }
    assert_eq!(want.next(), None, "{name}: the kernel goes on");
}

#[test]
fn linux_6_1_compacts_anonymous_memory_range_by_range() {
    let name = "6.1-anon-compact-random";
    let mut m = start(name, &text(name, "f0.pages"));
    let (events, moves) = sweep(&mut m, false);
    assert_events(name, &events);
    assert_eq!(moves.0.len(), 95_061);
    assert_final_state(name, &m);
}

#[test]
fn linux_6_1_moves_every_page_to_the_same_place_in_the_same_order() {
    let name = "6.1-module-compact";
    let mut m = start(name, &text(name, "f0.pages"));
    let zone_start = m.zone(ZONE).start.get();
    let (_, moves) = sweep(&mut m, false);
    let recorded = text(name, "mig.txt");
    let want: Vec<&str> = recorded.lines().skip(1).collect();
    for (i, ((from, to), want)) in moves.0.iter().zip(&want).enumerate() {
        let got = format!("{:x} {:x}", from.get() - zone_start, to.get() - zone_start);
        assert_eq!(got, *want, "{name}: migration {i}");
    }
    assert_eq!(moves.0.len(), want.len());
    assert_final_state(name, &m);
}

#[test]
fn linux_6_1_proactive_compaction_stops_at_the_same_page() {
    let name = "6.1-anon-proactive40-random";
    // The process had all of frag.pfns, and has left what is not free now.
    let mut pages = vec![b'u'; 1 << 19];
    let zone_start = 0x10_0000;
    for pfn in words(name, "frag.pfns") {
        pages[(pfn - zone_start) as usize] = b'l';
    }
    let pages = String::from_utf8(pages).expect("ASCII");
    let mut m = start(name, &pages);
    m.sysctl_write("vm.compaction_proactiveness", "40").expect("a known sysctl");
    let (events, _) = sweep(&mut m, true);
    assert_events(name, &events);
    assert_eq!(m.zone(ZONE).fragmentation_score(), 60);
    // The recording went on for seconds, in which the counters were folded.
    m.fold_vmstat(CPU);
    assert_final_state(name, &m);
}

/// 4,000 requests for a pageblock, one after the other, kswapd running whenever it is woken.
fn direct(name: &str, gfp: Gfp) {
    let mut m = start(name, &text(name, "f0.pages"));
    m.sysctl_write("vm.watermark_boost_factor", "0").expect("a known sysctl");
    let (gfp, order) = (gfp | Gfp::THISNODE | Gfp::NOWARN, Order::new(9));
    let (mut kswapd, mut moves) = (Kswapd::new(NODE), Moves::default());
    for (i, want) in words(name, "res.bin").into_iter().enumerate() {
        let mut got = m.alloc(CPU, NODE, gfp, order).ok();
        if got.is_none() {
            let mut slow = AllocSlow::new(&m, CPU, NODE, gfp, order);
            got = loop {
                let step = slow.step(&mut m, &mut moves, 64);
                if m.take_wakes().kswapd != 0 {
                    while kswapd.step(&mut m, false) == DaemonStep::Working {}
                }
                match step {
                    AllocStep::Working => {}
                    AllocStep::Done(pfn) => break Some(pfn),
                    _ => break None,
                }
            };
        }
        let shown = got.map_or(u32::MAX, Pfn::get);
        assert_eq!(format!("{shown:x}"), format!("{want:x}"), "{name}: request {i}");
        if let Some(pfn) = got {
            // The requests were not for compound pages: the scanners see 512 single ones.
            m.split_page(pfn, order);
        }
    }
    assert_counters(name, &m);
    assert_final_state(name, &m);
}

/// Holds what the counters grew by against the kernel's.
fn assert_counters(name: &str, m: &Memory) {
    const COUNTERS: [VmEvent; 11] = [
        VmEvent::AllocstallNormal,
        VmEvent::AllocstallMovable,
        VmEvent::Pageoutrun,
        VmEvent::KswapdLowWmarkHitQuickly,
        VmEvent::PgmigrateSuccess,
        VmEvent::PgmigrateFail,
        VmEvent::CompactFreeScanned,
        VmEvent::CompactIsolated,
        VmEvent::CompactStall,
        VmEvent::CompactFail,
        VmEvent::CompactSuccess,
    ];
    let read = |file| -> HashMap<String, u64> {
        let line = |l: &str| l.split_once(' ').map(|(k, v)| (k.to_string(), v.trim().parse().expect("a count")));
        text(name, file).lines().filter_map(line).collect()
    };
    let (before, after) = (read("f0.vmstat"), read("f1.vmstat"));
    let want = |e: VmEvent| after[e.name()] - before[e.name()];
    for e in COUNTERS {
        assert_eq!(m.vmstat().get(e), want(e), "{name}: {}", e.name());
    }
    // Slabs, each scanned once: see the top of this file.
    let (got, want) = (m.vmstat().get(VmEvent::CompactMigrateScanned), want(VmEvent::CompactMigrateScanned));
    assert!((want..want + 160).contains(&got), "{name}: compact_migrate_scanned {got}, the kernel's {want}");
}

#[test]
fn linux_6_1_gives_every_movable_request_the_same_block() {
    direct("6.1-direct-movable", Gfp::HIGHUSER_MOVABLE);
}

#[test]
fn linux_6_1_gives_every_unmovable_request_the_same_block() {
    direct("6.1-direct-unmovable", Gfp::KERNEL);
}
