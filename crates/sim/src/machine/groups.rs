//! Memory control groups of a machine: made before anything runs, entered by programs before they
//! run, and reported.

use crate::base::id::TaskId;
use crate::machine::Machine;
use crate::state::group::{GroupCounts, GroupEntry, GroupsOfMachine};
use crate::task::Body;
use kontig_mm::state::{GroupEvents, PageCounter};
use kontig_mm::{Backing, GroupId, LruList, SetLimit, Step};

/// The memory and the history of a group and those below it.
#[derive(Clone, Debug)]
pub struct GroupReport {
    /// `/` for the root.
    pub name: String,
    /// Its counter: what they are charged, and its limits, in pages.
    pub memory: PageCounter,
    pub events: GroupEvents,
    pub counts: GroupCounts,
    /// Their pages on lists, anonymous and of files.
    pub anon: u64,
    pub file: u64,
    /// Their pages that have a place in swap.
    pub in_swap: u64,
}

impl GroupReport {
    /// Adds a group below it.
    fn add(&mut self, below: &GroupReport) {
        self.events.add(&below.events);
        self.counts.add(&below.counts);
        self.anon += below.anon;
        self.file += below.file;
        self.in_swap += below.in_swap;
    }
}

impl Machine {
    /// Makes memory control groups, each after the one that it is in, and sets their limits.
    ///
    /// # Errors
    /// Why the machine can have none, in one line.
    pub fn make_groups(&mut self, groups: &[GroupEntry]) -> Result<(), String> {
        let parents: Vec<GroupId> = groups.iter().map(|group| group.parent).collect();
        self.kernel.mem.enable_groups(&parents)?;
        self.kernel.pages.groups = GroupsOfMachine::new(groups);
        for (number, group) in (1..).zip(groups) {
            for (limit, pages) in &group.limits {
                let cpu = self.kernel.pages.cpu;
                let mut set = SetLimit::new(cpu, GroupId::new(number), *limit, *pages);
                // Nothing is charged yet, so nothing is reclaimed.
                let step = set.step(&mut self.kernel.mem, &mut self.kernel.pages);
                debug_assert_eq!(step, Step::Done(true));
            }
        }
        Ok(())
    }

    /// Puts a spawned program that has not run yet into a group, with all that it will fork.
    ///
    /// # Panics
    /// If there is no such group.
    pub fn set_group(&mut self, id: TaskId, group: GroupId) {
        assert!(group.index() < self.kernel.mem.groups().len(), "group {} has been made", group.index());
        if let Body::Process(process) = &self.tasks[id.index()].body {
            self.kernel.pages.spaces.set_group(process.id(), group);
            self.kernel.mem.lru_gen_migrate_mm(process.id(), group);
        }
    }

    /// All groups, the root first; empty where there are none.
    pub fn groups(&self) -> Vec<GroupReport> {
        let groups = self.kernel.mem.groups();
        if groups.is_empty() {
            return Vec::new();
        }
        let in_swap = self.kernel.pages.swap.as_ref().map(|swap| swap.area.used_by_group(groups.len()));
        let in_swap = |group: GroupId| in_swap.as_ref().map_or(0, |used| used[group.index()]);
        let mut reports: Vec<GroupReport> =
            groups.ids().map(|group| self.report_group(group, in_swap(group))).collect();
        // A group comes after the one it is in: from the last on, each is complete when its turn
        // comes.
        for group in groups.ids().rev() {
            if let Some(parent) = groups.get(group).parent {
                let below = reports[group.index()].clone();
                reports[parent.index()].add(&below);
            }
        }
        reports
    }

    /// The report of a group by itself.
    fn report_group(&self, id: GroupId, in_swap: u64) -> GroupReport {
        let (mem, pages) = (&self.kernel.mem, &self.kernel.pages);
        let group = mem.groups().get(id);
        let listed = |backing| {
            let lists = LruList::EVICTABLE.into_iter().filter(|list| Backing::of(*list) == backing);
            let of_node = |node| {
                let vec = &mem.lru().vecs()[mem.lruvec_of_group(id, node).index()];
                let own = |list: LruList| vec.in_group.as_ref().map_or(0, |counted| counted.own[list.index()]);
                lists.clone().map(own).sum::<i64>()
            };
            let all: i64 = mem.nodes().iter().map(|node| of_node(node.id)).sum();
            all.max(0) as u64
        };
        GroupReport {
            name: pages.groups.name(id).to_string(),
            memory: group.memory.clone(),
            events: group.events,
            counts: pages.groups.counts(id),
            anon: listed(Backing::Anon),
            file: listed(Backing::File),
            in_swap,
        }
    }
}
