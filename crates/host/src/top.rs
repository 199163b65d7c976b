//! `kontig top`: huge pages at hand, stalls, pageblocks and the largest processes on one screen,
//! live or from a history.

mod look;
mod screen;
mod view;

use crate::history::{HistoryArgs, open};
use crate::roots::HostArgs;
use clap::Args;
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_live::Roots;
use kontig_live::history::Item;
use kontig_live::stalls::Stalls;
use kontig_live::stalls::instance::NoTrace;
use kontig_live::stalls::watch::Watch;
use kontig_terminal::{Ending, interrupt};
use look::Look;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use view::View;

/// Options of `kontig top`.
#[derive(Args)]
pub struct TopArgs {
    #[command(flatten)]
    past: HistoryArgs,
    /// Time between two looks
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = crate::status::interval())]
    interval: Duration,
    /// Show who waited for compaction and reclaim in the last minute (root only: by a trace of its
    /// own, below /sys/kernel/tracing)
    #[arg(long, conflicts_with = "history")]
    stalls: bool,
    #[command(flatten)]
    host: HostArgs,
}

/// The text of --help after the options.
pub const HELP: &str = "Examples:\n  \
    kontig top\n  \
    kontig top --stalls                       with who waited for memory\n  \
    kontig top --history host.history --at -3h\n\n\
    Keys: q ends; space holds the screen, and goes on; the arrows left and right go a look back and on, page up and \
    page down sixty; home and end go to the first and the last.\n\n\
    Exit codes: 0 ended; 1 failed while running; 2 asked wrongly: it needs a terminal.";

/// Looks that are kept: half an hour of the default interval.
const KEPT: usize = 900;
/// Looks that page up and page down go.
const PAGE: usize = 60;

/// Carries out `kontig top`.
pub fn top(a: &TopArgs) -> Result<Ending, Error> {
    let roots = a.host.roots()?;
    let view = match &a.past.history {
        Some(file) => past(a, file)?,
        None => View::new(vec![Look::of_host(&roots, a.interval)], true),
    };
    if !(std::io::stdout().is_terminal() && std::io::stdin().is_terminal()) {
        let reason = "top: this is no terminal; 'kontig status --watch' prints to a file";
        return Err(AskedWrongly::Value(reason.into()).into());
    }
    let stalls = a.stalls.then(|| Watch::begin(&roots));
    let stop = Arc::new(AtomicBool::new(false));
    let raised = stop.clone();
    interrupt::act(move || raised.store(true, Ordering::Relaxed));
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let done = run(view, &mut terminal, &Host { roots: &roots, interval: a.interval, stalls, stop: &stop });
    if matches!(done, Ok(Left::ByHangup)) {
        // Its drop prints what failed, and a print that fails aborts.
        std::mem::forget(terminal);
        return Ok(Ending::Done);
    }
    drop(terminal);
    ratatui::try_restore().map_err(failed)?;
    done.map(|_| Ending::Done)
}

/// How the screen was left.
enum Left {
    ByUser,
    /// Its terminal was closed: nothing can be drawn or restored.
    ByHangup,
}

fn failed(e: std::io::Error) -> Error {
    Failed::Run { run: "top".into(), reason: e.to_string() }.into()
}

/// The looks of a history, from the moment asked for.
fn past(a: &TopArgs, file: &std::path::Path) -> Result<View, Error> {
    let history = open(file)?;
    let (first, last) = history.span().map_err(crate::history::wrong)?;
    let wanted = a.past.at.unix_ms(first, last);
    let looks: Vec<Look> = history
        .items()
        .filter_map(|item| match item {
            Item::Sample(sample) => Some(Look::of(&sample)),
            Item::Snapshot(..) => None,
        })
        .collect();
    let at = looks.iter().rposition(|look| look.point.unix_ms <= wanted).unwrap_or(0);
    let mut view = View::new(looks, false);
    view.at = at;
    Ok(view)
}

