//! Progress of one piece of work.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of a thousand steps. Hidden unless standard error is a terminal.
pub fn bar(what: &str) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{msg} {bar:24} {percent:>3}%").unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(1000).with_style(style).with_message(what.to_string())
}
