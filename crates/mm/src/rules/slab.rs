//! Rules of slab caches, for hosts that have them.

use super::rule::mechanism;

mechanism! {
    /// A cache of objects asks for pages.
    pub struct SlabRules for "slab" {
        /// A cache that tries a larger block than it needs wakes kswapd for it. Up to 4.5.
        #[rule(section = "3.9")]
        pub large_try_wakes_kswapd: bool,
    }
}
