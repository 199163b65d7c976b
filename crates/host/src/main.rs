//! `kontig-host`: the commands of `kontig` about a real host, in a program without the laboratory.

use clap::{CommandFactory, Parser, Subcommand};
use kontig_error::Error;
use kontig_host::commands::{HostCommand, parsed};
use kontig_host::explain::{self, NoLaboratory};
use kontig_huge_pages::HugePages;
use kontig_terminal::{Ending, completions, ended, interrupt, man, print};
use std::path::PathBuf;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: HugePages = HugePages::new("kontig", "end other programs first");

/// Keep a host's memory contiguous: large blocks that it has and can have, and the obstacles.
#[derive(Parser)]
#[command(
    version,
    propagate_version = true,
    after_help = "These are the commands of 'kontig' about a host. 'kontig' has them too, and the laboratory.\n\n\
        Exit codes: 0 done; 1 failed while running; 2 invalid arguments or input; 4 compaction would make the blocks; \
        5 more privilege is needed; 6 the blocks cannot be made; 7 only dropping clean cache would make them; \
        8 unknown; 9 the blocks were predicted, but not available afterwards; 10 another guard is at work."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Host(HostCommand),
    /// Print a completion script for a shell
    Completions { shell: clap_complete::Shell },
    /// Write man pages to a directory
    Man {
        /// Created if it does not exist
        dir: PathBuf,
    },
}

/// The command line, which does not name what only the laboratory can do.
fn command() -> clap::Command {
    Cli::command().mut_subcommand("explain", explain::without_laboratory)
}

fn main() -> ExitCode {
    let cli: Cli = parsed(command());
    if !matches!(&cli.command, Command::Host(host) if host.takes_signals()) {
        interrupt::listen();
    }
    ended(run(cli.command))
}

fn run(of: Command) -> Result<Ending, Error> {
    match of {
        Command::Host(host) => host.run(None::<&NoLaboratory>),
        Command::Completions { shell } => print(&completions::script(shell, command())).map(|()| Ending::Done),
        Command::Man { dir } => man::write(command(), &dir).map(|()| Ending::Done),
    }
}
