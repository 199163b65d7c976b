//! XFS: its metadata in memory, most of it unmovable and of mixed lifetimes.
//!
//! An inode that was ever changed has a log item while it is in memory. A change is formatted into
//! a log vector, an object of `kmalloc-512`, which lives until its checkpoint is in the log
//! ([`log`]). Inodes lie on the disk in clusters, directory entries in blocks; to be read or
//! written they need buffers of whole pages ([`buffers`]), which stay until the shrinker frees
//! them. Logged items are written in place when log space runs short; by then the buffer may be
//! gone, and is read again.
//!
//! So pages for metadata are allocated all the time and freed in another order. That leaves holes
//! in unmovable pageblocks, which movable pages then fill.
//!
//! Logged changes: creation of a file, its first write within a tick (the timestamps), its
//! writeback (length and first extents), and the first read since it was written (`relatime`). Left
//! out: the trees of free space and of inodes, a directory's own inode and hash, extents that no
//! longer fit into the inode, and the CPU time of all this. Truncation and eviction are not logged.
//! Source: Linux 4.20 and 5.4, `fs/xfs` (`xfs_log_cil.c`, `xfs_log.c`, `xfs_trans_ail.c`,
//! `xfs_inode_item.c`, `xfs_inode.c`, `xfs_buf.c`), and `mkfs.xfs` 4.19.

mod buffers;
mod log;

pub(crate) use buffers::Buffers;
pub(crate) use log::{Item, Log, Logged, WORKER_NS};

use super::Files;
use super::space::Space;
use crate::base::queue::Queues;
use kontig_mm::Memory;

/// The XFS of a disk.
#[derive(Clone)]
pub(crate) struct Xfs {
    pub(crate) log: Log,
    pub(crate) buffers: Buffers,
}

impl Xfs {
    /// An empty one, whose log is in the middle of the disk.
    pub(super) fn new(m: &Memory, queues: &mut Queues, space: &mut Space) -> Xfs {
        let all = space.free_blocks();
        let (first, blocks) = space.take(all / 2, log::blocks(all)).unwrap_or((0, 0));
        Xfs { log: Log::new(first, blocks, queues), buffers: Buffers::new(m, queues) }
    }
}

impl Files {
    /// Makes XFS the file system of a disk without files.
    pub(crate) fn make_xfs(&mut self, m: &Memory, queues: &mut Queues, disk: u8) {
        let at = usize::from(disk);
        self.xfs.resize(self.xfs.len().max(at + 1), None);
        self.xfs[at] = Some(Box::new(Xfs::new(m, queues, &mut self.disks[at])));
    }

    /// The XFS of a disk that has one.
    pub(crate) fn xfs(&mut self, disk: u8) -> &mut Xfs {
        self.xfs[usize::from(disk)].as_mut().expect("the disk's file system is XFS")
    }
}
