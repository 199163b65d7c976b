//! Inodes: where files lie on disk, what of them is in memory, and their users.
//!
//! A file that is not open stays known while its dentry and its inode are in memory. Both are on a
//! list of their node, from which shrinkers take the one longest unused first: the dentry, and then
//! the inode, once it has no page left (before 5.16: together with its clean pages).

use super::Files;
use super::filesystem::FileSystem;
use super::readahead::Readahead;
use super::slab::{Cache, Object};
use super::space::{Extent, Extents};
use super::tree::Tree;
use super::xfs::{Item, Logged};
use crate::state::object::ObjectId;
use kontig_mm::{CpuId, Memory};
use kontig_program::FileName;

#[derive(Clone)]
pub(crate) struct Inode {
    pub(crate) name: FileName,
    /// Its number on its disk.
    pub(super) number: u32,
    pub(crate) length: u32,
    pub(crate) tree: Tree,
    pub(crate) extents: Extents,
    /// Number of its pages in the page cache.
    pub(crate) pages: u32,
    /// Dirty pages among them, the time since when there are any, and the page up to which the last
    /// writeback came.
    pub(crate) dirty: u32,
    pub(crate) dirty_since: u64,
    pub(crate) written_to: u32,
    /// Whether the blocks of all its dirty pages were written one by one, as a file system does
    /// with metadata that is waited for. The pages stay dirty.
    pub(crate) blocks_written: bool,
    /// Its objects, while they are in memory.
    inode: Option<Object>,
    dentry: Option<Object>,
    /// Number of opens and mappings.
    opens: u32,
    /// Whether it was used since the shrinker last passed it.
    used: bool,
    /// The object that lists its mappings, while there are any.
    pub(crate) object: Option<ObjectId>,
    /// Whether it has a name.
    pub(crate) linked: bool,
    /// With XFS: the chunk of its inode, its state in the log, one more than the tick of its last
    /// write, and whether it has not been read since.
    pub(crate) chunk: Option<u32>,
    pub(crate) logged: Logged,
    pub(crate) changed_at: u64,
    pub(crate) is_unread: bool,
}

#[derive(Clone)]
pub(crate) struct Open {
    pub(crate) process: u32,
    pub(crate) inode: u32,
    pub(crate) readahead: Readahead,
    object: Object,
    /// Its place in the process's list of open files.
    place: u32,
}

impl Inode {
    /// Adds a user, which keeps its objects in memory.
    pub(crate) fn pin(&mut self) {
        self.opens += 1;
    }
    /// Whether it was created and never opened.
    pub(crate) fn is_new(&self) -> bool {
        self.length == 0 && self.inode.is_none() && self.chunk.is_none()
    }
    pub(crate) fn is_open(&self) -> bool {
        self.opens > 0
    }
    pub(super) fn has_dentry(&self) -> bool {
        self.dentry.is_some()
    }
}

/// The objects that an open file needs, in the order of allocation.
pub(crate) const OBJECTS: [Cache; 3] = [Cache::Open, Cache::Dentry, Cache::Inode];

impl Files {
    /// The disk of a file.
    pub(crate) fn disk_of(&self, inode: u32) -> u8 {
        self.inodes[inode].name.disk()
    }

    pub(crate) fn disks(&self) -> usize {
        self.disks.len()
    }

    /// The file of this name.
    pub(crate) fn named(&self, name: FileName) -> Option<u32> {
        self.names.get(name)
    }

    /// Creates an empty file of this name; its number.
    pub(crate) fn make(&mut self, name: FileName) -> u32 {
        let of_disk = self.tables[usize::from(name.disk())].take();
        let inode = self.add(name, of_disk);
        self.names.insert(name, inode);
        inode
    }

    /// Adds an inode with this number on its disk.
    pub(super) fn add(&mut self, name: FileName, number: u32) -> u32 {
        self.inodes.add(Inode {
            name,
            number,
            length: 0,
            tree: Tree::default(),
            extents: Extents::default(),
            pages: 0,
            dirty: 0,
            dirty_since: 0,
            written_to: 0,
            blocks_written: false,
            inode: None,
            dentry: None,
            opens: 0,
            used: false,
            object: None,
            linked: true,
            chunk: None,
            logged: Logged::default(),
            changed_at: 0,
            is_unread: false,
        })
    }

