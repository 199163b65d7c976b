//! NUMA distances, and the extra cost of remote memory.
//!
//! Distances are those of the firmware's table (SLIT), and order the nodes in a request's zonelist.
//! Touching a word, or clearing or copying a page, takes longer on a remote node. The machine file
//! gives the extra cost at distance 20; at other distances it is in proportion to the distance
//! beyond 10. What is free on the local node, like touching a small page again, is free on a remote
//! one.

use crate::base::cost::Cost;
use kontig_mm::{Memory, NodeId, Pfn};
use serde::{Deserialize, Serialize};

/// The nodes of a machine file.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct NumaEntry {
    /// Distances between nodes, a row per node; 10 is the node itself.
    pub distances: Vec<Vec<u8>>,
    /// Source of the distances.
    pub source: String,
    /// Extra cost of touching a word of a page on a node at distance 20.
    pub touch: Cost,
    /// Extra cost of clearing or copying a page there.
    pub page: Cost,
}

/// Extra costs of remote memory, ps at distance 20.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FarCosts {
    pub(crate) touch: u64,
    pub(crate) page: u64,
}

impl FarCosts {
    pub(crate) fn new(entry: &NumaEntry) -> FarCosts {
        FarCosts { touch: entry.touch.ps(), page: entry.page.ps() }
    }
}

/// The node of a frame.
pub(crate) fn node_of(m: &Memory, pfn: Pfn) -> NodeId {
    m.zone(m.pageblocks().zone_of(pfn)).node
}
