//! Series: values over time.

use serde::{Deserialize, Serialize};

/// One value, sampled over time.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Series {
    /// For example `fragmentation score`.
    pub name: String,
    pub unit: String,
    /// Virtual time in ns, and the value.
    pub points: Vec<(u64, f64)>,
}

/// Of more runs a page does not draw values over time: nobody tells their lines apart.
const DRAWN: usize = 60;

/// Whether a page draws a run's values over time: of each variant as many seeds, the first ones,
/// and of many variants the first ones.
pub fn is_drawn(variant: usize, variants: usize, repetition: usize) -> bool {
    variant < DRAWN && repetition < (DRAWN / variants.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_runs_are_drawn_of_each_variant_and_never_too_many() {
        for (variants, repetitions, drawn) in [(1, 5, 5), (1, 100, 60), (20, 100, 60), (45, 2, 45), (2000, 1, 60)] {
            let runs = (0..variants).flat_map(|v| (0..repetitions).map(move |r| (v, r)));
            assert_eq!(runs.filter(|(v, r)| is_drawn(*v, variants, *r)).count(), drawn, "{variants} {repetitions}");
        }
    }
}
