//! A machine in the state in which a running host was found: each frame as its owner uses it.
//!
//! What a host does not show is made up by one rule each. Free blocks are listed by address, lowest first. Positions of
//! the scanners, deferrals and skip hints are those of a machine that never compacted. Frames that nobody names belong
//! to the firmware: never allocated, never freed. Watermarks are the host's own, as they were read.

use crate::boot::MachineSpec;
use crate::rules::Profile;
use crate::state::{FrameKind, Memory, PageFlags, Watermarks};
use crate::types::{CpuId, MigrateType, Order, Pfn, ZoneId};
use alloc::format;
use alloc::string::String;

/// What a block is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// On the free list of its pageblock's type.
    Free,
    /// The kernel's own: it stays where it is.
    Kernel,
    /// A user's page, with the flags of the list it is on; the owner keeps its number with it.
    Lru(PageFlags, u32),
}

/// A block that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// Its first frame.
    pub pfn: Pfn,
    /// Its order.
    pub order: Order,
    /// What it is used for.
    pub used: Use,
}

/// The marks of a zone that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FoundMarks {
    /// Without boost.
    pub marks: Watermarks,
    /// What is added to them.
    pub boost: u64,
}

impl Memory {
    /// The machine: `types` are those of its pageblocks from frame 0 on, `marks` those of its zones in the order of the
    /// specification, `blocks` what lies in the zones, by ascending address. On a machine that keeps the order of users'
    /// pages, that order is the addresses', too.
    ///
    /// # Errors
    /// If the specification is impossible, or the blocks are not in order, misaligned or outside the zones.
    pub fn as_found(
        spec: &MachineSpec,
        profile: Profile,
        types: &[MigrateType],
        marks: &[FoundMarks],
        blocks: impl IntoIterator<Item = Found>,
    ) -> Result<Memory, String> {
        let mut memory = Memory::empty(spec, profile)?;
        for (zone, found) in memory.zones.iter_mut().zip(marks) {
            zone.watermarks = found.marks;
            zone.watermark_boost = found.boost;
        }
        for (block, t) in types.iter().enumerate().take(memory.blocks.len()) {
            memory.blocks.set_migratetype(block, *t);
        }
        let mut filler = Filler { zone: 0, next: memory.zones[ZoneId::new(0)].start };
        for found in blocks {
            filler.put(&mut memory, found)?;
        }
        filler.reserve_rest(&mut memory);
        memory.lru_add_drain_all();
        for zone in memory.zones.iter_mut() {
            zone.free_pages = zone.nr_free_pages_exact() as i64;
            zone.pcps.iter_mut().for_each(|p| p.free_diff = 0);
        }
        memory.shared.work = crate::work::Work::default();
        Ok(memory)
    }
}

/// Where the frames that nobody has named yet begin.
struct Filler {
    zone: usize,
    next: Pfn,
}

impl Filler {
    fn put(&mut self, m: &mut Memory, found: Found) -> Result<(), String> {
        let Found { pfn, order, used } = found;
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
        m.reserve_start(self.next, pfn.get() - self.next.get());
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
        m.reserve_start(self.next, end.get() - self.next.get());
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

    fn found(pfn: u32, order: u8, used: Use) -> Found {
        Found { pfn: Pfn::new(pfn), order: Order::new(order), used }
    }

    fn blocks() -> Vec<Found> {
        vec![
            found(3, 0, Use::Kernel),
            found(8, 3, Use::Free),
            found(512, 9, Use::Lru(PageFlags::ANON, 7)),
            found(1024, 10, Use::Free),
            found(2049, 0, Use::Lru(PageFlags::ANON, 9)),
            found(2050, 1, Use::Free),
            found(3072, 9, Use::Kernel),
        ]
    }

    #[test]
    fn every_frame_is_what_it_was_found_as_and_the_rest_is_the_firmwares() {
        for lru in [false, true] {
            let marks = [FoundMarks::default(); 2];
            let m = Memory::as_found(&spec(lru), linux("6.12"), &[MigrateType::Movable; 8], &marks, blocks());
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
        }
    }

    #[test]
    fn blocks_that_cannot_be_are_refused() {
        let refused = |block| {
            let blocks = vec![found(8, 3, Use::Free), block];
            Memory::as_found(&spec(false), linux("6.12"), &[], &[], blocks).err().expect("refused")
        };
        let overlaps = "is misaligned, or overlaps the one before it";
        assert_eq!(refused(found(12, 0, Use::Kernel)), format!("the block of order 0 at 0xc {overlaps}"));
        assert_eq!(refused(found(17, 1, Use::Free)), format!("the block of order 1 at 0x11 {overlaps}"));
        assert_eq!(refused(found(4096, 0, Use::Free)), "the block of order 0 at 0x1000 is in no zone");
    }
}
