//! What is known of frames that hold pages of files or of swap, beside what the engine knows: the kernel's page flags that the
//! LRU does not need, and the word that goes with some of them.

use super::slab::Object;
use kontig_mm::{Pfn, prefetch};

/// Flags of a page, as the kernel's of the same names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Flags(u8);

impl Flags {
    /// It is being read: nobody may use or take it.
    pub(crate) const LOCKED: Flags = Flags(1);
    /// It is not as it is on the disk.
    pub(crate) const DIRTY: Flags = Flags(2);
    /// It is being written.
    pub(crate) const WRITEBACK: Flags = Flags(4);
    /// Whoever reads it reads ahead.
    pub(crate) const READAHEAD: Flags = Flags(8);
    /// Somebody waits for it.
    pub(crate) const WAITERS: Flags = Flags(16);
    /// The word is a buffer head of its file system.
    pub(crate) const PRIVATE: Flags = Flags(32);
    /// The word is its place in swap.
    pub(crate) const SWAP_CACHE: Flags = Flags(64);
    /// It is of a file: the number that the engine keeps is its place in the page cache.
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

/// The flags and words of all frames; untouched memory of the host until a page of a file or of swap is there.
#[derive(Clone, Default)]
pub(crate) struct Frames {
    flags: Vec<u8>,
    words: Vec<u32>,
}

impl Frames {
    /// Bytes for each frame.
    pub(crate) const BYTES_PER_FRAME: usize = 5;

    pub(crate) fn new(frames: usize) -> Frames {
        Frames { flags: vec![0; frames], words: vec![0; frames] }
    }

    /// Asks for what is known of a frame.
    #[inline(always)]
    pub(crate) fn prefetch(&self, pfn: Pfn) {
        prefetch(self.flags.as_ptr().wrapping_add(pfn.index()));
    }

    #[inline(always)]
    pub(crate) fn flags(&self, pfn: Pfn) -> Flags {
        Flags(self.flags.get(pfn.index()).copied().unwrap_or(0))
    }
    /// Makes these its flags, and no others.
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
    /// The page has a buffer head from now on.
    pub(crate) fn set_buffers(&mut self, pfn: Pfn, object: Object) {
        self.set(pfn, Flags::PRIVATE);
        self.set_word(pfn, object.number());
    }
    /// Another frame has the page from now on.
    pub(crate) fn moved(&mut self, from: Pfn, to: Pfn) {
        if let Some(flags) = self.flags.get_mut(from.index()) {
            self.flags[to.index()] = std::mem::take(flags);
            self.words[to.index()] = self.words[from.index()];
        }
    }
}
