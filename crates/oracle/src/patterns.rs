//! The patterns that real kernels are recorded with. On a machine of 512 MiB: files twice as large
//! as memory, a process a fifth larger, children of a process that fills half of it, and all of
//! this together. On 2 GiB: bursts of huge pages beside many short-lived processes that read and
//! write files.

use kontig_program::SplitMix64;
use kontig_program::pattern::{File, Random, Step};

/// Memory of the machine that most patterns are for, in pages: 512 MiB.
const MEMORY_PAGES: u32 = 512 << 8;
/// Pages of its swap: 768 MiB.
pub const SWAP_PAGES: u32 = 768 << 8;

/// A pattern that kernels are recorded with.
pub struct Named {
    pub name: &'static str,
    pub what: &'static str,
    /// Pages of the machine's memory, as its maker counts them.
    pub memory_pages: u32,
    steps: fn(&mut SplitMix64) -> Vec<Step>,
}

impl Named {
    /// Its steps with this seed.
    pub fn steps(&self, seed: u64) -> Vec<Step> {
        (self.steps)(&mut SplitMix64::new(seed))
    }
}

/// All patterns, in the order of the page.
pub const NAMED: &[Named] = &[
    Named {
        name: "file",
        what: "a file twice the memory is read in order, twice, at random, and beside a part that is read again and \
               again",
        memory_pages: MEMORY_PAGES,
        steps: file,
    },
    Named {
        name: "anon",
        what: "a process writes to memory 1.2 times the machine's in order, twice, and at random",
        memory_pages: MEMORY_PAGES,
        steps: anon,
    },
    Named {
        name: "fork",
        what: "a process of 192 MiB has children that write to parts of it, and others that become another program",
        memory_pages: MEMORY_PAGES,
        steps: fork,
    },
    Named {
        name: "mixed",
        what: "a process reads a file, writes another, writes to memory of its own and to huge pages, and has children",
        memory_pages: MEMORY_PAGES,
        steps: mixed,
    },
    Named {
        name: "costs",
        what: "what kinds of work take where memory is plenty: faults, unmapping, reads and writes of files, forks",
        memory_pages: MEMORY_PAGES,
        steps: costs,
    },
    Named {
        name: "bursts",
        what: "a process writes to huge pages and gives them back, round after round, while its children read, fork \
               and write files",
        memory_pages: BURSTS_MEMORY_PAGES,
        steps: bursts,
    },
];

/// The generator's next number as the seed of a step.
fn at_random(random: &mut SplitMix64, first: u32, pages: u32, count: u32) -> Random {
    // Numbers are told apart well enough by 32 bits, and every reader of text takes them.
    Random { first, pages, count, seed: random.next_u64() >> 32 }
}

const FILE_PAGES: u32 = 2 * MEMORY_PAGES;
const FILE_RANDOM_READS: u32 = MEMORY_PAGES / 2;
/// Pages read in each round, pages read between two rounds, and the number of rounds.
const HOT_PAGES: u32 = MEMORY_PAGES / 8;
const COLD_PAGES: u32 = MEMORY_PAGES / 4;
const HOT_ROUNDS: u32 = 8;

fn file(random: &mut SplitMix64) -> Vec<Step> {
    let mut steps = vec![
        Step::File(0, FILE_PAGES),
        Step::Phase("start"),
        Step::Read(0, 0, FILE_PAGES),
        Step::Phase("in-order"),
        Step::Read(0, 0, FILE_PAGES),
        Step::Phase("again"),
        Step::ReadRandom(0, at_random(random, 0, FILE_PAGES, FILE_RANDOM_READS)),
        Step::Phase("at-random"),
    ];
    let hot = random.below(FILE_PAGES - HOT_PAGES);
    for _ in 0..HOT_ROUNDS {
        steps.push(Step::Read(0, hot, HOT_PAGES));
        steps.push(Step::Read(0, random.below(FILE_PAGES - COLD_PAGES), COLD_PAGES));
    }
    steps.push(Step::Phase("hot-part"));
    steps
}

