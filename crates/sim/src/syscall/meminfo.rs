//! A read of `/proc/meminfo` for a driver: free memory above the reserves.

use crate::kernel::Kernel;
use kontig_mm::Wmark;
use kontig_program::Value;

/// `MemFree`, less every zone's high watermark and its lowmem reserve.
#[derive(Clone)]
pub(crate) struct FreeAboveHigh;

impl FreeAboveHigh {
    pub(crate) fn run(&self, k: &Kernel) -> Value {
        let above = k.mem.zones().iter().map(|z| {
            let kept = z.wmark(Wmark::High) + z.lowmem_reserve[3];
            z.nr_free_pages_exact().saturating_sub(kept)
        });
        Value::Pages(above.sum())
    }
}
