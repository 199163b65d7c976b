//! State of frames that hold pages of files or of swap, beside the engine's: the kernel's page
//! flags that the LRU does not need, and the private word that some of them use.

use super::slab::Object;
use kontig_mm::{Pfn, prefetch};

/// Page flags, named as in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Flags(u8);

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
    flags: Vec<u8>,
    words: Vec<u32>,
}

impl Frames {
    pub(crate) const BYTES_PER_FRAME: usize = 5;

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
    /// Attaches a buffer head to the page.
    pub(crate) fn set_buffers(&mut self, pfn: Pfn, object: Object) {
        self.set(pfn, Flags::PRIVATE);
        self.set_word(pfn, object.number());
    }
    /// Moves a page's state to another frame.
    pub(crate) fn moved(&mut self, from: Pfn, to: Pfn) {
        if let Some(flags) = self.flags.get_mut(from.index()) {
            self.flags[to.index()] = std::mem::take(flags);
            self.words[to.index()] = self.words[from.index()];
        }
    }
}