/// The host that is watched.
struct Host<'a> {
    roots: &'a Roots,
    /// Time between two looks.
    interval: Duration,
    /// The trace of who waits, if it was asked for.
    stalls: Option<Result<Watch, NoTrace>>,
    stop: &'a AtomicBool,
}

impl Host<'_> {
    fn look(&self) -> Look {
        let stalls = self.stalls.as_ref();
        let stalls = stalls.map(|watch| watch.as_ref().map_or_else(Stalls::unknown, Watch::take));
        Look { stalls, ..Look::of_host(self.roots, self.interval) }
    }
}

fn run(mut view: View, terminal: &mut DefaultTerminal, host: &Host) -> Result<Left, Error> {
    let mut next = Instant::now() + host.interval;
    while !host.stop.load(Ordering::Relaxed) {
        // Short, as a signal is noticed only then.
        let wait = next.saturating_duration_since(Instant::now()).min(Duration::from_millis(200));
        match terminal.draw(|frame| screen::draw(frame, &view)).and_then(|_| input(wait)) {
            Ok(Input::None) => {}
            Ok(Input::Hangup) => return Ok(Left::ByHangup),
            Err(_) if matches!(input(Duration::ZERO), Ok(Input::Hangup)) => return Ok(Left::ByHangup),
            Err(e) => return Err(failed(e)),
            Ok(Input::Some) => {
                // Several keys can come at once.
                while event::poll(Duration::ZERO).map_err(failed)? {
                    if let Event::Key(key) = event::read().map_err(failed)?
                        && pressed(&mut view, key)
                    {
                        return Ok(Left::ByUser);
                    }
                }
            }
        }
        if view.is_live && Instant::now() >= next {
            view.add(host.look(), KEPT);
            next = Instant::now() + host.interval;
        }
    }
    Ok(if matches!(input(Duration::ZERO), Ok(Input::Hangup)) { Left::ByHangup } else { Left::ByUser })
}

enum Input {
    None,
    Some,
    Hangup,
}

/// Waits for a key. The library reads for ever from a terminal that was closed, so it is asked only
/// where one is there.
fn input(wait: Duration) -> std::io::Result<Input> {
    let stdin = std::io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let wait = Timespec::try_from(wait).map_err(std::io::Error::other)?;
    match poll(&mut fds, Some(&wait)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(e) => return Err(e.into()),
    }
    let found = fds[0].revents();
    Ok(match found {
        _ if found.intersects(PollFlags::HUP | PollFlags::ERR) => Input::Hangup,
        _ if found.contains(PollFlags::IN) => Input::Some,
        _ => Input::None,
    })
}

/// Carries out a key; says whether it ends the program.
fn pressed(view: &mut View, key: KeyEvent) -> bool {
    if key.kind == KeyEventKind::Release {
        return false;
    }
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return true,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return true,
        KeyCode::Char(' ') => view.hold(),
        KeyCode::Left => view.back(1),
        KeyCode::Right => view.on(1),
        KeyCode::PageUp => view.back(PAGE),
        KeyCode::PageDown => view.on(PAGE),
        KeyCode::Home => view.back(usize::MAX),
        KeyCode::End => view.on(usize::MAX),
        _ => {}
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_live::history::Sample;

    #[test]
    fn keys_go_back_and_on_and_end_it() {
        let looks = (0..100).map(|i| Look::of(&Sample { unix_ms: i, files: Default::default() })).collect();
        let mut view = View::new(looks, false);
        let mut after = |code: KeyCode| {
            let ends = pressed(&mut view, KeyEvent::new(code, KeyModifiers::NONE));
            (view.at, ends)
        };
        let keys = [KeyCode::Left, KeyCode::PageUp, KeyCode::Right, KeyCode::Home, KeyCode::Left, KeyCode::End];
        assert_eq!(keys.map(&mut after).map(|(at, _)| at), [98, 38, 39, 0, 0, 99]);
        assert!(after(KeyCode::Char('q')).1 && after(KeyCode::Esc).1 && !after(KeyCode::Char('x')).1);
    }
}
