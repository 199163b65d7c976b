//! The player: the one interpreter of [acts](kontig_program::act), which makes operations of them.
//!
//! An act means here what `oracle/guest/player.c` does with its line, with the same pages in the
//! same order. At a phase the process rests until its host has read the counters.
//!
//! A growing process keeps its whole working set in use: every act of computing touches its
//! program's pages and its heap again, so that reclaim finds them referenced. A compiler touches
//! only new pages and a part of the rest.

use crate::latencies::Latencies;
use kontig_program::act::{Act, Acts, Area, BREAK, CALL, HEAP, Pages, TEXT};
use kontig_program::{Batch, FileName, Op, OpenFile, Outcome, Program, Region, SplitMix64, Value};
use std::ops::Range;
use std::sync::Arc;

/// How likely a compiler uses a page of its heap again until its next look, in percent: first of
/// those that are new, then of those it used since the last look, and of those it has not used for
/// one look, two, and so on. Measured of ten compilers of kernel files, page by page after each
/// sixteenth of their time (Linux 6.18, small pages; `clear_refs`, then `Referenced`): they used
/// 32 % of what they had. Whoever uses what was used least recently, as a program does that goes
/// round, brings back from swap all that reclaim has chosen well.
const USED_AGAIN_PERCENT: [u32; 10] = [42, 66, 22, 14, 10, 8, 6, 6, 4, 2];
/// Neighbouring pages that are used together: those used again lay in runs of 2.8, those that had
/// not been used for three looks and more in runs of 1.5.
const TOGETHER: u32 = 2;

/// Pages that the break is moved by, at most: fewer than a huge page has. (The C library moves it
/// by 33; larger pieces are fewer mappings here, of which the process has one.)
const PIECE: u32 = 511;
/// ns that a process rests at a phase before it looks whether it may go on.
const REST_NS: u64 = 1_000_000;

/// How a process handles its files and batches.
#[derive(Clone, Copy)]
pub struct Manner {
    /// The most calls in a batch.
    at_once: u32,
    /// Files stay open from their first use; otherwise each act opens and closes its own.
    keeps_open: bool,
    /// A file that is only read is created, too, if it is missing.
    creates: bool,
}

impl Manner {
    /// A program of a benchmark. The output of a process that was killed may be missing: create it
    /// empty.
    pub const PROGRAM: Manner = Manner { at_once: u32::MAX, keeps_open: false, creates: true };
    /// A pattern, as a guest plays it.
    pub const PATTERN: Manner = Manner { at_once: 64, keeps_open: true, creates: true };
    /// Steps of a workload file, as `cat`, `dd` and `cp` do them.
    pub const STEPS: Manner = Manner { at_once: 16, keeps_open: false, creates: false };
}

/// A process that plays acts.
#[derive(Clone)]
pub struct Player {
    acts: Acts,
    manner: Manner,
    /// How often all acts are played; 0 repeats until it is stopped.
    rounds: u32,
    round: u32,
    at: usize,
    doing: Doing,
    /// All mappings, the latest last.
    memory: Vec<(Area, Region)>,
    /// Files that stay open.
    kept: Vec<(FileName, OpenFile)>,
    /// The last two files that the last batch has opened.
    opened: [Option<OpenFile>; 2],
    random: SplitMix64,
    /// Most pages of the heap in use so far.
    used: u32,
    /// A compiler's old pages, [`TOGETHER`] at a time: their places in [`USED_AGAIN_PERCENT`].
    unused: Vec<u8>,
    children: u32,
    /// A child has failed or was killed, and left its work undone.
    failed: bool,
    /// The phase at which it rests.
    resting: Option<&'static str>,
    /// A phase begins with the next act.
    begins: bool,
    /// When the last operation ended.
    now_ns: u64,
    /// When the lap, or the phase after its rest, began.
    since_ns: u64,
    /// How long the last phase took.
    took_ns: u64,
    /// The times of each lap of a round.
    laps: Vec<Latencies>,
    lap: usize,
}

/// How far an act has come.
#[derive(Clone, Default)]
struct Doing {
    /// Whether it has begun, so that the next outcome is its own.
    begun: bool,
    handed_over: u32,
    /// The generator of its own seed.
    random: Option<SplitMix64>,
    /// The file that it reads or writes, and the copy.
    open: [Option<OpenFile>; 2],
}

