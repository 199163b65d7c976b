//! A plain model of processes that share memory: the contents of each process's pages, whatever
//! frame or slot the machine keeps them in.

use super::*;
use proptest::prelude::*;

/// An action of one of the processes, or an event that affects all of them.
#[derive(Clone, Debug)]
pub enum Act {
    Fork { who: usize },
    Touch { who: usize, first: u32, pages: u32 },
    Load { who: usize, first: u32, pages: u32 },
    Munmap { who: usize, first: u32, pages: u32 },
    Exit { who: usize },
    Pause,
    Compact,
}

/// Any action, for a mapping of `pages` pages, of which `at_once` are used at once at most.
pub fn act(pages: u32, at_once: u32) -> impl Strategy<Value = Act> {
    let range = move || (0..pages, 1..at_once).prop_map(move |(first, some)| (first, some.min(pages - first)));
    prop_oneof![
        3 => (0..4usize).prop_map(|who| Act::Fork { who }),
        7 => (0..4usize, range()).prop_map(|(who, (first, pages))| Act::Touch { who, first, pages }),
        3 => (0..4usize, range()).prop_map(|(who, (first, pages))| Act::Load { who, first, pages }),
        3 => (0..4usize, range()).prop_map(|(who, (first, pages))| Act::Munmap { who, first, pages }),
        1 => (1..4usize).prop_map(|who| Act::Exit { who }),
        1 => Just(Act::Pause),
        1 => Just(Act::Compact),
    ]
}

/// Contents of a process's page.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Has {
    Nothing,
    Zeros,
    /// Contents of this number: pages with the same number are shared.
    Contents(u64),
}

/// A process: its task at the prompt, its number, and the contents of its pages.
struct Member {
    task: usize,
    process: u32,
    has: Vec<Has>,
}

/// Processes of which the first has the mapping and the others are forked.
pub struct Family {
    pub region: Region,
    members: Vec<Member>,
    contents: u64,
}

impl Family {
    /// The first process, with a mapping of this many pages.
    pub fn new(p: &mut Prompt, pages: u32) -> Family {
        let first = Member { task: 0, process: 0, has: vec![Has::Nothing; pages as usize] };
        Family { region: p.mmap(0, pages), members: vec![first], contents: 0 }
    }

    /// Performs an action on the machine and in the model; skips it if it is impossible now.
    pub fn act(&mut self, p: &mut Prompt, act: &Act) {
        let range = |first: u32, pages: u32| first as usize..(first + pages) as usize;
        let here = self.members.len();
        match *act {
            Act::Fork { who } if who < here && here < 4 => {
                let parent = &self.members[who];
                let (task, process) = p.fork(parent.task);
                let child = Member { task, process: process.get(), has: parent.has.clone() };
                self.members.push(child);
            }
            Act::Touch { who, first, pages } if who < here => {
                p.call(self.members[who].task, Op::Touch(part(self.region, first, pages))).unwrap();
                for page in range(first, pages) {
                    let has = self.members[who].has[page];
                    let shares = self.members.iter().filter(|m| m.has[page] == has).count() > 1;
                    if shares || !matches!(has, Has::Contents(_)) {
                        self.contents += 1;
                        self.members[who].has[page] = Has::Contents(self.contents);
                    }
                }
            }
            Act::Load { who, first, pages } if who < here => {
                p.call(self.members[who].task, Op::Load(part(self.region, first, pages))).unwrap();
                let read = &mut self.members[who].has[range(first, pages)];
                read.iter_mut().filter(|has| **has == Has::Nothing).for_each(|has| *has = Has::Zeros);
            }
            Act::Munmap { who, first, pages } if who < here => {
                p.call(self.members[who].task, Op::Munmap(part(self.region, first, pages))).unwrap();
                self.members[who].has[range(first, pages)].fill(Has::Nothing);
            }
            Act::Exit { who } if who < here => {
                p.last_call(self.members[who].task, Op::Exit);
                pass(&mut p.m, 100 * MS);
                self.members.remove(who);
            }
            Act::Pause => pass(&mut p.m, 50 * MS),
            Act::Compact => {
                p.call(0, Op::Sysctl { name: "vm.compact_memory".into(), value: "1".into() }).unwrap();
            }
            _ => {}
        }
    }

    /// The tasks that are left.
    pub fn tasks(&self) -> impl Iterator<Item = usize> + '_ {
        self.members.iter().map(|m| m.task)
    }

    /// The processes' numbers, with the number of pages that have contents.
    pub fn rss(&self) -> impl Iterator<Item = (Process, u64)> + '_ {
        let written = |m: &Member| m.has.iter().filter(|has| matches!(has, Has::Contents(_))).count() as u64;
        self.members.iter().map(move |m| (Process::new(m.process), written(m)))
    }

    /// Every page of every process, with its expected contents.
    pub fn pages(&self) -> impl Iterator<Item = (UserPage, Has)> + '_ {
        let mapping = self.region.mapping;
        self.members.iter().flat_map(move |m| {
            let at = move |page: usize| UserPage { process: m.process, mapping, page: page as u32 };
            m.has.iter().enumerate().map(move |(page, has)| (at(page), *has))
        })
    }
}
