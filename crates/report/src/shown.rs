//! The figures that a conclusion is about, each judged beside the baseline's.
//!
//! The figures that matter are those that the workload itself declares better one way, its
//! distributions by median, p95, p99 and p99.9, and the few counters of [`OF_ALL_WORKLOADS`] over
//! the whole run. A difference counts if the figure moves by a tenth or more, every seed moves the
//! same way, and the ranges do not overlap or five seeds agree. With fewer than five seeds chance
//! alone does that now and then, so a figure only seems better or worse.

use crate::standing::{self, Layout};
use crate::terminal::plain;
use crate::verdict::{change_to, measured};
use kontig_results::judge::CHANGE_THAT_COUNTS;
use kontig_results::{Better, ExperimentResult, MEASURE, Merge, NOTHING_IS_RANDOM, Pairs, Row, TOTAL};

/// Counters and times that matter whatever runs, of the whole run.
const OF_ALL_WORKLOADS: [&str; 8] =
    ["elapsed", "allocstall", "compact_stall", "thp_fault_fallback", "pswpout", "oom_kill", DAEMONS[0], DAEMONS[1]];
const DAEMONS: [&str; 2] = ["kcompactd CPU time", "kswapd CPU time"];
/// CPU time of a daemon matters from this share of the elapsed time on.
const SHARE_OF_A_CPU: f64 = 0.001;
/// Percentiles that matter of a distribution.
const PERCENTILES: [f64; 4] = [50.0, 95.0, 99.0, 99.9];
/// As many seeds that agree leave chance 1 in 16, even where ranges overlap.
const SEEDS_THAT_AGREE: u32 = 5;

/// A figure of a variant beside the baseline's.
pub(crate) enum Shown {
    Better,
    Worse,
    /// It moves by less than a tenth.
    Same,
    /// It is 0 in both.
    Nothing,
    /// It moves, and chance is a likely cause.
    Overlaps,
    /// A percentile from too few samples.
    TooFew,
    /// The variant has no figure, or the baseline has none.
    Missing,
}

/// Words for what a figure shows: with few seeds it only seems so.
pub(crate) fn words(e: &ExperimentResult, words: [&str; 2]) -> [String; 2] {
    words.map(|word| if is_unsure(e) { format!("seems {word}") } else { word.to_owned() })
}

/// The seeds or rounds that every variant has in common with the baseline.
pub(crate) fn seeds(e: &ExperimentResult) -> u32 {
    let pairs = |row: &Row, variant: usize| row.pairs.get(variant).copied().flatten().map(|pairs| pairs.of);
    let common = |variant: usize| e.rows.iter().filter_map(|row| pairs(row, variant)).max();
    (1..e.variants.len()).filter_map(common).fold(e.repetitions * e.rounds, u32::min)
}

/// Whether there are too few seeds or rounds to leave chance out of account.
pub(crate) fn is_unsure(e: &ExperimentResult) -> bool {
    seeds(e) < SEEDS_THAT_AGREE && !e.remarks.iter().any(|remark| remark.text == NOTHING_IS_RANDOM)
}

/// The rows that a conclusion is about, in the table's order.
pub(crate) fn that_matter(e: &ExperimentResult) -> Vec<&Row> {
    let layout = Layout::of(e);
    let own = layout.single.iter().copied().filter(|row| match row.merge {
        Merge::Percentile { p, .. } => PERCENTILES.contains(&p),
        Merge::Median | Merge::Mean | Merge::MeanOf { .. } => true,
        _ => false,
    });
    let of_phase = |name: &str, phase: &str| e.rows.iter().find(|row| row.name == name && row.phase == phase);
    // Phases that only prepare would hide a change of the time that the work takes.
    let of_the_work = |name: &str| of_phase(name, MEASURE).filter(|_| name == "elapsed");
    let of_all = |name: &&str| of_the_work(name).or_else(|| of_phase(name, TOTAL));
    let own = own.filter(|row| row.better != Better::Neither && !is_of_all_workloads(row));
    own.chain(OF_ALL_WORKLOADS.iter().filter_map(of_all)).collect()
}

/// Whether a daemon's CPU time differs by too little of a CPU to matter.
pub(crate) fn next_to_nothing(e: &ExperimentResult, row: &Row, variant: usize) -> bool {
    let difference = |row: &Row| Some((measured(row, 0)?.value - measured(row, variant)?.value).abs());
    let least = || Some(measured(elapsed(e)?, 0)?.value * SHARE_OF_A_CPU);
    DAEMONS.contains(&row.name.as_str()) && difference(row).zip(least()).is_some_and(|(by, least)| by < least)
}