const ANON_PAGES: u32 = MEMORY_PAGES / 5 * 6;
const ANON_RANDOM: u32 = MEMORY_PAGES / 4;

fn anon(random: &mut SplitMix64) -> Vec<Step> {
    vec![
        Step::Phase("start"),
        Step::Map(0, ANON_PAGES),
        Step::Touch(0, 0, ANON_PAGES),
        Step::Phase("in-order"),
        Step::Touch(0, 0, ANON_PAGES),
        Step::Phase("again"),
        Step::TouchRandom(0, at_random(random, 0, ANON_PAGES, ANON_RANDOM)),
        Step::Phase("at-random"),
        Step::Unmap(0),
        Step::Phase("unmapped"),
    ]
}

const PARENT_PAGES: u32 = MEMORY_PAGES / 8 * 3;
/// Children that share the parent's memory: the pages of it they write to, pages of their own,
/// their lifetime, their number in all and at once.
const CHILD_WRITES: u32 = 4096;
const CHILD_PAGES: u32 = 8192;
/// Far longer than any of them works: as many live at once however fast the machine is.
const CHILD_SLEEPS_US: u32 = 2_000_000;
const CHILDREN: usize = 18;
const CHILDREN_AT_ONCE: usize = 6;
/// Children that become another program.
const PROGRAM_PAGES: u32 = 4096;
const PROGRAMS: usize = 24;
const PROGRAMS_AT_ONCE: usize = 4;

fn fork(random: &mut SplitMix64) -> Vec<Step> {
    let mut steps =
        vec![Step::Phase("start"), Step::Map(0, PARENT_PAGES), Step::Touch(0, 0, PARENT_PAGES), Step::Phase("parent")];
    for child in 0..CHILDREN {
        if child >= CHILDREN_AT_ONCE {
            steps.push(Step::Wait);
        }
        steps.extend([
            Step::Fork,
            Step::TouchRandom(0, at_random(random, 0, PARENT_PAGES, CHILD_WRITES)),
            Step::Map(1, CHILD_PAGES),
            Step::Touch(1, 0, CHILD_PAGES),
            Step::Sleep(CHILD_SLEEPS_US),
            Step::End,
            Step::TouchRandom(0, at_random(random, 0, PARENT_PAGES, CHILD_WRITES)),
        ]);
    }
    steps.extend([Step::WaitAll, Step::Phase("children")]);
    for program in 0..PROGRAMS {
        if program >= PROGRAMS_AT_ONCE {
            steps.push(Step::Wait);
        }
        steps.extend([
            Step::Fork,
            Step::Exec,
            Step::Map(0, PROGRAM_PAGES),
            Step::Touch(0, 0, PROGRAM_PAGES),
            Step::Sleep(random.below(CHILD_SLEEPS_US)),
            Step::End,
        ]);
    }
    steps.extend([Step::WaitAll, Step::Phase("programs")]);
    steps
}

const MIXED_FILE_PAGES: u32 = MEMORY_PAGES;
const HEAP_PAGES: u32 = MEMORY_PAGES / 2;
const HUGE_PAGES: u32 = MEMORY_PAGES / 8;
const ROUNDS: u32 = 8;
/// Pages read, written to and written in a round.
const ROUND_READS: u32 = MEMORY_PAGES / 8;
const ROUND_TOUCHES: u32 = 8192;
const ROUND_WRITES: u32 = 4096;
const ROUND_CHILD_SLEEPS_US: u32 = 200_000;

