//! `mmap` of anonymous memory, and `madvise(MADV_HUGEPAGE)`: they note what is wanted; memory comes with the faults.

use crate::error::SimError;
use crate::kernel::Kernel;
use crate::process::ProcessId;
use kontig_program::{Region, Value};

/// `mmap`.
#[derive(Clone)]
pub(crate) struct Mmap {
    pub(crate) process: ProcessId,
    pub(crate) pages: u32,
}

impl Mmap {
    pub(crate) fn run(&self, k: &mut Kernel) -> Result<Value, SimError> {
        k.spaces.mmap(self.process, self.pages).map(Value::Region).ok_or(SimError::NoAddressSpace { pages: self.pages })
    }
}

/// `madvise(MADV_HUGEPAGE)`.
#[derive(Clone)]
pub(crate) struct AdviseHuge {
    pub(crate) region: Region,
}

impl AdviseHuge {
    pub(crate) fn run(&self, k: &mut Kernel) -> Value {
        k.spaces.mapping(self.region.mapping).advise_huge();
        Value::Unit
    }
}
