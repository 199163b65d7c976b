//! A row's repetitions: the range of its figures, and how often a variant beat the baseline.
//!
//! Repetitions are paired by seed, so that a variant is compared with the baseline on the same
//! memory. Overlapping ranges are pointed out: another seed could have reversed the order.

use crate::number;
use kontig_results::{
    Apart, Better, CaveatKind, Counts, ExperimentResult, MEASURE, Measured, Merge, Pairs, Remark, Row, Score, Tally,
};
use kontig_text::UNRESOLVED;

/// The title of a table: the experiment and its case.
pub(crate) fn title(e: &ExperimentResult) -> String {
    if e.case.is_empty() { e.id.clone() } else { format!("{}, {}", e.id, e.case) }
}

/// The rows that are scored separately: a line for each kind of caveat, and one for each reason
/// with its rows.
pub(crate) fn apart(e: &ExperimentResult) -> Vec<String> {
    let mut lines = Vec::new();
    for Apart { kind, rows, direction, size } in &e.score.apart {
        let rows = if *rows == 1 { "1 row".into() } else { format!("{rows} rows") };
        let tally = match kind {
            CaveatKind::NullTest => format!("{}/{} within the published noise", size.agree, size.of),
            _ => format!(
                "direction {}/{} agree, size {}/{} within 2×",
                direction.agree, direction.of, size.agree, size.of
            ),
        };
        lines.push(format!("scored apart, {kind}: {rows}, {tally}"));
        let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
        for row in &e.rows {
            let Some(caveat) = row.caveat.as_ref().filter(|caveat| caveat.kind == *kind) else { continue };
            match reasons.iter_mut().find(|(reason, _)| *reason == caveat.reason) {
                Some((_, names)) => names.push(name(row)),
                None => reasons.push((&caveat.reason, vec![name(row)])),
            }
        }
        lines.extend(reasons.iter().map(|(reason, names)| format!("  {}: {reason}", names.join("; "))));
    }
    lines
}

/// The remarks on what was published of a workload, but for the steps that the conclusion begins
/// with.
pub(crate) fn of_no_step(e: &ExperimentResult) -> Vec<Remark> {
    e.elsewhere.iter().filter(|remark| remark.variant.is_none()).cloned().collect()
}

/// The counts of a score.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    Direction,
    ToZero,
    FalseAlarms,
    Headline,
    Ageing,
}

/// The counts of a score, each with its number of rows and their total. Counts without rows are
/// left out, except for direction and headline.
pub(crate) fn counts(counts: &Counts) -> Vec<(Count, u32, u32)> {
    let Counts { direction, to_zero, false_alarms, headline_within_2x, ageing } = counts;
    let of = |count, tally: &Tally| (count, tally.agree, tally.of);
    let mut said = vec![
        of(Count::Direction, direction),
        of(Count::ToZero, to_zero),
        (Count::FalseAlarms, false_alarms.moved, false_alarms.of),
        of(Count::Headline, headline_within_2x),
        of(Count::Ageing, ageing),
    ];
    said.retain(|(count, _, of)| *of > 0 || matches!(count, Count::Direction | Count::Headline));
    said
}

/// Explains the counts of a score, and what is not counted; none if there are no such rows.
pub(crate) fn counts_explained(score: &Score) -> Option<String> {
    let mut said = Vec::new();
    if score.measured.false_alarms.of > 0 {
        said.push("false alarms: rows published to change by less than a tenth that move by more here".to_owned());
    }
    if score.measured.to_zero.of > 0 {
        said.push("to zero: rows that a patch brings to less than a hundredth".into());
    }
    match score.within_noise {
        0 => {}
        1 => said.push("1 published change no larger than the null test's is not counted".into()),
        n => said.push(format!("{n} published changes no larger than the null test's are not counted")),
    }
    (!said.is_empty()).then(|| said.join("; "))
}

/// How many of the agreeing rows differ by more than chance; none if that is known of no row.
pub(crate) fn beyond_chance(tally: Tally) -> Option<String> {
    (tally.of > 0).then(|| format!("{} of {} by more than chance", tally.agree, tally.of))
}

