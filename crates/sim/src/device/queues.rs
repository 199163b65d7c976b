//! All devices of a machine, with the tasks that wait for them.
//!
//! Requests are collected while a task works ([`super::plug`]) and submitted once the time of its
//! work is known. The device then gives its next completion time, which becomes an event.

use super::bio::Bio;
use super::block_device::Device;
use super::parameters::Parameters;
use super::plug::Plug;
use crate::base::queue::{QueueId, Queues};
use crate::base::slots::Slots;
use crate::base::timer::{Event, Timers};
use kontig_mm::CpuId;
use kontig_mm::rules::BlockRules;

/// The purpose of a bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    File {
        inode: u32,
        index: u32,
    },
    /// Pages of the swap cache, from this slot on.
    Swap(u32),
    /// A buffer of a disk's file system.
    Buffer {
        disk: u8,
        number: u32,
    },
    /// A piece of the log of a disk's file system.
    Log(u8),
}

/// A bio in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Io {
    pub(crate) target: Target,
    pub(crate) pages: u32,
    pub(crate) write: bool,
    /// The submitting CPU, which takes the completion interrupt.
    pub(crate) cpu: CpuId,
}

/// A device, with the queue of tasks that wait to write more.
#[derive(Clone)]
struct Queued {
    device: Device,
    room: QueueId,
    /// The time of its next event.
    looks_at: u64,
}

#[derive(Clone, Default)]
pub(crate) struct Devices {
    all: Vec<Queued>,
    under_way: Slots<Io>,
    /// The plug of the running task.
    pub(crate) plug: Plug,
    /// Bios completed by a device, while they are being handled.
    done: Vec<Bio>,
}

impl Devices {
    pub(crate) fn add(&mut self, parameters: Parameters, rules: BlockRules, room: QueueId) -> u8 {
        self.all.push(Queued { device: Device::new(parameters, rules), room, looks_at: u64::MAX });
        (self.all.len() - 1) as u8
    }

    /// Adds a request to the running task's plug.
    pub(crate) fn add_to_plug(&mut self, device: u8, first: u32, io: Io) {
        let (blocks, write) = (io.pages, io.write);
        let tag = self.under_way.add(io);
        let Device { parameters, rules, .. } = &self.all[usize::from(device)].device;
        self.plug.add(device, Bio { first, blocks, write, tag }, parameters.most_blocks, rules);
    }

    /// Whether there are requests to submit.
    #[inline(always)]
    pub(crate) fn must_submit(&self) -> bool {
        self.plug.is_due()
    }

    pub(crate) fn device(&self, device: u8) -> &Device {
        &self.all[usize::from(device)].device
    }

    /// The queue of the first device that takes no more writes, if there is one.
    pub(crate) fn full(&self) -> Option<QueueId> {
        self.all.iter().find(|queued| !queued.device.takes_writes()).map(|queued| queued.room)
    }

    /// The queue of tasks that wait to write more to a device.
    pub(crate) fn room(&self, device: u8) -> QueueId {
        self.all[usize::from(device)].room
    }

    /// Submits what the running task no longer keeps.
    pub(crate) fn submit(&mut self, now: u64, timers: &mut Timers) {
        let Devices { all, plug, .. } = self;
        for (number, queued) in (0u8..).zip(all.iter_mut()) {
            let its = plug.due().iter().filter(|(device, _)| *device == number);
            queued.device.submit(now, its.map(|(_, bio)| *bio));
        }
        plug.submitted();
        self.look_again(timers);
    }

    /// Schedules an event for the next completion of every device.
    pub(crate) fn look_again(&mut self, timers: &mut Timers) {
        for (number, queued) in (0u8..).zip(self.all.iter_mut()) {
            let Some(next) = queued.device.next_completion().filter(|at| *at < queued.looks_at) else { continue };
            queued.looks_at = next;
            timers.at(next, Event::IoDone(number));
        }
    }

    /// Adds a device's completed requests to `done`, and wakes the tasks that wait to write more.
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
