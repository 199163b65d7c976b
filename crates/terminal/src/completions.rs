//! A script that completes a program's command line in a shell.

use clap::{Arg, Command};
use clap_complete::Shell;

/// The script of a shell.
pub fn script(shell: Shell, command: Command) -> String {
    let mut text = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(shell, &mut without_hidden(&command), name, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The command without what only the program itself calls, which clap would complete.
pub fn without_hidden(command: &Command) -> Command {
    Command::new(command.get_name().to_owned())
        .version(command.get_version().unwrap_or_default().to_owned())
        .propagate_version(true)
        .args(command.get_arguments().cloned())
        .subcommands(command.get_subcommands().filter(|command| !command.is_hide_set()).map(with_shown_options))
}

/// The command without its hidden options, of which clap takes none away.
fn with_shown_options(command: &Command) -> Command {
    if !command.get_arguments().any(Arg::is_hide_set) {
        return command.clone();
    }
    Command::new(command.get_name().to_owned())
        .about(command.get_about().cloned().unwrap_or_default())
        .args(command.get_arguments().filter(|option| !option.is_hide_set()).cloned())
}
