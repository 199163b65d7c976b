//! `kontig`: the command line.
//!
//! Exit codes: 0 done; 1 failed while running; 2 invalid arguments or input; 3 a verified recording
//! or a rerun result differs; 5 more privilege is needed; 4, 6, 7, 8 and 9 `kontig check` and
//! `kontig prepare` on blocks that are not available; 10 a second `kontig guard`. Results go to
//! standard output, everything else to standard error.

mod args;
mod bench;
mod compare;
mod completions;
mod export;
mod figures;
mod laboratory;
mod list;
mod markdown;
mod oracle;
mod profile;
mod progress;
mod reproduce;
mod run_args;
mod shard;
mod show;
mod trace;
mod values;
mod workload;

use args::{Cli, Command};
use clap::CommandFactory;
use kontig_error::Error;
use kontig_host::commands::parsed;
use kontig_huge_pages::HugePages;
use kontig_terminal::{Ending, ended, interrupt, man};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: HugePages = HugePages::new("kontig", "end other programs first");

fn main() -> ExitCode {
    let cli: Cli = parsed(Cli::command());
    if !matches!(&cli.command, Command::Host(host) if host.takes_signals()) {
        interrupt::listen();
    }
    if let Some(remedy) = cli.command.remedy() {
        ALLOCATOR.advise(remedy);
    }
    if cli.command.runs() {
        ALLOCATOR.keep();
    }
    ended(run(cli))
}

fn run(cli: Cli) -> Result<Ending, Error> {
    let done = match cli.command {
        Command::Host(c) => return c.run(Some(&laboratory::OfThisProgram)),
        Command::Oracle(c) => return oracle::oracle(&c),
        Command::Reproduce(a) => reproduce::reproduce(&a),
        Command::Run(a) => reproduce::run(&a),
        Command::Compare(a) => compare::compare(&a),
        Command::Export(a) => export::export(&a),
        Command::Rerun(a) => return reproduce::rerun(&a),
        Command::Profile(c) => profile::profile(&c),
        Command::Trace(a) => trace::trace(&a),
        Command::Workload(c) => workload::workload(&c),
        Command::Bench(a) => bench::bench(&a),
        Command::List { json } => list::list(json),
        Command::Show(a) => show::show(&a),
        Command::Completions { shell } => completions::completions(shell, Cli::command()),
        Command::Man { dir } => man::write(Cli::command(), &dir),
    };
    done.map(|()| Ending::Done)
}
