//! Who forked whom, who has ended, and who waits for that.
//!
//! A process that has ended stays a zombie until its parent waits for it, or has ended itself. It ends with the last of
//! its threads ([`super::threads`]).

use super::threads::Threads;
use crate::base::context::TaskPolicy;
use crate::base::id::TaskId;
use crate::base::queue::QueueId;
use crate::sched::CpuTime;
use kontig_mm::Pfn;
use kontig_program::{Process, Program};

/// Kernel pages of a stack: `THREAD_SIZE`, 16 KiB on x86-64, in single pages since 4.9 (`CONFIG_VMAP_STACK`).
pub(crate) const STACK_PAGES: usize = 4;
/// Kernel pages of what describes a process: `task_struct`, `mm_struct`, its signals, files and mappings, 11 KiB by
/// `/proc/slabinfo` of a distribution's 6.1.
pub(crate) const TASK_PAGES: usize = 3;
/// Of these, what describes a thread: its `task_struct`.
pub(crate) const THREAD_PAGES: usize = 2;
/// Kernel pages of the tables above the page tables: of the top level two with page-table isolation, of the others one for
/// each end of the address space.
pub(crate) const UPPER_PAGES: usize = 6;

/// What is known of a process beside its memory.
#[derive(Clone, Default)]
struct Member {
    parent: Option<u32>,
    forked: bool,
    /// Its children that have not been waited for, in the order they were forked.
    children: Vec<u32>,
    threads: Threads,
    /// Where it waits for its children, once it has.
    queue: Option<QueueId>,
    /// When it was made, among all.
    born: u64,
    killed: bool,
    /// It was killed for want of memory.
    oom: bool,
    /// Its program says that it has failed.
    failed: bool,
    ended: bool,
    /// The time of its threads that are gone, and of its children that it has waited for.
    time: CpuTime,
    children_time: CpuTime,
}

/// How a process has ended.
#[derive(Clone, Copy)]
pub(crate) struct End {
    /// It was killed.
    pub(crate) killed: bool,
    /// It was, or its program says that it has failed.
    pub(crate) failed: bool,
}

/// A thread whose task has to be made.
#[derive(Clone)]
pub(crate) struct Birth {
    pub(crate) process: u32,
    /// Its number in the process; the first thread's is 0.
    pub(crate) thread: u32,
    pub(crate) program: Box<dyn Program>,
    /// Kernel pages of its own, of one that is not the first.
    pub(crate) pages: Vec<Pfn>,
}

/// All processes, by number.
#[derive(Clone, Default)]
pub(crate) struct Family {
    members: Vec<Member>,
    /// Children that were forked, and threads, that have no task yet.
    pub(crate) births: Vec<Birth>,
    /// Tasks that were killed and not told so.
    pub(crate) kills: Vec<TaskId>,
    /// How many there have been.
    born: u64,
}

impl Family {
    /// A process that nobody waits for.
    pub(crate) fn add(&mut self, process: u32) {
        let place = process as usize;
        if self.members.len() <= place {
            self.members.resize_with(place + 1, Member::default);
        }
        let Member { queue, mut threads, .. } = std::mem::take(&mut self.members[place]);
        threads.begin();
        self.born += 1;
        self.members[place] = Member { queue, threads, born: self.born, ..Member::default() };
    }

    /// A child of a process, which this thread of it has forked, and what it runs.
    pub(crate) fn add_child(&mut self, (parent, forker): (u32, u32), child: u32, program: Box<dyn Program>) {
        self.add(child);
        let TaskPolicy { policy, .. } = self.policy(parent, forker);
        let member = self.member(child);
        (member.parent, member.forked) = (Some(parent), true);
        member.threads.set_policy(0, TaskPolicy { policy, turn: 0 });
        self.member(parent).children.push(child);
        self.births.push(Birth { process: child, thread: 0, program, pages: Vec::new() });
    }

    /// A thread of a process, made by another, what it runs, and its kernel pages; its number.
    pub(crate) fn add_thread(
        &mut self,
        (process, maker): (u32, u32),
        program: Box<dyn Program>,
        pages: Vec<Pfn>,
    ) -> u32 {
        let TaskPolicy { policy, .. } = self.policy(process, maker);
        let thread = self.threads(process).add();
        self.set_policy(process, thread, TaskPolicy { policy, turn: 0 });
        self.births.push(Birth { process, thread, program, pages });
        thread
    }

    fn member(&mut self, process: u32) -> &mut Member {
        &mut self.members[process as usize]
    }

    /// The threads of a process.
    pub(crate) fn threads(&mut self, process: u32) -> &mut Threads {
        &mut self.member(process).threads
    }

    /// Where a thread's memory is to be.
    #[inline(always)]
    pub(crate) fn policy(&self, process: u32, thread: u32) -> TaskPolicy {
        self.members[process as usize].threads.policy(thread)
    }

    /// The same of all threads of a process that have not ended.
    pub(crate) fn policies(&self, process: u32) -> impl Iterator<Item = TaskPolicy> {
        self.members[process as usize].threads.policies()
    }

