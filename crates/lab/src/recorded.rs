//! Recordings of a real host as workloads: allocations from a trace of `kmem:mm_page_alloc` and
//! `mm_page_free` (`trace`), or a process's memory from copies of its `/proc/PID/smaps`
//! (`smaps`).
//!
//! What a recording cannot say, and what a replay does otherwise, is counted, and said.

mod live;
mod smaps;
mod trace;

use kontig_program::{Gfp, HPAGE_PMD_NR, Order};
use kontig_workload::trace::recording::Allocation;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A recording, ready to be written as a workload.
#[derive(Default)]
pub struct Recording {
    /// By the process's number, its name and allocations.
    processes: BTreeMap<u32, (String, Vec<Allocation>)>,
    /// The sets of flags that allocations name.
    flags: Vec<Gfp>,
    /// Remarks on what could not be taken over, a line each.
    pub notes: Vec<String>,
}

/// The value of `thp.defrag` with which a fault that `madvise` advises asks for a huge page so.
fn defrag(gfp: Gfp) -> &'static str {
    match () {
        () if gfp.has(Gfp::DIRECT_RECLAIM) => "madvise",
        () if gfp.has(Gfp::KSWAPD_RECLAIM) => "defer",
        () => "never",
    }
}

impl Recording {
    /// Adds an allocation of a process; its place among that process's.
    fn take(&mut self, pid: u32, at_us: u64, order: Order, gfp: Gfp) -> usize {
        let known = self.flags.iter().position(|known| *known == gfp);
        let flags = known.unwrap_or_else(|| {
            self.flags.push(gfp);
            self.flags.len() - 1
        });
        let (_, allocations) = self.processes.entry(pid).or_default();
        allocations.push(Allocation::new(at_us, order, flags));
        allocations.len() - 1
    }

    /// Pages of an allocation, counted from its first, are freed.
    fn free(&mut self, pid: u32, place: usize, first: u32, pages: u32, at_us: u64) {
        let of = self.processes.get_mut(&pid).and_then(|(_, allocations)| allocations.get_mut(place));
        if let Some(allocation) = of {
            allocation.free(first, pages, at_us);
        }
    }

    fn each(&self) -> impl Iterator<Item = &Allocation> {
        self.processes.values().flat_map(|(_, allocations)| allocations)
    }

    /// The allocations, of all processes.
    pub fn allocations(&self) -> usize {
        self.each().count()
    }

    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// The setting with which most huge pages ask as they did in the recording, and how many asked
    /// otherwise: a machine has one for all.
    fn defrag(&self) -> (&'static str, usize) {
        let huge = self.each().filter(|allocation| allocation.pages() == HPAGE_PMD_NR);
        let huge = huge.map(|allocation| self.flags[allocation.flags]).filter(|gfp| gfp.has(Gfp::MOVABLE));
        let mut asked: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for gfp in huge {
            let (all, tries_once) = asked.entry(defrag(gfp)).or_default();
            *all += 1;
            // Each is tried once on its own node first, whatever the setting.
            *tries_once += usize::from(gfp.has(Gfp::NORETRY) && !gfp.has(Gfp::THISNODE));
        }
        let all: usize = asked.values().map(|(all, _)| all).sum();
        let most = asked.into_iter().max_by_key(|(_, (all, _))| *all);
        most.map_or(("madvise", 0), |(name, (of_it, tries_once))| (name, all - of_it + tries_once))
    }

    /// The text of the workload's file.
    pub fn workload(&self, of: &str, machine: &str) -> String {
        let quoted = |text: &str| toml::Value::String(text.into()).to_string();
        let summary =
            format!("as recorded in {of}; allocations: {}, processes: {}", self.allocations(), self.processes());
        let mut text = format!("# Written by 'kontig workload' from {}.\n", of.escape_debug());
        self.notes.iter().for_each(|note| text += &format!("# {}\n", note.escape_debug()));
        let flags: Vec<String> = self.flags.iter().map(ToString::to_string).collect();
        text += &format!(
            "summary = {}\nmachine = {}\nsysctls = {{ \"thp.enabled\" = \"madvise\", \"thp.defrag\" = \"{}\" }}\n\n\
             [[phase]]\nname = \"measure\"\nmeasured = true\n\n\
             [[phase.task]]\nname = \"recorded\"\ncopies = {}\n\n\
             [phase.task.run]\nkind = \"trace\"\nflags = {}\n",
            quoted(&summary),
            quoted(machine),
            self.defrag().0,
            self.processes(),
            toml::Value::from(flags),
        );
        for (pid, (name, allocations)) in &self.processes {
            let name = if *pid == 0 { name.clone() } else { format!("{name} {pid}") };
            text += &format!("\n[[phase.task.run.process]]\nname = {}\nallocations = \"\"\"\n", quoted(&name));
            // Writing to a text cannot fail.
            allocations.iter().for_each(|allocation| _ = writeln!(text, "{allocation}"));
            text += "\"\"\"\n";
        }
        text
    }
}
