//! Removal of file pages: `ftruncate`, `unlink`, the last `close` of a file without a name, and
//! `vm.drop_caches`.
//!
//! Truncation waits for pages under I/O and drops dirty ones unwritten. A large folio that the new
//! end lies in is split into single pages, here also where the kernel would keep some of it whole
//! or fail because it is dirty. `drop_caches` leaves these pages alone, and mapped ones.

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::error::SimError;
use crate::base::numa::node_of;
use crate::base::timer::JIFFY_NS;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::state::file::{Flags, Tag};
use kontig_mm::{NodeId, Order, Pfn, Step};
use kontig_program::{FileName, Value};

/// Truncation or eviction of a file.
#[derive(Clone)]
pub(crate) struct Truncate {
    inode: u32,
    /// The new length in pages.
    length: u32,
    /// The first page that may still be in memory.
    next: u32,
    /// Whether the inode goes, too.
    gives_up: bool,
    begun: bool,
}

impl Truncate {
    pub(crate) fn new(inode: u32, length: u32) -> Truncate {
        Truncate { inode, length, next: length, gives_up: false, begun: false }
    }

    /// Removes the name. `None` if the file is still open and stays until it is closed.
    ///
    /// # Errors
    /// If there is no such file.
    pub(crate) fn unlink(k: &mut Kernel, name: FileName) -> Result<Option<Truncate>, SimError> {
        let gone = k.pages.files.as_mut().and_then(|files| files.unlink(name));
        let (inode, is_closed) = gone.ok_or(SimError::NoSuchFile { name })?;
        Ok(is_closed.then(|| Truncate::give_up(inode)))
    }

    /// Evicts a file without users and without a name.
    pub(crate) fn give_up(inode: u32) -> Truncate {
        Truncate { inode, length: 0, next: 0, gives_up: true, begun: false }
    }

    /// Closes an open file; returns its eviction, if it has no name and no other user.
    pub(crate) fn close(k: &mut Kernel, c: &mut Context, open: u32) -> Option<Truncate> {
        let Kernel { mem, pages, .. } = k;
        let gone = pages.files().close(mem, c.cpu, open);
        k.charge(&mut c.now);
        gone.map(Truncate::give_up)
    }

    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Value, Wait> {
        if !std::mem::replace(&mut self.begun, true) {
            let i = &mut k.pages.files().inodes[self.inode];
            i.length = i.length.min(self.length);
            k.mem.lru_add_drain(c.cpu);
        }
        loop {
            if k.must_yield(c) {
                return Step::Working;
            }
            let next = k.pages.files().pages_from(self.inode, self.next).next();
            let Some((index, pfn)) = next else { break };
            self.next = index;
            let folio = k.pages.frames.head(pfn);
            let flags = k.pages.frames.flags(folio);
            if flags.any(Flags::LOCKED | Flags::WRITEBACK) {
                return Step::Wait(k.wait_for_page(folio));
            }
            if k.pages.is_folio_mapped(folio) {
                let number = k.mem.frames().owner(folio, flags.order());
                k.pages.unmap_file_page(folio, number);
            }
            if index & !(flags.order().pages() - 1) < self.length {
                if !k.split_file(c, self.inode, folio) {
                    return Step::Wait(Wait::Time(JIFFY_NS));
                }
                continue;
            }
            k.forget_dirty(self.inode, index, folio);
            k.drop_folio(c, folio);
        }
        let Kernel { mem, pages, .. } = k;
        if self.gives_up {
            pages.files().give_up(mem, c.cpu, self.inode);
        } else {
            pages.files().cut(self.inode, self.length);
        }
        k.charge(&mut c.now);
        Step::Done(Value::Unit)
    }
}

