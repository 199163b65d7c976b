//! The counts of each zone in buddyinfo and pagetypeinfo, brought into agreement.

use super::super::frames::{BLOCK, managed};
use kontig_mm::types::{MAX_ORDER, NR_ORDERS, PAGEBLOCK_ORDER};
use kontig_mm::{MachineSpec, MigrateType, ZoneType};
use kontig_procfs::{BuddyInfo, PageTypeInfo, ZoneAt};

/// The types that free blocks and pageblocks are counted by.
pub(super) const TYPES: [MigrateType; 3] = [MigrateType::Unmovable, MigrateType::Movable, MigrateType::Reclaimable];
/// The place of movable ones.
pub(super) const MOVABLE: usize = 1;

/// A zone of a host.
#[derive(Clone, Debug)]
pub(super) struct HostZone {
    pub(super) node: usize,
    pub(super) kind: ZoneType,
    /// Free blocks of each order, by type.
    pub(super) free: [[u64; NR_ORDERS]; TYPES.len()],
    /// Pageblocks of each type; none are known without a pagetypeinfo.
    pub(super) of_type: Option<[u64; TYPES.len()]>,
}

impl HostZone {
    pub(super) fn title(&self) -> String {
        format!("node {} zone {}", self.node, self.kind.name())
    }

    /// All its pageblocks, if they are known.
    pub(super) fn blocks(&self) -> usize {
        self.of_type.map_or(0, |of| of.iter().sum::<u64>()) as usize
    }

    fn free_pages(&self) -> u64 {
        self.free.iter().flat_map(|of| of.iter().zip(0u32..)).map(|(n, order)| n << order).sum()
    }

    fn is(&self, at: &ZoneAt) -> bool {
        self.node == at.node as usize && self.kind.name() == at.zone
    }
}

/// No machine of the engine has more frames in a zone.
const MOST_PAGES: u64 = 1 << 31;

/// The zones of a buddyinfo, all free blocks movable; or the place of the first that cannot be, and
/// the reason.
pub(super) fn of(buddy: &BuddyInfo) -> Result<Vec<HostZone>, (usize, String)> {
    let zone = |(i, zone): (usize, &kontig_procfs::buddyinfo::FreeBlocks)| {
        let wrong = |reason: String| Err((i, reason));
        let orders = zone.of_order.len();
        if orders != NR_ORDERS {
            return wrong(format!("{orders} orders: the laboratory has {NR_ORDERS}, from 0 to {}", MAX_ORDER.get()));
        }
        let kinds = [ZoneType::Dma, ZoneType::Dma32, ZoneType::Normal];
        let Some(kind) = kinds.into_iter().find(|kind| kind.name() == zone.at.zone) else {
            return wrong(format!("zone {}: the laboratory has DMA, DMA32 and Normal", zone.at.zone));
        };
        let mut free = [[0; NR_ORDERS]; TYPES.len()];
        free[MOVABLE].copy_from_slice(&zone.of_order);
        if zone.of_order.iter().any(|n| *n > MOST_PAGES) {
            return wrong("more free blocks than a machine has".into());
        }
        Ok(HostZone { node: zone.at.node as usize, kind, free, of_type: None })
    };
    buddy.zones.iter().enumerate().map(zone).collect()
}

/// The name of the first table of pageblocks, which has all of them.
const ALL_BLOCKS: &str = "Number of blocks type";

/// The laboratory's type for a type of the kernel's: what it lacks is taken for what it is nearest
/// to.
fn place(migratetype: &str) -> usize {
    match migratetype {
        "Unmovable" | "HighAtomic" => 0,
        "Reclaimable" => 2,
        _ => MOVABLE,
    }
}

