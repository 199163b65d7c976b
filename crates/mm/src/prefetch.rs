//! Prefetching from the host's memory.
//!
//! Lists and page tables of a large machine are accessed at random, and each cache miss is waited
//! for. A line requested some operations ahead has arrived by then. A prefetch decides nothing, and
//! nothing waits for it.

/// Prefetches the cache line at the address.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch accesses nothing: any address, mapped or not, is allowed. Every x86-64 CPU
    // has SSE.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
