//! What pressure on memory came to: events of `/proc/vmstat` that say who got huge pages, who waited, what was reclaimed
//! and what came back, and how often types were mixed in a pageblock. Machines with disks have them phase by phase, under the kernel's names.

use crate::fragmenting::Fragmenting;
use kontig_mm::event::CompactResult;
use kontig_mm::{KcompactdState, NodeStat};
use kontig_results::{Better, Figure, Reading};
use kontig_sim::Machine;

/// What `/proc/vmstat` counts and the engine's events do not: what happens to files and swap, and what a node counts of
/// its lists; 0 on a machine without disks.
pub(crate) fn other_events(m: &Machine) -> [(&'static str, u64); 9] {
    let of_files = |name| (name, m.counter(name).unwrap_or(0));
    let of_nodes = |stat: NodeStat| (stat.name(), m.memory().lru().vecs().iter().map(|vec| vec.stat(stat)).sum());
    [
        of_files("pgmajfault"),
        of_files("pgpgin"),
        of_files("pgpgout"),
        of_files("pswpin"),
        of_files("pswpout"),
        of_nodes(NodeStat::WorkingsetRefaultAnon),
        of_nodes(NodeStat::WorkingsetRefaultFile),
        of_nodes(NodeStat::VmscanWrite),
        of_nodes(NodeStat::VmscanImmediate),
    ]
}

/// An event that is shown of every phase.
struct Shown {
    name: &'static str,
    unit: &'static str,
    better: Better,
}

const fn fewer(name: &'static str, unit: &'static str) -> Shown {
    Shown { name, unit, better: Better::Lower }
}

/// Those that are shown, in their order. `allocstall` is what kernels since 4.8 count zone by zone.
const SHOWN: [Shown; 27] = [
    Shown { name: "thp_fault_alloc", unit: "huge pages", better: Better::Higher },
    fewer("thp_fault_fallback", "faults"),
    fewer(ALLOCSTALL, "stalls"),
    fewer("compact_stall", "stalls"),
    Shown { name: "compact_success", unit: "stalls", better: Better::Higher },
    fewer("pgmigrate_success", "pages"),
    fewer("pgscan_kswapd", "pages"),
    fewer("pgscan_direct", "pages"),
    fewer("pswpin", "pages"),
    fewer("pswpout", "pages"),
    fewer("workingset_refault_file", "pages"),
    fewer("oom_kill", "processes"),
    fewer("extfrag events, order < 9", "events"),
    fewer("extfrag events, unmovable", "events"),
    fewer("extfrag events, movable", "events"),
    fewer("extfrag events, reclaimable", "events"),
    fewer("compact_daemon_wake", "wakes"),
    fewer(FINISHED[0].0, "tests"),
    Shown { name: FINISHED[1].0, unit: "tests", better: Better::Higher },
    fewer(FINISHED[2].0, "tests"),
    fewer(FINISHED[3].0, "tests"),
    fewer(PUT_OFF, "zones"),
    Shown { name: GOAL_MET_BEFORE, unit: "zones", better: Better::Higher },
    fewer(UNSUITABLE, "zones"),
    fewer(WENT_ON, "tests"),
    fewer(NOTHING_SCATTERED, "tests"),
    fewer(TOO_LITTLE_FREE, "tests"),
];

/// What a run of kcompactd for a block was told when it asked whether it is finished.
const FINISHED: [(&str, CompactResult); 4] = [
    ("kcompactd: to go on", CompactResult::Continue),
    ("kcompactd: goal met", CompactResult::Success),
    ("kcompactd: scanners met, whole zone", CompactResult::Complete),
    ("kcompactd: scanners met, begun inside the zone", CompactResult::PartialSkipped),
];

/// Zones it was woken for in which no run began.
const PUT_OFF: &str = "kcompactd: no run, compaction put off";
const GOAL_MET_BEFORE: &str = "kcompactd: no run, goal met already";
const UNSUITABLE: &str = "kcompactd: no run, zone not suitable";

/// After how many tests it went on for whole pageblocks, and of these, though they could not become enough.
const WENT_ON: &str = "kcompactd: to go on for whole pageblocks";
const NOTHING_SCATTERED: &str = "kcompactd: to go on, though all free pages are in pageblocks";
const TOO_LITTLE_FREE: &str = "kcompactd: to go on, though too little is free";

/// What a node's kcompactd counts and no kernel does.
fn of_kcompactd(m: &Machine) -> [(&'static str, u64); 6] {
    let of = |count: fn(&KcompactdState) -> u64| m.memory().nodes().iter().map(|n| count(&n.kcompactd)).sum();
    [
        (PUT_OFF, of(|k| k.passed_by.put_off)),
        (GOAL_MET_BEFORE, of(|k| k.passed_by.goal_met)),
        (UNSUITABLE, of(|k| k.passed_by.unsuitable)),
        (WENT_ON, of(|k| k.went_on.all)),
        (NOTHING_SCATTERED, of(|k| k.went_on.nothing_scattered)),
        (TOO_LITTLE_FREE, of(|k| k.went_on.too_little_free)),
    ]
}

fn finished(m: &Machine) -> impl Iterator<Item = (&'static str, u64)> {
    let of = |result| m.memory().nodes().iter().map(|n| n.kcompactd.finished[result as usize]).sum();
    FINISHED.iter().map(move |(name, result)| (*name, of(*result)))
}

const ALLOCSTALL: &str = "allocstall";

/// How often each event that is shown has happened, since the machine's start or in a phase.
#[derive(Clone, Copy, Default)]
pub(crate) struct Pressure([u64; SHOWN.len()]);

impl Pressure {
    /// Since the machine's start; of fragmenting events those that were noted.
    pub(crate) fn of(m: &Machine, fragmenting: Fragmenting) -> Pressure {
        let mut counted = Pressure::default();
        let of_memory = m.memory().vmstat().iter().map(|(event, n)| (event.name(), n));
        for (name, n) in
            of_memory.chain(other_events(m)).chain(fragmenting.named()).chain(finished(m)).chain(of_kcompactd(m))
        {
            let name = if name.starts_with(ALLOCSTALL) { ALLOCSTALL } else { name };
            if let Some(at) = SHOWN.iter().position(|shown| shown.name == name) {
                counted.0[at] += n;
            }
        }
        counted
    }

    /// Since `earlier`.
    pub(crate) fn since(self, earlier: Pressure) -> Pressure {
        Pressure(std::array::from_fn(|at| self.0[at] - earlier.0[at]))
    }

    /// As figures, those of several phases together.
    pub(crate) fn figures(of: impl Iterator<Item = Pressure>) -> impl Iterator<Item = Reading> {
        let mut sum = [0; SHOWN.len()];
        of.for_each(|p| (0..SHOWN.len()).for_each(|at| sum[at] += p.0[at]));
        SHOWN
            .iter()
            .zip(sum)
            .map(|(shown, n)| Figure { better: shown.better, ..Figure::new(shown.name, shown.unit) }.read(n as f64))
    }
}
