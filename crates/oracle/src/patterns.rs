//! The patterns that real kernels are recorded with. On a machine of 512 MiB: files twice as large
//! as memory, a process a fifth larger, children of a process that fills half of it, all of this
//! together, and two for the times that kinds of work take. On 2 GiB: bursts of huge pages beside
//! many short-lived processes that read and write files.

use kontig_program::act::{Act, Area, CALL, Pages};
use kontig_program::{FileName, SplitMix64};

/// Memory of the machine that most patterns are for, in pages: 512 MiB.
const MEMORY_PAGES: u32 = 512 << 8;
/// Pages of its swap: 768 MiB.
pub const SWAP_PAGES: u32 = 768 << 8;

/// A pattern that kernels are recorded with.
pub struct Named {
    pub name: &'static str,
    pub what: &'static str,
    /// Pages of memory installed, those that the kernel keeps included.
    pub memory_pages: u32,
    /// Whether it is there for its phases' times, to which costs of the laboratory are fitted.
    pub gives_costs: bool,
    acts: fn(&mut SplitMix64) -> Vec<Act>,
}

impl Named {
    /// Its acts with this seed.
    pub fn acts(&self, seed: u64) -> Vec<Act> {
        (self.acts)(&mut SplitMix64::new(seed))
    }
}

/// All patterns, in the order of the page.
pub const NAMED: &[Named] = &[
    Named {
        name: "file",
        what: "a file twice the memory is read in order, twice, at random, and beside a part that is read again and \
               again",
        memory_pages: MEMORY_PAGES,
        gives_costs: false,
        acts: file,
    },
    Named {
        name: "anon",
        what: "a process writes to memory 1.2 times the machine's in order, twice, and at random",
        memory_pages: MEMORY_PAGES,
        gives_costs: false,
        acts: anon,
    },
    Named {
        name: "fork",
        what: "a process of 192 MiB has children that write to parts of it, and others that become another program",
        memory_pages: MEMORY_PAGES,
        gives_costs: false,
        acts: fork,
    },
    Named {
        name: "mixed",
        what: "a process reads a file, writes another, writes to memory of its own and to huge pages, and has children",
        memory_pages: MEMORY_PAGES,
        gives_costs: false,
        acts: mixed,
    },
    Named {
        name: "costs",
        what: "what kinds of work take where memory is plenty: faults, unmapping, reads and writes of files, forks",
        memory_pages: MEMORY_PAGES,
        gives_costs: true,
        acts: costs,
    },
    Named {
        name: "swap-costs",
        what: "what swapping takes: kswapd makes room for pages that come slowly, pages come back in order and at \
               random, and kswapd makes room while children share all pages",
        memory_pages: MEMORY_PAGES,
        gives_costs: true,
        acts: swap_costs,
    },
    Named {
        name: "bursts",
        what: "a process writes to huge pages and gives them back, round after round, while its children read, fork \
               and write files",
        memory_pages: BURSTS_MEMORY_PAGES,
        gives_costs: false,
        acts: bursts,
    },
];

/// Pages of a range at random, with the generator's next number as the seed.
fn at_random(random: &mut SplitMix64, first: u32, pages: u32, count: u32) -> Pages {
    // Numbers are told apart well enough by 32 bits, and every reader of text takes them.
    Pages::at_random(first, pages, count, random.next_u64() >> 32)
}

/// Files lie on the machine's first disk.
const fn file_of(number: u64) -> FileName {
    FileName::new(0, number)
}

const fn touch(area: Area, first: u32, pages: u32) -> Act {
    Act::Touch(area, Pages::in_calls(first, pages, pages))
}

const fn read(file: u64, first: u32, pages: u32) -> Act {
    Act::Read(file_of(file), Pages::in_calls(first, pages, CALL))
}

const fn write(file: u64, first: u32, pages: u32) -> Act {
    Act::Write(file_of(file), Pages::in_calls(first, pages, CALL))
}

fn sleep_us(us: u32) -> Act {
    Act::Sleep { ns: u64::from(us) * 1000 }
}

const FILE_PAGES: u32 = 2 * MEMORY_PAGES;
const FILE_RANDOM_READS: u32 = MEMORY_PAGES / 2;
/// Pages read in each round, pages read between two rounds, and the number of rounds.
const HOT_PAGES: u32 = MEMORY_PAGES / 8;
const COLD_PAGES: u32 = MEMORY_PAGES / 4;
const HOT_ROUNDS: u32 = 8;

