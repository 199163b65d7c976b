//! Asking the host's CPU for memory before it is needed.
//!
//! Lists and page tables of a large machine are reached at random, and what is not in the cache is waited for. What is
//! asked for some operations ahead is there in time. A request decides nothing and nothing waits for it.

/// Asks the CPU to bring what is at the address into its cache.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch accesses nothing: any address, mapped or not, is allowed. Every x86-64 CPU has SSE.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
