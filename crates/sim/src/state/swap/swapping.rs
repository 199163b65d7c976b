//! The swap area of a machine with what is under way there, and what the engine has not been told of it.

use super::readahead::Window;
use super::{Slot, Swap};
use kontig_mm::{Pfn, Shadow};

/// The swap area of a machine, and what is under way there.
#[derive(Clone)]
pub(crate) struct Swapping {
    pub(crate) area: Swap,
    /// The disk it lies on.
    pub(crate) device: u8,
    /// What is read ahead on a disk with a head.
    pub(crate) window: Window,
    /// The room left has changed without the engine being told.
    changed: bool,
    /// Pages whose writeback began since the last errand.
    begun: Vec<Pfn>,
    /// Pages that are being written.
    pub(crate) writeback: u64,
}

impl Swapping {
    /// An area on a disk of this number.
    pub(crate) fn new(area: Swap, device: u8) -> Swapping {
        let window = Window::default();
        Swapping { area, device, window, changed: false, begun: Vec::new(), writeback: 0 }
    }

    /// Whether the engine is to be told something.
    #[inline(always)]
    pub(crate) fn has_deferred(&self) -> bool {
        self.changed || !self.begun.is_empty()
    }

    /// A page is being written from now on.
    pub(crate) fn begin_write(&mut self, pfn: Pfn) {
        self.begun.push(pfn);
        self.writeback += 1;
    }

    /// The engine is told how much room is left: the pages that are being written since it last was.
    pub(crate) fn told(&mut self) -> impl ExactSizeIterator<Item = Pfn> {
        self.changed = false;
        self.begun.drain(..)
    }

    /// The page leaves the swap cache.
    pub(crate) fn remove(&mut self, slot: Slot, shadow: Option<Shadow>) {
        self.area.remove(slot, shadow);
        self.changed = true;
    }

    /// One page table less names the slot.
    pub(crate) fn forget(&mut self, slot: Slot) {
        self.area.forget(slot);
        self.changed = true;
    }
}
