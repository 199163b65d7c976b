//! Relations of processes: parents, children, zombies, and waits for them.
//!
//! A process that has ended stays a zombie until its parent waits for it or has ended itself. It
//! ends with the last of its threads ([`super::threads`]).

use super::threads::Threads;
use crate::base::context::TaskPolicy;
use crate::base::id::TaskId;
use crate::base::queue::QueueId;
use crate::sched::CpuTime;
use crate::state::file::Cache;
use kontig_mm::rules::Stack;
use kontig_mm::{Order, Pfn, Profile};
use kontig_program::{Process, Program};

/// The slab objects that describe a process, and how many of each. The ten processes of a small
/// build, traced, had 40 pages of slabs for the first five, 21 for mappings, 9 for nodes of their
/// trees and 6 for `anon_vma`; hardly any of these pages came back. A page holds 21, 16 and 39 of
/// the last three: 44, 14 and 23 a process, of which mappings are two whole slabs here.
pub(crate) const OBJECTS: [(Cache, usize); 8] = [
    (Cache::Task, 1),
    (Cache::OpenFiles, 1),
    (Cache::SignalHandlers, 1),
    (Cache::Signals, 1),
    (Cache::AddressSpace, 1),
    (Cache::Mapping, 42),
    (Cache::MappingNode, 14),
    (Cache::AnonMappings, 23),
];
/// Kernel pages instead of these on a machine without files, which has no slabs.
pub(crate) const TASK_PAGES: usize = 3;
/// Kernel pages that describe a thread: its `task_struct`.
pub(crate) const THREAD_PAGES: usize = 2;
/// Tables of a memory map above its page tables: that of the top level, and single pages for the
/// levels below. The 552 memory maps of a small kernel build, traced in an emulator whose processor
/// has five levels, had 1.8, 3.3 and 4.2 of these on the average, nine in all.
pub(crate) const UPPER_TABLES: usize = 10;

/// The blocks of a stack in the kernel: their number, and the order of each.
pub(crate) fn stack(profile: &Profile) -> (usize, Order) {
    match profile.processes.stack {
        Stack::Order1 => (1, Order::new(1)),
        Stack::Order2 => (1, Order::new(2)),
        Stack::FourPages => (4, Order::ZERO),
    }
}

/// The order of the top level's table.
pub(crate) fn top_table(profile: &Profile) -> Order {
    Order::new(u8::from(profile.faults.isolates_page_tables))
}

/// State of a process besides its memory.
#[derive(Clone, Default)]
struct Member {
    parent: Option<u32>,
    forked: bool,
    /// Children not waited for, in the order of their forks.
    children: Vec<u32>,
    threads: Threads,
    /// The queue for its waits for children, once it has waited.
    queue: Option<QueueId>,
    /// Order of creation among all processes.
    born: u64,
    killed: bool,
    /// Whether the OOM killer killed it.
    oom: bool,
    /// Whether its program reports failure.
    failed: bool,
    ended: bool,
    /// CPU time of its finished threads, and of the children it has waited for.
    time: CpuTime,
    children_time: CpuTime,
}

/// The outcome of a process.
#[derive(Clone, Copy)]
pub(crate) struct End {
    pub(crate) killed: bool,
    /// Whether it was killed or its program reports failure.
    pub(crate) failed: bool,
}

/// A thread that needs a task.
#[derive(Clone)]
pub(crate) struct Birth {
    pub(crate) process: u32,
    /// Number in the process; the first thread's is 0.
    pub(crate) thread: u32,
    pub(crate) program: Box<dyn Program>,
    /// The kernel's blocks of a thread other than the first.
    pub(crate) blocks: Vec<(Pfn, Order)>,
}

/// All processes, by number.
#[derive(Clone, Default)]
pub(crate) struct Family {
    members: Vec<Member>,
    /// Forked children and new threads without a task.
    pub(crate) births: Vec<Birth>,
    /// Killed tasks that have not been told.
    pub(crate) kills: Vec<TaskId>,
    /// Number of processes created so far.
    born: u64,
}

impl Family {
    /// Adds a process without a parent.
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

    /// Adds a child, forked by this thread of the parent, with its program.
    pub(crate) fn add_child(&mut self, (parent, forker): (u32, u32), child: u32, program: Box<dyn Program>) {
        self.add(child);
        let TaskPolicy { policy, .. } = self.policy(parent, forker);
        let member = self.member(child);
        (member.parent, member.forked) = (Some(parent), true);
        member.threads.set_policy(0, TaskPolicy { policy, turn: 0 });
        self.member(parent).children.push(child);
        self.births.push(Birth { process: child, thread: 0, program, blocks: Vec::new() });
    }

