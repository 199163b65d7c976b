//! Effect of a sysctl on a real kernel and in the laboratory: a pattern without and with it, on
//! both sides.
//!
//! A figure is within the spread if the laboratory's runs and the kernel's overlap. A sysctl
//! changes a figure if the runs with it and without it do not overlap; then both sides must agree
//! on the direction.

use super::compare::Spread;
use super::{State, counted};
use std::cmp::Ordering;

/// A figure: its name, its unit, and its value for a run.
struct Figure {
    name: &'static str,
    of: fn(&Run<'_>) -> Option<f64>,
}

/// Counters of a run, from the first phase to the last.
struct Run<'a> {
    states: &'a [State],
}

impl Run<'_> {
    fn counted(&self, counter: &str) -> Option<f64> {
        counted(self.states, counter)
    }

    fn sum(&self, counters: &[&str]) -> Option<f64> {
        counters.iter().map(|counter| self.counted(counter)).sum()
    }

    fn less(&self, all: &str, part: &str) -> Option<f64> {
        Some(self.counted(all)? - self.counted(part)?)
    }
}

const ALLOCSTALL: [&str; 4] = ["allocstall_dma", "allocstall_dma32", "allocstall_normal", "allocstall_movable"];

/// All figures, in the order shown.
const FIGURES: &[Figure] = &[
    Figure {
        name: "huge pages obtained, % of those asked for",
        of: |run| {
            let obtained = run.counted("thp_fault_alloc")?;
            let asked = obtained + run.counted("thp_fault_fallback")?;
            (asked > 0.0).then(|| 100.0 * obtained / asked)
        },
    },
    Figure { name: "stalls in direct reclaim", of: |run| run.sum(&ALLOCSTALL) },
    Figure { name: "stalls in direct compaction", of: |run| run.counted("compact_stall") },
    Figure {
        name: "direct compactions that gave a page, %",
        of: |run| {
            let stalls = run.counted("compact_stall")?;
            (stalls > 0.0).then(|| run.counted("compact_success").map(|n| 100.0 * n / stalls))?
        },
    },
    Figure {
        name: "pages scanned for migration by direct compaction",
        of: |run| run.less("compact_migrate_scanned", "compact_daemon_migrate_scanned"),
    },
    Figure {
        name: "pages scanned for room by direct compaction",
        of: |run| run.less("compact_free_scanned", "compact_daemon_free_scanned"),
    },
    Figure { name: "kcompactd woken", of: |run| run.counted("compact_daemon_wake") },
    Figure {
        name: "pages scanned for migration by kcompactd",
        of: |run| run.counted("compact_daemon_migrate_scanned"),
    },
    Figure { name: "pages scanned for room by kcompactd", of: |run| run.counted("compact_daemon_free_scanned") },
    Figure { name: "kcompactd on the CPU, ms", of: |run| Some(run.counted("kcompactd_ns")? / 1e6) },
    Figure { name: "kswapd's balancings", of: |run| run.counted("pageoutrun") },
    Figure { name: "pages scanned by kswapd", of: |run| run.counted("pgscan_kswapd") },
    Figure { name: "pages reclaimed by kswapd", of: |run| run.counted("pgsteal_kswapd") },
    Figure { name: "kswapd on the CPU, ms", of: |run| Some(run.counted("kswapd_ns")? / 1e6) },
    Figure { name: "pages scanned by direct reclaim", of: |run| run.counted("pgscan_direct") },
    Figure { name: "pages reclaimed by direct reclaim", of: |run| run.counted("pgsteal_direct") },
    Figure { name: "pages swapped out", of: |run| run.counted("pswpout") },
    Figure { name: "refaults of files' pages", of: |run| run.counted("workingset_refault_file") },
    Figure { name: "pages taken from another type's blocks", of: |run| run.counted("extfrag") },
];

/// A figure without and with the sysctl.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pair {
    pub without: Spread,
    pub with: Spread,
}

