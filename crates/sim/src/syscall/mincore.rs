//! `mincore`: counts the pages of a range that are in memory, mapped or in the page cache.

use crate::base::error::SimError;
use crate::base::id::{ProcessId, Span};
use crate::base::rw_lock::Mode;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::paging::hold_map::Hold;
use crate::state::process::mapping::{Entry, FileMap};
use kontig_mm::Step;
use kontig_program::{Op, Region, Value};

/// A query of a range.
#[derive(Clone)]
pub(crate) struct Mincore {
    process: ProcessId,
    region: Region,
    hold: Hold,
}

impl Mincore {
    pub(crate) fn new(process: ProcessId, region: Region) -> Mincore {
        Mincore { process, region, hold: Hold::new(process, Mode::Read) }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel) -> Result<Step<Value, Wait>, SimError> {
        if let Some(wait) = self.hold.take(k) {
            return Ok(Step::Wait(wait));
        }
        let span = k.pages.spaces.span(self.process, self.region);
        let there = in_memory(k, span.ok_or_else(|| SimError::bad_address(&Op::Mincore(self.region)))?);
        self.hold.give_back(k);
        Ok(Step::Done(Value::Pages(there)))
    }
}

/// The number of a range's pages in memory.
fn in_memory(k: &mut Kernel, Span { mapping, first, pages }: Span) -> u64 {
    let (m, files) = (k.pages.spaces.mapping(mapping), k.pages.files.as_ref());
    let is_cached = |page: u32| match (m.file(), files) {
        (Some(FileMap { inode, first, .. }), Some(files)) => files.find(*inode, first + page).is_some(),
        _ => false,
    };
    let is_there = |page: &u32| match m.entry(*page) {
        Entry::Frame(_) | Entry::Zero => true,
        Entry::Swap(_) => false,
        Entry::None => m.table(*page).huge().is_some() || is_cached(*page),
    };
    (first..first + pages).filter(is_there).count() as u64
}