fn mixed(random: &mut SplitMix64) -> Vec<Step> {
    let mut steps = vec![
        Step::File(0, MIXED_FILE_PAGES),
        Step::Phase("start"),
        Step::Map(0, HEAP_PAGES),
        Step::Touch(0, 0, HEAP_PAGES),
        Step::Map(1, HUGE_PAGES),
        Step::AdviseHuge(1),
        Step::Phase("heap"),
    ];
    for round in 0..ROUNDS {
        steps.extend([
            Step::Read(0, random.below(MIXED_FILE_PAGES - ROUND_READS), ROUND_READS),
            Step::TouchRandom(0, at_random(random, 0, HEAP_PAGES, ROUND_TOUCHES)),
            Step::Write(1, round * ROUND_WRITES, ROUND_WRITES),
            Step::Touch(1, round * (HUGE_PAGES / ROUNDS), HUGE_PAGES / ROUNDS),
            Step::Fork,
            Step::TouchRandom(0, at_random(random, 0, HEAP_PAGES, CHILD_WRITES / 2)),
            Step::Map(2, CHILD_PAGES / 4),
            Step::Touch(2, 0, CHILD_PAGES / 4),
            Step::Sleep(ROUND_CHILD_SLEEPS_US),
            Step::End,
        ]);
    }
    steps.extend([
        Step::Fsync(1),
        Step::WaitAll,
        Step::Phase("rounds"),
        Step::Unmap(1),
        Step::Unmap(0),
        Step::Phase("unmapped"),
    ]);
    steps
}

/// Pages of memory and of files for each kind of work: together far less than the machine has.
const COSTS_PAGES: u32 = MEMORY_PAGES / 8;
const COSTS_FILE_PAGES: u32 = MEMORY_PAGES / 16;
/// Children without memory of their own, and children of a parent with a heap.
const COSTS_FORKS: usize = 64;
const COSTS_FORKS_OF_HEAP: usize = 16;

fn costs(random: &mut SplitMix64) -> Vec<Step> {
    let (pages, file) = (COSTS_PAGES, COSTS_FILE_PAGES);
    let forks = |n: usize| (0..n).flat_map(|_| [Step::Fork, Step::End, Step::Wait]);
    let mut steps = vec![
        Step::File(0, file),
        Step::Phase("start"),
        Step::Map(0, pages),
        Step::Touch(0, 0, pages),
        Step::Phase("faults"),
        Step::Touch(0, 0, pages),
        Step::Phase("touches"),
        Step::Unmap(0),
        Step::Phase("unmap"),
        Step::Map(0, pages),
        Step::Load(0, 0, pages),
        Step::Phase("zero-faults"),
        Step::Unmap(0),
        Step::Map(0, pages),
        Step::AdviseHuge(0),
        Step::Phase("huge-mapped"),
        Step::Touch(0, 0, pages),
        Step::Phase("huge-faults"),
        Step::Unmap(0),
        Step::Phase("huge-unmap"),
        Step::Read(0, 0, file),
        Step::Phase("read-in"),
        Step::Read(0, 0, file),
        Step::Phase("read"),
        Step::ReadRandom(0, at_random(random, 0, file, file)),
        Step::Phase("read-random"),
        Step::Write(1, 0, file),
        Step::Phase("write"),
        Step::Write(1, 0, file),
        Step::Phase("rewrite"),
        Step::Fsync(1),
        Step::Phase("fsync"),
    ];
    steps.extend(forks(COSTS_FORKS));
    steps.extend([Step::Phase("forks"), Step::Map(0, pages), Step::Touch(0, 0, pages), Step::Phase("heap")]);
    steps.extend(forks(COSTS_FORKS_OF_HEAP));
    steps.extend([
        Step::Phase("forks-of-heap"),
        Step::Touch(0, 0, pages),
        Step::Phase("reused"),
        Step::Fork,
        Step::Touch(0, 0, pages),
        Step::End,
        Step::Wait,
        Step::Phase("copied"),
    ]);
    steps
}

/// 2 GiB, of which a heap in constant use has five eighths: enough that 7.2 with `vm.defrag_mode` 0
/// no longer has a huge page for every fault.
const BURSTS_MEMORY_PAGES: u32 = 2048 << 8;
const BURSTS_HEAP_PAGES: u32 = BURSTS_MEMORY_PAGES / 8 * 5;
const BURSTS_ROUNDS: u32 = 24;
/// 128 huge pages in each round.
const BURST_PAGES: u32 = 128 << 9;
/// Pages of the file that is read, of one read of the process, and of one read of a child.
const SOURCE_PAGES: u32 = BURSTS_MEMORY_PAGES / 8 * 3;
const SOURCE_READ: u32 = 16_384;
const CHILD_SOURCE_READ: u32 = 4096;
/// Files that are written one after the other, over and over.
const OBJECTS: u32 = 4;
const OBJECT_PAGES: u32 = 8192;
/// Pairs of children in a round: one works on in the heap, the other becomes another program. Those
/// of two rounds live at once.
const PAIRS: u32 = 2;
const BURSTS_CHILD_PAGES: u32 = 8192;
const BURSTS_CHILD_SLEEPS_US: u32 = 1_000_000;

