//! `/proc/pagetypeinfo`: free blocks and pageblocks by migratetype.
//!
//! The kernel repeats both tables, headings and all, for every node with memory. ISOLATE is listed although no block
//! here is ever of that type; CMA is not, because Debian's 6.1 is built without it. Source: kernel-behaviour §7.2.

use super::text;
use crate::state::{Memory, Node, Zone};
use crate::types::{MigrateType, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES};
use alloc::string::String;
use core::fmt::{self, Write};

/// Where the kernel stops counting a list: it holds the zone's lock meanwhile.
const COUNTED: usize = 100_000;

/// The types in the order of the tables; `None` is ISOLATE.
fn types() -> impl Iterator<Item = Option<MigrateType>> {
    MigrateType::ALL.into_iter().map(Some).chain([None])
}

fn name(t: Option<MigrateType>) -> &'static str {
    t.map_or("Isolate", MigrateType::name)
}

impl Memory {
    /// `/proc/pagetypeinfo`: for each node, free blocks by type and order, and pageblocks by type.
    pub fn pagetypeinfo(&self) -> String {
        text(|w| {
            for node in self.nodes.iter().filter(|n| n.present > 0) {
                writeln!(w, "Page block order: {}", PAGEBLOCK_ORDER.get())?;
                writeln!(w, "Pages per block:  {PAGEBLOCK_PAGES}\n")?;
                self.free_by_type(w, node)?;
                writeln!(w)?;
                self.blocks_by_type(w, node)?;
            }
            Ok(())
        })
    }

    fn free_by_type(&self, w: &mut String, node: &Node) -> fmt::Result {
        write!(w, "{:<43} ", "Free pages count per migrate type at order")?;
        Order::all().try_for_each(|order| write!(w, "{:>6} ", order.get()))?;
        writeln!(w)?;
        for zone in self.populated_zones(node) {
            for t in types() {
                write!(w, "Node {:>4}, zone {:>8}, type {:>12} ", node.id.index(), zone.kind.name(), name(t))?;
                for order in Order::all() {
                    let n = t.map_or(0, |t| self.listed(zone, order, t));
                    write!(w, "{}{n:>6} ", if n == COUNTED { ">" } else { "" })?;
                }
                writeln!(w)?;
            }
        }
        Ok(())
    }

    /// Blocks on a free list, as far as they are counted.
    fn listed(&self, zone: &Zone, order: Order, t: MigrateType) -> usize {
        self.frames.iter(zone.free_list(order, t), order).take(COUNTED).count()
    }

    fn blocks_by_type(&self, w: &mut String, node: &Node) -> fmt::Result {
        write!(w, "{:<23}", "Number of blocks type ")?;
        types().try_for_each(|t| write!(w, "{:>12} ", name(t)))?;
        writeln!(w)?;
        for zone in self.populated_zones(node) {
            write!(w, "Node {}, zone {:>8} ", node.id.index(), zone.kind.name())?;
            let (from, to) = (zone.start.pageblock(), zone.last_pageblock().pageblock() + 1);
            for t in types() {
                write!(w, "{:>12} ", t.map_or(0, |t| self.blocks.count(t, from, to)))?;
            }
            writeln!(w)?;
        }
        Ok(())
    }
}
