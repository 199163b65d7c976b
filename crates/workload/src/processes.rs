//! Processes that start, take steps and end, a number of them at a time: the workers of a database,
//! the services of a container host.
//!
//! Their parent forks one after the other. When one ends, the next begins. A process is timed from
//! its fork to its end, sleeps included; one that is killed is counted and not timed. All of them
//! use the same files, so that the first to read one brings it into memory for the others.

use crate::benchmark::{Benchmark, Measured, Start, Written};
use crate::latencies::Latencies;
use crate::steps::Steps;
use kontig_program::{Batch, Figure, FileName, Op, Outcome, Process, Program, SplitMix64, Value};
use serde::{Deserialize, Serialize};

/// Processes that take steps start and end.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Processes {
    /// The number of processes in all.
    pub processes: u32,
    /// The number of processes at a time.
    pub at_once: u32,
    /// The steps of each.
    pub does: Steps,
}

impl Benchmark for Processes {
    type Program = Parent;

    fn program(&self, start: &Start) -> Result<Parent, String> {
        if self.processes == 0 || self.at_once == 0 {
            return Err(format!("processes = {}, at_once = {}: at least one of each", self.processes, self.at_once));
        }
        if self.does.is_endless() {
            return Err("does = steps with repeat = 0: no process would ever end".into());
        }
        self.does.program(start)?;
        Ok(Parent {
            does: self.does.clone(),
            at_once: self.at_once as usize,
            start: *start,
            left: self.processes,
            all: self.processes,
            running: Vec::new(),
            random: SplitMix64::new(start.seed),
            killed: 0,
            forks: Latencies::new("fork", "there was none"),
            lives: Latencies::new("process, start to end", "none has ended by itself"),
        })
    }

    fn measured(&self, copies: &[&Parent]) -> Measured {
        let killed: u32 = copies.iter().map(|parent| parent.killed).sum();
        let figure = Figure::new("processes killed for want of memory", "processes").lower().read(f64::from(killed));
        let of = |of: fn(&Parent) -> &Latencies| Latencies::of_all(copies.iter().map(|parent| of(parent)));
        let latencies = [of(|parent| &parent.lives), of(|parent| &parent.forks)];
        Measured { figures: vec![figure], latencies: latencies.into_iter().flatten().collect(), ..Measured::default() }
    }

    /// Several together may exceed the machine's memory, which is worth trying; one alone may not.
    fn fits(&self, pages: u64, _: u64) -> Result<(), String> {
        self.does.fits(pages, 1)
    }

    fn files(&self) -> Vec<(FileName, u32)> {
        self.does.files()
    }

    fn written(&self) -> Vec<Written> {
        self.does.written()
    }

    fn last_disk(&self) -> Option<u8> {
        self.does.last_disk()
    }

    fn is_random(&self) -> bool {
        self.does.is_random()
    }

    fn needs_translation(&self) -> bool {
        self.does.needs_translation()
    }
}

/// The process that starts the others.
#[derive(Clone)]
pub struct Parent {
    does: Steps,
    at_once: usize,
    start: Start,
    left: u32,
    all: u32,
    /// The running processes, each with the time of its fork.
    running: Vec<(Process, u64)>,
    random: SplitMix64,
    killed: u32,
    forks: Latencies,
    lives: Latencies,
}

impl Parent {
    fn learn(&mut self, outcome: &Outcome) {
        match outcome.value {
            Value::Child(process) => {
                self.forks.record(outcome.latency_ns());
                self.running.push((process, outcome.start_ns));
            }
            Value::Ended { process, killed, .. } => {
                self.killed += u32::from(killed);
                let place = self.running.iter().position(|(running, _)| *running == process);
                if let Some((_, forked)) = place.map(|place| self.running.remove(place)).filter(|_| !killed) {
                    self.lives.record(outcome.end_ns - forked);
                }
            }
            _ => {}
        }
    }
}