/// Whether a daemon's CPU time is next to none: a factor of it would say nothing.
pub(crate) fn is_next_to_none(e: &ExperimentResult, row: &Row, value: f64) -> bool {
    let is_little = || Some(value < measured(elapsed(e)?, 0)?.value * SHARE_OF_A_CPU);
    DAEMONS.contains(&row.name.as_str()) && is_little().unwrap_or(false)
}

/// Whether a figure matters whatever runs.
pub(crate) fn is_of_all_workloads(row: &Row) -> bool {
    OF_ALL_WORKLOADS.contains(&row.name.as_str())
}

fn elapsed(e: &ExperimentResult) -> Option<&Row> {
    e.rows.iter().find(|row| row.name == "elapsed" && row.phase == TOTAL)
}

/// Judges a figure of a variant.
pub(crate) fn shown(row: &Row, variant: usize) -> Shown {
    let (Some(base), Some(new)) = (measured(row, 0), measured(row, variant)) else { return Shown::Missing };
    if base.samples_needed.is_some() || new.samples_needed.is_some() {
        return Shown::TooFew;
    }
    let still = change_to(row, variant).is_some_and(|change| (change - 1.0).abs() < CHANGE_THAT_COUNTS);
    if base.value == 0.0 && new.value == 0.0 {
        return Shown::Nothing;
    }
    if base.value == new.value || still {
        return Shown::Same;
    }
    let beyond_chance = match row.pairs.get(variant).copied().flatten() {
        Some(Pairs { of, lower, higher, overlap }) => lower.max(higher) == of && (!overlap || of >= SEEDS_THAT_AGREE),
        None => base.high < new.low || new.high < base.low,
    };
    if !beyond_chance {
        return Shown::Overlaps;
    }
    let lower = new.value < base.value;
    if lower == (row.better == Better::Lower) { Shown::Better } else { Shown::Worse }
}

/// A figure's name; that it is of the whole run goes without saying.
pub(crate) fn name(row: &Row) -> String {
    let name = plain(&standing::name(row));
    name.strip_suffix(&format!(", {TOTAL}")).unwrap_or(&name).to_owned()
}

/// Names of figures; percentiles of one distribution are listed after its name, before the phase:
/// `burst p95, p99, run`.
pub(crate) fn names(rows: &[&Row]) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    let mut before = None;
    for row in rows {
        let (name, figure) = (name(row), plain(&row.name));
        let phase = name.strip_prefix(&figure).unwrap_or_default();
        let of = row.merge.distribution().map(|distribution| (distribution, phase.to_owned()));
        match said.last_mut().filter(|_| of.is_some() && of == before).zip(figure.rsplit(' ').next()) {
            Some((list, percentile)) => list.insert_str(list.len() - phase.len(), &format!(", {percentile}")),
            None => said.push(name),
        }
        before = of;
    }
    said
}

/// A figure's unit with a space before; none for a scale, which is no unit to say after a number.
pub(crate) fn unit(row: &Row) -> String {
    let is_scale = row.unit.starts_with(|first: char| first.is_ascii_digit());
    if is_scale { String::new() } else { format!(" {}", plain(&row.unit)) }
}

/// Whether a figure is 0 in every variant, or none has it.
pub(crate) fn is_nothing(row: &Row) -> bool {
    row.measured.iter().flatten().all(|m| m.value == 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_rows::row;

    #[test]
    fn percentiles_of_a_distribution_are_listed_after_its_name_and_before_the_phase() {
        let of = |name: &str, distribution: &str, phase: &str, p: f64| Row {
            merge: Merge::Percentile { of: distribution.to_owned().into(), p },
            phase: phase.into(),
            ..row(name, Better::Lower, &[1.0, 2.0])
        };
        let rows = [
            of("x p50", "x", "run", 50.0),
            of("x p99", "x", "run", 99.0),
            of("x p50", "x", "rest", 50.0),
            of("y p50", "y", "rest", 50.0),
        ];
        assert_eq!(names(&rows.iter().collect::<Vec<_>>()), ["x p50, p99, run", "x p50, rest", "y p50, rest"]);
    }
}
