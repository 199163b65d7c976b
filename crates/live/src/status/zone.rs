//! A zone: its free memory by size of block, and how many blocks a request gets.
//!
//! Two indices are the kernel's own (`extfrag` in its debugfs), worked out from the free lists. The
//! supply ([`crate::supply`]) says how many blocks are at hand, as in every check of a need.

use crate::supply::ZoneSupply;
use kontig_mm::index::ContigInfo;
use kontig_procfs::buddyinfo::FreeBlocks;
use kontig_procfs::{PageTypeInfo, zoneinfo};
use serde::Serialize;

/// A zone with memory.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Zone {
    pub zone: String,
    /// Memory that exists, bytes.
    pub present_bytes: u64,
    /// Memory that the zone hands out, bytes, without memory that is not initialised yet.
    pub managed_bytes: u64,
    /// Free memory on the free lists, bytes.
    pub free_bytes: u64,
    /// Free memory on lists of single CPUs, bytes.
    pub on_cpus_bytes: u64,
    /// Free memory on no list until a request finds nothing else, bytes: not initialised yet, or
    /// not accepted by a confidential guest.
    pub deferred_bytes: u64,
    /// Free memory of it that only movable data may have (CMA), bytes.
    pub free_cma_bytes: Option<u64>,
    /// Free memory kept for urgent requests, bytes; null where the kernel does not say.
    pub free_highatomic_bytes: Option<u64>,
    pub marks: Marks,
    /// The kernel's fragmentation score of the zone alone, 0 to 100.
    pub score: Option<u64>,
    /// Blocks of the order asked about that requests get now, of deferred memory, too; null if the
    /// free lists have no such order.
    pub at_hand: Option<u64>,
    /// The share of free memory in blocks too small for the order asked about.
    pub unusable_index: f64,
    /// Whether a request of that order would fail because memory is lacking (towards 0) or because
    /// it is in pieces (towards 1); null if a block is at hand.
    pub extfrag_index: Option<f64>,
    /// Each order of the free lists.
    pub orders: Vec<OrderState>,
    /// Pageblocks by type; null where that may not be read.
    pub pageblocks: Option<Vec<Pageblocks>>,
}

/// Amounts of free memory at which the kernel acts, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Marks {
    /// Below it, requests reclaim for themselves.
    pub min_bytes: u64,
    /// Below it, kswapd begins.
    pub low_bytes: u64,
    /// At it, kswapd ends.
    pub high_bytes: u64,
    /// By how much the marks are raised for now, since blocks were taken from other types; null
    /// before 5.14.
    pub boost_bytes: Option<u64>,
    /// Kept from a user's request, for requests that cannot use a higher zone.
    pub reserve_bytes: u64,
}

/// The free blocks of one order.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct OrderState {
    pub order: u32,
    pub bytes: u64,
    /// Free blocks of just this order.
    pub free_blocks: u64,
    /// Blocks that requests of it get now, made of larger ones, too.
    pub at_hand: u64,
    pub unusable_index: f64,
    pub extfrag_index: Option<f64>,
}

/// Pageblocks of a type.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Pageblocks {
    pub migratetype: String,
    pub blocks: u64,
}

/// Facts of the host that zones need beside their own texts.
pub(super) struct ZoneParts<'a> {
    pub page_bytes: u64,
    pub order: u32,
    pub huge_page_order: Option<u32>,
    pub types: Option<&'a PageTypeInfo>,
}

