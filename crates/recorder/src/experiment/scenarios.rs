//! Experiments with a script of their own.

use crate::kernel::Series;
use kontig_mm::Order;
use kontig_oracle::trace::{BlockId, Op, Request, prng::Random};

/// Proactive compaction is off until memory is prepared; the script then switches it on.
pub(super) const PROACTIVE_SCRIPT: &str = "anon-proactive";
pub(super) const PROACTIVENESS: &str = "vm.compaction_proactiveness";
pub(super) const DIRECT_SCRIPT: &str = "direct";
pub(super) const THP_SCRIPT: &str = "thp";
pub(super) const BOOST: &str = "vm.watermark_boost_factor";

/// An experiment with a script of its own.
pub struct Scenario {
    /// Name on the command line.
    pub name: &'static str,
    pub what: &'static str,
    pub(super) script: &'static str,
    pub(super) kernels: &'static [Series],
    /// Default length of its trace, and the function that makes it; `None` if it executes none.
    pub(super) trace: Option<(usize, MakeTrace)>,
    /// Whether the order of its requests can be chosen.
    pub(super) sized: bool,
    /// Whether it depends on a seed.
    pub(super) random: bool,
    pub(super) sysctls: &'static [(&'static str, &'static str)],
    pub(super) expected: &'static [&'static str],
}

type MakeTrace = fn(usize, u64, Order) -> Vec<Op>;

/// Every experiment with a script.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "module-compact",
        what: "node filled with migratable pages, 3/4 freed at random, then compacted; every migration logged",
        script: "module-compact",
        kernels: &[Series::V5_0, Series::V5_10, Series::V6_1, Series::V6_12],
        trace: Some((500_000, fill_and_free)),
        sized: false,
        random: true,
        sysctls: &[],
        expected: &["t0.snap", "res.bin", "f0.snap", "f1.snap", "mig.txt", "trace.txt"],
    },
    Scenario {
        name: "anon-compact-random",
        what: "the same with a process's memory",
        script: "anon-compact",
        kernels: &Series::ALL,
        trace: None,
        sized: false,
        random: true,
        sysctls: &[],
        expected: &["f0.snap", "f1.snap", "frag.pfns", "trace.txt"],
    },
    Scenario {
        name: "anon-proactive40-random",
        what: "the same, then proactive compaction watched for 4 s",
        script: PROACTIVE_SCRIPT,
        kernels: &Series::ALL,
        trace: None,
        sized: false,
        random: true,
        sysctls: &[(PROACTIVENESS, "40")],
        expected: &["f0.snap", "f1.snap", "frag.pfns", "monitor.txt", "trace.txt"],
    },
    Scenario {
        name: "direct-movable",
        what: "node filled, first 3/4 of every 2 MiB freed, then movable requests that reclaim and compact",
        script: DIRECT_SCRIPT,
        kernels: &Series::ALL,
        trace: Some((4000, |n, _, o| requests(n, o, direct(Request::MOVABLE)))),
        sized: true,
        random: false,
        sysctls: &[(BOOST, "0")],
        expected: &["f0.snap", "f1.snap", "res.bin", "times.bin"],
    },
    Scenario {
        name: "direct-unmovable",
        what: "the same with unmovable requests",
        script: DIRECT_SCRIPT,
        kernels: &Series::ALL,
        trace: Some((4000, |n, _, o| requests(n, o, direct(Request::UNMOVABLE)))),
        sized: true,
        random: false,
        sysctls: &[(BOOST, "0")],
        expected: &["f0.snap", "f1.snap", "res.bin", "times.bin"],
    },
    Scenario {
        name: "kcompactd-order",
        what: "node filled with a process's memory, 3/4 freed at random, then requests that only wake the daemons",
        script: "kcompactd",
        kernels: &Series::ALL,
        trace: Some((64, |n, _, o| requests(n, o, Request::MOVABLE.with(Request::KSWAPD).with(Request::RETRY)))),
        sized: true,
        random: true,
        sysctls: &[(BOOST, "0")],
        expected: &["f0.snap", "f1.snap", "res.bin", "trace.txt"],
    },
    Scenario {
        name: "thp",
        what: "the same memory, then two rounds of 256 huge page faults that leave compaction to the daemon",
        script: THP_SCRIPT,
        kernels: &Series::ALL,
        trace: None,
        sized: false,
        random: true,
        sysctls: &[],
        expected: &["f0.snap", "f1.snap", "f2.snap", "thp.txt", "thp2.txt", "monitor.txt", "trace.txt"],
    },
];

/// Number of requests that use up the free blocks of an order on a randomly fragmented node, so
/// that compaction has to help. Free pageblocks are rare there; experiments choose a number.
pub(super) fn enough_requests(pageblocks: usize, order: Order) -> usize {
    match order.get() {
        0 | 1 => 170_000,
        2 => 60_000,
        3 => 20_000,
        4..=8 => 4_000,
        _ => pageblocks,
    }
}

fn direct(of: Request) -> Request {
    of.with(Request::KSWAPD).with(Request::DIRECT).with(Request::RETRY)
}

fn requests(n: usize, order: Order, request: Request) -> Vec<Op> {
    (0..n as u32).map(|id| Op::Alloc { order, request, id: BlockId(id) }).collect()
}

/// Allocates migratable pages and frees three quarters of them.
fn fill_and_free(pages: usize, seed: u64, _: Order) -> Vec<Op> {
    let mut random = Random::new(seed);
    let mut ops = requests(pages, Order::ZERO, Request::MOVABLE.with(Request::OWNED));
    ops.extend((0..pages as u32).map(BlockId).filter(|_| random.chance(3, 4)).map(|id| Op::Free { id }));
    ops
}
