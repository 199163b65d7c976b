//! Which file system a disk has, and what that makes of its files in memory.
//!
//! ext4 keeps a buffer head with every page that is written to. XFS of 4.20 keeps none, where a block is a page, but has a log
//! and buffers of its own for what lies on the disk beside the data ([`super::xfs`]). What ext4 has of the kind is left out.
//! Source: `fs/ext4`, `fs/xfs` (`xfs_aops.c` of 4.18 on: no buffer heads).

use super::{Cache, Files};
use kontig_mm::Gfp;
use serde::{Deserialize, Serialize};

/// A file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystem {
    /// ext4, without its journal.
    #[default]
    Ext4,
    /// XFS, with its log and its metadata.
    Xfs,
}

impl FileSystem {
    /// Whether nothing else was said: machine files leave it out then.
    pub(crate) fn is_default(&self) -> bool {
        *self == FileSystem::default()
    }

    /// The slab cache of its inodes.
    pub(crate) const fn inodes(self) -> Cache {
        match self {
            FileSystem::Ext4 => Cache::Inode,
            FileSystem::Xfs => Cache::XfsInode,
        }
    }

    /// What pages of its files are asked for with: XFS's must not lead into a file system again (`xfs_setup_inode`), but for the
    /// one that a fault waits for.
    const fn page_gfp(self) -> Gfp {
        match self {
            FileSystem::Ext4 => Gfp::HIGHUSER_MOVABLE,
            FileSystem::Xfs => Gfp::HIGHUSER_MOVABLE.without(Gfp::FS),
        }
    }

    /// Whether a page that is written to has a buffer head.
    pub(crate) const fn has_buffer_heads(self) -> bool {
        matches!(self, FileSystem::Ext4)
    }
}

impl Files {
    /// The file system that a file lies in.
    pub(crate) fn filesystem(&self, inode: u32) -> FileSystem {
        self.filesystem_of(self.disk_of(inode))
    }

    /// What pages of a file are asked for with.
    pub(crate) fn page_gfp(&self, inode: u32) -> Gfp {
        self.filesystem(inode).page_gfp()
    }

    /// The file system of a disk.
    pub(crate) fn filesystem_of(&self, disk: u8) -> FileSystem {
        if self.xfs.get(usize::from(disk)).is_some_and(Option::is_some) { FileSystem::Xfs } else { FileSystem::Ext4 }
    }
}
