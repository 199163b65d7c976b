//! The allocator of Kontig's programs: large arrays are put on huge pages of the host.
//!
//! A program that simulates makes it its `#[global_allocator]`, and the benchmark that measures it does, too. A simulated terabyte is two gigabytes of engine state, reached at random: on 4 KiB pages every access would miss
//! the TLB as well as the cache. Everything below 32 MiB goes to the system's allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;

/// From this size on an allocation is mapped on its own.
const LARGE: usize = 32 << 20;
const HUGE_PAGE: usize = 2 << 20;

/// See the crate.
pub struct HugePages {
    program: &'static str,
    remedy: &'static str,
    /// The remedy of what the program was asked for.
    advised: OnceLock<&'static str>,
}

impl HugePages {
    /// The allocator of a program: where the host has no memory left, it ends it with a line that names the remedy.
    pub const fn new(program: &'static str, remedy: &'static str) -> HugePages {
        HugePages { program, remedy, advised: OnceLock::new() }
    }

    /// Names another remedy from now on, as options differ from command to command. Only the first is kept.
    pub fn advise(&self, remedy: &'static str) {
        self.advised.get_or_init(|| remedy);
    }
}

fn mapped_len(layout: Layout) -> usize {
    layout.size().next_multiple_of(HUGE_PAGE)
}

fn is_large(layout: Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= HUGE_PAGE
}

/// Maps zeroed memory that starts on a huge-page boundary; null if there is none.
fn map(layout: Layout) -> *mut u8 {
    let len = mapped_len(layout);
    let Some(with_slack) = len.checked_add(HUGE_PAGE) else { return std::ptr::null_mut() };
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: a fresh anonymous mapping at an address of the kernel's choosing touches no existing memory. The parts
    // unmapped again are the ends of that mapping, outside [start, start + len). Advice changes no contents.
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

impl HugePages {
    /// The allocation, or the end of the program with one line and the exit code of a failure: what has been written so
    /// far is kept, and there is nothing else that could be done without memory.
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

// SAFETY: small layouts are passed through to `System` unchanged, in every method by the same test. Large ones get a
// mapping of their own of at least their size, aligned to 2 MiB, zeroed by the kernel, and returned whole.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.there(if is_large(layout) { map(layout) } else { unsafe { System.alloc(layout) } }, layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.there(if is_large(layout) { map(layout) } else { unsafe { System.alloc_zeroed(layout) } }, layout)
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        if is_large(layout) {
            // SAFETY: `ptr` came from `map` with this layout, so exactly this range is mapped.
            unsafe { libc::munmap(ptr.cast(), mapped_len(layout)) };
        } else {
            unsafe { System.dealloc(ptr, layout) }
        }
    }
}
