//! One device: submission, dispatch and completion of requests.

use super::bio::Bio;
use super::elevator::{Elevator, RequestId};
use super::flash::Flash;
use super::parameters::{Kind, Parameters};
use super::platter::Platter;
use kontig_mm::rules::BlockRules;

/// A block device with its queue.
#[derive(Clone)]
pub(crate) struct Device {
    pub(super) parameters: Parameters,
    pub(super) rules: BlockRules,
    waiting: Elevator,
    /// Requests that the device works on.
    taken: Vec<Taken>,
    medium: Medium,
    /// Write requests, waiting or taken.
    writes: u32,
    /// The latest time it was told. A task's turn may end a little after another's begins, so times
    /// can go back.
    now: u64,
}

#[derive(Clone)]
enum Medium {
    Flash(Flash),
    Platter(Platter),
}

/// A request that the device works on.
#[derive(Clone, Copy)]
struct Taken {
    request: RequestId,
    /// Completion time; `None` while a disk's head is elsewhere.
    done: Option<u64>,
    /// How often the disk has served another request first.
    passed_over: u32,
}

impl Device {
    pub(crate) fn new(parameters: Parameters, rules: BlockRules) -> Device {
        let medium = match parameters.kind {
            Kind::Nvme | Kind::Ssd => Medium::Flash(Flash::new(&parameters)),
            Kind::Hdd => Medium::Platter(Platter::new(&parameters)),
        };
        Device {
            waiting: Elevator::new(parameters.kind, parameters.most_blocks, &rules),
            taken: Vec::with_capacity(parameters.queue_depth as usize),
            medium,
            parameters,
            rules,
            writes: 0,
            now: 0,
        }
    }

    /// Whether it is flash, with no seeks.
    pub(crate) fn is_flash(&self) -> bool {
        matches!(self.medium, Medium::Flash(_))
    }

    /// Whether background writers may submit more. Three quarters of the host's requests are for
    /// writes; the rest is kept for readers (`dd_limit_depth`).
    pub(crate) fn takes_writes(&self) -> bool {
        self.writes < self.parameters.host_requests() * 3 / 4
    }

    /// Submits bios at one time; adjacent ones are merged before the device takes the first.
    pub(crate) fn submit(&mut self, now: u64, bios: impl IntoIterator<Item = Bio>) {
        self.now = self.now.max(now);
        let now = self.now;
        for bio in bios {
            debug_assert!(bio.blocks > 0 && bio.first + bio.blocks <= self.parameters.blocks, "{bio:?} is outside");
            let merged = self.waiting.add(now, bio);
            self.writes += u32::from(bio.write && !merged);
        }
        self.dispatch(now);
    }

    /// The time of the next call to [`Device::complete`]; `None` while it is idle.
    pub(crate) fn next_completion(&self) -> Option<u64> {
        self.taken.iter().filter_map(|taken| taken.done).min()
    }

    /// Returns the bios completed by now, in order, and starts waiting requests.
    pub(crate) fn complete(&mut self, now: u64, done: &mut Vec<Bio>) {
        while let Some(at) = self.next_completion().filter(|at| *at <= now) {
            let through = self.taken.iter().position(|taken| taken.done == Some(at)).expect("one is through then");
            let taken = self.taken.remove(through);
            let request = self.waiting.request(taken.request);
            self.writes -= u32::from(request.run.write);
            done.extend_from_slice(&request.bios);
            self.waiting.finish(taken.request);
            self.now = self.now.max(at);
            self.dispatch(self.now);
        }
    }

    /// Starts waiting requests while the device has room.
    fn dispatch(&mut self, now: u64) {
        while self.taken.len() < self.parameters.queue_depth as usize
            && let Some(id) = self.waiting.next(now)
        {
            let request = self.waiting.request(id);
            let done = match &mut self.medium {
                Medium::Flash(flash) => Some(flash.serve(now, request.run.blocks, request.run.write)),
                Medium::Platter(_) => None,
            };
            self.taken.push(Taken { request: id, done, passed_over: 0 });
        }
        if let Medium::Platter(platter) = &mut self.medium
            && self.taken.iter().all(|taken| taken.done.is_none())
        {
            Device::move_head(platter, &self.waiting, &mut self.taken, now);
        }
    }

    /// Moves the head to the request it reaches soonest, but first to one that has been passed over
    /// too often.
    fn move_head(platter: &mut Platter, waiting: &Elevator, taken: &mut [Taken], now: u64) {
        let most = taken.len() as u32;
        let soonest = taken.iter().enumerate().min_by_key(|(_, taken)| {
            let first = waiting.request(taken.request).run.first;
            (taken.passed_over <= PASSES * most, platter.reaches(now, first))
        });
        let Some((next, _)) = soonest else { return };
        let run = waiting.request(taken[next].request).run;
        taken[next].done = Some(platter.serve(now, run.first, run.blocks, run.write));
        taken.iter_mut().filter(|taken| taken.done.is_none()).for_each(|taken| taken.passed_over += 1);
    }
}

/// How many full queues of other requests a disk may serve before a request it has taken.
const PASSES: u32 = 4;
