//! Nodes that are far from each other: how far, and what memory of another node costs more.
//!
//! Distances are those of firmware's table (SLIT), and decide in which order a request looks at the nodes. An access to
//! memory of another node takes longer: a word that is touched, and a page that is cleared or copied. The machine file says by
//! how much at distance 20; at others it is in proportion to what the distance has beyond 10. What costs nothing on the own
//! node, such as a small page that is touched again, costs nothing on another.

use crate::context::Context;
use crate::cost::{Cost, ns};
use crate::kernel::Kernel;
use kontig_mm::Pfn;
use kontig_mm::zonelist::LOCAL_DISTANCE;
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
    touch: u64,
    page: u64,
}

impl FarCosts {
    pub(crate) fn new(entry: &NumaEntry) -> FarCosts {
        FarCosts { touch: entry.touch.ps(), page: entry.page.ps() }
    }
}

impl Kernel {
    /// What touching so many pages takes more because of their node, ns.
    #[inline(always)]
    pub(crate) fn far_touch(&self, c: &Context, pfn: Pfn, pages: u32) -> u64 {
        self.far.map_or(0, |far| self.beyond(c, pfn, far.touch * u64::from(pages)))
    }

    /// What clearing or copying so many pages takes more because of their node, ns.
    #[inline(always)]
    pub(crate) fn far_pages(&self, c: &Context, pfn: Pfn, pages: u32) -> u64 {
        self.far.map_or(0, |far| self.beyond(c, pfn, far.page * u64::from(pages)))
    }

    /// Of a cost at distance 20, that at the distance of a frame's node, ns.
    fn beyond(&self, c: &Context, pfn: Pfn, at_20: u64) -> u64 {
        let node = self.mem.zone(self.mem.pageblocks().zone_of(pfn)).node;
        let beyond = self.mem.distance(c.node, node).saturating_sub(LOCAL_DISTANCE);
        ns(at_20 * u64::from(beyond) / 10)
    }
}
