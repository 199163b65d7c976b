//! A moment of a history as the source of another command: `--history FILE --at TIME`.

use clap::Args;
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_live::history::{At, History, Moment, NoHistory, Tree};
use kontig_live::snapshot::BadSnapshot;
use kontig_live::{Host, ReadError, Snapshot};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a command reads a past moment instead of this host.
#[derive(Args)]
pub struct HistoryArgs {
    /// Take a moment of this history, a file of 'kontig history record', instead of this host now
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// The moment: -3h (before the last sample), 2026-11-26T16:48:00Z (UTC), first or last
    #[arg(
        long,
        value_name = "TIME",
        default_value = "last",
        requires = "history",
        allow_hyphen_values = true,
        value_parser = At::parse
    )]
    pub at: At,
}

impl HistoryArgs {
    /// The moment, if one was asked for.
    pub fn moment(&self) -> Result<Option<Past>, Error> {
        self.history.as_deref().map(|file| Past::of(file, self.at)).transpose()
    }
}

/// A moment with its files laid out.
pub struct Past {
    pub moment: Moment,
    pub tree: Tree,
    pub file: PathBuf,
}

impl Past {
    pub fn of(file: &Path, at: At) -> Result<Past, Error> {
        let moment = open(file)?.moment(at).map_err(wrong)?;
        let no_room =
            |e: std::io::Error| Failed::Run { run: "history".into(), reason: format!("temporary files: {e}") };
        let tree = Tree::of(moment.sample.clone()).map_err(no_room)?;
        Ok(Past { moment, tree, file: file.into() })
    }

    /// The snapshot of all frames that was recorded last before the moment.
    pub fn snapshot(&self) -> Result<Option<(i64, Snapshot)>, Error> {
        let Some((unix_ms, text)) = &self.moment.snapshot else { return Ok(None) };
        let bad = |e: BadSnapshot| {
            let reason = format!("the snapshot of {}: {}", kontig_live::history::at::clock(*unix_ms), e.reason);
            AskedWrongly::Malformed { path: self.file.display().to_string(), line: e.line, reason }
        };
        Ok(Some((*unix_ms, Snapshot::parse(text).map_err(bad)?)))
    }

    /// The host so long before, by the sample that is nearest, and the seconds since then.
    pub fn earlier(&self, interval: Duration) -> Result<(Host, f64), Error> {
        let ms = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX);
        let before = Past::of(&self.file, At::Unix(self.moment.sample.unix_ms.saturating_sub(ms)))?;
        let uptime = |past: &Past| past.moment.sample.uptime_s();
        let is_same_boot = before.moment.sample.boot() == self.moment.sample.boot();
        let seconds = uptime(self).zip(uptime(&before)).map(|(now, then)| now - then);
        match seconds.filter(|seconds| is_same_boot && *seconds > 0.0) {
            Some(seconds) => Ok((Host::read(&before.tree.roots), seconds)),
            None => {
                let reason = "--interval: the host was started anew in between, or no sample is that much older";
                Err(AskedWrongly::Value(reason.into()).into())
            }
        }
    }

    /// The error where no snapshot was recorded.
    pub fn no_snapshot(&self) -> Error {
        let reason = "no snapshot of all frames was recorded before that moment: 'kontig history record --snapshots \
                      1h' records them";
        AskedWrongly::Contradictory { path: self.file.display().to_string(), reason: reason.into() }.into()
    }

    /// The error, with the name of the host's file instead of the temporary one.
    pub fn error(&self, e: &ReadError) -> Error {
        let reason = self.tree.without_place(&e.to_string());
        AskedWrongly::Contradictory { path: self.file.display().to_string(), reason }.into()
    }
}

/// Opens a history's file.
pub fn open(file: &Path) -> Result<History, Error> {
    History::open(file).map_err(wrong)
}

/// A history that is not read was named wrongly.
pub fn wrong(e: NoHistory) -> Error {
    match e {
        NoHistory::Unreadable(path, e) => {
            AskedWrongly::Unreadable { path: path.display().to_string(), reason: e.to_string() }.into()
        }
        e => AskedWrongly::Value(e.to_string()).into(),
    }
}
