//! Everything a command prints, and how it ends.

use kontig_lab::{Failed, LabError};
use std::io::Write;

/// How a command ends that did what it was asked.
pub enum Ending {
    /// As it should.
    Done,
    /// With a recording that the engine does not reproduce, or a result that a rerun does not.
    Different,
    /// Not allowed to read what it needs, which it has said.
    Unpermitted,
    /// With an exit code of the command's own.
    Code(u8),
}

/// Says something on standard error, in one line whatever it contains.
pub fn say(text: &str) {
    // Where not even this can be said, the exit code says it.
    let _ = writeln!(std::io::stderr(), "kontig: {}", kontig_live::one_line(text));
}

/// Prints to standard output; a reader that has had enough (`| head`) is no error.
pub fn print(text: &str) -> Result<(), LabError> {
    print_while_read(text).map(drop)
}

/// Prints to standard output, and says whether somebody still reads it.
pub fn print_while_read(text: &str) -> Result<bool, LabError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(Failed::Write { path: "standard output".into(), reason: e.to_string() }.into()),
    }
}
