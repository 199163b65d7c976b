//! The allocator of Kontig's programs: it puts large arrays on huge pages of the host.
//!
//! The command and the benchmark use it as their `#[global_allocator]`. A simulated terabyte is two
//! gigabytes of engine state, accessed at random: on 4 KiB pages every access would miss the TLB as
//! well as the cache. A machine of 8 GiB has a dozen arrays of 2 to 32 MiB, and gains as well.
//! Allocations below 2 MiB go to the system's allocator.
//!
//! Each run of an experiment is measured on a copy of a machine, and the copy is dropped at its
//! end. A command that runs experiments keeps what was returned (`kept`): the next copy gets
//! these mappings, whose pages the host need not clear again.

mod kept;

use kept::Kept;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Allocations of this size or more have a mapping of their own.
const HUGE_PAGE: usize = 2 << 20;

/// The allocator. `remedy` is printed when the host is out of memory.
pub struct HugePages {
    program: &'static str,
    remedy: &'static str,
    /// Advice for the command that runs.
    advised: OnceLock<&'static str>,
    keeps: AtomicBool,
    kept: Mutex<Kept>,
}

impl HugePages {
    /// The allocator of this program. Out of memory, it ends the program
    /// with a line that names the remedy.
    pub const fn new(program: &'static str, remedy: &'static str) -> HugePages {
        HugePages {
            program,
            remedy,
            advised: OnceLock::new(),
            keeps: AtomicBool::new(false),
            kept: Mutex::new(Kept::NONE),
        }
    }

    /// Keeps large arrays that are returned from now on for the next of the same length.
    pub fn keep(&self) {
        self.keeps.store(true, Ordering::Relaxed);
    }

    /// Sets the remedy for the command that runs. Only the first call counts.
    pub fn advise(&self, remedy: &'static str) {
        self.advised.get_or_init(|| remedy);
    }
}

fn mapped_len(layout: Layout) -> usize {
    layout.size().next_multiple_of(HUGE_PAGE)
}

fn is_large(layout: Layout) -> bool {
    layout.size() >= HUGE_PAGE && layout.align() <= HUGE_PAGE
}

/// Maps zeroed memory aligned to a huge page; null if there is none.
fn map(layout: Layout) -> *mut u8 {
    let len = mapped_len(layout);
    let Some(with_slack) = len.checked_add(HUGE_PAGE) else { return std::ptr::null_mut() };
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: a fresh anonymous mapping at an address of the kernel's choosing touches no existing
    // memory. The parts unmapped again are the ends of that mapping, outside [start, start + len).
    // Advice changes no contents.
    unsafe {
        let base = libc::mmap(std::ptr::null_mut(), with_slack, protection, flags, -1, 0);
        if base == libc::MAP_FAILED {
            return std::ptr::null_mut();
        }
        let base = base.cast::<u8>();
        let before = base.align_offset(HUGE_PAGE);
        let start = base.add(before);
        if before > 0 {
            libc::munmap(base.cast(), before);
        }
        if before < HUGE_PAGE {
            libc::munmap(start.add(len).cast(), HUGE_PAGE - before);
        }
        libc::madvise(start.cast(), len, libc::MADV_HUGEPAGE);
        start
    }
}

/// Resizes a mapping for another layout; null if there is no memory. Its pages move without a copy.
///
/// # Safety
/// `ptr` came from [`map`], and `len` bytes are mapped there.
unsafe fn remap(ptr: *mut u8, len: usize, new: Layout) -> *mut u8 {
    let wanted = mapped_len(new);
    if wanted <= len {
        if wanted < len {
            // SAFETY: the unused end of the mapping.
            unsafe { libc::munmap(ptr.add(wanted).cast(), len - wanted) };
        }
        return ptr;
    }
    let to = map(new);
    if to.is_null() {
        return to;
    }
    // SAFETY: the pages replace untouched ones of a mapping of our own, which is larger.
    let moved = unsafe {
        libc::mremap(ptr.cast(), len, len, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED, to.cast::<libc::c_void>())
    };
    if moved == libc::MAP_FAILED {
        // SAFETY: nothing else knows the new mapping yet.
        unsafe { libc::munmap(to.cast(), wanted) };
        return std::ptr::null_mut();
    }
    to
}

