//! The conclusion of a sweep: for each figure that matters, the value of what was swept at which
//! it is best, and at which others it is nearly as good; where no value improves it, that at which
//! it is worst. Of a grid of many variants the same, by their names.

use crate::number;
use crate::order;
use crate::shown::{Shown, is_next_to_none, is_nothing, name, names, next_to_nothing, shown, unit, words};
use crate::terminal::plain;
use crate::verdict::{change_to, measured};
use kontig_results::judge::CHANGE_THAT_COUNTS;
use kontig_results::{Better, ExperimentResult, NOTHING_IS_RANDOM, Row, Sweep};

/// Figures with a line of their own, of a single sweep and of each of several.
const NAMED: usize = 5;
const NAMED_OF_EACH: usize = 3;
/// With more variants than this, five seeds that agree are no proof for the best of them: where
/// nothing differs, one sweep in five of 16 values named a best one.
const FEW: usize = 8;
/// Logarithms of changes that differ by less say the same.
const SAME_MOVE: f64 = 0.005;

/// A figure that some value changes.
struct Finding<'a> {
    row: &'a Row,
    /// The figures that it is of, and how each of them moved at one value.
    names: Vec<String>,
    figures: Vec<String>,
    /// `best at 60`, the factor there, and what other values do.
    at: String,
    factor: String,
    others: String,
    /// The natural logarithm of the largest change from the baseline.
    distance: f64,
    /// Whether no value improves it: what the best of other figures costs.
    is_cost: bool,
}

impl Finding<'_> {
    /// Whether another figure moves alike, as one cause makes them do.
    fn is_like(&self, other: &Finding<'_>) -> bool {
        (&self.at, &self.factor, &self.others) == (&other.at, &other.factor, &other.others)
            && (!self.factor.is_empty() || self.figures == other.figures)
            && (self.distance == other.distance || (self.distance - other.distance).abs() < SAME_MOVE)
    }

    /// `stalls: best at 60 (100 → 10 us, ×0.10); nearly so at 100`.
    fn text(&self) -> String {
        let Finding { names, figures, at, factor, others, .. } = self;
        format!("{}: {at} ({}{factor}){others}", names.join(", "), figures.join("; "))
    }
}

/// Findings that say the same as one.
fn folded(findings: Vec<Finding<'_>>) -> Vec<Finding<'_>> {
    let mut all: Vec<Finding<'_>> = Vec::new();
    for finding in findings {
        match all.iter_mut().find(|other| other.is_like(&finding)) {
            Some(other) => {
                other.names.extend(finding.names);
                let new = finding.figures.into_iter().filter(|figures| !other.figures.contains(figures));
                other.figures.extend(new.collect::<Vec<_>>());
            }
            None => all.push(finding),
        }
    }
    all
}

/// The variants of a sweep as a table of their own, the first as its baseline.
fn table(e: &ExperimentResult, sweep: &Sweep) -> ExperimentResult {
    let row = |(i, row): (usize, &Row)| {
        let own = || sweep.variants.iter().map(|v| row.pairs.get(*v).copied().flatten()).collect();
        Row {
            measured: sweep.variants.iter().map(|v| row.measured.get(*v).copied().flatten()).collect(),
            pairs: sweep.pairs.get(i).cloned().unwrap_or_else(own),
            ..row.clone()
        }
    };
    ExperimentResult {
        variants: sweep.variants.iter().filter_map(|v| e.variants.get(*v).cloned()).collect(),
        rows: e.rows.iter().enumerate().map(row).collect(),
        ..e.clone()
    }
}

/// How variants are named: one, and several.
struct Naming<'a> {
    one: &'a dyn Fn(usize) -> String,
    several: &'a dyn Fn(&[usize]) -> String,
}

pub(crate) fn lines(of_all: &ExperimentResult, swept: &Sweep) -> Vec<String> {
    let (least, most) = (least(&swept.values), most(&swept.values));
    let whose = if swept.of.is_empty() { String::new() } else { format!("{}: ", plain(&swept.of)) };
    let unit = if swept.unit.is_empty() { String::new() } else { format!(" {}", plain(&swept.unit)) };
    let head = format!(
        "{whose}{} from {} to {}{unit}, {} values, each against {}:",
        plain(&swept.setting),
        number::exact(least),
        number::exact(most),
        swept.values.len(),
        number::exact(swept.values[0])
    );
    let naming = Naming {
        one: &|i| format!("at {}", number::exact(swept.values[i])),
        several: &|these| format!("at {}", listed(these.iter().map(|i| swept.values[*i]).collect())),
    };
    let named = if of_all.sweeps.len() > 1 { NAMED_OF_EACH } else { NAMED };
    of_variants(&table(of_all, swept), head, &naming, named)
}

