//! A write to every page of a range, or a read, in address order; what is not there is faulted in.

use crate::context::Context;
use crate::cost::ns;
use crate::error::SimError;
use crate::kernel::Kernel;
use crate::object::TABLE_PAGES;
use crate::process::address_space::{At, Entry, Span};
use crate::process::fault::Fault;
use crate::wait::Wait;
use kontig_mm::Step;
use kontig_program::Value;

/// A range being written to, or read.
#[derive(Clone)]
pub(crate) struct Touch {
    region: Span,
    writes: bool,
    next: Next,
}

#[derive(Clone)]
enum Next {
    /// The next page to touch.
    Page(u32),
    /// A fault that takes its time.
    Fault(Fault),
}

impl Touch {
    pub(crate) fn new(region: Span, writes: bool) -> Touch {
        Touch { region, writes, next: Next::Page(region.first) }
    }

    /// Whether it can end here, of a process that is killed.
    pub(crate) fn may_end(&self) -> bool {
        match &self.next {
            Next::Page(_) => true,
            Next::Fault(fault) => fault.may_end(),
        }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<Value, Wait>, SimError> {
        let page = match &mut self.next {
            Next::Page(page) => *page,
            Next::Fault(fault) => match fault.step(k, c)? {
                Step::Done(next) => next,
                Step::Working => return Ok(Step::Working),
                Step::Wait(wait) => return Ok(Step::Wait(wait)),
            },
        };
        Ok(match self.touch(k, c, page) {
            Ok(next) if next == self.region.first + self.region.pages => Step::Done(Value::Unit),
            Ok(next) => {
                self.next = Next::Page(next);
                Step::Working
            }
            Err(fault) => {
                self.next = Next::Fault(fault);
                Step::Working
            }
        })
    }

    /// Touches pages from `page` on; the next one when the turn has to end, or a fault that takes its time.
    #[inline(always)]
    fn touch(&self, k: &mut Kernel, c: &mut Context, mut page: u32) -> Result<u32, Fault> {
        let (mapping, end) = (self.region.mapping, self.region.first + self.region.pages);
        while page < end && !k.must_yield(c) {
            let m = k.pages.spaces.mapping(mapping);
            let table = m.table(page);
            let at = At { mapping, page };
            if table.page().is_none() {
                k.fault_table(c, at, self.writes)?;
            } else if let Some(pfn) = table.huge() {
                if self.writes && table.is_protected() {
                    k.fault_huge_protected(c, at, pfn)?;
                    continue;
                }
                m.table_mut(page).set_accessed();
                let next = ((page | (TABLE_PAGES - 1)) + 1).min(end);
                let touch_ns = ns(k.costs.touch) * u64::from(next - page) + k.far_touch(c, pfn, next - page);
                c.now += touch_ns;
                c.user_ns += touch_ns;
                page = next;
            } else if m.is_none(page) && m.file().is_some() {
                if !k.fault_file(c, at) {
                    return Err(Fault::file(at));
                }
            } else if m.is_none(page) {
                page = if self.writes { k.fault_small(c, at, end)? } else { k.fault_zero(c, at) };
            } else if !m.has_marks() {
                page += 1;
            } else if let Entry::Swap(_) = m.entry(page) {
                return Err(Fault::swap(at, self.writes));
            } else if self.writes && m.is_protected(page) {
                k.fault_protected(c, at)?;
            } else {
                m.used(page, self.writes);
                page += 1;
            }
        }
        Ok(page)
    }
}