fn file(random: &mut SplitMix64) -> Vec<Act> {
    let mut acts = vec![
        Act::File(file_of(0), FILE_PAGES),
        Act::Phase("start"),
        read(0, 0, FILE_PAGES),
        Act::Phase("in-order"),
        read(0, 0, FILE_PAGES),
        Act::Phase("again"),
        Act::Read(file_of(0), at_random(random, 0, FILE_PAGES, FILE_RANDOM_READS)),
        Act::Phase("at-random"),
    ];
    let hot = random.below(FILE_PAGES - HOT_PAGES);
    for _ in 0..HOT_ROUNDS {
        acts.push(read(0, hot, HOT_PAGES));
        acts.push(read(0, random.below(FILE_PAGES - COLD_PAGES), COLD_PAGES));
    }
    acts.push(Act::Phase("hot-part"));
    acts
}

const ANON_PAGES: u32 = MEMORY_PAGES / 5 * 6;
const ANON_RANDOM: u32 = MEMORY_PAGES / 4;

fn anon(random: &mut SplitMix64) -> Vec<Act> {
    vec![
        Act::Phase("start"),
        Act::Map(0, ANON_PAGES),
        touch(0, 0, ANON_PAGES),
        Act::Phase("in-order"),
        touch(0, 0, ANON_PAGES),
        Act::Phase("again"),
        Act::Touch(0, at_random(random, 0, ANON_PAGES, ANON_RANDOM)),
        Act::Phase("at-random"),
        Act::Unmap(0),
        Act::Phase("unmapped"),
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

fn fork(random: &mut SplitMix64) -> Vec<Act> {
    let mut acts =
        vec![Act::Phase("start"), Act::Map(0, PARENT_PAGES), touch(0, 0, PARENT_PAGES), Act::Phase("parent")];
    for child in 0..CHILDREN {
        if child >= CHILDREN_AT_ONCE {
            acts.push(Act::Wait);
        }
        acts.extend([
            Act::Fork(
                [
                    Act::Touch(0, at_random(random, 0, PARENT_PAGES, CHILD_WRITES)),
                    Act::Map(1, CHILD_PAGES),
                    touch(1, 0, CHILD_PAGES),
                    sleep_us(CHILD_SLEEPS_US),
                ]
                .into(),
            ),
            Act::Touch(0, at_random(random, 0, PARENT_PAGES, CHILD_WRITES)),
        ]);
    }
    acts.extend([Act::WaitAll, Act::Phase("children")]);
    for program in 0..PROGRAMS {
        if program >= PROGRAMS_AT_ONCE {
            acts.push(Act::Wait);
        }
        let sleeps = sleep_us(random.below(CHILD_SLEEPS_US));
        let program = [Act::Map(0, PROGRAM_PAGES), touch(0, 0, PROGRAM_PAGES), sleeps];
        acts.push(Act::Fork([Act::Exec(program.into())].into()));
    }
    acts.extend([Act::WaitAll, Act::Phase("programs")]);
    acts
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

fn mixed(random: &mut SplitMix64) -> Vec<Act> {
    let mut acts = vec![
        Act::File(file_of(0), MIXED_FILE_PAGES),
        Act::Phase("start"),
        Act::Map(0, HEAP_PAGES),
        touch(0, 0, HEAP_PAGES),
        Act::Map(1, HUGE_PAGES),
        Act::AdviseHuge(1),
        Act::Phase("heap"),
    ];
    for round in 0..ROUNDS {
        acts.extend([
            read(0, random.below(MIXED_FILE_PAGES - ROUND_READS), ROUND_READS),
            Act::Touch(0, at_random(random, 0, HEAP_PAGES, ROUND_TOUCHES)),
            write(1, round * ROUND_WRITES, ROUND_WRITES),
            touch(1, round * (HUGE_PAGES / ROUNDS), HUGE_PAGES / ROUNDS),
            Act::Fork(
                [
                    Act::Touch(0, at_random(random, 0, HEAP_PAGES, CHILD_WRITES / 2)),
                    Act::Map(2, CHILD_PAGES / 4),
                    touch(2, 0, CHILD_PAGES / 4),
                    sleep_us(ROUND_CHILD_SLEEPS_US),
                ]
                .into(),
            ),
        ]);
    }
    acts.extend([
        Act::Fsync(file_of(1)),
        Act::WaitAll,
        Act::Phase("rounds"),
        Act::Unmap(1),
        Act::Unmap(0),
        Act::Phase("unmapped"),
    ]);
    acts
}

/// Pages of memory and of files for each kind of work: together far less than the machine has.
const COSTS_PAGES: u32 = MEMORY_PAGES / 8;
const COSTS_FILE_PAGES: u32 = MEMORY_PAGES / 16;
/// Children without memory of their own, and children of a parent with a heap.
const COSTS_FORKS: usize = 64;
const COSTS_FORKS_OF_HEAP: usize = 16;

fn costs(random: &mut SplitMix64) -> Vec<Act> {
    let (pages, file) = (COSTS_PAGES, COSTS_FILE_PAGES);
    let forks = |n: usize| (0..n).flat_map(|_| [Act::Fork([].into()), Act::Wait]);
    let mut acts = vec![
        Act::File(file_of(0), file),
        Act::Phase("start"),
        Act::Map(0, pages),
        touch(0, 0, pages),
        Act::Phase("faults"),
        touch(0, 0, pages),
        Act::Phase("touches"),
        Act::Unmap(0),
        Act::Phase("unmap"),
        Act::Map(0, pages),
        Act::Load(0, Pages::in_calls(0, pages, pages)),
        Act::Phase("zero-faults"),
        Act::Unmap(0),
        Act::Map(0, pages),
        Act::AdviseHuge(0),
        Act::Phase("huge-mapped"),
        touch(0, 0, pages),
        Act::Phase("huge-faults"),
        Act::Unmap(0),
        Act::Phase("huge-unmap"),
        read(0, 0, file),
        Act::Phase("read-in"),
        read(0, 0, file),
        Act::Phase("read"),
        Act::Read(file_of(0), at_random(random, 0, file, file)),
        Act::Phase("read-random"),
        write(1, 0, file),
        Act::Phase("write"),
        write(1, 0, file),
        Act::Phase("rewrite"),
        Act::Fsync(file_of(1)),
        Act::Phase("fsync"),
    ];
    acts.extend(forks(COSTS_FORKS));
    acts.extend([Act::Phase("forks"), Act::Map(0, pages), touch(0, 0, pages), Act::Phase("heap")]);
    acts.extend(forks(COSTS_FORKS_OF_HEAP));
    acts.extend([
        Act::Phase("forks-of-heap"),
        touch(0, 0, pages),
        Act::Phase("reused"),
        Act::Fork([touch(0, 0, pages)].into()),
        Act::Wait,
        Act::Phase("copied"),
    ]);
    acts
}

/// Most of memory, and what comes on top of it so slowly that kswapd alone makes room for it: fewer
/// pages at a time than lie between the low and the min mark.
const SWAP_COSTS_HEAP: u32 = MEMORY_PAGES / 4 * 3;
const SWAP_COSTS_PIECE: u32 = 64;
const SWAP_COSTS_PIECES: u32 = 640;
const SWAP_COSTS_SLEEPS_US: u32 = 4_000;
/// Pages that come back, in order and at random.
const SWAP_COSTS_BACK: u32 = MEMORY_PAGES / 8;
/// Children that share all pages, and live longer than what follows takes.
const SWAP_COSTS_CHILDREN: usize = 6;
const SWAP_COSTS_CHILD_SLEEPS_US: u32 = 20_000_000;

fn swap_costs(random: &mut SplitMix64) -> Vec<Act> {
    let mut acts = vec![
        Act::Phase("start"),
        Act::Map(0, SWAP_COSTS_HEAP),
        touch(0, 0, SWAP_COSTS_HEAP),
        Act::Phase("heap"),
        Act::Map(1, SWAP_COSTS_PIECES * SWAP_COSTS_PIECE),
    ];
    let slowly = |area| {
        (0..SWAP_COSTS_PIECES).flat_map(move |piece| {
            [touch(area, piece * SWAP_COSTS_PIECE, SWAP_COSTS_PIECE), sleep_us(SWAP_COSTS_SLEEPS_US)]
        })
    };
    acts.extend(slowly(1));
    acts.extend([
        Act::Phase("out"),
        touch(0, 0, SWAP_COSTS_BACK),
        Act::Phase("in"),
        Act::Touch(0, at_random(random, 0, SWAP_COSTS_HEAP, SWAP_COSTS_BACK)),
        Act::Phase("in-random"),
        Act::Map(2, SWAP_COSTS_PIECES * SWAP_COSTS_PIECE),
    ]);
    acts.extend((0..SWAP_COSTS_CHILDREN).map(|_| Act::Fork([sleep_us(SWAP_COSTS_CHILD_SLEEPS_US)].into())));
    acts.push(Act::Phase("children"));
    acts.extend(slowly(2));
    acts.extend([Act::Phase("shared-out"), Act::WaitAll, Act::Phase("end")]);
    acts
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

fn bursts(random: &mut SplitMix64) -> Vec<Act> {
    let mut acts = vec![
        Act::File(file_of(0), SOURCE_PAGES),
        Act::Phase("start"),
        Act::Map(0, BURSTS_HEAP_PAGES),
        touch(0, 0, BURSTS_HEAP_PAGES),
        Act::Phase("heap"),
    ];
    for round in 0..BURSTS_ROUNDS {
        for _ in 0..PAIRS {
            if round >= 2 {
                acts.extend([Act::Wait, Act::Wait]);
            }
            let shared = Act::Touch(0, at_random(random, 0, BURSTS_HEAP_PAGES, CHILD_WRITES / 2));
            let mut work = || {
                [
                    Act::Map(1, BURSTS_CHILD_PAGES),
                    touch(1, 0, BURSTS_CHILD_PAGES),
                    read(0, random.below(SOURCE_PAGES - CHILD_SOURCE_READ), CHILD_SOURCE_READ),
                    sleep_us(random.below(BURSTS_CHILD_SLEEPS_US)),
                ]
            };
            acts.push(Act::Fork([shared].into_iter().chain(work()).collect()));
            acts.push(Act::Fork([Act::Exec(work().into())].into()));
        }
        acts.extend([
            read(0, random.below(SOURCE_PAGES - SOURCE_READ), SOURCE_READ),
            Act::Touch(0, at_random(random, 0, BURSTS_HEAP_PAGES, CHILD_WRITES)),
            write(u64::from(1 + round % OBJECTS), 0, OBJECT_PAGES),
            Act::Map(2, BURST_PAGES),
            Act::AdviseHuge(2),
            touch(2, 0, BURST_PAGES),
            Act::Unmap(2),
        ]);
    }
    acts.extend([Act::WaitAll, Act::Phase("bursts")]);
    acts
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_program::act::{phases, text};

    #[test]
    fn a_pattern_is_the_same_for_the_same_seed_and_differs_for_another() {
        for pattern in NAMED {
            assert_eq!(pattern.acts(7), pattern.acts(7));
            assert_ne!(pattern.acts(7), pattern.acts(8), "{}", pattern.name);
        }
    }

    #[test]
    fn counting_begins_before_anything_is_done_and_phases_have_names_of_their_own() {
        for pattern in NAMED {
            let acts = pattern.acts(1);
            let done = acts.iter().find(|act| !matches!(act, Act::File(..)));
            assert_eq!(done, Some(&Act::Phase("start")), "{}", pattern.name);
            assert!(matches!(acts.last(), Some(Act::Phase(_))), "{}", pattern.name);
            let mut names: Vec<_> = phases(&acts).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), phases(&acts).count(), "{}", pattern.name);
        }
    }

    /// Checks the pages that acts use of areas, which have this many.
    fn in_their_areas(acts: &[Act], mut areas: [u32; 16]) {
        for act in acts {
            match act {
                Act::Fork(acts) => in_their_areas(acts, areas),
                Act::Exec(acts) => in_their_areas(acts, [0; 16]),
                Act::Map(area, pages) => areas[usize::from(*area)] = *pages,
                Act::Touch(area, pages) | Act::Load(area, pages) => {
                    let range = pages.random.map_or(pages.pages, |random| random.range);
                    assert!(pages.first + range <= areas[usize::from(*area)]);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn every_page_is_in_its_area() {
        NAMED.iter().for_each(|pattern| in_their_areas(&pattern.acts(3), [0; 16]));
    }

    #[test]
    fn the_program_of_a_guest_knows_every_word() {
        let player = include_str!("../../../oracle/guest/player.c");
        let steps = |pattern: &Named| text(&pattern.acts(1)).unwrap_or_else(|e| panic!("{}: {e}", pattern.name));
        for line in NAMED.iter().map(steps).collect::<String>().lines() {
            let word = line.split(' ').next().unwrap_or_default();
            assert!(player.contains(&format!("is(s, \"{word}\")")), "{line}");
        }
    }

    #[test]
    fn the_patterns_memory_fits_into_swap() {
        const { assert!(ANON_PAGES < SWAP_PAGES) };
    }
}