impl Program for Parent {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        done.iter().for_each(|outcome| self.learn(outcome));
        if self.left > 0 && self.running.len() < self.at_once {
            self.left -= 1;
            let start = Start { seed: self.random.next_u64(), copies: 1, ..self.start };
            todo.extend(self.does.program(&start).ok().map(|child| Op::Fork(Box::new(child))));
        } else if !self.running.is_empty() {
            todo.push(Op::WaitAny);
        }
    }

    fn progress(&self) -> f64 {
        (f64::from(self.all - self.left) - self.running.len() as f64) / f64::from(self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Processes {
        toml::from_str(text).expect("well-formed")
    }

    const FEW: &str = "processes = 3\nat_once = 2\ndoes = { steps = [{ do = 'sleep', ms = 5 }] }";

    /// The parent after it was told what happened to its processes.
    fn told(values: &[Value]) -> Parent {
        let mut parent = of(FEW).program(&Start::default()).expect("it can be read");
        for (value, end_ns) in values.iter().zip((10..).step_by(10)) {
            parent.next(&[Outcome { value: *value, start_ns: end_ns - 1, end_ns }], &mut Batch::new());
        }
        parent
    }

    const fn ended(process: Process, killed: bool) -> Value {
        Value::Ended { process, killed, failed: killed }
    }

    #[test]
    fn processes_need_to_know_of_translation_what_their_steps_start_needs() {
        let run = |kind: &str| {
            let steps = format!("steps = [{{ do = 'start', run = {{ {kind} }} }}]");
            of(&format!("processes = 1\nat_once = 1\n[does]\n{steps}")).needs_translation()
        };
        assert!(run("kind = 'accesses', size = '1 MiB', pattern = 'chase', accesses = 1"));
        assert!(!run("kind = 'compact'"));
    }

    #[test]
    fn one_that_ends_makes_room_for_the_next() {
        let mut parent = of(FEW).program(&Start::default()).expect("it can be read");
        let (mut todo, mut value, mut ops) = (Batch::new(), Value::Unit, String::new());
        loop {
            parent.next(&[Outcome { value, ..Outcome::at_start(0) }], &mut todo);
            let Some(op) = todo.pop() else { break };
            let is_fork = matches!(op, Op::Fork(_));
            ops.push(if is_fork { 'f' } else { 'w' });
            value = match parent.running.first() {
                Some((process, _)) if !is_fork => ended(*process, false),
                _ => Value::Child(Process::new(ops.len() as u32)),
            };
        }
        assert_eq!((ops.as_str(), parent.lives.histogram.len()), ("ffwfww", 3));
        assert_eq!(parent.progress(), 1.0);
    }

    #[test]
    fn a_process_is_timed_from_its_fork_to_its_end_unless_it_was_killed() {
        let [a, b] = [1, 2].map(Process::new);
        let parent = told(&[Value::Child(a), Value::Child(b), ended(b, true), ended(a, false)]);
        assert_eq!((parent.killed, parent.lives.histogram.len(), parent.lives.longest_ns), (1, 1, Some(31)));
        assert_eq!((parent.forks.histogram.len(), parent.forks.longest_ns), (2, Some(1)));
    }

    #[test]
    fn every_process_draws_its_own_places() {
        let text = "processes = 2\nat_once = 2\ndoes = { files = [{ file = 1, size = '1 MiB' }], \
                    steps = [{ do = 'read', file = 1, size = '64 KiB', piece = '4 KiB', random = true }] }";
        let mut parent = of(text).program(&Start::default()).expect("it can be read");
        let mut todo = Batch::new();
        let mut reads = || {
            parent.next(&[Outcome::at_start(0)], &mut todo);
            let Some(Op::Fork(mut child)) = todo.pop() else { panic!("it forks") };
            crate::player::lived(child.as_mut())
        };
        assert_ne!(reads(), reads());
        assert!(of(text).is_random() && !of(FEW).is_random());
    }

    #[test]
    fn impossible_values_are_refused_with_their_key() {
        let refused = |text: &str| of(text).program(&Start::default()).err().expect("refused");
        assert_eq!(refused(&FEW.replace("= 3", "= 0")), "processes = 0, at_once = 2: at least one of each");
        let endless = FEW.replace("steps = [", "repeat = 0, steps = [");
        assert_eq!(refused(&endless), "does = steps with repeat = 0: no process would ever end");
        assert_eq!(refused(&FEW.replace(", ms = 5", "")), "steps = step 1: Sleep needs ms: ms = 10");
        let large = of(&FEW.replace("do = 'sleep', ms = 5", "do = 'fill', size = '2 MiB'"));
        assert!(large.fits(511, 1).is_err_and(|said| said.starts_with("steps = step 1: 2 MiB are filled")));
    }
}
