//! A process as a sequence of acts: it maps its program and its heap, computes and grows, reads and
//! writes files, forks and waits.
//!
//! A growing process keeps its whole working set in use: every act of computing touches its
//! program's pages and its heap again, so that reclaim finds them referenced. A compiler touches
//! only new pages and a part of the rest.

use crate::size::HPAGE_PMD_NR;
use kontig_program::{Batch, FileName, Op, OpenFile, Outcome, Program, Region, Value};
use std::sync::Arc;

/// Pages of one read or write: 128 KiB, as a buffer of a C library's or a compiler's is at most.
const CALL: u32 = 32;

/// How much of what it has a compiler looks at again with every act: the latest 23 %, and a part of
/// every 2 MiB of the rest, each time another part; 31 % in all. Compilers of kernel files used so
/// much of the anonymous memory they had had in a sixteenth of their time, and these pages lay
/// everywhere: where their heaps were huge pages, they used all of those (Linux 6.18, the means of
/// ten and of twelve; `clear_refs`, then `Referenced`).
const LATEST_PERCENT: u32 = 23;
const LOOKED_AT_PERCENT: u32 = 31;

/// Pages that the break is moved by, at most: fewer than a huge page has. (The C library moves it
/// by 33; larger pieces are fewer mappings here, of which the process has one.)
const PIECE: u32 = 511;

/// Something a process does.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Become another program, without any of the memory.
    Exec(Script),
    /// Map a program's file.
    Text {
        file: FileName,
        /// Pages it uses, from the first on.
        pages: u32,
    },
    /// Map anonymous memory, in pages.
    Heap(u32),
    /// Grow the heap piece by piece, as the C library moves the break: never 2 MiB at once, so that
    /// the first fault in a range gets a small page whatever `thp.enabled` says.
    Break(u32),
    /// Ask for huge pages for the heap.
    Advise,
    Sleep(u64),
    /// Compute, with this much of the heap in use from then on.
    Work {
        pages: u32,
        /// Time on a CPU.
        ns: u64,
    },
    /// Compute as a compiler does, which touches only new pages and a part of the rest.
    Compile {
        pages: u32,
        /// Time on a CPU.
        ns: u64,
    },
    /// Read a file of this many pages from start to end.
    Read(FileName, u32),
    /// Write this many pages to a file, which is created if it is missing.
    Write(FileName, u32),
    Unlink(FileName),
    /// Fork a child that runs this script.
    Fork(Script),
    /// Wait until a child has ended.
    Wait,
}

#[derive(Clone, Debug)]
pub(crate) struct Script {
    acts: Arc<[Act]>,
    at: usize,
    text: Option<Region>,
    heap: Option<Region>,
    /// The pieces that the break has grown by.
    pieces: Vec<Region>,
    /// Most pages of the heap in use so far.
    used: u32,
    /// How often it has worked.
    worked: u32,
    open: Option<OpenFile>,
    /// Whether the act has begun, so that the next outcome is its own.
    begun: bool,
    /// A child has failed or was killed, and left its work undone.
    failed: bool,
}

impl Script {
    /// A script at its first act.
    pub(crate) fn new(acts: Vec<Act>) -> Script {
        Script {
            acts: acts.into(),
            at: 0,
            text: None,
            heap: None,
            pieces: Vec::new(),
            used: 0,
            worked: 0,
            open: None,
            begun: false,
            failed: false,
        }
    }

