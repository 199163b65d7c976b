//! Answers as all commands give them: a document, lines that fit, a file that was not read.

use kontig_error::{Error, Failed};
use kontig_live::ReadError;
use kontig_terminal::{Ending, say, width, wrap};

/// Ends a command that could not read a file of the host: a lack of permission has an exit code of
/// its own.
pub fn not_read(command: &str, error: &ReadError) -> Result<Ending, Error> {
    if error.is_permission() {
        say(&error.to_string());
        return Ok(Ending::Unpermitted);
    }
    Err(Failed::Run { run: command.into(), reason: error.to_string() }.into())
}

/// A document as JSON, its fields in the order of their type; with `line`, in one line.
pub fn document(document: &impl serde::Serialize, line: bool) -> String {
    let text = if line { serde_json::to_string(document) } else { serde_json::to_string_pretty(document) };
    // Every field is a number, a text or a list of those, which can all be written.
    text.unwrap_or_default() + "\n"
}

/// Lines that fit the terminal. Those that continue another are indented by four columns more.
pub fn fitted(text: &str) -> String {
    let fit = |line: &str| {
        let begin = line.trim_start();
        let indent = line.len() - begin.len();
        wrap(&line[..indent], begin, indent + 4, width())
    };
    text.lines().map(fit).collect()
}

/// Seconds of a CPU, to the millisecond.
pub fn cpu(seconds: f64) -> String {
    format!("{seconds:.3} s")
}
