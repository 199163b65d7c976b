//! Who forked whom, who has ended, and who waits for that.
//!
//! A process that has ended stays a zombie until its parent waits for it, or has ended itself.

use super::mempolicy::TaskPolicy;
use crate::queue::QueueId;
use crate::task::TaskId;
use kontig_program::Program;

/// What is known of a process beside its memory.
#[derive(Clone, Default)]
struct Member {
    parent: Option<u32>,
    forked: bool,
    /// Its children that have not been waited for, in the order they were forked.
    children: Vec<u32>,
    task: Option<TaskId>,
    /// Where it waits for its children, once it has.
    queue: Option<QueueId>,
    /// When it was made, among all.
    born: u64,
    killed: bool,
    /// It was killed for want of memory.
    oom: bool,
    ended: bool,
    policy: TaskPolicy,
}

/// A child whose task has to be made.
#[derive(Clone)]
pub(crate) struct Birth {
    pub(crate) process: u32,
    pub(crate) program: Box<dyn Program>,
}

/// All processes, by number.
#[derive(Clone, Default)]
pub(crate) struct Family {
    members: Vec<Member>,
    /// Children that were forked and have no task yet.
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
        let queue = self.members[place].queue;
        self.born += 1;
        self.members[place] = Member { queue, born: self.born, ..Member::default() };
    }

    /// A child of a process, and what it runs.
    pub(crate) fn add_child(&mut self, parent: u32, child: u32, program: Box<dyn Program>) {
        self.add(child);
        let policy = self.policy(parent).policy;
        let member = self.member(child);
        (member.parent, member.forked) = (Some(parent), true);
        member.policy = TaskPolicy { policy, turn: 0 };
        self.member(parent).children.push(child);
        self.births.push(Birth { process: child, program });
    }

    fn member(&mut self, process: u32) -> &mut Member {
        &mut self.members[process as usize]
    }

    /// Where a process's memory is to be.
    #[inline(always)]
    pub(crate) fn policy(&self, process: u32) -> TaskPolicy {
        self.members[process as usize].policy
    }

    /// Says so.
    pub(crate) fn set_policy(&mut self, process: u32, policy: TaskPolicy) {
        self.member(process).policy = policy;
    }

    /// The process's task.
    pub(crate) fn set_task(&mut self, process: u32, task: TaskId) {
        self.member(process).task = Some(task);
    }

    /// Whether a process has to end before its next operation.
    #[inline(always)]
    pub(crate) fn is_killed(&self, process: u32) -> bool {
        self.members[process as usize].killed
    }

    /// Whether it is a process that has not ended.
    pub(crate) fn is_alive(&self, process: u32) -> bool {
        self.members.get(process as usize).is_some_and(|m| !m.ended && m.task.is_some())
    }

    /// Has a process end as soon as it can. False if there is no such process any more.
    pub(crate) fn kill(&mut self, process: u32) -> bool {
        let Some(m) = self.members.get_mut(process as usize).filter(|m| !m.ended) else { return false };
        m.killed = true;
        self.kills.extend(m.task);
        true
    }

    /// All that have not ended, oldest first.
    pub(crate) fn alive(&self) -> Vec<u32> {
        let mut all: Vec<u32> = (0..self.members.len() as u32).filter(|process| self.is_alive(*process)).collect();
        all.sort_by_key(|process| self.members[*process as usize].born);
        all
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
        (m.ended, m.task) = (true, None);
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

    /// Whether a process is a child of another that has not been waited for.
    pub(crate) fn is_child(&self, parent: u32, child: u32) -> bool {
        self.members[parent as usize].children.contains(&child)
    }

    /// A child, this one if it is named, that has ended, and whether it was killed: it is gone by that. `None` while there
    /// is none.
    pub(crate) fn reap(&mut self, parent: u32, child: Option<u32>) -> Option<(u32, bool)> {
        let children = &self.members[parent as usize].children;
        let is_it = |c: &u32| self.members[*c as usize].ended && child.is_none_or(|child| child == *c);
        let place = children.iter().position(is_it)?;
        let child = self.member(parent).children.remove(place);
        Some((child, self.member(child).killed))
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
