//! XFS's buffers: pages of metadata, and the shrinker that frees them.
//!
//! Inodes of 512 bytes are allocated 32 at a time, for one directory; a directory has a block for
//! each 128 of its entries. A buffer with either consists of single, unmovable pages. A user holds
//! it. An unused one is on its node's list, from which the shrinker frees it once it has passed it
//! as often as the buffer's count says.

use super::log::{Item, Logged};
use crate::base::numa::node_of;
use crate::base::queue::{QueueId, Queues};
use crate::base::sequence::Sequence;
use crate::base::slots::Slots;
use crate::state::file::slab::Object;
use crate::state::file::{Cache, Files};
use kontig_mm::{CpuId, Memory, NodeId, Order, Pfn, Shrinker};
use std::collections::BTreeMap;

/// Inodes of a block, and blocks of a cluster: 16 KiB (`m_inode_cluster_size` with inodes of 512
/// bytes).
const INODES_EACH: u32 = 8;
const CLUSTER: u32 = 4;
/// Entries of a directory's block: 24 bytes for a short name, and 8 of its hash.
const ENTRIES: u32 = 128;
/// The number of files in a directory.
const FILES_OF_DIRECTORY: u64 = 1_000_000;

/// Blocks of the disk that are read and written together.
#[derive(Clone)]
pub(crate) struct Chunk {
    pub(crate) block: u32,
    pub(crate) blocks: u32,
    /// Files whose inodes it holds; empty for a directory's block.
    inodes: Vec<u32>,
    pub(crate) buffer: Option<u32>,
    /// Whether it was never written to the disk.
    pub(crate) is_new: bool,
}

#[derive(Clone, Default)]
struct Directory {
    /// Clusters with room for more inodes.
    roomy: Vec<u32>,
    /// The block for the next entry, and the entries left in it.
    block: Option<u32>,
    left: u32,
}

#[derive(Clone)]
pub(crate) struct Buffer {
    chunk: u32,
    object: Object,
    frames: Vec<Pfn>,
    held: u32,
    /// How often the shrinker passes it (`b_lru_ref`).
    worth: u8,
    /// Whether it is under I/O.
    pub(crate) is_busy: bool,
    pub(crate) logged: Logged,
}

/// Count of any buffer, and of one that an inode was read from (`XFS_INO_REF`) or of a directory
/// (`XFS_DIR_BTREE_REF`).
const WORTH: u8 = 1;
const WORTH_MORE: u8 = 2;

/// The buffers of a file system.
#[derive(Clone)]
pub(crate) struct Buffers {
    pub(crate) all: Slots<Buffer>,
    pub(crate) chunks: Vec<Chunk>,
    directories: BTreeMap<u64, Directory>,
    /// By node: the unused buffers.
    unused: Vec<Sequence>,
    /// Tasks waiting for a buffer under I/O.
    pub(crate) busy: QueueId,
}

impl Buffers {
    pub(super) fn new(m: &Memory, queues: &mut Queues) -> Buffers {
        Buffers {
            all: Slots::default(),
            chunks: Vec::new(),
            directories: BTreeMap::new(),
            unused: vec![Sequence::default(); m.nodes().len()],
            busy: queues.add(),
        }
    }

    /// Adds a buffer of this chunk, not held. It must be read, unless the chunk is new.
    pub(crate) fn add(&mut self, chunk: u32, object: Object, frames: Vec<Pfn>) -> u32 {
        let of = &mut self.chunks[chunk as usize];
        let is_busy = !std::mem::replace(&mut of.is_new, false);
        let (held, worth, logged) = (0, WORTH, Logged::default());
        let number = self.all.add(Buffer { chunk, object, frames, held, worth, is_busy, logged });
        of.buffer = Some(number);
        number
    }

    /// Raises the buffer's count to that of inodes and directories.
    pub(crate) fn is_worth_more(&mut self, number: u32) {
        self.all[number].worth = WORTH_MORE;
    }

