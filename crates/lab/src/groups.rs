//! Memory control groups of a run: whether machine and kernel can have them, what the machine is to
//! make, and what it counts of each.
//!
//! Figures have the names of the group's files (`memory.current`, `memory.events`, `memory.stat`)
//! or of the machine's counters (`/proc/vmstat`), and cover the group and all below it. What is a
//! number of pages there is a size at the end of the phase; everything else is counted within the
//! phase.

use kontig_mm::rules::GroupCharges;
use kontig_mm::{GroupId, GroupLimit, Profile};
use kontig_program::figure::Text;
use kontig_results::{Better, Figure, Reading};
use kontig_sim::{GroupEntry, GroupReport, Machine, MachineFile};
use kontig_workload::Group;

/// The built-in profiles whose control groups are known, the oldest first.
pub(crate) fn kernels() -> impl Iterator<Item = String> {
    kontig_profiles::all().filter(|p| p.groups.charges != GroupCharges::Unmodelled).map(|p| p.name)
}

/// Whether a machine and a kernel can have the groups.
///
/// # Errors
/// Why not, and what to choose.
pub(crate) fn can_be(groups: &[Group], machine: &MachineFile, profile: &Profile) -> Result<(), String> {
    if groups.is_empty() {
        return Ok(());
    }
    if !machine.has_disks() {
        let name = &machine.name;
        return Err(format!(
            "[[group]]: machine {name} has no [[disk]], so nothing is reclaimed: choose a machine with disks"
        ));
    }
    if profile.groups.charges == GroupCharges::Unmodelled {
        let known: Vec<String> = kernels().collect();
        return Err(format!(
            "[[group]]: the memory control groups of {} are not known: choose --profile {}",
            profile.name,
            known.join(" or ")
        ));
    }
    Ok(())
}

/// The number of a workload's group on its machine, where the root is the first.
pub(crate) fn id(group: usize) -> GroupId {
    GroupId::new(group as u16 + 1)
}

/// The groups for a machine to make.
pub(crate) fn entries(groups: &[Group]) -> Vec<GroupEntry> {
    let entry = |group: &Group| {
        let limits = [
            (GroupLimit::Max, group.max),
            (GroupLimit::High, group.high),
            (GroupLimit::Low, group.low),
            (GroupLimit::Min, group.min),
        ];
        GroupEntry {
            name: group.name.clone(),
            parent: group.parent.map_or(GroupId::ROOT, id),
            limits: limits.into_iter().filter_map(|(limit, pages)| Some((limit, pages?))).collect(),
        }
    };
    groups.iter().map(entry).collect()
}

/// A figure of each group.
struct Declared {
    name: &'static str,
    unit: &'static str,
    better: Better,
    /// Whether it is what the group has at the end, in pages; else what was counted.
    is_level: bool,
    of: fn(&GroupReport) -> u64,
}

const fn level(name: &'static str, of: fn(&GroupReport) -> u64) -> Declared {
    Declared { name, unit: "MiB", better: Better::Neither, is_level: true, of }
}

const fn count(name: &'static str, unit: &'static str, better: Better, of: fn(&GroupReport) -> u64) -> Declared {
    Declared { name, unit, better, is_level: false, of }
}

const DECLARED: [Declared; 17] = [
    level("memory.current", |g| g.memory.usage),
    level("memory.swap.current", |g| g.in_swap),
    level("anon", |g| g.anon),
    level("file", |g| g.file),
    count("events high", "times", Better::Neither, |g| g.events.high),
    count("events max", "times", Better::Neither, |g| g.events.max),
    count("events oom", "times", Better::Neither, |g| g.events.oom),
    count("events oom_kill", "processes", Better::Lower, |g| g.counts.oom_kill),
    count("pgscan", "pages", Better::Neither, |g| g.events.pgscan_direct + g.events.pgscan_kswapd),
    count("pgsteal", "pages", Better::Neither, |g| g.events.pgsteal_direct + g.events.pgsteal_kswapd),
    count("pswpin", "pages", Better::Lower, |g| g.counts.swapped_in),
    count("pswpout", "pages", Better::Lower, |g| g.counts.swapped_out),
    count("thp_fault_alloc", "huge pages", Better::Higher, |g| g.counts.thp_fault_alloc),
    count("thp_fault_fallback", "faults", Better::Neither, |g| g.counts.thp_fault_fallback),
    count("thp_fault_fallback_charge", "faults", Better::Neither, |g| g.counts.thp_fault_fallback_charge),
    count("thp_collapse_alloc", "huge pages", Better::Neither, |g| g.counts.thp_collapse_alloc),
    count("thp_split_page", "huge pages", Better::Lower, |g| g.counts.thp_split_page),
];

/// The values of all groups but the root, by name.
#[derive(Clone, Default)]
pub(crate) struct OfGroups(Vec<(String, [u64; DECLARED.len()])>);

impl OfGroups {
    /// Of a machine, since boot.
    pub(crate) fn of(m: &Machine) -> OfGroups {
        let values = |report: GroupReport| (report.name.clone(), DECLARED.map(|declared| (declared.of)(&report)));
        OfGroups(m.groups().into_iter().skip(1).map(values).collect())
    }

    pub(crate) fn since(&self, earlier: &OfGroups) -> OfGroups {
        let since = |(i, (name, now)): (usize, &(String, [u64; DECLARED.len()]))| {
            let before = earlier.0.get(i).map_or([0; DECLARED.len()], |(_, values)| *values);
            let value = |at: usize| if DECLARED[at].is_level { now[at] } else { now[at] - before[at] };
            (name.clone(), std::array::from_fn(value))
        };
        OfGroups(self.0.iter().enumerate().map(since).collect())
    }

    /// As figures, those of several phases together.
    pub(crate) fn figures(of: &[&OfGroups]) -> Vec<Reading> {
        let Some(last) = of.last() else { return Vec::new() };
        let mut figures = Vec::new();
        for (i, (name, at_end)) in last.0.iter().enumerate() {
            for (at, declared) in DECLARED.iter().enumerate() {
                let counted =
                    || of.iter().filter_map(|of| of.0.get(i)).map(|(_, values)| values[at]).sum::<u64>() as f64;
                let value = if declared.is_level { at_end[at] as f64 / 256.0 } else { counted() };
                let name: Text = format!("group {name}: {}", declared.name).into();
                let figure = Figure { better: declared.better, ..Figure::new(name, declared.unit) };
                figures.push(figure.read(value));
            }
        }
        figures
    }
}
