//! `kontig history record`: samples of this host, until it is stopped.

use crate::roots::HostArgs;
use crate::span;
use clap::Args;
use humantime::format_duration;
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_live::Snapshot;
use kontig_live::history::{Collector, NotWritten, Writer};
use kontig_live::snapshot::host_page_size;
use kontig_terminal::{Ending, interrupt, say};
use kontig_text::{grouped, size};
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Options of `kontig history record`.
#[derive(Args)]
pub struct RecordArgs {
    /// File to append to; it is made if there is none
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Time between samples: 10s, 1min
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = interval())]
    interval: Duration,
    /// End after this time: 2h, 1day (default: at Ctrl-C)
    #[arg(long = "for", value_name = "TIME", value_parser = span::from(Duration::from_millis(1)))]
    for_: Option<Duration>,
    /// Also take a snapshot of every frame this often (root; half a second of a CPU for 24 GiB), so
    /// that 'check --history' can predict compaction: 1h
    #[arg(long, value_name = "TIME", value_parser = span::from(Duration::from_millis(1)))]
    snapshots: Option<Duration>,
    #[command(flatten)]
    host: HostArgs,
}

/// The text of --help after the options.
pub const HELP: &str = "Examples:\n  \
    kontig history record /var/lib/kontig/host.history\n  \
    kontig history record host.history --interval 5s --for 1day --snapshots 1h\n\n\
    A second 'record' onto the same file goes on behind the first. Whatever ends it, even kill -9, the file has all \
    samples up to then. The file is for its owner's eyes only: root's samples hold what only root may read.\n\n\
    Exit codes: 0 ended by Ctrl-C, SIGTERM or --for; 1 failed while running; 2 asked wrongly; 5 more privilege is \
    needed.";

/// Carries out `kontig history record`.
pub fn record(a: &RecordArgs) -> Result<Ending, Error> {
    let roots = a.host.roots()?;
    let mut collector = Collector::of(roots.clone(), a.interval.as_secs_f64());
    let mut writer = match Writer::append(&a.file) {
        Ok(writer) => writer,
        Err(e) => return refused(e),
    };
    let stopped = interrupt::arrivals();
    let began = Instant::now();
    let end = a.for_.map_or("until Ctrl-C".into(), |length| format!("for {}", format_duration(length)));
    say(&format!("{}: a sample every {}, {end}", a.file.display(), format_duration(a.interval)));
    let (mut samples, mut bytes) = (0u64, 0);
    let mut snapshot_at = a.snapshots.map(|_| began);
    let mut next = began;
    loop {
        let sample = collector.take();
        match writer.sample(&sample) {
            Ok(written) => bytes += written,
            Err(e) => return refused(e),
        }
        samples += 1;
        if let Some((at, every)) = snapshot_at.as_mut().zip(a.snapshots)
            && Instant::now() >= *at
        {
            match Snapshot::take(&roots, host_page_size()) {
                Ok(snapshot) => match writer.snapshot(sample.unix_ms, &snapshot.to_text()) {
                    Ok(written) => bytes += written,
                    Err(e) => return refused(e),
                },
                Err(e) => return crate::answer::not_read("history record", &e),
            }
            *at += every;
        }
        next = due(next, a.interval);
        let end = a.for_.map(|length| began + length);
        let until = end.map_or(next, |end| end.min(next));
        let is_over = |now: Instant| end.is_some_and(|end| now >= end);
        if !matches!(stopped.recv_timeout(left(until)), Err(RecvTimeoutError::Timeout)) || is_over(Instant::now()) {
            break;
        }
    }
    say(&format!("{}: {} samples, {} more", a.file.display(), grouped(samples), size(bytes)));
    Ok(Ending::Done)
}

/// When the next sample is due: those that are past, as a host was suspended, are left out.
fn due(last: Instant, interval: Duration) -> Instant {
    let now = Instant::now();
    let next = last + interval;
    if next >= now { next } else { now + interval }
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

/// Ends a command that may not write the file, or no longer can.
fn refused(e: NotWritten) -> Result<Ending, Error> {
    match &e {
        NotWritten::Failed(path, error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            say(&format!("{}: {error}", path.display()));
            Ok(Ending::Unpermitted)
        }
        NotWritten::Failed(path, error) => {
            let reason = format!("{error}; what it has is whole");
            Err(Failed::Write { path: path.display().to_string(), reason }.into())
        }
        NotWritten::InUse(_) | NotWritten::Other(_) => Err(AskedWrongly::Value(e.to_string()).into()),
    }
}

/// The parser of a time between samples.
fn interval() -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    span::within(Duration::from_millis(200), Duration::from_secs(3600))
}
