//! Rules of the buddy lists.

use super::rule::{mechanism, variants};

variants! {
    /// The list a free block is kept on.
    pub enum FreeLists {
        /// The list of the type it was freed as, even if its pageblock has changed type since. Up
        /// to 6.9.
        AsFreed,
        /// Always the list of its pageblock's type. Merging across pageblocks retypes the absorbed
        /// one, larger blocks are freed pageblock by pageblock, and every block taken or moved is
        /// counted on its own. Since 6.10.
        AsPageblock,
    }
}

mechanism! {
    /// Free blocks are listed by order and type, split and merged.
    pub struct BuddyRules for "buddy" {
        /// The list a free block is kept on.
        #[rule(section = "2.2")]
        pub free_lists: FreeLists,
        /// A whole pageblock of the HIGHATOMIC reserve merges with its buddy whatever the buddy's
        /// type; later, only with another of the reserve. Up to 5.17.
        #[rule(section = "2.2")]
        pub reserved_blocks_merge: bool,
        /// A free block that comes under another type goes to the tail of its list; before, to the
        /// head. Since 5.10.
        #[rule(section = "2.5.2")]
        pub moves_to_tail: bool,
    }
}
