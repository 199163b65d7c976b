//! A command behind `--`: how it is started, and how its end becomes an exit code.
//!
//! The codes are those of `env`, `timeout` and `chroot`, so that the command's own code is never
//! taken for one of kontig's.

use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};

/// The exit code where kontig has not started the command.
pub const NOT_STARTED: u8 = 125;

/// Starts a command. If that fails, prints the error and returns the exit code: 127 where it is not
/// found, else 126.
pub fn start(program: &str, args: &[String]) -> Result<Child, u8> {
    Command::new(program).args(args).spawn().map_err(|e| {
        kontig_terminal::say(&format!("{program}: {e}"));
        if e.kind() == ErrorKind::NotFound { 127 } else { 126 }
    })
}

/// The command's own exit code; after a signal 128 and its number, as a shell has it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// The exit code of a usage error: `kontig prepare … -- COMMAND` and `age` have not started the
/// command.
pub fn code_of_usage_error(code: i32) -> i32 {
    let mut args = std::env::args_os().skip(1);
    let is_of_command =
        args.next().is_some_and(|verb| verb == "prepare" || verb == "age") && args.any(|arg| arg == "--");
    if code != 0 && is_of_command { NOT_STARTED.into() } else { code }
}
