//! A pattern played on the simulated machine: the steps that a real kernel's process takes, as
//! operations.
//!
//! The rule: a step means here what `oracle/guest/player.c` does with it, with the same pages in
//! the same order. At a phase the process rests until its host, who looks at what was counted
//! meanwhile, lets it go on.

use kontig_program::pattern::{Area, File, Random, Step};
use kontig_program::{Batch, FileName, Op, OpenFile, Outcome, Program, Region, SplitMix64, Value};
use std::sync::Arc;

/// Pages of one read or write.
const CALL: u32 = 32;
/// Operations of a batch.
const BATCH: u32 = 64;
/// ns that a process rests at a phase before it looks whether it may go on.
const REST_NS: u64 = 1_000_000;
/// Areas and files have numbers below.
const MOST: usize = 16;
/// The machine's disk with the files.
const DISK: u8 = 0;

/// The file of a step, as the machine knows it.
pub fn file_name(file: File) -> FileName {
    FileName::new(DISK, u64::from(file))
}

/// A process that takes steps.
#[derive(Clone)]
pub struct Player {
    steps: Arc<[Step]>,
    at: usize,
    /// How far a long step has come.
    within: Option<Within>,
    awaited: Awaited,
    areas: [Option<Region>; MOST],
    files: [Option<OpenFile>; MOST],
    children: u32,
    killed: u32,
    /// The phase at which it rests.
    resting: Option<&'static str>,
    /// A phase begins with its next step.
    begins: bool,
    /// When the last operation ended.
    now_ns: u64,
    /// When it went on after the phase before this one.
    since_ns: u64,
    /// How long the last phase took.
    took_ns: u64,
}

#[derive(Clone)]
struct Within {
    done: u32,
    random: SplitMix64,
}

/// The operation that the next outcome belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Awaited {
    Nothing,
    Map(Area),
    Open(File),
}

impl Player {
    /// A process that takes these steps.
    pub fn new(steps: Vec<Step>) -> Player {
        Player {
            steps: steps.into(),
            at: 0,
            within: None,
            awaited: Awaited::Nothing,
            areas: [None; MOST],
            files: [None; MOST],
            children: 0,
            killed: 0,
            resting: None,
            begins: true,
            now_ns: 0,
            since_ns: 0,
            took_ns: 0,
        }
    }

