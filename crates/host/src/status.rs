//! `kontig status`: the state of a host's memory, once or again and again.

mod process;
pub(crate) mod text;

use crate::answer::not_read;
use crate::roots::HostArgs;
use crate::span;
use clap::Args;
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_live::prepare::journal::{DEFAULT_JOURNAL, Leftover};
use kontig_live::stalls::Stalls;
use kontig_live::stalls::instance::NoTrace;
use kontig_live::stalls::watch::Watch;
use kontig_live::status::{frames, owners};
use kontig_live::{Host, ReadError, Roots, Status};
use kontig_terminal::number::{MOST, whole};
use kontig_terminal::{Ending, interrupt};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Serialize;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Options that `--pid` has no use for.
const OF_THE_HOST: [&str; 5] = ["block", "orders", "frames", "owners", "stalls"];

/// Options of `kontig status`.
#[derive(Args)]
pub struct StatusArgs {
    /// Show how much of this process's memory is in huge pages, and why the rest is not
    #[arg(long, value_name = "PID", value_parser = whole::<u32>(1..=MOST), conflicts_with_all = OF_THE_HOST)]
    pid: Option<u32>,
    /// Use blocks of this size instead of the huge page's: as 32M, 1G, 64K, or an order as order13
    #[arg(long, value_name = "SIZE|orderN")]
    block: Option<String>,
    /// Show every order of the free lists
    #[arg(long)]
    orders: bool,
    /// Look at every frame (root only, a second for 32 GiB): blocks that could be emptied, and the
    /// obstacles in the others
    #[arg(long)]
    frames: bool,
    /// Show memory by control group, and the groups that stand in the way (root only, seconds for
    /// 32 GiB)
    #[arg(long)]
    owners: bool,
    /// Show who waited for compaction and reclaim, by process and order, over the interval (10
    /// seconds if none is given; root only: by a trace of its own, below /sys/kernel/tracing)
    #[arg(long)]
    stalls: bool,
    /// Time to wait, to show what happened meanwhile
    #[arg(long, value_name = "TIME", value_parser = interval())]
    interval: Option<Duration>,
    /// Go on until Ctrl-C, once every interval (2 seconds if none is given)
    #[arg(long)]
    watch: bool,
    /// Print JSON (schema kontig.status/2, of a process kontig.process/1): one document, or with
    /// --watch one a line
    #[arg(long)]
    json: bool,
    /// Journal of 'prepare': one that a killed run left is named
    #[arg(long, value_name = "FILE", default_value = DEFAULT_JOURNAL)]
    journal: PathBuf,
    #[command(flatten)]
    host: HostArgs,
}

/// The text of --help after the options.
pub const HELP: &str = "Examples:\n  \
    kontig status\n  \
    kontig status --block 32M --orders\n  \
    kontig status --frames                what is in the way of huge pages, by kind\n  \
    kontig status --owners                whose pages they are, by control group
  \
    kontig status --pid 4242              a process, mapping by mapping\n  \
    kontig status --interval 10           what happened in ten seconds\n  \
    kontig status --stalls --interval 60  who waited for memory in a minute\n  \
    kontig status --watch --json          one line of JSON every two seconds\n\n\
    Exit codes: 0 done; 1 failed while running; 2 asked wrongly; 5 more privilege is needed.";