    /// Hands over an act's operations, or the first of them; true if those were all.
    fn act(&mut self, act: &Act, last: Value, todo: &mut Batch) -> bool {
        let begun = std::mem::replace(&mut self.begun, true);
        match (act, last) {
            (Act::Exec(script), _) => todo.push(Op::Exec(Box::new(script.clone()))),
            (Act::Heap(pages), _) if !begun => {
                todo.push(Op::Mmap { pages: *pages });
                return false;
            }
            (Act::Heap(_), Value::Region(region)) => self.heap = Some(region),
            (Act::Break(pages), _) => {
                // Each piece's region comes back before the next is asked for.
                let came = match last {
                    Value::Region(piece) if begun => {
                        self.pieces.push(piece);
                        true
                    }
                    _ => !begun,
                };
                let left = pages - self.pieces.iter().map(|piece| piece.pages).sum::<u32>();
                if came && left > 0 {
                    todo.push(Op::Mmap { pages: left.min(PIECE) });
                    return false;
                }
            }
            // The output of a process that was killed may be missing: create it empty.
            (Act::Text { file, .. } | Act::Read(file, _) | Act::Write(file, _), _) if !begun => {
                todo.push(Op::Open { name: *file, create: true });
                return false;
            }
            (Act::Text { pages, .. }, Value::File(file)) => {
                self.open = Some(file);
                todo.push(Op::MmapFile { file, first: 0, pages: *pages });
                return false;
            }
            (Act::Text { .. }, Value::Region(region)) => {
                self.text = Some(region);
                todo.push(Op::Load(region));
                todo.extend(self.open.take().map(Op::Close));
            }
            (Act::Read(_, pages), Value::File(file)) => {
                todo.extend(calls(*pages).map(|(first, pages)| Op::Read { file, first, pages }));
                todo.push(Op::Close(file));
            }
            (Act::Write(_, pages), Value::File(file)) => {
                todo.extend(calls(*pages).map(|(first, pages)| Op::Write { file, first, pages }));
                todo.push(Op::Close(file));
            }
            (Act::Work { pages, ns } | Act::Compile { pages, ns }, _) => {
                let looked_at = match act {
                    Act::Compile { .. } => self.looked_at(*pages),
                    _ => self.between(0, self.used.max(*pages)),
                };
                todo.extend(self.text.map(Op::Load));
                todo.extend(looked_at.into_iter().map(Op::Touch));
                (self.used, self.worked) = (self.used.max(*pages), self.worked + 1);
                todo.push(Op::Compute(*ns));
            }
            (Act::Advise, _) => todo.extend(self.heap.map(Op::AdviseHuge)),
            (Act::Sleep(ns), _) => todo.push(Op::Sleep(*ns)),
            (Act::Unlink(file), _) => todo.push(Op::Unlink(*file)),
            (Act::Fork(script), _) => todo.push(Op::Fork(Box::new(script.clone()))),
            (Act::Wait, _) => todo.push(Op::WaitAny),
            // Its request failed: it is about to be killed by the OOM killer.
            (Act::Heap(_) | Act::Text { .. } | Act::Read(..) | Act::Write(..), _) => {}
        }
        true
    }
}

impl Script {
    /// The regions a compiler touches as its heap grows to `pages`: the new pages, the latest of
    /// the old ones, and a part of each 2 MiB of the rest, drawn from heap and break in proportion.
    fn looked_at(&self, pages: u32) -> Vec<Region> {
        const PART: u32 = HPAGE_PMD_NR * (LOOKED_AT_PERCENT - LATEST_PERCENT) / (100 - LATEST_PERCENT);
        let rest = self.used * (100 - LATEST_PERCENT) / 100;
        let from = self.worked % HPAGE_PMD_NR.div_ceil(PART) * PART;
        let to = (from + PART).min(HPAGE_PMD_NR);
        let mut looked_at: Vec<Region> = (0..rest)
            .step_by(HPAGE_PMD_NR as usize)
            .flat_map(|first| self.between((first + from).min(rest), (first + to).min(rest)))
            .collect();
        looked_at.extend(self.between(rest, self.used.max(pages)));
        looked_at
    }

    /// Pages `from` to `to` of the memory in use, drawn from heap and break in proportion.
    fn between(&self, from: u32, to: u32) -> Vec<Region> {
        let of_pieces: u32 = self.pieces.iter().map(|piece| piece.pages).sum();
        let all = of_pieces + self.heap.map_or(0, |heap| heap.pages);
        let in_pieces = |n: u32| (u64::from(n) * u64::from(of_pieces) / u64::from(all.max(1))) as u32;
        let part = |of: Region, from: u32, to: u32| {
            let (from, to) = (from.min(of.pages), to.min(of.pages));
            Region { first: of.first + from, pages: to - from, ..of }
        };
        let mut regions: Vec<Region> = Vec::new();
        regions.extend(self.heap.map(|heap| part(heap, from - in_pieces(from), to - in_pieces(to))));
        let (mut from, mut to) = (in_pieces(from), in_pieces(to));
        for piece in &self.pieces {
            regions.push(part(*piece, from, to));
            (from, to) = (from.saturating_sub(piece.pages), to.saturating_sub(piece.pages));
        }
        regions.retain(|region| region.pages > 0);
        regions
    }
}

/// Splits a file into calls: the first page and the number of pages of each.
fn calls(pages: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..pages).step_by(CALL as usize).map(move |first| (first, CALL.min(pages - first)))
}

