//! Writes to every page of a range, reads it or uses it, in address order; missing pages are
//! faulted in.

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::error::SimError;
use crate::base::id::{At, ProcessId, Span};
use crate::base::memory_bus::Written;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::paging::fault::Fault;
use crate::state::object::TABLE_PAGES;
use crate::state::process::mapping::{Entry, Mapping};
use crate::state::process::mmap_lock::FaultLock;
use kontig_mm::Step;
use kontig_program::{Op, Region, Value};

/// A range being written to or read.
#[derive(Clone)]
pub(crate) struct Touch {
    process: ProcessId,
    region: Region,
    span: Span,
    /// The number of mappings that had left when the range was last found valid.
    left: u64,
    way: Way,
    next: Next,
    lock: Lock,
}

/// The way in which each page is touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Read,
    Write(Written),
    /// A word is written, in time that is charged elsewhere unless the page is missing.
    Use,
}

impl Way {
    fn writes(self) -> bool {
        self != Way::Read
    }

    /// How much of a page is written or read.
    fn written(self) -> Written {
        match self {
            Way::Write(written) => written,
            Way::Read | Way::Use => Written::Word,
        }
    }
}

#[derive(Clone)]
enum Next {
    /// The next page to touch.
    Page(u32),
    /// A fault in progress.
    Fault(Box<Fault>),
}

/// The hold on the memory map for a fault.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lock {
    Free,
    /// Waits for the memory map.
    Waits,
    Held(FaultLock),
}

/// The reason that touching stops.
enum Stop {
    /// A fault that takes the slow path.
    Fault(Fault),
    /// The page cannot be faulted in until the memory map is open.
    Barred(u32),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Fault(fault)
    }
}

impl Touch {
    pub(crate) fn new(k: &Kernel, process: ProcessId, (region, span): (Region, Span), way: Way) -> Touch {
        let left = k.pages.spaces.left();
        Touch { process, region, span, left, way, next: Next::Page(span.first), lock: Lock::Free }
    }

    /// Whether a killed process can end at this point.
    pub(crate) fn may_end(&self) -> bool {
        let may = match &self.next {
            Next::Page(_) => true,
            Next::Fault(fault) => fault.may_end(),
        };
        may && self.lock == Lock::Free
    }

    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<Value, Wait>, SimError> {
        if self.lock == Lock::Waits {
            self.lock = Lock::Held(FaultLock::Map);
        }
        self.look_again(k)?;
        let page = match &mut self.next {
            Next::Page(page) => *page,
            Next::Fault(fault) => {
                if self.lock == Lock::Free && !fault.may_end() {
                    // The lock was dropped for the wait for a page.
                    if k.is_barred(self.process, self.span.mapping) {
                        return Ok(self.wait(k));
                    }
                    self.lock = Lock::Held(k.lock_fault(self.process, self.span.mapping));
                }
                match fault.step(k, c)? {
                    Step::Done(next) => next,
                    Step::Working => {
                        if fault.may_end() {
                            self.unlock(k);
                        }
                        return Ok(Step::Working);
                    }
                    Step::Wait(wait) => {
                        if fault.waits_for_page() {
                            self.unlock(k);
                        }
                        return Ok(Step::Wait(wait));
                    }
                }
            }
        };
        let stop = self.touch(k, c, page);
        if !matches!(stop, Err(Stop::Fault(_))) {
            self.unlock(k);
        }
        Ok(match stop {
            Ok(next) if next == self.span.first + self.span.pages => Step::Done(Value::Unit),
            Ok(next) => {
                self.next = Next::Page(next);
                Step::Working
            }
            Err(Stop::Barred(page)) => {
                self.next = Next::Page(page);
                self.wait(k)
            }
            Err(Stop::Fault(fault)) => {
                self.next = Next::Fault(Box::new(fault));
                if self.lock == Lock::Free {
                    self.lock = Lock::Held(k.lock_fault(self.process, self.span.mapping));
                }
                Step::Working
            }
        })
    }

    /// Checks that no other thread has unmapped the range.
    #[inline(always)]
    fn look_again(&mut self, k: &mut Kernel) -> Result<(), SimError> {
        let left = k.pages.spaces.left();
        if self.left == left {
            return Ok(());
        }
        self.left = left;
        if k.pages.spaces.span(self.process, self.region).is_some_and(|span| span.mapping == self.span.mapping) {
            return Ok(());
        }
        let op = match self.way {
            Way::Write(Written::Page) => Op::Fill(self.region),
            Way::Write(Written::Word) => Op::Touch(self.region),
            Way::Use => Op::Use(self.region),
            Way::Read => Op::Load(self.region),
        };
        Err(SimError::bad_address(&op))
    }

