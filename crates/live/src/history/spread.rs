//! The spread of values: the least, the quartiles, the most.

use serde::Serialize;

/// The quartiles of values.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Quartiles {
    pub lower: f64,
    pub median: f64,
    pub upper: f64,
}

impl Quartiles {
    /// Of values in ascending order, of which there is at least one; between two values where a
    /// quarter ends between them.
    pub fn of(values: &[f64]) -> Quartiles {
        let at = |quarter: usize| {
            let place = (values.len() - 1) as f64 * quarter as f64 / 4.0;
            let (below, above) = (values[place.floor() as usize], values[place.ceil() as usize]);
            below + (above - below) * place.fract()
        };
        Quartiles { lower: at(1), median: at(2), upper: at(3) }
    }
}

/// Values that were seen.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    pub least: u64,
    #[serde(flatten)]
    pub quartiles: Quartiles,
    pub most: u64,
}

impl Spread {
    /// Of values in any order; `None` if there is none.
    pub fn of(mut values: Vec<u64>) -> Option<Spread> {
        values.sort_unstable();
        let (least, most) = (*values.first()?, *values.last()?);
        let values: Vec<f64> = values.into_iter().map(|value| value as f64).collect();
        Some(Spread { least, quartiles: Quartiles::of(&values), most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_may_end_between_two_values() {
        let spread = Spread::of(vec![4, 1, 2, 3]).expect("there are some");
        assert_eq!((spread.least, spread.most), (1, 4));
        assert_eq!(spread.quartiles, Quartiles { lower: 1.75, median: 2.5, upper: 3.25 });
        assert_eq!(Spread::of(Vec::new()), None);
    }
}
