//! An in-memory store that forks to save itself: a child writes all memory to a file while the
//! parent keeps changing it, and each page it changes is copied first.
//!
//! Redis saves this way. The parent writes to random pages, a given number of times before a save
//! and then until the child has ended, which it polls for between requests. The two are timed
//! apart, which shows what saving costs the writers. A child that is killed has saved nothing, and
//! its time does not count. Each save is a new file that replaces the previous one when it is
//! complete.

use crate::benchmark::{Benchmark, Measured, Start, Written};
use crate::latencies::Latencies;
use crate::limits::{LONGEST_PAUSE_US, within};
use crate::player::{Manner, Player};
use crate::size::{all_fit, pages};
use kontig_program::act::{Act, CALL, Pages};
use kontig_program::{Batch, Figure, FileName, Op, Outcome, Program, Region, SplitMix64, Value};
use serde::{Deserialize, Serialize};

/// Requests handed over at a time.
const AT_ONCE: u32 = 32;
/// The files it saves to in turn, with numbers that no workload's steps use.
const FILES: [FileName; 2] = [FileName::new(0, 1 << 48), FileName::new(0, (1 << 48) + 1)];
/// Pieces in which the child goes through the memory.
const PIECES: u32 = 64;
/// Time on a CPU the child takes to write a page out as text: 1 GB/s.
const NS_A_PAGE: u64 = 4_000;

/// A store forks to save itself.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ForkingStore {
    pub size: String,
    /// The number of saves.
    pub saves: u32,
    /// Requests before each save, each of which writes to one page. During a save requests go on
    /// until it ends.
    pub requests: u32,
    /// Time on a CPU that a request takes beside that, µs.
    #[serde(default = "ten")]
    pub request_us: f64,
}

const fn ten() -> f64 {
    10.0
}

impl Benchmark for ForkingStore {
    type Program = Store;

    fn program(&self, start: &Start) -> Result<Store, String> {
        if self.saves == 0 || self.requests == 0 {
            return Err(format!("saves = {}, requests = {}: at least one of each", self.saves, self.requests));
        }
        within("request_us", self.request_us, LONGEST_PAUSE_US)?;
        Ok(Store {
            pages: pages("size", &self.size)?,
            saves: self.saves,
            requests: self.requests,
            request_ns: (self.request_us * 1000.0) as u64,
            random: SplitMix64::new(start.seed),
            memory: None,
            stage: Stage::Quiet,
            left: self.requests,
            saved: 0,
            killed: 0,
            forked: 0,
            asked: 0,
            quiet: Latencies::new("write between saves", "there was none"),
            saving: Latencies::new("write during a save", "there was none"),
            forks: Latencies::new("fork", "there was none"),
            took: Latencies::new("save", "none was ended"),
        })
    }

    fn measured(&self, copies: &[&Store]) -> Measured {
        let saved: u32 = copies.iter().map(|store| store.saved).sum();
        let killed: u32 = copies.iter().map(|store| store.killed).sum();
        let killed = Figure::new("saves killed for want of memory", "saves").lower().read(f64::from(killed));
        let figures = vec![Figure::new("saves", "saves").read(f64::from(saved)), killed];
        let of = |of: fn(&Store) -> &Latencies| Latencies::of_all(copies.iter().map(|store| of(store)));
        let latencies = [of(|s| &s.quiet), of(|s| &s.saving), of(|s| &s.forks), of(|s| &s.took)];
        Measured { figures, latencies: latencies.into_iter().flatten().collect(), ..Measured::default() }
    }

    fn fits(&self, pages: u64, copies: u64) -> Result<(), String> {
        all_fit("size", &self.size, pages, copies)
    }

    /// A save replaces the one before it.
    fn written(&self) -> Vec<Written> {
        let saves = u64::from(self.saves.min(2));
        let pages = pages("size", &self.size).map_or(0, u64::from) * saves;
        vec![Written { key: "size", disk: 0, pages }]
    }

    fn last_disk(&self) -> Option<u8> {
        Some(0)
    }

