//! A machine in the state of a running host, imported from the host's snapshot.
//!
//! A rule each makes up for the facts that a host does not show. Free blocks are listed by address,
//! lowest first. The scanners' positions, deferrals and skip hints are those of a machine that
//! never compacted. Frames that the snapshot does not name belong to the firmware: never allocated,
//! never freed. Watermarks are the host's own.

use crate::boot::MachineSpec;
use crate::rules::Profile;
use crate::state::{FrameKind, Memory, PageFlags, Watermarks};
use crate::types::{CpuId, MigrateType, Order, Pfn, ZoneId};
use alloc::format;
use alloc::string::String;

/// The use of an imported block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// On the free list of its pageblock's type.
    Free,
    /// A single page on this CPU's list of free pages.
    Cached(CpuId),
    /// Kernel memory, which stays where it is.
    Kernel,
    /// A user's page, with the flags of its list and the owner's number.
    Lru(PageFlags, u32),
}

/// A block of the snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImportedBlock {
    pub pfn: Pfn,
    pub order: Order,
    pub used: Use,
}

/// The marks of an imported zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ImportedMarks {
    pub marks: Watermarks,
    pub boost: u64,
}

impl Memory {
    /// The machine of a snapshot: `types` are the types of its pageblocks from frame 0 on, `marks`
    /// the marks of its zones in the order of the specification, `blocks` the blocks of its zones
    /// by ascending address. If the machine keeps the order of users' pages, it takes them by
    /// address too.
    ///
    /// # Errors
    /// If the specification is impossible, or the blocks are not in order, misaligned or outside
    /// the zones.
    pub fn import(
        spec: &MachineSpec,
        profile: Profile,
        types: &[MigrateType],
        marks: &[ImportedMarks],
        blocks: impl IntoIterator<Item = ImportedBlock>,
    ) -> Result<Memory, String> {
        let mut memory = Memory::empty(spec, profile)?;
        for (zone, marks) in memory.zones.iter_mut().zip(marks) {
            zone.watermarks = marks.marks;
            zone.watermark_boost = marks.boost;
        }
        for (block, t) in types.iter().enumerate().take(memory.blocks.len()) {
            memory.blocks.set_migratetype(block, *t);
        }
        let mut filler = Filler { zone: 0, next: memory.zones[ZoneId::new(0)].start };
        for block in blocks {
            filler.put(&mut memory, block)?;
        }
        filler.reserve_rest(&mut memory);
        memory.lru_add_drain_all();
        for zone in memory.zones.iter_mut() {
            zone.free_pages = zone.nr_free_pages_exact() as i64;
            for pcp in &mut zone.pcps {
                pcp.free_diff = 0;
                // The last free was long ago.
                pcp.tuning.free_count = 0;
            }
        }
        memory.shared.work = crate::work::Work::default();
        Ok(memory)
    }
}

/// The first frame that the snapshot has not named yet.
struct Filler {
    zone: usize,
    next: Pfn,
}

impl Filler {
    fn put(&mut self, m: &mut Memory, block: ImportedBlock) -> Result<(), String> {
        let ImportedBlock { pfn, order, used } = block;
        while self.zone < m.zones.len() && pfn >= m.zones[ZoneId::new(self.zone)].end {
            self.end_zone(m);
        }
        let bad = |what: &str| Err(format!("the block of order {} at {pfn} {what}", order.get()));
        let Some(zone) = m.zones.get(self.zone) else { return bad("is in no zone") };
        if !pfn.is_aligned(order) || pfn < self.next {
            return bad("is misaligned, or overlaps the one before it");
        }
        if pfn.get() + order.pages() > zone.end.get() {
            return bad("ends outside its zone");
        }
        let (id, cpu) = (zone.id, CpuId::new(0));
        m.reserve(self.next..pfn);
        self.next = pfn.plus(order.pages());
        if used != Use::Free && order.is_whole_pageblock() {
            m.mark_huge(pfn, order, true);
        }
        match used {
            Use::Free => {
                let t = m.blocks.migratetype(pfn.pageblock());
                let mut locked = m.locked(id, cpu);
                locked.mod_free_pages(i64::from(order.pages()));
                locked.add_to_free_list(pfn, order, t, true);
            }
            Use::Cached(_) if order != Order::ZERO => return bad("is larger than a page on a CPU's list"),
            Use::Cached(cpu) if cpu.index() >= m.cpus => {
                return bad("is on the list of a CPU that is not there");
            }
            Use::Cached(cpu) => m.locked(id, cpu).pcp_import(pfn),
            Use::Kernel => m.frames.set(pfn, FrameKind::Kernel, order),
            Use::Lru(flags, owner) => {
                m.frames.set(pfn, FrameKind::Kernel, order);
                m.frames.set_owner(pfn, order, owner);
                m.lru_add(cpu, pfn, order, flags);
            }
        }
        Ok(())
    }

