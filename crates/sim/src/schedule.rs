//! The order of turns: which task is next, and when.
//!
//! A task wants its next turn at a time of its own, and tasks on one CPU share it: a turn begins when the task wants
//! it or when its CPU is free, whichever is later. The turn that begins first is next; ties go to the task with the
//! lower number. So while a CPU is busy all tasks that wait for it are equal, and the lowest number goes first.
//!
//! A row of times for each CPU ([`MinTree`]) and one row of the CPUs' first turns make a turn cost
//! O(log tasks of the CPU + log CPUs with tasks), however many tasks there are.

use crate::min_tree::{Key, MinTree};

/// A turn that is next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Turn {
    /// Whose it is.
    pub(crate) task: u32,
    /// When it begins.
    pub(crate) start: u64,
}

/// A CPU that has tasks.
#[derive(Clone)]
struct Cpu {
    number: usize,
    free_at: u64,
    /// When each of its tasks wants its next turn.
    wanted: MinTree<u64>,
    /// Its tasks, ascending.
    tasks: Vec<u32>,
}

impl Turn {
    /// Turns in their order: by time, then by task.
    #[inline]
    fn key(self) -> u128 {
        u128::from(self.start) << 32 | u128::from(self.task)
    }

    #[inline]
    fn of_key(key: u128) -> Turn {
        Turn { task: key as u32, start: (key >> 32) as u64 }
    }
}

impl Cpu {
    /// The key of its first turn.
    #[inline]
    fn first(&self) -> u128 {
        let start = self.wanted.least().max(self.free_at);
        match self.wanted.first_at_most(start) {
            Some(place) => Turn { task: self.tasks[place], start }.key(),
            None => Key::NONE,
        }
    }
}

/// All tasks and CPUs.
#[derive(Clone)]
pub(crate) struct Schedule {
    /// The CPUs that have tasks, so that a large machine with few tasks is as quick as a small one.
    busy: Vec<Cpu>,
    /// Each CPU's index among those.
    index: Vec<Option<u32>>,
    /// The first turn of each CPU that has tasks.
    firsts: MinTree<u128>,
    /// Each task's CPU, by its index, and its place there.
    places: Vec<(u32, u32)>,
}

impl Schedule {
    /// So many CPUs, free from the start, without tasks.
    pub(crate) fn new(cpus: usize) -> Schedule {
        Schedule { busy: Vec::new(), index: vec![None; cpus], firsts: MinTree::new(), places: Vec::new() }
    }

    /// Adds a task that wants no turn yet; its number.
    pub(crate) fn add(&mut self, cpu: usize) -> u32 {
        let task = u32::try_from(self.places.len()).expect("fewer than 2³² tasks");
        let index = *self.index[cpu].get_or_insert_with(|| {
            self.busy.push(Cpu { number: cpu, free_at: 0, wanted: MinTree::new(), tasks: Vec::new() });
            self.firsts.push() as u32
        });
        let c = &mut self.busy[index as usize];
        c.tasks.push(task);
        self.places.push((index, c.wanted.push() as u32));
        task
    }

    /// How many CPUs there are.
    pub(crate) fn cpus(&self) -> usize {
        self.index.len()
    }

    /// The CPU of a task.
    pub(crate) fn cpu_of(&self, task: u32) -> usize {
        self.busy[self.places[task as usize].0 as usize].number
    }

    /// The task wants its next turn at this time, whatever it wanted before.
    #[inline]
    pub(crate) fn want(&mut self, task: u32, at: u64) {
        // The greatest time is kept for tasks that want none.
        self.set(task, at.min(u64::NONE - 1));
    }

    #[inline]
    fn set(&mut self, task: u32, at: u64) {
        let (cpu, place) = self.places[task as usize];
        let c = &mut self.busy[cpu as usize];
        c.wanted.set(place as usize, at);
        self.firsts.set(cpu as usize, c.first());
    }

    /// The task wants no turn until it says so.
    pub(crate) fn want_none(&mut self, task: u32) {
        self.set(task, u64::NONE);
    }

    /// The turn that is next.
    #[inline]
    pub(crate) fn next(&self) -> Option<Turn> {
        let key = self.firsts.least();
        (key != Key::NONE).then(|| Turn::of_key(key))
    }

