//! Rules of the LRU lists.

use super::rule::mechanism;
use crate::types::Backing;

mechanism! {
    /// Users' pages are kept in the order of their use.
    pub struct LruRules for "lru" {
        /// Each zone has its own lists and is reclaimed on its own, by kswapd too, until its pages
        /// have been scanned six times over. While any zone has not been, reclaim that frees
        /// nothing counts as progress. Up to 4.7.
        #[rule(section = "4.1")]
        pub lists_per_zone: bool,
        /// Half of the file pages are kept inactive, and a share of the anonymous ones that depends
        /// on the size of the zone; later, for both, on the number of such pages.
        #[rule(section = "4.1")]
        pub half_of_files_inactive: bool,
        /// An evicted page of a file leaves a shadow, by which its refault is known. Since 3.15.
        #[rule(section = "4.1.2")]
        pub shadows_of_files: bool,
        /// Evicted anonymous pages leave shadows too, a refault makes room among pages of both
        /// kinds, and every activation advances the clock; before, all of this was for file pages
        /// only.
        #[rule(section = "4.1")]
        pub shadows_of_anon: bool,
        /// Writing to a page of the page cache counts as a use, as reading it does: the second one
        /// activates it. Up to 4.6.
        #[rule(section = "4.1")]
        pub writes_count_as_use: bool,
        /// A page of a file that comes back because it is written anew is a refault, as one that is
        /// read is; later it is a new page, since what it held is not wanted. Up to 4.16 (a
        /// recalled date; 4.19 was read): 4.7 added the test, but the flag did not reach it.
        #[rule(section = "4.1")]
        pub writes_refault: bool,
        /// A page remembers that it was active once (PG_workingset).
        #[rule(section = "4.1")]
        pub remembers_workingset: bool,
        /// Pages that a CPU collects before it adds them to the LRU, or moves them on it, together:
        /// 14 up to 4.15, 15 up to 6.8, then 31.
        #[rule(section = "4.1")]
        pub batch: u32,
        /// Pages that are freed together are freed first to last, at most 31 at a time; before,
        /// last to first. Since 6.9.
        #[rule(section = "4.1")]
        pub frees_in_order: bool,
        /// A page that only its batch still holds is freed at once when the batch is drained;
        /// before, it joined the LRU and left it again.
        #[rule(section = "4.1")]
        pub drops_dead_pages: bool,
        /// The shadow of an evicted page holds the node's age before that eviction; before, after
        /// it.
        #[rule(section = "4.1")]
        pub shadow_before_aging: bool,
        /// A refault counts on the node that the page was evicted from, whose clock advances if the
        /// page is active at once. Up to 6.4; then on the node of its new frame.
        #[rule(section = "4.1")]
        pub refaults_where_evicted: bool,
        /// A new anonymous page starts on the inactive list, and one use does not activate it;
        /// before, it started on the active list, and one use kept it there.
        #[rule(section = "4.1")]
        pub new_anon_is_inactive: bool,
    }
}

impl LruRules {
    /// Whether an evicted page of this kind leaves a shadow.
    pub(crate) fn leaves_shadow(&self, backing: Backing) -> bool {
        match backing {
            Backing::Anon => self.shadows_of_anon,
            Backing::File => self.shadows_of_files,
        }
    }
}
