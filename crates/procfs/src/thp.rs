//! `/sys/kernel/mm/transparent_hugepage/enabled`, `defrag` and `shmem_enabled`: one word chosen
//! from several.
//!
//! The kernel lists the words it understands, with the chosen one in brackets: `always [madvise]
//! never`. The amount of memory in huge pages is in [`crate::meminfo`] (`AnonHugePages`). Source:
//! kernel-behaviour §7.7.

use crate::error::BadText;
use crate::lines::Lines;
use std::fmt;

/// The contents of such a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The words before the chosen one.
    pub before: Vec<String>,
    pub chosen: String,
    /// The words after it.
    pub after: Vec<String>,
}

impl Choice {
    /// Reads the file; `file` is its name in errors.
    ///
    /// # Errors
    /// A text that is not one line of words, exactly one of them in brackets.
    pub fn parse(file: &str, text: &str) -> Result<Choice, BadText> {
        let mut lines = Lines::of(file, text)?;
        let line = lines.expect("list of words")?;
        if let Some(second) = lines.next() {
            return Err(second.expected("the end of the file"));
        }
        let words: Vec<&str> = line.text.split(' ').collect();
        let inner = |word: &str| word.strip_prefix('[').and_then(|w| w.strip_suffix(']')).map(str::to_string);
        let mut chosen = words.iter().enumerate().filter_map(|(i, word)| Some((i, inner(word)?)));
        let (Some((at, word)), None) = (chosen.next(), chosen.next()) else {
            return Err(line.expected("a list of words, one of them in brackets,"));
        };
        let of = |words: &[&str]| words.iter().map(|w| w.to_string()).collect();
        Ok(Choice { before: of(&words[..at]), chosen: word, after: of(&words[at + 1..]) })
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.before.iter().try_for_each(|word| write!(f, "{word} "))?;
        write!(f, "[{}]", self.chosen)?;
        self.after.iter().try_for_each(|word| write!(f, " {word}"))?;
        writeln!(f)
    }
}
