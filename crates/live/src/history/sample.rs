//! A sample: the texts of a host's files at one moment, as the kernel wrote them.
//!
//! Nothing is parsed when a sample is taken, so that a later version reads more out of it. A file
//! that could not be read is kept with the reason; one that does not exist is left out.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A file's text, or why there is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stored {
    Text(Arc<str>),
    NoPermission,
    /// Another error of the kernel, in its words.
    Failed(Arc<str>),
}

impl Stored {
    /// The text, where there is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Stored::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// The files of a host at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sample {
    /// The host's clock: milliseconds since 1970, UTC.
    pub unix_ms: i64,
    /// By path without the leading slash: `proc/buddyinfo`.
    pub files: BTreeMap<Arc<str>, Stored>,
}

impl Sample {
    /// The text of a file, as `proc/vmstat`.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.text()
    }

    /// The files whose paths begin so.
    pub fn below<'a>(&'a self, begin: &'a str) -> impl Iterator<Item = (&'a str, &'a Stored)> {
        self.files.iter().filter(move |(path, _)| path.starts_with(begin)).map(|(path, stored)| (&**path, stored))
    }

    /// The boot that the sample is of, by the kernel's id.
    pub fn boot(&self) -> Option<&str> {
        self.text(BOOT_ID).map(str::trim)
    }

    /// The release of the kernel.
    pub fn release(&self) -> Option<&str> {
        self.text("proc/sys/kernel/osrelease").map(str::trim)
    }

    /// The seconds after which its recorder meant to take the next one.
    pub fn interval_s(&self) -> f64 {
        self.text(INTERVAL).and_then(|text| text.trim().parse().ok()).unwrap_or(USUAL_INTERVAL_S)
    }

    /// Seconds since the boot.
    pub fn uptime_s(&self) -> Option<f64> {
        self.text("proc/uptime")?.split_whitespace().next()?.parse().ok().filter(|s: &f64| s.is_finite())
    }
}

/// The file whose text is another after each boot.
pub const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";

/// Facts in no text of the kernel's: the size of a page, and the seconds between samples.
pub const PAGE_SIZE: &str = "kontig/page_size";
pub const INTERVAL: &str = "kontig/interval_s";
const USUAL_INTERVAL_S: f64 = 10.0;
