//! The pages that memory lies on.

use kontig_program::HPAGE_PMD_NR;

/// The page table entries in a cache line: those of pages, or of frames, in one aligned group.
pub const PAGES_OF_A_LINE: u32 = 8;
pub(crate) const GROUP: f64 = PAGES_OF_A_LINE as f64;

/// The memory that a program uses, by the size of the pages it is mapped with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mapped {
    /// Small pages in use.
    pub small: u64,
    /// Small pages' worth of memory in use within huge pages.
    pub in_huge: u64,
    /// The huge pages that these lie in.
    pub huge: u64,
    /// Small pages' worth of memory in use within pages of 1 GiB, which are used whole.
    pub in_gigantic: u64,
    /// Small pages in use to each aligned group of eight pages of the program that has any: 8 where
    /// all are used. Their entries in the page table share a cache line.
    pub per_line: f64,
    /// The same of frames: 1 where physical memory is fragmented, 8 where it is contiguous. The
    /// host's entries for such a group share a cache line.
    pub per_group: f64,
}

impl Mapped {
    /// All of a mapping of this many small pages in use, without huge pages, and this many to a
    /// group of frames.
    pub const fn all_small(pages: u64, per_group: f64) -> Mapped {
        Mapped { small: pages, in_huge: 0, huge: 0, in_gigantic: 0, per_line: GROUP, per_group }
    }
    /// The same on folios of 32 KiB and more (mTHP): their small pages lie as these, group by
    /// group.
    pub const fn all_folios(pages: u64) -> Mapped {
        Mapped::all_small(pages, GROUP)
    }
    /// The same on huge pages alone.
    pub const fn all_huge(pages: u64) -> Mapped {
        Mapped { in_huge: pages, huge: pages.div_ceil(HPAGE_PMD_NR as u64), ..Mapped::all_small(0, GROUP) }
    }
    /// The same on pages of 1 GiB alone.
    pub const fn all_gigantic(pages: u64) -> Mapped {
        Mapped { in_gigantic: pages, ..Mapped::all_small(0, GROUP) }
    }
    /// All small pages' worth of memory in use.
    pub const fn pages(self) -> u64 {
        self.small + self.in_huge + self.in_gigantic
    }
    /// The share of them within pages of 2 MiB and more.
    pub(crate) fn large_share(self) -> f64 {
        self.share_of(self.in_huge + self.in_gigantic)
    }
    pub(crate) fn share_of(self, pages: u64) -> f64 {
        if self.pages() == 0 { 0.0 } else { pages as f64 / self.pages() as f64 }
    }
}
