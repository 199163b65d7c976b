//! Row formulas: how a published row is computed, as data.
//!
//! A formula is made of `/proc/vmstat` counters by name, of the run's own figures in brackets
//! (`[elapsed]`, or `[elapsed, total]` for another phase), and of numbers, with `+ - * /` and
//! parentheses. It is evaluated for each run or round by itself. A division by 0 has no value,
//! unless `or` gives one: `100 * pgsteal_direct / pgscan_direct or 100`.

use crate::vmstat;
use kontig_results::MEASURE;
use std::fmt;

/// The formula of a published row.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula(Term);

#[derive(Clone, Debug, PartialEq)]
enum Term {
    Number(f64),
    Counter(String),
    Figure { name: String, phase: String },
    Of(Box<Term>, Operator, Box<Term>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Plus,
    Minus,
    Times,
    Over,
    Or,
}

/// The reason why a formula has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoValue {
    /// The machine does not have this counter.
    Counter(String),
    /// The run does not have this figure.
    Figure(String),
    /// It divides by 0.
    Division,
}

impl fmt::Display for NoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoValue::Counter(name) => write!(f, "the simulated machine does not count {name}"),
            NoValue::Figure(name) => write!(f, "no run has a figure '{name}'"),
            NoValue::Division => write!(f, "a division by 0"),
        }
    }
}

/// The values a formula is computed from.
pub(crate) trait Values {
    /// A counter's value over the measurement.
    fn counter(&self, name: &str) -> Option<f64>;
    /// The value of a phase's figure.
    fn figure(&self, name: &str, phase: &str) -> Option<f64>;
}

impl Formula {
    /// Parses a formula.
    ///
    /// # Errors
    /// Its mistake; a counter that no kernel has is one.
    pub fn parse(text: &str) -> Result<Formula, String> {
        let mut parser = Parser { rest: text };
        let formula = parser.or().and_then(|term| match parser.next_char() {
            None => Ok(Formula(term)),
            Some(c) => Err(format!("'{c}' is not expected here")),
        });
        let formula = formula.map_err(|reason| {
            let at = text.len() - parser.rest.trim_start().len();
            let before = text[..at].trim_end();
            let place = if before.is_empty() { "at its beginning".into() } else { format!("after '{before}'") };
            format!("formula '{text}', {place}: {reason}")
        })?;
        formula.counters().find(|name| !vmstat::is_known(name)).map_or(Ok(()), |name| Err(vmstat::unknown(name)))?;
        Ok(formula)
    }

    /// The counters it names.
    pub fn counters(&self) -> impl Iterator<Item = &str> {
        let mut terms = vec![&self.0];
        std::iter::from_fn(move || {
            loop {
                match terms.pop()? {
                    Term::Counter(name) => return Some(name.as_str()),
                    Term::Of(a, _, b) => terms.extend([b.as_ref(), a.as_ref()]),
                    Term::Number(_) | Term::Figure { .. } => {}
                }
            }
        })
    }

    /// The figures it names, each with its phase.
    pub(crate) fn figures(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut terms = vec![&self.0];
        std::iter::from_fn(move || {
            loop {
                match terms.pop()? {
                    Term::Figure { name, phase } => return Some((name.as_str(), phase.as_str())),
                    Term::Of(a, _, b) => terms.extend([b.as_ref(), a.as_ref()]),
                    Term::Number(_) | Term::Counter(_) => {}
                }
            }
        })
    }

    /// Whether it uses only figures of phases other than the measurement, which a run has once,
    /// however many rounds it has.
    pub(crate) fn is_of_other_phases(&self) -> bool {
        let mut terms = vec![&self.0];
        while let Some(term) = terms.pop() {
            match term {
                Term::Counter(_) => return false,
                Term::Figure { phase, .. } if phase == MEASURE => return false,
                Term::Of(a, _, b) => terms.extend([a.as_ref(), b.as_ref()]),
                Term::Figure { .. } | Term::Number(_) => {}
            }
        }
        true
    }

    pub(crate) fn value(&self, of: &dyn Values) -> Result<f64, NoValue> {
        self.0.value(of)
    }
}

impl Term {
    fn value(&self, of: &dyn Values) -> Result<f64, NoValue> {
        Ok(match self {
            Term::Number(n) => *n,
            Term::Counter(name) => of.counter(name).ok_or_else(|| NoValue::Counter(name.clone()))?,
            Term::Figure { name, phase } => of.figure(name, phase).ok_or_else(|| NoValue::Figure(name.clone()))?,
            Term::Of(a, Operator::Or, b) => match a.value(of) {
                Err(NoValue::Division) => b.value(of)?,
                value => value?,
            },
            Term::Of(a, operator, b) => {
                let (a, b) = (a.value(of)?, b.value(of)?);
                match operator {
                    Operator::Plus => a + b,
                    Operator::Minus => a - b,
                    Operator::Times => a * b,
                    _ if b == 0.0 => return Err(NoValue::Division),
                    _ => a / b,
                }
            }
        })
    }
}

