//! The command line, and how large a run is.

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Machines a sixteenth the size and three repetitions: for small hosts and for a first look.
    pub quick: bool,
    /// The table as JSON lines.
    pub json: bool,
    /// Only rows whose number is this, or whose text holds it.
    pub filter: Option<String>,
}

/// What `--help` prints.
pub const USAGE: &str = "\
usage: cargo bench -p kontig-bench -- [--quick] [--json] [--filter ROW|TEXT]
  --quick    machines a sixteenth the size, three repetitions
  --json     one JSON object a row
  --filter   only the row of this number, or rows whose text holds this
A full run takes five minutes and 8 GiB of memory; medians are of seven.";

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
                "--filter" => o.filter = Some(words.next().ok_or("--filter needs a row or a text")?),
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

    /// Whether a group with rows of these numbers and texts is wanted.
    pub fn wants(&self, numbers: &[&str], text: &str) -> bool {
        let Some(filter) = &self.filter else { return true };
        let digits = |n: &str| n.trim_end_matches(|c: char| c.is_ascii_alphabetic()) == filter;
        numbers.iter().any(|n| n == filter || digits(n)) || text.contains(filter.as_str())
    }
}

/// A number of frames as a size, such as `64 GiB`.
pub fn size(frames: u32) -> String {
    match frames >> 18 {
        gib @ 1024.. if gib % 1024 == 0 => format!("{} TiB", gib / 1024),
        0 => format!("{} MiB", frames >> 8),
        gib => format!("{gib} GiB"),
    }
}
