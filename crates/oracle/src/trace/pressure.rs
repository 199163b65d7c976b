//! Traces that put a node under memory pressure, each for one mechanism of reclaim.
//!
//! A trace does not know which pages reclaim takes. It reads pages that may be gone, and the
//! recording shows what was found.

mod blocks;
mod corners;
mod cpus;
mod files;
mod generations;
mod groups;
mod nodes;
mod process;
mod script;

use super::Request;
use super::lru::LruOp;
use script::Script;

/// The node a trace is made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    pub mib: u32,
    /// Whether its first half is in zone DMA32; otherwise all of it is in Normal.
    pub two_zones: bool,
}

impl Node {
    /// The usual node: small states, but large enough for all of reclaim's rules to show.
    pub const SMALL: Node = Node { mib: 128, two_zones: false };
}

/// The CPUs a trace is made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cpus {
    /// How many the machine has.
    pub count: u8,
    /// The one that the node's daemons have to themselves; without it they share the trace's.
    pub of_daemons: Option<u8>,
}

impl Cpus {
    /// A machine with a single CPU.
    pub const ONE: Cpus = Cpus { count: 1, of_daemons: None };
    const TWO: Cpus = Cpus { count: 2, of_daemons: None };
    const FOUR: Cpus = Cpus { count: 4, of_daemons: None };
}

/// A trace that can be generated.
#[derive(Debug)]
pub struct Pressure {
    /// Name on the command line.
    pub name: &'static str,
    /// Description: operations, then the rule they exercise.
    pub what: &'static str,
    /// Default number of operations.
    pub ops: usize,
    pub node: Node,
    /// How many such nodes there are; only the first has two zones.
    pub nodes: u8,
    pub cpus: Cpus,
    /// Pages of the process's memory.
    pub process_pages: u32,
    /// Swap in MiB; 0 for none.
    pub swap_mib: u32,
    /// The value of `lru_gen/enabled`; 0 for the classic lists.
    pub lru_gen: u8,
    /// The tree of memory control groups: the parent of each, from number 1 on. None where it is
    /// empty.
    pub groups: &'static [u16],
    /// Sysctls to set before it.
    pub sysctls: &'static [(&'static str, &'static str)],
    make: fn(&mut Script),
}

/// A trace on a small node of one zone, without a process and without watermark boost.
const fn usual(name: &'static str, what: &'static str, ops: usize, make: fn(&mut Script)) -> Pressure {
    let sysctls = &[("vm.watermark_boost_factor", "0")];
    Pressure {
        name,
        what,
        ops,
        node: Node::SMALL,
        nodes: 1,
        cpus: Cpus::ONE,
        process_pages: 0,
        swap_mib: 0,
        lru_gen: 0,
        groups: &[],
        sysctls,
        make,
    }
}

/// A process beside files, with commands now and then and pages of a file that are used often.
fn aged_beside_files(s: &mut Script, pages: u32) {
    process::beside_files_with(s, pages, |s| {
        generations::sometimes(s, 1_500, pages);
        generations::used_often(s, PAGES / 2);
    });
}

/// Free pages of such a node at the start, roughly.
const PAGES: u32 = 31_000;

/// Groups that have others below them, in the tree of many groups.
const INNER: u16 = 11;
/// A tree of 11 groups below the root and 20 below all but the first of these.
const TREE: [u16; 211] = {
    let (mut tree, mut i) = ([0; 211], INNER as usize);
    while i < tree.len() {
        tree[i] = 2 + ((i - INNER as usize) % 10) as u16;
        i += 1;
    }
    tree
};

/// A request that reclaims directly.
const DIRECT: Request = Request::MOVABLE.with(Request::DIRECT).with(Request::RETRY);
/// A request that wakes kswapd, then reclaims directly.
const BOTH: Request = DIRECT.with(Request::KSWAPD);

