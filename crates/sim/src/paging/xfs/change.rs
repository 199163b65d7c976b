//! Changes of XFS's metadata, as whoever makes them carries them out: an item's objects are taken, there is space in the log, and the
//! change gathers with others.

use crate::base::context::Context;
use crate::base::timer::JIFFY_NS;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::kernel::Kernel;
use crate::paging::preload::Preload;
use crate::paging::xfs::GetBuffer;
use crate::state::file::FileSystem;
use crate::state::file::xfs::Item;
use crate::state::file::{Cache, Files};
use kontig_mm::{AllocFailure, Step};

/// A change of an item, so many times in a row.
#[derive(Clone)]
pub(crate) struct Change {
    disk: u8,
    item: Item,
    times: u8,
    /// The object being taken.
    taking: Option<(Cache, Preload)>,
}

impl Change {
    fn new(disk: u8, item: Item, times: u8) -> Change {
        Change { disk, item, times, taking: None }
    }

    /// A step; done when the change is made.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Result<(), AllocFailure>, Wait> {
        while self.times > 0 {
            if let Some((cache, preload)) = &mut self.taking {
                if let Err(failure) = done!(preload.step(k, c)) {
                    return Step::Done(Err(failure));
                }
                let cache = *cache;
                let object = preload.objects().pop().expect("one was taken");
                self.give(k, c, cache, object);
                self.taking = None;
                continue;
            }
            let Kernel { pages, queues, .. } = k;
            let files = pages.files();
            if matches!(self.item, Item::Inode(number) if files.inodes.get(number).is_none()) {
                // It is gone by now.
                return Step::Done(Ok(()));
            }
            if let Some(cache) = files.log_lacks(self.disk, self.item) {
                match files.slabs.take(cache, c.cpu, c.node) {
                    Some(object) => self.give(k, c, cache, object),
                    None => self.taking = Some((cache, Preload::new(cache, 1))),
                }
                continue;
            }
            if files.log_is_short(self.disk) {
                queues.wake_all(files.xfs(self.disk).log.pusher);
            }
            if !files.log_has_space(self.disk) {
                let log = &mut files.xfs(self.disk).log;
                log.force();
                queues.wake_all(log.checkpoints);
                return Step::Wait(Wait::Io(log.space));
            }
            files.log_change(self.disk, self.item);
            let log = &files.xfs(self.disk).log;
            if log.is_due() || log.is_first() {
                queues.wake_all(log.checkpoints);
            }
            self.times -= 1;
        }
        Step::Done(Ok(()))
    }

    fn give(&self, k: &mut Kernel, c: &mut Context, cache: Cache, object: crate::state::file::Object) {
        let Kernel { pages, mem, .. } = k;
        let files = pages.files();
        if !files.give_log(self.disk, self.item, cache, object) {
            files.slabs.free(mem, c.cpu, cache, object);
        }
    }
}

impl Files {
    /// The change of a file that is written back: its length, and at first where its blocks are. None of a file system without a log.
    pub(crate) fn written_back(&self, inode: u32) -> Option<Change> {
        let i = self.inodes.get(inode)?;
        let times = 1 + u8::from(i.extents.iter().next().is_none());
        self.has_log(inode).then(|| Change::new(self.disk_of(inode), Item::Inode(inode), times))
    }

    /// The change of a file that is written to: its times, once a tick.
    pub(crate) fn written_to(&mut self, inode: u32, now: u64) -> Option<Change> {
        let tick = now / JIFFY_NS + 1;
        if !self.has_log(inode) || self.inodes[inode].changed_at == tick {
            return None;
        }
        let i = &mut self.inodes[inode];
        (i.changed_at, i.is_unread) = (tick, true);
        Some(Change::new(self.disk_of(inode), Item::Inode(inode), 1))
    }

