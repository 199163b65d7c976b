//! `fsync` of a file, and `sync` of all: writes dirty pages and waits for them.
//!
//! Each page is written once and waited for once, however many are dirtied meanwhile. Afterwards
//! XFS forces its log. ext4's journal, and the flush of the disk's own cache, are left out.

use crate::base::context::Context;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::paging::write_pass::{Halt, Pass};
use crate::paging::xfs::Change;
use crate::state::file::{FileSystem, Flags, Tag};
use kontig_mm::Step;
use kontig_program::Value;

/// `fsync` of a file.
#[derive(Clone)]
pub(crate) struct Fsync {
    pass: Pass,
    /// The next page to wait for, once all are submitted.
    waits_for: Option<u32>,
    /// The change that XFS logs before the wait.
    change: Option<Box<Change>>,
    begun: bool,
    /// The checkpoint to wait for afterwards, unless this is part of `sync`.
    checkpoint: Option<u64>,
    is_part: bool,
}

impl Fsync {
    pub(crate) fn new(inode: u32) -> Fsync {
        let pass = Pass { inode, next: 0, left: u64::MAX };
        Fsync { pass, waits_for: None, change: None, begun: false, checkpoint: None, is_part: false }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Value, Wait> {
        let inode = self.pass.inode;
        loop {
            if k.pages.files().inodes.get(inode).is_none() {
                return Step::Done(Value::Unit);
            }
            if !std::mem::replace(&mut self.begun, true) && k.pages.files().inodes[inode].dirty > 0 {
                self.change = k.pages.files().written_back(inode).map(Box::new);
            }
            if let Some(change) = &mut self.change {
                match change.step(k, c) {
                    Step::Done(_) => self.change = None,
                    step => return step.map(|_| Value::Unit),
                }
            }
            let Some(next) = self.waits_for else {
                match k.write_pass(c, &mut self.pass) {
                    Halt::Done => self.waits_for = Some(0),
                    Halt::Turn => return Step::Working,
                    Halt::Full(room) => return Step::Wait(Wait::Io(room)),
                }
                continue;
            };
            let files = k.pages.files();
            let Some(index) = files.next_tagged(inode, next, Tag::Writeback) else {
                let disk = files.disk_of(inode);
                // `sync` forces the log once for all files.
                let wait = if self.is_part { None } else { force_log(k, disk, &mut self.checkpoint) };
                return wait.map_or(Step::Done(Value::Unit), Step::Wait);
            };
            self.waits_for = Some(index);
            let pfn = files.find(inode, index).expect("it is being written, and stays");
            let folio = k.pages.frames.head(pfn);
            debug_assert!(k.pages.frames.flags(folio).any(Flags::WRITEBACK));
            return Step::Wait(k.wait_for_page(folio));
        }
    }
}

/// `sync` of all files.
#[derive(Clone)]
pub(crate) struct Sync {
    /// The next file to write, then to wait for.
    next: u32,
    current: Option<Fsync>,
    begun: bool,
    /// After the files: this disk's log, and the checkpoint to wait for.
    log: u8,
    checkpoint: Option<u64>,
}

impl Sync {
    pub(crate) fn new() -> Sync {
        Sync { next: 0, current: None, begun: false, log: 0, checkpoint: None }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Value, Wait> {
        if k.pages.files.is_none() {
            return Step::Done(Value::Unit);
        }
        if !std::mem::replace(&mut self.begun, true) {
            k.wake_flushers();
        }
        loop {
            if let Some(current) = &mut self.current {
                match current.step(k, c) {
                    Step::Done(_) => self.current = None,
                    step => return step,
                }
            }
            if k.must_yield(c) {
                return Step::Working;
            }
            let Some((inode, _)) = k.pages.files().inodes.next(self.next) else { return self.force_logs(k) };
            self.next = inode + 1;
            self.current = Some(Fsync { is_part: true, ..Fsync::new(inode) });
        }
    }

    /// Forces the logs of all file systems.
    fn force_logs(&mut self, k: &mut Kernel) -> Step<Value, Wait> {
        while usize::from(self.log) < k.pages.files().disks() {
            match force_log(k, self.log, &mut self.checkpoint) {
                Some(wait) => return Step::Wait(wait),
                None => (self.log, self.checkpoint) = (self.log + 1, None),
            }
        }
        Step::Done(Value::Unit)
    }
}

/// Forces a disk's log up to the checkpoint current at the first call; returns the wait for it.
fn force_log(k: &mut Kernel, disk: u8, checkpoint: &mut Option<u64>) -> Option<Wait> {
    let Kernel { pages, queues, .. } = k;
    let files = pages.files();
    if files.filesystem_of(disk) != FileSystem::Xfs {
        return None;
    }
    let log = &mut files.xfs(disk).log;
    let number = *checkpoint.get_or_insert_with(|| log.force());
    if log.is_done(number) {
        return None;
    }
    queues.wake_all(log.checkpoints);
    Some(Wait::Io(log.written))
}
