//! The conclusion of a table, before the table: what each variant makes worse and better than the
//! baseline, how surely, and where no difference shows. Before that comes what was published of a
//! variant's step, as the rest is read against it.

use crate::number;
use crate::order;
use crate::shown::{self, Shown, is_next_to_none, is_unsure, names, next_to_nothing, shown, unit, words};
use crate::sweep;
use crate::terminal::{letter, plain};
use crate::verdict::{change_to, measured};
use kontig_results::judge::CHANGE_THAT_COUNTS;
use kontig_results::{Ended, ExperimentResult, Remark, Row};

/// Figures that a sentence names of the only variant, where there are two, and where each has one
/// line.
const NAMED: usize = 5;
const NAMED_OF_TWO: usize = 3;
const NAMED_IN_A_LINE: usize = 2;
/// Factors that differ by less say the same.
const SAME_FACTOR: f64 = 0.005;
/// A conclusion with more variants than this has a line for each.
const FEW: usize = 3;
/// More variants than this are told of together, unless a few sweeps have them all.
const MOST: usize = 12;

/// How variants are called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Called {
    /// As columns of a terminal's table are.
    ByLetter,
    ByName,
}

impl Called {
    fn variant(self, e: &ExperimentResult, variant: usize) -> String {
        match self {
            Called::ByLetter => letter(variant),
            Called::ByName => plain(&e.variants[variant]),
        }
    }

    /// A variant against the baseline.
    fn against(self, e: &ExperimentResult, variant: usize) -> String {
        match self {
            Called::ByLetter => format!("{} ({}) against A", letter(variant), plain(&e.variants[variant])),
            Called::ByName => format!("{} against {}", self.variant(e, variant), self.variant(e, 0)),
        }
    }
}

/// Lines of the conclusion; empty for a single variant, and where figures were published: there the
/// score is the conclusion.
pub(crate) fn lines(e: &ExperimentResult, called: Called) -> Vec<String> {
    let variants = e.variants.len();
    if variants < 2 || e.rows.iter().any(|row| !row.published.is_empty()) {
        return Vec::new();
    }
    let rows = order::judged(e);
    let mut lines: Vec<String> = published_steps(e, called).chain(unequal_work(e, called)).collect();
    let in_a_sweep = |variant: &usize| e.sweeps.iter().any(|sweep| sweep.variants[1..].contains(variant));
    let told = e.sweeps.len() + (1..variants).filter(|variant| !in_a_sweep(variant)).count();
    if variants > MOST && told > FEW {
        lines.extend(sweep::of_a_grid(e));
        lines.extend(of_seeds(e));
        return lines;
    }
    for variant in 0..variants {
        if variant > 0 && !in_a_sweep(&variant) {
            lines.extend(of_variant(e, &rows, variant, called));
        }
        let begins = e.sweeps.iter().filter(|sweep| sweep.variants.first() == Some(&variant));
        lines.extend(begins.flat_map(|sweep| sweep::lines(e, sweep)));
    }
    lines.extend(of_seeds(e));
    lines
}

/// The published changes of the steps that variants make.
fn published_steps(e: &ExperimentResult, called: Called) -> impl Iterator<Item = String> {
    let of_step = move |remark: &Remark| {
        let variant = remark.variant.filter(|variant| *variant < e.variants.len())?;
        Some(format!("{} against {}, {}", called.variant(e, variant), called.variant(e, 0), plain(&remark.text)))
    };
    e.elsewhere.iter().filter_map(of_step)
}

/// A sentence where too few seeds ran.
fn of_seeds(e: &ExperimentResult) -> Option<String> {
    let seeds = match shown::seeds(e) {
        ..=1 => "one seed".into(),
        seeds => format!("{seeds} seeds"),
    };
    is_unsure(e).then(|| format!("{seeds}: chance alone would make some figures seem to differ; five seeds say which"))
}

/// A sentence where the runs of some variants ended before their work was done, and otherwise than
/// those of the others: their counts are of unequal work.
fn unequal_work(e: &ExperimentResult, called: Called) -> Option<String> {
    let first = e.endings.first()?;
    if e.endings.iter().all(|endings| came_as_far(first, endings)) {
        return None;
    }
    let said = |(i, endings): (usize, &Vec<Ended>)| match endings.as_slice() {
        [] => format!("{} ran to the end", called.variant(e, i)),
        some => format!("{} {}", called.variant(e, i), listed(some, Ended::to_string)),
    };
    let each: Vec<String> = match e.endings.len() > FEW {
        true => by_rule(e, called),
        false => e.endings.iter().enumerate().map(said).collect(),
    };
    Some(format!("counts are of unequal work: {}", each.join("; ")))
}

