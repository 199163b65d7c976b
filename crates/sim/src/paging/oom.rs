//! The OOM killer: ends the largest process when nothing more can be reclaimed.
//!
//! The victim is the process with the most pages in memory, in swap and in page tables
//! (`oom_badness`); of equals, the younger one. Nobody else is killed until it has gone. It ends
//! itself at its next turn; the kernel's reaper, which frees its memory even where it cannot run,
//! is left out. The caller retries after a tick. Where the limit of a memory control group is in
//! the way, only processes in that group and below it are to blame. Source: `mm/oom_kill.c` of 5.10
//! to 7.2.

use crate::base::context::Context;
use crate::base::error::SimError;
use crate::kernel::Kernel;
use crate::state::process::family::OomKill;
use kontig_mm::{GroupId, MemPolicy, NodeSet, VmEvent};
use kontig_program::Process;

/// The process that must go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Blame {
    /// Another process, which is ending.
    Another,
    /// The caller is the victim; its request fails.
    Caller,
    /// There is nobody to kill.
    Nobody,
}

impl Kernel {
    /// Chooses and kills a process for a request that may not fail and found nothing more to
    /// reclaim on `nodes`. Processes bound to other nodes are spared.
    #[cold]
    #[inline(never)]
    pub(crate) fn out_of_memory(&mut self, c: &Context, nodes: NodeSet) -> Blame {
        if c.process.is_some_and(|asker| self.family.is_killed(asker)) {
            return Blame::Caller;
        }
        let alive = self.family.alive();
        if alive.iter().any(|process| self.family.is_oom_victim(*process)) {
            return Blame::Another;
        }
        let may_have_some = |process: &u32| {
            self.family.policies(*process).any(|of_thread| match of_thread.policy {
                MemPolicy::Bind(bound) => !bound.and(nodes).is_empty(),
                _ => true,
            })
        };
        let candidates = alive.into_iter().filter(may_have_some).collect();
        self.kill_largest(c, candidates, None)
    }

    /// The same for a charge that finds no room below the limit of a group.
    #[cold]
    #[inline(never)]
    pub(crate) fn out_of_memory_in(&mut self, c: &Context, group: GroupId) -> Blame {
        if c.process.is_some_and(|asker| self.family.is_killed(asker)) {
            return Blame::Caller;
        }
        let is_in = |process: &u32| self.mem.groups().is_within(self.pages.spaces.group_of(*process), group);
        let candidates: Vec<u32> = self.family.alive().into_iter().filter(is_in).collect();
        if candidates.iter().any(|process| self.family.is_oom_victim(*process)) {
            return Blame::Another;
        }
        self.kill_largest(c, candidates, Some(group))
    }

    /// Kills the largest of these, the youngest last.
    fn kill_largest(&mut self, c: &Context, candidates: Vec<u32>, over: Option<GroupId>) -> Blame {
        // A process without memory, like a driver, is as little to blame as a kernel thread.
        let badness = |process: &u32| self.pages.spaces.size(*process).badness();
        let largest = candidates.into_iter().filter(|p| badness(p) > 0).max_by_key(badness);
        // A group may be full of pages of files: then the caller goes, if it is in the group.
        let is_in = |process: &u32| {
            over.is_some_and(|over| self.mem.groups().is_within(self.pages.spaces.group_of(*process), over))
        };
        let Some(victim) = largest.or(c.process.filter(is_in)) else {
            return Blame::Nobody;
        };
        let size = self.pages.spaces.size(victim);
        self.mem.vmstat_mut().add(VmEvent::OomKill, 1);
        let group = self.pages.spaces.group_of(victim);
        self.pages.groups.count(group, |counts| counts.oom_kill += 1);
        self.family.oom_kill(victim);
        let process = Process::new(victim);
        let kill = OomKill { at_ns: c.now, process, rss: size.in_memory, page_tables: size.page_tables };
        self.oom_kills.push(kill);
        if self.family.is_root(victim) {
            // It has no parent that could learn of it, so the run ends with an error.
            let what = match over {
                Some(over) => format!(
                    "the limit of group {}: process {victim}, with {} pages, is killed for that",
                    self.pages.groups.name(over),
                    size.in_memory
                ),
                None => format!("process {victim}, with {} pages, is killed for that", size.in_memory),
            };
            self.failed = Some(SimError::OutOfMemory { what });
        }
        if c.process == Some(victim) { Blame::Caller } else { Blame::Another }
    }
}
