//! `/proc/vmstat` and `/proc/zoneinfo` of a simulated machine: all that prints them or computes
//! from them takes them from here.
//!
//! The machine counts files, swap and slabs; its engine counts the rest. Each counter is declared
//! where it is counted, with its unit, direction and words.

use crate::names::nearest;
use kontig_mm::{Counter, Wanted};
use kontig_procfs::{VmStat, ZoneInfo};
use kontig_results::Better;
use kontig_sim::Machine;
use std::collections::BTreeMap;

/// Counters that were dropped or renamed before the oldest kernel whose text is known.
const OLDER: &[&str] = &["kswapd_skip_congestion_wait", "pgrescued"];

/// Everything a machine counts at one moment, under each kernel's name for it.
#[derive(Clone)]
pub(crate) struct VmCounters(Vec<(Counter, u64)>);

impl VmCounters {
    pub(crate) fn of(m: &Machine) -> VmCounters {
        // Both count nr_file_pages, but the engine does not know of the swap cache.
        let mut all: Vec<(Counter, u64)> = m.counters().collect();
        let machines = all.len();
        for (counter, value) in VmStat::counted(m.memory()) {
            if all[..machines].iter().all(|(known, _)| known.name != counter.name) {
                all.push((counter, value));
            }
        }
        VmCounters(all)
    }

    /// `None` if the machine does not count it.
    pub(crate) fn get(&self, name: &str) -> Option<u64> {
        self.find(name).map(|(_, value)| value)
    }

    /// A counter with its declaration.
    pub(crate) fn find(&self, name: &str) -> Option<(Counter, u64)> {
        self.0.iter().find(|(counter, _)| counter.name == name).copied()
    }

    /// The text as the machine's kernel prints it; what the machine does not count is 0.
    pub(crate) fn text(&self, m: &Machine) -> VmStat {
        let value = |name: &str| match name {
            // The zones count it, and nobody else.
            "nr_zone_write_pending" => Some(self.get("nr_dirty")? + self.get("nr_writeback")?),
            name => self.get(name),
        };
        VmStat::of_kernel(m.memory().profile(), |name| value(name).unwrap_or(0))
    }

    /// How far each counter rose since `before`, a snapshot of the same machine; of a level, its
    /// value now.
    pub(crate) fn since(&self, before: &VmCounters) -> BTreeMap<String, u64> {
        let of = |(counter, now): &(Counter, u64), before: u64| if counter.is_level { *now } else { now - before };
        let each = self.0.iter().zip(&before.0);
        each.map(|(now, (_, before))| (now.0.name.to_string(), of(now, *before))).collect()
    }
}

/// `/proc/zoneinfo` of a simulated machine, whose counters add up to those of `/proc/vmstat`.
pub(crate) fn zoneinfo(m: &Machine) -> ZoneInfo {
    let of_zones = m.counts_of_zones();
    ZoneInfo::with(m.memory(), |zone, name| of_zones.get(zone.index())?.get(name))
}

/// The files of `/proc` that a simulated machine has, with their paths.
pub(crate) fn proc_files(m: &Machine) -> impl Iterator<Item = (String, String)> {
    kontig_procfs::from_mm::files(m.memory()).into_iter().map(|(path, text)| match path.as_str() {
        "vmstat" => (path, VmCounters::of(m).text(m).to_string()),
        "zoneinfo" => (path, zoneinfo(m).to_string()),
        _ => (path, text),
    })
}

/// The counters a simulated machine can have, in no kernel's order. Those of files and swap need a
/// disk.
pub fn declared() -> impl Iterator<Item = Counter> {
    let machines = |name: &str| Machine::declared_counters().any(|counter| counter.name == name);
    Machine::declared_counters().chain(VmStat::declared().filter(move |counter| !machines(counter.name)))
}

/// A counter's direction, as figures have it.
pub fn better(counter: &Counter) -> Better {
    match counter.wanted {
        Wanted::More => Better::Higher,
        Wanted::Fewer => Better::Lower,
        Wanted::Either => Better::Neither,
    }
}

/// Whether any kernel has a counter of this name. A formula may name it; whether the simulated
/// machine counts it shows in the runs.
pub(crate) fn is_known(name: &str) -> bool {
    OLDER.contains(&name) || VmStat::of_all_kernels().any(|known| known == name)
}

/// The message for a counter that no kernel has.
pub(crate) fn unknown(name: &str) -> String {
    let known: Vec<&str> = VmStat::of_all_kernels().chain(OLDER.iter().copied()).collect();
    nearest("counter", name, &known)
        .unwrap_or_else(|| format!("unknown counter '{name}': no kernel has it in /proc/vmstat"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_of_the_machine_and_of_old_tables_is_known() {
        let declared: Vec<Counter> = declared().collect();
        for (i, counter) in declared.iter().enumerate() {
            // Nothing is ever allocated from Device, which none of the kernels here lists.
            assert!(is_known(counter.name) || counter.name.ends_with("_device"), "{}", counter.name);
            assert!(declared[..i].iter().all(|other| other.name != counter.name), "{} twice", counter.name);
            let words = counter.words;
            assert!(!words.is_empty() && !words.starts_with(' ') && !words.ends_with('.'), "{}: {words}", counter.name);
        }
        assert!(declared.len() > 100 && declared.iter().any(|counter| counter.name == "pswpin"));
        assert!(is_known("pginodesteal") && is_known("allocstall") && is_known("pgscan_direct_dma32"));
        let newer: Vec<&str> = VmStat::of_all_kernels().collect();
        assert_eq!(OLDER.iter().find(|name| newer.contains(name)), None, "it is no longer only an old one");
    }

    #[test]
    fn targets_and_counters_agree_on_what_is_better() {
        let mut compared = 0;
        for experiment in crate::catalog::experiments().expect("they are built in") {
            let Some(target) = experiment.target else { continue };
            for row in crate::catalog::target(&target).expect("it is built in").0.row {
                let counter = declared().find(|counter| Some(counter.name) == row.formula.as_deref());
                if let Some((counter, row_better)) = counter.zip(row.better) {
                    assert_eq!(better(&counter), row_better, "{target}: {}", row.name);
                    compared += 1;
                }
            }
        }
        assert!(compared > 50, "{compared}");
    }

    #[test]
    fn an_unknown_counter_is_answered_with_the_nearest() {
        assert_eq!(unknown("pswapin"), "unknown counter 'pswapin': did you mean 'pswpin'?");
    }
}