/// A measured figure, marked if it is a percentile from too few samples.
pub(crate) fn figure(m: &Measured) -> String {
    let mark = if m.samples_needed.is_some() { UNRESOLVED } else { "" };
    format!("{}{mark}", number::rounded(m.value))
}

/// The range from the lowest round or repetition to the highest, and how many have no value. None
/// for a sum, to which repetitions add, and for figures that are present in all and do not vary.
pub(crate) fn range(row: &Row, m: &Measured) -> Option<String> {
    let (low, high) = (number::rounded(m.low), number::rounded(m.high));
    let range = (row.merge != Merge::Sum && low != high).then(|| format!("{low}–{high}"));
    let lacking = (m.lacking > 0).then(|| format!("{} without", m.lacking));
    let parts: Vec<String> = range.into_iter().chain(lacking).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// A variant against the baseline over the seeds: `won 2 of 3, ranges overlap`.
pub(crate) fn against_baseline(row: &Row, variant: usize) -> Option<String> {
    let Pairs { of, lower, higher, overlap } = (*row.pairs.get(variant)?)?;
    if lower == 0 && higher == 0 {
        return Some("equal".into());
    }
    let equal = of - lower - higher;
    let ties = if equal > 0 { format!(", {equal} equal") } else { String::new() };
    let count = match row.better {
        Better::Lower => format!("won {lower} of {of}"),
        Better::Higher => format!("won {higher} of {of}"),
        Better::Neither if higher >= lower => format!("higher {higher} of {of}"),
        Better::Neither => format!("lower {lower} of {of}"),
    } + &ties;
    Some(if overlap { format!("{count}, ranges overlap") } else { count })
}

/// Whether any row has pairs to report.
pub(crate) fn has_pairs(e: &ExperimentResult) -> bool {
    e.rows.iter().any(|row| row.pairs.iter().any(Option::is_some))
}

/// [`how_merged`], and what the ranges beside the figures are.
pub(crate) fn how_merged_with_ranges(e: &ExperimentResult) -> Option<String> {
    let one = if e.rounds > 1 { "round" } else { "repetition" };
    how_merged(e).map(|how| format!("{how}; ranges are from the lowest {one} to the highest"))
}

/// How the figures of several repetitions were merged; none for a single one.
pub(crate) fn how_merged(e: &ExperimentResult) -> Option<String> {
    let merged = |is: fn(&Merge) -> bool| e.rows.iter().any(|row| is(&row.merge));
    let ways = [
        (merged(|m| matches!(m, Merge::Percentile { .. })), "percentiles are of all samples together"),
        (merged(|m| matches!(m, Merge::Sum)), "counts of samples are sums"),
        (merged(|m| matches!(m, Merge::Min | Merge::Max)), "extremes are the most extreme"),
        (merged(|m| matches!(m, Merge::Mean | Merge::MeanOf { .. })), "rows published as means are means"),
        (
            merged(|m| matches!(m, Merge::Stddev | Merge::StddevOf { .. })),
            "rows published as deviations are standard deviations",
        ),
    ];
    let ways: String = ways.iter().filter(|(some, _)| *some).map(|(_, way)| format!("{way}, ")).collect();
    let other = if ways.is_empty() { "" } else { "other " };
    let of = match (e.repetitions, e.rounds) {
        (0 | 1, 0 | 1) => return None,
        (n, 0 | 1) => format!("{n} repetitions, each with its own seed"),
        (0 | 1, rounds) => format!("{rounds} rounds on one machine, not booted in between"),
        (n, rounds) => {
            format!("{n} repetitions, each with its own seed, of {rounds} rounds on a machine not booted in between")
        }
    };
    Some(format!("{of}: {ways}{other}figures are medians"))
}

/// Explains the mark of unresolved percentiles, if it is used.
pub(crate) fn mark_explained(e: &ExperimentResult) -> Option<String> {
    let mut needed: Vec<(u64, f64)> = (e.rows.iter())
        .filter_map(|row| match row.merge {
            Merge::Percentile { p, .. } => Some((row.measured.iter().flatten().find_map(|m| m.samples_needed)?, p)),
            _ => None,
        })
        .collect();
    needed.sort_by(|a, b| a.1.total_cmp(&b.1));
    needed.dedup();
    let list: Vec<String> = needed.iter().map(|(n, p)| format!("p{p} takes {}", number::exact(*n as f64))).collect();
    (!list.is_empty()).then(|| format!("{UNRESOLVED} too few samples to tell: {}", list.join(", ")))
}

/// Distinct remarks with the variants they apply to; no variants if it is all of them.
pub(crate) fn remarks(all: &[Remark]) -> Vec<(Vec<usize>, &str)> {
    let mut out: Vec<(Vec<usize>, &str)> = Vec::new();
    for remark in all {
        match out.iter_mut().find(|(_, text)| *text == remark.text) {
            Some((variants, _)) => variants.extend(remark.variant),
            None => out.push((remark.variant.into_iter().collect(), &remark.text)),
        }
    }
    out
}

/// A row's name, with its phase unless that is the measurement.
pub(crate) fn name(row: &Row) -> String {
    if row.phase == MEASURE { row.name.clone() } else { format!("{}, {}", row.name, row.phase) }
}

/// Says to which phase the rows of single figures belong.
pub(crate) fn phase_of_singles(layout: &Layout<'_>) -> &'static str {
    if !layout.phases.contains(&MEASURE) {
        "rows above that name no phase are of the measurement as a whole"
    } else if layout.single.iter().all(|row| row.phase == MEASURE) {
        "the rows above are of the phase 'measure'"
    } else {
        "rows above that name no phase are of the phase 'measure'"
    }
}

/// The rows of single figures, and those of figures by phase.
pub(crate) struct Layout<'a> {
    /// One row per figure.
    pub(crate) single: Vec<&'a Row>,
    pub(crate) phases: Vec<&'a str>,
    /// Figures with a row for some or all phases, in the order of `phases`.
    pub(crate) by_phase: Vec<Vec<Option<&'a Row>>>,
    /// Names of figures that were 0 in every phase of every variant, which one line lists instead.
    pub(crate) nothing: Vec<&'a str>,
}

impl<'a> Layout<'a> {
    /// A figure with rows for several phases is shown by phase; a
    /// published one also among the others.
    pub(crate) fn of(e: &'a ExperimentResult) -> Layout<'a> {
        let several = |row: &Row| e.rows.iter().any(|other| other.name == row.name && other.phase != row.phase);
        let single = e.rows.iter().filter(|row| !row.published.is_empty() || !several(row)).collect();
        let of_phases: Vec<&Row> = e.rows.iter().filter(|row| several(row)).collect();
        // Published rows come first, whatever their phase; the last row of each phase keeps the
        // order of phases.
        let mut phases = in_order(of_phases.iter().rev().map(|row| row.phase.as_str()));
        phases.reverse();
        let of_phase = |name: &str, phase: &str| e.rows.iter().find(|row| row.name == name && row.phase == phase);
        // The last phase has most figures, in order; those it lacks follow.
        let (of_last, others): (Vec<&Row>, Vec<&Row>) =
            of_phases.iter().partition(|row| phases.last() == Some(&row.phase.as_str()));
        let rows_of = in_order(of_last.iter().chain(&others).map(|row| row.name.as_str()))
            .into_iter()
            .map(|name| phases.iter().map(|phase| of_phase(name, phase)).collect::<Vec<_>>());
        let (nothing, by_phase): (Vec<_>, Vec<_>) = rows_of.partition(|rows| rows.iter().all(|row| is_nothing(*row)));
        let nothing = nothing.iter().filter_map(|rows| Some(rows.iter().flatten().next()?.name.as_str())).collect();
        Layout { single, phases, by_phase, nothing }
    }

    /// A line with the figures that were 0 throughout.
    pub(crate) fn nothing(&self) -> Option<String> {
        (!self.nothing.is_empty()).then(|| format!("0 in every phase: {}", self.nothing.join(", ")))
    }
}

/// Whether every variant measured 0. A missing figure is not 0.
fn is_nothing(row: Option<&Row>) -> bool {
    row.is_some_and(|row| row.measured.iter().all(|m| m.as_ref().is_some_and(|m| m.low == 0.0 && m.high == 0.0)))
}

/// Drops duplicates, keeping the order.
fn in_order<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut out = Vec::new();
    for name in names {
        if !out.contains(&name) {
            out.push(name);
        }
    }
    out
}
