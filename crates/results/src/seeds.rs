//! The seeds of a session: in JSON a number, or a list where they do not follow each other.

use serde::{Deserialize, Serialize};

/// The seeds of an experiment's repetitions.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub enum Seeds {
    /// The first repetition's; each further one adds 1.
    From(u64),
    /// Each repetition has its own.
    These(Vec<u64>),
}

impl Seeds {
    /// The seed of a repetition, counted from 0.
    pub fn of(&self, repetition: u32) -> u64 {
        match self {
            Seeds::From(first) => first.wrapping_add(u64::from(repetition)),
            // Of more repetitions than it has seeds, the others go on from the first.
            Seeds::These(seeds) => {
                let first = seeds.first().copied().unwrap_or_default();
                seeds.get(repetition as usize).copied().unwrap_or(first.wrapping_add(u64::from(repetition)))
            }
        }
    }

    /// Those of this many repetitions, in words.
    pub fn said(&self, repetitions: u32) -> String {
        let last = repetitions.saturating_sub(1);
        match self {
            _ if last == 0 => format!("seed {}", self.of(0)),
            Seeds::From(first) => format!("seeds {first} to {}", self.of(last)),
            Seeds::These(_) => {
                let all: Vec<String> = (0..repetitions).map(|repetition| self.of(repetition).to_string()).collect();
                format!("seeds {}", all.join(", "))
            }
        }
    }
}

impl From<u64> for Seeds {
    fn from(first: u64) -> Seeds {
        Seeds::From(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_have_the_seeds_given_or_those_that_follow() {
        let of = |seeds: &Seeds| [0, 1, 2].map(|repetition| seeds.of(repetition));
        assert_eq!(of(&Seeds::From(7)), [7, 8, 9]);
        assert_eq!(of(&Seeds::These(vec![1, 5, 9])), [1, 5, 9]);
        assert_eq!((Seeds::From(7).said(1), Seeds::From(7).said(5)), ("seed 7".into(), "seeds 7 to 11".into()));
        assert_eq!(Seeds::These(vec![1, 5, 9]).said(3), "seeds 1, 5, 9");
    }

    #[test]
    fn json_has_a_number_or_a_list() {
        for (seeds, text) in [(Seeds::From(3), "3"), (Seeds::These(vec![1, 5]), "[1,5]")] {
            assert_eq!(serde_json::to_string(&seeds).expect("it is written"), text);
            assert_eq!(serde_json::from_str::<Seeds>(text).expect("it is read"), seeds);
        }
    }
}
