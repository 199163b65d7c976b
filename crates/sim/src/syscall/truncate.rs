//! Removal of file pages: `ftruncate`, `unlink`, the last `close` of a file without a name, and
//! `vm.drop_caches`.
//!
//! Truncation waits for pages under I/O and drops dirty ones unwritten. `drop_caches` leaves these
//! pages alone, and mapped ones.

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::error::SimError;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::state::file::Flags;
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
            if k.pages.frames.flags(pfn).any(Flags::LOCKED | Flags::WRITEBACK) {
                return Step::Wait(k.wait_for_page(pfn));
            }
            if k.pages.mapcounts.is_mapped(pfn) {
                let number = k.mem.frames().owner(pfn, Order::ZERO);
                k.pages.unmap_file_page(pfn, number);
            }
            k.forget_dirty(self.inode, index, pfn);
            k.drop_page(c, pfn);
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
    /// Removes a clean page from the page cache, without a shadow, and frees it.
    fn drop_page(&mut self, c: &mut Context, pfn: Pfn) {
        let number = self.mem.frames().owner(pfn, Order::ZERO);
        let Kernel { mem, pages, .. } = self;
        let crate::owner::Pages { files, frames, mapcounts, .. } = pages;
        mapcounts.reset(pfn);
        let files = files.as_mut().expect("it is a page of a file");
        files.drop_buffers(frames, pfn);
        frames.reset(pfn, Flags::default());
        files.remove_page(number, None);
        mem.free(c.cpu, pfn, Order::ZERO);
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
            self.index = index + 1;
            if k.pages.frames.flags(pfn).any(Flags::LOCKED | Flags::WRITEBACK | Flags::DIRTY) {
                k.mem.deactivate_file(c.cpu, pfn, true);
            } else if !k.pages.mapcounts.is_mapped(pfn) {
                k.drop_page(c, pfn);
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