    pub(crate) fn hold(&mut self, number: u32) {
        self.all[number].held += 1;
    }

    /// The shrinker of a node's list.
    pub(crate) fn shrinker(&self, node: NodeId) -> Shrinker {
        Shrinker { freeable: self.unused[node.index()].len(), seeks: 2, batch: 128 }
    }

    /// Files whose inodes are in a buffer.
    fn inodes_in(&self, number: u32) -> &[u32] {
        &self.chunks[self.all[number].chunk as usize].inodes
    }

    /// Frees the place of an evicted file's inode.
    pub(crate) fn leave(&mut self, chunk: u32, inode: u32, number: u64) {
        let inodes = &mut self.chunks[chunk as usize].inodes;
        if let Some(at) = inodes.iter().position(|other| *other == inode) {
            inodes.swap_remove(at);
            let roomy = &mut self.directories.entry(number / FILES_OF_DIRECTORY).or_default().roomy;
            if !roomy.contains(&chunk) {
                roomy.push(chunk);
            }
        }
    }
}

impl Files {
    /// Allocates a place on the disk for a file's inode, with the others of its directory. False if
    /// the disk is full.
    pub(crate) fn place_inode(&mut self, inode: u32) -> bool {
        let (disk, number) = (self.disk_of(inode), self.inodes[inode].name.number());
        let directory = number / FILES_OF_DIRECTORY;
        let roomy = self.xfs(disk).buffers.directories.entry(directory).or_default().roomy.last().copied();
        let Some(chunk) = roomy.or_else(|| self.add_chunk(disk, CLUSTER)) else { return false };
        let buffers = &mut self.xfs(disk).buffers;
        let c = &mut buffers.chunks[chunk as usize];
        c.inodes.push(inode);
        let is_full = c.inodes.len() as u32 == c.blocks * INODES_EACH;
        let all = &mut buffers.directories.entry(directory).or_default().roomy;
        if roomy.is_none() {
            all.push(chunk);
        }
        if is_full {
            all.retain(|other| *other != chunk);
        }
        self.inodes[inode].chunk = Some(chunk);
        true
    }

    /// Marks the inode of a file that existed from the start as written.
    pub(crate) fn was_there(&mut self, inode: u32) {
        let disk = self.disk_of(inode);
        if let Some(chunk) = self.inodes[inode].chunk {
            self.xfs(disk).buffers.chunks[chunk as usize].is_new = false;
        }
    }

    /// The block for a file's entry in its directory. `None` if the disk is full.
    pub(crate) fn place_entry(&mut self, inode: u32) -> Option<u32> {
        let (disk, number) = (self.disk_of(inode), self.inodes[inode].name.number());
        let key = number / FILES_OF_DIRECTORY;
        let directory = self.xfs(disk).buffers.directories.entry(key).or_default();
        if let (Some(block), true) = (directory.block, directory.left > 0) {
            directory.left -= 1;
            return Some(block);
        }
        let block = self.add_chunk(disk, 1)?;
        let directory = self.xfs(disk).buffers.directories.entry(key).or_default();
        (directory.block, directory.left) = (Some(block), ENTRIES - 1);
        Some(block)
    }

    fn add_chunk(&mut self, disk: u8, wanted: u32) -> Option<u32> {
        let reserved = self.writing[usize::from(disk)].reserved;
        let space = &mut self.disks[usize::from(disk)];
        if space.free_blocks() < reserved + wanted {
            return None;
        }
        let goal =
            self.xfs[usize::from(disk)].as_ref()?.buffers.chunks.last().map_or(0, |last| last.block + last.blocks);
        let (block, blocks) = space.take(goal, wanted)?;
        let chunks = &mut self.xfs(disk).buffers.chunks;
        chunks.push(Chunk { block, blocks, inodes: Vec::new(), buffer: None, is_new: true });
        Some(chunks.len() as u32 - 1)
    }

