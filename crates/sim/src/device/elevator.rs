//! The queue of a device: merges adjacent requests and chooses the next one.
//!
//! For a device with one queue the host orders requests by block (`mq-deadline`): batches of 16 in
//! one direction, upwards from where the last of that direction ended; reads before writes, unless
//! writes have been passed over twice; and a read that has waited for half a second, or a write for
//! five, is the first of the next batch. NVMe takes requests in order of arrival. Source:
//! `block/mq-deadline.c` of 6.1; kernel-behaviour §11.7.

use super::bio::Bio;
use super::parameters::Kind;
use super::run::Run;
use kontig_mm::rules::BlockRules;
use std::collections::VecDeque;

const BATCH: u32 = 16;
const WRITES_STARVED: u32 = 2;
/// The longest wait of a read and of a write before it is the first of a batch, ns.
const EXPIRES: [u64; 2] = [500_000_000, 5_000_000_000];

/// Index of a request in the table.
pub(super) type RequestId = u32;

#[derive(Clone)]
pub(super) struct Request {
    pub(super) run: Run,
    pub(super) bios: Vec<Bio>,
    since: u64,
    sequence: u64,
}

#[derive(Clone)]
pub(super) struct Elevator {
    by_place: bool,
    /// Blocks of the largest request.
    most_blocks: u32,
    requests: Vec<Request>,
    unused: Vec<RequestId>,
    /// Waiting reads and writes, by block.
    sorted: [Vec<RequestId>; 2],
    /// The same in order of arrival.
    queued: [VecDeque<RequestId>; 2],
    sequence: u64,
    /// The current batch: its direction, and the requests dispatched.
    writes: bool,
    of_batch: u32,
    /// The block after the last read and after the last write, if they are remembered.
    after: [Option<u32>; 2],
    /// Whether a read leaves the place of writes, and a write that of reads.
    keeps_places: bool,
    /// How often reads have gone before waiting writes.
    starved: u32,
}

impl Elevator {
    pub(super) fn new(kind: Kind, most_blocks: u32, rules: &BlockRules) -> Elevator {
        Elevator {
            by_place: kind != Kind::Nvme,
            most_blocks,
            requests: Vec::new(),
            unused: Vec::new(),
            sorted: [Vec::new(), Vec::new()],
            queued: [VecDeque::new(), VecDeque::new()],
            sequence: 0,
            writes: false,
            of_batch: BATCH,
            after: [None; 2],
            keeps_places: rules.reads_and_writes_keep_places,
            starved: 0,
        }
    }

    pub(super) fn request(&self, id: RequestId) -> &Request {
        &self.requests[id as usize]
    }

    /// Frees a completed request.
    pub(super) fn finish(&mut self, id: RequestId) {
        self.requests[id as usize].bios.clear();
        self.unused.push(id);
    }

    /// The position of a block among the waiting requests of this direction.
    fn place(&self, way: usize, block: u32) -> usize {
        self.sorted[way].partition_point(|id| self.requests[*id as usize].run.first < block)
    }

    /// Adds a bio; whether it was merged into a waiting request.
    pub(super) fn add(&mut self, now: u64, bio: Bio) -> bool {
        let way = usize::from(bio.write);
        let at = self.place(way, bio.first);
        let neighbours = [at.checked_sub(1), Some(at)].into_iter().flatten();
        for &id in neighbours.filter_map(|i| self.sorted[way].get(i)) {
            let request = &mut self.requests[id as usize];
            if request.run.extend(&bio, self.most_blocks) {
                request.bios.push(bio);
                return true;
            }
        }
        let run = Run::new(&bio);
        let (since, sequence) = (now, self.sequence);
        let id = match self.unused.pop() {
            Some(id) => {
                let request = &mut self.requests[id as usize];
                (request.run, request.since, request.sequence) = (run, since, sequence);
                request.bios.push(bio);
                id
            }
            None => {
                self.requests.push(Request { run, bios: vec![bio], since, sequence });
                self.requests.len() as RequestId - 1
            }
        };
        self.sequence += 1;
        self.sorted[way].insert(at, id);
        self.queued[way].push_back(id);
        false
    }

    /// Takes the request to dispatch next.
    pub(super) fn next(&mut self, now: u64) -> Option<RequestId> {
        let waits = |way: usize| !self.queued[way].is_empty();
        if !waits(0) && !waits(1) {
            return None;
        }
        if !self.by_place {
            let first = |way: usize| self.queued[way].front().map(|id| self.requests[*id as usize].sequence);
            let way = usize::from(first(0).is_none_or(|read| first(1).is_some_and(|write| write < read)));
            let id = self.queued[way].pop_front()?;
            let at = self.place(way, self.requests[id as usize].run.first);
            self.sorted[way].remove(at);
            return Some(id);
        }
        let way = usize::from(self.writes);
        if let Some(at) = self.following(way).filter(|_| self.of_batch < BATCH) {
            return Some(self.take(way, at));
        }
        let way = match (waits(0), waits(1)) {
            (true, true) if self.starved < WRITES_STARVED => {
                self.starved += 1;
                0
            }
            (true, false) => 0,
            _ => {
                self.starved = 0;
                1
            }
        };
        (self.writes, self.of_batch) = (way == 1, 0);
        let oldest = &self.requests[*self.queued[way].front()? as usize];
        let following = self.following(way).filter(|_| now - oldest.since < EXPIRES[way]);
        let at = following.unwrap_or_else(|| self.place(way, oldest.run.first));
        Some(self.take(way, at))
    }

