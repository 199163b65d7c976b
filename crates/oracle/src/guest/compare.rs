//! A pattern's counters on a real kernel and in the laboratory: means, ranges over seeds, and
//! verdicts.
//!
//! Events (`pgscan_kswapd`) are counted from the first phase to the last. Levels
//! (`nr_inactive_file`) are averaged over the ends of the phases, without the first, before which
//! nothing has happened. A counter that one side lacks is not taken for zero; the row says which
//! side lacks it.

use super::{DAEMONS, EXTFRAG, State};
use std::ops::RangeInclusive;

/// Allowed deviation of the laboratory's mean, as a share of the kernel's.
pub const TOLERANCE: f64 = 0.15;
/// Allowed factor between counts of fragmentation events.
pub const EXTFRAG_FACTOR: f64 = 2.0;

/// Prefixes of the compared counters.
const COMPARED: [&str; 12] = [
    "pgscan",
    "pgsteal",
    "pgskip",
    "pgalloc",
    "allocstall",
    "pageoutrun",
    "compact_",
    "workingset_",
    "pswp",
    "nr_",
    "thp_",
    "extfrag",
];

/// Values of a counter over seeds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread {
    pub mean: f64,
    pub least: f64,
    pub most: f64,
}

/// Comparison of laboratory and kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Inside,
    Outside,
    /// One side has not counted it.
    Missing,
}

impl Verdict {
    /// Whether the ratio of the means is in this range; nothing agrees with nothing alone.
    pub(super) fn of(kernel: Spread, lab: Option<Spread>, within: RangeInclusive<f64>) -> Verdict {
        let Some(lab) = lab else { return Verdict::Missing };
        let inside = lab.over_mean(kernel).map_or(lab.mean == 0.0, |ratio| within.contains(&ratio));
        if inside { Verdict::Inside } else { Verdict::Outside }
    }
}

/// A counter on both sides.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub counter: String,
    pub kernel: Spread,
    /// `None` if the laboratory does not count it.
    pub lab: Option<Spread>,
    /// For a level: the kernel's value at the start.
    pub at_first: Option<Spread>,
}

impl Row {
    /// The laboratory's mean divided by the kernel's; `None` if that is zero.
    pub fn ratio(&self) -> Option<f64> {
        self.lab?.over_mean(self.kernel)
    }

    /// Judges the row by the tolerances.
    pub fn verdict(&self) -> Verdict {
        let within = match EXTFRAG.contains(&self.counter.as_str()) {
            true => 1.0 / EXTFRAG_FACTOR..=EXTFRAG_FACTOR,
            false => 1.0 - TOLERANCE..=1.0 + TOLERANCE,
        };
        Verdict::of(self.kernel, self.lab, within)
    }
}

/// Rows of a pattern, from one run a seed on the kernel and in the laboratory, where there may be
/// none. Counters that never moved are left out.
pub fn rows(kernel: &[&[State]], lab: &[&[State]]) -> Vec<Row> {
    let Some(names) = kernel.first().and_then(|run| run.first()).map(|state| state.counters.names()) else {
        return Vec::new();
    };
    let wanted = names.filter(|name| COMPARED.iter().any(|prefix| name.starts_with(prefix)));
    let row = |counter: &str| {
        let at_first = Some(kernel.iter().filter_map(|run| Some(run.first()?.counters.get(counter)? as f64)).collect());
        let at_first = at_first.filter(|_| is_level(counter)).and_then(|counts: Vec<f64>| Spread::over(&counts));
        Some(Row {
            counter: counter.into(),
            kernel: Spread::of(kernel, counter)?,
            lab: Spread::of(lab, counter),
            at_first,
        })
    };
    wanted.filter_map(row).filter(|row| row.kernel.most > 0.0 || row.lab.is_some_and(|lab| lab.most > 0.0)).collect()
}

/// Durations in ns of all phases but the first, at which counting begins, and the daemons' CPU
/// time. These are not judged.
pub fn times(kernel: &[&[State]], lab: &[&[State]]) -> Vec<Row> {
    let phases = kernel.first().map_or(1, |run| run.len());
    let took = |runs: &[&[State]], i: usize| {
        let values = runs.iter().map(|run| Some(run.get(i)?.took_ns as f64)).collect::<Option<Vec<f64>>>()?;
        Spread::over(&values)
    };
    let phase = |i: usize| {
        let counter = format!("phase {}", kernel[0][i].phase);
        Some(Row { counter, kernel: took(kernel, i)?, lab: took(lab, i), at_first: None })
    };
    let daemon = |name: &str| {
        let counter = name.trim_end_matches("_ns").into();
        Some(Row { counter, kernel: Spread::of(kernel, name)?, lab: Spread::of(lab, name), at_first: None })
    };
    (1..phases).filter_map(phase).chain(DAEMONS.into_iter().filter_map(daemon)).collect()
}

