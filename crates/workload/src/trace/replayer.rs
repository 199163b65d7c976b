//! The process that replays a recording.
//!
//! What is movable is memory of the process: it is touched, and unmapped when it is freed, in parts
//! if it was. A huge page is asked for (`MADV_HUGEPAGE`), and `mincore` of its second page says
//! whether it came; all else are single pages. Everything else is allocated as a driver does, and
//! freed as the block that it was, or in pages where the recording freed it in parts.

use super::recording::Allocation;
use crate::latencies::Latencies;
use crate::size::HPAGE_PMD_NR;
use kontig_program::{Batch, Frame, Gfp, Op, Order, Outcome, Program, Region, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Operations handed over at a time.
const AT_ONCE: usize = 32;

/// Something that a process does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Act {
    /// Take pages of the first of its two mappings.
    Touch(u32, u32),
    TouchHuge(u32),
    /// Give back pages of one of the two mappings, the second of which is of huge pages.
    Unmap(usize, u32, u32),
    Take(u32, Gfp, Order),
    /// Give back pages of a block, counted from its first.
    Give(u32, Order, u32, u32),
}

/// The use of an operation that was handed over.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    Other,
    /// The first touch of a huge page.
    First,
    /// The look whether it came.
    Asks,
    /// The last of an act.
    Ends(Act),
}

/// Where a process has its pages: a place that was given back is the next that is taken.
#[derive(Default)]
struct Places {
    pages: u32,
    free: BTreeMap<u32, Vec<u32>>,
}

impl Places {
    fn take(&mut self, pages: u32) -> u32 {
        if let Some(first) = self.free.get_mut(&pages).and_then(Vec::pop) {
            return first;
        }
        let first = self.pages.next_multiple_of(pages);
        self.pages = first + pages;
        first
    }

    fn give(&mut self, first: u32, pages: u32) {
        self.free.entry(pages).or_default().push(first);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Map,
    Advise,
    Replay,
}

/// A process of the recording.
#[derive(Clone)]
pub struct Replayer {
    stage: Stage,
    /// Its acts, each with its time, ns from the start.
    pub(super) acts: Arc<[(u64, Act)]>,
    next: usize,
    /// The pages that it uses of its two mappings.
    pages: [u32; 2],
    regions: [Option<Region>; 2],
    /// The uses of the operations handed over last, in order.
    handed_over: Vec<Use>,
    began_ns: u64,
    blocks: BTreeMap<u32, Block>,
    /// How long the first touch of the last huge page took, ns, and whether it came.
    huge: (u64, bool),
    pub(super) replayed: u64,
    pub(super) came_small: u64,
    pub(super) failed: u64,
    pub(super) touches: Latencies,
    pub(super) kernel: Latencies,
    pub(super) behind: Latencies,
}

/// A block of the kernel's.
#[derive(Clone, Copy)]
struct Block {
    first: Frame,
    /// The pages that are not given back.
    left: u32,
    is_split: bool,
}

/// A change of a process's memory: when, whether it takes, the allocation, its first page and how
/// many.
type Change = (u64, bool, usize, u32, u32);

impl Replayer {
    pub(super) fn new(allocations: &[Allocation], sets: &[Gfp]) -> Replayer {
        // A free comes before an allocation of the same microsecond.
        let mut changes: Vec<Change> = Vec::with_capacity(2 * allocations.len());
        for (i, allocation) in allocations.iter().enumerate() {
            changes.push((allocation.at_us, true, i, 0, allocation.pages()));
            changes.extend(allocation.frees().map(|(at, first, pages)| (at, false, i, first, pages)));
        }
        changes.sort_unstable();
        let mut places = [Places::default(), Places::default()];
        // Where each lies, and how many of its pages are left.
        let mut lie: Vec<(u32, u32)> = allocations.iter().map(|allocation| (0, allocation.pages())).collect();
        let act = |(at_us, takes, i, first, pages): Change| {
            let (allocation, id) = (&allocations[i], i as u32);
            let area = usize::from(allocation.pages() == HPAGE_PMD_NR);
            let (place, left) = &mut lie[i];
            let gfp = sets[allocation.flags];
            let act = match (gfp.has(Gfp::MOVABLE), takes) {
                (true, true) => {
                    *place = places[area].take(pages);
                    if area == 1 { Act::TouchHuge(*place) } else { Act::Touch(*place, pages) }
                }
                (true, false) => {
                    *left -= pages;
                    if *left == 0 {
                        places[area].give(*place, allocation.pages());
                    }
                    Act::Unmap(area, *place + first, pages)
                }
                (false, true) => Act::Take(id, gfp, allocation.order),
                (false, false) => Act::Give(id, allocation.order, first, pages),
            };
            (at_us.saturating_mul(1000), act)
        };
        let acts = changes.into_iter().map(act).collect();
        Replayer {
            stage: Stage::Map,
            acts,
            next: 0,
            pages: places.map(|places| places.pages),
            regions: [None; 2],
            handed_over: Vec::new(),
            began_ns: 0,
            blocks: BTreeMap::new(),
            huge: (0, false),
            replayed: 0,
            came_small: 0,
            failed: 0,
            touches: Latencies::new("memory touched", "nothing was"),
            kernel: Latencies::new("kernel allocation", "there was none"),
            behind: Latencies::new("behind the recording", "nothing was replayed"),
        }
    }