/// The traces that can be generated.
pub const TRACES: &[Pressure] = &[
    usual(
        "lru-file",
        "page cache read by processes that reclaim themselves: a stream, a hot file, one too large",
        70_000,
        |s| {
            files::mixed(s, DIRECT);
        },
    ),
    usual("lru-kswapd", "the same, and kswapd reclaims before they do", 70_000, |s| files::mixed(s, BOTH)),
    usual(
        "lru-refault",
        "a file a little too large, read in a circle beside active pages it drives out",
        110_000,
        |s| {
            files::circle(s, DIRECT);
        },
    ),
    usual("lru-active", "all pages active, then a stream: active lists are shrunk", 100_000, |s| {
        files::active(s, BOTH)
    }),
    usual("lru-dirty", "most pages are dirty, on devices fast and slow", 80_000, |s| files::dirty(s, BOTH)),
    usual("lru-shrinker", "page cache beside a cache that a shrinker empties", 70_000, |s| blocks::objects(s, DIRECT)),
    Pressure {
        process_pages: 45_000,
        swap_mib: 256,
        ..usual("lru-anon", "a process's memory, larger than the node, swapped out and touched again", 90_000, |s| {
            process::alone(s, 45_000);
        })
    },
    Pressure {
        process_pages: 24_000,
        swap_mib: 256,
        ..usual("lru-mixed", "a process's memory beside page cache; vm.swappiness says how they share", 90_000, |s| {
            process::beside_files(s, 24_000);
        })
    },
    Pressure {
        sysctls: &[],
        ..usual(
            "lru-boost",
            "page cache in fragments, then other types of memory: kswapd takes boosts back",
            60_000,
            |s| {
                blocks::boosting(s, PAGES, |_| {});
            },
        )
    },
    usual(
        "lru-order3",
        "page cache everywhere, then requests of order 3 that reclaim, compact and try again",
        50_000,
        |s| {
            blocks::requests(s, 3, 4_000);
        },
    ),
    usual("lru-order9", "the same with order 9", 50_000, |s| blocks::requests(s, 9, 40)),
    Pressure {
        process_pages: 40,
        swap_mib: 1,
        ..usual(
            "lru-in-vain",
            "reclaim that finds nothing but dirty pages: \
             the last priority, active lists after all, waiting, the last reserve",
            1_800,
            corners::in_vain,
        )
    },
    usual(
        "lru-second-pass",
        "a few dirty pages, fewer and fewer, looked at in vain: active lists are shrunk in the second pass",
        1_400,
        corners::second_pass,
    ),
    Pressure {
        process_pages: 6_000,
        swap_mib: 256,
        sysctls: &[("vm.swappiness", "200"), ("vm.watermark_boost_factor", "0")],
        ..usual(
            "lru-ageing",
            "a process's memory comes back from swap, most of it active: some becomes inactive after every shrink",
            34_000,
            |s| corners::ageing(s, 6_000),
        )
    },
    Pressure {
        process_pages: 3_000,
        swap_mib: 256,
        sysctls: &[],
        ..usual("lru-boost-swap", "lru-boost beside a process's memory, which no boost is swapped for", 30_000, |s| {
            corners::boosting_beside_a_process(s, 3_000);
        })
    },
    Pressure {
        process_pages: 3_000,
        swap_mib: 1,
        ..usual(
            "lru-rights",
            "swap is full; costly requests of all rights where no pageblock can be emptied, then the last pages",
            40_000,
            |s| corners::rights(s, 3_000),
        )
    },
    usual("lru-large", "page cache in folios of many sizes", 60_000, |s| files::large(s, BOTH)),
    Pressure {
        groups: &[0],
        ..usual("group-file", "files of a memory control group that is limited to less than it reads", 40_000, |s| {
            groups::files(s, 4_000);
        })
    },
    Pressure {
        groups: &[0],
        process_pages: 9_000,
        swap_mib: 256,
        ..usual("group-anon", "a process's memory in a group that is limited to half of it", 40_000, |s| {
            groups::process(s, 4_500, 9_000, 50);
        })
    },
    Pressure {
        groups: &[0],
        process_pages: 9_000,
        swap_mib: 256,
        ..usual("group-mixed", "a process's memory and files in a limited group", 50_000, |s| {
            groups::process(s, 6_000, 9_000, 2);
        })
    },
    Pressure {
        groups: &[0],
        ..usual("group-high", "files of a group over its high mark", 30_000, |s| groups::high(s, 4_000))
    },
    Pressure {
        groups: &[0],
        ..usual("group-shrinking", "a group whose limit is set below what it uses, again and again", 40_000, |s| {
            groups::shrinking(s, 6_000);
        })
    },
    Pressure {
        groups: &[0, 1, 1, 1],
        process_pages: 9_000,
        swap_mib: 256,
        ..usual("group-siblings", "three groups below one whose limit they share", 40_000, |s| {
            groups::siblings(s, (1, 6_000), &[2, 3, 4], 9_000);
        })
    },
    Pressure {
        groups: &[0, 1, 1, 3, 3],
        process_pages: 9_000,
        swap_mib: 256,
        ..usual("group-protected", "groups below a limit, some protected by low and min", 40_000, |s| {
            groups::protected(s, (1, 6_000), &[2, 4, 5], 9_000);
        })
    },
    Pressure {
        groups: &[0, 0, 2, 2, 2],
        process_pages: 64_000,
        swap_mib: 256,
        ..usual("group-kswapd", "four groups whose memory and files are more than the node has", 80_000, |s| {
            groups::unlimited(s, &[1, 3, 4, 5], 64_000);
        })
    },
    Pressure {
        groups: &TREE,
        ..usual("group-tree", "a tree of 211 groups whose files are more than the node has", 80_000, |s| {
            groups::tree(s, INNER + 1..TREE.len() as u16 + 1, 300);
        })
    },
    Pressure {
        groups: &[0],
        lru_gen: 1,
        ..usual("group-gen-file", "group-file in generations", 30_000, |s| groups::files(s, 4_000))
    },
    Pressure {
        groups: &[0],
        lru_gen: 1,
        process_pages: 9_000,
        swap_mib: 256,
        ..usual("group-gen-mixed", "group-mixed in generations, with commands to the group", 40_000, |s| {
            groups::process_with(s, 6_000, 9_000, 2, |s| generations::sometimes(s, 1_000, 9_000));
        })
    },
    Pressure {
        groups: &[0, 1, 1, 3, 3],
        lru_gen: 1,
        process_pages: 9_000,
        swap_mib: 256,
        ..usual("group-gen-protected", "group-protected in generations", 40_000, |s| {
            groups::protected(s, (1, 6_000), &[2, 4, 5], 9_000);
        })
    },
    Pressure {
        groups: &[0, 0, 2, 2, 2, 0],
        lru_gen: 1,
        process_pages: 48_000,
        swap_mib: 256,
        ..usual(
            "group-gen-contended",
            "groups whose memory and files in generations are more than the node has, some protected by low and min",
            60_000,
            |s| groups::contended(s, &[1, 3, 4, 5, 6], 48_000),
        )
    },
    Pressure {
        groups: &TREE,
        lru_gen: 1,
        ..usual("group-gen-tree", "group-tree in generations", 80_000, |s| {
            groups::tree(s, INNER + 1..TREE.len() as u16 + 1, 300);
        })
    },
    Pressure {
        groups: &[0, 1, 1, 1],
        lru_gen: 7,
        process_pages: 9_000,
        swap_mib: 256,
        ..usual("group-gen-walk-siblings", "group-siblings in generations, with walks of page tables", 40_000, |s| {
            groups::siblings(s, (1, 6_000), &[2, 3, 4], 9_000);
        })
    },
    Pressure {
        groups: &[0, 0, 2, 2, 2, 0],
        lru_gen: 7,
        process_pages: 48_000,
        swap_mib: 256,
        ..usual("group-gen-walk-contended", "group-gen-contended with walks of page tables", 60_000, |s| {
            groups::contended(s, &[1, 3, 4, 5, 6], 48_000);
        })
    },
    Pressure {
        lru_gen: 1,
        process_pages: 4_000,
        swap_mib: 256,
        ..usual("gen-commands", "generations that are aged and evicted by command, without pressure", 24_000, |s| {
            generations::commands(s, 4_000);
        })
    },
    Pressure {
        lru_gen: 7,
        process_pages: 4_000,
        swap_mib: 256,
        ..usual("gen-walk-commands", "gen-commands with walks of page tables", 24_000, |s| {
            generations::commands(s, 4_000);
        })
    },
    Pressure {
        lru_gen: 7,
        process_pages: 45_000,
        swap_mib: 256,
        ..usual("gen-walk-anon", "lru-anon in generations that are aged by walks of page tables", 90_000, |s| {
            process::alone(s, 45_000);
        })
    },
    Pressure {
        lru_gen: 3,
        process_pages: 24_000,
        swap_mib: 256,
        ..usual("gen-walk-mixed", "gen-mixed with walks that look at unused page tables, too", 90_000, |s| {
            aged_beside_files(s, 24_000);
        })
    },
    Pressure {
        lru_gen: 7,
        process_pages: 20_000,
        swap_mib: 16,
        ..usual("gen-walk-no-room", "gen-no-room with walks of page tables", 60_000, |s| {
            aged_beside_files(s, 20_000);
        })
    },
    Pressure {
        lru_gen: 7,
        process_pages: 3_000,
        swap_mib: 256,
        ..usual("gen-walk-tiers", "gen-tiers with walks of page tables", 40_000, |s| generations::tiers(s, 3_000))
    },
    Pressure {
        lru_gen: 7,
        process_pages: 16_000,
        swap_mib: 256,
        ..usual("gen-walk-compact", "gen-compact with walks of page tables", 70_000, |s| {
            let mut held = std::collections::VecDeque::new();
            process::beside_files_with(s, 16_000, |s| generations::large_blocks(s, &mut held));
        })
    },
    Pressure {
        lru_gen: 1,
        ..usual("gen-file", "page cache in generations: a stream, a hot file, one too large", 70_000, |s| {
            files::mixed_with(s, DIRECT, |s| generations::sometimes(s, 2_000, PAGES));
        })
    },
    Pressure {
        lru_gen: 1,
        process_pages: 45_000,
        swap_mib: 256,
        ..usual("gen-anon", "lru-anon in generations", 90_000, |s| process::alone(s, 45_000))
    },
    Pressure {
        lru_gen: 1,
        process_pages: 24_000,
        swap_mib: 256,
        ..usual("gen-mixed", "lru-mixed in generations, which are aged by command now and then", 90_000, |s| {
            aged_beside_files(s, 24_000);
        })
    },
    Pressure {
        lru_gen: 1,
        process_pages: 20_000,
        swap_mib: 16,
        ..usual("gen-no-room", "a process's memory beside files in generations, and too little swap", 60_000, |s| {
            aged_beside_files(s, 20_000);
        })
    },
    Pressure {
        lru_gen: 1,
        process_pages: 3_000,
        swap_mib: 256,
        ..usual(
            "gen-tiers",
            "pages used once to five times, evicted by command and wanted again at once",
            40_000,
            |s| {
                generations::tiers(s, 3_000);
            },
        )
    },
    Pressure {
        lru_gen: 1,
        process_pages: 16_000,
        swap_mib: 256,
        ..usual("gen-compact", "large blocks beside page cache and a process's memory in generations", 70_000, |s| {
            let mut held = std::collections::VecDeque::new();
            process::beside_files_with(s, 16_000, |s| generations::large_blocks(s, &mut held));
        })
    },
    Pressure {
        lru_gen: 7,
        process_pages: 6_000,
        swap_mib: 256,
        ..usual(
            "gen-large",
            "lru-large in generations, beside a process's memory; aged and evicted by command now and then",
            24_000,
            |s| {
                files::large_with(s, BOTH, |s| generations::beside_folios(s, 6_000));
            },
        )
    },
    Pressure { lru_gen: 1, ..usual("gen-dirty", "lru-dirty in generations", 80_000, |s| files::dirty(s, BOTH)) },
    Pressure { lru_gen: 1, ..usual("gen-order9", "lru-order9 in generations", 50_000, |s| blocks::requests(s, 9, 40)) },
    Pressure {
        lru_gen: 1,
        node: Node { mib: 256, two_zones: true },
        ..usual("gen-two-zones", "lru-two-zones in generations", 110_000, blocks::two_zones)
    },
    Pressure {
        cpus: Cpus::TWO,
        ..usual(
            "cpus-blocks",
            "blocks allocated on one of two CPUs and freed on another; all is given back",
            40_000,
            |s| {
                cpus::blocks(s, 2);
            },
        )
    },
    Pressure {
        cpus: Cpus::FOUR,
        ..usual("cpus4-blocks", "the same on four CPUs, whose parts of counters together pass the marks", 60_000, |s| {
            cpus::blocks(s, 4);
        })
    },
    Pressure {
        cpus: Cpus::TWO,
        ..usual(
            "cpus-last-pages",
            "the last pages, back and forth on two CPUs: marks, drift, direct reclaim",
            40_000,
            |s| {
                cpus::last_pages(s, 2);
            },
        )
    },
    Pressure { cpus: Cpus::FOUR, ..usual("cpus4-last-pages", "the same on four", 40_000, |s| cpus::last_pages(s, 4)) },
    Pressure {
        cpus: Cpus::TWO,
        ..usual("cpus-file", "page cache read on two CPUs, each with batches of its own", 60_000, |s| {
            files::mixed_with(s, DIRECT, |s| cpus::wander(s, 2));
        })
    },
    Pressure {
        cpus: Cpus::FOUR,
        ..usual(
            "cpus4-file",
            "page cache read on four CPUs, and kswapd reclaims on the one that wakes it",
            70_000,
            |s| {
                files::mixed_with(s, BOTH, |s| cpus::wander(s, 4));
            },
        )
    },
    Pressure {
        cpus: Cpus { count: 2, of_daemons: Some(1) },
        ..usual("cpus-daemons", "page cache read on one CPU, and kswapd and kcompactd on another", 60_000, |s| {
            files::mixed_with(s, BOTH, |s| cpus::stay(s, 1));
        })
    },
    Pressure {
        cpus: Cpus { count: 4, of_daemons: Some(3) },
        process_pages: 24_000,
        swap_mib: 256,
        ..usual(
            "cpus4-mixed",
            "a process's memory beside page cache on three CPUs, and the daemons on a fourth",
            80_000,
            |s| {
                process::beside_files_with(s, 24_000, |s| cpus::stay(s, 3));
            },
        )
    },
    Pressure {
        nodes: 2,
        ..usual(
            "nodes-blocks",
            "blocks allocated on one of two nodes, or on the other when the first has no more",
            60_000,
            |s| {
                nodes::blocks(s, &[1, 2], PAGES);
            },
        )
    },
    Pressure {
        nodes: 2,
        node: Node { mib: 128, two_zones: true },
        ..usual("nodes-two-zones", "the same where the first node has a lower zone, too", 60_000, |s| {
            nodes::blocks(s, &[1, 2], PAGES);
        })
    },
    Pressure {
        nodes: 4,
        ..usual("nodes4-blocks", "blocks allocated on one of four nodes, or on those that come next", 80_000, |s| {
            nodes::blocks(s, &[1, 2, 3, 4], PAGES);
        })
    },
    Pressure {
        nodes: 2,
        ..usual("nodes-atomic", "atomic requests bound to a full node go to the other", 40_000, |s| {
            nodes::atomic(s, PAGES);
        })
    },
    Pressure {
        nodes: 2,
        ..usual(
            "nodes-order9",
            "page cache on two nodes, then pageblocks of one or the other: both kcompactds",
            90_000,
            |s| {
                nodes::pageblocks(s, &[1, 2], PAGES);
            },
        )
    },
    Pressure {
        nodes: 2,
        ..usual(
            "nodes-file",
            "page cache on two nodes, each reclaimed by the readers and by its kswapd",
            110_000,
            |s| {
                nodes::files(s, &[1, 2], PAGES);
            },
        )
    },
    Pressure {
        nodes: 2,
        sysctls: &[("vm.watermark_boost_factor", "0"), ("vm.zone_reclaim_mode", "1")],
        ..usual(
            "nodes-reclaim",
            "page cache, clean and dirty, beside blocks on two nodes: requests reclaim on each before they go on",
            30_000,
            |s| {
                nodes::reclaimed(s, &[1, 2], PAGES);
            },
        )
    },
    Pressure {
        node: Node { mib: 256, two_zones: true },
        ..usual("lru-two-zones", "a node of two zones: spreading before fragmenting, reserves, balance", 110_000, |s| {
            blocks::two_zones(s);
        })
    },
];

/// The trace of this name.
pub fn find(name: &str) -> Option<&'static Pressure> {
    TRACES.iter().find(|t| t.name == name)
}

impl Pressure {
    /// Generates `ops` operations for a seed.
    pub fn generate(&self, seed: u64, ops: usize) -> Vec<LruOp> {
        let mut script = Script::new(seed, ops);
        (self.make)(&mut script);
        script.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_has_the_operations_asked_for_and_the_same_for_the_same_seed() {
        for t in TRACES {
            let ops = t.generate(3, t.ops);
            assert_eq!(ops.len(), t.ops, "{}", t.name);
            // Not shown where they differ: there are many.
            assert!(ops == t.generate(3, t.ops), "{}", t.name);
            assert!(ops != t.generate(4, t.ops), "{}", t.name);
            // One halfway; commands have more of them, as many as a machine can keep at most.
            let dumps = ops.iter().filter(|op| **op == LruOp::Dump).count();
            let most = if t.name.ends_with("-commands") { 32 } else { 1 };
            assert!((1..=most).contains(&dumps), "{}: {dumps}", t.name);
        }
    }
}
