//! Private memory of this process, for tests of a host's memory.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ffi::c_void;

/// Private memory of this process; it goes back when this is dropped.
pub struct OwnMemory {
    mapped: *mut c_void,
    mapped_len: usize,
    /// Bytes in front of the first that is aligned as asked for.
    skipped: usize,
    len: usize,
}

impl OwnMemory {
    /// Maps `len` bytes from a multiple of `align` on. None is in memory yet.
    ///
    /// # Errors
    /// Why the kernel refuses.
    pub fn new(len: usize, align: usize) -> Result<OwnMemory, String> {
        let mapped_len = len.checked_add(align).ok_or("more than there are addresses for")?;
        // SAFETY: a fresh mapping at an address of the kernel's choosing touches no existing
        // memory.
        let mapped = unsafe {
            mmap_anonymous(std::ptr::null_mut(), mapped_len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        };
        let mapped = mapped.map_err(|e| format!("{len} bytes cannot be mapped: {e}"))?;
        let skipped = (mapped as usize).next_multiple_of(align) - mapped as usize;
        Ok(OwnMemory { mapped, mapped_len, skipped, len })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn address(&self) -> usize {
        self.mapped as usize + self.skipped
    }

    /// Gives the kernel advice about a part of it.
    ///
    /// # Errors
    /// Why the kernel refuses.
    pub fn advise(&self, at: usize, len: usize, advice: Advice) -> Result<(), String> {
        assert!(at + len <= self.len, "advice beyond the mapping");
        // SAFETY: the range lies in this mapping, to which nobody has a reference; its contents do
        // not matter.
        let done = unsafe { madvise(self.mapped.byte_add(self.skipped + at), len, advice) };
        match done {
            // A kernel without huge pages knows no advice about them, and has small ones anyway.
            Err(rustix::io::Errno::INVAL) if advice == Advice::LinuxNoHugepage => Ok(()),
            done => done.map_err(|e| format!("{advice:?} was refused: {e}")),
        }
    }

    /// Writes one byte to fault its page in.
    pub fn touch(&self, at: usize) {
        assert!(at < self.len, "a touch beyond the mapping");
        // SAFETY: the byte lies in this mapping, which can be written and to which nobody has a
        // reference. Volatile, as the write is made for its effect on the page tables.
        unsafe { self.mapped.cast::<u8>().add(self.skipped + at).write_volatile(1) }
    }

    /// Writes zeros over a part of it.
    pub fn clear(&self, at: usize, len: usize) {
        assert!(at + len <= self.len, "a write beyond the mapping");
        // SAFETY: as for a single byte; the compiler cannot drop it, as the memory is visible to it
        // by its address only.
        unsafe { self.mapped.cast::<u8>().add(self.skipped + at).write_bytes(0, len) };
        std::hint::black_box(self.mapped);
    }
}

impl Drop for OwnMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nobody has a reference to it. If the kernel
        // refuses, the memory goes back at the end of the process.
        let _ = unsafe { munmap(self.mapped, self.mapped_len) };
    }
}
