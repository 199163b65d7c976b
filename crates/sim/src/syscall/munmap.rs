//! `munmap` of part or all of a mapping; a page table left empty is freed with its pages.
//!
//! A part can be used again, as if newly mapped. Unmapping everything at once removes the mapping.
//! Faulting threads wait for the memory map until it is gone or, by the profile's rule, until the
//! pages are freed.

use super::truncate::Truncate;
use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::error::SimError;
use crate::base::id::{MappingId, ProcessId, Span};
use crate::base::rw_lock::Mode;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::paging::hold_map::Hold;
use crate::state::object::TABLE_PAGES;
use crate::state::process::mapping::Entry;
use kontig_mm::types::HPAGE_PMD_ORDER;
use kontig_mm::{Order, Pfn, Step};
use kontig_program::{Op, Region, Value};
use std::convert::Infallible;

/// The most pages freed at once.
const RUN: usize = 64;

/// A range being unmapped.
#[derive(Clone)]
pub(crate) struct Munmap {
    process: ProcessId,
    region: Region,
    hold: Hold,
    stage: Stage,
}

#[derive(Clone)]
enum Stage {
    /// Wait for the memory map.
    Lock,
    /// Hold it, and wait for faults in progress in the mapping.
    Close(Span),
    Zap(Zap),
    /// Evict the file, of which this mapping was the last user.
    GiveUp(Truncate),
}

impl Munmap {
    pub(crate) fn new(process: ProcessId, region: Region) -> Munmap {
        Munmap { process, region, hold: Hold::new(process, Mode::Write), stage: Stage::Lock }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<Value, Wait>, SimError> {
        loop {
            match &mut self.stage {
                Stage::Lock => {
                    if let Some(wait) = self.hold.take(k) {
                        return Ok(Step::Wait(wait));
                    }
                    // Another thread may have unmapped it meanwhile.
                    let span = k.pages.spaces.span(self.process, self.region);
                    self.stage = Stage::Close(span.ok_or_else(|| SimError::bad_address(&Op::Munmap(self.region)))?);
                }
                Stage::Close(span) => {
                    let span = *span;
                    if let Some(wait) = k.close_mapping(self.process, span.mapping) {
                        return Ok(Step::Wait(wait));
                    }
                    if span.pages == k.pages.spaces.mapping(span.mapping).pages() {
                        k.pages.spaces.leave(span.mapping);
                    } else {
                        k.open_mapping(span.mapping);
                    }
                    self.hold.downgrade(k);
                    self.stage = Stage::Zap(Zap::new(span));
                }
                Stage::Zap(zap) => {
                    let Step::Done(gives_up) = zap.step(k, c) else { return Ok(Step::Working) };
                    k.flush_tlb(self.process, &mut c.now);
                    self.hold.give_back(k);
                    match gives_up {
                        Some(gives_up) => self.stage = Stage::GiveUp(gives_up),
                        None => return Ok(Step::Done(Value::Unit)),
                    }
                }
                Stage::GiveUp(gives_up) => return Ok(gives_up.step(k, c)),
            }
        }
    }
}

/// A range whose pages are being freed, in which nothing can fault.
#[derive(Clone)]
pub(super) struct Zap {
    region: Span,
    page: u32,
    begun: bool,
}

impl Zap {
    pub(super) fn new(region: Span) -> Zap {
        Zap { region, page: region.first, begun: false }
    }

    /// Unmaps the pages, one page table after the other; done with the file to evict, if the
    /// mapping was its last user.
    pub(super) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Option<Truncate>, Infallible> {
        let (mapping, end) = (self.region.mapping, self.region.first + self.region.pages);
        let (unmap_ns, entry_ns) = (ns(k.costs.unmap), ns(k.costs.map_page));
        if !std::mem::replace(&mut self.begun, true) && k.mem.profile().faults.drains_before_unmapping {
            k.mem.lru_add_drain(c.cpu);
        }
        while self.page < end {
            if k.must_yield(c) {
                return Step::Working;
            }
            let table_end = ((self.page | (TABLE_PAGES - 1)) + 1).min(end);
            if let Some(pfn) = k.pages.spaces.mapping(mapping).table(self.page).huge() {
                unmap_huge(k, c, Span { mapping, first: self.page, pages: table_end - self.page }, pfn);
            } else {
                let mut page = self.page;
                while page < table_end {
                    let m = k.pages.spaces.mapping(mapping);
                    if m.file().is_none() {
                        let mut frames = [Pfn::default(); RUN];
                        let most = frames.len().min((table_end - page) as usize);
                        let count = m.take_frames(page, &mut frames[..most]);
                        k.zap_frames(c, &frames[..count], (unmap_ns, entry_ns));
                        page += count as u32;
                        if count == most {
                            continue;
                        }
                    }
                    let m = k.pages.spaces.mapping(mapping);
                    page += 1;
                    let Some((entry, was_accessed)) = m.take(page - 1) else { continue };
                    if let (Entry::Frame(pfn), true) = (entry, was_accessed && m.file().is_some()) {
                        k.mem.mark_accessed(c.cpu, k.pages.frames.head(pfn));
                    }
                    c.now += if k.zap(c.cpu, entry) { unmap_ns } else { entry_ns };
                    k.charge(&mut c.now);
                }
            }
            free_empty_table(k, c, mapping, self.page);
            self.page = table_end;
        }
        if self.region.pages == k.pages.spaces.mapping(mapping).pages()
            && let Some(inode) = k.pages.remove_mapping(mapping)
        {
            return Step::Done(Some(Truncate::give_up(inode)));
        }
        Step::Done(None)
    }
}

/// Unmaps part or all of a huge page. A part first splits it into small pages; the rest of them
/// stay mapped.
fn unmap_huge(k: &mut Kernel, c: &mut Context, part: Span, pfn: Pfn) {
    let start = part.first & !(TABLE_PAGES - 1);
    let m = k.pages.spaces.mapping(part.mapping);
    if part.pages == TABLE_PAGES {
        m.table_mut(part.first).set_huge(None);
        if k.pages.mapcounts.drop_one(pfn) {
            k.mem.free(c.cpu, pfn, HPAGE_PMD_ORDER);
        }
        c.now += ns(k.costs.unmap);
        k.charge(&mut c.now);
        return;
    }
    k.split_huge(c.cpu, pfn);
    for page in part.first..part.first + part.pages {
        k.pages.spaces.mapping(part.mapping).take(page);
        k.put_page(c.cpu, pfn.plus(page - start));
        c.now += ns(k.costs.unmap);
        k.charge(&mut c.now);
    }
}

/// Frees the page table of a range if nothing in it is mapped.
fn free_empty_table(k: &mut Kernel, c: &mut Context, mapping: MappingId, page: u32) {
    let m = k.pages.spaces.mapping(mapping);
    if m.is_range_empty(page)
        && let Some(pfn) = m.table(page).page()
    {
        m.table_mut(page).set_page(None);
        k.mem.free(c.cpu, pfn, Order::ZERO);
        k.charge(&mut c.now);
    }
}
