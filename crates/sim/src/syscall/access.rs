//! Accesses to memory that is there already: user time that depends on the pages it lies on.
//!
//! Nothing is faulted in, and the pages do not become younger: programs touch what they use, then
//! access it. The time of an access follows from the machine's processor and from how much of the
//! range is on huge pages at that moment, which khugepaged and reclaim change meanwhile.

use crate::base::error::SimError;
use crate::base::id::{ProcessId, Span};
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::state::process::mapping::Mapping;
use kontig_mm::Step;
use kontig_program::{HPAGE_PMD_NR, Op, Pattern, Region, Value};
use kontig_translation::{Mapped, PAGES_OF_A_LINE};

#[derive(Clone)]
pub(crate) struct Access {
    process: ProcessId,
    region: Region,
    /// Small pages' worth of the range that is accessed.
    used: u32,
    pattern: Pattern,
    left: u64,
    /// CPU time that the accesses took so far.
    took_ns: u64,
    /// The small and huge pages of the last look, and the time of an access on them, ns. Where the
    /// small ones lie is not looked up again while their number is the same.
    last: Option<(Pages, f64)>,
}

/// The time until it looks again on which pages the range lies, ns.
const LOOKS_AFTER_NS: f64 = 10e6;

impl Access {
    pub(crate) fn new(process: ProcessId, region: Region, used: u32, pattern: Pattern, accesses: u64) -> Access {
        Access { process, region, used, pattern, left: accesses, took_ns: 0, last: None }
    }

    pub(crate) fn step(&mut self, k: &Kernel) -> Result<Step<Value, Wait>, SimError> {
        let &mut Access { region, used, pattern, left: accesses, .. } = self;
        let op = || Op::Access { region, used, pattern, accesses };
        let Some(processor) = &k.processor else { return Err(SimError::NoTranslation { op: format!("{:?}", op()) }) };
        let span = k.pages.spaces.span(self.process, region).ok_or_else(|| SimError::bad_address(&op()))?;
        let mapping = k.pages.spaces.of(span.mapping);
        let pages = pages(mapping, span);
        if self.left == 0 {
            return Ok(Step::Done(Value::Mapped { small: pages.small, huge: pages.huge, ns: self.took_ns }));
        }
        let ns = match self.last {
            Some((same, ns)) if same == pages => ns,
            _ => {
                let Pages { small, huge } = pages;
                let in_huge = u64::from(used).saturating_sub(small).min(huge * u64::from(HPAGE_PMD_NR));
                // What is used is spread evenly.
                let share = f64::from(used) / f64::from(span.pages.max(1));
                let per_line = (f64::from(PAGES_OF_A_LINE) * share).max(1.0);
                let per_group = per_group(mapping, span);
                processor.access_ns(pattern, Mapped { in_huge, huge, per_line, ..Mapped::all_small(small, per_group) })
            }
        };
        self.last = Some((pages, ns));
        let now = ((LOOKS_AFTER_NS / ns) as u64).clamp(1, self.left);
        self.left -= now;
        let took_ns = (now as f64 * ns).round() as u64;
        self.took_ns += took_ns;
        Ok(Step::Wait(Wait::Compute(took_ns)))
    }
}

/// The numbers of small and of huge pages.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Pages {
    small: u64,
    huge: u64,
}

/// Page tables that are looked at to tell how the small pages lie, of up to 32,768 pages. Chosen: a
/// look at all of a large heap would take longer than the rest of the call.
const LOOKED_AT: u32 = 64;

/// The pages that a range lies on.
fn pages(m: &Mapping, Span { first, pages, .. }: Span) -> Pages {
    let (mut small, mut huge) = (0, 0);
    let (mut page, end) = (first, first + pages);
    while page < end {
        let next = (page - page % HPAGE_PMD_NR + HPAGE_PMD_NR).min(end);
        match m.table(page).huge() {
            Some(_) => huge += 1,
            None => small += u64::from(m.frames(page, next - page)),
        }
        page = next;
    }
    Pages { small, huge }
}

/// How many small pages of a range lie in one aligned group of eight frames, going by those that
/// follow each other in it.
fn per_group(m: &Mapping, Span { first, pages, .. }: Span) -> f64 {
    let tables = pages.div_ceil(HPAGE_PMD_NR);
    let (mut seen, mut groups, mut last) = (0u32, 0u32, None);
    for table in (0..tables).step_by(tables.div_ceil(LOOKED_AT) as usize) {
        let begin = first + table * HPAGE_PMD_NR;
        for page in begin..(begin + HPAGE_PMD_NR).min(first + pages) {
            let Some(pfn) = m.pte(page) else { continue };
            let group = Some(pfn.get() / PAGES_OF_A_LINE);
            seen += 1;
            groups += u32::from(group != last);
            last = group;
        }
    }
    if groups == 0 { f64::from(PAGES_OF_A_LINE) } else { f64::from(seen) / f64::from(groups) }
}
