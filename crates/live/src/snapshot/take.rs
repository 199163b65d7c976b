//! Taking a snapshot of a host: its files read in one go, the frames' flags first of all, since
//! they take longest.

use super::{FoundZone, Frame, Host, Snapshot, infer};
use crate::deferred;
use crate::error::ReadError;
use crate::frame::{Heads, State};
use crate::host::buddyinfo;
use crate::iomem::IoMem;
use crate::lru_gen;
use crate::page_words::PageWords;
use crate::roots::Roots;
use kontig_mm::MigrateType;
use kontig_mm::sysctl::SYSCTLS;
use kontig_procfs::zoneinfo::Zone;
use kontig_procfs::{BuddyInfo, Choice, MemInfo, PageTypeInfo, VmStat, ZoneInfo};

impl Snapshot {
    /// Looks at every frame of the host. `page_size` is that of its kernel.
    ///
    /// # Errors
    /// The first file that cannot be read: `/proc/kpageflags` needs root.
    pub fn take(roots: &Roots, page_size: u64) -> Result<Snapshot, ReadError> {
        let zone_info = deferred::zones(roots, page_size)?;
        let spans = found_zones(&zone_info, &BuddyInfo::default(), None);
        // Checked before memory is taken for the frames.
        possible(roots, &spans)?;
        let words = PageWords::open(&roots.proc("kpageflags"))?;
        // And what hides its addresses before a second is spent on them.
        let io = IoMem::read(roots)?;
        let mut frames = read_frames(roots, words, spans.iter().map(|z| z.start + z.spanned).max().unwrap_or(0))?;
        let buddy = buddyinfo(roots)?;
        let page_types = roots.parse_proc("pagetypeinfo", PageTypeInfo::parse).ok();
        let vmstat = roots.parse_proc("vmstat", VmStat::parse)?;
        let later = deferred::zones(roots, page_size)?;

        let mut zones = found_zones(&zone_info, &buddy, page_types.as_ref());
        // The frames were looked at between the two.
        for (zone, later) in zones.iter_mut().zip(found_zones(&later, &buddy, None)) {
            zone.cached = zone.cached.max(later.cached);
            zone.deferred = later.deferred;
            zone.managed = later.managed;
        }
        possible(roots, &zones)?;
        let block_order = page_types.and_then(|p| p.nodes.first().map(|n| n.block_order)).unwrap_or(9) as u8;
        let pages_per_block = 1usize << block_order;
        infer::compound_pages(&mut frames, usize::from(block_order));
        infer::holes(&mut frames, io.frames(page_size));
        let mut types = vec![MigrateType::Movable; frames.len().div_ceil(pages_per_block)];
        for zone in &zones {
            infer::not_managed(&mut frames, zone, pages_per_block);
            infer::cached(&mut frames, zone, pages_per_block);
            infer::free_blocks(&mut frames, zone);
            infer::types(&mut types, &frames, zone, pages_per_block);
        }
        let cpus = zone_info.0.cpus();
        let pinned = match (vmstat.get("nr_foll_pin_acquired"), vmstat.get("nr_foll_pin_released")) {
            (Some(acquired), Some(released)) => Some(acquired.saturating_sub(released)),
            _ => None,
        };
        let host = Host {
            kernel: roots.read_proc("sys/kernel/osrelease")?.trim().into(),
            page_size,
            block_order,
            cpus: cpus.unwrap_or(1),
            pinned,
            swap_pages: swap_kb(roots).and_then(|kb| Some(kb.checked_mul(1024)? / page_size)),
            sysctls: sysctls(roots),
        };
        Ok(Snapshot { host, zones, frames, types })
    }
}

fn swap_kb(roots: &Roots) -> Option<u64> {
    roots.parse_proc("meminfo", MemInfo::parse).ok()?.kb("SwapTotal")
}

/// The zones with memory, by address.
pub(crate) fn found_zones(
    (zones, not_initialised): &(ZoneInfo, u64),
    buddy: &BuddyInfo,
    types: Option<&PageTypeInfo>,
) -> Vec<FoundZone> {
    let each = zones.zones.iter().zip(deferred::of_zones(zones, *not_initialised));
    let populated = each.filter(|(z, _)| z.sizes.get("present").is_some_and(|pages| pages > 0));
    let zone = |(z, deferred): (&Zone, u64)| FoundZone { deferred, ..found_zone(z, zones, buddy, types) };
    let mut found: Vec<FoundZone> = populated.map(zone).collect();
    found.sort_by_key(|z| z.start);
    found
}