fn bursts(random: &mut SplitMix64) -> Vec<Step> {
    let mut steps = vec![
        Step::File(0, SOURCE_PAGES),
        Step::Phase("start"),
        Step::Map(0, BURSTS_HEAP_PAGES),
        Step::Touch(0, 0, BURSTS_HEAP_PAGES),
        Step::Phase("heap"),
    ];
    for round in 0..BURSTS_ROUNDS {
        for _ in 0..PAIRS {
            if round >= 2 {
                steps.extend([Step::Wait, Step::Wait]);
            }
            let work = |random: &mut SplitMix64| {
                [
                    Step::Map(1, BURSTS_CHILD_PAGES),
                    Step::Touch(1, 0, BURSTS_CHILD_PAGES),
                    Step::Read(0, random.below(SOURCE_PAGES - CHILD_SOURCE_READ), CHILD_SOURCE_READ),
                    Step::Sleep(random.below(BURSTS_CHILD_SLEEPS_US)),
                    Step::End,
                ]
            };
            steps.extend([Step::Fork, Step::TouchRandom(0, at_random(random, 0, BURSTS_HEAP_PAGES, CHILD_WRITES / 2))]);
            steps.extend(work(random));
            steps.extend([Step::Fork, Step::Exec]);
            steps.extend(work(random));
        }
        steps.extend([
            Step::Read(0, random.below(SOURCE_PAGES - SOURCE_READ), SOURCE_READ),
            Step::TouchRandom(0, at_random(random, 0, BURSTS_HEAP_PAGES, CHILD_WRITES)),
            Step::Write(1 + (round % OBJECTS) as File, 0, OBJECT_PAGES),
            Step::Map(2, BURST_PAGES),
            Step::AdviseHuge(2),
            Step::Touch(2, 0, BURST_PAGES),
            Step::Unmap(2),
        ]);
    }
    steps.extend([Step::WaitAll, Step::Phase("bursts")]);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_program::pattern::phases;

    #[test]
    fn a_pattern_is_the_same_for_the_same_seed_and_differs_for_another() {
        for pattern in NAMED {
            assert_eq!(pattern.steps(7), pattern.steps(7));
            assert_ne!(pattern.steps(7), pattern.steps(8), "{}", pattern.name);
        }
    }

    #[test]
    fn counting_begins_before_anything_is_done_and_phases_have_names_of_their_own() {
        for pattern in NAMED {
            let steps = pattern.steps(1);
            let done = steps.iter().find(|step| !matches!(step, Step::File(..)));
            assert_eq!(done, Some(&Step::Phase("start")), "{}", pattern.name);
            assert!(matches!(steps.last(), Some(Step::Phase(_))), "{}", pattern.name);
            let mut names: Vec<_> = phases(&steps).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), phases(&steps).count(), "{}", pattern.name);
        }
    }

    #[test]
    fn every_child_ends_and_every_page_is_in_its_area() {
        for pattern in NAMED {
            let (mut depth, mut areas) = (0, [0; 16]);
            for step in pattern.steps(3) {
                match step {
                    Step::Fork => depth += 1,
                    Step::End => depth -= 1,
                    Step::Map(area, pages) => areas[usize::from(area)] = pages,
                    Step::Touch(area, first, pages) => assert!(first + pages <= areas[usize::from(area)]),
                    Step::TouchRandom(area, r) => assert!(r.first + r.pages <= areas[usize::from(area)]),
                    _ => {}
                }
                assert!(depth >= 0);
            }
            assert_eq!(depth, 0, "{}", pattern.name);
        }
    }

    #[test]
    fn what_is_in_swap_has_room_there() {
        const { assert!(ANON_PAGES < SWAP_PAGES) };
    }
}