/// The conclusion of more variants than can have a line each.
pub(crate) fn of_a_grid(e: &ExperimentResult) -> Vec<String> {
    let naming = Naming {
        one: &|i| format!("with {}", plain(&e.variants[i])),
        several: &|these| format!("with {} other{}", these.len(), if these.len() == 1 { "" } else { "s" }),
    };
    let head = format!("{} variants, each against {}:", e.variants.len(), plain(&e.variants[0]));
    of_variants(e, head, &naming, NAMED)
}

/// The variants of a table against its first.
fn of_variants(e: &ExperimentResult, head: String, naming: &Naming<'_>, named: usize) -> Vec<String> {
    let mut findings = Vec::new();
    let mut still = Vec::new();
    for row in order::judged(e) {
        match finding(e, naming, row) {
            Some(finding) => findings.push(finding),
            None if is_nothing(row) => {}
            None => still.push(row),
        }
    }
    let moved = |finding: &Finding<'_>| finding.distance;
    order::arrange(&mut findings, |finding| (finding.row, moved(finding)));
    let costs = |findings: &[Finding<'_>]| findings.iter().filter(|finding| finding.is_cost).count();
    let all_costs = costs(&findings);
    let hidden = order::one_of_each(&mut findings, |finding| (finding.row, moved(finding), finding.is_cost));
    let hidden_costs = all_costs - costs(&findings);
    let mut findings = folded(findings);
    // One of the lines is what the others cost.
    let cost = findings.iter().position(|finding| finding.is_cost);
    if let Some(at) = cost.filter(|at| *at >= named) {
        findings[named - 1..=at].rotate_right(1);
    }
    let mut lines = vec![head];
    lines.extend(findings.iter().take(named).map(|finding| format!("  {}", finding.text())));
    let of = |finding: &Finding<'_>| finding.names.len();
    let left = findings.iter().skip(named).map(of).sum::<usize>() + hidden;
    let count = |n: usize| if n == 1 { "1 figure".to_owned() } else { format!("{n} figures") };
    if findings.is_empty() {
        lines.push("  no difference shown in any figure".into());
    } else if left > 0 {
        // With as many lines as there may be, the others are counted.
        let and =
            if still.is_empty() { String::new() } else { format!("; no difference shown: {}", count(still.len())) };
        let worse = hidden_costs + findings.iter().skip(named).filter(|finding| finding.is_cost).map(of).sum::<usize>();
        let worse = if worse == 0 { String::new() } else { format!(", {worse} of them worse") };
        lines.push(format!("  and {left} more{worse}{and}"));
    } else if !still.is_empty() {
        lines.push(format!("  no difference shown: {}", unmoved(e, &still, named)));
    }
    if !findings.is_empty() && e.variants.len() > FEW && !e.remarks.iter().any(|r| r.text == NOTHING_IS_RANDOM) {
        let n = e.variants.len();
        lines.push(format!("  of {n} variants chance alone can make one look best: run it again with other seeds"));
    }
    lines
}

/// `None` if no value shows a difference.
fn finding<'a>(e: &ExperimentResult, naming: &Naming<'_>, row: &'a Row) -> Option<Finding<'a>> {
    let variants = || (1..e.variants.len()).filter(|&i| !next_to_nothing(e, row, i));
    let better: Vec<usize> = variants().filter(|&i| matches!(shown(row, i), Shown::Better)).collect();
    let worse: Vec<usize> = variants().filter(|&i| matches!(shown(row, i), Shown::Worse)).collect();
    let value = |i: usize| measured(row, i).map(|m| m.value);
    let lower_is_better = row.better == Better::Lower;
    let by_figure = |a: &usize, b: &usize| value(*a).unwrap_or(f64::NAN).total_cmp(&value(*b).unwrap_or(f64::NAN));
    let extreme = |these: &[usize], low: bool| {
        if low { these.iter().copied().min_by(by_figure) } else { these.iter().copied().max_by(by_figure) }
    };
    let distance = |i: usize| change_to(row, i).map_or(f64::INFINITY, |change| change.ln().abs());
    let [best_word, worst_word] = words(e, ["best", "worst"]);
    let [worse_word, _] = words(e, ["worse", "better"]);
    let others = |these: &[usize], but: usize| -> Vec<usize> { these.iter().copied().filter(|i| *i != but).collect() };
    let finding = |word: &str, i: usize, others: String, is_cost: bool| {
        let (base, new) = (value(0)?, value(i)?);
        let factor = match change_to(row, i).filter(|change| *change > 0.0 && !is_next_to_none(e, row, base)) {
            Some(change) => format!(", {}", number::factor(change)),
            None => String::new(),
        };
        Some(Finding {
            row,
            names: vec![name(row)],
            figures: vec![format!("{} → {}{}", number::rounded(base), number::rounded(new), unit(row))],
            at: format!("{word} {}", (naming.one)(i)),
            factor,
            others,
            distance: distance(i),
            is_cost,
        })
    };
    if let Some(best) = extreme(&better, lower_is_better) {
        let mut text = String::new();
        let near = |i: &usize| {
            value(*i).zip(value(best)).is_some_and(|(v, b)| v == b || (v / b - 1.0).abs() < CHANGE_THAT_COUNTS)
        };
        let near: Vec<usize> = better.iter().copied().filter(near).collect();
        let near = others(&near, best);
        if !near.is_empty() {
            text += &format!("; nearly so {}", (naming.several)(&near));
        }
        if !worse.is_empty() {
            text += &format!("; {worse_word} {}", (naming.several)(&worse));
        }
        return finding(&best_word, best, text, false);
    }
    let worst = extreme(&worse, !lower_is_better)?;
    let text = match worse.len() {
        1 => String::new(),
        _ => format!("; {worse_word} {}", (naming.several)(&others(&worse, worst))),
    };
    finding(&worst_word, worst, text, true)
}

/// Figures that show no difference, with the reason of those that move.
fn unmoved(e: &ExperimentResult, rows: &[&Row], named: usize) -> String {
    let mut said: Vec<String> = Vec::new();
    for group in rows.chunk_by(|a, b| why_not(e, a) == why_not(e, b)) {
        let mut list = names(group);
        if let (Some(last), Some(why)) = (list.last_mut(), why_not(e, group[0])) {
            *last += &format!(" ({why})");
        }
        said.extend(list);
    }
    let more = if said.len() > named { format!(", {} more", said.len() - named) } else { String::new() };
    said.truncate(named);
    said.join(", ") + &more
}

/// The reason why a figure that moves shows no difference; `None` of one that hardly moves.
fn why_not(e: &ExperimentResult, row: &Row) -> Option<&'static str> {
    let moves = || (1..e.variants.len()).filter(|i| !next_to_nothing(e, row, *i));
    let any = |is: fn(&Shown) -> bool| moves().any(|i| is(&shown(row, i)));
    if any(|shown| matches!(shown, Shown::Missing)) {
        Some("not in every run")
    } else if any(|shown| matches!(shown, Shown::TooFew)) {
        Some("too few samples")
    } else {
        any(|shown| matches!(shown, Shown::Overlaps)).then_some("seeds differ as much")
    }
}

