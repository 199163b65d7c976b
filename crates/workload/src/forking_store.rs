//! An in-memory store that forks to save itself: a child writes all of the memory to a file while the parent goes on
//! changing it, and every page it changes has to be copied first.
//!
//! So Redis saves. The parent writes to pages at random, as often as it is told, and between two saves and during one it
//! is timed apart: what is measured is what saving costs those who write.

use crate::benchmark::{Benchmark, Measured, Start};
use crate::latencies::Latencies;
use crate::limits::{LONGEST_PAUSE_US, within};
use crate::process_script::{Act, Script};
use crate::size::{all_fit, pages};
use kontig_program::{Batch, Figure, FileName, Op, Outcome, Program, Region, SplitMix64, Value};
use serde::{Deserialize, Serialize};

/// Requests handed over at a time.
const AT_ONCE: u32 = 32;
/// The file it saves itself to: of none that a workload's steps have.
const FILE: FileName = FileName::new(0, 1 << 48);
/// Pieces in which the child goes through the memory.
const PIECES: u32 = 64;
/// Time on a CPU the child takes to write a page out as text: 1 GB/s.
const NS_A_PAGE: u64 = 4_000;

/// A store forks to save itself.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ForkingStore {
    /// What it holds.
    pub size: String,
    /// How often it is saved.
    pub saves: u32,
    /// Requests that write to a page each, before a save and again while it is under way.
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
            forked: 0,
            asked: false,
            quiet: Latencies::new("write between saves", "there was none"),
            saving: Latencies::new("write during a save", "there was none"),
            forks: Latencies::new("fork", "there was none"),
            took: Latencies::new("save", "none was ended"),
        })
    }

    fn measured(&self, copies: &[&Store]) -> Measured {
        let saved: u32 = copies.iter().map(|store| store.saved).sum();
        let figure = Figure::new("saves", "saves").read(f64::from(saved));
        let of = |of: fn(&Store) -> &Latencies| Latencies::of_all(copies.iter().map(|store| of(store)));
        let latencies = [of(|s| &s.quiet), of(|s| &s.saving), of(|s| &s.forks), of(|s| &s.took)];
        Measured { figures: vec![figure], latencies: latencies.into_iter().flatten().collect(), ..Measured::default() }
    }

    fn fits(&self, pages: u64, copies: u64) -> Result<(), String> {
        all_fit("size", &self.size, pages, copies)
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
    /// Requests, and no save under way.
    Quiet,
    /// Requests, and one is.
    Saving,
    /// The child is waited for.
    Waiting,
}

/// The process.
#[derive(Clone)]
pub struct Store {
    pages: u32,
    saves: u32,
    requests: u32,
    request_ns: u64,
    random: SplitMix64,
    memory: Option<Region>,
    stage: Stage,
    /// Requests of the stage that are left.
    left: u32,
    saved: u32,
    /// When it was forked last.
    forked: u64,
    /// Whether the last batch was of requests.
    asked: bool,
    quiet: Latencies,
    saving: Latencies,
    forks: Latencies,
    took: Latencies,
}

impl Store {
    fn learn(&mut self, done: &[Outcome]) {
        if std::mem::take(&mut self.asked) {
            let took = if self.stage == Stage::Saving { &mut self.saving } else { &mut self.quiet };
            // Of each request the first operation is the write.
            done.iter().step_by(2).for_each(|write| took.record(write.latency_ns()));
        }
        for outcome in done {
            match outcome.value {
                Value::Child(_) => {
                    self.forked = outcome.start_ns;
                    self.forks.record(outcome.latency_ns());
                }
                Value::Ended { .. } => {
                    self.saved += 1;
                    self.took.record(outcome.end_ns - self.forked);
                    (self.stage, self.left) = (Stage::Quiet, self.requests);
                }
                _ => {}
            }
        }
    }

    fn ask(&mut self, memory: Region, todo: &mut Batch) {
        let now = AT_ONCE.min(self.left);
        for _ in 0..now {
            let page = Region { first: memory.first + self.random.below(self.pages), pages: 1, ..memory };
            todo.extend([Op::Touch(page), Op::Compute(self.request_ns)]);
        }
        self.left -= now;
        self.asked = true;
    }

    /// The child: it reads all that it shares with its parent, and writes it to the file.
    fn saver(&self, memory: Region) -> Saver {
        Saver { memory, pages: self.pages, next: 0, file: Script::new(vec![Act::Write(FILE, self.pages)]) }
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
            _ if self.saved == self.saves => {}
            Stage::Quiet | Stage::Saving if self.left > 0 => self.ask(memory, todo),
            Stage::Quiet => {
                (self.stage, self.left) = (Stage::Saving, self.requests);
                let saver = self.saver(memory);
                todo.push(Op::Fork(Box::new(saver)));
            }
            Stage::Saving | Stage::Waiting => {
                self.stage = Stage::Waiting;
                todo.push(Op::WaitAny);
            }
        }
    }

    fn progress(&self) -> f64 {
        f64::from(self.saved) / f64::from(self.saves)
    }
}

/// The child.
#[derive(Clone)]
struct Saver {
    memory: Region,
    pages: u32,
    /// The next page to be read.
    next: u32,
    file: Script,
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
    use crate::process_script::lived;
    use kontig_program::Process;

    fn store() -> ForkingStore {
        ForkingStore { size: "1 MiB".into(), saves: 2, requests: 40, request_us: 1.0 }
    }

    #[test]
    fn it_serves_requests_before_each_save_and_while_it_is_under_way() {
        let mut program = store().program(&Start { seed: 1, ..Start::default() }).expect("it can be read");
        let (mut todo, mut done, mut order) = (Batch::new(), vec![Outcome::at_start(0)], String::new());
        loop {
            program.next(&done, &mut todo);
            done.clear();
            while let Some(op) = todo.pop() {
                let value = match &op {
                    Op::Mmap { pages } => Value::Region(Region { mapping: 1, first: 0, pages: *pages }),
                    Op::Fork(_) => Value::Child(Process::new(9)),
                    Op::WaitAny => Value::Ended { process: Process::new(9), killed: false },
                    _ => Value::Unit,
                };
                let letter = match &op {
                    Op::Touch(region) if region.pages == 1 => 't',
                    Op::Fork(_) => 'f',
                    Op::WaitAny => 'w',
                    _ => '.',
                };
                order.push(letter);
                done.push(Outcome { value, start_ns: 0, end_ns: 1 });
            }
            if done.is_empty() {
                break;
            }
        }
        let order: String = order.chars().filter(|c| *c != '.').collect();
        let round = format!("{0}f{0}w", "t".repeat(40));
        assert_eq!(order, [round.as_str(), &round].concat());
        let lengths = [&program.quiet, &program.saving, &program.forks, &program.took].map(|l| l.histogram.len());
        assert_eq!(lengths, [80, 80, 2, 2]);
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
}