impl Pair {
    fn of(figure: &Figure, without: &[&[State]], with: &[&[State]]) -> Option<Pair> {
        let over = |runs: &[&[State]]| {
            let values: Option<Vec<f64>> = runs.iter().map(|states| (figure.of)(&Run { states })).collect();
            Spread::over(&values?)
        };
        Some(Pair { without: over(without)?, with: over(with)? })
    }

    /// Direction of the change; `Equal` if the runs overlap.
    pub fn change(&self) -> Ordering {
        if overlap(self.without, self.with) { Ordering::Equal } else { self.with.mean.total_cmp(&self.without.mean) }
    }
}

/// A figure on both sides.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    pub figure: &'static str,
    pub kernel: Pair,
    /// `None` if the laboratory did not run, or does not count it.
    pub lab: Option<Pair>,
}

impl Change {
    /// Whether it rises on one side, and falls on the other.
    pub fn is_opposite(&self) -> bool {
        let lab = self.lab.map_or(Ordering::Equal, |lab| lab.change());
        lab != Ordering::Equal && lab == self.kernel.change().reverse()
    }
    /// Whether the laboratory's runs overlap with the kernel's, without and with the sysctl.
    pub fn within(&self) -> Option<[bool; 2]> {
        let lab = self.lab?;
        Some([overlap(self.kernel.without, lab.without), overlap(self.kernel.with, lab.with)])
    }
}

/// Whether two ranges overlap.
fn overlap(a: Spread, b: Spread) -> bool {
    a.least <= b.most && b.least <= a.most
}

/// Every figure of a pattern without and with a sysctl, from one run a seed on the kernel and in
/// the laboratory. Figures without a value on the kernel are left out.
pub fn changes(kernel: [&[&[State]]; 2], lab: [&[&[State]]; 2]) -> Vec<Change> {
    let change = |figure: &Figure| {
        let kernel = Pair::of(figure, kernel[0], kernel[1])?;
        Some(Change { figure: figure.name, kernel, lab: Pair::of(figure, lab[0], lab[1]) })
    };
    FIGURES.iter().filter_map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_procfs::Counters;

    fn run(counts: &[(&str, u64)]) -> Vec<State> {
        let state = |of: &dyn Fn(u64) -> u64| State {
            phase: "p".into(),
            took_ns: 0,
            counters: counts.iter().map(|(name, n)| (name.to_string(), of(*n))).collect::<Counters>(),
        };
        vec![state(&|_| 0), state(&|n| n)]
    }

    fn stalls(of: [&[u64]; 4]) -> Change {
        let runs = of.map(|counts| counts.iter().map(|n| run(&[("compact_stall", *n)])).collect::<Vec<_>>());
        let [a, b, c, d] = runs.each_ref().map(|runs| runs.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let all = changes([&a, &b], [&c, &d]);
        all.into_iter().find(|change| change.figure == "stalls in direct compaction").expect("it was counted")
    }

    #[test]
    fn a_setting_changes_what_no_run_without_it_has() {
        let change = stalls([&[90, 110], &[20, 40], &[80, 85], &[84, 120]]);
        assert_eq!((change.kernel.change(), change.lab.expect("counted").change()), (Ordering::Less, Ordering::Equal));
        assert_eq!(change.within(), Some([false, false]));
        let change = stalls([&[90, 110], &[20, 40], &[80, 91], &[40]]);
        assert_eq!(change.lab.expect("counted").change(), Ordering::Less);
        assert_eq!(change.within(), Some([true, true]));
    }

    #[test]
    fn the_share_of_huge_pages_is_of_those_asked_for() {
        let asked = |obtained, fallback| run(&[("thp_fault_alloc", obtained), ("thp_fault_fallback", fallback)]);
        let (without, with) = (asked(75, 25), asked(90, 10));
        let all = changes([&[&without], &[&with]], [&[], &[]]);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].kernel.without.mean, all[0].kernel.with.mean, all[0].lab), (75.0, 90.0, None));
    }

    #[test]
    fn counts_of_zero_have_no_share() {
        let nothing = run(&[("thp_fault_alloc", 0), ("thp_fault_fallback", 0)]);
        assert!(changes([&[&nothing], &[&nothing]], [&[], &[]]).is_empty());
    }
}
