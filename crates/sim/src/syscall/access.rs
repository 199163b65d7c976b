//! Accesses to memory that is there already: user time that depends on the pages it lies on.
//!
//! Nothing is faulted in, and the pages do not become younger: programs touch what they use, then
//! access it. The time of an access follows from the machine's processor and from how much of the
//! range is on huge pages at that moment, which khugepaged and reclaim change meanwhile.

use crate::base::error::SimError;
use crate::base::id::{ProcessId, Span};
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::state::process::address_space::Mapping;
use kontig_mm::Step;
use kontig_program::{HPAGE_PMD_NR, Op, Pattern, Region, Value};
use kontig_translation::Mapped;

#[derive(Clone)]
pub(crate) struct Access {
    process: ProcessId,
    region: Region,
    /// Small pages' worth of the range that is accessed.
    used: u32,
    pattern: Pattern,
    left: u64,
    /// The pages of the last look, and the time of an access on them, ns.
    last: Option<(Mapped, f64)>,
}

/// The time until it looks again on which pages the range lies, ns.
const LOOKS_AFTER_NS: f64 = 10e6;

impl Access {
    pub(crate) fn new(process: ProcessId, region: Region, used: u32, pattern: Pattern, accesses: u64) -> Access {
        Access { process, region, used, pattern, left: accesses, last: None }
    }

    pub(crate) fn step(&mut self, k: &Kernel) -> Result<Step<Value, Wait>, SimError> {
        let &mut Access { region, used, pattern, left: accesses, .. } = self;
        let op = || Op::Access { region, used, pattern, accesses };
        let Some(processor) = &k.processor else { return Err(SimError::NoTranslation { op: format!("{:?}", op()) }) };
        let span = k.pages.spaces.span(self.process, region).ok_or_else(|| SimError::bad_address(&op()))?;
        let mapped = mapped(k.pages.spaces.of(span.mapping), span, used);
        if self.left == 0 {
            return Ok(Step::Done(Value::Mapped { small: mapped.small, huge: mapped.huge }));
        }
        let ns = match self.last {
            Some((same, ns)) if same == mapped => ns,
            _ => processor.access_ns(pattern, mapped),
        };
        self.last = Some((mapped, ns));
        let now = ((LOOKS_AFTER_NS / ns) as u64).clamp(1, self.left);
        self.left -= now;
        Ok(Step::Wait(Wait::Compute((now as f64 * ns).round() as u64)))
    }
}

/// The pages that a range lies on, of which `used` are accessed.
fn mapped(m: &Mapping, Span { first, pages, .. }: Span, used: u32) -> Mapped {
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
    let in_huge = u64::from(used).saturating_sub(small).min(huge * u64::from(HPAGE_PMD_NR));
    Mapped { small, in_huge, huge }
}
