//! The files filled from the engine's state.
//!
//! Each number is taken from the state at that moment; the fields are those of the profile's
//! kernel, in its order ([`format`]). Fields that the engine does not have are its host's (slabs,
//! dirty pages) or listed as 0. If the LRU keeps no order, user memory counts as *inactive*
//! anonymous memory: since 5.9 a faulted page starts on that list, and without reclaim nothing
//! activates it (the recordings show 127,139 user pages inactive, none active). Source:
//! kernel-behaviour §7.1–7.5.

mod format;
pub use format::version;
mod items;
mod pagetypeinfo;
mod vmstat;
mod zoneinfo;

pub use format::counter_names;

use crate::buddyinfo::FreeBlocks;
use crate::extfrag::ZoneIndex;
use crate::{BuddyInfo, ExtfragIndex, PageTypeInfo, UnusableIndex, VmStat, ZoneAt, ZoneInfo};
use kontig_mm::sysctl::{SYSCTLS, Sysctl};
use kontig_mm::{Memory, Node, Order, Zone};

/// Every file, with its path below the directory where a host keeps them.
pub fn files(m: &Memory) -> Vec<(String, String)> {
    let mut files = vec![
        ("buddyinfo".into(), BuddyInfo::of(m).to_string()),
        ("pagetypeinfo".into(), PageTypeInfo::of(m).to_string()),
        ("zoneinfo".into(), ZoneInfo::of(m).to_string()),
        ("vmstat".into(), VmStat::of(m).to_string()),
        ("extfrag/unusable_index".into(), UnusableIndex::of(m).to_string()),
        ("extfrag/extfrag_index".into(), ExtfragIndex::of(m).to_string()),
    ];
    let sysctl =
        |s: &&Sysctl| Some((format!("sys/vm/{}", s.name.strip_prefix("vm.")?), format!("{}\n", m.sysctl_read(s)?)));
    files.extend(SYSCTLS.iter().filter_map(sysctl));
    files
}

impl BuddyInfo {
    /// The free blocks of a machine.
    pub fn of(m: &Memory) -> BuddyInfo {
        let blocks = |z: &Zone| Order::all().map(|order| z.nr_free(order)).collect();
        BuddyInfo { zones: all_zones(m).map(|z| FreeBlocks { at: at(z), of_order: blocks(z) }).collect() }
    }
}

impl UnusableIndex {
    /// The unusable indices of a machine.
    pub fn of(m: &Memory) -> UnusableIndex {
        UnusableIndex { zones: indices(m, |z, order| z.contig_info(order).unusable_index() as i64) }
    }
}

impl ExtfragIndex {
    /// The fragmentation indices of a machine.
    pub fn of(m: &Memory) -> ExtfragIndex {
        ExtfragIndex { zones: indices(m, |z, order| z.contig_info(order).fragmentation_index()) }
    }
}

fn indices(m: &Memory, index: impl Fn(&Zone, Order) -> i64) -> Vec<ZoneIndex> {
    let of_order = |z: &Zone| Order::all().map(|order| index(z, order)).collect();
    all_zones(m).map(|z| ZoneIndex { at: at(z), of_order: of_order(z) }).collect()
}

/// The zones with memory, node by node.
fn all_zones(m: &Memory) -> impl Iterator<Item = &Zone> {
    m.nodes().iter().flat_map(|node| populated(m, node))
}

/// A node's zones with memory, lowest first.
fn populated<'a>(m: &'a Memory, node: &'a Node) -> impl Iterator<Item = &'a Zone> {
    node.zones.iter().map(|z| m.zone(*z)).filter(|z| z.present > 0)
}

fn at(zone: &Zone) -> ZoneAt {
    ZoneAt { node: zone.node.index() as u32, zone: zone.kind.name().into() }
}
