//! `kontig`: the command line.
//!
//! Exit codes: 0 done; 1 failed while running; 2 invalid arguments or input; 3 a verified recording
//! or a rerun result differs; 5 more privilege is needed; 4, 6, 7, 8 and 9 `kontig check` and
//! `kontig prepare` on blocks that are not available. Results go to standard output, everything
//! else to standard error.

mod args;
mod bench;
mod compare;
mod completions;
mod export;
mod figures;
mod grid;
mod interrupt;
mod list;
mod live;
mod markdown;
mod number;
mod oracle;
mod out;
mod profile;
mod progress;
mod reproduce;
mod run_args;
mod shard;
mod show;
mod trace;
mod values;
mod workload;
mod wrap;

use args::{Cli, Command};
use clap::{CommandFactory, FromArgMatches};
use kontig_huge_pages::HugePages;
use kontig_lab::LabError;
pub(crate) use out::{Ending, print, print_while_read, say};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: HugePages = HugePages::new("kontig", "end other programs first");

fn main() -> ExitCode {
    let matches = number::take_negative(Cli::command()).try_get_matches();
    let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches)).unwrap_or_else(|e| {
        // If even this cannot be printed, only the exit code is left.
        let _ = e.print();
        std::process::exit(live::command::code_of_usage_error(e.exit_code()))
    });
    interrupt::listen();
    if let Some(remedy) = cli.command.remedy() {
        ALLOCATOR.advise(remedy);
    }
    if cli.command.runs() {
        ALLOCATOR.keep();
    }
    match run(cli) {
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

fn run(cli: Cli) -> Result<Ending, LabError> {
    let done = match cli.command {
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
        Command::Status(a) => return live::status::status(&a),
        Command::Check(a) => return live::check::check(&a),
        Command::Prepare(a) => return live::prepare::prepare(&a),
        Command::Snapshot(a) => return live::snapshot::snapshot(&a),
        Command::Age(a) => return live::age::age(&a),
        Command::RestoreAtEnd { journal, procfs, sysfs } => {
            return live::prepare::restore_at_end(&journal, procfs, sysfs);
        }
        Command::Touch(a) => return live::touch::touch(&a),
        Command::Trial(a) => return live::trial::trial(&a),
        Command::WriteOne { path, sync } => return live::prepare::write_one(&path, sync),
        Command::Explain(a) => return live::explain::explain(&a),
        Command::List { json } => list::list(json),
        Command::Show(a) => show::show(&a),
        Command::Completions { shell } => completions::completions(shell, Cli::command()),
        Command::Man { dir } => kontig_lab::files::check_directory(&dir).and_then(|()| {
            let failed = |e: std::io::Error| {
                kontig_lab::Failed::Write { path: dir.display().to_string(), reason: e.to_string() }.into()
            };
            clap_mangen::generate_to(Cli::command(), &dir).map_err(failed)
        }),
    };
    done.map(|()| Ending::Done)
}
