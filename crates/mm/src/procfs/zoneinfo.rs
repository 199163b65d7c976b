//! `/proc/zoneinfo`: every zone type of every node, memory or not.
//!
//! The marks are printed with the boost on top, as they are in force. Source: kernel-behaviour §7.3.

use super::items::{self, Counters};
use super::text;
use crate::gfp::Wmark;
use crate::state::{Memory, Node, Zone};
use crate::types::ZoneType;
use alloc::string::String;
use core::fmt::{self, Write};

impl Memory {
    /// `/proc/zoneinfo`: for each zone its marks, sizes, counters and per-CPU lists.
    pub fn zoneinfo(&self) -> String {
        text(|w| {
            for node in &self.nodes {
                let first = self.populated_zones(node).next().map(|z| z.kind);
                for kind in ZoneType::ALL {
                    let zone = node.zones.iter().map(|z| self.zone(*z)).find(|z| z.kind == kind);
                    writeln!(w, "Node {}, zone {:>8}", node.id.index(), kind.name())?;
                    if first == Some(kind) {
                        self.node_stats(w, node)?;
                    }
                    pages(w, zone)?;
                    if let Some(zone) = zone.filter(|z| z.present > 0) {
                        self.zone_stats(w, node, zone)?;
                    }
                }
            }
            Ok(())
        })
    }

    fn node_stats(&self, w: &mut String, node: &Node) -> fmt::Result {
        writeln!(w, "  per-node stats")?;
        let counters = Counters::of(self.populated_zones(node), &self.frames);
        items::OF_NODE.iter().try_for_each(|name| item(w, name, &counters))
    }

    fn zone_stats(&self, w: &mut String, node: &Node, zone: &Zone) -> fmt::Result {
        let counters = Counters::of(core::iter::once(zone), &self.frames);
        items::OF_ZONE.iter().try_for_each(|name| item(w, name, &counters))?;
        writeln!(w, "  pagesets")?;
        for (cpu, lists) in zone.pcps.iter().enumerate() {
            writeln!(w, "    cpu: {cpu}")?;
            writeln!(w, "              count: {}", lists.count)?;
            writeln!(w, "              high:  {}", lists.high)?;
            writeln!(w, "              batch: {}", lists.batch)?;
            writeln!(w, "  vm stats threshold: {}", zone.stat_threshold)?;
        }
        let hopeless = node.kswapd.hopeless();
        writeln!(w, "  node_unreclaimable:  {}", u8::from(hopeless))?;
        writeln!(w, "  start_pfn:           {}", zone.start.get())
    }
}

/// Marks and sizes; all 0 for a zone without memory.
fn pages(w: &mut String, zone: Option<&Zone>) -> fmt::Result {
    let of = |value: fn(&Zone) -> u64| zone.map_or(0, value);
    writeln!(w, "  pages free     {}", of(Zone::nr_free_pages))?;
    let rows = [
        ("boost", of(|z| z.watermark_boost)),
        ("min", of(|z| z.wmark(Wmark::Min))),
        ("low", of(|z| z.wmark(Wmark::Low))),
        ("high", of(|z| z.wmark(Wmark::High))),
        ("spanned", of(Zone::spanned)),
        ("present", of(|z| z.present)),
        ("managed", of(|z| z.managed)),
        ("cma", 0),
    ];
    rows.iter().try_for_each(|(name, value)| writeln!(w, "        {name:<8} {value}"))?;
    let [first, rest @ ..] = zone.map_or([0; ZoneType::COUNT], |z| z.lowmem_reserve);
    write!(w, "        protection: ({first}")?;
    rest.iter().try_for_each(|pages| write!(w, ", {pages}"))?;
    writeln!(w, ")")
}

fn item(w: &mut String, name: &str, counters: &Counters) -> fmt::Result {
    writeln!(w, "      {name:<12} {}", counters.get(name))
}
