//! Batches: operations handed over together give the same result as one by one.

use crate::support::*;
use kontig_mm::{Listen, Vmstat, Work};
use kontig_program::{Batch, Frame, Gfp, Op, Outcome, Placement, Program, Region, Value};
use kontig_sim::{CpuTime, Machine, SimError, Stop, TaskId, Traced};
use proptest::prelude::*;
use proptest::test_runner::Config;

/// Pages of a process's mapping.
const PAGES: u32 = 3000;

/// A process's intent, before it knows where its mapping and its blocks are.
#[derive(Clone, Debug)]
enum Intent {
    AdviseHuge,
    Touch {
        first: u32,
        pages: u32,
    },
    Munmap {
        first: u32,
        pages: u32,
    },
    Alloc {
        order: u8,
        waits: bool,
    },
    /// Split the oldest block still held and free its pages; its number must be known first.
    Release,
    Compact,
    Sleep(u64),
}

fn intent() -> impl Strategy<Value = Intent> {
    let part = || (0..PAGES, 1..900u32).prop_map(|(first, pages)| (first, pages.min(PAGES - first)));
    prop_oneof![
        1 => Just(Intent::AdviseHuge),
        4 => part().prop_map(|(first, pages)| Intent::Touch { first, pages }),
        4 => part().prop_map(|(first, pages)| Intent::Munmap { first, pages }),
        4 => (0..=9u8, any::<bool>()).prop_map(|(order, waits)| Intent::Alloc { order, waits }),
        3 => Just(Intent::Release),
        1 => Just(Intent::Compact),
        2 => (0..2_000_000u64).prop_map(Intent::Sleep),
    ]
}

/// Carries out its intents in order, in batches of at most `most`.
#[derive(Clone)]
struct Intending {
    intents: Vec<Intent>,
    most: usize,
    next: usize,
    region: Option<Region>,
    /// Blocks held, oldest first, with their orders; `None` until allocated.
    blocks: Vec<(Option<Frame>, u8)>,
    /// The second half of an intent that takes two operations.
    pending: Option<Op>,
    log: Vec<Outcome>,
    batches: usize,
}

impl Intending {
    fn new(intents: &[Intent], most: usize) -> Box<Intending> {
        let intents = intents.to_vec();
        Box::new(Intending {
            intents,
            most,
            next: 0,
            region: None,
            blocks: vec![],
            pending: None,
            log: vec![],
            batches: 0,
        })
    }

    /// Adds an intent's operations; false if an outcome must come first.
    fn hand_over(&mut self, intent: &Intent, region: Region, todo: &mut Batch) -> bool {
        match *intent {
            Intent::AdviseHuge => todo.push(Op::AdviseHuge(region)),
            Intent::Touch { first, pages } => todo.push(Op::Touch(part(region, first, pages))),
            Intent::Munmap { first, pages } => todo.push(Op::Munmap(part(region, first, pages))),
            Intent::Alloc { order, waits } => {
                let gfp = if waits { Gfp::KERNEL | Gfp::NORETRY } else { Gfp::KERNEL.without(Gfp::RECLAIM) };
                self.blocks.push((None, order));
                todo.push(Op::AllocPages { gfp, order: kontig_program::Order::new(order) });
            }
            Intent::Release => match self.blocks.first() {
                None => todo.push(Op::FreeAboveHigh),
                Some((None, _)) => return false,
                Some((Some(block), order)) => {
                    todo.push(Op::SplitPages { block: *block, order: kontig_program::Order::new(*order) });
                    self.pending = Some(Op::FreePages { first: *block, pages: 1 << order });
                    self.blocks.remove(0);
                }
            },
            Intent::Compact => todo.push(Op::Sysctl { name: "vm.compact_memory".into(), value: "1".into() }),
            Intent::Sleep(ns) => todo.push(Op::Sleep(ns)),
        }
        true
    }
}

impl Program for Intending {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        if self.batches > 0 {
            self.log.extend_from_slice(done);
        }
        self.batches += 1;
        for outcome in done {
            match outcome.value {
                Value::Region(region) => self.region = Some(region),
                Value::Block(got) => {
                    let asked = self.blocks.iter().position(|(block, _)| block.is_none()).expect("one was asked for");
                    match got {
                        Some(_) => self.blocks[asked].0 = got,
                        None => drop(self.blocks.remove(asked)),
                    }
                }
                _ => {}
            }
        }
        let Some(region) = self.region else { return todo.push(Op::Mmap { pages: PAGES }) };
        while todo.len() < self.most && (self.pending.is_some() || self.next < self.intents.len()) {
            if let Some(op) = self.pending.take() {
                todo.push(op);
                continue;
            }
            let intent = self.intents[self.next].clone();
            if !self.hand_over(&intent, region, todo) {
                break;
            }
            self.next += 1;
        }
    }

    fn progress(&self) -> f64 {
        self.next as f64 / self.intents.len().max(1) as f64
    }
}

#[derive(PartialEq, Debug)]
struct Seen {
    ends: Vec<Result<Stop, SimError>>,
    outcomes: Vec<Vec<Outcome>>,
    times: Vec<CpuTime>,
    vmstat: Vmstat,
    work: Work,
    events: Vec<Traced>,
    now: u64,
}