    /// The change of a file that is read: its time, once after each time it was written to (`relatime`).
    pub(crate) fn read_by_somebody(&mut self, inode: u32) -> Option<Change> {
        let was_unread = std::mem::take(&mut self.inodes[inode].is_unread);
        (was_unread && self.has_log(inode)).then(|| Change::new(self.disk_of(inode), Item::Inode(inode), 1))
    }

    fn has_log(&self, inode: u32) -> bool {
        self.filesystem(inode) == FileSystem::Xfs
    }
}

/// A file that is made, or whose inode is read: what of XFS's own has to be there for it.
#[derive(Clone)]
pub(crate) struct Make {
    disk: u8,
    inode: u32,
    stage: Stage,
}

#[derive(Clone)]
enum Stage {
    /// The buffer with its inode, which is made with the first inode in it.
    Cluster(GetBuffer, bool),
    /// The new cluster.
    NewCluster(u32, Change),
    Inode(Change),
    /// The block of its directory.
    Directory(GetBuffer),
    Entry(u32, Change),
}

impl Make {
    /// A file that is new. `None` of a file system without a log; `Err` if the disk is full.
    pub(crate) fn of_new(files: &mut Files, inode: u32) -> Result<Option<Make>, ()> {
        if !files.has_log(inode) {
            return Ok(None);
        }
        if !files.place_inode(inode) {
            return Err(());
        }
        let disk = files.disk_of(inode);
        let chunk = files.inodes[inode].chunk.expect("it has just been placed");
        let stage = match files.xfs(disk).buffers.chunks[chunk as usize].is_new {
            true => Stage::Cluster(GetBuffer::new(disk, chunk), true),
            false => Stage::Inode(Change::new(disk, Item::Inode(inode), 1)),
        };
        Ok(Some(Make { disk, inode, stage }))
    }

    /// A file whose inode has to be read.
    pub(crate) fn of_known(files: &Files, inode: u32) -> Option<Make> {
        let (disk, chunk) = (files.disk_of(inode), files.inodes[inode].chunk?);
        Some(Make { disk, inode, stage: Stage::Cluster(GetBuffer::new(disk, chunk), false) })
    }

    /// A step; done when all is there.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Result<(), AllocFailure>, Wait> {
        let disk = self.disk;
        loop {
            let done = match &mut self.stage {
                Stage::Cluster(get, _) | Stage::Directory(get) => get.step(k, c).map(|got| got.map(Some)),
                Stage::NewCluster(_, change) | Stage::Inode(change) | Stage::Entry(_, change) => {
                    change.step(k, c).map(|got| got.map(|()| None))
                }
            };
            let got = done!(done);
            if let Stage::NewCluster(buffer, _) | Stage::Entry(buffer, _) = self.stage {
                let Kernel { pages, mem, .. } = k;
                pages.files().let_go_buffer(mem, c.cpu, disk, buffer);
            }
            let buffer = match got {
                Ok(buffer) => buffer.unwrap_or(0),
                Err(failure) => return Step::Done(Err(failure)),
            };
            let of_buffer = Change::new(disk, Item::Buffer(buffer), 1);
            self.stage = match self.stage {
                Stage::Cluster(_, true) => Stage::NewCluster(buffer, of_buffer),
                Stage::Cluster(_, false) => {
                    k.pages.files().xfs(disk).buffers.is_worth_more(buffer);
                    let Kernel { pages, mem, .. } = k;
                    pages.files().let_go_buffer(mem, c.cpu, disk, buffer);
                    return Step::Done(Ok(()));
                }
                Stage::NewCluster(..) => Stage::Inode(Change::new(disk, Item::Inode(self.inode), 1)),
                Stage::Inode(_) => match k.pages.files().place_entry(self.inode) {
                    Some(block) => Stage::Directory(GetBuffer::new(disk, block)),
                    None => return Step::Done(Ok(())),
                },
                Stage::Directory(_) => {
                    k.pages.files().xfs(disk).buffers.is_worth_more(buffer);
                    Stage::Entry(buffer, of_buffer)
                }
                Stage::Entry(..) => return Step::Done(Ok(())),
            };
        }
    }
}