/// Adds what pagetypeinfo says; or the beginning of the line that cannot be, and the reason.
pub(super) fn add_types(zones: &mut [HostZone], info: &PageTypeInfo) -> Result<(), (Option<String>, String)> {
    if let Some(node) = info.nodes.iter().find(|node| node.block_order != u32::from(PAGEBLOCK_ORDER.get())) {
        let of = node.block_order;
        return Err((None, format!("pageblocks of order {of}: the laboratory's have order {}", PAGEBLOCK_ORDER.get())));
    }
    let tables = info.nodes.iter().flat_map(|node| &node.blocks).filter(|table| table.heading == ALL_BLOCKS);
    for (table, (at, of_type)) in tables.flat_map(|table| table.zones.iter().map(move |zone| (table, zone))) {
        let wrong = |reason: String| Err((Some(at.to_string()), format!("node {} zone {} {reason}", at.node, at.zone)));
        let Some(zone) = zones.iter_mut().find(|zone| zone.is(at)) else {
            return wrong("is not in buddyinfo: take both from one host".into());
        };
        let mut counts = [0u64; TYPES.len()];
        for (name, n) in table.types.iter().zip(of_type) {
            counts[place(name)] = counts[place(name)].saturating_add(*n);
        }
        let (has, free) = (counts.iter().fold(0u64, |sum, n| sum.saturating_add(*n)), zone.free_pages());
        if has > MOST_PAGES / BLOCK as u64 {
            return wrong(format!("has {has} pageblocks, more than a machine of 8 TiB"));
        }
        if free > has * BLOCK as u64 {
            let pages = has * BLOCK as u64;
            return wrong(format!("has {pages} pages, of which buddyinfo has {free} free: take both from one host"));
        }
        zone.of_type = Some(counts);
    }
    if let Some(zone) = zones.iter().find(|zone| zone.of_type.is_none()) {
        return Err((None, format!("lacks {}, which is in buddyinfo: take both from one host", zone.title())));
    }
    zones.iter_mut().for_each(|zone| share_out(zone, info));
    Ok(())
}

/// Gives the free blocks of each order to types, as pagetypeinfo counts them; of how many there are
/// buddyinfo decides. What it has more is where the kernel stopped counting, else movable; what it
/// has less is missing where most are.
fn share_out(zone: &mut HostZone, info: &PageTypeInfo) {
    let all = zone.free[MOVABLE];
    let mut free = [[0; NR_ORDERS]; TYPES.len()];
    let mut uncounted = [MOVABLE; NR_ORDERS];
    for row in info.nodes.iter().flat_map(|node| &node.free).filter(|row| zone.is(&row.at)) {
        let of_type = place(&row.migratetype);
        for (order, listed) in row.of_order.iter().enumerate().take(NR_ORDERS) {
            free[of_type][order] += listed.blocks.min(all[order]);
            if listed.more {
                uncounted[order] = of_type;
            }
        }
    }
    for order in 0..NR_ORDERS {
        let sum = |free: &[[u64; NR_ORDERS]]| free.iter().map(|of| of[order]).sum::<u64>();
        free[uncounted[order]][order] += all[order].saturating_sub(sum(&free));
        while sum(&free) > all[order] {
            let excess = sum(&free) - all[order];
            if let Some(most) = free.iter_mut().map(|of| &mut of[order]).max() {
                *most -= excess.min(*most);
            }
        }
    }
    zone.free = free;
}

/// The first pageblock of each zone: as on x86-64, zone after zone.
pub(super) fn starts(zones: &[HostZone]) -> Vec<usize> {
    let mut next = 0;
    let start = |zone: &HostZone| {
        let least = match zone.kind {
            ZoneType::Dma => 0,
            ZoneType::Dma32 => 8,
            _ => 2048,
        };
        // A pair of pageblocks is a free block of the largest order.
        let start = usize::next_multiple_of(least.max(next), 2);
        next = start + zone.blocks();
        start
    };
    zones.iter().map(start).collect()
}

/// Whether a machine has these zones, and room in them for what is free.
pub(super) fn fit(zones: &[HostZone], spec: &MachineSpec) -> Result<(), String> {
    let name = |node: usize, kind: ZoneType| format!("node {node} zone {}", kind.name());
    if let Some(other) = spec.zones.iter().find(|spec| zones.iter().all(|z| (z.node, z.kind) != (spec.node, spec.kind)))
    {
        return Err(format!("it has no {}, and the machine has", name(other.node, other.kind)));
    }
    for zone in zones {
        let Some(spec) = spec.zones.iter().find(|spec| (spec.node, spec.kind) == (zone.node, zone.kind)) else {
            return Err(format!("the machine has no {}", zone.title()));
        };
        let (has, free) = (managed(spec).len() as u64, zone.free_pages());
        if free > has {
            return Err(format!("{} has {free} pages free, and the machine's {has} pages in all", zone.title()));
        }
    }
    Ok(())
}