/// Files unlinked in a batch.
const UNLINKED_AT_ONCE: u32 = 64;

impl Player {
    /// A process at its first act.
    pub fn new(acts: impl Into<Acts>, manner: Manner) -> Player {
        Player {
            acts: acts.into(),
            manner,
            rounds: 1,
            round: 0,
            at: 0,
            doing: Doing::default(),
            memory: Vec::new(),
            kept: Vec::new(),
            opened: [None; 2],
            random: SplitMix64::new(0),
            used: 0,
            unused: Vec::new(),
            children: 0,
            failed: false,
            resting: None,
            begins: true,
            now_ns: 0,
            since_ns: 0,
            took_ns: 0,
            laps: Vec::new(),
            lap: 0,
        }
    }

    /// Repeats all acts, whose laps are recorded here.
    pub(crate) fn repeated(self, rounds: u32, laps: Vec<Latencies>, seed: u64) -> Player {
        Player { rounds, laps, random: SplitMix64::new(seed), ..self }
    }

    pub(crate) fn laps(&self) -> &[Latencies] {
        &self.laps
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

    /// The latest mapping of an area.
    fn area(&self, area: Area) -> Option<Region> {
        self.memory.iter().rfind(|(of, _)| *of == area).map(|(_, region)| *region)
    }

    /// All mappings of an area, the latest last.
    fn pieces(&self, area: Area) -> impl Iterator<Item = Region> {
        self.memory.iter().filter(move |(of, _)| *of == area).map(|(_, piece)| *piece)
    }

    /// Hands over an act's operations, or the next of them; true if those were all.
    fn act(&mut self, act: &Act, last: Value, todo: &mut Batch) -> bool {
        let begun = std::mem::replace(&mut self.doing.begun, true);
        match act {
            Act::Phase(name) => {
                (self.resting, self.begins, self.took_ns) = (Some(*name), true, self.now_ns - self.since_ns);
                todo.push(Op::Sleep(REST_NS));
            }
            // It is there already, as is the name.
            Act::File(..) | Act::Name(_) => {}
            Act::Map(_, pages) if !begun => {
                todo.push(Op::Mmap { pages: *pages });
                return false;
            }
            Act::Map(area, _) => self.maps(*area, last),
            Act::Grow(area, pages) | Act::MapPieces(area, pages, _) => {
                // Each piece's region comes back before the next is asked for.
                self.maps(*area, last);
                let has: u32 = self.pieces(*area).map(|piece| piece.pages).sum();
                if (!begun || matches!(last, Value::Region(_))) && *pages > has {
                    let lacking = pages - has;
                    todo.push(match act {
                        Act::MapPieces(.., piece) => Op::MmapAnywhere { pages: lacking.min(*piece) },
                        _ => Op::Mmap { pages: PIECE.min(lacking) },
                    });
                    return false;
                }
            }
            Act::MapFile(..) | Act::Read(..) | Act::Write(..) | Act::Copy(..) | Act::Fsync(_) => {
                return self.on_files(act, begun, last, todo);
            }
            Act::WriteAll(..) | Act::CopyAll(..) => return self.on_set(act, todo),
            Act::UnlinkAll(set) => {
                let first = self.doing.handed_over;
                let end = (first + UNLINKED_AT_ONCE).min(set.files);
                todo.extend((first..end).map(|file| Op::UnlinkIfThere(set.name(file))));
                self.doing.handed_over = end;
                return end == set.files;
            }
            Act::Touch(area, pages) => return self.on_area(*area, pages, todo, Op::Touch),
            Act::Load(area, pages) => return self.on_area(*area, pages, todo, Op::Load),
            Act::AdviseHuge(area) => todo.extend(self.area(*area).map(Op::AdviseHuge)),
            Act::AdviseCold(area) => todo.extend(self.area(*area).map(Op::AdviseCold)),
            Act::Unmap(area) => {
                let latest = self.memory.iter().rposition(|(of, _)| of == area);
                todo.extend(latest.map(|at| Op::Munmap(self.memory.remove(at).1)));
            }
            Act::Sync => todo.push(Op::Sync),
            Act::Unlink(file) => todo.push(Op::Unlink(*file)),
            Act::Sysctl(name, value) => todo.push(Op::Sysctl { name: (&**name).into(), value: (&**value).into() }),
            Act::Sleep { ns } => todo.push(Op::Sleep(*ns)),
            Act::Work { pages, ns } | Act::Compile { pages, ns } | Act::Extend { pages, ns } => {
                let looked_at = match act {
                    Act::Extend { .. } => self.between(self.used, self.used.max(*pages)),
                    Act::Compile { .. } => self.looked_at(*pages),
                    _ => self.between(0, self.used.max(*pages)),
                };
                let extends = matches!(act, Act::Extend { .. });
                todo.extend(self.pieces(TEXT).filter(|_| !extends).map(Op::Load));
                todo.extend(looked_at.into_iter().map(Op::Touch));
                self.used = self.used.max(*pages);
                todo.push(Op::Compute(*ns));
            }
            Act::Fork(acts) => {
                self.children += 1;
                let memory = self.memory.clone();
                todo.push(Op::Fork(Box::new(Player { memory, ..Player::new(Arc::clone(acts), self.manner) })));
            }
            Act::Start(starter) => {
                self.children += 1;
                todo.push(Op::Fork(starter.program()));
            }
            Act::Exec(acts) => todo.push(Op::Exec(Box::new(Player::new(Arc::clone(acts), self.manner)))),
            Act::Wait => todo.push(Op::WaitAny),
            Act::WaitAll => todo.extend((0..self.children).map(|_| Op::WaitAny)),
            Act::Lap => {
                self.laps[self.lap].record(self.now_ns - self.since_ns);
                (self.lap, self.since_ns) = (self.lap + 1, self.now_ns);
            }
        }
        true
    }

    /// Learns what was mapped. A process whose request failed is about to be killed by the OOM
    /// killer.
    fn maps(&mut self, area: Area, last: Value) {
        if let Value::Region(region) = last {
            self.memory.push((area, region));
        }
    }

    /// Hands over some more calls; true if those were all.
    fn calls(&mut self, pages: &Pages, mut call: impl FnMut(u32, u32)) -> bool {
        let Doing { handed_over: done, random: own, .. } = &mut self.doing;
        for _ in 0..self.manner.at_once {
            if *done >= pages.pages {
                break;
            }
            let most = pages.call.min(pages.pages - *done);
            let (first, n) = match pages.random {
                Some(random) => {
                    let generator = match random.seed {
                        Some(seed) => own.get_or_insert_with(|| SplitMix64::new(seed)),
                        None => &mut self.random,
                    };
                    let first = generator.below(random.range.div_ceil(pages.call)) * pages.call;
                    (first, most.min(random.range - first))
                }
                None => (*done, most),
            };
            *done += n;
            (0..pages.parts).for_each(|_| call(pages.first + first, n));
        }
        *done >= pages.pages
    }

    fn on_area(&mut self, area: Area, pages: &Pages, todo: &mut Batch, op: fn(Region) -> Op) -> bool {
        let Some(all) = self.area(area) else { return true };
        self.calls(pages, |first, pages| {
            let pages = pages.min(all.pages.saturating_sub(first));
            todo.push(op(Region { first: all.first + first, pages, ..all }));
        })
    }

    /// Hands over some more of an act on files, which it opens before and, unless they stay open,
    /// closes after it.
    fn on_files(&mut self, act: &Act, begun: bool, last: Value, todo: &mut Batch) -> bool {
        if !self.opens(act, begun, last, todo) {
            // Without an operation a file was refused: leave the act undone.
            return todo.is_empty();
        }
        let [Some(file), to] = self.doing.open else { return true };
        let done = match act {
            Act::MapFile(_, _, pages) if matches!(last, Value::File(_)) => {
                todo.push(Op::MmapFile { file, first: pages.start, pages: pages.len() as u32 });
                return false;
            }
            Act::MapFile(area, ..) => {
                self.maps(*area, last);
                todo.extend(self.area(*area).map(Op::Load));
                true
            }
            Act::Read(_, pages) => self.calls(pages, |first, pages| todo.push(Op::Read { file, first, pages })),
            Act::Write(_, pages) => self.calls(pages, |first, pages| todo.push(Op::Write { file, first, pages })),
            Act::Copy(_, _, all) => {
                let Some(to) = to else { return true };
                if self.doing.handed_over == 0 {
                    // As with cp's O_TRUNC.
                    todo.push(Op::Truncate { file: to, pages: 0 });
                }
                self.calls(all, |first, pages| {
                    todo.extend([Op::Read { file, first, pages }, Op::Write { file: to, first, pages }]);
                })
            }
            _ => {
                todo.push(Op::Fsync(file));
                true
            }
        };
        if done && !self.manner.keeps_open {
            todo.extend(self.doing.open.iter_mut().filter_map(Option::take).map(Op::Close));
        }
        done
    }

    /// Reads, writes and closes the files that were opened, and opens the next of a set; true if
    /// there is none.
    fn on_set(&mut self, act: &Act, todo: &mut Batch) -> bool {
        let (from, to) = match act {
            Act::WriteAll(to) => (None, *to),
            Act::CopyAll(from, to) => (Some(*from), *to),
            _ => return true,
        };
        let next = self.doing.handed_over;
        if let [source, Some(file)] = std::mem::take(&mut self.opened)
            && next > 0
        {
            let length = to.pages_of(next - 1);
            for first in (0..length).step_by(CALL as usize) {
                let pages = CALL.min(length - first);
                todo.extend(source.map(|source| Op::Read { file: source, first, pages }));
                todo.push(Op::Write { file, first, pages });
            }
            todo.extend(source.into_iter().chain([file]).map(Op::Close));
        }
        if next == to.files {
            return true;
        }
        todo.extend(from.map(|from| Op::Open { name: from.name(next), create: self.manner.creates }));
        todo.push(Op::Open { name: to.name(next), create: true });
        self.doing.handed_over += 1;
        false
    }

    /// Opens the files of an act one after the other; true once all are open.
    fn opens(&mut self, act: &Act, begun: bool, last: Value, todo: &mut Batch) -> bool {
        let mut opened = match last {
            Value::File(file) => Some(file),
            _ => None,
        };
        let is_refused = begun && opened.is_none();
        // With each, whether it is written.
        let files = match act {
            Act::Copy(from, to, _) => [Some((*from, false)), Some((*to, true))],
            Act::Write(file, _) => [Some((*file, true)), None],
            Act::Read(file, _) | Act::Fsync(file) | Act::MapFile(_, file, _) => [Some((*file, false)), None],
            _ => [None; 2],
        };
        for (open, (name, is_written)) in self.doing.open.iter_mut().zip(files.into_iter().flatten()) {
            let kept = self.kept.iter().find(|(of, _)| *of == name).map(|(_, file)| *file);
            *open = open.or(kept).or_else(|| opened.take());
            match *open {
                Some(file) if self.manner.keeps_open && kept.is_none() => self.kept.push((name, file)),
                Some(_) => {}
                None => {
                    let create = is_written || self.manner.creates;
                    todo.extend((!is_refused).then_some(Op::Open { name, create }));
                    return false;
                }
            }
        }
        true
    }

    /// The regions a compiler touches as its heap grows to `pages`: the new pages, and those of the
    /// old ones that it uses again.
    fn looked_at(&mut self, pages: u32) -> Vec<Region> {
        self.unused.resize((self.used / TOGETHER) as usize, 0);
        let mut runs: Vec<Range<u32>> = Vec::new();
        for (group, unused) in (0..).zip(&mut self.unused) {
            if self.random.below(100) >= USED_AGAIN_PERCENT[usize::from(*unused)] {
                *unused = (*unused + 1).clamp(2, USED_AGAIN_PERCENT.len() as u8 - 1);
                continue;
            }
            *unused = 1;
            let (first, end) = (group * TOGETHER, (group + 1) * TOGETHER);
            match runs.last_mut() {
                Some(run) if run.end == first => run.end = end,
                _ => runs.push(first..end),
            }
        }
        runs.push(self.used..self.used.max(pages));
        runs.into_iter().flat_map(|run| self.between(run.start, run.end)).collect()
    }

    /// Pages `from` to `to` of the memory in use, drawn from heap and break in proportion.
    fn between(&self, from: u32, to: u32) -> Vec<Region> {
        let [of_heap, of_break] = [HEAP, BREAK].map(|area| self.pieces(area).map(|piece| piece.pages).sum::<u32>());
        let all = u64::from(of_heap + of_break).max(1);
        let in_break = |n: u32| (u64::from(n) * u64::from(of_break) / all) as u32;
        let part = |of: Region, from: u32, to: u32| {
            let (from, to) = (from.min(of.pages), to.min(of.pages));
            Region { first: of.first + from, pages: to - from, ..of }
        };
        let mut regions: Vec<Region> = Vec::new();
        let ranges = [(HEAP, from - in_break(from), to - in_break(to)), (BREAK, in_break(from), in_break(to))];
        for (area, mut from, mut to) in ranges {
            for piece in self.pieces(area) {
                regions.push(part(piece, from, to));
                (from, to) = (from.saturating_sub(piece.pages), to.saturating_sub(piece.pages));
            }
        }
        regions.retain(|region| region.pages > 0);
        regions
    }

    fn learn(&mut self, done: &[Outcome]) {
        self.opened = [None; 2];
        for outcome in done {
            match outcome.value {
                Value::Ended { failed, .. } => {
                    self.children -= 1;
                    self.failed |= failed;
                }
                Value::File(file) => self.opened = [self.opened[1], Some(file)],
                _ => {}
            }
            self.now_ns = outcome.end_ns;
        }
    }

    fn is_over(&self) -> bool {
        self.rounds > 0 && self.round == self.rounds
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
        let mut last = done.last().map_or(Value::Unit, |last| last.value);
        let acts = Arc::clone(&self.acts);
        // Acts that ask for nothing, as to unmap an empty area, are tried for one round, and the
        // first of them once more with its lap.
        for _ in 0..acts.len() + 2 {
            if self.at == acts.len() && !self.is_over() {
                (self.at, self.lap, self.round) = (0, 0, self.round.saturating_add(1));
            }
            let Some(act) = acts.get(self.at).filter(|_| !self.is_over()) else { return };
            if self.act(act, last, todo) {
                (self.at, self.doing, last) = (self.at + 1, Doing::default(), Value::Unit);
            }
            if !todo.is_empty() {
                return;
            }
        }
    }

    fn name(&self) -> Option<&'static str> {
        match self.acts.first() {
            Some(Act::Name(name)) => Some(name),
            _ => None,
        }
    }

