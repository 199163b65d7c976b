//! Prediction beside result on one host: the tries of `kontig trial`, and the figures that follow
//! from them.
//!
//! A try fragments memory of its own, asks for more blocks than there are, and prepares them as
//! `kontig prepare` does. Prediction and count are two costs of its receipt. A touch is the wait of
//! a task at its first touches, before and after such a preparation, while the blocks at hand were
//! held.

use crate::load::Load;
use crate::prepare::{Cost, Predicted, Receipt};
use crate::touch::Touched;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Name and version of a trial's schema.
pub const SCHEMA: &str = "kontig.trial/2";

/// One preparation of a host that was fragmented on purpose.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Try {
    pub pattern: String,
    pub seed: u64,
    pub need: String,
    /// How busy the host was; `None` where it does not say.
    pub load: Option<Load>,
    /// `None` where the check predicted no compaction.
    pub predicted: Option<Predicted>,
    pub counted: Cost,
    /// Whether the blocks were there in the end.
    pub reached: bool,
    pub ended: String,
}

/// First touches before and after a preparation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Latency {
    pub pattern: String,
    /// Bytes of free blocks that were held meanwhile, so that none was at hand.
    pub held_bytes: u64,
    pub before: Touched,
    pub after: Touched,
    /// The preparation's own try.
    pub prepared: Try,
}

/// The tries and touches of one trial.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Trial {
    pub schema: String,
    pub kernel: String,
    /// Bytes that were fragmented each time.
    pub aged_bytes: u64,
    /// Blocks that were asked for beyond those that were there.
    pub more: u64,
    /// The tries, in order.
    pub tries: Vec<Try>,
    /// The touches, in order.
    pub latencies: Vec<Latency>,
}

impl Try {
    /// A try as its receipt has it.
    pub fn of(receipt: &Receipt, pattern: &str, seed: u64) -> Try {
        let needs: Vec<&str> = receipt.plan.check.needs.iter().map(|asked| asked.need.as_str()).collect();
        Try {
            pattern: pattern.into(),
            seed,
            need: needs.join(" + "),
            load: receipt.plan.check.load,
            predicted: receipt.predicted,
            counted: receipt.real.unwrap_or_default(),
            reached: receipt.reached,
            ended: receipt.ended.words().into(),
        }
    }

    /// Distance of the pages predicted from those moved, as a share of the latter; `None` where
    /// either is not known.
    pub fn pages_off(&self) -> Option<f64> {
        let moved = self.counted.pages_moved.filter(|pages| *pages > 0)?;
        Some(self.predicted?.pages_moved.abs_diff(moved) as f64 / moved as f64)
    }

    /// The time it took against the range predicted; `None` where there was none. The disk's time
    /// for dirty pages is not in the range.
    pub fn in_time(&self) -> Option<Ordering> {
        let predicted = self.predicted?;
        let (least, most) = (predicted.seconds, predicted.seconds_at_most?);
        let took = self.counted.seconds;
        Some(if took < least {
            Ordering::Less
        } else if took > most {
            Ordering::Greater
        } else {
            Ordering::Equal
        })
    }
}

impl Trial {
    /// The patterns, each once, in the order of their first tries.
    pub fn patterns(&self) -> Vec<&str> {
        let mut patterns: Vec<&str> = Vec::new();
        for a_try in &self.tries {
            if !patterns.contains(&a_try.pattern.as_str()) {
                patterns.push(&a_try.pattern);
            }
        }
        patterns
    }

    /// The tries of a pattern.
    pub fn of_pattern<'a>(&'a self, pattern: &'a str) -> impl Iterator<Item = &'a Try> + 'a {
        self.tries.iter().filter(move |a_try| a_try.pattern == pattern)
    }

    /// The least and the most busy that the host was at a try; `None` where it never said.
    pub fn loads(&self) -> Option<[Load; 2]> {
        let loads = || self.tries.iter().filter_map(|a_try| a_try.load);
        let by_tasks = |a: &Load, b: &Load| a.tasks.total_cmp(&b.tasks);
        Some([loads().min_by(by_tasks)?, loads().max_by(by_tasks)?])
    }

    /// Number of tries whose predicted pages are within this share of the pages moved.
    pub fn within(&self, share: f64) -> usize {
        self.tries.iter().filter(|a_try| a_try.pages_off().is_some_and(|off| off <= share)).count()
    }
}

impl Latency {
    /// How far the median after the preparation lies above the floor, as a share of it; `None`
    /// where either is not known.
    pub fn above_floor(&self) -> Option<f64> {
        let floor = self.after.floor_s?.p50;
        Some((self.after.huge_s?.p50 - floor) / floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(tasks: f64) -> Load {
        Load { cpus: 2, tasks, waited_cpu: None, waited_memory: None, waited_io: None, in_cpu_group: false }
    }

    fn a_try(pattern: &str, predicted: Option<u64>, counted: Option<u64>) -> Try {
        Try {
            pattern: pattern.into(),
            seed: 1,
            need: "4x2M".into(),
            load: Some(load(3.0)),
            predicted: predicted.map(|pages_moved| Predicted {
                seconds: 1.0,
                seconds_at_most: Some(4.0),
                pages_moved,
                frames_scanned: 0,
                dropped_bytes: 0,
            }),
            counted: Cost { pages_moved: counted, ..Cost::default() },
            reached: true,
            ended: "reached".into(),
        }
    }

    #[test]
    fn the_error_is_a_share_of_the_count() {
        let off = |predicted, counted| a_try("runs", predicted, counted).pages_off();
        assert_eq!((off(Some(75), Some(100)), off(Some(150), Some(100))), (Some(0.25), Some(0.5)));
        assert_eq!((off(None, Some(100)), off(Some(5), None), off(Some(5), Some(0))), (None, None, None));
    }

    #[test]
    fn tries_are_told_by_pattern_and_those_within_a_share_are_counted() {
        let tries = vec![
            a_try("runs", Some(75), Some(100)),
            a_try("random", Some(74), Some(100)),
            a_try("runs", None, Some(9)),
        ];
        let (schema, kernel) = (SCHEMA.into(), "6.18".into());
        let trial = Trial { schema, kernel, aged_bytes: 0, more: 4, tries, latencies: Vec::new() };
        assert_eq!(trial.patterns(), ["runs", "random"]);
        assert_eq!((trial.of_pattern("runs").count(), trial.within(0.25), trial.within(0.26)), (2, 1, 2));
    }

    #[test]
    fn a_try_is_in_time_within_the_range_that_was_predicted() {
        let took = |seconds| {
            let mut a_try = a_try("runs", Some(75), Some(100));
            a_try.counted.seconds = seconds;
            a_try.in_time()
        };
        assert_eq!(
            [0.9, 1.0, 4.0, 4.1].map(took),
            [Ordering::Less, Ordering::Equal, Ordering::Equal, Ordering::Greater].map(Some)
        );
        assert_eq!(a_try("runs", None, Some(1)).in_time(), None);
    }

    #[test]
    fn the_loads_of_a_trial_go_from_the_least_to_the_most() {
        let (schema, kernel) = (SCHEMA.into(), "6.18".into());
        let at = |tasks| Try { load: Some(load(tasks)), ..a_try("runs", None, None) };
        let tries = vec![at(7.0), at(2.0), at(9.0)];
        let trial = Trial { schema, kernel, aged_bytes: 0, more: 4, tries, latencies: Vec::new() };
        assert_eq!(trial.loads().map(|loads| loads.map(|load| load.tasks)), Some([2.0, 9.0]));
    }
}
