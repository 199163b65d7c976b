//! The swap area with its I/O in progress, and changes that the engine must still be told.

use super::area::{Slot, Swap};
use super::readahead::Window;
use kontig_mm::{Pfn, Shadow};

/// The swap area of a machine, with its I/O in progress.
#[derive(Clone)]
pub(crate) struct Swapping {
    pub(crate) area: Swap,
    /// The number of its disk.
    pub(crate) device: u8,
    /// The readahead window on a hard disk.
    pub(crate) window: Window,
    /// Whether the free space has changed since the engine was told.
    changed: bool,
    /// Pages whose writeback began since the engine was told.
    begun: Vec<Pfn>,
    pub(crate) writeback: u64,
}

impl Swapping {
    /// An area on the disk of this number.
    pub(crate) fn new(area: Swap, device: u8) -> Swapping {
        let window = Window::default();
        Swapping { area, device, window, changed: false, begun: Vec::new(), writeback: 0 }
    }

    /// Whether the engine must be told something.
    #[inline(always)]
    pub(crate) fn has_deferred(&self) -> bool {
        self.changed || !self.begun.is_empty()
    }

    /// Records the start of a page's writeback.
    pub(crate) fn begin_write(&mut self, pfn: Pfn) {
        self.begun.push(pfn);
        self.writeback += 1;
    }

    /// Takes the pages whose writeback began; the caller tells the engine about them and the free
    /// space.
    pub(crate) fn told(&mut self) -> impl ExactSizeIterator<Item = Pfn> {
        self.changed = false;
        self.begun.drain(..)
    }

    /// Removes a page from the swap cache.
    pub(crate) fn remove(&mut self, slot: Slot, shadow: Option<Shadow>) {
        self.area.remove(slot, shadow);
        self.changed = true;
    }

    /// Drops a page table entry that named the slot.
    pub(crate) fn forget(&mut self, slot: Slot) {
        self.area.forget(slot);
        self.changed = true;
    }
}
