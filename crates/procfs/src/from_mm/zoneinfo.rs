//! `/proc/zoneinfo` of a machine: every zone type of every node, with memory or without; of a
//! kernel that lists no zones without memory, the others.

use super::format::Format;
use super::items::{NodeItems, ZoneItems};
use super::populated;
use super::vmstat::event;
use crate::zoneinfo::{self, PageSet, Populated};
use crate::{ZoneAt, ZoneInfo};
use kontig_mm::{CpuId, Memory, Node, Wmark, Zone, ZoneId, ZoneType};

impl ZoneInfo {
    /// The zones of a machine, by the counters of the engine alone; what it does not count is 0.
    pub fn of(m: &Memory) -> ZoneInfo {
        ZoneInfo::with(m, |_, _| None)
    }

    /// The same, with counters that somebody else keeps of a zone, by the kernel's names.
    pub fn with(m: &Memory, counted: impl Fn(ZoneId, &str) -> Option<u64>) -> ZoneInfo {
        let format = Format::of(m.profile()).zoneinfo();
        let node = |node: &'_ Node| ZoneType::ALL.map(|kind| zone((m, &counted), &format, node, kind));
        ZoneInfo { zones: m.nodes().iter().flat_map(node).flatten().collect() }
    }
}

fn zone(
    (m, counted): (&Memory, &impl Fn(ZoneId, &str) -> Option<u64>),
    format: &ZoneInfo,
    node: &Node,
    kind: ZoneType,
) -> Option<zoneinfo::Zone> {
    let at = ZoneAt { node: node.id.index() as u32, zone: kind.name().into() };
    let lists_empty = format.zones.iter().any(|z| z.populated.is_none());
    let zone = node.zones.iter().map(|z| m.zone(*z)).find(|z| z.kind == kind);
    let Some(zone) = zone.filter(|zone| zone.present > 0 || lists_empty) else {
        let empty = format.zones.iter().find(|z| z.populated.is_none() && z.at.zone == at.zone);
        return empty.map(|empty| zoneinfo::Zone { at, ..empty.clone() });
    };
    let first = populated(m, node).next().is_some_and(|z| z.kind == kind);
    let shown = format.zones.iter().find(|z| z.populated.is_some()).expect("every format shows a zone with memory");
    let stats = format.zones.iter().find_map(|z| z.node_stats.as_ref()).filter(|_| first);
    Some(zoneinfo::Zone {
        at,
        node_stats: stats.map(|names| {
            let items = NodeItems::of(m, std::iter::once(node));
            // A counter of the whole node is the sum of its zones' parts.
            let of_zones = |name: &str| node.zones.iter().map(|zone| counted(*zone, name)).sum::<Option<u64>>();
            let value = |name: &str| of_zones(name).or_else(|| items.get(name)).or_else(|| event_of(m, node, name));
            names.with(|name| value(name).unwrap_or(0))
        }),
        free: zone.nr_free_pages(),
        sizes: shown.sizes.with(|name| size(zone, name)),
        protection: zone.lowmem_reserve.iter().copied().take(shown.protection.len()).collect(),
        populated: shown.populated.as_ref().filter(|_| zone.present > 0).map(|names| Populated {
            counters: {
                let items = ZoneItems::of(m, std::iter::once(zone));
                // Of a node that has its own counters, a zone has none of them.
                let of_node = names.last.get("all_unreclaimable").map(|_| NodeItems::of_zone(m, zone));
                let of_node = |name: &str| of_node.as_ref().and_then(|items| items.get(name));
                let value = |name: &str| counted(zone.id, name).or_else(|| items.get(name)).or_else(|| of_node(name));
                names.counters.with(|name| value(name).unwrap_or(0))
            },
            cpus: (0..m.nr_cpus()).map(|cpu| page_set(zone, cpu, &names.cpus[0])).collect(),
            last: names.last.with(|name| last(m, node, zone, name)),
        }),
    })
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
        "scanned" => zone.pages_scanned,
        "spanned" => zone.spanned(),
        "present" => zone.present,
        "managed" => zone.managed,
        _ => 0,
    }
}

/// Active anonymous pages that there may be for each inactive one: the root of ten times the zone's
/// GiB, as boot computes it (`calculate_zone_inactive_ratio`).
fn inactive_ratio(zone: &Zone) -> u64 {
    (10 * (zone.managed >> 18)).isqrt().max(1)
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

fn last(m: &Memory, node: &Node, zone: &Zone, name: &str) -> u64 {
    match name {
        "node_unreclaimable" => u64::from(node.kswapd.hopeless()),
        "all_unreclaimable" => u64::from(!m.zone_reclaimable(zone.id)),
        "inactive_ratio" => inactive_ratio(zone),
        "start_pfn" => u64::from(zone.start.get()),
        "reserved_highatomic" => zone.nr_reserved_highatomic,
        "free_highatomic" => zone.nr_free_highatomic,
        _ => 0,
    }
}
