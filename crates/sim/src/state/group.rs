//! Memory control groups as a machine has them: their names, and what the engine does not count of
//! each.
//!
//! A process is in one group, that of its address space; a fork inherits it. Its pages and those
//! that it reads into the page cache are charged there. Page tables and slab objects are charged
//! to nobody.

use kontig_mm::{GroupId, GroupLimit};
use kontig_program::SplitMix64;

/// A group that a machine is to have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupEntry {
    pub name: String,
    /// The group it is in; one made before it.
    pub parent: GroupId,
    /// Those that are set, in pages.
    pub limits: Vec<(GroupLimit, u64)>,
}

/// Counts of the pages and processes of one group, without those below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GroupCounts {
    /// `pswpin`: its pages read from swap.
    pub swapped_in: u64,
    /// `pswpout`: its pages written to swap.
    pub swapped_out: u64,
    /// `thp_fault_alloc`: huge pages given to its faults.
    pub thp_fault_alloc: u64,
    /// `thp_fault_fallback`: its faults that wanted a huge page and got a small one.
    pub thp_fault_fallback: u64,
    /// `thp_fault_fallback_charge`: those of them for which the charge failed.
    pub thp_fault_fallback_charge: u64,
    /// `thp_collapse_alloc`: huge pages allocated by khugepaged and charged to it.
    pub thp_collapse_alloc: u64,
    /// `thp_split_page`: its huge pages split by reclaim or a write to a shared one.
    pub thp_split_page: u64,
    /// `oom_kill`: its processes that the OOM killer has killed.
    pub oom_kill: u64,
}

impl GroupCounts {
    /// Adds those of a group below it.
    pub(crate) fn add(&mut self, below: &GroupCounts) {
        let GroupCounts {
            swapped_in,
            swapped_out,
            thp_fault_alloc,
            thp_fault_fallback,
            thp_fault_fallback_charge,
            thp_collapse_alloc,
            thp_split_page,
            oom_kill,
        } = self;
        *swapped_in += below.swapped_in;
        *swapped_out += below.swapped_out;
        *thp_fault_alloc += below.thp_fault_alloc;
        *thp_fault_fallback += below.thp_fault_fallback;
        *thp_fault_fallback_charge += below.thp_fault_fallback_charge;
        *thp_collapse_alloc += below.thp_collapse_alloc;
        *thp_split_page += below.thp_split_page;
        *oom_kill += below.oom_kill;
    }
}

/// The names and counts of all groups, the root first; empty on a machine without groups.
#[derive(Clone, Default)]
pub(crate) struct GroupsOfMachine {
    names: Vec<String>,
    counts: Vec<GroupCounts>,
    /// The source of all that a kernel draws at random: the same in every run.
    draws: SplitMix64,
}

impl GroupsOfMachine {
    /// The root and these.
    pub(crate) fn new(groups: &[GroupEntry]) -> GroupsOfMachine {
        let names: Vec<String> =
            std::iter::once("/".to_string()).chain(groups.iter().map(|group| group.name.clone())).collect();
        GroupsOfMachine { counts: vec![GroupCounts::default(); names.len()], names, draws: SplitMix64::new(0) }
    }

    /// A number below this.
    pub(crate) fn draw(&mut self, below: u32) -> u32 {
        self.draws.below(below)
    }

    /// The name that its file gives it.
    pub(crate) fn name(&self, group: GroupId) -> &str {
        self.names.get(group.index()).map_or("/", |name| name)
    }

    pub(crate) fn counts(&self, group: GroupId) -> GroupCounts {
        self.counts.get(group.index()).copied().unwrap_or_default()
    }

    /// Counts something of a group, where there are groups.
    #[inline(always)]
    pub(crate) fn count(&mut self, group: GroupId, what: impl FnOnce(&mut GroupCounts)) {
        if let Some(counts) = self.counts.get_mut(group.index()) {
            what(counts);
        }
    }
}
