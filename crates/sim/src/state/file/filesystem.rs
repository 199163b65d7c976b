//! The file systems of disks, and their effects on memory.
//!
//! ext4 keeps a buffer head with every page written to. XFS of 4.20 keeps none if a block is a
//! page, but has a log and buffers of its own for metadata ([`super::xfs`]). The equivalents of
//! ext4 are left out. Source: `fs/ext4`, `fs/xfs` (`xfs_aops.c` of 4.18 on: no buffer heads).

use super::{Cache, Files, Folios};
use kontig_mm::rules::LargeFolios;
use kontig_mm::types::HPAGE_PMD_ORDER;
use kontig_mm::{Gfp, Memory, Order};
use serde::{Deserialize, Serialize};

/// The largest folio of a file (`MAX_PAGECACHE_ORDER`): a huge page.
const LARGEST_FOLIO: Order = HPAGE_PMD_ORDER;

/// The file system on a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystem {
    /// ext4, without its journal. Of its metadata, inodes are read.
    #[default]
    Ext4,
    /// XFS, with its log and its metadata.
    Xfs,
}

impl FileSystem {
    /// Whether it is the default, which machine files omit.
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

    /// Flags for pages of its files: allocations for XFS must not re-enter a file system
    /// (`xfs_setup_inode`), except for the page that a fault waits for.
    const fn page_gfp(self) -> Gfp {
        match self {
            FileSystem::Ext4 => Gfp::HIGHUSER_MOVABLE,
            FileSystem::Xfs => Gfp::HIGHUSER_MOVABLE.without(Gfp::FS),
        }
    }

    /// Whether a page written to has a buffer head.
    pub(crate) const fn has_buffer_heads(self) -> bool {
        matches!(self, FileSystem::Ext4)
    }
}

impl Files {
    /// The file system of a file.
    pub(crate) fn filesystem(&self, inode: u32) -> FileSystem {
        self.filesystem_of(self.disk_of(inode))
    }

    /// Flags for pages of a file.
    pub(crate) fn page_gfp(&self, inode: u32) -> Gfp {
        self.filesystem(inode).page_gfp()
    }

    /// The rule and the limit for the folios of a file.
    pub(crate) fn folios_of(&self, m: &Memory, inode: u32) -> Folios {
        let rules = m.profile().files;
        let has_large = match self.filesystem(inode) {
            FileSystem::Xfs => rules.large_folios != LargeFolios::Never,
            FileSystem::Ext4 => rules.large_folios == LargeFolios::XfsAndExt4,
        };
        let largest = if has_large { LARGEST_FOLIO } else { Order::ZERO };
        Folios { rule: rules.readahead, largest }
    }

    /// The file system of a disk.
    pub(crate) fn filesystem_of(&self, disk: u8) -> FileSystem {
        if self.xfs.get(usize::from(disk)).is_some_and(Option::is_some) { FileSystem::Xfs } else { FileSystem::Ext4 }
    }
}
