//! Rules of file systems and the page cache, for hosts that have them.

use super::rule::{mechanism, variants};

mechanism! {
    /// A file system reads files and its own blocks.
    pub struct FileRules for "files" {
        /// The blocks of inode tables that ext4 reads ahead are asked for as unmovable; before, as
        /// movable. Since 5.7.
        #[rule(section = "11.5")]
        pub reads_inodes_ahead_unmovable: bool,
        /// Movable pages hold the superblock and group descriptors of a mounted ext4.
        /// Up to 3.17.
        #[rule(section = "11.4")]
        pub superblock_is_movable: bool,
        /// Files whose pages are kept in large folios.
        #[rule(section = "4.12")]
        pub large_folios: LargeFolios,
        /// How readahead chooses its windows, and the orders of the folios in them.
        #[rule(section = "4.12")]
        pub readahead: ReadaheadOrder,
    }
}

variants! {
    /// Files whose pages are kept in large folios.
    pub enum LargeFolios {
        /// None: files are in single pages.
        Never,
        /// Those of XFS. Since 5.18; here, of kernels that can migrate large folios.
        Xfs,
        /// Those of XFS and ext4. Since 6.16.
        XfsAndExt4,
    }
}

variants! {
    /// How readahead chooses its windows, and the orders of the folios in them.
    pub enum ReadaheadOrder {
        /// Single pages: windows that follow each other, whether a page is missing or marked.
        SinglePages,
        /// Two orders above the folio that bears the mark; at a miss, order 2.
        AboveMarked,
        /// Two orders above the last window, whose order the open file keeps; at a miss, order 0.
        /// Windows end aligned to their order.
        AboveLast,
    }
}
