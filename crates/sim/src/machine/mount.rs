//! A mounted ext4 file system: it keeps its superblock and group descriptors in memory.
//!
//! Their buffers are held until the file system is unmounted, so that reclaim cannot free the
//! pages and compaction isolates them in vain. Kernels before 3.18 ask for them as movable pages,
//! so that they lie among those of users; later ones (`sb_bread_unmovable`) as unmovable, which is
//! left out: it is a page in four GiB. Source: `fs/ext4/super.c` (`ext4_fill_super`),
//! `fs/buffer.c` (`grow_dev_page`).

use super::Machine;
use crate::kernel::Kernel;
use crate::state::file::{Flags, NODE_PAGES};
use kontig_mm::{CpuId, Gfp, NodeId, Order, PageFlags, Request, ZoneType};

/// Blocks of a group, and descriptors in a block.
const GROUP: u32 = 1 << 15;
const DESCRIPTORS: u32 = 4096 / 32;

impl Machine {
    /// Reads the superblock and the group descriptors of a disk. Boot has used the zones in turn
    /// by then (the fair zone policy), so each zone of the first node gets its share by size.
    pub(super) fn mount_ext4(&mut self, disk: u8, blocks: u32) {
        let Kernel { mem, pages, .. } = &mut self.kernel;
        let (cpu, node) = (CpuId::new(0), NodeId::new(0));
        let zones: Vec<(ZoneType, u64)> =
            mem.zones().iter().filter(|zone| zone.node == node).map(|zone| (zone.kind, zone.managed)).collect();
        let held = 1 + blocks.div_ceil(GROUP).div_ceil(DESCRIPTORS);
        let mut file = 0;
        for number in 0..held {
            let index = number % NODE_PAGES;
            if index == 0 {
                let name = 1 + u64::from(number / NODE_PAGES);
                file = pages.files().add_of_disk(disk, name, NODE_PAGES.min(held - number));
            }
            let zone = match zone_at(&zones, f64::from(number) / f64::from(held)) {
                ZoneType::Dma | ZoneType::Dma32 => Gfp::DMA32,
                _ => Gfp::NONE,
            };
            let gfp = Gfp::KERNEL.without(Gfp::FS).with(Gfp::MOVABLE).with(zone);
            let Ok(pfn) = mem.alloc(Request::new(cpu, node, gfp, Order::ZERO)) else { return };
            let owner = pages.files().adopt(file, index, pfn);
            pages.frames.reset(pfn, Flags::FILE | Flags::HELD);
            pages.mapcounts.unmapped(pfn);
            mem.set_owner(pfn, Order::ZERO, owner);
            mem.lru_add(cpu, pfn, Order::ZERO, PageFlags::FILE);
        }
    }
}

/// The zone at a part of all pages, 0 to 1.
fn zone_at(zones: &[(ZoneType, u64)], part: f64) -> ZoneType {
    let mut left = part * zones.iter().map(|(_, pages)| *pages as f64).sum::<f64>();
    let at = zones.iter().find(|(_, pages)| {
        left -= *pages as f64;
        left < 0.0
    });
    at.or(zones.last()).map_or(ZoneType::Normal, |(kind, _)| *kind)
}
