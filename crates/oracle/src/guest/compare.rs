//! A pattern's counters on a real kernel and in the laboratory: means, ranges over seeds, and
//! verdicts.
//!
//! Events (`pgscan_kswapd`) are counted from the first phase to the last. Levels
//! (`nr_inactive_file`) are averaged over the ends of the phases, without the first, before which
//! nothing has happened. A counter that one side lacks is not taken for zero; the row says which
//! side lacks it. What would count twice, or says nothing, is shown and not judged.

use super::{DAEMONS, State};
use std::ops::RangeInclusive;

/// Allowed deviation of the laboratory's mean, as a share of the kernel's: what the project is
/// after, as are the aims of the shares inside.
const TOLERANCE: f64 = 0.15;
/// A counter with fewer on both sides hardly moves: among so few, chance alone is 15 % and more.
const FEW: f64 = 10.0;
/// Two counters that differ by less in each run say the same. Where kcompactd does nearly all of
/// the compaction, its counters are 0.03 to 3.6 % below the totals (patterns mixed and file on
/// 7.2).
const SAME: f64 = 0.05;

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

/// Prefix of levels by zone, which add up to those of the node.
const BY_ZONE: &str = "nr_zone_";
/// Other counters that follow from some of the compared ones, and from which.
pub const GIVEN_BY_OTHERS: [(&str, &[&str]); 7] = [
    ("compact_fail", &["compact_stall", "compact_success"]),
    ("extfrag", &["extfrag_small", "extfrag_pageblock"]),
    ("nr_vmscan_write", &["pswpout"]),
    ("nr_written", &["pswpout", "nr_dirtied"]),
    ("pgscan_anon", &["pgscan_kswapd", "pgscan_direct", "pgscan_file"]),
    ("pgsteal_anon", &["pgsteal_kswapd", "pgsteal_direct", "pgsteal_file"]),
    ("pswpin", &["workingset_refault_anon"]),
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
    /// Not judged: other counters of the pattern give it.
    Given,
    /// Not judged: it is as good as unmoved on both sides.
    Unmoved,
    /// Not judged: the kernel's runs lie further apart than their mean, so that nearly any figure
    /// would be between them.
    Varies,
}

/// A kind of counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Work and results of compaction.
    Compaction,
    /// Requests that waited for direct reclaim or direct compaction.
    Stalls,
    /// Pages that came back, and what became of them.
    Refaults,
    /// Events of no other kind.
    OtherEvents,
    /// How much there is of something.
    Levels,
}

impl Verdict {
    /// The word for tables; none for a counter that one side lacks.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Inside => "inside",
            Verdict::Outside => "outside",
            Verdict::Missing => "",
            Verdict::Given => "repeats",
            Verdict::Unmoved => "hardly moves",
            Verdict::Varies => "varies",
        }
    }

    /// The value for machines.
    pub fn key(self) -> &'static str {
        match self {
            Verdict::Missing => "not-counted",
            Verdict::Unmoved => "hardly-moves",
            other => other.word(),
        }
    }

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
    /// Whether other counters give this one.
    given: bool,
}

impl Row {
    /// The laboratory's mean divided by the kernel's; `None` if that is zero.
    pub fn ratio(&self) -> Option<f64> {
        self.lab?.over_mean(self.kernel)
    }

    /// Inside if the laboratory's mean is within the tolerance of the kernel's mean, or between the
    /// kernel's lowest and highest run. Nothing at all is never inside where the kernel has a
    /// number.
    pub fn verdict(&self) -> Verdict {
        let Some(lab) = self.lab else { return Verdict::Missing };
        let inside = self.is_inside(lab);
        let few = lab.mean < FEW && self.kernel.mean < FEW;
        let varies = self.kernel.most - self.kernel.least > self.kernel.mean;
        // A laboratory in which nothing ever happens would be inside as well.
        let rests = inside && self.at_first.is_some_and(|at_first| self.is_near(at_first.mean));
        match inside {
            _ if self.given => Verdict::Given,
            _ if few || rests => Verdict::Unmoved,
            _ if varies && lab.mean > 0.0 => Verdict::Varies,
            true => Verdict::Inside,
            false => Verdict::Outside,
        }
    }

    fn is_inside(&self, lab: Spread) -> bool {
        let between = lab.mean > 0.0 && (self.kernel.least..=self.kernel.most).contains(&lab.mean);
        between || self.is_near(lab.mean)
    }

    /// Whether a value is within the tolerance of the kernel's mean.
    fn is_near(&self, value: f64) -> bool {
        (value - self.kernel.mean).abs() <= TOLERANCE * self.kernel.mean
    }

