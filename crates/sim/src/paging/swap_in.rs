//! A fault on a page in swap: reads it with its neighbours, waits for it and maps it.
//!
//! Source: `mm/memory.c` (`do_swap_page`), `mm/swap_state.c` of 6.1.

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::id::At;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::device::{Io, Target};
use crate::kernel::Kernel;
use crate::paging::allocation::Allocation;
use crate::state::file::Flags;
use crate::state::object::TABLE_PAGES;
use crate::state::process::mapping::Entry;
use crate::state::swap::Slot;
use kontig_mm::{AllocFailure, Gfp, Order, PageFlags, Pfn, Step, VmEvent};
use std::ops::Range;

/// A swap-in in progress.
#[derive(Clone)]
pub(crate) struct SwapIn {
    at: At,
    writes: bool,
    /// Whether a program faults; else khugepaged reads.
    in_fault: bool,
    stage: Stage,
}

#[derive(Clone)]
enum Stage {
    /// Look up the entry.
    Look,
    /// Read the slots that are not in the swap cache.
    Read { wanted: Slot, slots: Slots, allocation: Allocation },
}

/// Slots read together: neighbours in swap, or those of neighbouring pages in the process.
#[derive(Clone)]
enum Slots {
    InSwap(Range<u32>),
    InMemory(Range<u32>),
}

impl SwapIn {
    pub(crate) fn new(at: At, writes: bool) -> SwapIn {
        SwapIn { at, writes, in_fault: true, stage: Stage::Look }
    }

    /// A page that khugepaged wants, not a program.
    pub(crate) fn by_khugepaged(at: At) -> SwapIn {
        SwapIn { in_fault: false, ..SwapIn::new(at, false) }
    }

    /// Whether it waits for a page that is being read.
    pub(crate) fn waits_for_page(&self) -> bool {
        matches!(self.stage, Stage::Look)
    }

    /// A step; when done, the caller looks at the page again: it is mapped, or things have changed.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Result<(), AllocFailure>, Wait> {
        loop {
            match &mut self.stage {
                Stage::Look => {
                    let Entry::Swap(slot) = k.pages.spaces.mapping(self.at.mapping).entry(self.at.page) else {
                        return Step::Done(Ok(()));
                    };
                    match k.pages.swap().area.page(slot) {
                        Some(pfn) if k.pages.frames.flags(pfn).any(Flags::LOCKED) => {
                            return Step::Wait(k.wait_for_page(pfn));
                        }
                        Some(pfn) => {
                            k.map_from_swap(c, self.at, slot, pfn, self.writes);
                            return Step::Done(Ok(()));
                        }
                        None => {
                            k.pages.files().counts.major_faults += 1;
                            let slots = k.swap_window(self.at, slot);
                            let allocation = Allocation::at(Gfp::HIGHUSER_MOVABLE, Order::ZERO, self.at);
                            k.pages.devices.plug.start();
                            self.stage = Stage::Read { wanted: slot, slots, allocation };
                        }
                    }
                }
                Stage::Read { wanted, slots, allocation } => {
                    let Some(slot) = next_slot(k, self.at, slots) else {
                        k.pages.devices.plug.finish();
                        // Readahead's pages leave this CPU's batch for the LRU.
                        k.mem.lru_add_drain(c.cpu);
                        k.charge(&mut c.now);
                        self.stage = Stage::Look;
                        continue;
                    };
                    // The group pays from which the page went to swap.
                    let group = k.pages.swap().area.group_of(slot);
                    allocation.pay(group, Gfp::HIGHUSER_MOVABLE);
                    let pfn = match done!(allocation.step(k, c)) {
                        Err(failure) => {
                            k.pages.devices.plug.finish();
                            k.charge(&mut c.now);
                            return Step::Done(Err(failure));
                        }
                        Ok(pfn) => pfn,
                    };
                    let (is_wanted, at) = (slot == *wanted, self.at);
                    // Another task may have read the slot during the allocation.
                    if next_slot(k, at, slots) == Some(slot) && k.mem.groups().of_page(pfn) == group {
                        k.bring_from_swap(c, slot, pfn, !is_wanted, self.in_fault);
                    } else {
                        k.mem.free(c.cpu, pfn, Order::ZERO);
                    }
                    if k.must_yield(c) {
                        return Step::Working;
                    }
                }
            }
        }
    }
}