/// `20, 40 and 60`, in order.
fn listed(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let texts: Vec<String> = values.into_iter().map(number::exact).collect();
    match texts.as_slice() {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        other => other.join(""),
    }
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_rows::{result, row, sweep};
    use kontig_results::{Pairs, TOTAL};

    fn swept(rows: Vec<Row>) -> ExperimentResult {
        let sweeps = vec![sweep("vm.x", &[0.0, 20.0, 60.0, 100.0])];
        ExperimentResult { sweeps, ..result(&["x=0", "x=20", "x=60", "x=100"], rows) }
    }

    fn said(rows: Vec<Row>) -> Vec<String> {
        let e = swept(rows);
        lines(&e, &e.sweeps[0])
    }

    #[test]
    fn each_of_several_sweeps_is_held_against_its_own_first() {
        let mut e = result(
            &["a+x=0", "a+x=1", "a+x=2", "b+x=0", "b+x=1", "b+x=2"],
            vec![row("p99", Better::Lower, &[10.0, 10.0, 10.0, 100.0, 10.0, 100.0])],
        );
        let first = Sweep { of: "a".into(), ..sweep("x", &[0.0, 1.0, 2.0]) };
        let chance = Some(Pairs { of: 5, lower: 3, higher: 2, overlap: true });
        let second = Sweep {
            of: "b".into(),
            unit: "ms".into(),
            variants: vec![3, 4, 5],
            pairs: vec![vec![None, Some(Pairs { of: 5, lower: 5, higher: 0, overlap: false }), chance]],
            ..sweep("x", &[0.0, 1.0, 2.0])
        };
        e.sweeps = vec![first, second];
        let of = |i: usize| lines(&e, &e.sweeps[i]);
        assert_eq!(of(0), ["a: x from 0 to 2, 3 values, each against 0:", "  no difference shown in any figure"]);
        let best = "  p99: best at 1 (100 → 10 us, ×0.10)";
        assert_eq!(of(1), ["b: x from 0 to 2 ms, 3 values, each against 0:", best]);
    }

    #[test]
    fn of_a_grid_the_best_variant_of_all_is_named_for_each_figure() {
        let names = ["x=0+y=0", "x=0+y=1", "x=1+y=0", "x=1+y=1"];
        let rows = vec![
            row("stalls", Better::Lower, &[100.0, 50.0, 10.0, 10.5]),
            row("moved", Better::Lower, &[1.0, 1.0, 30.0, 20.0]),
        ];
        assert_eq!(
            of_a_grid(&result(&names, rows)),
            [
                "4 variants, each against x=0+y=0:",
                "  stalls: best with x=1+y=0 (100 → 10 us, ×0.10); nearly so with 1 other",
                "  moved: worst with x=1+y=0 (1 → 30 us, ×30.0); worse with 1 other",
            ]
        );
    }

    #[test]
    fn a_figure_is_best_somewhere_and_nearly_so_elsewhere() {
        let rows = vec![
            row("stalls", Better::Lower, &[100.0, 50.0, 10.0, 10.5]),
            row("pages", Better::Higher, &[10.0, 40.0, 20.0, 5.0]),
        ];
        assert_eq!(
            said(rows),
            [
                "vm.x from 0 to 100, 4 values, each against 0:",
                "  stalls: best at 60 (100 → 10 us, ×0.10); nearly so at 100",
                "  pages: best at 20 (10 → 40 us, ×4.00); worse at 100",
            ]
        );
    }

    #[test]
    fn a_figure_that_no_value_improves_is_worst_somewhere() {
        let rows = vec![
            row("moved", Better::Lower, &[1.0, 1.0, 30.0, 20.0]),
            row("elapsed time", Better::Lower, &[7.0, 7.0, 7.1, 7.0]),
        ];
        assert_eq!(
            said(rows)[1..],
            ["  moved: worst at 60 (1 → 30 us, ×30.0); worse at 100", "  no difference shown: elapsed time",]
        );
    }

    #[test]
    fn figures_that_move_alike_have_one_line() {
        let rows = vec![
            row("filling", Better::Lower, &[100.0, 50.0, 40.0, 100.0]),
            row("all of it", Better::Lower, &[10.0, 5.0, 4.0, 10.0]),
            row("other", Better::Lower, &[10.0, 5.0, 3.0, 10.0]),
        ];
        let first = "  filling, all of it: best at 60 (100 → 40 us; 10 → 4 us, ×0.40)";
        assert_eq!(said(rows)[1..], [first, "  other: best at 60 (10 → 3 us, ×0.30)"]);
    }

    #[test]
    fn a_daemon_that_hardly_runs_shows_no_difference_and_needs_no_reason() {
        let total = |name: &str, values: &[f64]| Row { phase: TOTAL.into(), ..row(name, Better::Lower, values) };
        let rows = vec![
            row("p99", Better::Lower, &[10.0, 5.0, 10.0, 10.0]),
            total("elapsed", &[30.0; 4]),
            total("kcompactd CPU time", &[1e-7, 0.004, 0.001, 0.001]),
        ];
        let p99 = "  p99: best at 20 (10 → 5 us, ×0.50)";
        assert_eq!(said(rows)[1..], [p99, "  no difference shown: elapsed, kcompactd CPU time"]);
    }

    #[test]
    fn figures_that_never_move_are_no_finding() {
        let rows = vec![row("p99", Better::Lower, &[5.0; 4]), row("stalls", Better::Lower, &[0.0; 4])];
        assert_eq!(said(rows)[1..], ["  no difference shown in any figure"]);
    }

    #[test]
    fn with_few_seeds_a_value_only_seems_best() {
        let mut few = swept(vec![row("p99", Better::Lower, &[5.0, 1.0, 5.0, 5.0])]);
        few.repetitions = 1;
        assert_eq!(lines(&few, &few.sweeps[0])[1], "  p99: seems best at 20 (5 → 1 us, ×0.20)");
    }

    #[test]
    fn a_figure_that_only_gets_worse_has_one_of_the_lines() {
        let rows = (1..=7).map(|i| row(&format!("f{i}"), Better::Lower, &[10.0, 8.0 / f64::from(i), 10.0, 10.0]));
        let costs = [2.0, 3.0].map(|most| row(&format!("cost {most}"), Better::Lower, &[1.0, 1.0, most, most]));
        let said = said(rows.chain(costs).collect());
        let of = |line: usize| said[line].split(':').next().unwrap_or_default().trim().to_owned();
        assert_eq!((1..=5).map(of).collect::<Vec<_>>(), ["f1", "f2", "f3", "f4", "cost 2"]);
        assert_eq!(said[6], "  and 4 more, 1 of them worse");
    }

    #[test]
    fn at_most_five_figures_have_a_line_and_the_others_are_counted() {
        let rows = (1..=8).map(|i| row(&format!("f{i}"), Better::Lower, &[10.0, 8.0 / f64::from(i), 10.0, 10.0]));
        let rows = rows.chain([row("p50", Better::Lower, &[5.0, 5.0, 5.0, 5.1])]);
        let said = said(rows.collect());
        let last = "  and 3 more; no difference shown: 1 figure";
        assert_eq!((said.len(), said[1].starts_with("  f1: "), said[6].as_str()), (7, true, last));
    }
}