    pub fn class(&self) -> Class {
        match self.counter.as_str() {
            counter if is_level(counter) => Class::Levels,
            counter if counter.starts_with("allocstall") || counter == "compact_stall" => Class::Stalls,
            counter if counter.starts_with("compact_") => Class::Compaction,
            counter if counter.starts_with("workingset_") => Class::Refaults,
            _ => Class::OtherEvents,
        }
    }
}

/// How many of the judged counters are inside.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    pub inside: usize,
    pub judged: usize,
    /// The same of the counters that vary too much to be judged.
    pub varying_inside: usize,
    pub varying: usize,
}

impl Tally {
    /// Of rows of these classes.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>, classes: &[Class]) -> Tally {
        let mut tally = Tally::default();
        for row in rows.into_iter().filter(|row| classes.contains(&row.class())) {
            let inside = usize::from(row.lab.is_some_and(|lab| row.is_inside(lab)));
            match row.verdict() {
                Verdict::Inside | Verdict::Outside => {
                    tally.judged += 1;
                    tally.inside += inside;
                }
                Verdict::Varies => {
                    tally.varying += 1;
                    tally.varying_inside += inside;
                }
                Verdict::Missing | Verdict::Given | Verdict::Unmoved => {}
            }
        }
        tally
    }

    /// The share inside of those judged, in percent.
    pub fn percent(self) -> f64 {
        100.0 * self.inside as f64 / self.judged.max(1) as f64
    }

    /// The same if those that vary were judged, too.
    pub fn percent_with_varying(self) -> f64 {
        let all =
            Tally { inside: self.inside + self.varying_inside, judged: self.judged + self.varying, ..Tally::default() };
        all.percent()
    }
}

