//! Files by number: where they lie, what of them is in memory, and who has them open.
//!
//! A file that nobody has open stays known while its dentry and its inode are in memory. Both are on a list of their node from
//! which shrinkers take them, the one longest unused first: the dentry, and then the inode, if no page of it is left (before 5.16: with
//! its clean pages).

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

/// A file.
#[derive(Clone)]
pub(crate) struct Inode {
    pub(crate) name: FileName,
    /// Its length in pages.
    pub(crate) length: u32,
    pub(crate) tree: Tree,
    pub(crate) extents: Extents,
    /// Pages of it in the page cache.
    pub(crate) pages: u32,
    /// Of these, dirty ones; since when there are some; and the page up to which they were written back last.
    pub(crate) dirty: u32,
    pub(crate) dirty_since: u64,
    pub(crate) written_to: u32,
    /// Whether the blocks of all its dirty pages have been written one by one, as a file system does with those of its metadata
    /// that somebody waits for: the pages stay dirty.
    pub(crate) blocks_written: bool,
    /// The objects it has in memory while it is known there.
    inode: Option<Object>,
    dentry: Option<Object>,
    /// How often it is open or mapped.
    opens: u32,
    /// Whether it has been used since it was last looked at on the list of unused ones.
    used: bool,
    /// While it is mapped: the object that says by whom.
    pub(crate) object: Option<ObjectId>,
    /// Whether it still has its name.
    pub(crate) linked: bool,
    /// Of XFS: the blocks its inode lies in, what the log knows of it, the tick it was last written to in (one more than the clock's),
    /// and whether nobody has read it since.
    pub(crate) chunk: Option<u32>,
    pub(crate) logged: Logged,
    pub(crate) changed_at: u64,
    pub(crate) is_unread: bool,
}

/// An open file.
#[derive(Clone)]
pub(crate) struct Open {
    pub(crate) process: u32,
    pub(crate) inode: u32,
    pub(crate) readahead: Readahead,
    object: Object,
    /// Its place among the open files of its process.
    place: u32,
}

impl Inode {
    /// It is about to be opened: its objects stay from now on.
    pub(crate) fn pin(&mut self) {
        self.opens += 1;
    }
    /// It was made and nobody has opened it yet.
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

/// Objects that a file needs in memory, in the order they are taken.
pub(crate) const OBJECTS: [Cache; 3] = [Cache::Open, Cache::Dentry, Cache::Inode];

impl Files {
    /// The disk of a file.
    pub(crate) fn disk_of(&self, inode: u32) -> u8 {
        self.inodes[inode].name.disk()
    }

    /// How many disks there are.
    pub(crate) fn disks(&self) -> usize {
        self.disks.len()
    }

    /// The file of this name.
    pub(crate) fn named(&self, name: FileName) -> Option<u32> {
        self.names.get(&name).copied()
    }

    /// Makes a file of this name, of no length; its number.
    pub(crate) fn make(&mut self, name: FileName) -> u32 {
        let number = self.inodes.add(Inode {
            name,
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
        });
        let before = self.names.insert(name, number);
        debug_assert!(before.is_none(), "{name:?} is there");
        number
    }

    /// Lays a file of so many pages on its disk, as if it had been there for long. False if it has no room.
    pub(crate) fn lay(&mut self, name: FileName, pages: u32) -> bool {
        let Some(space) = self.disks.get(usize::from(name.disk())) else { return false };
        if space.free_blocks() < pages || self.names.contains_key(&name) {
            return false;
        }
        let number = self.make(name);
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

    /// Gives blocks to pages of a file that have none. There is room: that was seen to before.
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

    /// Whether a file has its dentry, or its inode, in memory.
    pub(crate) fn has(&self, inode: u32, cache: Cache) -> bool {
        let i = &self.inodes[inode];
        if cache == Cache::Inode { i.inode.is_some() } else { i.dentry.is_some() }
    }

    /// Gives a file an object that it lacks. False where it has one by now.
    pub(crate) fn give(&mut self, inode: u32, cache: Cache, object: Object) -> bool {
        let i = &mut self.inodes[inode];
        let place = if cache == Cache::Inode { &mut i.inode } else { &mut i.dentry };
        if place.is_some() {
            return false;
        }
        *place = Some(object);
        true
    }

    /// Opens a file that is pinned and has all objects it needs.
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

    /// A process's open file of this number.
    pub(crate) fn opened(&self, process: u32, number: u32) -> Option<&Open> {
        self.opens.get(number).filter(|open| open.process == process)
    }

    /// Closes a file; its number, if it has no name any more and nobody else has it open: it is to be given up.
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

    /// A file has been closed, or is mapped no longer; its number, if it is to be given up.
    pub(crate) fn unpin(&mut self, inode: u32) -> Option<u32> {
        self.inodes[inode].opens -= 1;
        self.unused(inode);
        let i = &self.inodes[inode];
        (i.opens == 0 && !i.linked).then_some(inode)
    }

    /// One of the files that a process has open.
    pub(crate) fn any_opened(&self, process: u32) -> Option<u32> {
        self.of_process.get(process as usize)?.last().copied()
    }

    /// A file that nobody has open joins the list its state says; on that of dentries it is used once more.
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

    /// A file without a dentry has lost its last page: its inode may go.
    pub(super) fn emptied(&mut self, inode: u32) {
        if self.inodes[inode].dentry.is_none() {
            self.unused(inode);
        }
    }

    /// The dentry of a file that nobody has open goes.
    pub(super) fn drop_dentry(&mut self, inode: u32) -> Option<Object> {
        let object = self.inodes[inode].dentry.take()?;
        self.unused_dentries[self.slabs.node(Cache::Dentry, object)].remove(inode);
        self.unused(inode);
        Some(object)
    }

    /// The inode of a file without a dentry and without pages goes, and what its tree remembers.
    pub(super) fn drop_inode(&mut self, inode: u32) -> Option<Object> {
        debug_assert!(self.inodes[inode].pages == 0 && self.inodes[inode].dentry.is_none());
        self.forget_shadows(inode);
        let object = self.inodes[inode].inode.take()?;
        let node = self.slabs.node(self.filesystem(inode).inodes(), object);
        self.unused_inodes[node].remove(inode);
        Some(object)
    }

    /// Whether a file has been used since it was last asked, which is forgotten by that.
    pub(super) fn was_used(&mut self, inode: u32) -> bool {
        std::mem::take(&mut self.inodes[inode].used)
    }

    /// Takes a file's name away; whether nobody has it open, so that it is to be given up.
    pub(crate) fn unlink(&mut self, name: FileName) -> Option<(u32, bool)> {
        let inode = self.names.remove(&name)?;
        let i = &mut self.inodes[inode];
        i.linked = false;
        Some((inode, i.opens == 0))
    }

    /// A file without a name, that nobody has open and of which no page is left, is gone: its objects, and its blocks.
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
        gone.extents.iter().for_each(|extent| self.disks[disk].give_back(extent.block, extent.blocks));
    }

    /// A file of which no page from this one on is in memory ends here.
    pub(crate) fn cut(&mut self, inode: u32, length: u32) {
        self.forget_from(inode, length);
        let disk = usize::from(self.disk_of(inode));
        for Extent { block, blocks, .. } in self.inodes[inode].extents.cut(length) {
            self.disks[disk].give_back(block, blocks);
        }
    }
}
