//! Rules of the LRU lists.

use super::rule::mechanism;

mechanism! {
    /// Users' pages are kept in the order of their use.
    pub struct LruRules for "lru" {
        /// Each zone has lists of its own, and is reclaimed from on its own, by kswapd, too, until it has been looked at six
        /// times over. As long as some zone has not been, reclaim that frees nothing counts as progress.
        #[rule(since = "up to 4.7", section = "4.1")]
        pub lists_per_zone: bool,
        /// Half of the pages of files are kept inactive, and of anonymous ones a part by the zone's size; later a part by
        /// their own number, of both.
        #[rule(since = "up to 4.6", section = "4.1")]
        pub half_of_files_inactive: bool,
        /// Evicted anonymous pages, too, leave a shadow, pages of both kinds make room for one that comes back, and any use
        /// that counts advances the clock; before, all this was of files only.
        #[rule(since = "5.9", section = "4.1")]
        pub shadows_of_anon: bool,
        /// That a page was active once is remembered of it.
        #[rule(since = "4.20", section = "4.1")]
        pub remembers_workingset: bool,
        /// Pages that wait on a CPU before they are put on the LRU, or moved on it, together.
        #[rule(since = "14 up to 4.15, 15 up to 6.8, then 31", section = "4.1")]
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
        /// A new anonymous page starts on the inactive list, and one use does not make it active; before, it started on the
        /// active one, and one use kept it there.
        #[rule(since = "5.9", section = "4.1")]
        pub new_anon_is_inactive: bool,
    }
}
