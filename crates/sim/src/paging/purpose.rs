//! The purposes that a fault allocates memory for, and the flags and order of each.

use crate::base::memory_bus::Written;
use kontig_mm::types::PAGEBLOCK_ORDER as HUGE;
use kontig_mm::{Gfp, Order, Pfn};

/// What a fault allocates.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Purpose {
    /// A page table, and the huge page that it is put by for, if there is one.
    Table(Option<Pfn>),
    /// A page that is then written to.
    Small(Written),
    /// A page for a copy of one that others have, too.
    Copy,
    /// The first attempt at a huge page: this node, lightly.
    HugeLocal(Gfp),
    /// The second: any node, with what administrators and the advice allow.
    HugeAny(Gfp),
    /// A huge page for a copy of one that others have, too: the same two attempts.
    HugeCopyLocal(Gfp),
    HugeCopyAny(Gfp),
}

impl Purpose {
    pub(crate) fn gfp(self) -> Gfp {
        match self {
            Purpose::Table(_) => Gfp::KERNEL,
            Purpose::Small(_) | Purpose::Copy => Gfp::HIGHUSER_MOVABLE,
            Purpose::HugeLocal(gfp)
            | Purpose::HugeAny(gfp)
            | Purpose::HugeCopyLocal(gfp)
            | Purpose::HugeCopyAny(gfp) => gfp,
        }
    }

    pub(crate) fn is_huge(self) -> bool {
        matches!(self, Purpose::HugeLocal(_) | Purpose::HugeAny(_)) || self.is_huge_copy()
    }

    pub(crate) fn is_huge_copy(self) -> bool {
        matches!(self, Purpose::HugeCopyLocal(_) | Purpose::HugeCopyAny(_))
    }

    /// The second attempt that follows this one, with these flags; none after a second.
    pub(crate) fn second(self, gfp: Gfp) -> Option<Purpose> {
        match self {
            Purpose::HugeLocal(_) => Some(Purpose::HugeAny(gfp)),
            Purpose::HugeCopyLocal(_) => Some(Purpose::HugeCopyAny(gfp)),
            _ => None,
        }
    }

    pub(crate) fn order(self) -> Order {
        if self.is_huge() { HUGE } else { Order::ZERO }
    }
}
