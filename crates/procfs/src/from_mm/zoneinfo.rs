//! `/proc/zoneinfo` of a machine: every zone type of every node, with memory or without.

use super::format::Format;
use super::items::{NodeItems, ZoneItems};
use super::populated;
use super::vmstat::event;
use crate::zoneinfo::{self, PageSet, Populated};
use crate::{ZoneAt, ZoneInfo};
use kontig_mm::{CpuId, Memory, Node, Wmark, Zone, ZoneType};

impl ZoneInfo {
    /// The zones of a machine.
    pub fn of(m: &Memory) -> ZoneInfo {
        let format = Format::of(m.profile()).zoneinfo();
        let node = |node: &'_ Node| ZoneType::ALL.map(|kind| zone(m, &format, node, kind));
        ZoneInfo { zones: m.nodes().iter().flat_map(node).collect() }
    }
}

fn zone(m: &Memory, format: &ZoneInfo, node: &Node, kind: ZoneType) -> zoneinfo::Zone {
    let at = ZoneAt { node: node.id.index() as u32, zone: kind.name().into() };
    let Some(zone) = node.zones.iter().map(|z| m.zone(*z)).find(|z| z.kind == kind) else {
        let empty = format.zones.iter().find(|z| z.populated.is_none() && z.at.zone == at.zone);
        return zoneinfo::Zone { at, ..empty.expect("every format shows each zone without memory").clone() };
    };
    let first = populated(m, node).next().is_some_and(|z| z.kind == kind);
    let shown = format.zones.iter().find(|z| z.populated.is_some()).expect("every format shows a zone with memory");
    let stats = format.zones.iter().find_map(|z| z.node_stats.as_ref()).filter(|_| first);
    zoneinfo::Zone {
        at,
        node_stats: stats.map(|names| {
            let items = NodeItems::of(m, std::iter::once(node));
            names.with(|name| items.get(name).or_else(|| event_of(m, node, name)).unwrap_or(0))
        }),
        free: zone.nr_free_pages(),
        sizes: shown.sizes.with(|name| size(zone, name)),
        protection: zone.lowmem_reserve.to_vec(),
        populated: shown.populated.as_ref().filter(|_| zone.present > 0).map(|names| Populated {
            counters: {
                let items = ZoneItems::of(m, std::iter::once(zone));
                names.counters.with(|name| items.get(name).unwrap_or(0))
            },
            cpus: (0..m.nr_cpus()).map(|cpu| page_set(zone, cpu, &names.cpus[0])).collect(),
            last: names.last.with(|name| last(node, zone, name)),
        }),
    }
}

/// Events that later kernels count by node (`pgscan_kswapd`) and the engine counts for the machine:
/// they are the node's if no other node has memory to reclaim.
fn event_of(m: &Memory, node: &Node, name: &str) -> Option<u64> {
    let alone = m.zones().iter().all(|zone| zone.node == node.id || zone.managed == 0);
    event(m, name).filter(|_| alone)
}

fn size(zone: &Zone, name: &str) -> u64 {
    match name {
        "boost" => zone.watermark_boost,
        "min" => zone.wmark(Wmark::Min),
        "low" => zone.wmark(Wmark::Low),
        "high" => zone.wmark(Wmark::High),
        "promo" => zone.watermarks.promo + zone.watermark_boost,
        "spanned" => zone.spanned(),
        "present" => zone.present,
        "managed" => zone.managed,
        _ => 0,
    }
}

fn page_set(zone: &Zone, cpu: usize, names: &PageSet) -> PageSet {
    let lists = zone.pcp(CpuId::new(cpu));
    let value = |name: &str| match name {
        "count" => u64::from(lists.count),
        "high" => u64::from(lists.high),
        "batch" => u64::from(lists.batch),
        "high_min" => u64::from(lists.tuning.high_min),
        "high_max" => u64::from(lists.tuning.high_max),
        _ => 0,
    };
    PageSet { cpu: cpu as u32, lists: names.lists.with(value), stat_threshold: Some(zone.stat_threshold as u64) }
}

fn last(node: &Node, zone: &Zone, name: &str) -> u64 {
    match name {
        "node_unreclaimable" => u64::from(node.kswapd.hopeless()),
        "start_pfn" => u64::from(zone.start.get()),
        "reserved_highatomic" => zone.nr_reserved_highatomic,
        "free_highatomic" => zone.nr_free_highatomic,
        _ => 0,
    }
}