    /// Releases a buffer. An unused one joins the list, or is freed if its count is used up.
    pub(crate) fn let_go_buffer(&mut self, m: &mut Memory, cpu: CpuId, disk: u8, number: u32) {
        let buffers = &mut self.xfs(disk).buffers;
        let buffer = &mut buffers.all[number];
        debug_assert!(buffer.held > 0);
        buffer.held -= 1;
        if buffer.held > 0 {
            return;
        }
        let list = &mut buffers.unused[node_of(m, buffer.frames[0]).index()];
        if buffer.worth > 0 {
            list.add(number);
        } else if !list.has(number) {
            self.free_buffer(m, cpu, disk, number);
        }
    }

    fn free_buffer(&mut self, m: &mut Memory, cpu: CpuId, disk: u8, number: u32) -> u64 {
        self.drop_logged(m, cpu, disk, Item::Buffer(number), true);
        let buffers = &mut self.xfs(disk).buffers;
        let buffer = buffers.all.remove(number);
        debug_assert!(buffer.held == 0 && !buffer.is_busy);
        buffers.chunks[buffer.chunk as usize].buffer = None;
        buffer.frames.iter().for_each(|pfn| m.free(cpu, *pfn, Order::ZERO));
        buffer.frames.len() as u64 + self.slabs.free(m, cpu, Cache::XfsBuffer, buffer.object)
    }

    /// Scans this many unused buffers of a node; the number freed, and their pages.
    pub(crate) fn shrink_buffers(
        &mut self,
        m: &mut Memory,
        cpu: CpuId,
        disk: u8,
        node: NodeId,
        most: u64,
    ) -> (u64, u64) {
        let (mut freed, mut pages) = (0, 0);
        for _ in 0..most {
            let buffers = &mut self.xfs(disk).buffers;
            let list = &mut buffers.unused[node.index()];
            let Some(number) = list.first() else { break };
            list.remove(number);
            let buffer = &mut buffers.all[number];
            if buffer.worth > 0 {
                buffer.worth -= 1;
                list.add(number);
            } else if buffer.held == 0 {
                freed += 1;
                pages += self.free_buffer(m, cpu, disk, number);
            }
        }
        (freed, pages)
    }

    /// The chunk of an item.
    pub(crate) fn chunk_of(&mut self, disk: u8, item: Item) -> u32 {
        match item {
            Item::Inode(number) => self.inodes[number].chunk.expect("an inode of XFS lies somewhere"),
            Item::Buffer(number) => self.xfs(disk).buffers.all[number].chunk,
        }
    }

    /// Starts writing a buffer in place, with all its inodes that wait for that; its blocks. `None`
    /// if nothing waits.
    pub(crate) fn begin_buffer_write(&mut self, disk: u8, number: u32) -> Option<(u32, u32)> {
        let mut any = self.begin_flush(disk, Item::Buffer(number));
        for inode in self.xfs(disk).buffers.inodes_in(number).to_vec() {
            any |= self.begin_flush(disk, Item::Inode(inode));
        }
        if !any {
            return None;
        }
        let buffers = &mut self.xfs(disk).buffers;
        let buffer = &mut buffers.all[number];
        buffer.is_busy = true;
        let chunk = &buffers.chunks[buffer.chunk as usize];
        Some((chunk.block, chunk.blocks))
    }

    /// Completes the read or write of a buffer.
    pub(crate) fn end_buffer_io(
        &mut self,
        m: &mut Memory,
        queues: &mut Queues,
        cpu: CpuId,
        (disk, number): (u8, u32),
        write: bool,
    ) {
        let buffers = &mut self.xfs(disk).buffers;
        buffers.all[number].is_busy = false;
        queues.wake_all(buffers.busy);
        if write {
            for inode in self.xfs(disk).buffers.inodes_in(number).to_vec() {
                self.end_flush(m, cpu, disk, Item::Inode(inode));
            }
            self.end_flush(m, cpu, disk, Item::Buffer(number));
            // The write held it.
            self.let_go_buffer(m, cpu, disk, number);
            queues.wake_all(self.xfs(disk).log.space);
        }
    }
}