    /// ns from the phase before to the one at which it rests.
    pub fn took_ns(&self) -> u64 {
        self.took_ns
    }
    /// The phase at which it waits to be let go on.
    pub fn resting(&self) -> Option<&'static str> {
        self.resting
    }
    /// Lets it go on.
    pub fn go_on(&mut self) {
        self.resting = None;
    }
    /// Children that did not end by themselves.
    pub fn killed(&self) -> u32 {
        self.killed
    }

    /// A process that goes on with the steps after this one, with nothing open.
    fn after(&self, at: usize, areas: [Option<Region>; MOST]) -> Box<Player> {
        let steps = Arc::clone(&self.steps);
        Box::new(Player { steps, at: at + 1, areas, ..Player::new(Vec::new()) })
    }

    /// The step after the end that belongs to this fork.
    fn beyond(&self, fork: usize) -> usize {
        let mut depth = 0;
        let is_end = |step: &Step| {
            depth += i32::from(*step == Step::Fork) - i32::from(*step == Step::End);
            depth == 0
        };
        fork + 1 + self.steps[fork..].iter().position(is_end).unwrap_or(self.steps.len())
    }

    fn learn(&mut self, done: &[Outcome]) {
        for outcome in done {
            if let Value::Ended { killed, .. } = outcome.value {
                self.children -= 1;
                self.killed += u32::from(killed);
            }
        }
        self.now_ns = done.last().map_or(self.now_ns, |outcome| outcome.end_ns);
        let last = done.last().map(|outcome| outcome.value);
        match (std::mem::replace(&mut self.awaited, Awaited::Nothing), last) {
            (Awaited::Map(area), Some(Value::Region(region))) => self.areas[usize::from(area)] = Some(region),
            (Awaited::Open(file), Some(Value::File(open))) => self.files[usize::from(file)] = Some(open),
            _ => {}
        }
    }

    /// A range of an area.
    fn pages(&self, area: Area, first: u32, pages: u32) -> Region {
        let all = self.areas[usize::from(area)].expect("a step is of an area that was mapped");
        Region { first: all.first + first, pages, ..all }
    }

    /// Some more of a step on a file in calls, or the whole file opened first.
    fn on_file(
        &mut self,
        file: File,
        total: u32,
        todo: &mut Batch,
        call: impl Fn(OpenFile, &mut Within) -> Op,
    ) -> bool {
        let Some(open) = self.files[usize::from(file)] else {
            self.awaited = Awaited::Open(file);
            todo.push(Op::Open { name: file_name(file), create: true });
            return false;
        };
        self.some(total, todo, |within| call(open, within))
    }

    /// Some more of a long step; whether it is done.
    fn some(&mut self, total: u32, todo: &mut Batch, op: impl Fn(&mut Within) -> Op) -> bool {
        let seed = match self.steps[self.at] {
            Step::TouchRandom(_, random) | Step::ReadRandom(_, random) => random.seed,
            _ => 0,
        };
        let within = self.within.get_or_insert_with(|| Within { done: 0, random: SplitMix64::new(seed) });
        for _ in 0..BATCH {
            if within.done == total {
                break;
            }
            todo.push(op(within));
            within.done += 1;
        }
        let is_done = within.done == total;
        if is_done {
            self.within = None;
        }
        is_done
    }

    /// Hands over the step's operations, or some of them; whether it is done.
    fn take(&mut self, step: Step, todo: &mut Batch) -> bool {
        let calls = |pages: u32| pages.div_ceil(CALL);
        let call = |first: u32, pages: u32, n: u32| (first + n * CALL, CALL.min(pages - n * CALL));
        let page = |random: Random, within: &mut Within| random.first + within.random.below(random.pages);
        match step {
            Step::Phase(name) => {
                self.resting = Some(name);
                self.took_ns = self.now_ns - self.since_ns;
                self.begins = true;
                todo.push(Op::Sleep(REST_NS));
            }
            // It is there already, and the end is where a child stops.
            Step::File(..) | Step::End => {}
            Step::Map(area, pages) => {
                self.awaited = Awaited::Map(area);
                todo.push(Op::Mmap { pages });
            }
            Step::AdviseHuge(area) => todo.push(Op::AdviseHuge(self.whole(area))),
            Step::Touch(area, first, pages) => todo.push(Op::Touch(self.pages(area, first, pages))),
            Step::Load(area, first, pages) => todo.push(Op::Load(self.pages(area, first, pages))),
            Step::TouchRandom(area, random) => {
                let all = self.whole(area);
                return self.some(random.count, todo, |within| {
                    Op::Touch(Region { first: all.first + page(random, within), pages: 1, ..all })
                });
            }
            Step::Unmap(area) => todo.push(Op::Munmap(self.whole(area))),
            Step::Read(file, first, pages) => {
                return self.on_file(file, calls(pages), todo, |file, within| {
                    let (first, pages) = call(first, pages, within.done);
                    Op::Read { file, first, pages }
                });
            }
            Step::ReadRandom(file, random) => {
                return self.on_file(file, random.count, todo, |file, within| Op::Read {
                    file,
                    first: page(random, within),
                    pages: 1,
                });
            }
            Step::Write(file, first, pages) => {
                return self.on_file(file, calls(pages), todo, |file, within| {
                    let (first, pages) = call(first, pages, within.done);
                    Op::Write { file, first, pages }
                });
            }
            Step::Fsync(file) => return self.on_file(file, 1, todo, |file, _| Op::Fsync(file)),
            Step::Sleep(us) => todo.push(Op::Sleep(u64::from(us) * 1000)),
            Step::Fork => {
                self.children += 1;
                todo.push(Op::Fork(self.after(self.at, self.areas)));
            }
            Step::Exec => todo.push(Op::Exec(self.after(self.at, [None; MOST]))),
            Step::Wait => todo.push(Op::WaitAny),
            Step::WaitAll => todo.extend((0..self.children).map(|_| Op::WaitAny)),
        }
        true
    }

    fn whole(&self, area: Area) -> Region {
        self.areas[usize::from(area)].expect("a step is of an area that was mapped")
    }
}

