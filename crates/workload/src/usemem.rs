//! MMTests' `usemem`: two processes sweep over memory again and again, one over anonymous memory,
//! the other over a mapped file, with several threads each.
//!
//! Each thread of the first maps its share and writes a word to each page; each thread of the other
//! maps the file's beginning, as much as one share, and reads a word of each page. Both repeat that
//! `loops` times. This is tried `iterations` times for each number of threads, and elapsed and
//! system time are taken until both processes have exited. Source: `usemem.c` of vm-scalability, as
//! MMTests calls it.

use crate::benchmark::{Benchmark, Measured, Start};
use crate::latencies::Latencies;
use crate::size::{all_fit, pages};
use kontig_program::{Batch, FileName, Op, OpenFile, Outcome, Program, Thread, Value};
use serde::{Deserialize, Serialize};

/// Two processes go over memory and over a file, with more and more threads.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Usemem {
    /// How much memory the first process uses, such as `"40 GiB"`.
    pub anonymous: String,
    /// How much of the file the other reads, with one thread.
    pub file_size: String,
    /// The number of a file that exists already.
    pub file: u64,
    #[serde(default)]
    pub disk: u8,
    /// The numbers of threads, one after the other.
    pub threads: Vec<u32>,
    /// Tries of each number of threads.
    pub iterations: u32,
    /// Sweeps over all pages.
    pub loops: u32,
}

/// One try with one number of threads.
#[derive(Clone, Copy)]
struct Try {
    /// Its place among the numbers of threads.
    of: usize,
    threads: u32,
}

impl Benchmark for Usemem {
    type Program = Driver;

    fn program(&self, _: &Start) -> Result<Driver, String> {
        let (anonymous, file_size) = (pages("anonymous", &self.anonymous)?, pages("file_size", &self.file_size)?);
        let most = self.threads.iter().copied().max().unwrap_or(0);
        if self.threads.is_empty() || self.threads.contains(&0) {
            return Err(format!("threads = {:?}: one number or more, each at least 1", self.threads));
        }
        if anonymous / most == 0 || file_size / most == 0 {
            return Err(format!("threads = {:?}: with {most} of them a share is less than a page", self.threads));
        }
        if self.iterations == 0 || self.loops == 0 {
            return Err("iterations = 0 or loops = 0: there is nothing to do".into());
        }
        let tries = self
            .threads
            .iter()
            .enumerate()
            .flat_map(|(of, threads)| std::iter::repeat_n(Try { of, threads: *threads }, self.iterations as usize));
        let latencies = |what: &str| {
            let of = |threads: &u32| {
                let name = format!("{what}-{threads}").into();
                Latencies { name, ..Latencies::new("a try", "it was not tried") }
            };
            self.threads.iter().map(of).collect()
        };
        Ok(Driver {
            anonymous,
            file_size,
            file: FileName::new(self.disk, self.file),
            loops: self.loops,
            tries: tries.collect(),
            next: 0,
            system_ns: 0,
            system: latencies("System"),
            elapsed: latencies("Elapsd"),
        })
    }

    fn measured(&self, copies: &[&Driver]) -> Measured {
        let of_all = |of: fn(&Driver) -> &Vec<Latencies>| {
            (0..self.threads.len()).filter_map(move |i| Latencies::of_all(copies.iter().map(|copy| &of(copy)[i])))
        };
        let latencies = of_all(|driver| &driver.system).chain(of_all(|driver| &driver.elapsed));
        Measured { latencies: latencies.collect(), ..Measured::default() }
    }

    fn fits(&self, pages: u64, copies: u64) -> Result<(), String> {
        all_fit("anonymous", &self.anonymous, pages, copies)
    }

    fn last_disk(&self) -> Option<u8> {
        Some(self.disk)
    }
}

/// Starts the processes and waits for them.
#[derive(Clone)]
pub struct Driver {
    anonymous: u32,
    file_size: u32,
    file: FileName,
    loops: u32,
    tries: Vec<Try>,
    next: usize,
    /// The time of all children so far, in the kernel.
    system_ns: u64,
    system: Vec<Latencies>,
    elapsed: Vec<Latencies>,
}

impl Program for Driver {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        if let [first, .., Outcome { value: Value::Times { system_ns, .. }, start_ns, .. }] = done {
            let Try { of, .. } = self.tries[self.next];
            self.system[of].record(system_ns - self.system_ns);
            self.elapsed[of].record(start_ns - first.start_ns);
            self.system_ns = *system_ns;
            self.next += 1;
        }
        let Some(Try { threads, .. }) = self.tries.get(self.next) else { return };
        let share = |what, pages: u32| Walker::new(what, pages / threads, self.loops);
        let anonymous = share(What::Memory, self.anonymous);
        let file = share(What::File(self.file, None), self.file_size);
        let process = |walker| Op::Fork(Box::new(Threads { walker, threads: *threads, begun: false }));
        todo.extend([process(anonymous), process(file), Op::WaitAny, Op::WaitAny, Op::ChildTimes]);
    }

    fn progress(&self) -> f64 {
        self.next as f64 / self.tries.len() as f64
    }
}

/// A process whose threads all do the same.
#[derive(Clone)]
struct Threads {
    walker: Walker,
    threads: u32,
    begun: bool,
}

