//! A condition of a rule: a fact, a comparison, and what it is compared with.

use super::facts::{self, Fact, Facts};

/// A condition on one fact.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    fact: String,
    is: Comparison,
    with: Operand,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Comparison {
    Equal,
    NotEqual,
    Above,
    AtLeast,
    Below,
    AtMost,
    /// A word that has the other one in it: `defer+madvise` has `madvise`.
    Has,
    Lacks,
}

#[derive(Clone, PartialEq, Debug)]
enum Operand {
    Number(f64),
    Word(String),
    /// A fact times a number.
    Times(f64, String),
}

/// Comparisons as they are written.
const WRITTEN: [(&str, Comparison); 8] = [
    ("=", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    (">", Comparison::Above),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Below),
    ("<=", Comparison::AtMost),
    ("has", Comparison::Has),
    ("lacks", Comparison::Lacks),
];

impl Condition {
    /// Reads `FACT COMPARISON NUMBER`, `FACT COMPARISON WORD` or `FACT COMPARISON NUMBER * FACT`. A
    /// fact that is compared with another is written `1 * FACT`, so that it is not taken for a
    /// word.
    pub fn parse(text: &str) -> Option<Condition> {
        let words: Vec<&str> = text.split(' ').collect();
        let (fact, is, with) = match words[..] {
            [fact, is, word] => (fact, is, word.parse().map_or(Operand::Word(word.into()), Operand::Number)),
            [fact, is, times, "*", other] => (fact, is, Operand::Times(times.parse().ok()?, other.into())),
            _ => return None,
        };
        let (_, is) = *WRITTEN.iter().find(|(written, _)| *written == is)?;
        Some(Condition { fact: fact.into(), is, with })
    }

    /// Whether it compares a word as if it were a number, or a number as if it were a word. Most
    /// facts are numbers.
    pub(super) fn mixes_words_and_numbers(&self) -> bool {
        let of_words = matches!(self.is, Comparison::Has | Comparison::Lacks);
        let equality = matches!(self.is, Comparison::Equal | Comparison::NotEqual);
        match (&self.with, facts::is_word(&self.fact)) {
            (Operand::Word(_), true) => !(of_words || equality),
            (Operand::Number(_) | Operand::Times(..), false) => of_words,
            _ => true,
        }
    }

    /// Names of the facts it uses.
    pub fn facts(&self) -> impl Iterator<Item = &str> {
        let other = match &self.with {
            Operand::Times(_, fact) => Some(fact.as_str()),
            _ => None,
        };
        std::iter::once(self.fact.as_str()).chain(other)
    }

    /// Whether it holds; none if a fact is not known, or is a word where a number should be.
    pub fn holds(&self, facts: &impl Facts) -> Option<bool> {
        let fact = facts.get(&self.fact)?;
        let (number, other) = match (&self.with, fact) {
            (Operand::Word(word), Fact::Word(fact)) => return self.of_words(&fact, word),
            (Operand::Number(other), Fact::Number(number)) => (number, *other),
            (Operand::Times(times, other), Fact::Number(number)) => match facts.get(other)? {
                Fact::Number(other) => (number, times * other),
                Fact::Word(_) => return None,
            },
            _ => return None,
        };
        Some(match self.is {
            Comparison::Equal => number == other,
            Comparison::NotEqual => number != other,
            Comparison::Above => number > other,
            Comparison::AtLeast => number >= other,
            Comparison::Below => number < other,
            Comparison::AtMost => number <= other,
            Comparison::Has | Comparison::Lacks => return None,
        })
    }

    fn of_words(&self, fact: &str, word: &str) -> Option<bool> {
        Some(match self.is {
            Comparison::Equal => fact == word,
            Comparison::NotEqual => fact != word,
            Comparison::Has => fact.contains(word),
            Comparison::Lacks => !fact.contains(word),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn facts_are_compared_with_numbers_words_and_each_other() {
        let facts = BTreeMap::from([
            ("stalls".to_string(), Fact::Number(10.0)),
            ("fails".to_string(), Fact::Number(8.0)),
            ("defrag".to_string(), Fact::Word("defer+madvise".into())),
        ]);
        let holds = |text: &str| Condition::parse(text).expect(text).holds(&facts);
        assert_eq!((holds("stalls >= 10"), holds("stalls > 10")), (Some(true), Some(false)));
        assert_eq!((holds("fails > 0.7 * stalls"), holds("fails > 0.8 * stalls")), (Some(true), Some(false)));
        assert_eq!((holds("defrag has madvise"), holds("defrag = madvise")), (Some(true), Some(false)));
        assert_eq!((holds("defrag lacks madvise"), holds("defrag != always")), (Some(false), Some(true)));
        assert_eq!((holds("wakes > 1"), holds("fails > 2 * wakes")), (None, None), "what is not known is not 0");
        assert_eq!((holds("defrag > 1"), holds("stalls = madvise")), (None, None));
        assert_eq!((Condition::parse("stalls"), Condition::parse("stalls is 1")), (None, None));
    }
}