    /// Says where a thread's memory is to be.
    pub(crate) fn set_policy(&mut self, process: u32, thread: u32, policy: TaskPolicy) {
        self.threads(process).set_policy(thread, policy);
    }

    /// Whether a thread has to end before its next operation.
    #[inline(always)]
    pub(crate) fn must_end(&self, process: u32, thread: u32) -> bool {
        let m = &self.members[process as usize];
        m.killed || m.threads.must_end(thread)
    }

    /// Whether a process was killed.
    pub(crate) fn is_killed(&self, process: u32) -> bool {
        self.members[process as usize].killed
    }

    /// Whether it is a process that has not ended.
    pub(crate) fn is_alive(&self, process: u32) -> bool {
        self.members.get(process as usize).is_some_and(|m| !m.ended && m.threads.have_begun())
    }

    /// Has a process end as soon as it can. False if there is no such process any more.
    pub(crate) fn kill(&mut self, process: u32) -> bool {
        let Some(m) = self.members.get_mut(process as usize).filter(|m| !m.ended) else { return false };
        m.killed = true;
        self.kills.extend(m.threads.tasks());
        true
    }

    /// Has all threads of a process but this one end as soon as they can.
    pub(crate) fn end_others(&mut self, process: u32, thread: u32) {
        let Family { members, kills, .. } = self;
        members[process as usize].threads.end_others(thread, kills);
    }

    /// All that have not ended, oldest first.
    pub(crate) fn alive(&self) -> Vec<u32> {
        let mut all: Vec<u32> = (0..self.members.len() as u32).filter(|process| self.is_alive(*process)).collect();
        all.sort_by_key(|process| self.members[*process as usize].born);
        all
    }

    /// Notes what a process's program says of itself at its end.
    pub(crate) fn set_failed(&mut self, process: u32, failed: bool) {
        self.member(process).failed = failed;
    }

    /// Has a process end for want of memory.
    pub(crate) fn oom_kill(&mut self, process: u32) {
        self.kill(process);
        self.member(process).oom = true;
    }

    /// Whether it was killed for want of memory.
    pub(crate) fn is_oom_victim(&self, process: u32) -> bool {
        self.members[process as usize].oom
    }

    /// Whether it was started by the host, not forked by another process.
    pub(crate) fn is_root(&self, process: u32) -> bool {
        !self.members[process as usize].forked
    }

    /// A process has ended. The processes that are gone by that, of which nobody can know any more; and the queue in
    /// which its parent may wait.
    pub(crate) fn end(&mut self, process: u32) -> (Vec<u32>, Option<QueueId>) {
        let m = self.member(process);
        m.ended = true;
        m.threads.clear();
        let (parent, children) = (m.parent, std::mem::take(&mut m.children));
        let mut gone = Vec::new();
        for child in children {
            self.member(child).parent = None;
            if self.member(child).ended {
                gone.push(child);
            }
        }
        match parent {
            Some(parent) => (gone, self.member(parent).queue),
            None => {
                gone.push(process);
                (gone, None)
            }
        }
    }

    /// A thread of a process is gone, which was on CPUs for so long.
    pub(crate) fn add_time(&mut self, process: u32, time: CpuTime) {
        self.member(process).time.add(time);
    }

    /// The time of a process's children that it has waited for, and of those that they have.
    pub(crate) fn children_time(&self, process: u32) -> CpuTime {
        self.members[process as usize].children_time
    }

    /// Whether a process is a child of another that has not been waited for.
    pub(crate) fn is_child(&self, parent: u32, child: u32) -> bool {
        self.members[parent as usize].children.contains(&child)
    }

    /// A child, this one if it is named, that has ended, and how: it is gone by that. `None` while there is none.
    pub(crate) fn reap(&mut self, parent: u32, child: Option<u32>) -> Option<(u32, End)> {
        let children = &self.members[parent as usize].children;
        let is_it = |c: &u32| self.members[*c as usize].ended && child.is_none_or(|child| child == *c);
        let place = children.iter().position(is_it)?;
        let child = self.member(parent).children.remove(place);
        let Member { time, children_time, killed, failed, .. } = *self.member(child);
        let of_children = &mut self.member(parent).children_time;
        of_children.add(time);
        of_children.add(children_time);
        Some((child, End { killed, failed: killed || failed }))
    }

    /// Whether a process has children that it has not waited for.
    pub(crate) fn has_children(&self, process: u32) -> bool {
        !self.members[process as usize].children.is_empty()
    }

    /// Where a process waits for its children.
    pub(crate) fn queue(&mut self, process: u32, make: impl FnOnce() -> QueueId) -> QueueId {
        *self.member(process).queue.get_or_insert_with(make)
    }
}

/// A process that was killed for want of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OomKill {
    /// When, ns.
    pub at_ns: u64,
    /// Which: the number may be another's by now.
    pub process: Process,
    /// Pages it had in memory.
    pub rss: u64,
    /// Pages of its page tables.
    pub page_tables: u64,
}
