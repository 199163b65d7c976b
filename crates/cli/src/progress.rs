//! Progress bars, on a terminal only.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use kontig_lab::session::Job;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Shows a bar for each run until `done` is set. Hidden unless standard error is a terminal.
pub fn show(jobs: &[Job], done: &AtomicBool) {
    let all = MultiProgress::new();
    let style = ProgressStyle::with_template("{msg:48!} {bar:24} {percent:>3}% {elapsed:>4}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let mut bars: Vec<Option<ProgressBar>> = jobs.iter().map(|_| None).collect();
    while !done.load(Ordering::Relaxed) {
        for (job, bar) in jobs.iter().zip(&mut bars) {
            let permille = u64::from(job.control.permille.load(Ordering::Relaxed));
            if permille == 0 {
                continue;
            }
            let bar = bar.get_or_insert_with(|| {
                let bar = all.add(ProgressBar::new(1000).with_style(style.clone()).with_message(job.plan.title()));
                bar.reset_elapsed();
                bar
            });
            if permille >= 1000 { bar.finish_and_clear() } else { bar.set_position(permille) }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let _ = all.clear();
}

/// A bar of a thousand steps. Hidden unless standard error is a terminal.
pub fn bar(what: &str) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{msg} {bar:24} {percent:>3}%").unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(1000).with_style(style).with_message(what.to_string())
}
