//! Text wrapped to the terminal, or to 80 columns without one.

pub use kontig_text::wrap;

/// The terminal's columns, within limits that keep lines readable.
pub fn width() -> usize {
    columns().unwrap_or(80).clamp(60, 100)
}

/// The terminal's columns; none without a terminal.
pub fn columns() -> Option<usize> {
    // A terminal set to a number of columns alone reports 0 rows, so only columns are checked.
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}
