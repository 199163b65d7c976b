//! `mmap`, and `madvise(MADV_HUGEPAGE)`. Memory is allocated by the faults that follow.

use crate::base::error::SimError;
use crate::base::id::ProcessId;
use crate::base::rw_lock::Mode;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::paging::hold_map::Hold;
use crate::state::object::TABLE_PAGES;
use kontig_mm::Step;
use kontig_program::{Op, OpenFile, Region, Value};

#[derive(Clone)]
pub(crate) struct Mmap {
    process: ProcessId,
    what: What,
    hold: Hold,
}

#[derive(Clone, Copy)]
enum What {
    Anonymous {
        pages: u32,
        /// Whether the kernel chooses the place.
        anywhere: bool,
    },
    /// Pages of an open file with this inode.
    File { file: OpenFile, inode: u32, first: u32, pages: u32 },
}

impl Mmap {
    pub(crate) fn anonymous(process: ProcessId, pages: u32, anywhere: bool) -> Mmap {
        Mmap { process, what: What::Anonymous { pages, anywhere }, hold: Hold::new(process, Mode::Write) }
    }

    pub(crate) fn file(process: ProcessId, (file, inode): (OpenFile, u32), first: u32, pages: u32) -> Mmap {
        let what = What::File { file, inode, first, pages };
        Mmap { process, what, hold: Hold::new(process, Mode::Write) }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel) -> Result<Step<Value, Wait>, SimError> {
        if let Some(wait) = self.hold.take(k) {
            return Ok(Step::Wait(wait));
        }
        let region = match self.what {
            What::Anonymous { pages, anywhere } => {
                let region = k.pages.mmap(self.process, pages).ok_or(SimError::NoAddressSpace { pages })?;
                let aligned = k.mem.profile().huge_pages.aligns_mappings && pages.is_multiple_of(TABLE_PAGES);
                if anywhere && !aligned {
                    k.pages.spaces.begin_inside(self.process, region);
                }
                region
            }
            What::File { file, inode, first, pages } => k
                .pages
                .mmap_file(self.process, inode, first, pages)
                .ok_or_else(|| SimError::bad_address(&Op::MmapFile { file, first, pages }))?,
        };
        self.hold.give_back(k);
        Ok(Step::Done(Value::Region(region)))
    }
}

#[derive(Clone)]
pub(crate) struct AdviseHuge {
    process: ProcessId,
    region: Region,
    hold: Hold,
}

impl AdviseHuge {
    pub(crate) fn new(process: ProcessId, region: Region) -> AdviseHuge {
        AdviseHuge { process, region, hold: Hold::new(process, Mode::Write) }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel) -> Result<Step<Value, Wait>, SimError> {
        if let Some(wait) = self.hold.take(k) {
            return Ok(Step::Wait(wait));
        }
        let span = k.pages.spaces.span(self.process, self.region);
        let span = span.ok_or_else(|| SimError::bad_address(&Op::AdviseHuge(self.region)))?;
        k.pages.spaces.mapping(span.mapping).advise_huge();
        self.hold.give_back(k);
        if k.mem.wants_huge(true) {
            k.khugepaged.enter(self.process, &mut k.queues);
        }
        Ok(Step::Done(Value::Unit))
    }
}
