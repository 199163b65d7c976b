//! `kontig history show`: one moment, as `kontig status` shows the present.

use super::source::Past;
use crate::answer::{document, fitted};
use crate::status::text;
use clap::Args;
use kontig_error::files::write_file;
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_live::history::{At, Tree, at::clock, tree::lay};
use kontig_live::{Host, Status};
use kontig_terminal::Ending;
use kontig_text::time;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Options of `kontig history show`.
#[derive(Args)]
pub struct ShowArgs {
    /// A file of 'kontig history record'
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The moment: -3h (before the last sample), 2026-11-26T16:48:00Z (UTC), first or last
    #[arg(long, value_name = "TIME", default_value = "last", allow_hyphen_values = true, value_parser = At::parse)]
    at: At,
    /// Use blocks of this size instead of the huge page's: as 32M, 1G, 64K, or an order as order13
    #[arg(long, value_name = "SIZE|orderN")]
    block: Option<String>,
    /// Show every order of the free lists
    #[arg(long)]
    orders: bool,
    /// Print JSON (schema kontig.moment/1)
    #[arg(long)]
    json: bool,
    /// Write the kernel's texts of the moment below this new directory, as DIR/proc/buddyinfo:
    /// every command takes them with --path.procfs DIR/proc --path.sysfs DIR/sys
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
    /// Write the snapshot of all frames that was recorded last before the moment, a start for
    /// 'kontig run --snapshot'
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
}

/// The text of --help after the options.
pub const HELP: &str = "Examples:\n  \
    kontig history show host.history\n  \
    kontig history show host.history --at -3h --orders\n  \
    kontig history show host.history --at '2026-11-26 03:10' --json\n  \
    kontig history show host.history --at -3h --files then\n  \
    kontig history show host.history --at -3h --snapshot then.snap\n\n\
    Counters are shown since boot, and since the sample before.\n\n\
    Exit codes: 0 done; 1 failed while running; 2 asked wrongly.";

/// Name and version of the schema.
const SCHEMA: &str = "kontig.moment/1";

/// The moment as JSON.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    /// The time of the sample: milliseconds since 1970, and in words (UTC).
    unix_ms: i64,
    time: String,
    /// Seconds that the moment asked for is behind the sample.
    behind_s: f64,
    /// The kernel's id of the boot.
    boot: Option<&'a str>,
    /// The time of the snapshot of all frames before it; null without one.
    snapshot_unix_ms: Option<i64>,
    /// As of `kontig status --json`.
    status: &'a Status,
}

/// Carries out `kontig history show`.
pub fn show(a: &ShowArgs) -> Result<Ending, Error> {
    let past = Past::of(&a.file, a.at)?;
    if let Some(dir) = &a.files {
        extract(&past, dir)?;
    }
    if let Some(out) = &a.snapshot {
        let (_, text) = past.moment.snapshot.as_ref().ok_or_else(|| past.no_snapshot())?;
        write_file(out, text.as_bytes())?;
    }
    let status = status(a, &past)?;
    let sample = &past.moment.sample;
    let behind_s = past.moment.behind_ms as f64 / 1000.0;
    let snapshot_unix_ms = past.moment.snapshot.as_ref().map(|(at, _)| *at);
    if a.json {
        let boot = sample.boot();
        let time = clock(sample.unix_ms);
        let unix_ms = sample.unix_ms;
        let moment = Document { schema: SCHEMA, unix_ms, time, behind_s, boot, snapshot_unix_ms, status: &status };
        kontig_terminal::print(&document(&moment, false))?;
        return Ok(Ending::Done);
    }
    let behind = match behind_s {
        s if s >= 60.0 => format!(" (the last sample before, by {})", time(s)),
        _ => String::new(),
    };
    let frames =
        snapshot_unix_ms.map_or(String::new(), |at| format!(" A snapshot of all frames was taken at {}.", clock(at)));
    let head = fitted(&format!("As it was at {} UTC{behind}.{frames}", clock(sample.unix_ms)));
    kontig_terminal::print(&(head + &text::text(&status, a.orders, kontig_terminal::columns())))?;
    Ok(Ending::Done)
}

fn status(a: &ShowArgs, past: &Past) -> Result<Status, Error> {
    let page = Host::read(&past.tree.roots).page_size;
    let order = match (&a.block, page) {
        (Some(block), Some(page)) => {
            let order = kontig_live::need::order(block, page.bytes);
            Some(order.map_err(|why| AskedWrongly::Value(format!("--block: {why}; say 64K, 32M, 1G or order13")))?)
        }
        _ => None,
    };
    let before = past.moment.before.as_ref().and_then(|before| {
        let seconds = past.moment.sample.uptime_s()? - before.uptime_s()?;
        let tree = Tree::of(before.clone()).ok()?;
        Some((Host::read(&tree.roots), seconds)).filter(|_| seconds > 0.0)
    });
    let before = before.as_ref().map(|(host, seconds)| (host, *seconds));
    past.tree.status(order, before).map_err(|e| past.error(&e))
}

/// Writes the texts below a directory that does not exist yet.
fn extract(past: &Past, dir: &Path) -> Result<(), Error> {
    let failed = |e: std::io::Error| Failed::Write { path: dir.display().to_string(), reason: e.to_string() };
    std::fs::create_dir(dir).map_err(failed)?;
    lay(&past.moment.sample, dir).map_err(failed)?;
    Ok(())
}