/// Endings, each in words, in a list.
fn listed(endings: &[Ended], in_words: fn(&Ended) -> String) -> String {
    plain(&endings.iter().map(in_words).collect::<Vec<_>>().join(", "))
}

/// Whether the same rules ended the runs of two variants, and they came as far within a tenth.
fn came_as_far(one: &[Ended], other: &[Ended]) -> bool {
    let is_alike = |(one, other): (&Ended, &Ended)| {
        let is_as_far = match (one.reached, other.reached) {
            (Some([low, high]), Some([least, most])) => are_near(low, least) && are_near(high, most),
            (one, other) => one == other,
        };
        one.by_rule() == other.by_rule() && is_as_far
    };
    one.len() == other.len() && one.iter().zip(other).all(is_alike)
}

fn are_near(one: f64, other: f64) -> bool {
    one.max(other) <= one.min(other) * (1.0 + CHANGE_THAT_COUNTS)
}

/// The rules that ended variants, each with its variants. How far each came, the remarks say.
fn by_rule(e: &ExperimentResult, called: Called) -> Vec<String> {
    let mut rules: Vec<(String, Vec<usize>)> = Vec::new();
    for (i, endings) in e.endings.iter().enumerate() {
        let all = if endings.is_empty() { "ran to the end".to_owned() } else { listed(endings, Ended::by_rule) };
        match rules.iter_mut().find(|(rule, _)| *rule == all) {
            Some((_, variants)) => variants.push(i),
            None => rules.push((all, vec![i])),
        }
    }
    let said = |(rule, variants): &(String, Vec<usize>)| match variants.len() {
        n if n == e.endings.len() => format!("every variant {rule}, not all at the same point"),
        n if n > MOST => format!("{n} variants {rule}"),
        _ => {
            let names: Vec<String> = variants.iter().map(|i| called.variant(e, *i)).collect();
            format!("{} {rule}", names.join(", "))
        }
    };
    rules.iter().map(said).collect()
}

/// The rows of one variant, by what they show.
#[derive(Default)]
struct Sorted<'a> {
    worse: Vec<&'a Row>,
    better: Vec<&'a Row>,
    overlaps: Vec<&'a Row>,
    too_few: Vec<&'a Row>,
    same: Vec<&'a Row>,
    /// Daemons' time that differs by next to nothing.
    idle: Vec<&'a Row>,
    /// The baseline has no figure.
    baseline_lacks: Vec<&'a Row>,
    /// The variant has none.
    lacks: Vec<&'a Row>,
}