/// Rows of a pattern, from one run a seed on the kernel and in the laboratory, where there may be
/// none. Counters that never moved are left out.
pub fn rows(kernel: &[&[State]], lab: &[&[State]]) -> Vec<Row> {
    let Some(names) = kernel.first().and_then(|run| run.first()).map(|state| state.counters.names()) else {
        return Vec::new();
    };
    let wanted = names.filter(|name| COMPARED.iter().any(|prefix| name.starts_with(prefix)));
    let of_each =
        |runs: &[&[State]], counter: &str| -> Vec<Option<f64>> { runs.iter().map(|run| value(run, counter)).collect() };
    // In each run of both sides nearly as many: the second of the two says nothing new.
    let near = |a: &Option<f64>, b: &Option<f64>| match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= SAME * a.max(*b),
        _ => a == b,
    };
    let all_near = |runs: &[&[State]], a: &str, b: &str| {
        let (a, b) = (of_each(runs, a), of_each(runs, b));
        a.iter().zip(&b).all(|(a, b)| near(a, b))
    };
    let same = |a: &str, b: &str| all_near(kernel, a, b) && all_near(lab, a, b);
    let row = |counter: &str| {
        let at_first = Some(kernel.iter().filter_map(|run| Some(run.first()?.counters.get(counter)? as f64)).collect());
        let at_first = at_first.filter(|_| is_level(counter)).and_then(|counts: Vec<f64>| Spread::over(&counts));
        Some(Row {
            counter: counter.into(),
            kernel: Spread::of(kernel, counter)?,
            lab: Spread::of(lab, counter),
            at_first,
            given: counter.starts_with(BY_ZONE) || GIVEN_BY_OTHERS.iter().any(|(given, _)| *given == counter),
        })
    };
    let moved = |row: &Row| row.kernel.most > 0.0 || row.lab.is_some_and(|lab| lab.most > 0.0);
    let mut rows: Vec<Row> = wanted.filter_map(row).filter(moved).collect();
    for i in 1..rows.len() {
        let (before, row) = (&rows[..i], &rows[i]);
        let said = |earlier: &Row| !earlier.given && earlier.lab.is_some() && same(&earlier.counter, &row.counter);
        rows[i].given |= before.iter().any(said);
    }
    rows
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
        Some(Row { counter, kernel: took(kernel, i)?, lab: took(lab, i), at_first: None, given: false })
    };
    let daemon = |name: &str| {
        let counter = name.trim_end_matches("_ns").into();
        Some(Row {
            counter,
            kernel: Spread::of(kernel, name)?,
            lab: Spread::of(lab, name),
            at_first: None,
            given: false,
        })
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

    /// A run of two phases in which counters go from zero to these.
    fn counted(names: [&str; 4], counts: [u64; 4]) -> Vec<State> {
        run(&[&names.map(|name| (name, 0)), &std::array::from_fn::<_, 4, _>(|i| (names[i], counts[i]))])
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
        assert_eq!(one(&[counted(0)], &[counted(10)]).verdict(), Verdict::Outside);
        assert_eq!(one(&[counted(100)], &[]).verdict(), Verdict::Missing);
    }

    #[test]
    fn a_mean_between_two_of_the_kernels_runs_is_inside_and_one_beyond_them_is_not() {
        let counted = |n| run(&[&[("allocstall_movable", 0)], &[("allocstall_movable", n)]]);
        let kernel = [counted(70), counted(130), counted(100)];
        for (lab, verdict) in [(70, Verdict::Inside), (130, Verdict::Inside), (69, Verdict::Outside)] {
            assert_eq!(one(&kernel, &[counted(lab)]).verdict(), verdict, "{lab}");
        }
        // The mean decides, not a run.
        assert_eq!(one(&kernel, &[counted(100), counted(200)]).verdict(), Verdict::Outside);
    }

    #[test]
    fn a_counter_whose_runs_are_further_apart_than_their_mean_is_judged_only_if_the_lab_has_none() {
        let counted = |n| run(&[&[("compact_isolated", 0)], &[("compact_isolated", n)]]);
        let kernel = [counted(0), counted(100), counted(80)];
        let rows = [0, 90, 300].map(|lab| one(&kernel, &[counted(lab)]));
        assert_eq!(rows.each_ref().map(Row::verdict), [Verdict::Outside, Verdict::Varies, Verdict::Varies]);
        let tally = Tally::of(&rows, &[Class::Compaction]);
        assert_eq!(tally, Tally { inside: 0, judged: 1, varying_inside: 1, varying: 2 });
        assert_eq!((tally.percent(), tally.percent_with_varying().round()), (0.0, 33.0));
    }

    #[test]
    fn a_counter_that_hardly_moves_is_not_judged_unless_the_laboratory_moves_it() {
        let counted = |n| run(&[&[("allocstall_movable", 0)], &[("allocstall_movable", n)]]);
        assert_eq!(one(&[counted(9)], &[counted(0)]).verdict(), Verdict::Unmoved);
        assert_eq!(one(&[counted(9)], &[counted(20)]).verdict(), Verdict::Outside);
        let level = |n| run(&[&[("nr_active_anon", 433)], &[("nr_active_anon", n)]]);
        assert_eq!(one(&[level(440)], &[level(430)]).verdict(), Verdict::Unmoved);
        assert_eq!(one(&[level(440)], &[level(600)]).verdict(), Verdict::Outside);
        assert_eq!(one(&[level(600)], &[level(590)]).verdict(), Verdict::Inside);
    }

    #[test]
    fn a_counter_that_others_give_is_judged_once() {
        let names = ["compact_stall", "compact_fail", "compact_success", "nr_zone_active_anon"];
        let of = |counts| counted(names, counts);
        let (kernel, lab) = (of([100, 20, 80, 50]), of([200, 40, 160, 50]));
        let verdicts: Vec<(String, Verdict)> =
            rows(&[&kernel], &[&lab]).into_iter().map(|row| (row.counter.clone(), row.verdict())).collect();
        let verdict = |name: &str| verdicts.iter().find(|(counter, _)| counter == name).map(|(_, verdict)| *verdict);
        assert_eq!(verdict("compact_stall"), Some(Verdict::Outside));
        assert_eq!(verdict("compact_success"), Some(Verdict::Outside));
        assert_eq!(verdict("compact_fail"), Some(Verdict::Given));
        assert_eq!(verdict("nr_zone_active_anon"), Some(Verdict::Given));

        // Where none fails, as many succeed; but not if that is so on one side alone.
        let success = |kernel: [u64; 4], lab: [u64; 4]| {
            let rows = rows(&[&of(kernel)], &[&of(lab)]);
            let row = |name: &str| rows.iter().find(|row| row.counter == name).map(Row::verdict);
            [row("compact_stall"), row("compact_success")].into_iter().filter(|v| *v == Some(Verdict::Given)).count()
        };
        assert_eq!(success([100, 0, 100, 50], [120, 0, 120, 50]), 1);
        assert_eq!(success([100, 0, 100, 50], [120, 20, 100, 50]), 0);
    }

    #[test]
    fn a_tally_counts_judged_counters_of_its_classes() {
        let names = ["allocstall_movable", "pgscan_kswapd", "compact_isolated", "workingset_refault_file"];
        let (kernel, lab) = (counted(names, [100, 1000, 50, 3]), counted(names, [101, 2000, 90, 4]));
        let rows = rows(&[&kernel], &[&lab]);
        let of = |classes: &[Class]| Tally::of(&rows, classes);
        assert_eq!(of(&[Class::Stalls]), Tally { inside: 1, judged: 1, ..Tally::default() });
        assert_eq!(of(&[Class::OtherEvents, Class::Compaction]), Tally { judged: 2, ..Tally::default() });
        assert_eq!(of(&[Class::Refaults]), Tally::default());
        let both = of(&[Class::Stalls, Class::OtherEvents]);
        assert_eq!((both.percent(), Tally::default().percent()), (50.0, 0.0));
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
