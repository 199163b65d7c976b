//! Reads a large text line by line; refuses a line above 64 KiB.

use kontig_error::{AskedWrongly, Error};
use std::io::{BufRead, BufReader, Read};

/// No line of a trace is longer.
const LONGEST: u64 = 64 << 10;

/// The lines that were not read yet.
pub(super) struct Lines<R> {
    from: R,
    bytes: Vec<u8>,
}

impl<R: Read> Lines<BufReader<R>> {
    pub(super) fn of(text: R) -> Lines<BufReader<R>> {
        Lines { from: BufReader::new(text), bytes: Vec::new() }
    }
}

impl<R: BufRead> Lines<R> {
    /// The next line. `number` is for messages.
    ///
    /// # Errors
    /// If it is longer, is no text, or has no end.
    pub(super) fn next(&mut self, path: &str, number: usize) -> Result<Option<&str>, Error> {
        self.bytes.clear();
        let unreadable = |e: std::io::Error| AskedWrongly::Unreadable { path: path.into(), reason: e.to_string() };
        let got = self.from.by_ref().take(LONGEST).read_until(b'\n', &mut self.bytes).map_err(unreadable)?;
        let wrong = |reason: &str| AskedWrongly::Malformed { path: path.into(), line: number, reason: reason.into() };
        if got as u64 == LONGEST {
            return Err(wrong("longer than 64 KiB, which no line of a trace is").into());
        }
        match std::str::from_utf8(&self.bytes) {
            _ if got == 0 => Ok(None),
            Ok(line) if !line.ends_with('\n') => Err(wrong("the text is cut short: this line has no end").into()),
            Ok(line) => Ok(Some(line.trim_end_matches('\n'))),
            Err(_) => {
                Err(wrong("this is no text: write the recording as text, with perf script or trace-cmd report").into())
            }
        }
    }
}