fn of_variant(e: &ExperimentResult, rows: &[&Row], variant: usize, called: Called) -> Vec<String> {
    let mut sorted = Sorted::default();
    for row in rows {
        let list = match shown(row, variant) {
            Shown::Nothing => continue,
            _ if next_to_nothing(e, row, variant) => &mut sorted.idle,
            Shown::Worse => &mut sorted.worse,
            Shown::Better => &mut sorted.better,
            Shown::Overlaps => &mut sorted.overlaps,
            Shown::TooFew => &mut sorted.too_few,
            Shown::Same => &mut sorted.same,
            // What neither has is no difference.
            Shown::Missing => match (measured(row, 0), measured(row, variant)) {
                (None, None) => continue,
                (None, _) => &mut sorted.baseline_lacks,
                _ => &mut sorted.lacks,
            },
        };
        list.push(row);
    }
    let Sorted { mut worse, mut better, overlaps, too_few, same, idle, baseline_lacks, lacks } = sorted;
    let few = e.variants.len() <= FEW;
    let named = match e.variants.len() {
        ..=2 => NAMED,
        3..=FEW => NAMED_OF_TWO,
        _ => NAMED_IN_A_LINE,
    };
    let distance = |row: &Row| change_to(row, variant).map_or(f64::INFINITY, |change| change.ln().abs());
    let sentence = |word: &str, rows: &mut Vec<&Row>| {
        let seeds = seeds_that_agree(rows, variant);
        order::arrange(rows, |row| (row, distance(row)));
        let hidden = order::one_of_each(rows, |row| (row, distance(row), false));
        let alike = moved_alike(e, rows, variant);
        let mut parts: Vec<String> = alike.iter().take(named).map(|rows| moved(e, rows, variant)).collect();
        let left = alike.iter().skip(named).map(Vec::len).sum::<usize>() + hidden;
        parts.extend((left > 0).then(|| format!("{left} more")));
        (!parts.is_empty()).then(|| format!("{word}{seeds}: {}", parts.join("; ")))
    };
    let [worse_word, better_word] = words(e, ["worse", "better"]);
    let (worse, better) = (sentence(&worse_word, &mut worse), sentence(&better_word, &mut better));
    let against = called.against(e, variant);
    let list = |rows: &[&Row]| {
        let mut names = names(&rows[..rows.len().min(NAMED)]);
        names.extend((rows.len() > NAMED).then(|| format!("{} more", rows.len() - NAMED)));
        names.join(", ")
    };
    let no_difference = || {
        let count = |n: usize| if n == 1 { "1 figure".to_owned() } else { format!("{n} figures") };
        let part = |rows: &[&Row], why: &str| (!rows.is_empty()).then(|| format!("{} ({why})", list(rows)));
        let same = same.len() + idle.len();
        let same = (same > 0).then(|| format!("{} equal or too little to matter", count(same)));
        let parts = [part(&overlaps, "seeds differ as much"), part(&too_few, "too few samples"), same];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("no difference shown: {}", parts.join("; ")))
    };
    let has_no = |who: usize, rows: &[&Row]| {
        (!rows.is_empty()).then(|| format!("{} has no {}", called.variant(e, who), list(rows)))
    };
    let lacking: Vec<String> = [has_no(0, &baseline_lacks), has_no(variant, &lacks)].into_iter().flatten().collect();
    let lacking = (!lacking.is_empty()).then(|| format!("no comparison: {}", lacking.join("; ")));
    if worse.is_none() && better.is_none() && lacking.is_none() {
        return vec![format!("{against}: {}", no_difference().unwrap_or_else(|| "nothing to compare".into()))];
    }
    if !few {
        let parts: Vec<String> = [worse, better, lacking].into_iter().flatten().collect();
        return vec![format!("{against}: {}", parts.join("; "))];
    }
    let parts = [worse, better, lacking, no_difference()].into_iter().flatten();
    std::iter::once(format!("{against}:")).chain(parts.map(|part| format!("  {part}"))).collect()
}

/// `, in 5 of 5 seeds`, which figures of one sentence have in common: a difference that some seeds
/// do not share is none.
fn seeds_that_agree(rows: &[&Row], variant: usize) -> String {
    let pairs = rows.iter().find_map(|row| row.pairs.get(variant).copied().flatten());
    pairs.map_or_else(String::new, |pairs| format!(" in {0} of {0} seeds", pairs.of))
}

/// Figures that moved alike, which one cause moves as a rule: by one factor, or from the same value
/// to the same.
fn moved_alike<'a>(e: &ExperimentResult, rows: &[&'a Row], variant: usize) -> Vec<Vec<&'a Row>> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        let is_alike = |other: &Row| match (factor(e, row, variant), factor(e, other, variant)) {
            (Some(one), Some(other)) => (one / other - 1.0).abs() < SAME_FACTOR,
            _ => values(row, variant) == values(other, variant),
        };
        match groups.iter_mut().find(|group| group.len() < NAMED && is_alike(group[0])) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

/// The factor of a figure's move, unless it is from or to next to nothing.
fn factor(e: &ExperimentResult, row: &Row, variant: usize) -> Option<f64> {
    let (base, new) = (measured(row, 0)?, measured(row, variant)?);
    let is_little = [base.value, new.value].iter().any(|value| is_next_to_none(e, row, *value));
    change_to(row, variant).filter(|change| *change > 0.0 && !is_little)
}

/// `200 → 140 pages`.
fn values(row: &Row, variant: usize) -> String {
    let Some((base, new)) = measured(row, 0).zip(measured(row, variant)) else { return String::new() };
    format!("{} → {}{}", number::rounded(base.value), number::rounded(new.value), unit(row))
}

