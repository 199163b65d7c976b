//! The nodes' counters of cached and of dirty pages, of which each CPU keeps a part, as the kernel
//! does: node reclaim reads them without the parts.

use crate::recording::lru::LruState;
use kontig_mm::{CpuId, Memory, NodeId, NodePages, Pfn};

/// A counter of the host's side.
#[derive(Clone, Copy)]
pub(super) enum Counts {
    /// Pages in the page cache and in the swap cache.
    Cached,
    /// Dirty pages of files.
    Dirty,
}

impl Counts {
    pub(super) const ALL: [Counts; 2] = [Counts::Cached, Counts::Dirty];

    /// The name in the kernel's `vmstat`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Counts::Cached => "nr_file_pages",
            Counts::Dirty => "nr_dirty",
        }
    }
}

#[derive(Default)]
struct OfNode {
    /// A CPU's part is folded in above this.
    threshold: i64,
    totals: [i64; Counts::ALL.len()],
    /// The parts that each CPU keeps.
    parts: Vec<[i64; Counts::ALL.len()]>,
}

/// The counters of all nodes.
pub(super) struct Counted {
    /// Where each zone ends, lowest first, and its node.
    ends: Vec<(Pfn, NodeId)>,
    nodes: Vec<OfNode>,
}

impl Counted {
    pub(super) fn new(m: &Memory) -> Counted {
        let mut ends: Vec<_> = m.zones().iter().map(|zone| (zone.end, zone.node)).collect();
        ends.sort_unstable();
        let parts = vec![Default::default(); m.nr_cpus()];
        let of_node = |_| OfNode { parts: parts.clone(), ..OfNode::default() };
        Counted { ends, nodes: m.nodes().iter().map(of_node).collect() }
    }

    /// Begins with what a recording begins with.
    pub(super) fn begin(&mut self, node: NodeId, start: &LruState) {
        let of = &mut self.nodes[node.index()];
        of.threshold = start.thresholds.get("node").copied().unwrap_or(0);
        for what in Counts::ALL {
            let Some(counter) = start.counters.get(&("node".into(), what.name().into())) else { continue };
            of.totals[what as usize] = counter.counted;
            for (part, unfolded) in of.parts.iter_mut().zip(&counter.unfolded) {
                part[what as usize] = *unfolded;
            }
        }
    }

    /// Adds pages to a counter of the frame's node.
    pub(super) fn add(&mut self, what: Counts, pfn: Pfn, cpu: CpuId, pages: i64) {
        let Some((_, node)) = self.ends.get(self.ends.partition_point(|(end, _)| *end <= pfn)) else { return };
        let of = &mut self.nodes[node.index()];
        let part = &mut of.parts[cpu.index()][what as usize];
        *part += pages;
        if part.abs() > of.threshold {
            of.totals[what as usize] += std::mem::take(part);
        }
    }

    /// Folds a CPU's parts in.
    pub(super) fn fold(&mut self, cpu: CpuId) {
        for of in &mut self.nodes {
            for (total, part) in of.totals.iter_mut().zip(&mut of.parts[cpu.index()]) {
                *total += std::mem::take(part);
            }
        }
    }

    /// A counter without its parts, and the parts by CPU.
    pub(super) fn of(&self, what: Counts, node: NodeId) -> (i64, impl Iterator<Item = i64>) {
        let of = &self.nodes[node.index()];
        (of.totals[what as usize], of.parts.iter().map(move |part| part[what as usize]))
    }

    /// The counters as node reclaim reads them. The trace maps no file, and the trees of its files
    /// are on another node.
    pub(super) fn pages(&self, node: NodeId) -> NodePages {
        let read = |what: Counts| self.nodes[node.index()].totals[what as usize].max(0) as u64;
        NodePages { cached: read(Counts::Cached), dirty: read(Counts::Dirty), ..NodePages::default() }
    }
}