    fn is_random(&self) -> bool {
        true
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Serving requests without a save under way.
    Quiet,
    /// Serving requests during a save.
    Saving,
}

/// The process that is the store.
#[derive(Clone)]
pub struct Store {
    pages: u32,
    saves: u32,
    requests: u32,
    request_ns: u64,
    random: SplitMix64,
    memory: Option<Region>,
    stage: Stage,
    /// Requests left before the next save.
    left: u32,
    saved: u32,
    killed: u32,
    /// The time of the last fork.
    forked: u64,
    /// Requests of the last batch.
    asked: u32,
    quiet: Latencies,
    saving: Latencies,
    forks: Latencies,
    took: Latencies,
}

impl Store {
    fn learn(&mut self, done: &[Outcome]) {
        let took = if self.stage == Stage::Saving { &mut self.saving } else { &mut self.quiet };
        // Of each request the first operation is the write.
        let writes = done.iter().step_by(2).take(std::mem::take(&mut self.asked) as usize);
        writes.for_each(|write| took.record(write.latency_ns()));
        for outcome in done {
            match outcome.value {
                Value::Child(_) => {
                    self.forked = outcome.start_ns;
                    self.forks.record(outcome.latency_ns());
                }
                Value::Ended { killed, .. } => {
                    if killed {
                        self.killed += 1;
                    } else {
                        self.saved += 1;
                        self.took.record(outcome.end_ns - self.forked);
                    }
                    (self.stage, self.left) = (Stage::Quiet, self.requests);
                }
                _ => {}
            }
        }
    }

    fn ask(&mut self, memory: Region, requests: u32, todo: &mut Batch) {
        for _ in 0..requests {
            let page = Region { first: memory.first + self.random.below(self.pages), pages: 1, ..memory };
            todo.extend([Op::Touch(page), Op::Compute(self.request_ns)]);
        }
        self.asked = requests;
    }

    /// The child, which reads all memory shared with its parent and writes it to the file.
    fn saver(&self, memory: Region) -> Saver {
        // The file of a killed child is overwritten.
        let new = self.saved as usize % FILES.len();
        let mut acts = vec![Act::Write(FILES[new], Pages::in_calls(0, self.pages, CALL))];
        if self.saved > 0 {
            acts.push(Act::Unlink(FILES[1 - new]));
        }
        Saver { memory, pages: self.pages, next: 0, file: Player::new(acts, Manner::PROGRAM) }
    }
}

impl Program for Store {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        self.learn(done);
        let memory = match (self.memory, done.last().map(|last| last.value)) {
            (Some(memory), _) => memory,
            (None, Some(Value::Region(memory))) => {
                self.memory = Some(memory);
                return todo.push(Op::Touch(memory));
            }
            _ => return todo.push(Op::Mmap { pages: self.pages }),
        };
        match self.stage {
            _ if self.saved + self.killed == self.saves => {}
            Stage::Quiet if self.left > 0 => {
                let now = AT_ONCE.min(self.left);
                self.left -= now;
                self.ask(memory, now, todo);
            }
            Stage::Quiet => {
                self.stage = Stage::Saving;
                let saver = self.saver(memory);
                todo.push(Op::Fork(Box::new(saver)));
            }
            Stage::Saving => {
                self.ask(memory, AT_ONCE, todo);
                todo.push(Op::WaitNoHang);
            }
        }
    }

    fn progress(&self) -> f64 {
        f64::from(self.saved + self.killed) / f64::from(self.saves)
    }
}

#[derive(Clone)]
struct Saver {
    memory: Region,
    pages: u32,
    /// The next page to be read.
    next: u32,
    file: Player,
}

