//! Text in lines that fit the terminal, 80 columns where there is none to ask.

pub use kontig_text::wrap;

/// Columns to fill: the terminal's, as far as lines stay readable.
pub fn width() -> usize {
    columns().unwrap_or(80).clamp(60, 100)
}

/// The terminal's columns; none where there is no terminal.
pub fn columns() -> Option<usize> {
    // One that is told its columns only has no lines.
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}
