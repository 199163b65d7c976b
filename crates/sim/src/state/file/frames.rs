//! State of frames that hold pages of files or of swap, beside the engine's: the kernel's page
//! flags that the LRU does not need, and the private word that some of them use.

use super::slab::Object;
use kontig_mm::{Order, Pfn, prefetch};

/// Page flags, named as in the kernel, and the order of the folio that the page is in. The flags of
/// a large folio are those of its first page; of the others only [`Flags::FILE`] and the order are
/// set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Flags(u16);

const ORDER_BIT: u32 = 12;

impl Flags {
    /// It is being read; nobody may use or take it.
    pub(crate) const LOCKED: Flags = Flags(1);
    /// It differs from its copy on the disk.
    pub(crate) const DIRTY: Flags = Flags(2);
    /// It is being written to the disk.
    pub(crate) const WRITEBACK: Flags = Flags(4);
    /// Its next reader starts readahead.
    pub(crate) const READAHEAD: Flags = Flags(8);
    /// A task waits for it.
    pub(crate) const WAITERS: Flags = Flags(16);
    /// The word is a buffer head of its file system.
    pub(crate) const PRIVATE: Flags = Flags(32);
    /// The word is its slot in swap.
    pub(crate) const SWAP_CACHE: Flags = Flags(64);
    /// It belongs to a file: its owner word is its place in the page cache.
    pub(crate) const FILE: Flags = Flags(128);
    /// Its file system holds its buffers for good: it can be neither freed nor moved.
    pub(crate) const HELD: Flags = Flags(256);

    /// Not a flag: any order but 0.
    pub(crate) const LARGE: Flags = Flags(15 << ORDER_BIT);

    /// No others than that it belongs to a file, in a folio of this order.
    const fn of_folio(order: Order) -> Flags {
        Flags(Flags::FILE.0 | (order.get() as u16) << ORDER_BIT)
    }

    /// The order of the folio that it is in.
    #[inline(always)]
    pub(crate) const fn order(self) -> Order {
        Order::new((self.0 >> ORDER_BIT) as u8)
    }

    /// Whether any of these is set.
    #[inline(always)]
    pub(crate) const fn any(self, of: Flags) -> bool {
        self.0 & of.0 != 0
    }
}

impl std::ops::BitOr for Flags {
    type Output = Flags;
    fn bitor(self, o: Flags) -> Flags {
        Flags(self.0 | o.0)
    }
}

/// Flags and words of all frames; untouched memory of the host until a page of a file or of swap
/// uses them.
#[derive(Clone, Default)]
pub(crate) struct Frames {
    flags: Vec<u16>,
    words: Vec<u32>,
}

impl Frames {
    pub(crate) const BYTES_PER_FRAME: usize = 6;

    pub(crate) fn new(frames: usize) -> Frames {
        Frames { flags: vec![0; frames], words: vec![0; frames] }
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, pfn: Pfn) {
        prefetch(self.flags.as_ptr().wrapping_add(pfn.index()));
    }

    #[inline(always)]
    pub(crate) fn flags(&self, pfn: Pfn) -> Flags {
        Flags(self.flags.get(pfn.index()).copied().unwrap_or(0))
    }
    /// The first page of the folio that a page is in. Folios are aligned to their size.
    #[inline(always)]
    pub(crate) fn head(&self, pfn: Pfn) -> Pfn {
        let order = self.flags(pfn).order();
        if order == Order::ZERO { pfn } else { pfn.block_start(order) }
    }
    /// Makes these frames a folio of a file, without any other flag.
    #[inline(always)]
    pub(crate) fn begin_folio(&mut self, pfn: Pfn, order: Order) {
        self.fill(pfn, order, Flags::of_folio(order));
    }
    /// Forgets all of a folio.
    #[inline(always)]
    pub(crate) fn end_folio(&mut self, pfn: Pfn, order: Order) {
        self.fill(pfn, order, Flags::default());
    }
    #[inline(always)]
    fn fill(&mut self, pfn: Pfn, order: Order, flags: Flags) {
        match order {
            Order::ZERO => self.reset(pfn, flags),
            _ => self.flags[pfn.index()..pfn.plus(order.pages()).index()].fill(flags.0),
        }
    }
    /// Replaces all flags by these.
    #[inline(always)]
    pub(crate) fn reset(&mut self, pfn: Pfn, flags: Flags) {
        self.flags[pfn.index()] = flags.0;
    }
    #[inline(always)]
    pub(crate) fn set(&mut self, pfn: Pfn, flags: Flags) {
        self.flags[pfn.index()] |= flags.0;
    }
    /// Clears flags; whether any was set.
    #[inline(always)]
    pub(crate) fn clear(&mut self, pfn: Pfn, flags: Flags) -> bool {
        let all = &mut self.flags[pfn.index()];
        let was = *all & flags.0 != 0;
        *all &= !flags.0;
        was
    }
    #[inline(always)]
    pub(crate) fn word(&self, pfn: Pfn) -> u32 {
        self.words[pfn.index()]
    }
    #[inline(always)]
    pub(crate) fn set_word(&mut self, pfn: Pfn, word: u32) {
        self.words[pfn.index()] = word;
    }
    /// Attaches a buffer head to each page of a folio.
    pub(crate) fn set_buffers(&mut self, folio: Pfn, objects: impl IntoIterator<Item = Object>) {
        self.set(folio, Flags::PRIVATE);
        for (i, object) in (0..).zip(objects) {
            self.set_word(folio.plus(i), object.number());
        }
    }
    /// Moves the state of a folio to other frames.
    pub(crate) fn folio_moved(&mut self, from: Pfn, to: Pfn, order: Order) {
        (0..order.pages()).for_each(|i| self.moved(from.plus(i), to.plus(i)));
    }
    /// Moves a page's state to another frame.
    pub(crate) fn moved(&mut self, from: Pfn, to: Pfn) {
        if let Some(flags) = self.flags.get_mut(from.index()) {
            self.flags[to.index()] = std::mem::take(flags);
            self.words[to.index()] = self.words[from.index()];
        }
    }
}
