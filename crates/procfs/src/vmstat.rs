//! `/proc/vmstat`: one line `name value` per counter: the state of zones and nodes, then events
//! since boot.
//!
//! Source: kernel-behaviour §7.4.

use crate::counters::Counters;
use crate::error::BadText;
use crate::lines::Lines;
use std::fmt;

/// The contents of `/proc/vmstat`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VmStat(pub Counters);

impl VmStat {
    /// Reads the file; `file` is its name in errors.
    ///
    /// # Errors
    /// The first line that is not a name and a number.
    pub fn parse(file: &str, text: &str) -> Result<VmStat, BadText> {
        let counter = |line: crate::lines::Line<'_>| match line.text.split_once(' ') {
            Some((name, value)) if !name.is_empty() => Ok((name.to_string(), line.number(value)?)),
            _ => Err(line.expected("a name and a number")),
        };
        Ok(VmStat(Lines::of(file, text)?.map(counter).collect::<Result<Counters, BadText>>()?))
    }

    /// The same file with these values in place of its own where there are any: a host counts
    /// things that the engine does not.
    #[must_use]
    pub fn with(&self, value: impl Fn(&str) -> Option<u64>) -> VmStat {
        VmStat(self.0.with(|name| value(name).or_else(|| self.get(name)).unwrap_or(0)))
    }

    /// The counter of this name, if the kernel lists one.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name)
    }
}

impl fmt::Display for VmStat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, value)| writeln!(f, "{name} {value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_counts_takes_the_place_of_what_the_engine_has_not() {
        let file = VmStat::parse("vmstat", "nr_free_pages 7\nnr_dirty 0\npgpgin 0\n").expect("well-formed");
        let full = file.with(|name| (name == "nr_dirty").then_some(3).or((name == "nr_new").then_some(1)));
        assert_eq!(full.to_string(), "nr_free_pages 7\nnr_dirty 3\npgpgin 0\n", "no counter is added");
    }
}
