//! Nodes that are far from each other: how far, and what memory of another node costs more.
//!
//! Distances are those of firmware's table (SLIT), and decide in which order a request looks at the nodes. An access to
//! memory of another node takes longer: a word that is touched, and a page that is cleared or copied. The machine file says by
//! how much at distance 20; at others it is in proportion to what the distance has beyond 10. What costs nothing on the own
//! node, such as a small page that is touched again, costs nothing on another.

use crate::base::cost::Cost;
use kontig_mm::{Memory, NodeId, Pfn};
use serde::{Deserialize, Serialize};

/// The nodes of a machine file.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct NumaEntry {
    /// How far each node is from each, a row a node; 10 is itself.
    pub distances: Vec<Vec<u8>>,
    /// Where the distances come from.
    pub source: String,
    /// What touching a word of a page takes more on a node at distance 20.
    pub touch: Cost,
    /// What clearing or copying a page takes more there.
    pub page: Cost,
}

/// What memory of other nodes costs more, ps at distance 20.
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