impl ZoneParts<'_> {
    /// A zone by its texts, with this many free pages on no list.
    pub fn zone(&self, free: &FreeBlocks, info: &zoneinfo::Zone, deferred: u64) -> Zone {
        let of_order = &free.of_order;
        let bytes = |pages: u64| pages.saturating_mul(self.page_bytes);
        let size = |name: &str| info.sizes.get(name);
        let mark = |name: &str| bytes(size(name).unwrap_or(0));
        let reserve = info.protection.iter().copied().max().unwrap_or(0);
        let supply = ZoneSupply::new(free.at.node, of_order.clone(), deferred, size("low").unwrap_or(0), [reserve; 2]);
        let asked = ContigInfo::new(of_order, self.order);
        let state = |(order, blocks): (u32, &u64)| {
            let info = ContigInfo::new(of_order, order);
            OrderState {
                order,
                bytes: self.page_bytes << order,
                free_blocks: *blocks,
                at_hand: supply.at_hand(order).unwrap_or(0),
                unusable_index: thousandths(info.unusable_index() as i64),
                extfrag_index: extfrag(&info),
            }
        };
        let populated = info.populated.as_ref();
        let counter = |name: &str| populated.and_then(|p| p.counters.get(name));
        let on_cpus = populated.map_or(0, |p| p.cpus.iter().filter_map(|cpu| cpu.lists.get("count")).sum());
        Zone {
            zone: free.at.zone.clone(),
            present_bytes: bytes(size("present").unwrap_or(0)),
            managed_bytes: bytes(size("managed").unwrap_or(0)),
            free_bytes: bytes(asked.free_pages),
            on_cpus_bytes: bytes(on_cpus),
            deferred_bytes: bytes(deferred),
            free_cma_bytes: counter("nr_free_cma").map(bytes),
            free_highatomic_bytes: populated.and_then(|p| p.last.get("free_highatomic")).map(bytes),
            marks: Marks {
                min_bytes: mark("min"),
                low_bytes: mark("low"),
                high_bytes: mark("high"),
                boost_bytes: size("boost").map(bytes),
                reserve_bytes: bytes(reserve),
            },
            score: self.huge_page_order.map(|order| ContigInfo::new(of_order, order).extfrag()),
            at_hand: supply.at_hand(self.order),
            unusable_index: thousandths(asked.unusable_index() as i64),
            extfrag_index: extfrag(&asked),
            orders: (0..).zip(of_order).map(state).collect(),
            pageblocks: self.types.and_then(|types| pageblocks(types, free)),
        }
    }
}

fn thousandths(index: i64) -> f64 {
    index as f64 / 1000.0
}

fn extfrag(info: &ContigInfo) -> Option<f64> {
    (info.suitable == 0).then(|| thousandths(info.fragmentation_index()))
}

fn pageblocks(types: &PageTypeInfo, free: &FreeBlocks) -> Option<Vec<Pageblocks>> {
    let table = types.nodes.iter().filter_map(|node| node.blocks.first());
    let mut rows = table.flat_map(|table| table.zones.iter().map(move |(at, blocks)| (at, &table.types, blocks)));
    let (_, names, blocks) = rows.find(|(at, ..)| **at == free.at)?;
    let named = names.iter().zip(blocks);
    Some(named.map(|(name, blocks)| Pageblocks { migratetype: name.clone(), blocks: *blocks }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_procfs::{Counters, ZoneAt};

    fn zone(of_order: Vec<u64>, low: u64, reserve: u64, order: u32) -> Zone {
        let at = ZoneAt { node: 0, zone: "Normal".into() };
        let sizes: Counters =
            [("low", low), ("managed", 1 << 20)].map(|(n, v)| (n.to_string(), v)).into_iter().collect();
        let protection = vec![0, reserve];
        let info = zoneinfo::Zone { at: at.clone(), node_stats: None, free: 0, sizes, protection, populated: None };
        let parts = ZoneParts { page_bytes: 4096, order, huge_page_order: Some(9), types: None };
        parts.zone(&FreeBlocks { at, of_order }, &info, 0)
    }

    #[test]
    fn blocks_at_hand_are_those_that_leave_the_zone_above_its_low_mark_and_its_reserve() {
        let lists = vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 4];
        assert_eq!(zone(lists.clone(), 0, 0, 9).at_hand, Some(11), "larger blocks are split");
        assert_eq!(zone(lists.clone(), 512, 1024, 9).at_hand, Some(8));
        assert_eq!(zone(lists.clone(), 511, 0, 9).at_hand, Some(10), "not into the mark by a page");
        assert_eq!(zone(lists.clone(), 1 << 30, 0, 9).at_hand, Some(0));
        assert_eq!(zone(lists, 0, 0, 18).at_hand, None, "what the lists have no order for is not known from them");
    }

    #[test]
    fn a_zone_of_fourteen_orders_is_told_like_one_of_eleven() {
        let mut lists = vec![0; 14];
        lists[13] = 2;
        lists[0] = 8192;
        let zone = zone(lists, 0, 0, 13);
        assert_eq!((zone.at_hand, zone.orders.len(), zone.orders[13].bytes), (Some(2), 14, 32 << 20));
        assert_eq!((zone.score, zone.unusable_index, zone.extfrag_index), (Some(33), 0.333, None));
    }
}
