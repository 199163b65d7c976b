//! All devices of a machine, with who waits for what they do.
//!
//! What is asked of a device is collected while a task works (the kernel's plug) and handed over with the time that its
//! work has taken. The device then says when it is through, and that becomes an event.

use super::{Bio, Device, Parameters};
use crate::base::queue::{QueueId, Queues};
use crate::base::slots::Slots;
use crate::base::timer::{Event, Timers};
use kontig_mm::CpuId;

/// What a bio is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// Pages of a file.
    File {
        /// The file.
        inode: u32,
        /// The first page.
        index: u32,
    },
    /// Pages of the swap cache, from this slot on.
    Swap(u32),
    /// A buffer of a disk's file system.
    Buffer {
        /// The disk.
        disk: u8,
        /// The buffer.
        number: u32,
    },
    /// A piece of the log of a disk's file system.
    Log(u8),
}

/// A bio that is under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Io {
    pub(crate) target: Target,
    pub(crate) pages: u32,
    pub(crate) write: bool,
    /// Who asked; whoever is interrupted when it is through.
    pub(crate) cpu: CpuId,
}

/// A device, and who waits until it takes more to write.
#[derive(Clone)]
struct Queued {
    device: Device,
    room: QueueId,
    /// When it will be looked at next.
    looks_at: u64,
}

/// All devices.
#[derive(Clone, Default)]
pub(crate) struct Devices {
    all: Vec<Queued>,
    under_way: Slots<Io>,
    /// What is asked for and not handed over yet, with its device.
    plugged: Vec<(u8, Bio)>,
    /// What a device is through with; empty but while that is told.
    done: Vec<Bio>,
}

impl Devices {
    /// Adds a device; its number.
    pub(crate) fn add(&mut self, parameters: Parameters, room: QueueId) -> u8 {
        self.all.push(Queued { device: Device::new(parameters), room, looks_at: u64::MAX });
        (self.all.len() - 1) as u8
    }

    /// Asks for something.
    pub(crate) fn plug(&mut self, device: u8, first: u32, io: Io) {
        let (blocks, write) = (io.pages, io.write);
        let tag = self.under_way.add(io);
        self.plugged.push((device, Bio { first, blocks, write, tag }));
    }

    /// Whether something is asked for and not handed over.
    #[inline(always)]
    pub(crate) fn has_plugged(&self) -> bool {
        !self.plugged.is_empty()
    }

    /// A device.
    pub(crate) fn device(&self, device: u8) -> &Device {
        &self.all[usize::from(device)].device
    }

    /// Where one waits for the first device that takes no more writes, if there is one.
    pub(crate) fn full(&self) -> Option<QueueId> {
        self.all.iter().find(|queued| !queued.device.takes_writes()).map(|queued| queued.room)
    }

    /// Where somebody waits who may write more once the device has done some.
    pub(crate) fn room(&self, device: u8) -> QueueId {
        self.all[usize::from(device)].room
    }

    /// Hands over what has been asked for.
    pub(crate) fn unplug(&mut self, now: u64, timers: &mut Timers) {
        let Devices { all, plugged, .. } = self;
        for (number, queued) in (0u8..).zip(all.iter_mut()) {
            let its = plugged.iter().filter(|(device, _)| *device == number);
            queued.device.submit(now, its.map(|(_, bio)| *bio));
        }
        plugged.clear();
        self.look_again(timers);
    }

    /// Sees to it that every device is looked at when it has something through.
    pub(crate) fn look_again(&mut self, timers: &mut Timers) {
        for (number, queued) in (0u8..).zip(self.all.iter_mut()) {
            let Some(next) = queued.device.next_completion().filter(|at| *at < queued.looks_at) else { continue };
            queued.looks_at = next;
            timers.at(next, Event::IoDone(number));
        }
    }

    /// A device may be through with something: it is added to `done`. Who waited to write more is woken.
    pub(crate) fn complete(&mut self, number: u8, now: u64, queues: &mut Queues, done: &mut Vec<Io>) {
        let queued = &mut self.all[usize::from(number)];
        if queued.looks_at <= now {
            queued.looks_at = u64::MAX;
        }
        queued.device.complete(now, &mut self.done);
        if queued.device.takes_writes() {
            queues.wake_all(queued.room);
        }
        done.extend(self.done.drain(..).map(|bio| self.under_way.remove(bio.tag)));
    }
}
