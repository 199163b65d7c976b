//! `kontig touch`: what the first touch of huge pages costs.

use super::grid::Grid;
use super::host::HostArgs;
use super::{document, not_read};
use crate::Ending;
use clap::Args;
use kontig_lab::{Failed, LabError};
use kontig_live::number::{count, size};
use kontig_live::touch::{NotTouched, Quantiles, Touched, touch as touch_memory};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// `kontig touch`.
#[derive(Args)]
pub struct TouchArgs {
    /// So much memory is touched, in GiB, a huge page at a time
    #[arg(long, value_name = "N", value_parser = super::age::gib)]
    gib: u64,
    /// Touch it once before and give it back, so that no hypervisor has to back it with memory while it is timed
    #[arg(long)]
    warm: bool,
    /// Hold it so many seconds afterwards, or until Ctrl-C
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    hold: u64,
    /// Print JSON (schema kontig.touch/1)
    #[arg(long)]
    json: bool,
    /// Which host.
    #[command(flatten)]
    host: HostArgs,
}

/// What --help says behind the options.
pub const HELP: &str = "Examples:\n  \
    kontig touch --gib 1                  how long a task waits for each of 512 huge pages\n  \
    kontig touch --gib 4 --hold 60        the same, and nobody else gets them for a minute\n\n\
    Only memory of its own is touched, and all of it goes back at the end, however that comes.\n\n\
    Exit codes: 0 done; 1 failed while running; 2 asked wrongly.";

/// Runs `kontig touch`.
pub fn touch(a: &TouchArgs) -> Result<Ending, LabError> {
    let roots = a.host.roots()?;
    let stop = Arc::new(AtomicBool::new(false));
    let raised = stop.clone();
    crate::interrupt::act(move || raised.store(true, Ordering::Relaxed));
    let (touched, memory) = match touch_memory(&roots, a.gib, a.warm, &stop) {
        Ok(touched) => touched,
        Err(NotTouched::Unread(e)) => return not_read("touch", &e),
        Err(e) => return Err(Failed::Run { run: "touch".into(), reason: e.to_string() }.into()),
    };
    crate::print(&if a.json { document(&touched, false) } else { text(&touched) })?;
    let began = Instant::now();
    while !stop.load(Ordering::Relaxed) && began.elapsed() < Duration::from_secs(a.hold) {
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(memory);
    Ok(Ending::Done)
}

fn text(t: &Touched) -> String {
    let huge = size(t.huge_page_bytes);
    let waited = t.stalls.map_or("?".into(), count);
    let text = format!(
        "{} huge pages of {huge} given, {} refused; {waited} requests of the whole host waited for compaction\n",
        count(t.huge),
        count(t.small)
    );
    let mut grid = Grid::new(["microseconds", "p50", "p90", "p99", "longest"], &[0]);
    let rows = [
        ("first touch that gets a huge page", t.huge_s),
        ("first touch that gets a small page", t.small_s),
        ("the same, given back right before", t.floor_s),
    ];
    let shown = |q: Quantiles| [q.p50, q.p90, q.p99, q.max].map(|seconds| format!("{:.1}", seconds * 1e6));
    for (name, quantiles) in rows {
        let Some(quantiles) = quantiles else { continue };
        grid.row(std::iter::once(name.to_string()).chain(shown(quantiles)).collect());
    }
    text + &grid.text(0, None)
}