/// Figures that moved alike: `fallbacks −30 % (200 → 140)`.
fn moved(e: &ExperimentResult, rows: &[&Row], variant: usize) -> String {
    // A percentile can be of all seeds together alone, where each has too few samples.
    let by_seed = |row: &Row| row.pairs.get(variant).copied().flatten().is_some();
    let mut each: Vec<String> = Vec::new();
    for row in rows {
        let together = row.merge.distribution().is_some() && !by_seed(row) && e.rows.iter().any(by_seed);
        let values = values(row, variant) + if together { ", all seeds together" } else { "" };
        if !each.contains(&values) {
            each.push(values);
        }
    }
    let (names, values) = (names(rows).join(", "), each.join("; "));
    match rows.first().and_then(|row| factor(e, row, variant)) {
        Some(change) => format!("{names} {} ({values})", in_words(change)),
        None => format!("{names} {values}"),
    }
}

/// Percent up to a doubling or halving, a factor beyond.
fn in_words(change: f64) -> String {
    match change {
        c if (0.5..1.0).contains(&c) => format!("−{:.0} %", (1.0 - c) * 100.0),
        c if (1.0..=2.0).contains(&c) => format!("+{:.0} %", (c - 1.0) * 100.0),
        c => number::factor(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_rows::{once, result, row, sweep};
    use kontig_results::{Better, MEASURE, NOTHING_IS_RANDOM, Pairs, Sweep, TOTAL};

    fn with_seeds(mut row: Row, of: u32, lower: u32, higher: u32, overlap: bool) -> Row {
        row.pairs = vec![None, Some(Pairs { of, lower, higher, overlap })];
        row
    }

    /// A variant whose only run ended so far.
    fn ended(reached: Option<[f64; 2]>) -> Ended {
        Ended {
            task: String::new(),
            phase: MEASURE.into(),
            rule: "the first failed allocation".into(),
            repetitions: 1,
            of: 1,
            reached,
            goal: "memory".into(),
        }
    }

    /// As a terminal shows them.
    fn lines(e: &ExperimentResult) -> Vec<String> {
        super::lines(e, Called::ByLetter)
    }

    #[test]
    fn a_page_calls_variants_by_name() {
        let e = result(&["base", "new"], vec![row("p99", Better::Lower, &[10.0, 24.0])]);
        assert_eq!(super::lines(&e, Called::ByName)[0], "new against base:");
    }

    #[test]
    fn worse_figures_come_first_and_those_of_the_workload_first_of_all() {
        let rows = vec![
            row("pages", Better::Higher, &[100.0, 70.0]),
            row("p99", Better::Lower, &[10.0, 24.0]),
            row("fallbacks", Better::Lower, &[200.0, 140.0]),
            row("stalls", Better::Lower, &[0.0, 1500.0]),
            row("elapsed time", Better::Lower, &[100.0, 101.0]),
            row("seen", Better::Neither, &[1.0, 9.0]),
        ];
        assert_eq!(
            lines(&result(&["base", "new"], rows)),
            [
                "B (new) against A:",
                "  worse: pages −30 % (100 → 70 us); p99 ×2.40 (10 → 24 us); stalls 0 → 1,500 us",
                "  better: fallbacks −30 % (200 → 140 us)",
                "  no difference shown: 1 figure equal or too little to matter",
            ]
        );
    }

    #[test]
    fn figures_that_moved_alike_are_one_finding() {
        let rows = vec![
            row("filling", Better::Lower, &[100.0, 80.0]),
            row("p99", Better::Lower, &[10.0, 24.0]),
            row("all of it", Better::Lower, &[10.01, 8.0]),
            row("stalls", Better::Lower, &[0.0, 1500.0]),
            row("as many", Better::Lower, &[0.0, 1500.0]),
            row("fewer", Better::Lower, &[0.0, 1400.0]),
        ];
        assert_eq!(
            lines(&result(&["base", "new"], rows))[1..],
            [
                "  worse: p99 ×2.40 (10 → 24 us); stalls, as many 0 → 1,500 us; fewer 0 → 1,400 us",
                "  better: filling, all of it −20 % (100 → 80 us; 10.01 → 8 us)",
            ]
        );
    }

    #[test]
    fn a_difference_that_seeds_do_not_share_is_not_shown() {
        let p99 = || row("p99", Better::Lower, &[10.0, 24.0]);
        let of = |row: Row| lines(&result(&["base", "new"], vec![row]));
        assert_eq!(of(with_seeds(p99(), 5, 0, 5, true))[1], "  worse in 5 of 5 seeds: p99 ×2.40 (10 → 24 us)");
        let overlap = "B (new) against A: no difference shown: p99 (seeds differ as much)";
        for chance in [with_seeds(p99(), 3, 0, 3, true), with_seeds(p99(), 5, 1, 4, false)] {
            assert_eq!(of(chance)[0], overlap);
        }
    }

    #[test]
    fn of_results_that_have_few_seeds_in_common_a_difference_only_seems() {
        let e = result(&["base", "new"], vec![with_seeds(row("p99", Better::Lower, &[10.0, 24.0]), 3, 0, 3, false)]);
        let chance = "3 seeds: chance alone would make some figures seem to differ; five seeds say which";
        assert_eq!(lines(&e)[1..], ["  seems worse in 3 of 3 seeds: p99 ×2.40 (10 → 24 us)", chance]);
    }

    #[test]
    fn a_percentile_from_too_few_samples_is_no_evidence() {
        let mut p99 = row("p99", Better::Lower, &[10.0, 24.0]);
        p99.measured[1].as_mut().expect("a figure").samples_needed = Some(299);
        let rows = vec![p99, row("pages", Better::Higher, &[10.0, 20.0])];
        assert_eq!(
            lines(&result(&["base", "new"], rows))[1..],
            ["  better: pages +100 % (10 → 20 us)", "  no difference shown: p99 (too few samples)"]
        );
    }

    #[test]
    fn a_figure_of_nothing_in_both_is_left_out() {
        let rows = vec![row("oom_kill", Better::Lower, &[0.0, 0.0]), row("p99", Better::Lower, &[10.0, 10.0])];
        assert_eq!(
            lines(&result(&["base", "new"], rows)),
            ["B (new) against A: no difference shown: 1 figure equal or too little to matter"]
        );
    }

    #[test]
    fn few_seeds_only_seem_to_show_a_difference() {
        let mut few = result(&["base", "new"], vec![row("p99", Better::Lower, &[10.0, 24.0])]);
        few.repetitions = 3;
        assert_eq!(
            lines(&few)[1..],
            [
                "  seems worse: p99 ×2.40 (10 → 24 us)",
                "3 seeds: chance alone would make some figures seem to differ; five seeds say which"
            ]
        );
        few.remarks.push(kontig_results::Remark { variant: None, text: NOTHING_IS_RANDOM.into() });
        assert_eq!(lines(&few)[1..], ["  worse: p99 ×2.40 (10 → 24 us)"]);
    }

    #[test]
    fn runs_that_ended_early_are_named_before_their_counts() {
        let mut e = result(&["base", "new"], vec![row("written", Better::Lower, &[10.0, 0.0])]);
        e.endings = vec![vec![], vec![ended(None)]];
        assert_eq!(
            lines(&e)[0],
            "counts are of unequal work: A ran to the end; B ended at the first failed allocation"
        );
        e.endings[0] = e.endings[1].clone();
        assert_eq!(lines(&e)[0], "B (new) against A:");
    }

    #[test]
    fn many_variants_of_no_single_sweep_are_told_of_together() {
        let names: Vec<String> = (0..14).map(|i| format!("x={}+y={}", i / 4, i % 4)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut figures = [10.0; 14];
        figures[6] = 5.0;
        let e = result(&names, vec![row("p99", Better::Lower, &figures)]);
        let best = "  p99: best with x=1+y=2 (10 → 5 us, ×0.50)";
        let chance = "  of 14 variants chance alone can make one look best: run it again with other seeds";
        assert_eq!(lines(&e), ["14 variants, each against x=0+y=0:", best, chance]);
    }

    #[test]
    fn runs_that_one_rule_ended_at_nearly_the_same_point_did_equal_work() {
        let mut e = result(&["base", "new"], vec![row("p99", Better::Lower, &[10.0, 10.0])]);
        let far = |low, high| vec![ended(Some([low, high]))];
        e.endings = vec![far(99.4, 99.4), far(99.5, 99.6)];
        assert_eq!(lines(&e), ["B (new) against A: no difference shown: 1 figure equal or too little to matter"]);
        e.endings[1] = far(60.2, 99.6);
        assert!(lines(&e)[0].starts_with("counts are of unequal work: A ended at the first failed allocation, with"));
    }

    #[test]
    fn many_variants_that_ended_early_are_named_by_the_rule_that_ended_them() {
        let row = row("written", Better::Lower, &[10.0, 0.0, 5.0, 5.0]);
        let mut e = result(&["a", "b", "c", "d"], vec![row]);
        e.endings = [1.0, 2.0, 3.0, 4.0].map(|share| vec![ended(Some([share; 2]))]).into();
        let all =
            "counts are of unequal work: every variant ended at the first failed allocation, not all at the same point";
        assert_eq!(lines(&e)[0], all);
        e.endings[1].clear();
        let some = "counts are of unequal work: A, C, D ended at the first failed allocation; B ran to the end";
        assert_eq!(lines(&e)[0], some);
    }

    #[test]
    fn the_time_of_the_work_counts_and_not_that_of_preparing_it() {
        let of = |phase: &str, values: &[f64]| Row { phase: phase.into(), ..row("elapsed", Better::Lower, values) };
        let e = result(&["base", "new"], vec![of(MEASURE, &[2.0, 0.5]), of(TOTAL, &[32.0, 30.5])]);
        assert_eq!(lines(&e)[1], "  better: elapsed ×0.25 (2 → 0.5 us)");
    }

    #[test]
    fn a_figure_that_one_of_them_lacks_is_named() {
        let mut p99 = row("p99", Better::Lower, &[10.0, 24.0]);
        p99.measured[1] = None;
        assert_eq!(
            lines(&result(&["base", "new"], vec![p99])),
            ["B (new) against A:", "  no comparison: B has no p99"]
        );
    }

    #[test]
    fn a_daemon_that_hardly_runs_costs_nothing() {
        let total = |name: &str, values: &[f64]| Row { phase: TOTAL.into(), ..row(name, Better::Lower, values) };
        let of = |daemon: [f64; 2]| {
            let rows = vec![total("elapsed", &[30.0, 30.0]), total("kcompactd CPU time", &daemon)];
            lines(&result(&["base", "new"], rows))
        };
        assert_eq!(
            of([1e-7, 0.004]),
            ["B (new) against A: no difference shown: 2 figures equal or too little to matter"]
        );
        assert_eq!(of([1e-7, 0.04])[1], "  worse: kcompactd CPU time 1.0e-7 → 0.04 us");
    }

    #[test]
    fn no_list_of_names_is_long() {
        let lacks = |i: usize| Row {
            measured: vec![Some(once(1.0)), None],
            ..row(&format!("p{i}"), Better::Lower, &[1.0, 1.0])
        };
        let rows = (0..6).map(lacks).collect();
        assert_eq!(
            lines(&result(&["base", "new"], rows))[1..],
            ["  no comparison: B has no p0, p1, p2, p3, p4, 1 more"]
        );
    }

    #[test]
    fn many_variants_have_a_line_each() {
        let rows = vec![row("p99", Better::Lower, &[10.0, 24.0, 5.0, 10.0])];
        assert_eq!(
            lines(&result(&["a", "b", "c", "d"], rows)),
            [
                "B (b) against A: worse: p99 ×2.40 (10 → 24 us)",
                "C (c) against A: better: p99 −50 % (10 → 5 us)",
                "D (d) against A: no difference shown: 1 figure equal or too little to matter",
            ]
        );
    }

    #[test]
    fn the_first_of_a_further_sweep_is_held_against_the_baseline() {
        let values = [10.0, 10.0, 10.0, 20.0, 20.0, 20.0];
        let mut e = result(&["a0", "a1", "a2", "b0", "b1", "b2"], vec![row("p99", Better::Lower, &values)]);
        let first = Sweep { of: "a".into(), ..sweep("x", &[0.0, 1.0, 2.0]) };
        let second = Sweep { of: "b".into(), variants: vec![3, 4, 5], ..first.clone() };
        e.sweeps = vec![first, Sweep { pairs: vec![vec![None; 3]], ..second }];
        assert_eq!(
            lines(&e),
            [
                "a: x from 0 to 2, 3 values, each against 0:",
                "  no difference shown in any figure",
                "D (b0) against A: worse: p99 +100 % (10 → 20 us)",
                "b: x from 0 to 2, 3 values, each against 0:",
                "  no difference shown in any figure",
            ]
        );
    }

    #[test]
    fn where_figures_were_published_the_score_is_the_conclusion() {
        let mut held = row("p99", Better::Lower, &[10.0, 24.0]);
        held.published = vec![1.0, 2.0];
        assert!(lines(&result(&["a", "b"], vec![held])).is_empty());
    }
}
