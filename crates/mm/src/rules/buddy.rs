//! Rules of the buddy lists.

use super::rule::{mechanism, variants};

variants! {
    /// Which list a free block is kept on.
    pub enum FreeLists {
        /// That of the type it was freed as, even where its pageblock has since changed type.
        #[since("up to 6.9")]
        AsFreed,
        /// Always that of its pageblock's type: merging across pageblocks retypes the absorbed one, larger blocks are
        /// freed pageblock by pageblock, and every block taken or moved is counted on its own.
        #[since("6.10")]
        AsPageblock,
    }
}

mechanism! {
    /// Free blocks are listed by order and type, split and merged.
    pub struct BuddyRules for "buddy" {
        /// Which list a free block is kept on.
        #[rule(section = "2.2")]
        pub free_lists: FreeLists,
        /// A whole pageblock of the HIGHATOMIC reserve merges with its buddy whatever that one's type is; later, only
        /// with one of the reserve.
        #[rule(since = "up to 5.17", section = "2.2")]
        pub reserved_blocks_merge: bool,
    }
}
