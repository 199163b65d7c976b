//! Virtual machines that come and go. Each is a process with its guest's memory as one mapping, on
//! which it asks for huge pages as QEMU does; its use grows as the guest boots and works. When it
//! exits, all of it is freed at once, and another guest of another size begins. Lifetimes are
//! reported of guests that ended by themselves.

use crate::benchmark::{Benchmark, Measured, Start};
use crate::latencies::Latencies;
use crate::limits::{LONGEST_S, within};
use crate::player::{Manner, Player};
use crate::size::{all_fit, pages};
use kontig_program::act::{Act, HEAP};
use kontig_program::{Batch, Figure, Op, Outcome, Program, SplitMix64, Value};
use serde::{Deserialize, Serialize};

/// Virtual machines come and go.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Guests {
    /// The sizes to draw a guest's from, all equally likely, such as `["512 MiB", "2 GiB"]`.
    pub sizes: Vec<String>,
    /// The number of guests at a time.
    pub at_once: u32,
    /// The number of guests in all.
    pub guests: u32,
    /// Lifetime without the time it computes, s.
    pub lives_s: f64,
}

/// A guest's memory use grows to all of its memory in this many steps.
const STEPS: u32 = 8;
/// Time on a CPU that a guest takes for each page it has in use, in a step: 50 ms a 200 MiB.
const NS_A_PAGE: u64 = 1_000;

impl Guests {
    fn pages(&self) -> Result<Vec<u32>, String> {
        self.sizes.iter().map(|size| pages("sizes", size)).collect()
    }
}

impl Benchmark for Guests {
    type Program = Host;

    fn program(&self, start: &Start) -> Result<Host, String> {
        let sizes = self.pages()?;
        if sizes.is_empty() {
            return Err("sizes = []: a guest has memory: sizes = [\"1 GiB\"]".into());
        }
        if self.at_once == 0 || self.guests == 0 {
            return Err(format!("at_once = {}, guests = {}: at least one of each", self.at_once, self.guests));
        }
        within("lives_s", self.lives_s, LONGEST_S)?;
        Ok(Host {
            sizes,
            at_once: self.at_once,
            left: self.guests,
            all: self.guests,
            lives_ns: (self.lives_s * 1e9) as u64,
            running: Vec::new(),
            random: SplitMix64::new(start.seed),
            killed: 0,
            lives: Latencies::new("guest's life", "none has ended by itself"),
        })
    }

    fn measured(&self, copies: &[&Host]) -> Measured {
        let killed: u32 = copies.iter().map(|host| host.killed).sum();
        let figure = Figure::new("guests killed for want of memory", "guests").lower().read(f64::from(killed));
        let latencies = Latencies::of_all(copies.iter().map(|host| &host.lives));
        Measured { figures: vec![figure], latencies: latencies.into_iter().collect(), ..Measured::default() }
    }

    /// Several together may exceed the machine's memory, which is worth trying; one alone may not.
    fn fits(&self, pages: u64, _: u64) -> Result<(), String> {
        self.sizes.iter().try_for_each(|size| all_fit("sizes", size, pages, 1))
    }

    fn is_random(&self) -> bool {
        self.sizes.len() > 1
    }
}

/// The process that starts the guests.
#[derive(Clone)]
pub struct Host {
    sizes: Vec<u32>,
    at_once: u32,
    left: u32,
    all: u32,
    lives_ns: u64,
    /// The running guests, each with its start.
    running: Vec<(kontig_program::Process, u64)>,
    random: SplitMix64,
    killed: u32,
    lives: Latencies,
}

impl Host {
    fn guest(&mut self) -> Player {
        let pages = self.sizes[self.random.below(self.sizes.len() as u32) as usize];
        let mut acts = vec![Act::Map(HEAP, pages), Act::AdviseHuge(HEAP)];
        for step in 1..=STEPS {
            let used = (u64::from(pages) * u64::from(step) / u64::from(STEPS)) as u32;
            acts.push(Act::Work { pages: used, ns: u64::from(used) * NS_A_PAGE });
            acts.push(Act::Sleep { ns: self.lives_ns / u64::from(STEPS) });
        }
        Player::new([Act::Exec(acts.into())], Manner::PROGRAM)
    }
}

impl Program for Host {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        for outcome in done {
            match outcome.value {
                Value::Child(process) => self.running.push((process, outcome.end_ns)),
                Value::Ended { process, killed, .. } => {
                    self.killed += u32::from(killed);
                    let place = self.running.iter().position(|(guest, _)| *guest == process);
                    if let Some((_, began)) = place.map(|place| self.running.remove(place)).filter(|_| !killed) {
                        self.lives.record(outcome.end_ns - began);
                    }
                }
                _ => {}
            }
        }
        if self.left > 0 && self.running.len() < self.at_once as usize {
            self.left -= 1;
            let guest = self.guest();
            todo.push(Op::Fork(Box::new(guest)));
        } else if !self.running.is_empty() {
            todo.push(Op::WaitAny);
        }
    }

    fn progress(&self) -> f64 {
        f64::from(self.all - self.left) / f64::from(self.all) - self.running.len() as f64 / (2.0 * f64::from(self.all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_program::Process;

    fn guests() -> Guests {
        Guests { sizes: vec!["1 MiB".into()], at_once: 2, guests: 3, lives_s: 8.0 }
    }

    #[test]
    fn as_many_run_as_may_and_one_that_ends_makes_room_for_the_next() {
        let mut host = guests().program(&Start::default()).expect("it can be read");
        let (mut todo, mut value, mut ops, mut now) = (Batch::new(), Value::Unit, String::new(), 0);
        loop {
            host.next(&[Outcome { value, start_ns: now, end_ns: now + 10 }], &mut todo);
            now += 10;
            let Some(op) = todo.pop() else { break };
            value = match &op {
                Op::Fork(_) => {
                    ops.push('f');
                    Value::Child(Process::new(now as u32))
                }
                _ => {
                    ops.push('w');
                    Value::Ended { process: host.running[0].0, killed: false, failed: false }
                }
            };
        }
        assert_eq!((ops.as_str(), host.lives.histogram.len()), ("ffwfww", 3));
        assert_eq!(host.progress(), 1.0);
    }

    #[test]
    fn the_life_of_one_that_was_killed_is_none_to_wish_for() {
        let mut host = guests().program(&Start::default()).expect("it can be read");
        let mut todo = Batch::new();
        let child = Process::new(7);
        for value in [Value::Child(child), Value::Ended { process: child, killed: true, failed: true }] {
            host.next(&[Outcome { value, start_ns: 0, end_ns: 10 }], &mut todo);
        }
        assert_eq!((host.killed, host.running.len(), host.lives.histogram.len()), (1, 0, 0));
    }

    #[test]
    fn a_guest_asks_for_huge_pages_and_comes_to_use_all_its_memory() {
        let mut host = guests().program(&Start::default()).expect("it can be read");
        let mut ops = crate::player::lived(&mut host.guest());
        let Some(Op::Exec(mut guest)) = ops.pop() else { panic!("it executes") };
        let ops = crate::player::lived(guest.as_mut());
        assert!(matches!(ops[..2], [Op::Mmap { pages: 256 }, Op::AdviseHuge(_)]));
        let touched = ops.iter().filter_map(|op| if let Op::Touch(region) = op { Some(region.pages) } else { None });
        assert_eq!(touched.collect::<Vec<_>>(), [32, 64, 96, 128, 160, 192, 224, 256]);
        assert_eq!(ops.iter().filter(|op| **op == Op::Sleep(1_000_000_000)).count(), 8);
    }
}