    fn wait(&mut self, k: &mut Kernel) -> Step<Value, Wait> {
        match k.wait_to_fault(self.process) {
            Some(wait) => {
                self.lock = Lock::Waits;
                Step::Wait(wait)
            }
            None => {
                self.lock = Lock::Held(FaultLock::Map);
                Step::Working
            }
        }
    }

    #[inline(always)]
    fn unlock(&mut self, k: &mut Kernel) {
        if let Lock::Held(held) = std::mem::replace(&mut self.lock, Lock::Free) {
            k.unlock_fault(self.process, self.span.mapping, held);
        }
    }

    /// Touches pages from `page` on. Returns the next page when the turn must end, or the reason to
    /// stop.
    #[inline(always)]
    fn touch(&self, k: &mut Kernel, c: &mut Context, mut page: u32) -> Result<u32, Stop> {
        let (mapping, end) = (self.span.mapping, self.span.first + self.span.pages);
        let is_barred = self.lock == Lock::Free && k.is_barred(self.process, mapping);
        while page < end && !k.must_yield(c) {
            let m = k.pages.spaces.mapping(mapping);
            let table = m.table(page);
            let at = At { mapping, page };
            if is_barred && self.faults(m, page) {
                return Err(Stop::Barred(page));
            } else if table.page().is_none() {
                k.fault_range(c, at, self.way.writes())?;
            } else if let Some(pfn) = table.huge() {
                if self.way.writes() && table.is_protected() {
                    k.fault_huge_protected(c, at, pfn)?;
                    continue;
                }
                m.table_mut(page).set_accessed();
                let next = ((page | (TABLE_PAGES - 1)) + 1).min(end);
                let touch_ns = match self.way {
                    Way::Use => 0,
                    way => k.write_pages(c, way.written(), pfn, next - page),
                };
                c.now += touch_ns;
                c.user_ns += touch_ns;
                page = next;
            } else {
                match m.entry(page) {
                    Entry::None if m.file().is_some() => {
                        if !k.fault_file(c, at) {
                            return Err(Fault::file(at).into());
                        }
                    }
                    Entry::None => {
                        page = match self.way {
                            Way::Read => k.fault_zero(c, at),
                            way => k.fault_small(c, at, way.written(), end)?,
                        };
                    }
                    Entry::Swap(_) => return Err(Fault::swap(at, self.way.writes()).into()),
                    Entry::Frame(_) | Entry::Zero if self.way.writes() && m.is_protected(page) => {
                        k.fault_protected(c, at)?;
                        // It can be written to now, and needs no second look.
                        debug_assert!(!self.faults(k.pages.spaces.mapping(mapping), page));
                        if !k.must_yield(c) {
                            page = self.touch_there(k, c, page, end);
                        }
                    }
                    Entry::Frame(_) | Entry::Zero => page = self.touch_there(k, c, page, end),
                }
            }
        }
        Ok(page)
    }

    /// Touches a small page that is mapped, and those after it in its page table while they need no
    /// fault. No kernel work is involved, so it runs to the end as for a huge page. The next page
    /// to touch.
    #[inline(always)]
    fn touch_there(&self, k: &mut Kernel, c: &mut Context, page: u32, end: u32) -> u32 {
        let end = ((page | (TABLE_PAGES - 1)) + 1).min(end);
        let (mut next, mut far_ns) = (page, 0);
        let written = self.way.writes();
        loop {
            let m = k.pages.spaces.mapping(self.span.mapping);
            match m.used_while_there(next, end - next, written) {
                // The zero page is on no node.
                0 => {
                    m.used(next, written);
                    next += 1;
                }
                run => {
                    if k.far.is_some() && self.way != Way::Use {
                        far_ns += k.far_run(
                            c,
                            self.way.written(),
                            Span { mapping: self.span.mapping, first: next, pages: run },
                        );
                    }
                    next += run;
                }
            }
            if next == end || self.faults(k.pages.spaces.mapping(self.span.mapping), next) {
                break;
            }
        }
        let touch_ns = far_ns
            + match self.way {
                Way::Use => 0,
                Way::Write(Written::Page) => k.bus.write(c.now, u64::from(next - page)),
                Way::Write(Written::Word) | Way::Read => ns(k.costs.touch) * u64::from(next - page),
            };
        c.now += touch_ns;
        c.user_ns += touch_ns;
        next
    }

    /// Whether touching a page faults.
    fn faults(&self, m: &mut Mapping, page: u32) -> bool {
        let table = m.table(page);
        match (table.huge(), m.entry(page)) {
            (Some(_), _) => self.way.writes() && table.is_protected(),
            (None, Entry::None | Entry::Swap(_)) => true,
            (None, Entry::Frame(_) | Entry::Zero) => self.way.writes() && m.is_protected(page),
        }
    }
}