/// The next slot in use whose page is not in the swap cache; skips those before it.
fn next_slot(k: &mut Kernel, at: At, slots: &mut Slots) -> Option<Slot> {
    loop {
        let slot = match slots {
            Slots::InSwap(slots) => Slot::new(slots.clone().next()?),
            Slots::InMemory(pages) => match k.pages.spaces.mapping(at.mapping).entry(pages.clone().next()?) {
                Entry::Swap(slot) => slot,
                _ => {
                    pages.next();
                    continue;
                }
            },
        };
        let area = &k.pages.swap().area;
        if area.users(slot) > 0 && area.page(slot).is_none() {
            return Some(slot);
        }
        match slots {
            Slots::InSwap(places) | Slots::InMemory(places) => places.next(),
        };
    }
}

impl Kernel {
    /// The slots to read with this one.
    fn swap_window(&mut self, at: At, slot: Slot) -> Slots {
        let device = self.pages.swap().device;
        if self.mem.profile().faults.reads_swap_by_address && self.pages.devices.device(device).is_flash() {
            let m = self.pages.spaces.mapping(at.mapping);
            let pages = m.pages();
            let around = m.swap_window().around(at.page, pages);
            // Stay within the page table.
            let table = at.page & !(TABLE_PAGES - 1);
            Slots::InMemory(around.start.max(table)..around.end.min(table + TABLE_PAGES))
        } else {
            let swap = self.pages.swap();
            let slots = swap.area.slots();
            Slots::InSwap(swap.window.slots(slot.get(), slots))
        }
    }

    /// Adds a page to the swap cache and requests it from the device.
    fn bring_from_swap(&mut self, c: &mut Context, slot: Slot, pfn: Pfn, ahead: bool, in_fault: bool) {
        let cpu = c.cpu;
        let swap = self.pages.swap.as_mut().expect("the page has a place in it");
        let shadow = swap.area.bring(slot, pfn);
        let io = Io { target: Target::Swap(slot.get()), pages: 1, write: false, cpu };
        self.pages.devices.add_to_plug(swap.device, swap.area.block(slot), io);
        let readahead = if ahead { Flags::READAHEAD } else { Flags::default() };
        self.pages.frames.reset(pfn, Flags::SWAP_CACHE | Flags::LOCKED | readahead);
        self.pages.frames.set_word(pfn, slot.get());
        self.pages.mapcounts.unmapped(pfn);
        let files = self.pages.files();
        files.counts.swapped_in += 1;
        files.counts.file_pages += 1;
        files.by_node.with(pfn).cached += 1;
        let group = self.mem.groups().of_page(pfn);
        self.pages.groups.count(group, |counts| counts.swapped_in += 1);
        let flags = match shadow {
            Some(shadow) if in_fault => self.mem.workingset_refault_in_fault(cpu, pfn, PageFlags::ANON, shadow),
            Some(shadow) => self.mem.workingset_refault(cpu, pfn, PageFlags::ANON, shadow),
            None => PageFlags::ANON,
        };
        self.mem.lru_add_from_swap(cpu, pfn, flags, in_fault);
        c.now += ns(self.costs.swap_in);
    }

    /// Maps a page of the swap cache in place of its swap entry; the page is touched next.
    fn map_from_swap(&mut self, c: &mut Context, at: At, slot: Slot, pfn: Pfn, writes: bool) {
        let rules = self.mem.profile().faults;
        let was_ahead = self.pages.frames.clear(pfn, Flags::READAHEAD);
        self.pages.spaces.mapping(at.mapping).swap_window().found(at.page, was_ahead);
        self.pages.swap().window.hits += u32::from(was_ahead);
        if writes && rules.drains_before_writing && !self.mem.is_on_lru(pfn) {
            self.mem.lru_add_drain(c.cpu);
        }
        self.pages.swap().forget(slot);
        self.pages.mapcounts.map_again(pfn);
        let is_alone = self.pages.mapcounts.more(pfn) == 0 && self.pages.swap().area.users(slot) == 0;
        let space = self.pages.swap().area.space();
        let own = !self.pages.spaces.mapping(at.mapping).is_protected(at.page);
        let by_write = writes && !(rules.keeps_place_of_own && own);
        if is_alone && (by_write || 2 * space.free < space.total) {
            self.free_swap_of(pfn);
        }
        let may_write = is_alone && (writes || !rules.copies_held_pages);
        let m = self.pages.spaces.mapping(at.mapping);
        m.swap_in(at.page, pfn, may_write);
        m.used(at.page, writes && may_write);
        let number = m.number(at.page);
        self.mem.set_owner(pfn, Order::ZERO, number);
        self.mem.vmstat_mut().add(VmEvent::Pgfault, 1);
        c.now += self.fault_ns(at, self.costs.reuse_page);
        self.charge(&mut c.now);
    }
}