    /// Adds a thread, made by another, with its program and kernel pages; its number.
    pub(crate) fn add_thread(
        &mut self,
        (process, maker): (u32, u32),
        program: Box<dyn Program>,
        blocks: Vec<(Pfn, Order)>,
    ) -> u32 {
        let TaskPolicy { policy, .. } = self.policy(process, maker);
        let thread = self.threads(process).add();
        self.set_policy(process, thread, TaskPolicy { policy, turn: 0 });
        self.births.push(Birth { process, thread, program, blocks });
        thread
    }

    fn member(&mut self, process: u32) -> &mut Member {
        &mut self.members[process as usize]
    }

    pub(crate) fn threads(&mut self, process: u32) -> &mut Threads {
        &mut self.member(process).threads
    }

    /// A thread's memory policy.
    #[inline(always)]
    pub(crate) fn policy(&self, process: u32, thread: u32) -> TaskPolicy {
        self.members[process as usize].threads.policy(thread)
    }

    /// The policies of all threads of a process that have not ended.
    pub(crate) fn policies(&self, process: u32) -> impl Iterator<Item = TaskPolicy> {
        self.members[process as usize].threads.policies()
    }

    /// Sets a thread's memory policy.
    pub(crate) fn set_policy(&mut self, process: u32, thread: u32, policy: TaskPolicy) {
        self.threads(process).set_policy(thread, policy);
    }

    /// Whether a thread must end before its next operation.
    #[inline(always)]
    pub(crate) fn must_end(&self, process: u32, thread: u32) -> bool {
        let m = &self.members[process as usize];
        m.killed || m.threads.must_end(thread)
    }

    pub(crate) fn is_killed(&self, process: u32) -> bool {
        self.members[process as usize].killed
    }

    /// Whether the process has begun and not ended.
    pub(crate) fn is_alive(&self, process: u32) -> bool {
        self.members.get(process as usize).is_some_and(|m| !m.ended && m.threads.have_begun())
    }

    /// Makes a process end as soon as it can. False if there is no such process any more.
    pub(crate) fn kill(&mut self, process: u32) -> bool {
        let Some(m) = self.members.get_mut(process as usize).filter(|m| !m.ended) else { return false };
        m.killed = true;
        self.kills.extend(m.threads.tasks());
        true
    }

    /// Makes all other threads of a process end as soon as they can.
    pub(crate) fn end_others(&mut self, process: u32, thread: u32) {
        let Family { members, kills, .. } = self;
        members[process as usize].threads.end_others(thread, kills);
    }

    /// All processes that have not ended, oldest first.
    pub(crate) fn alive(&self) -> Vec<u32> {
        let mut all: Vec<u32> = (0..self.members.len() as u32).filter(|process| self.is_alive(*process)).collect();
        all.sort_by_key(|process| self.members[*process as usize].born);
        all
    }

    /// Records whether a process's program reports failure.
    pub(crate) fn set_failed(&mut self, process: u32, failed: bool) {
        self.member(process).failed = failed;
    }

    /// Kills a process as the OOM killer's victim.
    pub(crate) fn oom_kill(&mut self, process: u32) {
        self.kill(process);
        self.member(process).oom = true;
    }

    /// Whether the OOM killer killed it.
    pub(crate) fn is_oom_victim(&self, process: u32) -> bool {
        self.members[process as usize].oom
    }

    /// Whether the host started it, not another process.
    pub(crate) fn is_root(&self, process: u32) -> bool {
        !self.members[process as usize].forked
    }

    /// Ends a process. Returns the processes that nobody can wait for any more, and the queue in
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

    /// Adds the CPU time of a finished thread to its process.
    pub(crate) fn add_time(&mut self, process: u32, time: CpuTime) {
        self.member(process).time.add(time);
    }

    /// CPU time of the children that a process has waited for, with their own children's.
    pub(crate) fn children_time(&self, process: u32) -> CpuTime {
        self.members[process as usize].children_time
    }

    /// Whether `child` is a child of `parent` that has not been waited for.
    pub(crate) fn is_child(&self, parent: u32, child: u32) -> bool {
        self.members[parent as usize].children.contains(&child)
    }

    /// Removes a child that has ended, `child` if it is given, and returns its outcome. `None`
    /// while there is none.
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

    /// The queue for a process's waits for its children.
    pub(crate) fn queue(&mut self, process: u32, make: impl FnOnce() -> QueueId) -> QueueId {
        *self.member(process).queue.get_or_insert_with(make)
    }
}

/// A kill by the OOM killer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OomKill {
    /// Virtual time of the kill, ns.
    pub at_ns: u64,
    /// The victim; its number may have been reused.
    pub process: Process,
    /// Pages it had in memory.
    pub rss: u64,
    /// Pages of its page tables.
    pub page_tables: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_one_block_up_to_4_8() {
        let of = |version| stack(&kontig_profiles::linux(version));
        assert_eq!([of("3.13"), of("4.6")], [(1, Order::new(1)), (1, Order::new(2))]);
        assert_eq!(of("4.20-rc3"), (4, Order::ZERO));
    }
}
