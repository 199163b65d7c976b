//! A part of a history on the command line: `FILE`, or `FILE@FROM..TO`.

use super::source::{open, wrong};
use kontig_error::{AskedWrongly, Error};
use kontig_live::history::{At, Period};
use std::path::{Path, PathBuf};

/// A history and the part of it that is meant.
pub struct Part {
    pub file: PathBuf,
    from: At,
    to: At,
}

impl Part {
    /// Reads `FILE`, or `FILE@FROM..TO`, where either end may be left out. A file with such a name
    /// is the file.
    pub fn parse(text: &str) -> Result<Part, Error> {
        let whole = Part { file: text.into(), from: At::First, to: At::Last };
        let Some((file, part)) = text.rsplit_once('@').filter(|_| !Path::new(text).exists()) else { return Ok(whole) };
        let Some((from, to)) = part.split_once("..") else { return Ok(whole) };
        let at = |text: &str, end: At| match text {
            "" => Ok(end),
            text => At::parse(text).map_err(|e| Error::from(AskedWrongly::Value(e))),
        };
        Ok(Part { file: file.into(), from: at(from, At::First)?, to: at(to, At::Last)? })
    }

    /// The samples of this part.
    pub fn period(&self) -> Result<Period, Error> {
        Period::of(&open(&self.file)?, self.from, self.to).map_err(wrong)
    }
}
