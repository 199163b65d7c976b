//! The purposes of a fault's allocations, with the flags and order of each.

use crate::base::memory_bus::Written;
use kontig_mm::types::HPAGE_PMD_ORDER;
use kontig_mm::{Gfp, Order, Pfn};

/// The purpose of a fault's allocation.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Purpose {
    /// A page table, deposited with the huge page if there is one.
    Table(Option<Pfn>),
    /// A page that the program then writes to.
    Small(Written),
    /// A page for a copy of a shared one.
    Copy,
    /// The first attempt at a huge page: the local node, with little effort.
    HugeLocal(Gfp),
    /// The second attempt: any node, with the effort that `madvise` and `defrag` allow.
    HugeAny(Gfp),
    /// A huge page for a copy of a shared one, with the same two attempts.
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

    /// The attempt that follows this one, with these flags; `None` after the second.
    pub(crate) fn second(self, gfp: Gfp) -> Option<Purpose> {
        match self {
            Purpose::HugeLocal(_) => Some(Purpose::HugeAny(gfp)),
            Purpose::HugeCopyLocal(_) => Some(Purpose::HugeCopyAny(gfp)),
            _ => None,
        }
    }

    pub(crate) fn order(self) -> Order {
        if self.is_huge() { HPAGE_PMD_ORDER } else { Order::ZERO }
    }
}