    fn has_failed(&self) -> bool {
        self.failed
    }

    fn progress(&self) -> f64 {
        if self.rounds == 0 {
            return 0.0;
        }
        let (done, all) = match self.laps.len() {
            0 => (self.at, self.acts.len().max(1)),
            laps => (self.lap, laps),
        };
        (f64::from(self.round) + done as f64 / all as f64) / f64::from(self.rounds)
    }
}

/// Every operation of a process on a machine that grants every request.
#[cfg(test)]
pub(crate) fn lived(program: &mut dyn Program) -> Vec<Op> {
    let (mut todo, mut ops, mut done) = (Batch::new(), Vec::new(), vec![Outcome::at_start(0)]);
    let (mut files, mut now) = (0, 0);
    loop {
        program.next(&done, &mut todo);
        done.clear();
        while let Some(op) = todo.pop() {
            let value = match &op {
                Op::Mmap { pages } | Op::MmapAnywhere { pages } | Op::MmapFile { pages, .. } => {
                    Value::Region(Region { mapping: 3, first: 0, pages: *pages })
                }
                Op::Open { .. } => {
                    files += 1;
                    Value::File(OpenFile::new(files))
                }
                Op::WaitAny => Value::Ended { process: kontig_program::Process::new(1), killed: false, failed: false },
                _ => Value::Unit,
            };
            now += 1;
            done.push(Outcome { value, start_ns: now - 1, end_ns: now });
            ops.push(op);
        }
        if done.is_empty() {
            return ops;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::HPAGE_PMD_NR;
    use kontig_program::act::{Files, Lengths, Starter};

    const FILE: FileName = FileName::new(0, 4);

    fn of(acts: Vec<Act>) -> Player {
        Player::new(acts, Manner::PROGRAM)
    }

    fn played(acts: Vec<Act>) -> Vec<Op> {
        lived(&mut Player::new(acts, Manner::PATTERN))
    }

    fn sleep(ns: u64) -> Act {
        Act::Sleep { ns }
    }

    fn read(pages: u32) -> Act {
        Act::Read(FILE, Pages::in_calls(0, pages, CALL))
    }

    #[test]
    fn a_file_is_opened_read_in_calls_and_closed() {
        let open = OpenFile::new(1);
        let expected = [
            Op::Open { name: FILE, create: true },
            Op::Read { file: open, first: 0, pages: 32 },
            Op::Read { file: open, first: 32, pages: 8 },
            Op::Close(open),
        ];
        assert_eq!(lived(&mut of(vec![read(40)])), expected);
    }

    #[test]
    fn a_compiler_uses_its_program_what_is_new_of_its_heap_and_a_part_of_the_rest_and_others_all_of_it() {
        let acts = [
            Act::MapFile(TEXT, FILE, 0..9),
            Act::Map(HEAP, 200),
            Act::Compile { pages: 100, ns: 5 },
            Act::Compile { pages: 130, ns: 7 },
            Act::Work { pages: 140, ns: 9 },
        ];
        let open = OpenFile::new(1);
        let part = |first, pages| Region { mapping: 3, first, pages };
        let ops = lived(&mut of(acts.to_vec()));
        let begun = [
            Op::Open { name: FILE, create: true },
            Op::MmapFile { file: open, first: 0, pages: 9 },
            Op::Load(part(0, 9)),
            Op::Close(open),
            Op::Mmap { pages: 200 },
            Op::Load(part(0, 9)),
            Op::Touch(part(0, 100)),
            Op::Compute(5),
            Op::Load(part(0, 9)),
        ];
        let ended =
            [Op::Touch(part(100, 30)), Op::Compute(7), Op::Load(part(0, 9)), Op::Touch(part(0, 140)), Op::Compute(9)];
        assert_eq!((&ops[..begun.len()], &ops[ops.len() - ended.len()..]), (&begun[..], &ended[..]));
        let again = &ops[begun.len()..ops.len() - ended.len()];
        assert!(
            again.iter().all(|op| matches!(op, Op::Touch(Region { first: 0..100, pages: 1..50, .. }))),
            "{again:?}"
        );
        assert!(again.len() > 5, "{again:?}");
    }

    /// The regions that a compiler of 16 MiB touches in each act after the first, in which all
    /// pages are new.
    fn looked_at_again(acts: usize) -> Vec<Vec<Region>> {
        let mut life = vec![Act::Map(HEAP, 4096)];
        life.resize(acts + 2, Act::Compile { pages: 4096, ns: 1 });
        let (mut at_once, mut each) = (Vec::new(), Vec::new());
        for op in lived(&mut of(life)) {
            match op {
                Op::Touch(region) => at_once.push(region),
                Op::Compute(_) => each.push(std::mem::take(&mut at_once)),
                _ => {}
            }
        }
        each.split_off(1)
    }

    /// Compilers use pages everywhere in their heaps (measured): reclaim finds none of their huge
    /// pages idle.
    #[test]
    fn a_compiler_looks_at_some_of_each_huge_page_with_every_act() {
        for looked_at in looked_at_again(10) {
            for huge_page in 0..8 {
                let range = huge_page * HPAGE_PMD_NR..(huge_page + 1) * HPAGE_PMD_NR;
                assert!(looked_at.iter().any(|part| part.first < range.end && part.first + part.pages > range.start));
            }
        }
    }

    /// Measured: of what they had used since the last look compilers used most again, and of what
    /// they had not used for seven looks next to nothing.
    #[test]
    fn a_compiler_uses_again_what_it_used_last() {
        let (mut unused, mut of) = ([0; 4096], [[0; 2]; 32]);
        let looks = looked_at_again(16);
        let mut pages = 0;
        for looked_at in &looks {
            let mut used = [false; 4096];
            for part in looked_at {
                used[part.first as usize..][..part.pages as usize].fill(true);
                pages += part.pages;
            }
            for (unused, used) in unused.iter_mut().zip(used) {
                of[*unused][0] += 1;
                of[*unused][1] += u32::from(used);
                *unused = if used { 0 } else { *unused + 1 };
            }
        }
        let percent = |looks: usize| 100 * of[looks][1] / of[looks][0];
        assert!((55..=70).contains(&percent(0)), "{of:?}");
        assert!((15..=30).contains(&percent(1)), "{of:?}");
        assert!(percent(7) < 8, "{of:?}");
        let share = f64::from(pages) / looks.len() as f64 / 4096.0;
        assert!((0.2..0.35).contains(&share), "{share}");
    }

    #[test]
    fn a_heap_that_is_extended_is_touched_where_it_is_new_and_mapped_in_pieces() {
        let acts =
            [Act::MapPieces(HEAP, 600, 512), Act::Extend { pages: 500, ns: 5 }, Act::Extend { pages: 560, ns: 7 }];
        let expected = [
            Op::MmapAnywhere { pages: 512 },
            Op::MmapAnywhere { pages: 88 },
            Op::Touch(Region { mapping: 3, first: 0, pages: 500 }),
            Op::Compute(5),
            Op::Touch(Region { mapping: 3, first: 500, pages: 12 }),
            Op::Touch(Region { mapping: 3, first: 0, pages: 48 }),
            Op::Compute(7),
        ];
        assert_eq!(lived(&mut of(acts.to_vec())), expected);
    }

    #[test]
    fn memory_that_comes_piece_by_piece_is_never_a_huge_page_at_once() {
        let ops = lived(&mut of(vec![Act::Grow(BREAK, 1200), Act::Work { pages: 600, ns: 1 }]));
        let mapped = ops.iter().filter_map(|op| if let Op::Mmap { pages } = op { Some(*pages) } else { None });
        assert_eq!(mapped.collect::<Vec<u32>>(), [511, 511, 178]);
        let touched = ops.iter().map(|op| if let Op::Touch(region) = op { region.pages } else { 0 });
        assert_eq!(touched.sum::<u32>(), 600);
    }

    #[test]
    fn a_parent_whose_child_fails_has_failed() {
        let ended = |failed| {
            let mut player = of(vec![Act::Fork([].into()), Act::Wait, sleep(1)]);
            let mut todo = Batch::new();
            player.next(&[Outcome::at_start(0)], &mut todo);
            player.next(&[Outcome::at_start(0)], &mut todo);
            let value = Value::Ended { process: kontig_program::Process::new(1), killed: failed, failed };
            player.next(&[Outcome { value, ..Outcome::at_start(1) }], &mut todo);
            player.next(&[Outcome::at_start(2)], &mut todo);
            player.has_failed()
        };
        assert_eq!((ended(false), ended(true)), (false, true));
    }

    #[test]
    fn a_file_that_was_not_opened_is_not_used() {
        let mut player = of(vec![read(40), Act::Unlink(FILE)]);
        let mut todo = Batch::new();
        player.next(&[Outcome::at_start(0)], &mut todo);
        assert_eq!(todo.pop(), Some(Op::Open { name: FILE, create: true }));
        // The process is being killed: nothing was opened.
        player.next(&[Outcome::at_start(1)], &mut todo);
        assert_eq!(todo.pop(), Some(Op::Unlink(FILE)));
    }

    #[test]
    fn a_file_is_opened_once_and_read_in_calls() {
        let read = |first, pages| Act::Read(FILE, Pages::in_calls(first, pages, CALL));
        let file = OpenFile::new(1);
        let expected = [
            Op::Open { name: FILE, create: true },
            Op::Read { file, first: 10, pages: 32 },
            Op::Read { file, first: 42, pages: 8 },
            Op::Read { file, first: 0, pages: 1 },
        ];
        assert_eq!(played(vec![read(10, 40), read(0, 1)]), expected);
    }

    #[test]
    fn files_of_a_set_are_written_copied_and_unlinked_one_after_the_other() {
        let set = |first| Files { first: FileName::new(0, first), files: 2, lengths: Lengths::Mean(35) };
        let (a, b) = (set(10), set(20));
        assert_eq!([a.pages_of(0), a.pages_of(1)], [17, 18]);
        let open = |number, create| Op::Open { name: FileName::new(0, number), create };
        let [one, two, three, four] = [1, 2, 3, 4].map(OpenFile::new);
        let write = |file, pages| Op::Write { file, first: 0, pages };
        let read = |file, pages| Op::Read { file, first: 0, pages };
        let lived_as = |act| lived(&mut Player::new(vec![act], Manner::STEPS));
        let written = [open(10, true), write(one, 17), Op::Close(one), open(11, true), write(two, 18), Op::Close(two)];
        assert_eq!(lived_as(Act::WriteAll(a)), written);
        let copied = [
            [open(10, false), open(20, true), read(one, 17), write(two, 17), Op::Close(one), Op::Close(two)],
            [open(11, false), open(21, true), read(three, 18), write(four, 18), Op::Close(three), Op::Close(four)],
        ];
        assert_eq!(lived_as(Act::CopyAll(a, b)), copied.concat());
        let unlinked = [20, 21].map(|number| Op::UnlinkIfThere(FileName::new(0, number)));
        assert_eq!(lived_as(Act::UnlinkAll(b)), unlinked);
        let long = Files { files: 1, ..a };
        assert_eq!(lived_as(Act::WriteAll(long))[1..3], [write(one, 32), Op::Write { file: one, first: 32, pages: 3 }]);
    }

    #[test]
    fn a_started_program_runs_beside_the_acts_that_follow() {
        let starter = Starter::new(|| Box::new(Player::new(vec![sleep(7)], Manner::STEPS)));
        let mut ops = played(vec![Act::Start(starter), sleep(1), Act::WaitAll]).into_iter();
        let Some(Op::Fork(mut program)) = ops.next() else { panic!("it is forked") };
        assert_eq!(lived(program.as_mut()), [Op::Sleep(7)]);
        assert_eq!(ops.collect::<Vec<_>>(), [Op::Sleep(1), Op::WaitAny]);
    }

    #[test]
    fn random_pages_are_those_of_the_acts_seed() {
        let random = Pages::at_random(100, 50, 70, 9);
        let ops = played(vec![Act::Map(0, 150), Act::Touch(0, random)]);
        let mut generator = SplitMix64::new(9);
        assert_eq!(ops.len(), 71);
        for op in &ops[1..] {
            let Op::Touch(region) = op else { panic!("{op:?}") };
            assert_eq!((region.first, region.pages), (100 + generator.below(50), 1));
        }
    }

    #[test]
    fn a_parent_goes_on_after_its_childs_end_and_waits_for_as_many_as_there_are() {
        let child = || Act::Fork([sleep(1)].into());
        let ops = played(vec![child(), child(), Act::Wait, sleep(2), Act::WaitAll]);
        let is = |i: usize, word: &str| format!("{:?}", ops[i]).starts_with(word);
        assert!(is(0, "Fork") && is(1, "Fork") && is(2, "WaitAny") && is(3, "Sleep(2)") && is(4, "WaitAny"));
        assert_eq!(ops.len(), 5);
    }

    #[test]
    fn a_phase_takes_as_long_as_its_acts_without_the_rest() {
        let acts = [Act::Phase("start"), sleep(1), sleep(2), Act::Phase("end")];
        let (mut player, mut todo) = (Player::new(acts, Manner::PATTERN), Batch::new());
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
        let acts = [Act::Phase("start"), Act::Wait];
        let (mut player, mut todo) = (Player::new(acts, Manner::PATTERN), Batch::new());
        player.next(&[Outcome::at_start(0)], &mut todo);
        assert_eq!((player.resting(), todo.pop()), (Some("start"), Some(Op::Sleep(REST_NS))));
        player.next(&[], &mut todo);
        assert_eq!(todo.pop(), Some(Op::Sleep(REST_NS)));
        player.go_on();
        player.next(&[], &mut todo);
        assert_eq!(todo.pop(), Some(Op::WaitAny));
    }
}