impl HugePages {
    /// The mappings that are kept; none if this program keeps none.
    fn kept(&self) -> Option<MutexGuard<'_, Kept>> {
        let keeps = self.keeps.load(Ordering::Relaxed);
        keeps.then(|| self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A mapping of any contents: one that was kept, or else a new one.
    fn again(&self, layout: Layout) -> *mut u8 {
        let kept = self.kept().and_then(|mut kept| kept.take(mapped_len(layout)));
        kept.unwrap_or_else(|| map(layout))
    }

    /// Returns the allocation, or ends the program with one line and exit code 1. Output written so
    /// far is kept; without memory nothing else can be done.
    #[inline]
    fn there(&self, ptr: *mut u8, layout: Layout) -> *mut u8 {
        if ptr.is_null() {
            self.end(layout.size());
        }
        ptr
    }

    #[cold]
    fn end(&self, bytes: usize) -> ! {
        use std::io::Write;
        // Standard error has no buffer, and formatting numbers takes no memory.
        let (program, kib) = (self.program, bytes.div_ceil(1024));
        let remedy = self.advised.get().unwrap_or(&self.remedy);
        let _ = writeln!(std::io::stderr(), "{program}: the host has no {kib} KiB of memory left: {remedy}");
        // SAFETY: ending the process at once runs no code that could need memory.
        unsafe { libc::_exit(1) }
    }
}

// SAFETY: small layouts are passed through to `System` unchanged, in every method by the same test.
// Large ones get a mapping of their own of at least their size, aligned to 2 MiB, and return it
// whole. It is new and zeroed by the kernel, or one that an allocation of the same length returned
// and nobody else has; `alloc_zeroed` gets a new one.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.there(if is_large(layout) { self.again(layout) } else { unsafe { System.alloc(layout) } }, layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.there(if is_large(layout) { map(layout) } else { unsafe { System.alloc_zeroed(layout) } }, layout)
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        if is_large(layout) {
            // SAFETY: `ptr` came from `map` with this layout, so exactly this range is mapped, and
            // nobody uses it any more.
            unsafe {
                match self.kept() {
                    Some(mut kept) => kept.keep(ptr, mapped_len(layout)),
                    None => _ = libc::munmap(ptr.cast(), mapped_len(layout)),
                }
            }
        } else {
            unsafe { System.dealloc(ptr, layout) }
        }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees a valid size; the alignment is the old one.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if is_large(layout) && is_large(new) {
            // SAFETY: `ptr` came from `map` with the old layout.
            return self.there(unsafe { remap(ptr, mapped_len(layout), new) }, new);
        }
        if !is_large(layout) && !is_large(new) {
            return self.there(unsafe { System.realloc(ptr, layout, size) }, new);
        }
        // SAFETY: both are at least as large as the copy, and the new one is not shared yet.
        unsafe {
            let to = self.alloc(new);
            to.copy_from_nonoverlapping(ptr, layout.size().min(size));
            self.dealloc(ptr, layout);
            to
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_that_grows_and_shrinks_keeps_its_contents_and_stays_on_huge_pages() {
        let pages = HugePages::new("test", "none");
        let sizes =
            [100, 5 << 20, HUGE_PAGE - 1, HUGE_PAGE, HUGE_PAGE + 1, 6 * HUGE_PAGE, 3 * HUGE_PAGE, HUGE_PAGE, 4096];
        let layout = |size| Layout::from_size_align(size, 8).expect("a valid layout");
        // SAFETY: each size is the block's at that time, and only bytes within it are accessed.
        unsafe {
            let mut block = pages.alloc(layout(sizes[0]));
            for i in 0..sizes[0] {
                *block.add(i) = i as u8;
            }
            for size in sizes.windows(2) {
                block = pages.realloc(block, layout(size[0]), size[1]);
                *block.add(size[1] - 1) = 7;
                assert!((0..sizes[0]).all(|i| *block.add(i) == i as u8), "from {} to {} bytes", size[0], size[1]);
                assert!(!is_large(layout(size[1])) || block.align_offset(HUGE_PAGE) == 0);
            }
            pages.dealloc(block, layout(sizes[sizes.len() - 1]));
        }
    }

    #[test]
    fn a_returned_array_is_the_next_of_its_length_unless_that_must_be_zeroed() {
        let pages = HugePages::new("test", "none");
        pages.keep();
        let layout = |size| Layout::from_size_align(size, 8).expect("a valid layout");
        let (small, large) = (layout(HUGE_PAGE), layout(3 * HUGE_PAGE));
        // SAFETY: blocks are accessed within their sizes while they are allocated, and returned
        // once with their layouts.
        unsafe {
            let (a, b) = (pages.alloc(large), pages.alloc(large));
            a.write_bytes(7, large.size());
            [a, b].iter().for_each(|block| pages.dealloc(*block, large));
            let zeroed = pages.alloc_zeroed(large);
            assert!((0..large.size()).all(|i| *zeroed.add(i) == 0));
            let other = pages.alloc(small);
            assert!(![a, b].contains(&zeroed) && ![a, b].contains(&other));
            assert_eq!([pages.alloc(large), pages.alloc(large)], [b, a], "the last returned first");
            assert!(![a, b].contains(&pages.alloc(large)), "each only once");
            for _ in 0..1000 {
                pages.dealloc(pages.alloc(small), small);
            }
            assert_eq!(pages.kept().map(|kept| kept.len()), Some(1));
            [a, b].iter().for_each(|block| pages.dealloc(*block, large));
            for _ in 0..1000 {
                pages.dealloc(pages.alloc(small), small);
            }
            assert_eq!(pages.kept().map(|kept| kept.len()), Some(1), "those that nobody asked for are gone");
        }
    }
}
