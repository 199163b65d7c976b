//! Measures of fragmentation: the share of a zone's free memory that is of use to a request of an
//! order.
//!
//! Source: kernel-behaviour §5.2, §5.10, and seed 000. Divisions truncate as the kernel's do.

use crate::state::{Memory, Zone};
use crate::types::{NodeId, Order, PAGEBLOCK_ORDER};

/// Free memory of a zone from the view of an order.
///
/// The order is any number, since a real kernel's free lists may have more orders than the
/// engine's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContigInfo {
    pub order: u32,
    /// Free pages on the lists.
    pub free_pages: u64,
    /// Free blocks, of any size.
    pub blocks: u64,
    /// Blocks of the order that could be taken without compaction.
    pub suitable: u64,
}

impl ContigInfo {
    /// Computed from the number of free blocks of each order.
    pub fn new(nr_free: &[u64], order: u32) -> ContigInfo {
        let mut info = ContigInfo { order, free_pages: 0, blocks: 0, suitable: 0 };
        for (o, &n) in (0..).zip(nr_free) {
            info.blocks += n;
            info.free_pages += n << o;
            if o >= order {
                info.suitable += n << (o - order);
            }
        }
        info
    }

    /// The fragmentation index, −1000 if a block is available: towards 0, memory is lacking;
    /// towards 1000, it is fragmented. (With very few blocks it can be slightly negative.)
    pub fn fragmentation_index(&self) -> i64 {
        if self.blocks == 0 {
            return 0;
        }
        if self.suitable > 0 {
            return -1000;
        }
        let requested = (self.free_pages * 1000) >> self.order;
        1000 - ((1000 + requested) / self.blocks) as i64
    }

    /// Share of free memory in blocks too small for the order, in the given units; `none` if
    /// nothing is free.
    fn too_small(&self, units: u64, none: u64) -> u64 {
        if self.free_pages == 0 {
            return none;
        }
        (self.free_pages - (self.suitable << self.order)) * units / self.free_pages
    }

    /// The unusable free space index, 0 to 1000.
    pub fn unusable_index(&self) -> u64 {
        self.too_small(1000, 1000)
    }

    /// External fragmentation, 0 to 100: the score proactive compaction works on.
    pub fn extfrag(&self) -> u64 {
        self.too_small(100, 0)
    }
}

impl Zone {
    /// Free memory from the view of `order`.
    pub fn contig_info(&self, order: Order) -> ContigInfo {
        ContigInfo::new(&self.nr_free, u32::from(order.get()))
    }

    /// The fragmentation score of this zone alone, 0 to 100.
    pub fn fragmentation_score(&self) -> u64 {
        self.contig_info(PAGEBLOCK_ORDER).extfrag()
    }
}

impl Memory {
    /// A zone's score scaled by its share of the node's pages.
    pub fn fragmentation_score_weighted(&self, zone: &Zone) -> u64 {
        zone.present * zone.fragmentation_score() / (self.nodes[zone.node].present + 1)
    }

    /// The fragmentation score of a node, 0 to 100: the sum of its zones' weighted scores.
    pub fn fragmentation_score_node(&self, node: NodeId) -> u64 {
        let node = &self.nodes[node];
        node.zones.iter().map(|z| self.fragmentation_score_weighted(&self.zones[*z])).sum()
    }
}

#[cfg(test)]
mod tests {
    //! The vectors of kernel-behaviour §10.3.
    use super::*;

    #[test]
    fn fragmentation_index_of_the_published_vectors() {
        // Free blocks by order; free pages; fragmentation index at orders 1, 4, 9; score and
        // unusable index at 9.
        type Vector = (&'static [u64], u64, [i64; 3], u64, u64);
        let rows: &[Vector] = &[
            (&[1000], 1000, [499, 937, 998], 100, 1000),
            (&[512], 512, [499, 936, 997], 100, 1000),
            (&[1023], 1023, [500, 937, 998], 100, 1000),
            (&[100, 50, 25, 12, 6, 3, 1], 652, [-1000, -1000, 989], 100, 1000),
            (&[0, 0, 0, 0, 0, 0, 0, 0, 10], 2560, [-1000, -1000, 400], 100, 1000),
            (&[5000, 3000, 1000, 200, 40, 8, 2, 1, 1], 18008, [-1000, -1000, 997], 100, 1000),
            (&[0, 0, 0, 0, 0, 0, 0, 0, 0, 4], 2048, [-1000, -1000, -1000], 0, 0),
            (&[1], 1, [-500, -62, -1], 100, 1000),
        ];
        for &(n, free, index, score, unusable) in rows {
            for (order, want) in [1, 4, 9].into_iter().zip(index) {
                let i = ContigInfo::new(n, order);
                assert_eq!(i.free_pages, free, "{n:?}");
                assert_eq!(i.fragmentation_index(), want, "{n:?} order {order}");
            }
            assert_eq!(ContigInfo::new(n, 9).extfrag(), score, "{n:?}");
            assert_eq!(ContigInfo::new(n, 9).unusable_index(), unusable, "{n:?}");
        }
    }
}