impl Program for Saver {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        if self.next == self.pages {
            return self.file.next(done, todo);
        }
        let pages = self.pages.div_ceil(PIECES).min(self.pages - self.next);
        todo.push(Op::Load(Region { first: self.memory.first + self.next, pages, ..self.memory }));
        todo.push(Op::Compute(u64::from(pages) * NS_A_PAGE));
        self.next += pages;
    }

    fn progress(&self) -> f64 {
        f64::from(self.next) / f64::from(self.pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::player::lived;
    use kontig_program::Process;

    fn store() -> ForkingStore {
        ForkingStore { size: "1 MiB".into(), saves: 2, requests: 40, request_us: 1.0 }
    }

    /// A store and its operations, if each save ends after a given number of polls and the second
    /// is killed.
    fn lived_beside(looks: u32) -> (String, Store) {
        let mut program = store().program(&Start { seed: 1, ..Start::default() }).expect("it can be read");
        let (mut todo, mut done, mut order) = (Batch::new(), vec![Outcome::at_start(0)], String::new());
        let (mut looked, mut ended) = (0, 0);
        loop {
            program.next(&done, &mut todo);
            done.clear();
            while let Some(op) = todo.pop() {
                let (letter, value) = match &op {
                    Op::Mmap { pages } => ('.', Value::Region(Region { mapping: 1, first: 0, pages: *pages })),
                    Op::Fork(_) => ('f', Value::Child(Process::new(9))),
                    Op::Touch(region) if region.pages == 1 => ('t', Value::Unit),
                    Op::WaitNoHang if looked + 1 == looks => {
                        (looked, ended) = (0, ended + 1);
                        ('e', Value::Ended { process: Process::new(9), killed: ended == 2, failed: ended == 2 })
                    }
                    Op::WaitNoHang => {
                        looked += 1;
                        ('l', Value::Unit)
                    }
                    _ => ('.', Value::Unit),
                };
                order.push(letter);
                done.push(Outcome { value, start_ns: 0, end_ns: 1 });
            }
            if done.is_empty() {
                return (order.chars().filter(|c| *c != '.').collect(), program);
            }
        }
    }

    #[test]
    fn it_serves_requests_before_each_save_and_until_it_has_ended() {
        let (order, program) = lived_beside(2);
        let (before, piece) = ("t".repeat(40), "t".repeat(32));
        let round = format!("{before}f{piece}l{piece}e");
        assert_eq!(order, [round.as_str(), &round].concat());
        let lengths = [&program.quiet, &program.saving, &program.forks].map(|l| l.histogram.len());
        assert_eq!(lengths, [80, 128, 2]);
    }

    #[test]
    fn a_save_that_was_killed_is_none() {
        let (_, program) = lived_beside(1);
        assert_eq!((program.saved, program.killed, program.took.histogram.len()), (1, 1, 1));
        assert_eq!(program.progress(), 1.0);
        let figures = store().measured(&[&program]).figures;
        assert_eq!(figures.iter().map(|reading| reading.value).collect::<Vec<_>>(), [Some(1.0), Some(1.0)]);
    }

    #[test]
    fn the_child_reads_all_memory_and_then_writes_as_much() {
        let program = store().program(&Start::default()).expect("it can be read");
        let memory = Region { mapping: 1, first: 0, pages: 256 };
        let ops = lived(&mut program.saver(memory));
        let sum = |of: fn(&Op) -> u32| ops.iter().map(of).sum::<u32>();
        assert_eq!(sum(|op| if let Op::Load(region) = op { region.pages } else { 0 }), 256);
        assert_eq!(sum(|op| if let Op::Write { pages, .. } = op { *pages } else { 0 }), 256);
        assert!(!ops.iter().any(|op| matches!(op, Op::Touch(_))), "it changes nothing");
    }

    #[test]
    fn a_whole_save_takes_the_place_of_the_one_before() {
        let mut program = store().program(&Start::default()).expect("it can be read");
        let memory = Region { mapping: 1, first: 0, pages: 256 };
        let mut files = |saved| {
            program.saved = saved;
            let ops = lived(&mut program.saver(memory));
            let opened = ops.iter().find_map(|op| if let Op::Open { name, .. } = op { Some(*name) } else { None });
            let gone = ops.iter().find_map(|op| if let Op::Unlink(name) = op { Some(*name) } else { None });
            (opened, gone)
        };
        let [a, b] = FILES.map(Some);
        assert_eq!([files(0), files(1), files(2)], [(a, None), (b, a), (a, b)]);
    }
}
