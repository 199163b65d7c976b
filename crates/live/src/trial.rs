//! What was foretold of a host beside what came about: the tries of `kontig trial`, and the figures that follow from them.
//!
//! A try fragments memory of its own, asks for more blocks than there are, and prepares them as `kontig prepare` does. What
//! was foretold and what was counted are two costs of its receipt. A touch is what a task waits for at its first touches, before
//! and after such a preparation, while the blocks at hand were held.

use crate::prepare::{Cost, Foretold, Receipt};
use crate::touch::Touched;
use serde::{Deserialize, Serialize};

/// Schema of a trial's JSON.
pub const SCHEMA: &str = "kontig.trial/1";

/// One preparation of a host that was fragmented on purpose.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Try {
    /// How memory was fragmented.
    pub pattern: String,
    /// The seed of it.
    pub seed: u64,
    /// The need, as it was asked for.
    pub need: String,
    /// What was foretold; `None` where the check foretold no compaction.
    pub foretold: Option<Foretold>,
    /// What was counted.
    pub counted: Cost,
    /// Whether the blocks were there in the end.
    pub reached: bool,
    /// Why it ended.
    pub ended: String,
}

/// First touches before and after a preparation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Latency {
    /// How memory was fragmented.
    pub pattern: String,
    /// Bytes of free blocks that were held meanwhile, so that none was at hand.
    pub held_bytes: u64,
    /// What was touched before.
    pub before: Touched,
    /// The same after the preparation.
    pub after: Touched,
    /// The preparation's own try.
    pub prepared: Try,
}

/// All of them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// The schema's name and version.
    pub schema: String,
    /// The kernel's release.
    pub kernel: String,
    /// Bytes that were fragmented each time.
    pub aged_bytes: u64,
    /// Blocks that were asked for beyond those that were there.
    pub more: u64,
    /// The host's load average of the last minute at the beginning of each try.
    pub load: Vec<f64>,
    /// The tries, in order.
    pub tries: Vec<Try>,
    /// The touches, in order.
    pub latencies: Vec<Latency>,
}

impl Try {
    /// What a receipt says of it.
    pub fn of(receipt: &Receipt, pattern: &str, seed: u64) -> Try {
        let needs: Vec<&str> = receipt.plan.check.needs.iter().map(|asked| asked.need.as_str()).collect();
        Try {
            pattern: pattern.into(),
            seed,
            need: needs.join(" + "),
            foretold: receipt.predicted,
            counted: receipt.real.unwrap_or_default(),
            reached: receipt.reached,
            ended: receipt.ended.words().into(),
        }
    }

    /// How far the pages foretold are from those that were moved, as a share of the latter; `None` where either is not known.
    pub fn pages_off(&self) -> Option<f64> {
        let moved = self.counted.pages_moved.filter(|pages| *pages > 0)?;
        Some(self.foretold?.pages_moved.abs_diff(moved) as f64 / moved as f64)
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

    /// The mean of the load averages; `None` where the host has none.
    pub fn mean_load(&self) -> Option<f64> {
        (!self.load.is_empty()).then(|| self.load.iter().sum::<f64>() / self.load.len() as f64)
    }

    /// How many tries foretold the pages that were moved within this share of them.
    pub fn within(&self, share: f64) -> usize {
        self.tries.iter().filter(|a_try| a_try.pages_off().is_some_and(|off| off <= share)).count()
    }
}

impl Latency {
    /// How far the median after the preparation lies above the floor, as a share of it; `None` where either is not known.
    pub fn above_floor(&self) -> Option<f64> {
        let floor = self.after.floor_s?.p50;
        Some((self.after.huge_s?.p50 - floor) / floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_try(pattern: &str, foretold: Option<u64>, counted: Option<u64>) -> Try {
        Try {
            pattern: pattern.into(),
            seed: 1,
            need: "4x2M".into(),
            foretold: foretold.map(|pages_moved| Foretold {
                seconds: 1.0,
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
    fn what_is_off_is_a_share_of_what_was_counted() {
        let off = |foretold, counted| a_try("runs", foretold, counted).pages_off();
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
        let trial =
            Trial { schema, kernel, aged_bytes: 0, more: 4, load: vec![1.0, 3.0], tries, latencies: Vec::new() };
        assert_eq!((trial.patterns(), trial.mean_load()), (vec!["runs", "random"], Some(2.0)));
        assert_eq!((trial.of_pattern("runs").count(), trial.within(0.25), trial.within(0.26)), (2, 1, 2));
    }
}