    /// The waiting request at or after the place where the last one of this direction ended.
    fn following(&self, way: usize) -> Option<usize> {
        self.after[way].map(|after| self.place(way, after)).filter(|at| *at < self.sorted[way].len())
    }

    fn take(&mut self, way: usize, at: usize) -> RequestId {
        let id = self.sorted[way].remove(at);
        let sequence = |id: RequestId| self.requests[id as usize].sequence;
        // The queue is in order of arrival.
        let in_queue = self.queued[way].partition_point(|queued| sequence(*queued) < sequence(id));
        let queued = self.queued[way].remove(in_queue);
        debug_assert_eq!(queued, Some(id));
        let request = &self.requests[id as usize];
        let after = Some(request.run.first + request.run.blocks);
        if self.keeps_places {
            self.after[way] = after;
        } else {
            self.after = std::array::from_fn(|other| after.filter(|_| other == way));
        }
        self.of_batch += 1;
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elevator(kind: Kind) -> Elevator {
        Elevator::new(kind, 320, &kontig_profiles::linux("6.1").block)
    }

    fn bio(first: u32, blocks: u32, write: bool) -> Bio {
        Bio { first, blocks, write, tag: first }
    }

    /// Adds bios of which no two are adjacent.
    fn add(e: &mut Elevator, bios: &[Bio]) {
        assert!(bios.iter().all(|bio| !e.add(0, *bio)));
    }

    /// The first blocks of the requests taken, until none waits.
    fn order(e: &mut Elevator, now: u64) -> Vec<u32> {
        std::iter::from_fn(|| e.next(now).map(|id| e.request(id).run.first)).collect()
    }

    #[test]
    fn adjacent_bios_become_one_request_up_to_its_limit() {
        let mut e = elevator(Kind::Ssd);
        assert!(!e.add(0, bio(100, 8, false)));
        assert!(e.add(0, bio(108, 8, false)), "behind it");
        assert!(e.add(0, bio(92, 8, false)), "before it");
        assert!(!e.add(0, bio(116, 8, true)), "a write is none of a read's");
        assert!(!e.add(0, bio(116, 320, false)), "it would be too large");
        let id = e.next(0).expect("one waits");
        let request = e.request(id);
        assert_eq!((request.run.first, request.run.blocks, request.bios.len()), (92, 24, 3));
    }

    #[test]
    fn requests_go_out_by_place_from_where_the_last_one_ended() {
        let mut e = elevator(Kind::Hdd);
        add(&mut e, &[500, 100, 300].map(|at| bio(at, 1, false)));
        assert_eq!(order(&mut e, 0), [500, 100, 300], "the oldest begins");
        add(&mut e, &[400, 700, 200].map(|at| bio(at, 1, false)));
        assert_eq!(order(&mut e, 0), [400, 700, 200], "at the end the oldest begins a new batch");
    }

    #[test]
    fn writes_go_on_where_writes_ended_or_before_5_14_begin_with_the_oldest() {
        for (version, expected) in [("5.10", 50), ("6.1", 400)] {
            let mut e = Elevator::new(Kind::Hdd, 320, &kontig_profiles::linux(version).block);
            add(&mut e, &[bio(300, 1, true)]);
            assert_eq!(order(&mut e, 0), [300]);
            add(&mut e, &[bio(900, 1, false)]);
            assert_eq!(order(&mut e, 0), [900]);
            add(&mut e, &[bio(50, 1, true), bio(400, 1, true)]);
            assert_eq!(order(&mut e, 0)[0], expected);
        }
    }

    #[test]
    fn writes_are_passed_over_twice() {
        let mut e = elevator(Kind::Ssd);
        add(&mut e, &std::array::from_fn::<_, 64, _>(|i| bio(1000 + 2 * i as u32, 1, false)));
        add(&mut e, &[bio(10, 1, true)]);
        let all = order(&mut e, 0);
        assert_eq!(all.iter().position(|first| *first == 10), Some(32), "after two batches of 16");
    }

    #[test]
    fn a_request_that_has_waited_too_long_begins_the_next_batch() {
        let mut e = elevator(Kind::Hdd);
        e.add(0, bio(5, 1, false));
        e.after[0] = Some(100);
        e.add(400_000_000, bio(200, 1, false));
        assert_eq!(order(&mut e.clone(), 400_000_000), [200, 5]);
        assert_eq!(order(&mut e, 500_000_000), [5, 200]);
    }

    #[test]
    fn nvme_takes_requests_as_they_come() {
        let mut e = elevator(Kind::Nvme);
        add(&mut e, &[bio(9, 1, false), bio(3, 1, true), bio(7, 1, false)]);
        assert_eq!(order(&mut e, 0), [9, 3, 7]);
    }
}