impl Kernel {
    /// Splits a folio that a file's new end lies in, and that is not under I/O. Of a dirty one the
    /// pages that were written to stay dirty. False while reclaim or compaction has it off the LRU.
    fn split_file(&mut self, c: &mut Context, inode: u32, folio: Pfn) -> bool {
        if !self.mem.is_on_lru(folio) {
            return false;
        }
        let flags = self.pages.frames.flags(folio);
        let order = flags.order();
        let number = self.mem.frames().owner(folio, order);
        let node = node_of(&self.mem, folio);
        self.mem.split_lru_page(c.cpu, folio, order);
        let Kernel { mem, pages, .. } = self;
        let crate::owner::Pages { files, frames, .. } = pages;
        let files = files.as_mut().expect("it is a folio of a file");
        let mut clean = 0;
        for (number, page) in files.numbers_of(number, order).zip((0..order.pages()).map(|i| folio.plus(i))) {
            let is_dirty = files.is_tagged(number, Tag::Dirty);
            clean += u32::from(!is_dirty);
            frames.reset(page, Flags::FILE);
            if is_dirty {
                frames.set(page, Flags::DIRTY);
            }
            if flags.any(Flags::PRIVATE) {
                frames.set(page, Flags::PRIVATE);
            }
            mem.set_owner(page, Order::ZERO, number);
        }
        if flags.any(Flags::DIRTY) {
            files.counts.dirty -= u64::from(clean);
            files.by_node.with(folio).dirty -= u64::from(clean);
            files.inodes[inode].dirty -= clean;
            files.dirty_forgotten(inode, clean, 0, node);
        }
        true
    }

    /// Removes a clean folio from the page cache, without a shadow, and frees it.
    fn drop_folio(&mut self, c: &mut Context, folio: Pfn) {
        let order = self.pages.frames.flags(folio).order();
        let number = self.mem.frames().owner(folio, order);
        let Kernel { mem, pages, .. } = self;
        let crate::owner::Pages { files, frames, mapcounts, .. } = pages;
        mapcounts.reset_folio(folio, order);
        let files = files.as_mut().expect("it is a page of a file");
        files.drop_buffers(frames, folio);
        frames.end_folio(folio, order);
        files.by_node.with(folio).cached -= u64::from(order.pages());
        files.remove_folio(number, order, None);
        mem.free(c.cpu, folio, order);
        c.now += ns(self.costs.kernel_alloc);
        self.charge(&mut c.now);
    }
}

#[derive(Clone)]
pub(crate) struct DropCaches {
    pages: bool,
    objects: bool,
    /// The next page to look at.
    inode: u32,
    index: u32,
}

impl DropCaches {
    /// 1 drops pages, 2 objects, 3 both.
    pub(crate) fn of_value(value: &str) -> Option<DropCaches> {
        let value: u32 = value.trim().parse().ok().filter(|value| (1..=3).contains(value))?;
        Some(DropCaches { pages: value & 1 != 0, objects: value & 2 != 0, inode: 0, index: 0 })
    }

    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Value, Wait> {
        if k.pages.files.is_none() {
            return Step::Done(Value::Unit);
        }
        while self.pages {
            if k.must_yield(c) {
                return Step::Working;
            }
            let files = k.pages.files();
            let Some((inode, _)) = files.inodes.next(self.inode) else { break };
            if inode != self.inode {
                (self.inode, self.index) = (inode, 0);
            }
            let Some((index, pfn)) = files.pages_from(inode, self.index).next() else {
                (self.inode, self.index) = (inode + 1, 0);
                continue;
            };
            let folio = k.pages.frames.head(pfn);
            let flags = k.pages.frames.flags(folio);
            self.index = (index | (flags.order().pages() - 1)) + 1;
            if flags.any(Flags::LOCKED | Flags::WRITEBACK | Flags::DIRTY | Flags::HELD) {
                k.mem.deactivate_file(c.cpu, folio, true);
            } else if !k.pages.is_folio_mapped(folio) {
                k.drop_folio(c, folio);
            }
        }
        self.pages = false;
        if self.objects {
            let nodes = k.mem.nodes().len();
            for node in (0..nodes).map(NodeId::new) {
                let Kernel { mem, pages, .. } = k;
                // Twice: recently used dentries go in the second round.
                for _ in 0..2 {
                    pages.files().shrink_dentries(mem, c.cpu, node, u64::from(u32::MAX));
                }
                let crate::owner::Pages { files, frames, mapcounts, .. } = pages;
                let files = files.as_mut().expect("there are some, as was seen before");
                files.shrink_inodes(mem, c.cpu, (frames, mapcounts), node, u64::from(u32::MAX));
            }
            k.charge(&mut c.now);
        }
        Step::Done(Value::Unit)
    }
}
