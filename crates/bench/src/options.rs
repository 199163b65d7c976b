//! The command line, and how large a run is.

use crate::table::Target;
use std::path::PathBuf;

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Machines a sixteenth the size, which have no targets, and three repetitions: for small hosts and a first look.
    pub quick: bool,
    /// The table as JSON lines.
    pub json: bool,
    /// Only rows whose number is one of these, or whose text holds one; all if there is none.
    pub filter: Vec<String>,
    /// Shared libraries, each a rival.
    pub rivals: Vec<PathBuf>,
}

/// What `--help` prints.
pub const USAGE: &str = "\
usage: cargo bench -p kontig-bench -- [--quick] [--json] [--filter ROW|TEXT]... [--rival FILE]...
  --quick    machines a sixteenth the size, three repetitions; targets are of the full size
  --json     one JSON object a row
  --filter   only the row of this number, or rows whose text holds this
  --rival    hold the allocator rows against this shared library, too
A full run takes five minutes and 8 GiB of memory; medians are of seven. Each rival adds three minutes.

A rival exports one table of functions, kontig_rival_1: crates/bench/src/rival.rs has it as a C structure. No rival
comes along. The table has targets against LLFree (https://github.com/luhsra/llfree-rs, written for commit 441c8d1);
a library whose rival's name begins with 'LLFree' is held against them. Its trees have 4 huge pages, or 32 with its
feature tree_huge_32: measure both.";

impl Options {
    /// Reads the command line.
    ///
    /// # Errors
    /// What is wrong with it, or the usage if that was asked for.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut o = Options::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => o.quick = true,
                "--json" => o.json = true,
                "--filter" => {
                    let text = words.next().filter(|text| !text.is_empty());
                    o.filter.push(text.ok_or("--filter needs a row or a text")?);
                }
                "--rival" => o.rivals.push(words.next().ok_or("--rival needs a file")?.into()),
                // Cargo tells every benchmark that it is one.
                "--bench" => {}
                "--help" | "-h" => return Err(USAGE.into()),
                _ => return Err(format!("unknown option '{word}'\n{USAGE}")),
            }
        }
        Ok(o)
    }

    /// Turns that count.
    pub fn repetitions(&self) -> usize {
        if self.quick { 3 } else { 7 }
    }

    /// Frames of a machine of so many GiB.
    pub fn frames(&self, gib: u32) -> u32 {
        let frames = gib << 18;
        if self.quick { (frames / 16).max(1 << 18) } else { frames }
    }

    /// What a machine of full size ought to reach; a smaller one is not held to it.
    pub fn target(&self, of_full_size: Target) -> Option<Target> {
        (!self.quick).then_some(of_full_size)
    }

    /// Whether a group with rows of these numbers and texts is wanted.
    pub fn wants(&self, numbers: &[&str], text: &str) -> bool {
        let asks = |filter: &String| {
            let digits = |n: &str| n.trim_end_matches(|c: char| c.is_ascii_alphabetic()) == filter;
            numbers.iter().any(|n| n == filter || digits(n)) || text.contains(filter.as_str())
        };
        self.filter.is_empty() || self.filter.iter().any(asks)
    }
}

/// The size of so many frames: `64 GiB`.
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
            assert_eq!(parse(nothing).expect_err("refused"), "--filter needs a row or a text");
        }
    }

    #[test]
    fn only_machines_of_full_size_have_targets() {
        let target = Target::AtMost(1.0);
        assert_eq!(Options::default().target(target), Some(target));
        assert_eq!(Options { quick: true, ..Options::default() }.target(target), None);
    }
}
