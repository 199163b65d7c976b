//! How runs of a variant ended before their work was done, in a table: a sentence, and what it is
//! made from.

use crate::MEASURE;
use kontig_program::Ending;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How one task ended in one phase by one rule, in some or all repetitions of a variant.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Ended {
    /// Empty of a workload's only task.
    pub task: String,
    pub phase: String,
    pub rule: String,
    /// The repetitions that ended so.
    pub repetitions: u32,
    /// The number of repetitions in all.
    pub of: u32,
    /// The least and the most of the goal that was reached, %; null if nobody knows.
    pub reached: Option<[f64; 2]>,
    /// The whole that `reached` is a share of.
    pub goal: String,
}

impl Ended {
    /// The rules that ended the tasks of these runs: one for each task, phase and rule, in the
    /// order in which they first did.
    pub fn each<'a>(runs: impl IntoIterator<Item = &'a [Ending]>) -> Vec<Ended> {
        let mut all: Vec<Ended> = Vec::new();
        let mut of = 0;
        for ending in runs.into_iter().inspect(|_| of += 1).flatten() {
            let is_alike = |e: &&mut Ended| e.task == ending.task && e.phase == ending.phase && e.rule == ending.rule;
            match all.iter_mut().find(is_alike) {
                Some(ended) => ended.add(ending),
                None => all.push(Ended {
                    task: ending.task.clone(),
                    phase: ending.phase.to_string(),
                    rule: ending.rule.clone(),
                    repetitions: 1,
                    of: 0,
                    reached: ending.reached.map(|reached| [reached; 2]),
                    goal: ending.goal.clone(),
                }),
            }
        }
        all.iter_mut().for_each(|ended| ended.of = of);
        all
    }

    fn add(&mut self, ending: &Ending) {
        self.repetitions += 1;
        let [low, high] = self.reached.unwrap_or([f64::INFINITY, f64::NEG_INFINITY]);
        self.reached = ending.reached.map(|reached| [low.min(reached), high.max(reached)]).or(self.reached);
    }

    /// The sentence without how far it came.
    pub fn by_rule(&self) -> String {
        let named = if self.task.is_empty() { String::new() } else { format!("{}: ", self.task) };
        let phase = if self.phase == MEASURE { String::new() } else { format!(" in {}", self.phase) };
        let some = match self.repetitions < self.of {
            true => format!(" in {} of {} repetitions", self.repetitions, self.of),
            false => String::new(),
        };
        format!("{named}ended{phase} at {}{some}", self.rule)
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.by_rule())?;
        let Some(reached) = self.reached else { return Ok(()) };
        match reached.map(|percent| format!("{percent:.1}")) {
            [low, high] if low == high => write!(f, ", with {low}")?,
            [low, high] => write!(f, ", with {low} to {high}")?,
        }
        write!(f, " % of {} taken", self.goal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(rule: &str, reached: Option<f64>) -> Ending {
        Ending {
            task: String::new(),
            phase: MEASURE.into(),
            rule: rule.into(),
            reached,
            goal: "memory".into(),
            remedy: "try again".into(),
        }
    }

    fn said(runs: &[&[Ending]]) -> Vec<String> {
        Ended::each(runs.iter().copied()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn how_far_it_came_is_a_range_over_repetitions() {
        let [low, high, unknown] = [Some(61.04), Some(63.0), None].map(|reached| [ending("rule 1", reached)]);
        assert_eq!(said(&[&low]), ["ended at rule 1, with 61.0 % of memory taken"]);
        for runs in [[&low, &high, &unknown], [&unknown, &high, &low]] {
            let runs: Vec<&[Ending]> = runs.iter().map(|run| run.as_slice()).collect();
            assert_eq!(said(&runs), ["ended at rule 1, with 61.0 to 63.0 % of memory taken"]);
        }
        assert_eq!(said(&[&unknown]), ["ended at rule 1"]);
    }

    #[test]
    fn runs_that_ended_otherwise_are_counted() {
        let [one, other] = ["rule 1", "rule 2"].map(|rule| ending(rule, None));
        let in_later = Ending { task: "disk".into(), phase: "later".into(), ..one.clone() };
        assert_eq!(
            said(&[&[one.clone(), in_later], &[other], &[one]]),
            [
                "ended at rule 1 in 2 of 3 repetitions",
                "disk: ended in later at rule 1 in 1 of 3 repetitions",
                "ended at rule 2 in 1 of 3 repetitions",
            ]
        );
    }
}
