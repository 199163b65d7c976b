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
