//! The use of every frame of a machine that begins with memory in use.

use kontig_live::snapshot::largest_block;
use kontig_mm::import::{ImportedBlock, Use};
use kontig_mm::types::{MAX_ORDER, PAGEBLOCK_PAGES};
use kontig_mm::{MachineSpec, Memory, MigrateType, Order, PageFlags, Pfn, Profile, ZoneSpec};
use kontig_program::SplitMix64;
use kontig_sim::{FoundIn, FoundPage};
use std::ops::Range;

/// Frames of a pageblock.
pub(super) const BLOCK: usize = PAGEBLOCK_PAGES as usize;

/// The use of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The firmware's, or in no zone.
    Reserved,
    Free,
    Kernel,
    /// A page of a process.
    Process,
    /// A clean page of a file.
    File,
}

/// A machine's frames, all free at first, and its pageblocks' types, all movable.
pub(super) struct Frames {
    pub(super) spec: MachineSpec,
    /// A state for each frame, from frame 0 on.
    pub(super) states: Vec<State>,
    pub(super) types: Vec<MigrateType>,
}

impl Frames {
    pub(super) fn new(spec: MachineSpec) -> Frames {
        let end = spec.zones.iter().map(|zone| zone.end as usize).max().unwrap_or(0);
        let mut states = vec![State::Reserved; end];
        for zone in &spec.zones {
            states[managed(zone)].fill(State::Free);
        }
        Frames { types: vec![MigrateType::Movable; end.div_ceil(BLOCK)], states, spec }
    }

    /// The frames of a pageblock that the allocator has.
    pub(super) fn of_block(&self, block: usize) -> Range<usize> {
        let whole = block * BLOCK..(block + 1) * BLOCK;
        let first = self.states[whole.clone()].iter().position(|state| *state != State::Reserved);
        first.map_or(whole.end..whole.end, |first| whole.start + first..whole.end)
    }

    /// The machine's memory. Its marks are those after boot.
    pub(super) fn memory(&self, profile: &Profile) -> Result<Memory, String> {
        let flags = |state| if self.spec.lru && state == State::File { PageFlags::FILE } else { PageFlags::ANON };
        let block = |(pfn, pages, state): (usize, usize, State)| {
            let used = match state {
                State::Reserved => return None,
                State::Free => Use::Free,
                State::Kernel => Use::Kernel,
                State::Process | State::File => Use::Lru(flags(state), pfn as u32),
            };
            Some(ImportedBlock { pfn: Pfn::new(pfn as u32), order: Order::new(pages.ilog2() as u8), used })
        };
        let mut memory =
            Memory::import(&self.spec, profile.clone(), &self.types, &[], self.blocks().filter_map(block))?;
        memory.take_work();
        let _ = memory.take_wakes().count();
        Ok(memory)
    }

    /// The pages of processes and files.
    pub(super) fn users(&self) -> Vec<FoundPage> {
        let page = |(pfn, state): (usize, &State)| {
            let of = match state {
                State::Process => FoundIn::Process,
                State::File => FoundIn::File { dirty: false },
                _ => return None,
            };
            Some(FoundPage { pfn: Pfn::new(pfn as u32), huge: false, of })
        };
        self.states.iter().enumerate().filter_map(page).collect()
    }

    /// Single frames in use and whole free blocks, by address.
    fn blocks(&self) -> impl Iterator<Item = (usize, usize, State)> {
        self.spec.zones.iter().flat_map(move |zone| {
            let (mut at, end) = (zone.start as usize, zone.end as usize);
            std::iter::from_fn(move || {
                let pfn = (at < end).then_some(at)?;
                let pages = if self.states[pfn] == State::Free { self.free_block(pfn, end) } else { 1 };
                at = pfn + pages;
                Some((pfn, pages, self.states[pfn]))
            })
        })
    }

    /// The pages of the free block that begins here: the largest of free frames in pageblocks of
    /// one type.
    fn free_block(&self, pfn: usize, end: usize) -> usize {
        let is_alike = |at: &usize| self.types[at / BLOCK] == self.types[pfn / BLOCK];
        let is_free = |at: &usize| self.states[*at] == State::Free && is_alike(at);
        let most = (pfn + (1 << MAX_ORDER.get())).min(end);
        let run = (pfn..most).take_while(is_free).count();
        largest_block(pfn, run, usize::from(MAX_ORDER.get()))
    }
}

/// The frames of a zone that the allocator has: what is reserved lies at its start.
pub(super) fn managed(zone: &ZoneSpec) -> Range<usize> {
    (u64::from(zone.end) - zone.managed) as usize..zone.end as usize
}

/// Whether something of this share happens, %.
pub(super) fn by_chance(percent: f64, random: &mut SplitMix64) -> bool {
    const PARTS: u32 = 1 << 24;
    f64::from(random.below(PARTS)) < percent / 100.0 * f64::from(PARTS)
}
