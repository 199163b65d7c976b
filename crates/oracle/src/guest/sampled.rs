//! A build on a real kernel and in the laboratory: huge faults, free huge pages over time, swap and
//! stalls, as means and ranges over seeds.

use super::compare::{Spread, Verdict};
use super::samples::Sample;
use super::{State, counted};
use std::ops::RangeInclusive;

/// Ratio of the laboratory's mean to the kernel's that counts as the same.
pub const WITHIN: RangeInclusive<f64> = 0.75..=1.25;
/// Fewer free huge pages than this are few: about one for each compiler. Chosen, not measured.
const FEW: u64 = 8;

/// A run on one side.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// At the start and at the end.
    pub states: &'a [State],
    pub samples: &'a [Sample],
}

impl Run<'_> {
    fn counted(&self, counter: &str) -> Option<f64> {
        counted(self.states, counter)
    }

    fn stalls(&self) -> Option<f64> {
        let names = self.states.first()?.counters.names().filter(|name| name.starts_with("allocstall_"));
        names.map(|name| self.counted(name)).sum()
    }

    fn huge_faults(&self) -> Option<f64> {
        Some(self.counted("thp_fault_alloc")? + self.counted("thp_fault_fallback")?)
    }

    /// Samples with free huge pages below a number, in percent.
    fn below(&self, pages: u64) -> Option<f64> {
        let below = self.samples.iter().filter(|sample| sample.free_in_last_zone() < pages).count();
        (!self.samples.is_empty()).then(|| 100.0 * below as f64 / self.samples.len() as f64)
    }
}

struct Figure {
    name: &'static str,
    of: fn(&Run<'_>) -> Option<f64>,
}

/// All figures, in the order shown.
const FIGURES: [Figure; 11] = [
    Figure { name: "huge faults", of: |run| run.huge_faults() },
    Figure {
        name: "of them failed, %",
        of: |run| {
            let all = run.huge_faults()?;
            (all > 0.0).then(|| run.counted("thp_fault_fallback").map(|failed| 100.0 * failed / all))?
        },
    },
    Figure {
        name: "free huge pages, mean of samples",
        of: |run| {
            let sum: u64 = run.samples.iter().map(Sample::free_in_last_zone).sum();
            (!run.samples.is_empty()).then(|| sum as f64 / run.samples.len() as f64)
        },
    },
    Figure { name: "samples with fewer than 8, %", of: |run| run.below(FEW) },
    Figure { name: "samples without one, %", of: |run| run.below(1) },
    Figure {
        name: "pages swapped out, zeros included",
        // Some kernels count pages of zeros apart, which reach no disk.
        of: |run| Some(run.counted("pswpout")? + run.counted("swpout_zero").unwrap_or(0.0)),
    },
    Figure { name: "pages swapped in", of: |run| run.counted("pswpin") },
    Figure { name: "stalls in direct reclaim", of: |run| run.stalls() },
    Figure { name: "pages scanned by kswapd", of: |run| run.counted("pgscan_kswapd") },
    Figure { name: "pages scanned by direct reclaim", of: |run| run.counted("pgscan_direct") },
    Figure { name: "refaults of files' pages", of: |run| run.counted("workingset_refault_file") },
];

/// A figure on both sides.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub figure: &'static str,
    pub kernel: Spread,
    /// `None` if the laboratory did not run, or does not count it.
    pub lab: Option<Spread>,
}

impl Row {
    /// The laboratory's mean divided by the kernel's; `None` if that is zero.
    pub fn ratio(&self) -> Option<f64> {
        self.lab?.over_mean(self.kernel)
    }

    /// Judges the row by [`WITHIN`].
    pub fn verdict(&self) -> Verdict {
        Verdict::of(self.kernel, self.lab, WITHIN)
    }
}

/// Every figure of a build, from one run a seed on each side. Figures without a value on the kernel
/// are left out.
pub fn rows(kernel: &[Run<'_>], lab: &[Run<'_>]) -> Vec<Row> {
    let over = |runs: &[Run<'_>], figure: &Figure| {
        let values: Option<Vec<f64>> = runs.iter().map(|run| (figure.of)(run)).collect();
        Spread::over(&values?)
    };
    let row =
        |figure: &Figure| Some(Row { figure: figure.name, kernel: over(kernel, figure)?, lab: over(lab, figure) });
    FIGURES.iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_procfs::Counters;

    fn states(counts: &[(&str, u64)]) -> Vec<State> {
        let state = |of: &dyn Fn(u64) -> u64| State {
            phase: "p".into(),
            took_ns: 0,
            counters: counts.iter().map(|(name, n)| (name.to_string(), of(*n))).collect::<Counters>(),
        };
        vec![state(&|_| 0), state(&|n| n)]
    }

    fn samples(free: &[u64]) -> Vec<Sample> {
        let sample = |(i, free): (usize, &u64)| Sample {
            ns: i as u64,
            free_huge: vec![("DMA".into(), 9), ("DMA32".into(), *free)],
            counters: Counters::default(),
        };
        free.iter().enumerate().map(sample).collect()
    }

    fn row(rows: &[Row], figure: &str) -> Row {
        rows.iter().find(|row| row.figure == figure).expect("a figure").clone()
    }

    #[test]
    fn figures_are_of_the_whole_build_and_of_its_samples() {
        let counts = [
            ("thp_fault_alloc", 90),
            ("thp_fault_fallback", 10),
            ("pswpout", 5),
            ("swpout_zero", 7),
            ("allocstall_normal", 1),
            ("allocstall_movable", 2),
        ];
        let (states, samples) = (states(&counts), samples(&[0, 4, 10, 20]));
        let all = rows(&[Run { states: &states, samples: &samples }], &[]);
        let mean = |figure| row(&all, figure).kernel.mean;
        assert_eq!((mean("huge faults"), mean("of them failed, %")), (100.0, 10.0));
        assert_eq!((mean("samples with fewer than 8, %"), mean("samples without one, %")), (50.0, 25.0));
        assert_eq!(mean("free huge pages, mean of samples"), 8.5);
        assert_eq!((mean("pages swapped out, zeros included"), mean("stalls in direct reclaim")), (12.0, 3.0));
        assert!(all.iter().all(|row| row.figure != "pages swapped in"), "it was not counted");
    }

    #[test]
    fn a_figure_is_inside_within_a_quarter() {
        let verdict = |kernel, lab| {
            let [kernel, lab] = [kernel, lab].map(|n| states(&[("pswpin", n)]));
            let [kernel, lab] = [&kernel, &lab].map(|states| Run { states, samples: &[] });
            row(&rows(&[kernel], &[lab]), "pages swapped in").verdict()
        };
        assert_eq!((verdict(100, 75), verdict(100, 125)), (Verdict::Inside, Verdict::Inside));
        assert_eq!((verdict(100, 74), verdict(100, 126)), (Verdict::Outside, Verdict::Outside));
        assert_eq!((verdict(0, 0), verdict(0, 1)), (Verdict::Inside, Verdict::Outside));
    }
}
