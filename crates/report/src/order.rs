//! The order in which a conclusion names figures: what the workload measures as it lists it, then
//! counters and the machine's state, the farthest move first.
//!
//! Counters move by factors of hundreds where the time that a user waits for moves by a third.

use crate::shown::{self, is_of_all_workloads, that_matter};
use crate::verdict::measured;
use kontig_results::{ExperimentResult, Row};
use std::borrow::Cow;

/// Figures of the lab, not of the workload.
const OF_THE_MACHINE: &str = "fragmentation score";
/// Times that differ by less than this share say the same.
const SAME_TIME: f64 = 0.01;

/// The rows that a conclusion judges, the workload's own first.
pub(crate) fn judged(e: &ExperimentResult) -> Vec<&Row> {
    let rows = that_matter(e);
    let says_the_same = |elapsed: &Row| rows.iter().any(|row| is_own(row) && are_one_time(row, elapsed, e));
    let mut judged: Vec<&Row> = rows.iter().copied().filter(|row| !(is_elapsed(row) && says_the_same(row))).collect();
    judged.sort_by_key(|row| rank(row));
    judged
}

/// Findings in the order of their rows, except that counters stand by how far they moved.
pub(crate) fn arrange<T>(findings: &mut [T], of: impl Fn(&T) -> (&Row, f64)) {
    findings.sort_by(|a, b| {
        let ((a, a_moved), (b, b_moved)) = (of(a), of(b));
        let by_distance = if rank(a) == Rank::Other { b_moved.total_cmp(&a_moved) } else { std::cmp::Ordering::Equal };
        rank(a).cmp(&rank(b)).then(by_distance)
    });
}

/// Keeps of each distribution what moved farthest, and what did so as a cost. Returns how many are
/// left out.
pub(crate) fn one_of_each<T>(findings: &mut Vec<T>, of: impl Fn(&T) -> (&Row, f64, bool)) -> usize {
    let all = findings.len();
    let mut farthest: Vec<(Cow<'static, str>, bool, f64)> = Vec::new();
    for (row, moved, is_cost) in findings.iter().map(&of) {
        let Some(name) = row.merge.distribution() else { continue };
        match farthest.iter_mut().find(|(other, cost, _)| other == name && *cost == is_cost) {
            Some((.., most)) => *most = most.max(moved),
            None => farthest.push((name.clone(), is_cost, moved)),
        }
    }
    findings.retain(|finding| {
        let (row, moved, is_cost) = of(finding);
        let Some(name) = row.merge.distribution() else { return true };
        // A distribution that is named once is named no more.
        let is_it = |(other, cost, most): &(_, bool, f64)| other == name && *cost == is_cost && *most <= moved;
        let place = farthest.iter().position(is_it);
        place.map(|place| farthest.swap_remove(place)).is_some()
    });
    all - findings.len()
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Own,
    Elapsed,
    Other,
}

fn rank(row: &Row) -> Rank {
    match () {
        () if is_elapsed(row) => Rank::Elapsed,
        () if is_own(row) => Rank::Own,
        () => Rank::Other,
    }
}

fn is_elapsed(row: &Row) -> bool {
    row.name == "elapsed"
}

fn is_own(row: &Row) -> bool {
    !is_of_all_workloads(row) && !row.name.contains(OF_THE_MACHINE)
}

/// Whether two times are the same in every variant.
fn are_one_time(row: &Row, elapsed: &Row, e: &ExperimentResult) -> bool {
    let near = |variant: usize| match (measured(row, variant), measured(elapsed, variant)) {
        (Some(one), Some(other)) => (one.value - other.value).abs() <= other.value.abs() * SAME_TIME,
        (None, None) => true,
        _ => false,
    };
    row.unit == elapsed.unit && !shown::is_nothing(row) && (0..e.variants.len()).all(near)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_rows::{result, row};
    use kontig_results::{Better, Merge};

    fn names<'a>(rows: &[&'a Row]) -> Vec<&'a str> {
        rows.iter().map(|row| &*row.name).collect()
    }

    #[test]
    fn figures_of_the_workload_come_before_the_state_of_the_machine() {
        let of = |name: &str| row(name, Better::Lower, &[1.0, 2.0]);
        let e = result(&["a", "b"], ["fragmentation score after", "total time", "p99"].map(of).into());
        assert_eq!(names(&judged(&e)), ["total time", "p99", "fragmentation score after"]);
    }

    #[test]
    fn elapsed_time_that_the_workload_measures_itself_is_not_said_twice() {
        let elapsed = || row("elapsed", Better::Lower, &[9.0, 5.0]);
        let judged_beside = |values: [f64; 2]| {
            let e = result(&["a", "b"], vec![row("filling and accesses", Better::Lower, &values), elapsed()]);
            judged(&e).len()
        };
        assert_eq!(judged_beside([9.001, 5.001]), 1);
        assert_eq!(judged_beside([9.0, 4.0]), 2);
    }

    #[test]
    fn the_percentile_that_moved_farthest_is_named_of_a_distribution() {
        let of = |name: &str, distribution: &str, p: f64| Row {
            merge: Merge::Percentile { of: distribution.to_owned().into(), p },
            ..row(name, Better::Lower, &[1.0, 2.0])
        };
        let rows = [of("x p50", "x", 50.0), of("x p99", "x", 99.0), of("y p50", "y", 50.0), of("y p99", "y", 99.0)];
        let left = |costs: [bool; 4]| {
            let moved = rows.iter().zip([0.1, 0.7, 0.3, 0.3]).zip(costs);
            let mut findings: Vec<(&Row, f64, bool)> = moved.map(|((row, moved), cost)| (row, moved, cost)).collect();
            let hidden = one_of_each(&mut findings, |finding| *finding);
            (hidden, names(&findings.iter().map(|(row, ..)| *row).collect::<Vec<_>>()))
        };
        assert_eq!(left([false; 4]), (2, vec!["x p99", "y p50"]));
        // What a better median costs at the far end is said beside it.
        assert_eq!(left([false, true, false, false]), (1, vec!["x p50", "x p99", "y p50"]));
    }
}