impl Program for Threads {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        if std::mem::replace(&mut self.begun, true) {
            if let (What::File(_, open @ None), Some(Value::File(file))) =
                (&mut self.walker.what, done.last().map(|last| last.value))
            {
                *open = Some(file);
            } else {
                return;
            }
        } else if let What::File(name, None) = self.walker.what {
            todo.push(Op::Open { name, create: false });
            return;
        }
        todo.extend((0..self.threads).map(|_| Op::Spawn(Box::new(self.walker.clone()))));
        todo.extend((1..=self.threads).map(|thread| Op::Join(Thread::new(thread))));
    }
}

#[derive(Clone, Copy)]
enum What {
    Memory,
    /// A file, and its handle once it is open.
    File(FileName, Option<OpenFile>),
}

/// A thread: it maps its share, and goes over it.
#[derive(Clone)]
struct Walker {
    what: What,
    pages: u32,
    loops: u32,
}

impl Walker {
    fn new(what: What, pages: u32, loops: u32) -> Walker {
        Walker { what, pages, loops }
    }
}

impl Program for Walker {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        let Some(Value::Region(region)) = done.last().map(|last| last.value) else {
            let pages = self.pages;
            match self.what {
                _ if self.loops == 0 => {}
                What::Memory => todo.push(Op::Mmap { pages }),
                What::File(_, open) => todo.extend(open.map(|file| Op::MmapFile { file, first: 0, pages })),
            }
            return;
        };
        let walk = |_| match self.what {
            What::Memory => Op::Touch(region),
            What::File(..) => Op::Load(region),
        };
        todo.extend((0..std::mem::take(&mut self.loops)).map(walk));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usemem() -> Usemem {
        let text = "anonymous = '2 MiB'\nfile_size = '1 MiB'\nfile = 3\nthreads = [1, 4]\niterations = 2\nloops = 30";
        toml::from_str(text).expect("well-formed")
    }

    fn asked(program: &mut dyn Program, done: &[(Value, u64)]) -> Vec<Op> {
        let mut todo = Batch::new();
        let outcome = |(value, at): &(Value, u64)| Outcome { value: *value, start_ns: *at, end_ns: *at };
        program.next(&done.iter().map(outcome).collect::<Vec<_>>(), &mut todo);
        std::iter::from_fn(|| todo.pop()).collect()
    }

    #[test]
    fn each_number_of_threads_is_tried_so_often_and_timed_until_both_processes_are_gone() {
        let mut driver = usemem().program(&Start::default()).expect("it can be read");
        let mut done = vec![(Value::Unit, 0)];
        for round in 0..4u64 {
            let ops = asked(&mut driver, &done);
            assert!(matches!(ops[..], [Op::Fork(_), Op::Fork(_), Op::WaitAny, Op::WaitAny, Op::ChildTimes]));
            let times = Value::Times { user_ns: 0, system_ns: (round + 1) * (round + 1) * 100 };
            done = vec![(Value::Unit, 1000 * round), (times, 1000 * round + 500 + round)];
        }
        assert_eq!(asked(&mut driver, &done), []);
        let measured = usemem().measured(&[&driver]);
        let all: Vec<_> =
            measured.latencies.iter().map(|l| (l.name.as_ref(), l.histogram.len(), l.longest_ns)).collect();
        let expected = [("System-1", 300), ("System-4", 700), ("Elapsd-1", 501), ("Elapsd-4", 503)];
        assert_eq!(all, expected.map(|(name, longest)| (name, 2, Some(longest))));
    }

    #[test]
    fn every_thread_writes_its_share_or_reads_the_same_part_of_the_file() {
        let [memory, file] = [What::Memory, What::File(FileName::new(0, 3), None)].map(|what| Threads {
            walker: Walker::new(what, 128, 30),
            threads: 4,
            begun: false,
        });
        let (mut memory, mut file) = (memory, file);
        let mut ops = asked(&mut memory, &[(Value::Unit, 0)]);
        assert_eq!(ops.split_off(4), [1, 2, 3, 4].map(|thread| Op::Join(Thread::new(thread))));
        assert_eq!(asked(&mut memory, &[(Value::Unit, 0)]), []);
        assert_eq!(asked(&mut file, &[(Value::Unit, 0)]), [Op::Open { name: FileName::new(0, 3), create: false }]);
        let open = Value::File(OpenFile::new(8));
        assert_eq!(asked(&mut file, &[(open, 0)]).len(), 8);
        let mut walker = file.walker;
        let first = asked(&mut walker, &[(Value::Unit, 0)]);
        assert_eq!(first, [Op::MmapFile { file: OpenFile::new(8), first: 0, pages: 128 }]);
        let region = kontig_program::Region { mapping: 2, first: 0, pages: 128 };
        let walks = asked(&mut walker, &[(Value::Region(region), 0)]);
        assert_eq!((walks.len(), &walks[29]), (30, &Op::Load(region)));
        assert_eq!(asked(&mut walker, &[(Value::Unit, 0)]), []);
    }

    #[test]
    fn a_share_is_a_page_at_least() {
        let refused = |of: Usemem| of.program(&Start::default()).err().expect("refused");
        assert!(refused(Usemem { threads: vec![1, 300], ..usemem() }).contains("less than a page"));
        assert!(refused(Usemem { threads: Vec::new(), ..usemem() }).starts_with("threads = []"));
        assert!(refused(Usemem { loops: 0, ..usemem() }).contains("nothing to do"));
    }
}
