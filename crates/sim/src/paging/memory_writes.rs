//! What a task pays to write whole pages, and words of them ([`MemoryBus`](crate::base::memory_bus::MemoryBus)).

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::memory_bus::Written;
use crate::kernel::Kernel;
use kontig_mm::Pfn;

impl Kernel {
    /// What a program takes to write to pages of one zone that are there, ns.
    #[inline(always)]
    pub(crate) fn write_pages(&mut self, c: &Context, written: Written, pfn: Pfn, pages: u32) -> u64 {
        match written {
            Written::Word => ns(self.costs.touch) * u64::from(pages) + self.far_touch(c, pfn, pages),
            Written::Page => self.bus.write(c.now, pages.into()) + self.far_pages(c, pfn, pages),
        }
    }

    /// What a page takes, ns, that is cleared and then written to, and what of it is the program's own time, if `both`
    /// are what the bus needs for all that is written.
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
