//! The cost of writing whole pages, and words of them
//! ([`MemoryBus`](crate::base::memory_bus::MemoryBus)).

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::memory_bus::Written;
use crate::kernel::Kernel;
use kontig_mm::Pfn;

impl Kernel {
    /// Time in ns for a program to write to present pages of one zone.
    #[inline(always)]
    pub(crate) fn write_pages(&mut self, c: &Context, written: Written, pfn: Pfn, pages: u32) -> u64 {
        match written {
            Written::Word => ns(self.costs.touch) * u64::from(pages) + self.far_touch(c, pfn, pages),
            Written::Page => self.bus.write(c.now, pages.into()) + self.far_pages(c, pfn, pages),
        }
    }

    /// Time in ns to clear a page and write to it, and the program's share of that. `both` is the
    /// bus time of both writes.
    #[inline(always)]
    pub(crate) fn clear_and_write(&self, c: &Context, written: Written, pfn: Pfn, both: u64) -> (u64, u64) {
        let far = self.far_pages(c, pfn, 1);
        match written {
            Written::Word => {
                let touch = ns(self.costs.touch) + self.far_touch(c, pfn, 1);
                (both + far + touch, touch)
            }
            Written::Page => (both + 2 * far, both / 2 + far),
        }
    }
}
