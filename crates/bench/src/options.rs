//! The command line, and the size of a run.

use crate::meaning::group;
use crate::table::Target;
use std::path::PathBuf;

/// Options of the benchmark.
#[derive(Clone, Debug)]
pub struct Options {
    /// Machines a sixteenth the size, without the targets that depend on size, and three
    /// repetitions: for small hosts and a first look.
    pub quick: bool,
    /// Prints JSON lines instead of a table.
    pub json: bool,
    /// Only rows with one of these numbers, or groups with one of these words; all if empty.
    pub filter: Vec<String>,
    /// Shared libraries, one for each rival; those of [`RIVALS`] if none is named.
    pub rivals: Vec<PathBuf>,
    /// The commit whose benchmark is measured beside this one.
    pub against: Option<String>,
    /// How often both run.
    pub turns: usize,
}

impl Default for Options {
    fn default() -> Options {
        let (filter, rivals) = (Vec::new(), Vec::new());
        Options { quick: false, json: false, filter, rivals, against: None, turns: 3 }
    }
}

/// The variable that names rivals' libraries for every run, separated by colons.
pub const RIVALS: &str = "KONTIG_RIVALS";

/// The text of `--help`.
pub const USAGE: &str = "\
usage: cargo bench -p kontig-bench -- [--quick] [--json] [--filter ROW|TEXT]... [--rival FILE]...
       cargo bench -p kontig-bench -- --against COMMIT [--turns N] [--quick] [--json] [--filter ROW]...
  --quick    machines a sixteenth the size, three repetitions; without the targets that depend on size
  --json     print one JSON object per row
  --filter   only the row with this number, or a group of rows by a word: pair, bulk, churn, memory, reclaim, files
  --rival    also compare the allocator rows with this shared library; without it, with those in KONTIG_RIVALS, which
             are separated by colons
  --against  build that commit below target/against and print, row by row, new/old: both programs run by turns on one
             CPU. A row is called SLOWER from a median of 1.05 on if no turn was faster
  --turns    how often both run (3); three full turns take half an hour, --quick ones five minutes
A full run takes five minutes and 8 GiB of memory; figures are medians of seven. Each rival adds three minutes.

A rival exports one table of functions, kontig_rival_1, declared as a C structure in crates/bench/src/rival.rs.
crates/bench/rivals/llfree/build fetches LLFree (https://github.com/luhsra/llfree-rs, commit 441c8d1), builds it as
two rivals, with trees of 4 and of 32 huge pages, and prints KONTIG_RIVALS. Targets against LLFree are for both.";

impl Options {
    /// Parses the command line.
    ///
    /// # Errors
    /// Describes the mistake, or is the usage for `--help`.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut o = Options::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => o.quick = true,
                "--json" => o.json = true,
                "--filter" => {
                    let text = words.next().filter(|text| !text.is_empty());
                    o.filter.push(text.ok_or("--filter needs a row or a word")?);
                }
                "--rival" => o.rivals.push(words.next().ok_or("--rival needs a file")?.into()),
                "--against" => o.against = Some(words.next().ok_or("--against needs a commit")?),
                "--turns" => {
                    let turns = words.next().and_then(|n| n.parse().ok()).filter(|n| *n > 0);
                    o.turns = turns.ok_or("--turns needs a number of at least 1")?;
                }
                // Cargo passes this to every benchmark.
                "--bench" => {}
                "--help" | "-h" => return Err(USAGE.into()),
                _ => return Err(format!("unknown option '{word}'\n{USAGE}")),
            }
        }
        if o.against.is_some() && !o.rivals.is_empty() {
            return Err("--against compares two commits; leave --rival out".into());
        }
        Ok(o)
    }

    /// The number of counted turns.
    pub fn repetitions(&self) -> usize {
        if self.quick { 3 } else { 7 }
    }

    /// The frames of a machine of `gib` GiB.
    pub fn frames(&self, gib: u32) -> u32 {
        let frames = gib << 18;
        if self.quick { (frames / 16).max(1 << 18) } else { frames }
    }

    /// A target for machines of full size; smaller ones have none.
    pub fn target(&self, of_full_size: Target) -> Option<Target> {
        (!self.quick).then_some(of_full_size)
    }

    /// Whether the filter selects a group with these numbers and this text.
    pub fn wants(&self, numbers: &[&str], text: &str) -> bool {
        let asks = |filter: &String| {
            numbers.iter().any(|n| n == filter || group(n) == filter) || text.contains(filter.as_str())
        };
        self.filter.is_empty() || self.filter.iter().any(asks)
    }
}

/// The size of `frames` frames: `64 GiB`.
pub fn size(frames: u32) -> String {
    kontig_text::size(u64::from(frames) << 12)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_says_something() {
        let parse = |words: &[&str]| Options::parse(words.iter().map(ToString::to_string));
        assert_eq!(parse(&["--filter", "8"]).expect("a row").filter, ["8"]);
        for nothing in [&["--filter"][..], &["--filter", ""]] {
            assert_eq!(parse(nothing).expect_err("refused"), "--filter needs a row or a word");
        }
    }

    #[test]
    fn a_filter_finds_a_row_by_its_number_or_its_groups() {
        let of = |filter: &str| Options { filter: vec![filter.into()], ..Options::default() };
        assert!(of("3a").wants(&["3", "3a"], "") && of("3").wants(&["3a"], "") && of("T").wants(&["T80"], ""));
        assert!(!of("3b").wants(&["3", "3a"], "") && !of("8").wants(&["3"], ""));
    }

    #[test]
    fn only_machines_of_full_size_have_targets() {
        let target = Target::AtMost(1.0);
        assert_eq!(Options::default().target(target), Some(target));
        assert_eq!(Options { quick: true, ..Options::default() }.target(target), None);
    }
}