impl Program for Script {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        let mut last = done.last().map_or(Value::Unit, |last| last.value);
        self.failed |= done.iter().any(|outcome| matches!(outcome.value, Value::Ended { failed: true, .. }));
        let acts = Arc::clone(&self.acts);
        while todo.is_empty() {
            let Some(act) = acts.get(self.at) else { return };
            if self.act(act, last, todo) {
                (self.at, self.begun, last) = (self.at + 1, false, Value::Unit);
            }
        }
    }

    fn has_failed(&self) -> bool {
        self.failed
    }

    fn progress(&self) -> f64 {
        self.at as f64 / self.acts.len().max(1) as f64
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
                Op::Mmap { pages } | Op::MmapFile { pages, .. } => {
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

    const FILE: FileName = FileName::new(0, 4);

    #[test]
    fn a_file_is_opened_read_in_calls_and_closed() {
        let open = OpenFile::new(1);
        let expected = [
            Op::Open { name: FILE, create: true },
            Op::Read { file: open, first: 0, pages: 32 },
            Op::Read { file: open, first: 32, pages: 8 },
            Op::Close(open),
        ];
        assert_eq!(lived(&mut Script::new(vec![Act::Read(FILE, 40)])), expected);
    }

    #[test]
    fn a_compiler_uses_its_program_what_is_new_of_its_heap_and_a_part_of_the_rest_and_others_all_of_it() {
        let acts = [
            Act::Text { file: FILE, pages: 9 },
            Act::Heap(200),
            Act::Compile { pages: 100, ns: 5 },
            Act::Compile { pages: 130, ns: 7 },
            Act::Work { pages: 140, ns: 9 },
        ];
        let open = OpenFile::new(1);
        let part = |first, pages| Region { mapping: 3, first, pages };
        let region = |pages| part(0, pages);
        let expected = [
            Op::Open { name: FILE, create: true },
            Op::MmapFile { file: open, first: 0, pages: 9 },
            Op::Load(region(9)),
            Op::Close(open),
            Op::Mmap { pages: 200 },
            Op::Load(region(9)),
            Op::Touch(region(100)),
            Op::Compute(5),
            Op::Load(region(9)),
            Op::Touch(part(53, 24)),
            Op::Touch(part(77, 53)),
            Op::Compute(7),
            Op::Load(region(9)),
            Op::Touch(region(140)),
            Op::Compute(9),
        ];
        assert_eq!(lived(&mut Script::new(acts.to_vec())), expected);
    }

    /// The regions that a compiler of 16 MiB touches in each act after the first, in which all
    /// pages are new.
    fn looked_at_again(acts: usize) -> Vec<Vec<Region>> {
        let mut life = vec![Act::Heap(4096)];
        life.resize(acts + 2, Act::Compile { pages: 4096, ns: 1 });
        let (mut at_once, mut each) = (Vec::new(), Vec::new());
        for op in lived(&mut Script::new(life)) {
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

    #[test]
    fn a_compiler_looks_at_31_percent_with_every_act_and_at_every_page_within_ten() {
        let (mut seen, mut pages) = ([false; 4096], 0);
        for part in looked_at_again(10).concat() {
            seen[part.first as usize..][..part.pages as usize].fill(true);
            pages += part.pages;
        }
        assert!(seen.iter().all(|seen| *seen));
        assert_eq!((f64::from(pages) / 10.0 / 4096.0 * 100.0).round(), 31.0);
    }

    #[test]
    fn what_comes_piece_by_piece_is_never_a_huge_page_at_once() {
        let ops = lived(&mut Script::new(vec![Act::Break(1200), Act::Work { pages: 600, ns: 1 }]));
        let mapped = ops.iter().filter_map(|op| if let Op::Mmap { pages } = op { Some(*pages) } else { None });
        assert_eq!(mapped.collect::<Vec<u32>>(), [511, 511, 178]);
        let touched = ops.iter().map(|op| if let Op::Touch(region) = op { region.pages } else { 0 });
        assert_eq!(touched.sum::<u32>(), 600);
    }

    #[test]
    fn who_has_a_child_that_fails_has_failed() {
        let ended = |failed| {
            let mut script = Script::new(vec![Act::Wait, Act::Sleep(1)]);
            let mut todo = Batch::new();
            script.next(&[Outcome::at_start(0)], &mut todo);
            let value = Value::Ended { process: kontig_program::Process::new(1), killed: failed, failed };
            script.next(&[Outcome { value, ..Outcome::at_start(1) }], &mut todo);
            script.next(&[Outcome::at_start(2)], &mut todo);
            script.has_failed()
        };
        assert_eq!((ended(false), ended(true)), (false, true));
    }

    #[test]
    fn what_is_not_given_is_not_used() {
        let mut script = Script::new(vec![Act::Read(FILE, 40), Act::Unlink(FILE)]);
        let mut todo = Batch::new();
        script.next(&[Outcome::at_start(0)], &mut todo);
        assert_eq!(todo.pop(), Some(Op::Open { name: FILE, create: true }));
        // The process is being killed: nothing was opened.
        script.next(&[Outcome::at_start(1)], &mut todo);
        assert_eq!(todo.pop(), Some(Op::Unlink(FILE)));
    }
}
