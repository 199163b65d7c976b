//! The extra cost of memory on another node ([`FarCosts`](crate::base::numa::FarCosts)).

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::id::Span;
use crate::base::memory_bus::Written;
use crate::kernel::Kernel;
use kontig_mm::Pfn;
use kontig_mm::zonelist::LOCAL_DISTANCE;

impl Kernel {
    /// Extra time to touch this many pages on the frame's node, ns.
    #[inline(always)]
    pub(crate) fn far_touch(&self, c: &Context, pfn: Pfn, pages: u32) -> u64 {
        self.far.map_or(0, |far| self.beyond(c, pfn, far.touch * u64::from(pages)))
    }

    /// Extra time to clear or copy this many pages on the frame's node, ns.
    #[inline(always)]
    pub(crate) fn far_pages(&self, c: &Context, pfn: Pfn, pages: u32) -> u64 {
        self.far.map_or(0, |far| self.beyond(c, pfn, far.page * u64::from(pages)))
    }

    /// Extra time to touch or write small pages of one page table, each mapped to a frame, on
    /// their nodes, ns. The node is looked up once a pageblock.
    #[inline(never)]
    pub(crate) fn far_run(&self, c: &Context, written: Written, pages: Span) -> u64 {
        let (mut block, mut each_ns, mut all_ns) = (usize::MAX, 0, 0);
        self.pages.spaces.of(pages.mapping).frames_of(pages.first, pages.pages, |pfn, count| {
            if pfn.pageblock() != block {
                block = pfn.pageblock();
                each_ns = match written {
                    Written::Word => self.far_touch(c, pfn, 1),
                    Written::Page => self.far_pages(c, pfn, 1),
                };
            }
            all_ns += each_ns * u64::from(count);
        });
        all_ns
    }

    /// Scales a cost at distance 20 to the distance of the frame's node, ns.
    fn beyond(&self, c: &Context, pfn: Pfn, at_20: u64) -> u64 {
        let node = self.mem.zone(self.mem.pageblocks().zone_of(pfn)).node;
        let beyond = self.mem.distance(c.node, node).saturating_sub(LOCAL_DISTANCE);
        ns(at_20 * u64::from(beyond) / 10)
    }
}
