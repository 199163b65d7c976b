//! `mmap` of anonymous memory, and `madvise(MADV_HUGEPAGE)`: they note what is wanted; memory comes with the faults.

use crate::error::SimError;
use crate::kernel::Kernel;
use crate::process::ProcessId;
use crate::process::address_space::Span;
use kontig_program::Value;

/// `mmap`.
#[derive(Clone)]
pub(crate) struct Mmap {
    pub(crate) process: ProcessId,
    pub(crate) pages: u32,
}

impl Mmap {
    pub(crate) fn run(&self, k: &mut Kernel) -> Result<Value, SimError> {
        k.pages.mmap(self.process, self.pages).map(Value::Region).ok_or(SimError::NoAddressSpace { pages: self.pages })
    }
}

/// `madvise(MADV_HUGEPAGE)`.
#[derive(Clone)]
pub(crate) struct AdviseHuge {
    pub(crate) region: Span,
}

impl AdviseHuge {
    pub(crate) fn run(&self, k: &mut Kernel) -> Value {
        k.pages.spaces.mapping(self.region.mapping).advise_huge();
        if k.mem.wants_huge(true) {
            let process = k.pages.spaces.process_of(self.region.mapping);
            k.khugepaged_enter(process);
        }
        Value::Unit
    }
}
