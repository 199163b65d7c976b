//! Pages of files and of the swap cache by node, as `vm.zone_reclaim_mode` asks for them.

use kontig_mm::{Memory, NodeId, NodePages, Pfn};

/// The counts of each node. Its slab is counted with the caches.
#[derive(Clone, Default)]
pub(crate) struct ByNode {
    /// Where each zone ends, lowest first, and its node; empty on a machine with one node.
    ends: Vec<(Pfn, usize)>,
    pages: Vec<NodePages>,
}

impl ByNode {
    /// Counts of the machine's nodes, which have no pages yet.
    pub(super) fn new(m: &Memory) -> ByNode {
        let nodes = m.nodes().len();
        let zones = m.zones().iter().filter(|_| nodes > 1);
        let mut ends: Vec<_> = zones.map(|zone| (zone.end, zone.node.index())).collect();
        ends.sort_unstable();
        ByNode { ends, pages: vec![NodePages::default(); nodes] }
    }

    /// The counts of the node that has this frame.
    #[inline(always)]
    pub(crate) fn with(&mut self, pfn: Pfn) -> &mut NodePages {
        let node = match self.ends.is_empty() {
            true => 0,
            false => self.ends[self.ends.partition_point(|(end, _)| *end <= pfn)].1,
        };
        &mut self.pages[node]
    }

    pub(crate) fn of(&self, node: NodeId) -> NodePages {
        self.pages[node.index()]
    }

    /// The same of all nodes together.
    pub(crate) fn total(&self) -> NodePages {
        self.pages.iter().fold(NodePages::default(), |sum, of| NodePages {
            cached: sum.cached + of.cached,
            mapped: sum.mapped + of.mapped,
            dirty: sum.dirty + of.dirty,
            reclaimable_slab: sum.reclaimable_slab + of.reclaimable_slab,
        })
    }
}
