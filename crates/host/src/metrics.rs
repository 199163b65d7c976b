//! `kontig metrics`: this host's series for Prometheus, over HTTP or as a file for node_exporter's
//! textfile collector.

use crate::answer::not_read;
use crate::roots::HostArgs;
use crate::span;
use clap::{ArgGroup, Args};
use kontig_error::files::{check_writable, write_file_for_all};
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_live::guard::hold::DEFAULT_DIR;
use kontig_live::metrics::exposition::{CONTENT_TYPE, text};
use kontig_live::metrics::{FramesFound, of_host};
use kontig_live::snapshot::host_page_size;
use kontig_live::{Host, ReadError, Roots};
use kontig_terminal::{Ending, interrupt, say};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tiny_http::{Header, Method, Request, Response, Server};

/// Options of `kontig metrics`.
#[derive(Args)]
#[command(group = ArgGroup::new("where").args(["listen", "textfile", "print"]))]
pub struct MetricsArgs {
    /// Serve /metrics at this address; only 127.0.0.1 and ::1 are this host alone
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9967")]
    listen: String,
    /// Write this file instead, again and again, as a whole each time: its name ends in .prom, in
    /// the directory that node_exporter's --collector.textfile.directory names
    #[arg(long, value_name = "FILE")]
    textfile: Option<PathBuf>,
    /// Print the series once
    #[arg(long)]
    print: bool,
    /// Time between two writes of --textfile
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = span::from(Duration::from_millis(10)))]
    every: Duration,
    /// Also look at every frame this often (root; a second or two of a CPU for 24 GiB), for
    /// compacted and poisoned blocks: 10min
    #[arg(long, value_name = "TIME", value_parser = span::from(Duration::from_millis(10)))]
    frames: Option<Duration>,
    /// Directory where 'kontig guard' is controlled: what it keeps and does is told, too
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIR)]
    control: PathBuf,
    #[command(flatten)]
    host: HostArgs,
}

/// The text of --help after the options.
pub const HELP: &str = "Examples:\n  \
    kontig metrics                                serves http://127.0.0.1:9967/metrics\n  \
    kontig metrics --listen '[::]:9967'           for other hosts, too\n  \
    kontig metrics --textfile /var/lib/node_exporter/kontig.prom --frames 10min\n  \
    kontig metrics --print | promtool check metrics\n\n\
    Nobody is asked for a password: who may connect may read.\n\n\
    Exit codes: 0 ended by Ctrl-C or SIGTERM; 1 failed while running; 2 asked wrongly; 5 more privilege is needed.";

/// Carries out `kontig metrics`.
pub fn metrics(a: &MetricsArgs) -> Result<Ending, Error> {
    let roots = a.host.roots()?;
    let frames = Frames::default();
    // Asked for but not permitted: that is said before anything is served.
    if a.frames.is_some()
        && let Err(e) = frames.look(&roots)
    {
        return not_read("metrics", &e);
    }
    if a.print {
        return match series(&roots, &a.control, &frames) {
            Ok(text) => kontig_terminal::print(&text).map(|()| Ending::Done),
            Err(e) => not_read("metrics", &e),
        };
    }
    if let Err(e) = series(&roots, &a.control, &frames) {
        return not_read("metrics", &e);
    }
    if let Some(every) = a.frames {
        let (roots, frames) = (roots.clone(), frames.clone());
        std::thread::spawn(move || frames.go_on(&roots, every));
    }
    match &a.textfile {
        Some(file) => write_again_and_again(a, &roots, &frames, file),
        None => serve(a, &roots, &frames),
    }
}

/// The series as text.
fn series(roots: &Roots, control: &Path, frames: &Frames) -> Result<String, ReadError> {
    Ok(text(&of_host(roots, control, frames.last().as_ref())?))
}

/// The last look at every frame.
#[derive(Clone, Default)]
struct Frames(Arc<Mutex<Option<FramesFound>>>);

impl Frames {
    fn last(&self) -> Option<FramesFound> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn look(&self, roots: &Roots) -> Result<(), ReadError> {
        let host = Host::read(roots);
        let Some(order) = host.huge_page_order() else { return Ok(()) };
        let profile = host.release.as_ref().ok().and_then(|release| kontig_profiles::of_kernel(release));
        let found = FramesFound::take(roots, host_page_size(), order, profile.as_ref())?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        Ok(())
    }

    fn go_on(&self, roots: &Roots, every: Duration) {
        loop {
            std::thread::sleep(every);
            if let Err(e) = self.look(roots) {
                say(&e.to_string());
            }
        }
    }
}

fn write_again_and_again(a: &MetricsArgs, roots: &Roots, frames: &Frames, file: &Path) -> Result<Ending, Error> {
    if file.extension().is_none_or(|end| end != "prom") {
        let reason = format!("--textfile: {}: node_exporter reads only names that end in .prom", file.display());
        return Err(AskedWrongly::Value(reason).into());
    }
    check_writable(file)?;
    let stopped = interrupt::arrivals();
    let mut next = Instant::now();
    loop {
        match series(roots, &a.control, frames) {
            // node_exporter is another user.
            Ok(text) => write_file_for_all(file, text.as_bytes())?,
            Err(e) => return not_read("metrics", &e),
        }
        next = (next + a.every).max(Instant::now());
        if stopped.recv_timeout(next.saturating_duration_since(Instant::now())) != Err(RecvTimeoutError::Timeout) {
            return Ok(Ending::Done);
        }
    }
}

fn serve(a: &MetricsArgs, roots: &Roots, frames: &Frames) -> Result<Ending, Error> {
    let listen = &a.listen;
    let bad = || AskedWrongly::Value(format!("--listen: '{listen}' is no address: say 127.0.0.1:9967 or [::]:9967"));
    let address: SocketAddr = listen.to_socket_addrs().map_err(|_| bad())?.next().ok_or_else(bad)?;
    let failed = |reason: String| Failed::Run { run: "metrics".into(), reason: format!("{address}: {reason}") };
    let server = Arc::new(Server::http(address).map_err(|e| failed(e.to_string()))?);
    let stop = Arc::clone(&server);
    interrupt::act(move || stop.unblock());
    // With port 0, the kernel has chosen one.
    say(&format!("http://{}/metrics, until Ctrl-C", server.server_addr()));
    // A request at a time: each is answered in milliseconds.
    for request in server.incoming_requests() {
        answer(request, || series(roots, &a.control, frames));
    }
    Ok(Ending::Done)
}

/// The page that names the other.
const INDEX: &str = "kontig metrics: the series are at /metrics\n";

fn answer(request: Request, series: impl Fn() -> Result<String, ReadError>) {
    let path = request.url().split('?').next().unwrap_or_default().to_string();
    let (code, text) = match (request.method(), path.as_str()) {
        (Method::Get | Method::Head, "/metrics") => match series() {
            Ok(text) => (200, text),
            Err(e) => (500, format!("{e}\n")),
        },
        (Method::Get | Method::Head, "/") => (200, INDEX.to_string()),
        (Method::Get | Method::Head, _) => (404, INDEX.to_string()),
        _ => (405, "only GET and HEAD\n".to_string()),
    };
    let mut response = Response::from_string(text).with_status_code(code);
    if let Ok(header) = Header::from_bytes("Content-Type", CONTENT_TYPE) {
        response = response.with_header(header);
    }
    // The client may have gone away.
    let _ = request.respond(response);
}