impl Program for Player {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        self.learn(done);
        if self.resting.is_some() {
            return todo.push(Op::Sleep(REST_NS));
        }
        if std::mem::take(&mut self.begins) {
            self.since_ns = self.now_ns;
        }
        while todo.is_empty() {
            let Some(step) = self.steps.get(self.at).copied() else { return };
            if step == Step::End {
                return;
            }
            let at = self.at;
            if self.take(step, todo) {
                self.at = if step == Step::Fork { self.beyond(at) } else { at + 1 };
            }
        }
    }

    fn progress(&self) -> f64 {
        self.at as f64 / self.steps.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation of a process, given the answers of a machine.
    fn played(steps: Vec<Step>) -> Vec<Op> {
        let (mut player, mut todo, mut ops) = (Player::new(steps), Batch::new(), Vec::new());
        let mut done = vec![Outcome::at_start(0)];
        loop {
            player.next(&done, &mut todo);
            done.clear();
            while let Some(op) = todo.pop() {
                let value = match &op {
                    Op::Mmap { pages } => Value::Region(Region { mapping: 3, first: 0, pages: *pages }),
                    Op::Open { .. } => Value::File(OpenFile::new(5)),
                    Op::WaitAny => {
                        Value::Ended { process: kontig_program::Process::new(1), killed: false, failed: false }
                    }
                    _ => Value::Unit,
                };
                done.push(Outcome { value, start_ns: 0, end_ns: 1 });
                ops.push(op);
            }
            player.go_on();
            if done.is_empty() {
                return ops;
            }
        }
    }

    #[test]
    fn a_file_is_opened_once_and_read_in_calls() {
        let ops = played(vec![Step::Read(2, 10, 40), Step::Read(2, 0, 1)]);
        let file = OpenFile::new(5);
        let expected = [
            Op::Open { name: file_name(2), create: true },
            Op::Read { file, first: 10, pages: 32 },
            Op::Read { file, first: 42, pages: 8 },
            Op::Read { file, first: 0, pages: 1 },
        ];
        assert_eq!(ops.len(), expected.len());
        assert!(ops.iter().zip(&expected).all(|(a, b)| format!("{a:?}") == format!("{b:?}")), "{ops:?}");
    }

    #[test]
    fn random_pages_are_those_of_the_steps_seed() {
        let random = Random { first: 100, pages: 50, count: 70, seed: 9 };
        let ops = played(vec![Step::Map(0, 150), Step::TouchRandom(0, random)]);
        let mut generator = SplitMix64::new(9);
        assert_eq!(ops.len(), 71);
        for op in &ops[1..] {
            let Op::Touch(region) = op else { panic!("{op:?}") };
            assert_eq!((region.first, region.pages), (100 + generator.below(50), 1));
        }
    }

    #[test]
    fn a_parent_goes_on_after_its_childs_end_and_waits_for_as_many_as_there_are() {
        let child = [Step::Fork, Step::Sleep(1), Step::End];
        let steps = [&child[..], &child[..], &[Step::Wait, Step::Sleep(2), Step::WaitAll]].concat();
        let ops = played(steps);
        let is = |i: usize, word: &str| format!("{:?}", ops[i]).starts_with(word);
        assert!(is(0, "Fork") && is(1, "Fork") && is(2, "WaitAny") && is(3, "Sleep(2000)") && is(4, "WaitAny"));
        assert_eq!(ops.len(), 5);
    }

    #[test]
    fn a_phase_takes_as_long_as_its_steps_without_the_rest() {
        let steps = vec![Step::Phase("start"), Step::Sleep(1), Step::Sleep(2), Step::Phase("end")];
        let (mut player, mut todo) = (Player::new(steps), Batch::new());
        let mut ended = |player: &mut Player, start_ns, end_ns| {
            player.next(&[Outcome { value: Value::Unit, start_ns, end_ns }], &mut todo);
            while todo.pop().is_some() {}
        };
        ended(&mut player, 500, 500);
        ended(&mut player, 500, 900);
        player.go_on();
        ended(&mut player, 900, 1300);
        ended(&mut player, 1300, 1310);
        ended(&mut player, 1310, 1330);
        assert_eq!((player.resting(), player.took_ns()), (Some("end"), 30));
    }

    #[test]
    fn at_a_phase_it_rests_until_it_may_go_on() {
        let (mut player, mut todo) = (Player::new(vec![Step::Phase("start"), Step::Wait]), Batch::new());
        player.next(&[Outcome::at_start(0)], &mut todo);
        assert_eq!((player.resting(), todo.pop()), (Some("start"), Some(Op::Sleep(REST_NS))));
        player.next(&[], &mut todo);
        assert_eq!(todo.pop(), Some(Op::Sleep(REST_NS)));
        player.go_on();
        player.next(&[], &mut todo);
        assert_eq!(todo.pop(), Some(Op::WaitAny));
    }
}
