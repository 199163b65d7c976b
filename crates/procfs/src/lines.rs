//! The lines of a text with their numbers, so that every error can name its place.
//!
//! The kernel ends every line of these files with a newline. A text without one at its end was cut
//! short and is refused before any line is read.

use crate::error::BadText;

/// A line of a text.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    file: &'a str,
    /// The line number, from 1.
    number: usize,
    /// The line without its newline.
    pub(crate) text: &'a str,
}

impl<'a> Line<'a> {
    /// An error about this line.
    pub(crate) fn bad(&self, reason: impl Into<String>) -> BadText {
        BadText { file: self.file.into(), line: self.number, reason: reason.into() }
    }

    /// An error: this line should have been something else.
    pub(crate) fn expected(&self, what: &str) -> BadText {
        self.bad(format!("'{}' stands where {what} should", self.text))
    }

    /// A whole number in this line.
    pub(crate) fn number<T: std::str::FromStr>(&self, text: &str) -> Result<T, BadText> {
        text.parse().map_err(|_| self.bad(format!("'{text}' is not a number, or too large")))
    }

    /// The rest of the line after `prefix`.
    pub(crate) fn after(&self, prefix: &str) -> Result<&'a str, BadText> {
        self.text.strip_prefix(prefix).ok_or_else(|| self.expected(&format!("'{}'", prefix.trim_end())))
    }
}

/// The lines not read yet.
pub(crate) struct Lines<'a> {
    file: &'a str,
    rest: &'a str,
    read: usize,
    last: &'a str,
}

impl<'a> Lines<'a> {
    /// The lines of a text that holds at least one.
    pub(crate) fn of(file: &'a str, text: &'a str) -> Result<Lines<'a>, BadText> {
        let bad = |line, reason: &str| Err(BadText { file: file.into(), line, reason: reason.into() });
        if text.is_empty() {
            return bad(1, "the file is empty");
        }
        if !text.ends_with('\n') {
            return bad(text.lines().count(), "the text is cut short: this line has no end");
        }
        Ok(Lines { file, rest: text, read: 0, last: "" })
    }

    /// The next line, which stays unread.
    pub(crate) fn peek(&self) -> Option<Line<'a>> {
        let (text, _) = self.rest.split_once('\n')?;
        Some(Line { file: self.file, number: self.read + 1, text })
    }

    /// The line read last, or an empty one before the first.
    pub(crate) fn last_read(&self) -> Line<'a> {
        Line { file: self.file, number: self.read.max(1), text: self.last }
    }

    /// The next line, if it satisfies `wanted`.
    pub(crate) fn next_if(&mut self, wanted: impl Fn(&str) -> bool) -> Option<Line<'a>> {
        let line = self.peek().filter(|l| wanted(l.text))?;
        self.next();
        Some(line)
    }

    /// The next line; an error if there is none.
    pub(crate) fn expect(&mut self, what: &str) -> Result<Line<'a>, BadText> {
        let last = self.last_read();
        self.next().ok_or_else(|| last.bad(format!("the text is cut short: no {what} follows")))
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        let line = self.peek()?;
        self.rest = &self.rest[line.text.len() + 1..];
        self.read += 1;
        self.last = line.text;
        Some(line)
    }
}
