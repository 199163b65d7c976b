//! `madvise(MADV_COLD)` (since 5.4): the pages of a range count as unused, and active ones are
//! deactivated, so that reclaim takes them before others. Pages that other processes map too stay
//! as they are, and so does a huge page of which the range has a part, which the kernel splits.

use crate::base::context::Context;
use crate::base::error::SimError;
use crate::base::id::{ProcessId, Span};
use crate::base::rw_lock::Mode;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::paging::hold_map::Hold;
use crate::state::object::TABLE_PAGES;
use crate::state::process::mapping::Entry;
use kontig_mm::{CpuId, Pfn, Step};
use kontig_program::{Op, Region, Value};

#[derive(Clone)]
pub(crate) struct AdviseCold {
    process: ProcessId,
    region: Region,
    hold: Hold,
}

impl AdviseCold {
    pub(crate) fn new(process: ProcessId, region: Region) -> AdviseCold {
        AdviseCold { process, region, hold: Hold::new(process, Mode::Read) }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel, c: &Context) -> Result<Step<Value, Wait>, SimError> {
        if let Some(wait) = self.hold.take(k) {
            return Ok(Step::Wait(wait));
        }
        let span = k.pages.spaces.span(self.process, self.region);
        let Span { mapping, first, pages } = span.ok_or_else(|| SimError::bad_address(&Op::AdviseCold(self.region)))?;
        let end = first + pages;
        for page in first..end {
            let m = k.pages.spaces.mapping(mapping);
            let found = match (m.table(page).huge(), m.entry(page)) {
                (Some(huge), _) if page % TABLE_PAGES == 0 && page + TABLE_PAGES <= end => Some(huge),
                (None, Entry::Frame(pfn)) => Some(pfn),
                _ => None,
            };
            if let Some(pfn) = found {
                cool(k, c.cpu, (mapping.0, page), pfn);
            }
        }
        self.hold.give_back(k);
        Ok(Step::Done(Value::Unit))
    }
}

/// Takes the marks of use off a page that no other process maps, and deactivates it.
fn cool(k: &mut Kernel, cpu: CpuId, (mapping, page): (u32, u32), pfn: Pfn) {
    let number = k.mem.frames().owner(pfn, k.mem.frames().tag(pfn).order());
    let (object, _) = k.pages.objects.at(number);
    if k.pages.objects.mappings(object).len() > 1 {
        return;
    }
    k.pages.spaces.test_and_clear_young(mapping, page, pfn);
    k.mem.clear_referenced(pfn);
    k.mem.deactivate(cpu, pfn);
}
