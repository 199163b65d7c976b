//! A write to every page of a range, in address order; what is not there is faulted in.

use crate::context::Context;
use crate::cost::ns;
use crate::error::SimError;
use crate::kernel::Kernel;
use crate::object::TABLE_PAGES;
use crate::process::address_space::{At, Span};
use crate::process::fault::Fault;
use crate::wait::Wait;
use kontig_mm::Step;
use kontig_program::Value;

/// A range being written to.
#[derive(Clone)]
pub(crate) struct Touch {
    region: Span,
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
    pub(crate) fn new(region: Span) -> Touch {
        Touch { region, next: Next::Page(region.first) }
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
                k.fault_table(c, at)?;
            } else if table.huge().is_some() {
                let next = ((page | (TABLE_PAGES - 1)) + 1).min(end);
                let touch_ns = ns(k.costs.touch) * u64::from(next - page);
                c.now += touch_ns;
                c.user_ns += touch_ns;
                page = next;
            } else if m.pte(page).is_none() {
                page = k.fault_small(c, at, end)?;
            } else {
                page += 1;
            }
        }
        Ok(page)
    }
}
