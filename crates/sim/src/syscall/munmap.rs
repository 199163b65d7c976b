//! `munmap` of part or all of a mapping; a page table left empty is freed with its pages.
//!
//! A part may be used again, as if it were mapped anew. All of it at once takes the mapping away.

use super::truncate::Truncate;
use crate::context::Context;
use crate::cost::ns;
use crate::kernel::Kernel;
use crate::object::TABLE_PAGES;
use crate::process::address_space::{Entry, MappingId, Span};
use crate::wait::Wait;
use kontig_mm::types::PAGEBLOCK_ORDER as HUGE;
use kontig_mm::{Order, Pfn, Step};
use kontig_program::Value;

/// A range being unmapped.
#[derive(Clone)]
pub(crate) struct Munmap {
    region: Span,
    /// The next page to unmap.
    page: u32,
    begun: bool,
    /// The file that nobody has any more without this mapping.
    gives_up: Option<Truncate>,
}

impl Munmap {
    pub(crate) fn new(region: Span) -> Munmap {
        Munmap { region, page: region.first, begun: false, gives_up: None }
    }

    /// Unmaps the pages of one page table after the other.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Value, Wait> {
        if let Some(gives_up) = &mut self.gives_up {
            return gives_up.step(k, c);
        }
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
                for page in self.page..table_end {
                    let m = k.pages.spaces.mapping(mapping);
                    if m.is_none(page) {
                        continue;
                    }
                    let entry = m.entry(page);
                    let used = m.file().is_some() && m.is_accessed(page);
                    m.clear_pte(page);
                    if let (Entry::Frame(pfn), true) = (entry, used) {
                        k.mem.mark_accessed(c.cpu, pfn);
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
            let mut gives_up = Truncate::give_up(inode);
            let step = gives_up.step(k, c);
            self.gives_up = Some(gives_up);
            return step;
        }
        Step::Done(Value::Unit)
    }
}

/// Unmaps part or all of a huge page. A part first splits it into single pages, which the rest stays mapped to.
fn unmap_huge(k: &mut Kernel, c: &mut Context, part: Span, pfn: Pfn) {
    let start = part.first & !(TABLE_PAGES - 1);
    let m = k.pages.spaces.mapping(part.mapping);
    if part.pages == TABLE_PAGES {
        m.table_mut(part.first).set_huge(None);
        if k.pages.mapcounts.drop_one(pfn) {
            k.mem.free(c.cpu, pfn, HUGE);
        }
        c.now += ns(k.costs.unmap);
        k.charge(&mut c.now);
        return;
    }
    k.split_huge(c.cpu, pfn);
    for page in part.first..part.first + part.pages {
        k.pages.spaces.mapping(part.mapping).clear_pte(page);
        k.put_page(c.cpu, pfn.plus(page - start));
        c.now += ns(k.costs.unmap);
        k.charge(&mut c.now);
    }
}

/// Frees the page table of a range once nothing in it is mapped.
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
