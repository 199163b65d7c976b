//! A disk's flusher: writes dirty pages of its files in the background.
//!
//! It writes everything when asked to (`sync`, or reclaim that met dirty pages), whatever is dirty
//! while the background limit is exceeded, and pages dirty for 30 seconds
//! (`vm.dirty_expire_centisecs`), which it looks for every 5 (`vm.dirty_writeback_centisecs`).
//! Files are written in the order in which they became dirty, a part of each at a time. Source:
//! `fs/fs-writeback.c` of 6.1.

use crate::base::context::Context;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::kernel::Kernel;
use crate::paging::write_pass::{Halt, Pass};
use crate::paging::xfs::Change;
use crate::state::file::Limits;
use kontig_mm::{Memory, Step};

const SECOND: u64 = 1_000_000_000;
const CENTISECOND: u64 = SECOND / 100;
/// The least pages to write of a file (`MIN_WRITEBACK_PAGES`).
const LEAST: u64 = 1024;

/// The reason for writing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Why {
    /// A request to write everything that is dirty.
    All,
    /// The background limit is exceeded.
    Background,
    /// Pages have been dirty for too long.
    Old,
}

/// A unit of work.
#[derive(Clone, Copy, Debug)]
struct Work {
    why: Why,
    /// Pages still to write.
    left: u64,
    /// Write only files that became dirty at this time or earlier.
    since: u64,
    /// Whether it has written any page.
    wrote: bool,
}

/// Interval between looks for old dirty pages, ns; `None` for never.
fn looks_every(m: &Memory) -> Option<u64> {
    let centisecs = u64::from(m.tunables().dirty.writeback_centisecs);
    (centisecs > 0).then_some(centisecs * CENTISECOND)
}

/// A flusher as a task.
#[derive(Clone)]
pub(crate) struct FlusherThread {
    disk: u8,
    work: Option<Work>,
    /// The file being written, and the pages wanted of it at the start.
    pass: Option<(Pass, u64)>,
    /// The change of the file that XFS logs.
    change: Option<Box<Change>>,
    looked_at: u64,
    /// The limit was exceeded but nothing could be written: without a wait it would retry at the
    /// same moment for ever.
    stuck: bool,
}

impl FlusherThread {
    pub(crate) fn disk(&self) -> u8 {
        self.disk
    }

    pub(crate) fn new(disk: u8) -> FlusherThread {
        FlusherThread { disk, work: None, pass: None, change: None, looked_at: 0, stuck: false }
    }

    pub(crate) fn turn(&mut self, k: &mut Kernel, c: &mut Context) -> Step<(), Wait> {
        loop {
            if k.must_yield(c) {
                return Step::Working;
            }
            if let Some(change) = &mut self.change {
                _ = done!(change.step(k, c));
                self.change = None;
            }
            if let Some((pass, had)) = &mut self.pass {
                match k.write_pass(c, pass) {
                    Halt::Done => {}
                    Halt::Turn => return Step::Working,
                    Halt::Full(room) => return Step::Wait(Wait::Io(room)),
                }
                let (pass, had) = (*pass, *had);
                self.pass = None;
                self.put_back(k, c.now, pass, had);
                continue;
            }
            if self.work.is_none() {
                self.work = self.next_work(k, c.now);
            }
            match self.work {
                Some(work) => {
                    if !self.next_file(k, c.now, work) {
                        self.work = None;
                        self.stuck = work.why == Why::Background && !work.wrote;
                    }
                }
                None => {
                    let looks_every = looks_every(&k.mem);
                    let w = k.pages.files().writing(self.disk);
                    let queue = w.flusher;
                    return Step::Wait(match looks_every {
                        Some(ns) if w.queued.len() + w.taken.len() > 0 => Wait::QueueAtMost(queue, ns),
                        _ => Wait::Queue(queue),
                    });
                }
            }
        }
    }

    fn next_work(&mut self, k: &mut Kernel, now: u64) -> Option<Work> {
        let stuck = std::mem::take(&mut self.stuck);
        let limits = Limits::now(&k.mem);
        let old = u64::from(k.mem.tunables().dirty.expire_centisecs) * CENTISECOND;
        let looks_every = looks_every(&k.mem);
        let files = k.pages.files();
        let dirty = files.counts.dirty;
        let w = files.writing(self.disk);
        let work = |why, since| Some(Work { why, left: dirty, since, wrote: false });
        if std::mem::take(&mut w.all_wanted) {
            return work(Why::All, now);
        }
        if looks_every.is_some_and(|ns| now >= self.looked_at + ns) {
            self.looked_at = now;
            let since = now.saturating_sub(old);
            let oldest = w.queued.first();
            if now >= old && oldest.is_some_and(|inode| files.inodes[inode].dirty_since <= since) {
                return work(Why::Old, since);
            }
        }
        let background = Work { why: Why::Background, left: u64::MAX, since: now, wrote: false };
        (!stuck && dirty > limits.background).then_some(background)
    }

    /// Goes on to the next file; whether there is one.
    fn next_file(&mut self, k: &mut Kernel, now: u64, work: Work) -> bool {
        let limits = Limits::now(&k.mem);
        let files = k.pages.files();
        let (dirty, disk) = (files.counts.dirty, self.disk);
        if work.left == 0 || work.why == Why::Background && dirty <= limits.background {
            return false;
        }
        if work.why != Why::All && files.writing(disk).all_wanted {
            return false;
        }
        let w = files.writing(disk);
        // Files that had their part go on when all others have had theirs.
        let next = w.queued.first().filter(|inode| files.inodes[*inode].dirty_since <= work.since);
        let w = files.writing(disk);
        let next = match next {
            Some(inode) => {
                w.queued.remove(inode);
                inode
            }
            None => match w.taken.first() {
                Some(inode) => {
                    w.taken.remove(inode);
                    inode
                }
                None => return false,
            },
        };
        files.fetch_queued(disk);
        let part = (files.writing(disk).bandwidth.average / 2).min(limits.limit / 8);
        let part = (part.min(work.left).saturating_add(LEAST) / LEAST * LEAST).max(LEAST);
        let i = &mut files.inodes[next];
        i.dirty_since = i.dirty_since.min(now);
        self.pass = Some((Pass { inode: next, next: i.written_to, left: part }, part));
        self.change = files.written_back(next).map(Box::new);
        true
    }

    /// Puts back a file that has had its part.
    fn put_back(&mut self, k: &mut Kernel, now: u64, pass: Pass, had: u64) {
        if let Some(work) = &mut self.work {
            work.left = work.left.saturating_sub(had - pass.left);
            work.wrote |= had > pass.left;
        }
        let files = k.pages.files();
        let Some(i) = files.inodes.get_mut(pass.inode) else { return };
        // At the end of the file it starts over, if anything is still dirty.
        i.written_to = if pass.left > 0 { 0 } else { pass.next };
        if i.dirty == 0 {
            return;
        }
        let wrapped = pass.left > 0 && had == pass.left;
        if wrapped {
            // No page of it can be written now: try it later.
            i.dirty_since = now + 1;
        }
        let w = files.writing(self.disk);
        if wrapped { w.queued.add(pass.inode) } else { w.taken.add(pass.inode) }
    }
}
