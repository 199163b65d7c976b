//! Writing.

use super::Files;
use crate::kernel::Kernel;
use kontig_mm::{CpuId, NodeId, Pfn};

impl Files {
    /// Pages of a node that are dirty or being written.
    pub(crate) fn write_pending(&self, node: NodeId) -> u64 {
        self.pending[node.index()]
    }
}

impl Kernel {
    /// A page has been written.
    pub(crate) fn end_writeback(&mut self, _pfn: Pfn, _cpu: CpuId, _now: u64) {}
}
