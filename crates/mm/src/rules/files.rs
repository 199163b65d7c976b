//! Rules of file systems, for hosts that have them.

use super::rule::mechanism;

mechanism! {
    /// A file system reads its own blocks.
    pub struct FileRules for "files" {
        /// The blocks of inode tables that ext4 reads ahead are asked for as unmovable; before, as
        /// movable. Since 5.7.
        #[rule(section = "11.5")]
        pub reads_inodes_ahead_unmovable: bool,
    }
}
