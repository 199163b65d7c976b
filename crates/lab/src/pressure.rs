//! Memory pressure, phase by phase: huge pages given and stalls on every machine; on machines with
//! disks pages reclaimed and refaulted, pageblocks mixed, and the work of kcompactd, too.

use crate::fragmenting::Fragmenting;
use crate::vmstat::{VmCounters, better, declared};
use kontig_mm::event::CompactResult;
use kontig_mm::vmstat::{fewer, more};
use kontig_mm::{Counter, KcompactdState};
use kontig_program::figure::Text;
use kontig_results::{Figure, Reading};
use kontig_sim::Machine;

/// The counters of `/proc/vmstat` shown before the fragmenting events, in this order.
const BEFORE: &[&str] = &[
    "thp_fault_alloc",
    "thp_fault_fallback",
    "allocstall",
    "compact_stall",
    "compact_success",
    "pgmigrate_success",
    "pgscan_kswapd",
    "pgscan_direct",
    "pswpin",
    "pswpout",
    "workingset_refault_file",
    "oom_kill",
];
/// Those of them that say what a workload suffers. A machine without disks has them, too, so that
/// it can stand beside others; what it cannot do is counted 0 times.
const EVERYWHERE: &[&str] =
    &["thp_fault_alloc", "thp_fault_fallback", "allocstall", "compact_stall", "pswpout", "oom_kill"];
/// Shown after them, above kcompactd's own.
const AFTER: &[&str] = &["compact_daemon_wake"];

/// Words in the names of figures that do not depend on the workload.
pub fn names_of_common_figures() -> impl Iterator<Item = &'static str> {
    const OTHERS: [&str; 9] = ["elapsed", "user", "system", "kcompactd", "kswapd", "p50", "p95", "p99", "max"];
    OTHERS.into_iter().chain(BEFORE.iter().chain(AFTER).copied())
}

/// A counter of kcompactd, and how it is read.
type Declared = (Counter, fn(&KcompactdState) -> u64);

/// Counters of a node's kcompactd that no kernel has: the answers to whether a run for a block is
/// finished, the zones it was woken for in which no run began, and the answers that sent it on for
/// whole pageblocks.
const KCOMPACTD: &[Declared] = &[
    (fewer("kcompactd: to go on", "tests", "Not finished"), |k| k.finished[CompactResult::Continue as usize]),
    (more("kcompactd: goal met", "tests", "Finished with the block"), |k| k.finished[CompactResult::Success as usize]),
    (fewer("kcompactd: scanners met, whole zone", "tests", "Finished without the block"), |k| {
        k.finished[CompactResult::Complete as usize]
    }),
    (fewer("kcompactd: scanners met, begun inside the zone", "tests", "Finished a part of the zone"), |k| {
        k.finished[CompactResult::PartialSkipped as usize]
    }),
    (fewer("kcompactd: no run, compaction put off", "zones", "Deferred after failures"), |k| k.passed_by.put_off),
    (more("kcompactd: no run, goal met already", "zones", "Nothing to do"), |k| k.passed_by.goal_met),
    (fewer("kcompactd: no run, zone not suitable", "zones", "Too few free pages"), |k| k.passed_by.unsuitable),
    (fewer("kcompactd: to go on for whole pageblocks", "tests", "Pageblocks are missing"), |k| k.went_on.all),
    (fewer("kcompactd: to go on, though all free pages are in pageblocks", "tests", "Nothing to gain"), |k| {
        k.went_on.nothing_scattered
    }),
    (fewer("kcompactd: to go on, though too little is free", "tests", "Too little to gain"), |k| {
        k.went_on.too_little_free
    }),
];

/// The value of each counter that is shown, since boot or in a phase, and the parts of the
/// fragmenting events.
#[derive(Clone, Default)]
pub(crate) struct Pressure {
    counted: Vec<(Counter, u64)>,
    split: Vec<(Text, u64)>,
}

impl Pressure {
    /// Of a machine without disks, since boot.
    pub(crate) fn without_disks(m: &Machine) -> Pressure {
        let vmstat = VmCounters::of(m);
        let of = |counter: Counter| (counter, vmstat.get(counter.name).unwrap_or(0));
        let named = EVERYWHERE.iter().filter_map(|name| declared().find(|counter| counter.name == *name));
        Pressure { counted: named.map(of).collect(), split: Vec::new() }
    }

    /// Of a machine with disks, since boot; of fragmenting events, those noted.
    pub(crate) fn of(m: &Machine, fragmenting: &Fragmenting) -> Pressure {
        let vmstat = VmCounters::of(m);
        let named = |names: &'static [&str]| names.iter().filter_map(|name| vmstat.find(name));
        let of_nodes = |count: fn(&KcompactdState) -> u64| m.memory().nodes().iter().map(|n| count(&n.kcompactd)).sum();
        let kcompactd = KCOMPACTD.iter().map(|(counter, count)| (*counter, of_nodes(*count)));
        let counted = named(BEFORE).chain(fragmenting.counted()).chain(named(AFTER)).chain(kcompactd).collect();
        Pressure { counted, split: fragmenting.split(m.memory()) }
    }

    pub(crate) fn since(&self, earlier: Option<&Pressure>) -> Pressure {
        fn less<Name: Clone>(now: &[(Name, u64)], before: Option<&[(Name, u64)]>) -> Vec<(Name, u64)> {
            let at = |at: usize| before.and_then(|before| before.get(at)).map_or(0, |(_, n)| *n);
            now.iter().enumerate().map(|(i, (name, n))| (name.clone(), n - at(i))).collect()
        }
        Pressure {
            counted: less(&self.counted, earlier.map(|earlier| earlier.counted.as_slice())),
            split: less(&self.split, earlier.map(|earlier| earlier.split.as_slice())),
        }
    }

    /// As figures, those of several phases together.
    pub(crate) fn figures(of: &[Pressure]) -> Vec<Reading> {
        let Some(first) = of.first() else { return Vec::new() };
        let sum = |n: &dyn Fn(&Pressure) -> u64| of.iter().map(n).sum::<u64>() as f64;
        let figure = |counter: &Counter| Figure { better: better(counter), ..Figure::new(counter.name, counter.unit) };
        let counted = first.counted.iter().enumerate();
        let counted = counted.map(|(at, (counter, _))| figure(counter).read(sum(&|p| p.counted[at].1)));
        let split = first.split.iter().enumerate();
        let split =
            split.map(|(at, (name, _))| Figure::new(name.clone(), "events").lower().read(sum(&|p| p.split[at].1)));
        counted.chain(split).collect()
    }
}