/// Carries out `kontig status`.
pub fn status(a: &StatusArgs) -> Result<Ending, Error> {
    let roots = a.host.roots()?;
    let stop = Arc::new(AtomicBool::new(false));
    let stalls: Arc<OnceLock<Result<Watch, NoTrace>>> = Arc::default();
    if a.watch || a.stalls {
        let (raised, watched, code) = (stop.clone(), stalls.clone(), i32::from(!a.watch));
        // The loop ends, so that a trace is removed and what it has told is printed. Whoever cannot
        // wait for a long look at all frames asks twice.
        interrupt::act(move || {
            if raised.swap(true, Ordering::Relaxed) {
                if let Some(Ok(watch)) = watched.get() {
                    watch.end();
                }
                std::process::exit(code);
            }
        });
    }
    if a.stalls {
        stalls.get_or_init(|| Watch::begin(&roots));
    }
    let mut before: Option<(Host, Instant)> = None;
    loop {
        let interval = a.interval.or(a.interval_unasked(before.is_some()));
        if let Some(interval) = interval {
            before.get_or_insert_with(|| (Host::read(&roots), Instant::now()));
            match wait(interval, &stop) {
                Waited::Unread => return Ok(Ending::Done),
                // To be stopped is how watching ends; a trace has more to tell first.
                Waited::Stopped if a.watch && !a.stalls => return Ok(Ending::Done),
                Waited::Stopped | Waited::Passed => {}
            }
        }
        let host = Host::read(&roots);
        let at = Instant::now();
        let since = before.as_ref().map(|(host, then)| (host, at.duration_since(*then).as_secs_f64()));
        let text = match a.pid {
            Some(pid) => process::text(a, &roots, &host, pid)?,
            None => machine(a, &roots, &host, since)?.map(|mut status| {
                status.stalls = stalls.get().map(|watch| match watch {
                    Ok(watch) => {
                        if !a.watch || stop.load(Ordering::Relaxed) {
                            watch.end();
                        }
                        watch.take()
                    }
                    Err(why) => Stalls::unknown(why),
                });
                a.page(&status, |width| text::text(&status, a.orders, width))
            }),
        };
        let text = match text {
            Ok(text) => text,
            Err(e) => return not_read("status", &e),
        };
        let is_read = kontig_terminal::print_while_read(&text)?;
        if !a.watch && stop.load(Ordering::Relaxed) {
            return Err(Failed::Interrupted { kept: "what was seen until then is printed".into() }.into());
        }
        if !a.watch || !is_read || stop.load(Ordering::Relaxed) {
            return Ok(Ending::Done);
        }
        before = Some((host, at));
    }
}

/// How a wait ended.
enum Waited {
    Passed,
    Stopped,
    /// Nobody reads standard output any more.
    Unread,
}

/// The longest time for which a stop is not noticed.
const DOZE: Duration = Duration::from_millis(100);

/// Waits until it is told to stop, or nobody would read the result.
fn wait(interval: Duration, stop: &AtomicBool) -> Waited {
    let end = Instant::now() + interval;
    while !stop.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Waited::Passed;
        }
        let (stdout, doze) = (std::io::stdout(), left.min(DOZE));
        // Nothing is asked for: what is told all the same is that the other end is closed.
        let mut out = [PollFd::new(&stdout, PollFlags::empty())];
        match poll(&mut out, Timespec::try_from(doze).ok().as_ref()) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) if out[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => return Waited::Unread,
            Ok(_) | Err(_) => std::thread::sleep(doze),
        }
    }
    Waited::Stopped
}

/// The text to print, or the error of a file.
type Text = Result<String, ReadError>;

/// The state of the whole host, or the error of a file.
fn machine(
    a: &StatusArgs,
    roots: &Roots,
    host: &Host,
    since: Option<(&Host, f64)>,
) -> Result<Result<Status, ReadError>, Error> {
    let order = match (&a.block, host.page_size) {
        (Some(block), Some(page)) => {
            let order = kontig_live::need::order(block, page.bytes);
            Some(order.map_err(|why| AskedWrongly::Value(format!("--block: {why}; say 64K, 32M, 1G or order13")))?)
        }
        _ => None,
    };
    Ok(Status::of(host, order, since).and_then(|mut status| {
        status.leftover = Leftover::find(&a.journal);
        if a.frames {
            status.frames = Some(frames::read(roots, status.page_bytes, status.order)?);
        }
        if a.owners {
            status.owners = Some(owners::read(roots, status.page_bytes, status.order)?);
        }
        Ok(status)
    }))
}

impl StatusArgs {
    /// The time to wait where none was given.
    fn interval_unasked(&self, is_again: bool) -> Option<Duration> {
        match (self.watch, self.stalls) {
            (true, stalls) => (is_again || stalls).then_some(Duration::from_secs(2)),
            (false, stalls) => stalls.then_some(Duration::from_secs(10)),
        }
    }

    /// A document as JSON, or as text for as many columns as there are.
    fn page(&self, document: &impl Serialize, text: impl Fn(Option<usize>) -> String) -> String {
        if self.json {
            return crate::answer::document(document, self.watch);
        }
        let text = text(kontig_terminal::columns());
        match (self.watch, std::io::stdout().is_terminal()) {
            (false, _) => text,
            (true, true) => format!("\x1b[H\x1b[2J{text}"),
            (true, false) => format!("{text}\n"),
        }
    }
}

/// The parser of a time between two looks.
pub(crate) fn interval() -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    span::within(Duration::from_millis(10), Duration::from_secs(86_400))
}