impl Spread {
    /// Values over runs; `None` if a run lacks the counter, or there is no run.
    fn of(runs: &[&[State]], counter: &str) -> Option<Spread> {
        let values = runs.iter().map(|run| value(run, counter)).collect::<Option<Vec<f64>>>()?;
        Spread::over(&values)
    }

    /// This mean divided by another; `None` if that is zero.
    pub(super) fn over_mean(self, other: Spread) -> Option<f64> {
        (other.mean > 0.0).then(|| self.mean / other.mean)
    }

    /// `None` for an empty slice.
    pub(super) fn over(values: &[f64]) -> Option<Spread> {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let least = values.iter().copied().reduce(f64::min)?;
        Some(Spread { mean, least, most: values.iter().copied().reduce(f64::max)? })
    }
}

/// Value of a counter in a run.
fn value(run: &[State], counter: &str) -> Option<f64> {
    let counts = run.iter().map(|state| state.counters.get(counter)).collect::<Option<Vec<u64>>>()?;
    let (first, rest) = counts.split_first()?;
    let last = rest.last()?;
    Some(if is_level(counter) {
        rest.iter().sum::<u64>() as f64 / rest.len() as f64
    } else {
        last.saturating_sub(*first) as f64
    })
}

/// Whether a counter is a level and not a count of events.
fn is_level(counter: &str) -> bool {
    const EVENTS: [&str; 6] = [
        "nr_vmscan_write",
        "nr_vmscan_immediate_reclaim",
        "nr_dirtied",
        "nr_written",
        "nr_throttled_written",
        "nr_foll_pin_",
    ];
    counter == "workingset_nodes"
        || counter.starts_with("nr_") && !EVENTS.iter().any(|event| counter.starts_with(event))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_procfs::Counters;

    fn run(phases: &[&[(&str, u64)]]) -> Vec<State> {
        let state = |counts: &&[(&str, u64)]| State {
            phase: "p".into(),
            took_ns: 0,
            counters: counts.iter().map(|(name, n)| (name.to_string(), *n)).collect::<Counters>(),
        };
        phases.iter().map(state).collect()
    }

    fn one(kernel: &[Vec<State>], lab: &[Vec<State>]) -> Row {
        let [kernel, lab] = [kernel, lab].map(|runs| runs.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let rows = rows(&kernel, &lab);
        assert_eq!(rows.len(), 1);
        rows[0].clone()
    }

    #[test]
    fn events_are_counted_from_the_first_phase_and_levels_are_averaged_over_the_others() {
        let events = run(&[&[("pgscan_kswapd", 10)], &[("pgscan_kswapd", 50)], &[("pgscan_kswapd", 110)]]);
        assert_eq!(one(&[events], &[]).kernel.mean, 100.0);
        let level = run(&[&[("nr_free_pages", 900)], &[("nr_free_pages", 10)], &[("nr_free_pages", 30)]]);
        let row = one(&[level], &[]);
        assert_eq!((row.kernel.mean, row.at_first.map(|s| s.mean)), (20.0, Some(900.0)));
    }

    #[test]
    fn a_figure_outside_the_kernels_range_is_marked() {
        let counted = |n| run(&[&[("pgsteal_direct", 0)], &[("pgsteal_direct", n)]]);
        let row = one(&[counted(90), counted(110)], &[counted(114)]);
        assert_eq!((row.kernel.least, row.kernel.most, row.verdict()), (90.0, 110.0, Verdict::Inside));
        assert_eq!(one(&[counted(100)], &[counted(116)]).verdict(), Verdict::Outside);
        assert_eq!(one(&[counted(0)], &[counted(1)]).verdict(), Verdict::Outside);
        assert_eq!(one(&[counted(100)], &[]).verdict(), Verdict::Missing);
        let events = |n| run(&[&[("extfrag", 0)], &[("extfrag", n)]]);
        assert_eq!(one(&[events(10)], &[events(20)]).verdict(), Verdict::Inside);
        assert_eq!(one(&[events(10)], &[events(4)]).verdict(), Verdict::Outside);
    }

    #[test]
    fn phases_after_the_first_have_their_time() {
        let mut run = run(&[&[], &[], &[]]);
        (run[1].took_ns, run[2].took_ns) = (7, 9);
        let rows = times(&[&run], &[]);
        let took: Vec<f64> = rows.iter().map(|row| row.kernel.mean).collect();
        assert_eq!((took, rows[0].lab), (vec![7.0, 9.0], None));
    }

    #[test]
    fn counters_that_the_laboratory_lacks_are_missing_and_no_zeros() {
        let kernel = run(&[&[("nr_mapped", 1)], &[("nr_mapped", 2)]]);
        let lab = run(&[&[("nr_other", 1)], &[("nr_other", 2)]]);
        assert_eq!(one(&[kernel], &[lab]).verdict(), Verdict::Missing);
    }
}