    fn end_zone(&mut self, m: &mut Memory) {
        let end = m.zones[ZoneId::new(self.zone)].end;
        m.reserve(self.next..end);
        self.zone += 1;
        if let Some(zone) = m.zones.get(self.zone) {
            self.next = zone.start;
        }
    }

    fn reserve_rest(mut self, m: &mut Memory) {
        while self.zone < m.zones.len() {
            self.end_zone(m);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::ZoneSpec;
    use crate::testing::linux;
    use crate::types::ZoneType;
    use alloc::vec;
    use alloc::vec::Vec;

    fn spec(lru: bool) -> MachineSpec {
        let zone = |kind, start, end| {
            let spanned = u64::from(end - start);
            ZoneSpec { node: 0, kind, start, end, present: spanned, managed: spanned - 100 }
        };
        let zones = vec![zone(ZoneType::Dma32, 0, 1024), zone(ZoneType::Normal, 1024, 4096)];
        MachineSpec { cpus: 2, zones, thp: false, lru }
    }

    fn block(pfn: u32, order: u8, used: Use) -> ImportedBlock {
        ImportedBlock { pfn: Pfn::new(pfn), order: Order::new(order), used }
    }

    fn blocks() -> Vec<ImportedBlock> {
        vec![
            block(3, 0, Use::Kernel),
            block(8, 3, Use::Free),
            block(512, 9, Use::Lru(PageFlags::ANON, 7)),
            block(1024, 10, Use::Free),
            block(2049, 0, Use::Lru(PageFlags::ANON, 9)),
            block(2050, 1, Use::Free),
            block(2052, 0, Use::Cached(CpuId::new(1))),
            block(3072, 9, Use::Kernel),
        ]
    }

    #[test]
    fn every_frame_is_imported_as_its_block_says_and_the_rest_is_the_firmwares() {
        for lru in [false, true] {
            let marks = [ImportedMarks::default(); 2];
            let m = Memory::import(&spec(lru), linux("6.12"), &[MigrateType::Movable; 8], &marks, blocks());
            let m = m.expect("it is possible");
            m.check().expect("it is consistent");
            let kind = |pfn| m.frames().tag(Pfn::new(pfn)).kind();
            assert_eq!(
                (kind(0), kind(3), kind(2050)),
                (FrameKind::Reserved, FrameKind::Kernel, FrameKind::Buddy(MigrateType::Movable))
            );
            assert_eq!((kind(512), m.frames().owner(Pfn::new(512), Order::new(9))), (FrameKind::Lru, 7));
            assert_eq!(m.zones().iter().map(|z| z.nr_free_pages_exact()).collect::<Vec<_>>(), [8, 1026]);
            assert!(m.pageblocks().is_huge(1) && !m.pageblocks().is_huge(2));
            assert_eq!(kind(2052), FrameKind::Pcp(MigrateType::Movable));
            assert_eq!(m.zones()[1].pcps.iter().map(|p| p.count).collect::<Vec<_>>(), [0, 1]);
        }
    }

    /// A host's list that was found long has grown: its pages do not come free at the first free.
    #[test]
    fn a_long_list_of_a_cpu_stays_as_long() {
        let zone =
            ZoneSpec { node: 0, kind: ZoneType::Normal, start: 0, end: 1 << 18, present: 1 << 18, managed: 1 << 18 };
        let spec = MachineSpec { cpus: 1, zones: vec![zone], thp: false, lru: false };
        let cached = (0..20_000).map(|i| block(2 * i, 0, Use::Cached(CpuId::new(0))));
        let user = block(100_000, 0, Use::Lru(PageFlags::ANON, 1));
        let marks = [ImportedMarks::default()];
        let m = Memory::import(&spec, linux("6.12"), &[MigrateType::Movable; 512], &marks, cached.chain([user]));
        let mut m = m.expect("it is possible");
        m.check().expect("it is consistent");
        m.free(CpuId::new(0), Pfn::new(100_000), Order::ZERO);
        assert_eq!(m.zones()[0].pcps[CpuId::new(0)].count, 20_001);
        m.drain_cpu(CpuId::new(0));
        assert_eq!(m.zones()[0].nr_free_pages_exact(), 20_001);
    }

    #[test]
    fn blocks_that_cannot_be_are_refused() {
        let refused = |wrong| {
            let blocks = vec![block(8, 3, Use::Free), wrong];
            Memory::import(&spec(false), linux("6.12"), &[], &[], blocks).err().expect("refused")
        };
        let overlaps = "is misaligned, or overlaps the one before it";
        assert_eq!(refused(block(12, 0, Use::Kernel)), format!("the block of order 0 at 0xc {overlaps}"));
        assert_eq!(refused(block(17, 1, Use::Free)), format!("the block of order 1 at 0x11 {overlaps}"));
        assert_eq!(refused(block(4096, 0, Use::Free)), "the block of order 0 at 0x1000 is in no zone");
        let elsewhere = block(17, 0, Use::Cached(CpuId::new(2)));
        assert_eq!(refused(elsewhere), "the block of order 0 at 0x11 is on the list of a CPU that is not there");
    }
}