/// Two processes side by side on a machine that is nearly full.
fn two_processes(most: usize, intents: &[Vec<Intent>; 2], share_cpu: bool) -> (Machine, Vec<TaskId>) {
    let mut m = machine(2, 16, linux("6.1"));
    m.memory_mut().trace().listen(Listen::COMPACTION.with(Listen::VMSCAN));
    let cpu_of = |i: usize| if share_cpu { 0 } else { i };
    let ids = (0..2).map(|i| m.spawn(Intending::new(&intents[i], most), Placement::Cpu(cpu_of(i)))).collect();
    (m, ids)
}

fn run_in_batches_of(most: usize, intents: &[Vec<Intent>; 2], share_cpu: bool) -> (Seen, usize) {
    let (m, ids) = two_processes(most, intents, share_cpu);
    run_to_the_end(m, &ids)
}

/// The observations, and the number of batches.
fn run_to_the_end(mut m: Machine, ids: &[TaskId]) -> (Seen, usize) {
    // A run may end for want of memory: two such processes and what they take of the kernel do not
    // always fit.
    let ends = ids.iter().map(|id| m.run(u64::MAX / 2, Some(*id))).collect::<Vec<_>>();
    let is_end =
        |end: &Result<Stop, SimError>| matches!(end, Ok(Stop::ProgramDone) | Err(SimError::OutOfMemory { .. }));
    assert!(ends.iter().all(is_end), "{ends:?}");
    m.memory().check().unwrap();
    fn of(m: &Machine, id: TaskId) -> &Intending {
        let program: &dyn std::any::Any = m.program(id).expect("a program");
        program.downcast_ref().expect("one that intends")
    }
    let seen = Seen {
        ends,
        outcomes: ids.iter().map(|id| of(&m, *id).log.clone()).collect(),
        times: ids.iter().map(|id| m.cpu_time(*id)).collect(),
        vmstat: m.memory().vmstat().clone(),
        work: *m.work(),
        events: m.take_events(u64::MAX),
        now: m.now(),
    };
    (seen, ids.iter().map(|id| of(&m, *id).batches).sum())
}

proptest! {
    #![proptest_config(Config { cases: 100, failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_batch_has_the_order_and_the_results_of_its_operations_one_by_one(
        a in prop::collection::vec(intent(), 1..60),
        b in prop::collection::vec(intent(), 1..60),
        most in 2..40usize,
        share_cpu in any::<bool>(),
    ) {
        let intents = [a, b];
        let (one_by_one, calls) = run_in_batches_of(1, &intents, share_cpu);
        let (in_batches, fewer) = run_in_batches_of(most, &intents, share_cpu);
        prop_assert_eq!(&one_by_one.ends, &in_batches.ends);
        // A program that is killed is told nothing of the batch it was in.
        prop_assume!(one_by_one.ends.iter().all(Result::is_ok));
        prop_assert_eq!(&one_by_one, &in_batches);
        prop_assert!(fewer <= calls);
        prop_assert!(one_by_one.outcomes.iter().all(|of| of.windows(2).all(|w| w[0].end_ns <= w[1].start_ns)));
    }

    #[test]
    fn a_copy_of_a_machine_goes_on_as_the_machine_does_and_neither_changes_the_other(
        a in prop::collection::vec(intent(), 20..60),
        b in prop::collection::vec(intent(), 20..60),
        most in 1..10usize,
        copied_at in prop::collection::vec(0..1000u64, 1..8),
    ) {
        let intents = [a, b];
        let (m, ids) = two_processes(most, &intents, false);
        let first = run_to_the_end(m, &ids).0;
        prop_assume!(first.ends.iter().all(Result::is_ok));
        let end = first.now;
        // The same machine is observed as often, and is copied at any point: in a fault, in a
        // compaction.
        let (mut m, ids) = two_processes(most, &intents, false);
        let mut times: Vec<u64> = copied_at.iter().map(|part| end / 1000 * part).collect();
        times.sort_unstable();
        let mut copies = Vec::new();
        for time in times {
            m.run(time, None).expect("it can go on");
            copies.push(m.clone());
        }
        let (whole, _) = run_to_the_end(m, &ids);
        for copy in copies {
            prop_assert_eq!(&run_to_the_end(copy, &ids).0, &whole);
        }
    }
}

#[test]
fn a_program_is_asked_once_for_each_batch_and_told_the_outcome_of_all_of_it() {
    let intents = [vec![Intent::Sleep(5); 40], vec![]];
    let (one_by_one, calls) = run_in_batches_of(1, &intents, false);
    let (in_batches, fewer) = run_in_batches_of(10, &intents, false);
    assert_eq!(one_by_one, in_batches);
    assert_eq!(in_batches.ends, [Ok(Stop::ProgramDone), Ok(Stop::ProgramDone)]);
    assert_eq!(in_batches.outcomes[0].len(), 41);
    // The mapping and the end are a call each, for both processes; then 40 operations, or 4
    // batches.
    assert_eq!((calls, fewer), (44, 8));
}