    /// When the first turn of another task would begin if this task's next one took no time.
    #[inline]
    pub(crate) fn next_of_others(&self, task: u32) -> Option<u64> {
        let (cpu, place) = self.places[task as usize];
        let c = &self.busy[cpu as usize];
        let here = c.wanted.least_besides(place as usize);
        let here = (here != Key::NONE).then(|| here.max(c.free_at));
        let elsewhere = self.firsts.least_besides(cpu as usize);
        let elsewhere = (elsewhere != Key::NONE).then(|| Turn::of_key(elsewhere).start);
        here.into_iter().chain(elsewhere).min()
    }

    /// The task's turn is over and its CPU free from now on; the task wants another turn at the time `again`, if any.
    #[inline]
    pub(crate) fn end(&mut self, task: u32, now: u64, again: Option<u64>) {
        let c = &mut self.busy[self.places[task as usize].0 as usize];
        debug_assert!(c.free_at <= now, "a CPU's time goes on");
        c.free_at = now;
        self.set(task, again.map_or(u64::NONE, |at| at.min(u64::NONE - 1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same order, from a look at every task.
    #[derive(Default)]
    struct Scan {
        free_at: Vec<u64>,
        tasks: Vec<(usize, Option<u64>)>,
    }

    impl Scan {
        fn starts(&self) -> impl Iterator<Item = (u64, u32)> {
            let start =
                |(i, (cpu, at)): (usize, &(usize, Option<u64>))| Some(((*at)?.max(self.free_at[*cpu]), i as u32));
            self.tasks.iter().enumerate().filter_map(start)
        }
        fn next(&self) -> Option<Turn> {
            self.starts().min().map(|(start, task)| Turn { task, start })
        }
    }

    #[derive(Clone, Debug)]
    enum Act {
        Add {
            cpu: usize,
        },
        /// The next task has its turn for so long, and wants another after so long, or none.
        Turn {
            takes: u64,
            again: Option<u64>,
        },
        /// From outside: some task wants a turn at this time from now.
        Wake {
            task: prop::sample::Index,
            after: u64,
        },
    }

    fn act() -> impl Strategy<Value = Act> {
        // Short times on few CPUs: ties are the rule.
        prop_oneof![
            1 => (0..5usize).prop_map(|cpu| Act::Add { cpu }),
            8 => (0..6u64, prop::option::weighted(0.9, 0..8u64)).prop_map(|(takes, again)| Act::Turn { takes, again }),
            1 => (any::<prop::sample::Index>(), 0..8u64).prop_map(|(task, after)| Act::Wake { task, after }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn turns_come_in_the_order_a_scan_of_all_tasks_finds(cpus in 1..5usize, acts in prop::collection::vec(act(), 1..300)) {
            let mut schedule = Schedule::new(cpus);
            let mut scan = Scan { free_at: vec![0; cpus], tasks: Vec::new() };
            let mut now = 0;
            for act in acts {
                match act {
                    Act::Add { cpu } => {
                        let task = schedule.add(cpu % cpus);
                        prop_assert_eq!(task as usize, scan.tasks.len());
                        scan.tasks.push((cpu % cpus, Some(now)));
                        schedule.want(task, now);
                    }
                    Act::Turn { takes, again } => {
                        let Some(turn) = schedule.next() else { continue };
                        now = turn.start;
                        let after = schedule.next_of_others(turn.task);
                        let task = turn.task as usize;
                        scan.tasks[task].1 = None;
                        prop_assert_eq!(after, scan.next().map(|t| t.start));
                        let end = now + takes;
                        scan.free_at[scan.tasks[task].0] = end;
                        scan.tasks[task].1 = again.map(|after| end + after);
                        schedule.end(turn.task, end, scan.tasks[task].1);
                    }
                    Act::Wake { task, after } if !scan.tasks.is_empty() => {
                        let task = task.index(scan.tasks.len());
                        scan.tasks[task].1 = Some(now + after);
                        schedule.want(task as u32, now + after);
                    }
                    Act::Wake { .. } => {}
                }
                prop_assert_eq!(schedule.next(), scan.next());
            }
        }
    }
}
