//! `kontig`: the command line.
//!
//! Exit codes: 0 done; 1 failed while running; 2 asked wrongly. Results go to standard output, everything else to
//! standard error.

mod args;
mod huge_pages;
mod list;
mod oracle;
mod progress;
mod reproduce;

use args::{Cli, Command};
use clap::{CommandFactory, Parser};
use kontig_lab::LabError;
use std::io::Write;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: huge_pages::HugePages = huge_pages::HugePages;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            // Where not even this can be said, the exit code says it.
            let _ = writeln!(std::io::stderr(), "kontig: {e}");
            ExitCode::from(e.exit_code())
        }
    }
}

fn run(cli: Cli) -> Result<(), LabError> {
    match cli.command {
        Command::Reproduce(a) => reproduce::reproduce(&a),
        Command::Run(a) => reproduce::run(&a),
        Command::Rerun(a) => reproduce::rerun(&a),
        Command::List { json } => list::list(json),
        Command::Oracle(c) => oracle::oracle(&c),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "kontig", &mut text);
            print(&String::from_utf8_lossy(&text))
        }
        Command::Man { dir } => std::fs::create_dir_all(&dir)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), &dir))
            .map_err(|e| kontig_lab::Failed::Write { path: dir.display().to_string(), reason: e.to_string() }.into()),
    }
}

/// Prints to standard output; a reader that has had enough (`| head`) is no error.
fn print(text: &str) -> Result<(), LabError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(kontig_lab::Failed::Write { path: "standard output".into(), reason: e.to_string() }.into())
        }
        _ => Ok(()),
    }
}
