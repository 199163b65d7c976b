//! Rules of boot: how memory first gets to the free lists.

use super::rule::mechanism;

mechanism! {
    /// Memory is handed to the allocator at boot.
    pub struct BootRules for "boot" {
        /// Each block goes to the tail of its list, so that low memory is used first; before, to
        /// the head, so that high memory was.
        #[rule(section = "0.3")]
        pub frees_to_tail: bool,
        /// `vm.min_free_kbytes` is computed from the size of memory after huge pages have raised
        /// it, which discards the raised value. Since 4.1.
        #[rule(section = "1.3")]
        pub forgets_raised_min_free: bool,
        /// The kernel's image, at 16 MiB, leaves parts of its pageblocks to users. 3.13 does;
        /// where later images have gaps was not looked at.
        #[rule(section = "1.1")]
        pub image_has_gaps: bool,
    }
}
