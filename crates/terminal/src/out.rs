//! Output of the commands, and how they end.

use kontig_error::{Error, Failed};
use std::io::Write;
use std::process::ExitCode;

/// How a command ends that did its work.
pub enum Ending {
    Done,
    /// A recording or a stored result was not reproduced.
    Different,
    /// A file could not be read for lack of permission, as the command has said.
    Unpermitted,
    /// An exit code of the command's own.
    Code(u8),
}

/// The exit code of a command, whose error is printed.
pub fn ended(result: Result<Ending, Error>) -> ExitCode {
    match result {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::Different) => ExitCode::from(3),
        Ok(Ending::Unpermitted) => ExitCode::from(5),
        Ok(Ending::Code(code)) => ExitCode::from(code),
        Err(e) => {
            say(&e.to_string());
            ExitCode::from(e.exit_code())
        }
    }
}

/// Prints one line to standard error, whatever the text contains.
pub fn say(text: &str) {
    // If even this cannot be printed, only the exit code is left.
    let _ = writeln!(std::io::stderr(), "kontig: {}", kontig_text::one_line(text));
}

/// Prints a document as indented JSON.
pub fn print_json(document: &impl serde::Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(document)
        .map_err(|e| Failed::Write { path: "standard output".into(), reason: e.to_string() })?;
    print(&(text + "\n"))
}

/// Prints to standard output. A closed pipe (`| head`) is not an error.
pub fn print(text: &str) -> Result<(), Error> {
    print_while_read(text).map(drop)
}

/// Prints to standard output; false once the pipe is closed.
pub fn print_while_read(text: &str) -> Result<bool, Error> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(Failed::Write { path: "standard output".into(), reason: e.to_string() }.into()),
    }
}
