//! The meaning of each row to a user of Kontig, in plain words.

/// Every row that `kontig bench` can measure, in the order of the table, with its meaning.
pub const MEANINGS: &[(&str, &str)] = &[
    ("9", "Host memory the engine keeps for each 4 KiB page of a simulated machine. Linux itself keeps 64 bytes."),
    ("9a", "How much of that the host must provide before anything runs: a large, mostly idle machine is cheap."),
    ("9b", "How much of it is resident once every page is in use: multiply by the pages of your machine."),
    ("9c", "The upper bound of the first on a machine that reclaims, which must know the order of use of its pages."),
    (
        "9d",
        "Host memory per page of a simulated machine with files and swap, everything included, when processes own \
         the pages: times its pages, what a run needs.",
    ),
    ("9e", "The same when the pages belong to a file: includes the trees of the page cache."),
    ("1", "The cheapest request: a page allocated and freed again, as a driver does all the time."),
    ("2", "A page allocated among many, and freed in the opposite order: a program that starts and ends."),
    ("2a", "The first half of that: filling memory page by page."),
    ("2b", "The second half: freeing it in order."),
    ("3", "A page freed out of order and merged with its buddies: how a long-running machine frees memory."),
    ("3a", "The same on a larger machine: the difference is what your CPU's caches no longer hold."),
    ("3b", "The same on a very large machine."),
    ("3c", "3a with all pages known ahead, as when a process exits: what each touches is fetched before its turn."),
    ("4", "A huge page (2 MiB) allocated and freed again."),
    ("5", "A huge page allocated while all memory is filled with them: what a virtual machine does when it starts."),
    ("5a", "Whether the last huge page takes as long as the first: near 1 means that a full machine is not slower."),
    ("6", "Finding the only free page: the search does not scan memory."),
    ("7", "A request that fails, including everything the kernel tries first."),
    ("8", "A fragmented machine at work, one page freed and one allocated: this stays within one CPU's list."),
    ("8a", "The same on a larger machine."),
    ("8b", "64 freed and 64 allocated by turns: the CPU's list overflows now and then."),
    ("8c", "1,024 by turns: most go through the free lists."),
    ("8d", "65,536 by turns: all go through the free lists, and few are still in a cache."),
    ("10", "The time to make a simulated machine, before its first operation."),
    ("11", "An invariant, tested: after a long random history, all memory can be allocated as huge pages again."),
    ("12", "An invariant, tested: no request failed while there was a free block for it."),
    (
        "13",
        "A random page touched or unmapped in a simulated process: how long a what-if takes. A million of them \
         fragment more than a gigabyte.",
    ),
    ("13a", "The same for 16 MiB in a row: programs that use memory in large pieces run this fast."),
    ("13b", "Random pages again, on a very large machine: the slowest an experiment gets."),
    ("13c", "Random pages with LRU lists: a page fault on a machine with files and swap."),
    ("U", "A page of a large region touched for the first time: how fast a simulated process fills memory."),
    ("Ua", "A page of a large region unmapped as a whole: how fast a process exits."),
    (
        "Ub",
        "A page unmapped where three quarters of every 2 MiB are unmapped at random: how fast experiments \
         fragment memory.",
    ),
    ("T1", "A task that runs for a moment and sleeps: what any task costs."),
    ("T80", "The same with 80 tasks: what parallel tasks add to each turn."),
    ("T1000", "The same with 1,000 tasks."),
    ("Ts", "A fault beside 1,000 sleeping tasks, and the same alone: sleeping tasks should cost nothing."),
    ("W", "A context switch at the end of a time slice: what many tasks on few CPUs cost."),
    ("Wa", "The same when one task sleeps and another wakes and is queued among the runnable ones."),
    (
        "F",
        "A page filled and three of four freed again, as experiments begin. Times the pages of your machine: how \
         long you wait before anything is measured.",
    ),
    ("S", "A page scanned by compaction that cannot be moved."),
    ("M", "A page moved by compaction, including the search for it and for its target, without copying its contents."),
    ("L", "A page of a file allocated, put on the LRU and, when a quarter of memory is cached, freed again."),
    (
        "La",
        "A page read when memory is full, with direct reclaim: the oldest pages are evicted for it, 32 at a time, \
         and leave shadows, as this page had.",
    ),
    ("Lb", "A page of a file used. Every page is used twice, in random order: the second use activates it."),
    (
        "Lc",
        "An evicted page read back, at random: as La, but pages evicted recently are activated at once. The uses \
         of cached pages that cause this are not timed.",
    ),
    (
        "Ld",
        "A page rotated to the end of the list that reclaim takes next, at random: the cost of a page written out \
         by reclaim.",
    ),
    (
        "Le",
        "A page reclaimed by kswapd in clusters of 32, while others allocate: a step of reclaim takes 32 times \
         that.",
    ),
    ("C", "A page of a file that a simulated process reads from the page cache."),
    ("Ca", "A page read from a simulated disk by readahead, while an old one is reclaimed for it."),
    ("Cb", "A page written to a file: dirtied, written back by the flusher, and reclaimed."),
    ("P", "A page that a small process touches between fork and exit: what a build of many commands does."),
    ("Pa", "The same when the page is the parent's and is copied."),
    ("Pb", "The same on a machine with LRU lists."),
    ("Pc", "A process that does nothing: its fork, its exit, and its parent's wait for it."),
];

/// The meaning of this row.
pub fn of(number: &str) -> Option<&'static str> {
    MEANINGS.iter().find(|(n, _)| *n == number).map(|(_, meaning)| *meaning)
}

/// The rows measured together with this one, by their common digits or letter: `8` for `8d`, `T`
/// for `T80`.
pub fn group(number: &str) -> &str {
    let digits = number.len() - number.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    &number[..digits.max(1).min(number.len())]
}

/// The rows of each group, in the order of the table.
pub fn groups() -> Vec<Vec<&'static str>> {
    let mut groups: Vec<Vec<&str>> = Vec::new();
    for (number, _) in MEANINGS {
        match groups.iter_mut().find(|rows| group(rows[0]) == group(number)) {
            Some(rows) => rows.push(number),
            None => groups.push(vec![number]),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::streams::{self, Stream, Visit};

    #[test]
    fn every_row_of_the_streams_means_something() {
        struct All(usize);
        impl Visit for All {
            fn stream(&mut self, numbers: &[&str], _text: &str, stream: &impl Stream) {
                let figures: Vec<_> = stream.figures().iter().map(|f| f.number).collect();
                assert_eq!(figures, numbers);
                for number in numbers {
                    assert!(of(number).is_some(), "row {number}");
                    self.0 += 1;
                }
            }
        }
        let mut all = All(0);
        streams::each(&Options::default(), &mut all);
        assert!(all.0 > 0);
    }

    #[test]
    fn groups_are_named_by_digits_or_a_letter() {
        assert_eq!(["9", "9d", "13c", "T1000", "Ub"].map(group), ["9", "9", "13", "T", "U"]);
        let groups = groups();
        let of_turns: Vec<_> = groups.iter().filter(|rows| group(rows[0]) == "T").collect();
        assert_eq!(of_turns, [&["T1", "T80", "T1000", "Ts"]]);
    }

    #[test]
    fn no_row_is_there_twice() {
        for (i, (number, _)) in MEANINGS.iter().enumerate() {
            assert_eq!(MEANINGS.iter().position(|(n, _)| n == number), Some(i));
        }
    }
}