    fn learn(&mut self, of: Use, outcome: &Outcome) {
        match (of, outcome.value) {
            (Use::Other, Value::Region(region)) => {
                let missing = (0..2).find(|area| self.pages[*area] > 0 && self.regions[*area].is_none());
                if let Some(area) = missing {
                    self.regions[area] = Some(region);
                }
            }
            (Use::First, _) => self.huge = (outcome.latency_ns(), false),
            (Use::Asks, Value::Pages(there)) => self.huge.1 = there > 0,
            (Use::Ends(Act::Touch(..)), _) => {
                self.replayed += 1;
                self.touches.record(outcome.latency_ns());
            }
            (Use::Ends(Act::TouchHuge(_)), _) => {
                let (first_ns, came) = self.huge;
                *(if came { &mut self.replayed } else { &mut self.came_small }) += 1;
                self.touches.record(first_ns + outcome.latency_ns());
            }
            (Use::Ends(Act::Take(id, _, order)), Value::Block(Some(first))) => {
                self.replayed += 1;
                self.kernel.record(outcome.latency_ns());
                self.blocks.insert(id, Block { first, left: 1 << order.get(), is_split: false });
            }
            (Use::Ends(Act::Take(..)), _) => self.failed += 1,
            _ => {}
        }
    }

    fn push(&mut self, act: Act, todo: &mut Batch) {
        let part = |area: usize, first: u32, pages: u32| {
            self.regions[area].map(|region| Region { first: region.first + first, pages, ..region })
        };
        match act {
            Act::Touch(first, pages) => todo.extend(part(0, first, pages).map(Op::Touch)),
            Act::TouchHuge(first) => {
                let parts = [part(1, first, 1), part(1, first + 1, 1), part(1, first, HPAGE_PMD_NR)];
                let [Some(one), Some(second), Some(all)] = parts else { return };
                todo.extend([Op::Touch(one), Op::Mincore(second), Op::Touch(all)]);
                self.handed_over.extend([Use::First, Use::Asks]);
            }
            Act::Unmap(area, first, pages) => todo.extend(part(area, first, pages).map(Op::Munmap)),
            Act::Take(_, gfp, order) => todo.push(Op::AllocPages { gfp, order }),
            Act::Give(id, order, first, pages) => {
                // What failed cannot be given back.
                let Some(block) = self.blocks.get_mut(&id) else { return };
                let is_whole = pages == 1 << order.get();
                if !is_whole && !std::mem::replace(&mut block.is_split, true) {
                    todo.push(Op::SplitPages { block: block.first, order });
                    self.handed_over.push(Use::Other);
                }
                let first = Frame::new(block.first.get() + u64::from(first));
                todo.push(match is_whole {
                    true => Op::FreeBlock { block: first, order },
                    false => Op::FreePages { first, pages },
                });
                block.left -= pages;
                if block.left == 0 {
                    self.blocks.remove(&id);
                }
            }
        }
        self.handed_over.push(Use::Ends(act));
    }
}

impl Program for Replayer {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        let Some(last) = done.last() else { return };
        let handed_over = std::mem::take(&mut self.handed_over);
        handed_over.into_iter().zip(done).for_each(|(of, outcome)| self.learn(of, outcome));
        match self.stage {
            Stage::Map => {
                (self.stage, self.began_ns) = (Stage::Advise, last.end_ns);
                let mapped = self.pages.into_iter().filter(|pages| *pages > 0);
                // A page more, so that a mapping is never unmapped whole, which would remove it.
                todo.extend(mapped.map(|pages| Op::Mmap { pages: pages + 1 }));
                // Always something, or it would be done.
                todo.push(Op::Sleep(0));
                self.handed_over = vec![Use::Other; todo.len()];
                return;
            }
            Stage::Advise => {
                self.stage = Stage::Replay;
                todo.extend(self.regions[1].map(Op::AdviseHuge));
                self.handed_over = vec![Use::Other; todo.len()];
            }
            Stage::Replay => {}
        }
        let now = last.end_ns;
        while let Some((at_ns, act)) = self.acts.get(self.next).copied() {
            let due = self.began_ns.saturating_add(at_ns);
            if due > now {
                if todo.is_empty() {
                    todo.push(Op::Sleep(due - now));
                    self.handed_over = vec![Use::Other];
                }
                break;
            }
            // A block is known once its allocation is done.
            let is_of_this_batch =
                |id: u32| self.handed_over.iter().any(|of| matches!(of, Use::Ends(Act::Take(of, ..)) if *of == id));
            if todo.len() >= AT_ONCE || matches!(act, Act::Give(id, ..) if is_of_this_batch(id)) {
                break;
            }
            self.behind.record(now - due);
            self.next += 1;
            self.push(act, todo);
        }
    }