    /// Creates a file of this many pages as if it had long been on the disk. False if there is no
    /// room for it.
    pub(crate) fn lay(&mut self, name: FileName, pages: u32) -> bool {
        let Some(space) = self.disks.get(usize::from(name.disk())) else { return false };
        if space.free_blocks() < pages || self.names.get(name).is_some() {
            return false;
        }
        let of_disk = self.tables[usize::from(name.disk())].take_laid();
        let number = self.add(name, of_disk);
        self.names.insert(name, number);
        self.inodes[number].length = pages;
        if self.filesystem(number) == FileSystem::Xfs {
            if !self.place_inode(number) || self.disks[usize::from(name.disk())].free_blocks() < pages {
                return false;
            }
            self.was_there(number);
        }
        self.allocate(number, 0, pages);
        true
    }

    /// Allocates blocks for pages of a file that have none. The caller has made sure that there is
    /// room.
    pub(crate) fn allocate(&mut self, inode: u32, mut index: u32, mut pages: u32) {
        let disk = usize::from(self.disk_of(inode));
        while pages > 0 {
            let extents = &mut self.inodes[inode].extents;
            let goal = extents.behind(index).unwrap_or(0);
            let (block, blocks) = self.disks[disk].take(goal, pages).expect("there is room for what is allocated");
            extents.add(Extent { index, block, blocks });
            (index, pages) = (index + blocks, pages - blocks);
        }
    }

    /// Whether a file's inode, or else its dentry, is in memory.
    pub(crate) fn has(&self, inode: u32, cache: Cache) -> bool {
        let i = &self.inodes[inode];
        if cache == Cache::Inode { i.inode.is_some() } else { i.dentry.is_some() }
    }

    /// Gives a file an object that it lacked. False if it has one by now.
    pub(crate) fn give(&mut self, inode: u32, cache: Cache, object: Object) -> bool {
        let i = &mut self.inodes[inode];
        let place = if cache == Cache::Inode { &mut i.inode } else { &mut i.dentry };
        if place.is_some() {
            return false;
        }
        *place = Some(object);
        true
    }

    /// Opens a file that is pinned and has all its objects.
    pub(crate) fn open(&mut self, process: u32, inode: u32, object: Object) -> u32 {
        debug_assert!(self.inodes[inode].opens > 0 && self.inodes[inode].dentry.is_some());
        if self.of_process.len() <= process as usize {
            self.of_process.resize(process as usize + 1, Vec::new());
        }
        let its = &mut self.of_process[process as usize];
        let place = its.len() as u32;
        let number = self.opens.add(Open { process, inode, readahead: Readahead::default(), object, place });
        its.push(number);
        number
    }

    /// The open file with this number, if it is the process's.
    pub(crate) fn opened(&self, process: u32, number: u32) -> Option<&Open> {
        self.opens.get(number).filter(|open| open.process == process)
    }

    /// Closes a file. Returns the inode to evict if it has no name and no other user.
    pub(crate) fn close(&mut self, m: &mut Memory, cpu: CpuId, number: u32) -> Option<u32> {
        let Open { inode, object, process, place, .. } = self.opens.remove(number);
        let its = &mut self.of_process[process as usize];
        its.swap_remove(place as usize);
        if let Some(moved) = its.get(place as usize) {
            self.opens[*moved].place = place;
        }
        self.slabs.free(m, cpu, Cache::Open, object);
        self.unpin(inode)
    }

    /// Drops a user of a file. Returns the inode if it must be evicted.
    pub(crate) fn unpin(&mut self, inode: u32) -> Option<u32> {
        self.inodes[inode].opens -= 1;
        self.unused(inode);
        let i = &self.inodes[inode];
        (i.opens == 0 && !i.linked).then_some(inode)
    }

