//! `/proc/PID/stat`: a process's name, and its time on CPUs.
//!
//! The file is parsed only. The name stands in parentheses and may hold anything, parentheses and
//! line feeds too; the fields behind the last one are separated by spaces.

use crate::error::BadText;

/// Fields behind the name, from 0.
const USER: usize = 11;
const SYSTEM: usize = 12;

/// The contents of `/proc/PID/stat`, as far as anybody asks for them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessStat {
    pub name: String,
    /// Time in user mode and in the kernel, in the clock ticks of that machine's user space: 100 a
    /// second, but on Alpha and ia64.
    pub user_ticks: u64,
    pub system_ticks: u64,
}

impl ProcessStat {
    /// Reads the file; `file` is its name in errors.
    ///
    /// # Errors
    /// If there is no name in parentheses, or no time behind it.
    pub fn parse(file: &str, text: &str) -> Result<ProcessStat, BadText> {
        let bad = |reason: &str| BadText { file: file.into(), line: 1, reason: reason.into() };
        let named = text.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'));
        let (name, fields) = named.ok_or_else(|| bad("no name in parentheses"))?;
        let ticks = |field: usize| fields.split_whitespace().nth(field)?.parse().ok();
        let times = ticks(USER).zip(ticks(SYSTEM));
        let (user_ticks, system_ticks) = times.ok_or_else(|| bad("no time on CPUs behind the name"))?;
        Ok(ProcessStat { name: name.into(), user_ticks, system_ticks })
    }

    /// Its time on CPUs in all, in the same ticks.
    pub fn ticks(&self) -> u64 {
        self.user_ticks.saturating_add(self.system_ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_parentheses_and_line_feeds() {
        let text = "42 (a) b\n(c) S 2 0 0 0 -1 2129984 0 0 0 0 7 35 0 0 20 0 1 0 31 0 0\n";
        let stat = ProcessStat::parse("stat", text).expect("a process");
        assert_eq!((stat.name.as_str(), stat.user_ticks, stat.system_ticks), ("a) b\n(c", 7, 35));
        assert_eq!(stat.ticks(), 42);
    }

    #[test]
    fn a_text_that_is_cut_short_is_refused() {
        for text in ["", "42", "42 (kcompactd0", "42 (kcompactd0) S 2 0 0 0 -1 0 0 0 0 0 7"] {
            assert!(ProcessStat::parse("proc/42/stat", text).is_err(), "{text}");
        }
    }
}
