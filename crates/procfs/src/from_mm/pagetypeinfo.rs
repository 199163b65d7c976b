//! `/proc/pagetypeinfo` of a machine: the nodes with memory.
//!
//! A type that the kernel lists and the engine does not have (ISOLATE, CMA) has nothing.

use super::format::Format;
use super::{at, populated};
use crate::PageTypeInfo;
use crate::pagetypeinfo::{BlockTable, FreeOfType, Listed, NodeTypes};
use kontig_mm::types::{NR_ORDERS, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES};
use kontig_mm::{Memory, MigrateType, Node, Order, Zone};

/// The kernel stops counting a list here, because it holds the zone lock meanwhile.
const COUNTED: usize = 100_000;

impl PageTypeInfo {
    /// The free blocks and pageblocks of a machine.
    pub fn of(m: &Memory) -> PageTypeInfo {
        let format = Format::of(m.profile()).pagetypeinfo();
        let table = &format.nodes[0].blocks[0];
        let with_memory = m.nodes().iter().filter(|n| n.present > 0);
        PageTypeInfo { nodes: with_memory.map(|n| node(m, n, table)).collect() }
    }
}

fn node(m: &Memory, node: &Node, table: &BlockTable) -> NodeTypes {
    let row = |zone: &Zone, name: &String| FreeOfType {
        at: at(zone),
        migratetype: name.clone(),
        of_order: Order::all().map(|order| listed(zone, order, named(name))).collect(),
    };
    let blocks = |zone: &Zone| {
        let (from, to) = (zone.start.pageblock(), zone.last_pageblock().pageblock() + 1);
        table.types.iter().map(|name| named(name).map_or(0, |t| m.pageblocks().count(t, from, to))).collect()
    };
    NodeTypes {
        block_order: u32::from(PAGEBLOCK_ORDER.get()),
        pages_per_block: u64::from(PAGEBLOCK_PAGES),
        orders: NR_ORDERS,
        free: populated(m, node).flat_map(|zone| table.types.iter().map(move |name| row(zone, name))).collect(),
        blocks: vec![BlockTable {
            heading: table.heading.clone(),
            types: table.types.clone(),
            zones: populated(m, node).map(|zone| (at(zone), blocks(zone))).collect(),
        }],
    }
}

/// The engine's type of this name. Up to 4.3 `Reserve` had the place of `HighAtomic`.
pub(super) fn named(name: &str) -> Option<MigrateType> {
    let name = if name == "Reserve" { MigrateType::HighAtomic.name() } else { name };
    MigrateType::ALL.into_iter().find(|t| t.name() == name)
}

/// Blocks on a free list, up to where the kernel counts.
fn listed(zone: &Zone, order: Order, t: Option<MigrateType>) -> Listed {
    let blocks = t.map_or(0, |t| zone.free_list(order, t).len().min(COUNTED));
    Listed { blocks: blocks as u64, more: blocks == COUNTED }
}
