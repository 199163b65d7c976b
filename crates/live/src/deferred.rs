//! Memory that is free, but on no free list: the kernel gives it to the allocator when a request
//! finds nothing else, block by block of the largest order, before it reclaims or compacts.
//!
//! There are two kinds. Frames whose `struct page` is not initialised yet are in no zone's
//! `managed` nor among its free pages, but a kernel that leaves them until they are wanted counts
//! them in MemTotal and MemFree. So MemTotal says more than the zones manage, MemFree says more
//! than they have free, and both by the same amount. Where only MemTotal says more, that memory
//! cannot be had. The other kind is memory that a confidential guest (TDX, SEV-SNP) has not
//! accepted: zones manage it and count it as free, and say how much (`nr_unaccepted`).

use crate::roots::Roots;
use kontig_procfs::zoneinfo::Zone;
use kontig_procfs::{MemInfo, ZoneInfo};

/// Pages that the kernel initialises when they are wanted, of all zones. `meminfo` is missing on no
/// host.
pub(crate) fn not_initialised(zones: &ZoneInfo, meminfo: Option<&MemInfo>, page_size: u64) -> u64 {
    let pages = |name| Some(meminfo?.kb(name)?.saturating_mul(1024) / page_size);
    let (Some(total), Some(free)) = (pages("MemTotal"), pages("MemFree")) else { return 0 };
    let managed: u64 = zones.zones.iter().map(managed).sum();
    let unused: u64 = zones.zones.iter().map(|zone| zone.free).sum();
    let (more, more_free) = (total.saturating_sub(managed), free.saturating_sub(unused));
    // Free memory comes and goes between the two files.
    if more_free > more / 2 { more } else { 0 }
}

/// The free pages on no list of each zone of the file, in its order, where `left` pages of all
/// zones are not initialised.
pub(crate) fn of_zones(zones: &ZoneInfo, mut left: u64) -> Vec<u64> {
    let of = |zone: &Zone| {
        let own = of_zone(zone, zones, left);
        left -= own;
        own + not_accepted(zone)
    };
    zones.zones.iter().map(of).collect()
}

/// Pages of a zone that the guest accepts when they are wanted.
pub(crate) fn not_accepted(zone: &Zone) -> u64 {
    zone.populated.as_ref().and_then(|populated| populated.counters.get("nr_unaccepted")).unwrap_or(0)
}

/// How many of `left` pages that are not initialised are this zone's: the last zone of each node
/// has them.
fn of_zone(zone: &Zone, zones: &ZoneInfo, left: u64) -> u64 {
    let mut from_the_end = zones.zones.iter().rev();
    let last = from_the_end.find(|other| other.at.node == zone.at.node && managed(other) > 0);
    let is_last = last.is_some_and(|last| last.at == zone.at);
    let present = zone.sizes.get("present").unwrap_or(0);
    if is_last { left.min(present.saturating_sub(managed(zone))) } else { 0 }
}

fn managed(zone: &Zone) -> u64 {
    zone.sizes.get("managed").unwrap_or(0)
}

/// `/proc/zoneinfo`, and how many pages of all zones are not initialised yet.
///
/// # Errors
/// If `zoneinfo` cannot be read.
pub(crate) fn zones(roots: &Roots, page_size: u64) -> Result<(ZoneInfo, u64), crate::ReadError> {
    let zones = roots.parse_proc("zoneinfo", ZoneInfo::parse)?;
    let meminfo = roots.parse_proc("meminfo", MemInfo::parse).ok();
    let pages = not_initialised(&zones, meminfo.as_ref(), page_size);
    Ok((zones, pages))
}
