//! Ageing: a figure round by round on one machine that is not rebooted in between, beside the
//! published series.
//!
//! Single rounds scatter, so a series is judged by the mean of its last third of rounds against the
//! mean of its first third, by the same rules as any other change.

use crate::judge::{self, JudgedStep};
use crate::statistics::mean;
use serde::{Deserialize, Serialize};

/// A figure round by round, for one variant.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Ageing {
    pub name: String,
    pub unit: String,
    /// A column of the table.
    pub variant: usize,
    /// One value a round.
    pub published: Vec<f64>,
    /// The median of the repetitions of each round; null without a value.
    pub measured: Vec<Option<f64>>,
    /// Column 1 stands for the last third of the rounds, column 0 for the first.
    pub step: JudgedStep,
}

impl Ageing {
    /// `None` if nothing was published.
    pub fn new(
        (name, unit): (String, String),
        variant: usize,
        published: Vec<f64>,
        measured: Vec<Option<f64>>,
    ) -> Option<Ageing> {
        let step = judge::judge(1, 0, ends(&published)?, ends_of_some(&measured), judge::Noise::Unknown);
        Some(Ageing { name, unit, variant, published, measured, step })
    }

    /// The published last third over the first; `None` if the first is 0.
    pub fn published_change(&self) -> Option<f64> {
        ends(&self.published).and_then(over)
    }

    /// The measured last third over the first; `None` also if a round has no value.
    pub fn measured_change(&self) -> Option<f64> {
        ends_of_some(&self.measured).and_then(over)
    }
}

fn over([first, last]: [f64; 2]) -> Option<f64> {
    (first != 0.0).then(|| last / first)
}

/// The means of the first and of the last third of a series.
fn ends(series: &[f64]) -> Option<[f64; 2]> {
    let third = series.len().div_ceil(3);
    Some([mean(&series[..third])?, mean(&series[series.len() - third..])?])
}

fn ends_of_some(series: &[Option<f64>]) -> Option<[f64; 2]> {
    ends(&series.iter().copied().collect::<Option<Vec<f64>>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aged(published: &[f64], measured: &[Option<f64>]) -> Ageing {
        Ageing::new(("x".into(), "events".into()), 0, published.to_vec(), measured.to_vec()).expect("rounds")
    }

    #[test]
    fn a_series_ages_from_its_first_third_to_its_last() {
        let published = [6.0, 4.0, 9.0, 0.0, 2.0, 1.0];
        let same = aged(&published, &published.map(Some));
        assert_eq!((same.published_change(), same.measured_change()), (Some(0.3), Some(0.3)));
        assert_eq!((same.step.direction_agrees, same.step.size_agrees), (Some(true), Some(true)));
        let steady = aged(&published, &[Some(5.0); 6]);
        assert_eq!(steady.step.direction_agrees, Some(false));
        let short = aged(&published, &[Some(5.0), None, None, None, None, None]);
        assert_eq!((short.measured_change(), short.step.direction_agrees), (None, Some(false)));
        assert_eq!(Ageing::new((String::new(), String::new()), 0, vec![], vec![]), None);
    }
}