/// The unread rest of the text.
struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn next_char(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn take(&mut self, c: char) -> bool {
        let found = self.next_char() == Some(c);
        if found {
            self.rest = &self.rest[c.len_utf8()..];
        }
        found
    }

    /// Takes characters while they match.
    fn word(&mut self, such: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !such(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// Terms that `or` joins.
    fn or(&mut self) -> Result<Term, String> {
        let mut term = self.sum()?;
        while self.next_char() == Some('o') {
            let before = self.rest;
            if self.word(|c| c.is_ascii_alphabetic()) != "or" {
                self.rest = before;
                return Err("only 'or' can stand here".into());
            }
            term = Term::Of(Box::new(term), Operator::Or, Box::new(self.sum()?));
        }
        Ok(term)
    }

    fn sum(&mut self) -> Result<Term, String> {
        let operators = [('+', Operator::Plus), ('-', Operator::Minus)];
        self.joined(&operators, |parser| {
            parser.joined(&[('*', Operator::Times), ('/', Operator::Over)], Parser::single)
        })
    }

    fn joined(
        &mut self,
        by: &[(char, Operator)],
        mut one: impl FnMut(&mut Self) -> Result<Term, String>,
    ) -> Result<Term, String> {
        let mut term = one(self)?;
        while let Some((_, operator)) = by.iter().find(|(c, _)| self.take(*c)) {
            term = Term::Of(Box::new(term), *operator, Box::new(one(self)?));
        }
        Ok(term)
    }

    fn single(&mut self) -> Result<Term, String> {
        match self.next_char() {
            Some('(') => {
                self.take('(');
                let inner = self.or()?;
                if self.take(')') { Ok(inner) } else { Err("a ')' is missing".into()) }
            }
            Some('[') => {
                self.take('[');
                let inside = self.word(|c| c != ']').trim();
                if inside.is_empty() || !self.take(']') {
                    return Err("a figure is written [name] or [name, phase]".into());
                }
                let (name, phase) = inside.split_once(", ").unwrap_or((inside, MEASURE));
                Ok(Term::Figure { name: name.trim().into(), phase: phase.trim().into() })
            }
            Some(c) if c.is_ascii_digit() => {
                let number = self.word(|c| c.is_ascii_digit() || c == '.');
                number.parse().map(Term::Number).map_err(|_| format!("'{number}' is no number"))
            }
            Some(c) if c.is_ascii_lowercase() => {
                Ok(Term::Counter(self.word(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_').into()))
            }
            Some(c) => Err(format!("'{c}' is not expected here")),
            None => Err("a counter, a [figure] or a number is missing".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Some2;
    impl Values for Some2 {
        fn counter(&self, name: &str) -> Option<f64> {
            [("compact_success", 3.0), ("compact_fail", 9.0), ("pgscan_direct", 0.0)]
                .into_iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value)
        }
        fn figure(&self, name: &str, phase: &str) -> Option<f64> {
            (name == "elapsed").then_some(if phase == MEASURE { 2.0 } else { 5.0 })
        }
    }

    fn value(text: &str) -> Result<f64, NoValue> {
        Formula::parse(text).unwrap_or_else(|e| panic!("{e}")).value(&Some2)
    }

    #[test]
    fn a_ratio_of_two_counters_and_what_stands_before_what() {
        assert_eq!(value("100 * compact_success / (compact_success + compact_fail)"), Ok(25.0));
        assert_eq!(value("compact_fail - compact_success - 1"), Ok(5.0));
        assert_eq!(value("1 + 2*3 - 4/2"), Ok(5.0));
        assert_eq!(value("compact_fail / [elapsed]"), Ok(4.5));
        assert_eq!(value("compact_fail / [elapsed, total]"), Ok(1.8));
    }

    #[test]
    fn figures_of_other_phases_alone_are_of_the_whole_run() {
        let is = |text| Formula::parse(text).expect("a formula").is_of_other_phases();
        assert!(is("2 * [elapsed, total] / [user, fill]"));
        assert!(!is("compact_fail / [elapsed, total]"), "counters are of each round");
        assert!(!is("[elapsed] / [elapsed, total]"));
    }

    #[test]
    fn a_division_by_nothing_has_no_value_unless_the_formula_has_one_for_it() {
        assert_eq!(value("compact_fail / pgscan_direct"), Err(NoValue::Division));
        assert_eq!(value("compact_fail / pgscan_direct or 100"), Ok(100.0));
        assert_eq!(value("compact_fail / compact_success or 100"), Ok(3.0));
    }

    #[test]
    fn a_counter_that_the_machine_lacks_is_no_zero() {
        assert_eq!(value("pswpin + 1"), Err(NoValue::Counter("pswpin".into())));
        assert_eq!(value("pswpin / 2 or 100"), Err(NoValue::Counter("pswpin".into())), "'or' is of divisions only");
        assert_eq!(value("[latency]"), Err(NoValue::Figure("latency".into())));
    }

    #[test]
    fn a_bad_formula_is_refused_with_its_place() {
        let wrong = |text: &str| Formula::parse(text).map(|_| ()).unwrap_err();
        assert_eq!(wrong("compact_stal"), "unknown counter 'compact_stal': did you mean 'compact_stall'?");
        assert_eq!(wrong("(compact_stall"), "formula '(compact_stall', after '(compact_stall': a ')' is missing");
        let missing =
            "formula 'compact_stall +', after 'compact_stall +': a counter, a [figure] or a number is missing";
        assert_eq!(wrong("compact_stall +"), missing);
        assert!(wrong("").starts_with("formula '', at its beginning: "));
        for text in ["1 2", "compact_stall compact_fail", "[", "[]", "1..2", "Compact", "1 or", "(1", "a ö", "1 ö"] {
            assert!(!wrong(text).is_empty(), "{text}");
        }
    }
}
