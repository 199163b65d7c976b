//! `kontig touch`: times first touches of huge pages.

use crate::answer::{document, not_read};
use crate::roots::HostArgs;
use clap::Args;
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_live::touch::{NotTouched, Quantiles, Touched, touch as touch_memory};
use kontig_program::figure::samples_needed;
use kontig_terminal::Ending;
use kontig_terminal::Grid;
use kontig_text::{UNRESOLVED, grouped, size};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Options of `kontig touch`.
#[derive(Args)]
pub struct TouchArgs {
    /// GiB of memory to touch, a huge page at a time
    #[arg(long, value_name = "N", value_parser = crate::age::gib)]
    gib: u64,
    /// Touch it once before and give it back, so the hypervisor need not back it with memory while
    /// it is timed
    #[arg(long)]
    warm: bool,
    /// Time to hold it afterwards, or until Ctrl-C
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = crate::span::seconds(0))]
    hold: u64,
    /// Print JSON (schema kontig.touch/1)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

/// The text of --help after the options.
pub const HELP: &str = "Examples:\n  \
    kontig touch --gib 1                  how long a task waits for each of 512 huge pages\n  \
    kontig touch --gib 4 --hold 60        the same, and nobody else gets them for a minute\n\n\
    It touches memory of its own only, and all of it goes back when it ends, even by a signal. It is a load on the \
    host: where no huge page is free, the kernel compacts and reclaims for each.\n\n\
    Exit codes: 0 done; 1 failed while running; 2 asked wrongly.";

/// Carries out `kontig touch`.
pub fn touch(a: &TouchArgs) -> Result<Ending, Error> {
    let roots = a.host.roots()?;
    let stop = Arc::new(AtomicBool::new(false));
    let raised = stop.clone();
    kontig_terminal::interrupt::act(move || raised.store(true, Ordering::Relaxed));
    let (touched, memory) = match touch_memory(&roots, a.gib, a.warm, &stop) {
        Ok(touched) => touched,
        Err(NotTouched::Unread(e)) => return not_read("touch", &e),
        Err(NotTouched::TooMuch(e)) => return Err(AskedWrongly::Value(e.to_string()).into()),
        Err(e) => return Err(Failed::Run { run: "touch".into(), reason: e.to_string() }.into()),
    };
    kontig_terminal::print(&if a.json { document(&touched, false) } else { text(&touched) })?;
    let began = Instant::now();
    while !stop.load(Ordering::Relaxed) && began.elapsed() < Duration::from_secs(a.hold) {
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(memory);
    Ok(Ending::Done)
}

/// A quantile with a mark behind it where too few touches resolve it, as in the tables of runs.
pub(crate) fn mark(q: &Quantiles, percent: f64, shown: String) -> String {
    shown + if q.samples < samples_needed(percent) { UNRESOLVED } else { "" }
}

/// The legend of the mark, below a table that has one.
pub(crate) fn mark_explained(table: &str) -> Option<String> {
    let needed = samples_needed(99.0);
    table
        .contains(UNRESOLVED)
        .then(|| format!("{UNRESOLVED} too few touches to tell this share: it takes {needed} for p99\n"))
}

fn text(t: &Touched) -> String {
    let huge = size(t.huge_page_bytes);
    let waited = t.stalls.map_or("?".into(), grouped);
    let text = format!(
        "{} huge pages of {huge} given, {} refused; requests of the whole host waited {waited} times for compaction\n",
        grouped(t.huge),
        grouped(t.small)
    );
    let mut grid = Grid::new(["microseconds", "touches", "p50", "p90", "p99", "longest"], &[0]);
    let rows = [
        ("first touch that gets a huge page", t.huge_s),
        ("first touch that gets a small page", t.small_s),
        ("the same, given back right before", t.floor_s),
    ];
    for (name, quantiles) in rows {
        let Some(q) = quantiles else { continue };
        let shares = [(50.0, q.p50), (90.0, q.p90), (99.0, q.p99)]
            .map(|(percent, seconds)| mark(&q, percent, format!("{:.1}", seconds * 1e6)));
        let longest = format!("{:.1}", q.max * 1e6);
        grid.row([name.to_string(), grouped(q.samples)].into_iter().chain(shares).chain([longest]).collect());
    }
    let table = grid.text(0, None);
    let explained = mark_explained(&table).unwrap_or_default();
    text + &table + &explained
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_too_few_touches_tell_is_marked() {
        let huge_s = Quantiles::of((1..=60).map(|i| f64::from(i) * 1e-6).collect());
        let touched = Touched {
            schema: String::new(),
            huge_page_bytes: 2 << 20,
            huge: 60,
            small: 0,
            huge_s,
            small_s: None,
            floor_s: None,
            stalls: None,
        };
        let text = text(&touched);
        assert!(text.contains("60.0†") && !text.contains("54.0†") && !text.contains("30.0†"), "{text}");
        assert!(text.ends_with("† too few touches to tell this share: it takes 299 for p99\n"), "{text}");
    }
}
