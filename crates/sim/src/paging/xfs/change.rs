//! Changes of XFS's metadata: allocate the log item's objects, wait for log space, and join the
//! log.

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

/// A change of one item, repeated `times` times.
#[derive(Clone)]
pub(crate) struct Change {
    disk: u8,
    item: Item,
    times: u8,
    /// The object being allocated.
    taking: Option<(Cache, Preload)>,
}

impl Change {
    fn new(disk: u8, item: Item, times: u8) -> Change {
        Change { disk, item, times, taking: None }
    }

    /// A step; done when the change is in the log.
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
                // Its inode has gone.
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
    /// The change logged at writeback: the file's length and, the first time, its extents. `None`
    /// without a log.
    pub(crate) fn written_back(&self, inode: u32) -> Option<Change> {
        let i = self.inodes.get(inode)?;
        let times = 1 + u8::from(i.extents.iter().next().is_none());
        self.has_log(inode).then(|| Change::new(self.disk_of(inode), Item::Inode(inode), times))
    }

    /// The change logged by a write: the file's timestamps, once a tick.
    pub(crate) fn written_to(&mut self, inode: u32, now: u64) -> Option<Change> {
        let tick = now / JIFFY_NS + 1;
        if !self.has_log(inode) || self.inodes[inode].changed_at == tick {
            return None;
        }
        let i = &mut self.inodes[inode];
        (i.changed_at, i.is_unread) = (tick, true);
        Some(Change::new(self.disk_of(inode), Item::Inode(inode), 1))
    }

    /// The change logged by a read: the access time, once after each write (`relatime`).
    pub(crate) fn read_by_somebody(&mut self, inode: u32) -> Option<Change> {
        let was_unread = std::mem::take(&mut self.inodes[inode].is_unread);
        (was_unread && self.has_log(inode)).then(|| Change::new(self.disk_of(inode), Item::Inode(inode), 1))
    }

    fn has_log(&self, inode: u32) -> bool {
        self.filesystem(inode) == FileSystem::Xfs
    }
}

/// Creation of a file, or the read of its inode, in XFS's metadata.
#[derive(Clone)]
pub(crate) struct Make {
    disk: u8,
    inode: u32,
    stage: Stage,
}

#[derive(Clone)]
enum Stage {
    /// The buffer of its inode cluster; `true` if the cluster is new and must be logged.
    Cluster(GetBuffer, bool),
    NewCluster(u32, Change),
    Inode(Change),
    /// The block of its directory.
    Directory(GetBuffer),
    Entry(u32, Change),
}

impl Make {
    /// A new file. `None` without a log; `Err` if the disk is full.
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

    /// A file whose inode must be read.
    pub(crate) fn of_known(files: &Files, inode: u32) -> Option<Make> {
        let (disk, chunk) = (files.disk_of(inode), files.inodes[inode].chunk?);
        Some(Make { disk, inode, stage: Stage::Cluster(GetBuffer::new(disk, chunk), false) })
    }

    /// A step; done when the metadata is in place.
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