    fn progress(&self) -> f64 {
        self.next as f64 / self.acts.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its operations with their times; an allocation takes 10 µs, all else no time.
    fn replayed(lines: &str, fails: bool) -> (Vec<(u64, Op)>, Replayer) {
        let flags = ["GFP_KERNEL", "GFP_HIGHUSER_MOVABLE", "GFP_TRANSHUGE_LIGHT"];
        let sets = flags.map(|flags| Gfp::parse(flags).expect("flags"));
        let lines: Vec<Allocation> = lines.lines().map(|line| line.parse().expect("a line")).collect();
        let mut program = Replayer::new(&lines, &sets);
        let (mut todo, mut done, mut ops, mut now) = (Batch::new(), vec![Outcome::at_start(0)], Vec::new(), 0);
        loop {
            program.next(&done, &mut todo);
            done.clear();
            while let Some(op) = todo.pop() {
                let start_ns = now;
                let value = match &op {
                    Op::Mmap { pages } => Value::Region(Region { mapping: *pages, first: 0, pages: *pages }),
                    Op::AllocPages { .. } => Value::Block((!fails).then(|| Frame::new(now))),
                    Op::Mincore(_) => Value::Pages(u64::from(!fails)),
                    _ => Value::Unit,
                };
                now += match &op {
                    Op::Sleep(ns) => *ns,
                    Op::AllocPages { .. } => 10_000,
                    _ => 0,
                };
                ops.push((start_ns / 1000, op));
                done.push(Outcome { value, start_ns, end_ns: now });
            }
            if done.is_empty() {
                return (ops, program);
            }
        }
    }

    #[test]
    fn memory_of_the_process_is_touched_and_unmapped_when_it_was() {
        let (ops, program) = replayed("5 0 1 10\n7 3 1 -\n9 9 2 4\n20 0 1 1\n", false);
        let small = |first, pages| Region { mapping: 17, first, pages };
        let huge = Region { mapping: 513, first: 0, pages: 512 };
        let expected = [
            (5, Op::Touch(small(0, 1))),
            (7, Op::Touch(small(8, 8))),
            (9, Op::Touch(Region { pages: 1, ..huge })),
            (9, Op::Mincore(Region { first: 1, pages: 1, ..huge })),
            (9, Op::Touch(huge)),
            (13, Op::Munmap(huge)),
            (15, Op::Munmap(small(0, 1))),
            (20, Op::Touch(small(0, 1))),
            (21, Op::Munmap(small(0, 1))),
        ];
        let done: Vec<(u64, Op)> = ops.iter().filter(|(_, op)| !matches!(op, Op::Sleep(_))).cloned().collect();
        let mapped = [Op::Mmap { pages: 17 }, Op::Mmap { pages: 513 }, Op::AdviseHuge(Region { pages: 513, ..huge })];
        assert_eq!(done[..3].iter().map(|(_, op)| op.clone()).collect::<Vec<_>>(), mapped);
        assert_eq!(done[3..], expected);
        assert_eq!((program.replayed, program.touches.histogram.len(), program.progress()), (4, 4, 1.0));
    }

    #[test]
    fn a_huge_page_that_comes_as_small_ones_is_counted_and_not_replayed() {
        let (_, program) = replayed("5 9 2 10\n", true);
        assert_eq!((program.replayed, program.came_small, program.touches.histogram.len()), (0, 1, 1));
    }

    #[test]
    fn a_huge_page_that_was_split_goes_in_parts_and_its_place_is_taken_again_when_all_are_gone() {
        let (ops, _) = replayed("0 9 2 1:5,511:9\n7 9 2 -\n20 9 2 -\n", false);
        let part = |first, pages| Region { mapping: 1025, first, pages };
        let of = |keep: fn(&Op) -> bool| ops.iter().filter(|(_, op)| keep(op)).cloned().collect::<Vec<_>>();
        let unmapped = of(|op| matches!(op, Op::Munmap(_)));
        assert_eq!(unmapped, [(5, Op::Munmap(part(0, 1))), (9, Op::Munmap(part(1, 511)))]);
        let touched = of(|op| matches!(op, Op::Touch(region) if region.pages == 512));
        assert_eq!(touched, [(0, 0), (7, 512), (20, 0)].map(|(at, first)| (at, Op::Touch(part(first, 512)))));
    }

    #[test]
    fn a_block_that_is_freed_in_parts_is_split_once() {
        let (ops, program) = replayed("0 2 0 1:20,2:-,1:30\n", false);
        let freed = |first| Op::FreePages { first: Frame::new(first), pages: 1 };
        let split = Op::SplitPages { block: Frame::new(0), order: Order::new(2) };
        let done: Vec<(u64, Op)> = ops[2..].iter().filter(|(_, op)| !matches!(op, Op::Sleep(_))).cloned().collect();
        assert_eq!(done, [(20, split), (20, freed(0)), (30, freed(3))]);
        assert_eq!(program.blocks.len(), 1, "the rest stays");
    }

    #[test]
    fn kernel_memory_is_a_drivers_and_is_freed_as_the_block_that_it_was() {
        let (ops, program) = replayed("0 2 0 3\n", false);
        let block = Frame::new(0);
        assert_eq!(
            ops[1..],
            [
                (0, Op::AllocPages { gfp: Gfp::KERNEL, order: Order::new(2) }),
                (10, Op::FreeBlock { block, order: Order::new(2) }),
            ]
        );
        // The free was due at 3 µs, and came at 10.
        assert_eq!((program.kernel.longest_ns, program.behind.longest_ns), (Some(10_000), Some(7_000)));
    }

    #[test]
    fn an_allocation_that_fails_is_counted_and_not_freed() {
        let (ops, program) = replayed("0 2 0 30\n50 0 1 -\n", true);
        assert_eq!((program.failed, program.replayed), (1, 1));
        assert!(!ops.iter().any(|(_, op)| matches!(op, Op::FreeBlock { .. })));
    }
}
