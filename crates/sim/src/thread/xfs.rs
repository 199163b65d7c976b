//! The two threads of an XFS: one writes checkpoints to the log (`xfs-cil`, and the worker that
//! runs every 30 seconds), the other writes logged items in place (`xfsaild`).

use crate::base::context::Context;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::device::{Io, Target};
use crate::kernel::Kernel;
use crate::paging::xfs::GetBuffer;
use crate::state::file::xfs::{Item, WORKER_NS};
use kontig_mm::Step;

/// Log writes in flight: there are eight iclogs.
const ICLOGS: usize = 8;

/// The thread that writes checkpoints.
#[derive(Clone)]
pub(crate) struct CheckpointThread {
    disk: u8,
    /// The rest of the checkpoint being written, the last run first; `None` between two.
    runs: Option<Vec<(u32, u32)>>,
}

impl CheckpointThread {
    pub(crate) fn disk(&self) -> u8 {
        self.disk
    }

    pub(crate) fn new(disk: u8) -> CheckpointThread {
        CheckpointThread { disk, runs: None }
    }

    pub(crate) fn turn(&mut self, k: &mut Kernel, c: &mut Context) -> Step<(), Wait> {
        if std::mem::take(&mut c.timed_out) {
            k.pages.files().xfs(self.disk).log.work();
            let pusher = k.pages.files().xfs(self.disk).log.pusher;
            k.queues.wake_all(pusher);
        }
        loop {
            if k.must_yield(c) {
                return Step::Working;
            }
            let files = k.pages.files();
            let log = &mut files.xfs(self.disk).log;
            if log.pieces > 0 {
                return Step::Wait(Wait::Io(log.checkpoints));
            }
            let Some(runs) = &mut self.runs else {
                if !log.is_due() {
                    let queue = log.checkpoints;
                    return Step::Wait(match log.has_work() {
                        true => Wait::QueueAtMost(queue, WORKER_NS),
                        false => Wait::Queue(queue),
                    });
                }
                let mut runs = files.begin_checkpoint(self.disk);
                runs.reverse();
                self.runs = Some(runs);
                continue;
            };
            if runs.is_empty() {
                let Kernel { mem, pages, .. } = k;
                let is_over = pages.files().end_checkpoint(mem, c.cpu, self.disk);
                k.charge(&mut c.now);
                if is_over {
                    self.runs = None;
                    let log = &k.pages.files().xfs(self.disk).log;
                    let woken = [log.written, log.space, log.pusher];
                    woken.into_iter().for_each(|queue| k.queues.wake_all(queue));
                }
                continue;
            }
            let now = runs.split_off(runs.len().saturating_sub(ICLOGS));
            log.pieces = now.len() as u32;
            for (first, pages) in now.into_iter().rev() {
                let io = Io { target: Target::Log(self.disk), pages, write: true, cpu: c.cpu };
                k.pages.devices.add_to_plug(self.disk, first, io);
            }
            k.charge(&mut c.now);
        }
    }
}

/// The thread that writes logged items in place.
#[derive(Clone)]
pub(crate) struct PushThread {
    disk: u8,
    /// The item to write, and its buffer, which may have to be read first.
    getting: Option<(Item, GetBuffer)>,
}

impl PushThread {
    pub(crate) fn disk(&self) -> u8 {
        self.disk
    }

    pub(crate) fn new(disk: u8) -> PushThread {
        PushThread { disk, getting: None }
    }

    pub(crate) fn turn(&mut self, k: &mut Kernel, c: &mut Context) -> Step<(), Wait> {
        loop {
            if k.must_yield(c) {
                return Step::Working;
            }
            if !k.pages.devices.device(self.disk).takes_writes() {
                return Step::Wait(Wait::Io(k.pages.devices.room(self.disk)));
            }
            let Some((item, get)) = &mut self.getting else {
                let files = k.pages.files();
                let Some(item) = files.next_to_push(self.disk) else {
                    return Step::Wait(Wait::Queue(files.xfs(self.disk).log.pusher));
                };
                if files.logged(self.disk, item).is_pinned() {
                    files.pass_over(self.disk, item);
                    let log = &mut files.xfs(self.disk).log;
                    log.force();
                    let checkpoints = log.checkpoints;
                    k.queues.wake_all(checkpoints);
                    continue;
                }
                let chunk = files.chunk_of(self.disk, item);
                self.getting = Some((item, GetBuffer::new(self.disk, chunk)));
                continue;
            };
            let item = *item;
            match done!(get.step(k, c)) {
                // No memory: retry a moment later.
                Err(_) => {
                    self.getting = None;
                    return Step::Wait(Wait::Time(crate::base::timer::JIFFY_NS));
                }
                Ok(number) => {
                    self.getting = None;
                    let Kernel { mem, pages, .. } = k;
                    let files = pages.files();
                    match files.begin_buffer_write(self.disk, number) {
                        Some((first, blocks)) => {
                            let target = Target::Buffer { disk: self.disk, number };
                            pages.devices.add_to_plug(
                                self.disk,
                                first,
                                Io { target, pages: blocks, write: true, cpu: c.cpu },
                            );
                        }
                        // It has been logged again meanwhile, or is gone.
                        None => {
                            files.let_go_buffer(mem, c.cpu, self.disk, number);
                            files.pass_over(self.disk, item);
                        }
                    }
                    k.charge(&mut c.now);
                }
            }
        }
    }
}
