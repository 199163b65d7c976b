//! `kontig age`: a part of a host's memory fragmented on purpose.

use crate::command::{exit_code, start};
use crate::roots::HostArgs;
use clap::Args;
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_live::age::{Aged, NotAged, Pattern};
use kontig_live::snapshot::host_page_size;
use kontig_terminal::Ending;
use kontig_terminal::number::{fraction, whole};
use kontig_text::{GIB, grouped, size};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn patterns() -> [&'static str; Pattern::NAMED.len()] {
    Pattern::NAMED.map(|(name, _)| name)
}

/// Options of `kontig age`.
#[derive(Args)]
pub struct AgeArgs {
    /// GiB of memory to take; part of it is given back at once
    #[arg(long, value_name = "N", value_parser = gib)]
    gib: u64,
    /// Pattern of the pages to keep
    #[arg(long, value_name = "PATTERN", default_value = "every-other", value_parser = patterns())]
    pattern: String,
    /// Seed of the random patterns
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>(0..=u64::MAX))]
    seed: u64,
    /// Time to hold it (default: until Ctrl-C, or until the command is over)
    #[arg(long, value_name = "TIME", value_parser = crate::span::seconds(0))]
    hold: Option<u64>,
    /// Command to run meanwhile
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "hold")]
    command: Vec<String>,
    #[command(flatten)]
    host: HostArgs,
}

/// The text of --help after the options.
pub const HELP: &str = "Examples:\n  \
    kontig age --gib 4 --hold 60\n  \
    kontig age --gib 4 --pattern random -- kontig check --need 6000x2M\n\n\
    It takes memory of its own only, and all of it goes back when it ends, even by a signal. It is a load on the \
    host: others have that much less memory, and free memory is in pieces. No more is taken than control groups \
    allow.\n\n\
    Exit codes: 0 done; 1 failed while running; 2 asked wrongly. With a command, its own; 126 or 127 where it \
    cannot be run or is not found.";

/// Carries out `kontig age`.
pub fn age(a: &AgeArgs) -> Result<Ending, Error> {
    let roots = a.host.roots()?;
    let pattern = Pattern::NAMED.into_iter().find(|(name, _)| *name == a.pattern).map(|(_, pattern)| pattern);
    let pattern = pattern.ok_or_else(|| AskedWrongly::Value(format!("--pattern: '{}' is none", a.pattern)))?;
    let stop = Arc::new(AtomicBool::new(false));
    let raised = stop.clone();
    kontig_terminal::interrupt::act(move || raised.store(true, Ordering::Relaxed));
    let aged = Aged::take(&roots, a.gib, pattern, a.seed, &stop).map_err(|e| match e {
        NotAged::TooMuch(_) => Error::from(AskedWrongly::Value(e.to_string())),
        e => Failed::Run { run: "age".into(), reason: e.to_string() }.into(),
    })?;
    let by = if aged.by_frame { "frame" } else { "address (only root sees frame numbers)" };
    let (kept, freed) = (size(aged.kept * host_page_size()), size(aged.freed * host_page_size()));
    kontig_terminal::say(&format!("{kept} held in {} pages, {freed} given back, chosen by {by}", grouped(aged.kept)));
    if let Some((program, args)) = a.command.split_first() {
        let mut child = match start(program, args) {
            Ok(child) => child,
            Err(code) => return Ok(Ending::Code(code)),
        };
        let status = child.wait().map_err(|e| Failed::Run { run: program.clone(), reason: e.to_string() })?;
        return Ok(Ending::Code(exit_code(status)));
    }
    let began = Instant::now();
    let over = || a.hold.is_some_and(|seconds| began.elapsed() >= Duration::from_secs(seconds));
    while !stop.load(Ordering::Relaxed) && !over() {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(Ending::Done)
}

pub(crate) fn gib(text: &str) -> Result<u64, String> {
    fraction(text, 0.001..=65_536.0, "GiB").map(|gib| (gib * GIB as f64) as u64)
}
