//! The steps of a preparation, in order, and the check they follow from.

use super::release;
use crate::caller::Caller;
use crate::check::{Check, Verdict};
use crate::need::Need;
use crate::roots::Roots;
use serde::Serialize;
use std::path::PathBuf;

/// Steps that the user permits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Allowed {
    /// Clean cache may be dropped.
    pub drop_caches: bool,
}

/// A write to a file of the host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum PlanStep {
    /// Makes CPUs give back the free pages they keep on lists of their own.
    Release {
        /// The file whose read does it.
        path: PathBuf,
        /// The setting that keeps their lists short until the end, where there is one.
        limit: Option<PathBuf>,
    },
    /// Compacts a node, all of it at most.
    Compact {
        node: u32,
        /// The file that 1 is written to.
        path: PathBuf,
        /// Dirty pages of files are written first.
        sync: bool,
    },
    /// Drops clean pages of files that nobody maps.
    DropCaches {
        /// The file that 1 is written to.
        path: PathBuf,
    },
    /// Fills a pool of huge pages. It is the one step that stays, if the pool gets all pages.
    Reserve {
        /// The file of the pool's size.
        path: PathBuf,
        /// Free pages that the pool must have in the end, those free now included.
        pages: u64,
    },
}

/// The steps of a preparation, and the check they follow from.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Plan {
    pub check: Check,
    pub steps: Vec<PlanStep>,
    /// Why it stops short of the needs, if it does.
    pub lacks: Option<&'static str>,
}

impl Plan {
    /// The plan that follows from a check for this caller. Where it takes the blocks from pools,
    /// those are filled.
    pub fn of(
        check: Check,
        (needs, caller): (&[Need], &Caller),
        page_size: u64,
        roots: &Roots,
        allowed: Allowed,
    ) -> Plan {
        let prediction = check.prediction.as_ref();
        let compact = || prediction.map_or(Vec::new(), |p| compacting(roots, &p.nodes, p.sync));
        let mut steps: Vec<PlanStep> = Vec::new();
        let mut lacks = None;
        match check.verdict {
            Verdict::Met => {}
            Verdict::ByCompaction if prediction.is_some_and(|p| p.by_filling_a_pool) && !caller.from_pools => {
                lacks = Some("the kernel makes blocks of this size when a pool is filled: allow it with --reserve");
            }
            Verdict::ByCompaction => steps.extend(compact()),
            Verdict::ByDroppingCache if allowed.drop_caches => {
                steps.push(PlanStep::DropCaches { path: roots.proc("sys/vm/drop_caches") });
                steps.extend(compact());
            }
            Verdict::ByDroppingCache => {
                lacks = Some("clean cache would have to be dropped: allow it with --allow-drop-caches");
            }
            Verdict::NotReachable if check.limit.is_some() => {
                lacks = Some("a control group's limit is too low: raise it, or start this in another group");
            }
            Verdict::NotReachable => {
                lacks = Some("no compaction reaches it: reserve the memory at boot, or free what stands in the way");
            }
            Verdict::Unknown => lacks = Some("it cannot be told on this host"),
        }
        if caller.from_pools && lacks.is_none() {
            steps.extend(reservations(roots, (needs, caller), page_size));
        }
        Plan { check, steps, lacks }
    }
}

/// The steps that compact these nodes. First, CPUs give back the free pages they keep, where they
/// may be asked to.
pub fn compacting(roots: &Roots, nodes: &[u32], sync: bool) -> Vec<PlanStep> {
    let limit = Some(release::limit(roots)).filter(|limit| limit.exists());
    let release = release::refresh(roots).map(|path| PlanStep::Release { path, limit });
    release.into_iter().chain(nodes.iter().map(|node| compaction(roots, *node, sync))).collect()
}

/// A node's compaction. A kernel for one node has the file of all nodes only.
fn compaction(roots: &Roots, node: u32, sync: bool) -> PlanStep {
    let of_node = roots.sys(format!("devices/system/node/node{node}/compact"));
    let path = if of_node.exists() { of_node } else { roots.proc("sys/vm/compact_memory") };
    PlanStep::Compact { node, path, sync }
}

/// The pools that must be filled.
fn reservations(roots: &Roots, (needs, caller): (&[Need], &Caller), page_size: u64) -> Vec<PlanStep> {
    let short = |(need, pages): &(Need, u64)| caller.free_in_pool(need) < *pages;
    let step = |(need, pages): (Need, u64)| PlanStep::Reserve { path: pool(roots, &need, page_size), pages };
    of_pools(needs).into_iter().filter(short).map(step).collect()
}

/// The pools that these needs take pages from, by the file of their size.
pub(super) fn pools(roots: &Roots, needs: &[Need], page_size: u64) -> Vec<PathBuf> {
    of_pools(needs).iter().map(|(need, _)| pool(roots, need, page_size)).collect()
}

/// Of each pool, a need that takes pages from it and the free pages that all needs take together. A
/// node's pages count among those of all nodes, too.
fn of_pools(needs: &[Need]) -> Vec<(Need, u64)> {
    // Drivers take what they need from the free lists.
    let mut needs: Vec<Need> = needs.iter().filter(|need| !need.unmovable).copied().collect();
    needs.sort_by_key(|need| need.turn());
    let of_pool = |(i, need): (usize, &Need)| {
        let is_of_pool = |other: &&Need| other.order == need.order && (need.node.is_none() || other.node == need.node);
        // A pool is filled once, when its last need comes.
        let is_last = !needs[i + 1..].iter().any(|other| other.order == need.order && other.node == need.node);
        is_last.then(|| (*need, needs.iter().filter(is_of_pool).map(|need| need.count).sum()))
    };
    needs.iter().enumerate().filter_map(of_pool).collect()
}

/// The file of the size of a need's pool.
fn pool(roots: &Roots, need: &Need, page_size: u64) -> PathBuf {
    let pool = format!("hugepages/hugepages-{}kB/nr_hugepages", (page_size << need.order) / 1024);
    match need.node {
        Some(node) => roots.sys(format!("devices/system/node/node{node}")).join(pool),
        None => roots.sys("kernel/mm").join(pool),
    }
}

impl PlanStep {
    /// Whether it drops clean pages of files: the kernel drops those in the ranges that it empties
    /// for gigabytes.
    pub fn drops_cache(&self) -> bool {
        matches!(self, PlanStep::DropCaches { .. } | PlanStep::Reserve { .. })
    }

    /// The step in words.
    pub fn words(&self) -> String {
        match self {
            PlanStep::Release { path, limit } => {
                let write =
                    |limit: &PathBuf| format!("write {} to {} until the end, ", release::LEAST, limit.display());
                let write = limit.as_ref().map_or(String::new(), write);
                format!("have CPUs give back the free pages they keep: {write}read {}", path.display())
            }
            PlanStep::Compact { node, path, sync } => {
                let first = if *sync { "write dirty pages to disk, then " } else { "" };
                format!("{first}compact node {node}: write 1 to {}", path.display())
            }
            PlanStep::DropCaches { path } => format!("drop clean cache: write 1 to {}", path.display()),
            PlanStep::Reserve { path, pages } => {
                format!("reserve huge pages until {pages} are free: write the pool's size to {}", path.display())
            }
        }
    }
}
