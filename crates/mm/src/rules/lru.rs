//! Rules of the LRU lists.

use super::rule::mechanism;

mechanism! {
    /// Users' pages are kept in the order of their use.
    pub struct LruRules for "lru" {
        /// Pages that wait on a CPU before they are put on the LRU, or moved on it, together.
        #[rule(since = "15 up to 6.8, then 31", section = "4.1")]
        pub batch: u32,
        /// A new anonymous page starts on the inactive list; before, on the active one.
        #[rule(since = "5.9", section = "4.1")]
        pub new_anon_is_inactive: bool,
    }
}
