//! Rules of boot: how memory first gets to the free lists.

use super::rule::mechanism;

mechanism! {
    /// Memory is handed to the allocator at boot.
    pub struct BootRules for "boot" {
        /// Each block goes to the tail of its list, so that low memory is used first; before, to the head, so that high
        /// memory was.
        #[rule(since = "5.10", section = "0.3")]
        pub frees_to_tail: bool,
        /// What `vm.min_free_kbytes` is by the size of memory is computed after huge pages have raised it, and replaces
        /// that.
        #[rule(since = "4.1–4.6", section = "1.3")]
        pub forgets_raised_min_free: bool,
    }
}