/// Refuses zones that cannot be together.
pub(crate) fn possible(roots: &Roots, zones: &[FoundZone]) -> Result<(), ReadError> {
    let each = |zone: &FoundZone| zone.check().map_err(|why| ReadError::malformed(&roots.proc("zoneinfo"), 0, why));
    zones.iter().try_for_each(each)
}

/// Every frame's state; a tail has its head's.
fn read_frames(roots: &Roots, mut words: PageWords, nr_frames: u64) -> Result<Vec<Frame>, ReadError> {
    let mut frames = Vec::with_capacity(nr_frames as usize);
    let mut heads = Heads::default();
    words.read(0, nr_frames, |_, words| {
        for &flags in words {
            let (state, continues) = heads.next(flags);
            frames.push(if continues { Frame::tail(state) } else { Frame::head(state) });
        }
    })?;
    if frames.is_empty() {
        return Err(ReadError::malformed(&roots.proc("kpageflags"), 0, "it has no word for any frame"));
    }
    // The kernel's last frames may lie beyond the last section it has words for.
    frames.resize(nr_frames as usize, Frame::head(State::Hole));
    Ok(frames)
}

fn found_zone(zone: &Zone, zones: &ZoneInfo, buddy: &BuddyInfo, page_types: Option<&PageTypeInfo>) -> FoundZone {
    let size = |name| zone.sizes.get(name).unwrap_or(0);
    let boost = size("boost");
    // The marks that the file shows include the boost.
    let marks = ["min", "low", "high", "promo"].map(|name| size(name).saturating_sub(boost));
    let free = buddy.zones.iter().find(|z| z.at == zone.at).map(|z| z.of_order.clone());
    let cpus = zone.populated.iter().flat_map(|p| &p.cpus);
    let blocks = page_types.and_then(|types| {
        let table =
            types.nodes.iter().flat_map(|n| &n.blocks).find(|t| t.zones.iter().any(|(at, _)| *at == zone.at))?;
        let (_, counts) = table.zones.iter().find(|(at, _)| *at == zone.at)?;
        let of = |t: MigrateType| table.types.iter().position(|name| name == t.name()).map_or(0, |i| counts[i]);
        Some(MigrateType::ALL.map(of))
    });
    FoundZone {
        node: zone.at.node,
        name: zone.at.zone.clone(),
        start: zone.populated.as_ref().and_then(|p| p.last.get("start_pfn")).unwrap_or(0),
        spanned: size("spanned"),
        present: size("present"),
        managed: size("managed"),
        marks,
        boost,
        protection: ["Normal", "Movable"].map(|highest| protection(zone, zones, highest)),
        cached: cpus.filter_map(|set| set.lists.get("count")).sum(),
        deferred: 0,
        free: free.unwrap_or_else(|| vec![0; kontig_mm::types::NR_ORDERS]),
        blocks,
    }
}

/// Pages that the zone keeps from requests that may use zones up to this name.
fn protection(zone: &Zone, zones: &ZoneInfo, highest: &str) -> u64 {
    let mut of_node = zones.zones.iter().filter(|z| z.at.node == zone.at.node);
    let place = of_node.position(|z| z.at.zone == highest);
    place.and_then(|i| zone.protection.get(i)).or(zone.protection.last()).copied().unwrap_or(0)
}

/// The settings the engine knows, as far as this kernel has them. A setting that cannot be read
/// decides nothing here.
fn sysctls(roots: &Roots) -> Vec<(String, String)> {
    let of = |name: &str| Some((name.to_string(), setting(roots, name)?));
    SYSCTLS.iter().filter(|s| s.is_setting()).filter_map(|s| of(s.short_name())).collect()
}

/// The value of a setting: `thp.` ones are files of sysfs, some of which list words with the chosen
/// one in brackets; `lru_gen.enabled` is one that holds a hexadecimal mask.
fn setting(roots: &Roots, name: &str) -> Option<String> {
    if name == "lru_gen.enabled" {
        return Some(lru_gen::enabled(roots).ok()?.to_string());
    }
    let Some(file) = name.strip_prefix("thp.") else {
        return Some(roots.read_proc(format!("sys/vm/{name}")).ok()?.trim().to_string());
    };
    let path = format!("kernel/mm/transparent_hugepage/{}", file.replace('.', "/"));
    let text = roots.read_sys(&path).ok()?;
    let chosen = Choice::parse(&path, &text).map(|choice| choice.chosen);
    Some(chosen.unwrap_or_else(|_| text.trim().to_string()))
}
