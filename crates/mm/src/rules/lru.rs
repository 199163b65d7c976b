//! Rules of the LRU lists.

use super::rule::mechanism;

mechanism! {
    /// Users' pages are kept in the order of their use.
    pub struct LruRules for "lru" {
        /// Pages that wait on a CPU before they are put on the LRU, or moved on it, together.
        #[rule(since = "15 up to 6.8, then 31", section = "4.1")]
        pub batch: u32,
        /// Pages that are freed together are freed first to last, at most 31 at a time; before, last to first.
        #[rule(since = "6.9", section = "4.1")]
        pub frees_in_order: bool,
        /// A page that only its batch still holds when that is moved is freed at once; before, it joined the LRU and left
        /// it again.
        #[rule(since = "by 7.2", section = "4.1")]
        pub drops_dead_pages: bool,
        /// The shadow of an evicted page has the node's age before its own eviction; before, with that.
        #[rule(since = "by 6.1", section = "4.1")]
        pub shadow_before_aging: bool,
        /// A new anonymous page starts on the inactive list; before, on the active one.
        #[rule(since = "5.9", section = "4.1")]
        pub new_anon_is_inactive: bool,
    }
}
