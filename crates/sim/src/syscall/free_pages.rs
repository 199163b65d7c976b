//! Operations of a driver on a block: freeing it whole, or splitting it into single pages, and
//! freeing some of them.

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::kernel::Kernel;
use kontig_mm::{Order, Pfn};
use kontig_program::Value;

/// `__free_pages` of a block.
#[derive(Clone)]
pub(crate) struct FreeBlock {
    pub(crate) block: Pfn,
    pub(crate) order: Order,
}

impl FreeBlock {
    pub(crate) fn run(&self, k: &mut Kernel, c: &mut Context) -> Value {
        free(k, c, self.block, self.order);
        Value::Unit
    }
}

#[derive(Clone)]
pub(crate) struct SplitPages {
    pub(crate) block: Pfn,
    pub(crate) order: Order,
}

impl SplitPages {
    pub(crate) fn run(&self, k: &mut Kernel) -> Value {
        k.mem.split_page(self.block, self.order);
        Value::Unit
    }
}

/// `__free_page` of a range, page by page.
#[derive(Clone)]
pub(crate) struct FreePages {
    pub(crate) first: Pfn,
    pub(crate) pages: u32,
}

impl FreePages {
    pub(crate) fn run(&self, k: &mut Kernel, c: &mut Context) -> Value {
        for i in 0..self.pages {
            free(k, c, self.first.plus(i), Order::ZERO);
        }
        Value::Unit
    }
}

fn free(k: &mut Kernel, c: &mut Context, block: Pfn, order: Order) {
    k.mem.free(c.cpu, block, order);
    c.now += ns(k.costs.kernel_alloc);
    k.charge(&mut c.now);
}
