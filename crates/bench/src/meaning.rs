//! What each row means for somebody who uses Kontig, in plain words.

/// Every row that needs nothing but the program, in the order of the table, with what it means.
pub const MEANINGS: &[(&str, &str)] = &[
    ("9", "Host memory the engine keeps for each 4 KiB page of a simulated machine. Linux itself keeps 64 bytes."),
    (
        "9a",
        "How much of that the host really has to give before anything runs: a large machine that is hardly used is cheap.",
    ),
    ("9b", "How much of it is there once every page is in use: multiply by the pages of your machine."),
    ("9c", "The most the first can be of a machine that reclaims: which page was used last has to be known."),
    (
        "9d",
        "Host memory that a page of a simulated machine with files and swap takes in all, where processes have them: times \
           its pages, what a run needs.",
    ),
    ("9e", "The same where the pages are of a file: the page cache's trees are in it."),
    ("1", "The cheapest request: a page allocated and freed again, as a driver does all the time."),
    ("2", "A page allocated among many, and freed in the opposite order: a program that starts and ends."),
    ("2a", "The first half of that: filling memory page by page."),
    ("2b", "The second half: giving it back in order."),
    (
        "3",
        "A page freed out of order, where its neighbours are joined with it: how an old, busy machine lets go of memory.",
    ),
    ("3a", "The same on a larger machine: the difference is what your CPU's caches no longer hold."),
    ("3b", "The same on a very large machine."),
    ("4", "A huge page (2 MiB) allocated and freed again."),
    ("5", "A huge page allocated while all memory is filled with them: what a virtual machine does when it starts."),
    ("5a", "Whether the last huge page takes as long as the first: near 1 means that a full machine is not slower."),
    ("6", "A page found when it is the only free one: the search does not go through memory."),
    ("7", "A request that cannot be met, with all that the kernel tries first."),
    ("8", "A used-up machine at work, one page freed and one allocated: it stays within one CPU's list."),
    ("8a", "The same on a larger machine."),
    ("8b", "64 freed and 64 allocated by turns: the CPU's list overflows now and then."),
    ("8c", "1,024 by turns: most go through the free lists."),
    ("8d", "65,536 by turns: all go through the free lists, and few are still in a cache."),
    ("10", "What it takes until a simulated machine is there, before its first operation."),
    ("11", "A promise, tried: after a long random history, all memory can be had as huge pages again."),
    ("12", "A promise, tried: no request failed while there was a block for it."),
    (
        "13",
        "A random page touched or unmapped in a simulated process: how long a what-if takes. A million of them is a \
            fragmented gigabyte and more.",
    ),
    ("13a", "The same for 16 MiB in a row: programs that use memory in large pieces run this fast."),
    ("13b", "Random pages again, on a very large machine: the slowest an experiment gets."),
    ("13c", "Random pages where the order of their use is kept, too: a page fault of a machine with files and swap."),
    (
        "U",
        "A page of a large region touched for the first time: how fast a simulated process fills memory. Beside it, the \
           5⅛ bytes that have to change.",
    ),
    ("Ua", "A page of a large region unmapped as a whole: how fast it ends. Only 1⅛ bytes have to change."),
    (
        "Ub",
        "A page unmapped where three quarters of every 2 MiB go at random: how fast experiments fragment memory. 5⅛ bytes \
           have to change: half of these pages begin a free block.",
    ),
    ("T1", "A task that runs for a moment and sleeps: what a task costs, whatever it does."),
    ("T80", "The same with 80 tasks: what side by side adds to each turn."),
    ("T1000", "The same with 1,000 tasks."),
    ("Ts", "A fault beside 1,000 tasks that sleep, and the same alone: who sleeps should cost nothing."),
    ("W", "A CPU that goes from one task to the next at the end of a slice: what many tasks on few CPUs cost."),
    ("Wa", "The same where one sleeps and another wakes, and finds its place among those that wait."),
    (
        "F",
        "A page filled and three of four freed again, as experiments begin. Times the pages of your machine: how long \
           you wait before anything is measured.",
    ),
    ("S", "A page looked at by compaction that cannot be moved."),
    ("M", "A page moved by compaction, searching for it and for its new place included, but not its contents."),
    (
        "L",
        "A page of a file allocated, put on the lists reclaim works on and, when a quarter of memory is there, freed \
           again.",
    ),
    (
        "La",
        "A page read where memory is full, by a task that reclaims itself: the oldest are evicted for it, 32 at a time, and \
           remembered, as this one was.",
    ),
    (
        "Lb",
        "A page of a file used. Every page is used twice, in random order: the second use moves it to the pages in use.",
    ),
    (
        "Lc",
        "A page brought back that had been evicted, at random: as La, and those that were away for a short time are \
           active at once. Uses of pages that are there, which make it so, are not timed.",
    ),
    (
        "Ld",
        "A page moved to the end where reclaim takes it next, at random: what a page written out for reclaim takes.",
    ),
    (
        "Le",
        "A page reclaimed by kswapd in clusters of 32, while others allocate: a step of reclaim takes 32 times that.",
    ),
    ("C", "A page of a file that a simulated process reads and finds in memory."),
    ("Ca", "A page read from a simulated disk, ahead of the reader, while an old one is reclaimed for it."),
    ("Cb", "A page written to a file: dirtied, written back by the flusher, and reclaimed."),
    ("P", "A page that a small process touches between its fork and its end: what a build of many commands does."),
    ("Pa", "The same where the page is its parent's, and is copied."),
    ("Pb", "The same on a machine that keeps the order of its pages."),
    ("Pc", "A process that does nothing: its fork, its end, and its parent's wait for it."),
];

/// What a row means.
pub fn of(number: &str) -> Option<&'static str> {
    MEANINGS.iter().find(|(n, _)| *n == number).map(|(_, meaning)| *meaning)
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
    fn no_row_is_there_twice() {
        for (i, (number, _)) in MEANINGS.iter().enumerate() {
            assert_eq!(MEANINGS.iter().position(|(n, _)| n == number), Some(i));
        }
    }
}