    /// One of the open files of a process.
    pub(crate) fn any_opened(&self, process: u32) -> Option<u32> {
        self.of_process.get(process as usize)?.last().copied()
    }

    /// Puts a file without users on the list of dentries, or of inodes if it has no dentry. A
    /// dentry already listed counts as used again.
    fn unused(&mut self, inode: u32) {
        let i = &mut self.inodes[inode];
        if i.opens > 0 {
            return;
        }
        if let Some(dentry) = i.dentry {
            let list = &mut self.unused_dentries[self.slabs.node(Cache::Dentry, dentry)];
            i.used = list.has(inode);
            list.add(inode);
        } else if let Some(object) = i.inode
            && (self.inodes_take_pages || i.pages == 0 && i.tree.leaves().all(|leaf| !self.nodes.has_object(leaf)))
        {
            let node = self.slabs.node(self.filesystem(inode).inodes(), object);
            self.unused_inodes[node].add(inode);
        }
    }

    /// Lists the inode of a file without a dentry that has lost its last page.
    pub(super) fn emptied(&mut self, inode: u32) {
        if self.inodes[inode].dentry.is_none() {
            self.unused(inode);
        }
    }

    /// Drops the dentry of a file without users.
    pub(super) fn drop_dentry(&mut self, inode: u32) -> Option<Object> {
        let object = self.inodes[inode].dentry.take()?;
        self.unused_dentries[self.slabs.node(Cache::Dentry, object)].remove(inode);
        self.unused(inode);
        Some(object)
    }

    /// Drops the inode of a file without a dentry and pages, with the shadows of its tree.
    pub(super) fn drop_inode(&mut self, inode: u32) -> Option<Object> {
        debug_assert!(self.inodes[inode].pages == 0 && self.inodes[inode].dentry.is_none());
        self.forget_shadows(inode);
        let object = self.inodes[inode].inode.take()?;
        let node = self.slabs.node(self.filesystem(inode).inodes(), object);
        self.unused_inodes[node].remove(inode);
        Some(object)
    }

    /// Tests and clears whether a file was used.
    pub(super) fn was_used(&mut self, inode: u32) -> bool {
        std::mem::take(&mut self.inodes[inode].used)
    }

    /// Removes a file's name; whether it is unused and must be evicted.
    pub(crate) fn unlink(&mut self, name: FileName) -> Option<(u32, bool)> {
        let inode = self.names.remove(name)?;
        let i = &mut self.inodes[inode];
        i.linked = false;
        Some((inode, i.opens == 0))
    }

    /// Evicts a file without a name, users and pages: frees its objects and blocks.
    pub(crate) fn give_up(&mut self, m: &mut Memory, cpu: CpuId, inode: u32) {
        debug_assert!(self.inodes[inode].pages == 0 && !self.inodes[inode].linked);
        if let Some(object) = self.drop_dentry(inode) {
            self.slabs.free(m, cpu, Cache::Dentry, object);
        }
        let disk = self.disk_of(inode);
        if let Some(chunk) = self.inodes[inode].chunk {
            self.drop_logged(m, cpu, disk, Item::Inode(inode), true);
            let number = self.inodes[inode].name.number();
            self.xfs(disk).buffers.leave(chunk, inode, number);
        }
        if let Some(object) = self.drop_inode(inode) {
            self.slabs.free(m, cpu, self.filesystem(inode).inodes(), object);
        }
        self.free_gone(m, cpu);
        let disk = usize::from(disk);
        self.writing[disk].queued.remove(inode);
        self.writing[disk].taken.remove(inode);
        let gone = self.inodes.remove(inode);
        self.tables[disk].give_back(gone.number);
        gone.extents.iter().for_each(|extent| self.disks[disk].give_back(extent.block, extent.blocks));
    }

    /// Cuts a file off. None of its pages from there on is in memory.
    pub(crate) fn cut(&mut self, inode: u32, length: u32) {
        self.forget_from(inode, length);
        let disk = usize::from(self.disk_of(inode));
        for Extent { block, blocks, .. } in self.inodes[inode].extents.cut(length) {
            self.disks[disk].give_back(block, blocks);
        }
    }
}
