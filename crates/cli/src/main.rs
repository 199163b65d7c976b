//! `kontig`: the command line.
//!
//! Exit codes: 0 done; 1 failed while running; 2 asked wrongly; 3 a verified recording or a rerun result differs; 5 more
//! privilege is needed; 4, 6, 7, 8 and 9 what is not met, and what would meet it (`kontig check`, `kontig prepare`).
//! Results go to standard output, everything else to standard error.

mod args;
mod bench;
mod interrupt;
mod list;
mod live;
mod markdown;
mod number;
mod oracle;
mod profile;
mod progress;
mod reproduce;
mod wrap;

use args::{Cli, Command};
use clap::{CommandFactory, FromArgMatches};
use kontig_huge_pages::HugePages;
use kontig_lab::LabError;
use std::io::Write;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: HugePages = HugePages::new("kontig", "end other programs first");

/// How a command ends that did what it was asked.
enum Ending {
    /// As it should.
    Done,
    /// With a recording that the engine does not reproduce, or a result that a rerun does not.
    Different,
    /// Not allowed to read what it needs, which it has said.
    Unpermitted,
    /// With an exit code of the command's own.
    Code(u8),
}

fn main() -> ExitCode {
    let matches = number::take_negative(Cli::command()).try_get_matches();
    let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches)).unwrap_or_else(|e| {
        // Where not even this can be said, the exit code says it.
        let _ = e.print();
        std::process::exit(live::command::code_of_usage_error(e.exit_code()))
    });
    interrupt::listen();
    if let Some(remedy) = cli.command.remedy() {
        ALLOCATOR.advise(remedy);
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
        Command::Rerun(a) => return reproduce::rerun(&a),
        Command::Profile(c) => profile::profile(&c),
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
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "kontig", &mut text);
            print(&String::from_utf8_lossy(&text))
        }
        Command::Man { dir } => kontig_lab::files::check_directory(&dir).and_then(|()| {
            let failed = |e: std::io::Error| {
                kontig_lab::Failed::Write { path: dir.display().to_string(), reason: e.to_string() }.into()
            };
            clap_mangen::generate_to(Cli::command(), &dir).map_err(failed)
        }),
    };
    done.map(|()| Ending::Done)
}

/// Says something on standard error, in one line whatever it contains.
fn say(text: &str) {
    // Where not even this can be said, the exit code says it.
    let _ = writeln!(std::io::stderr(), "kontig: {}", kontig_live::one_line(text));
}

/// Prints to standard output; a reader that has had enough (`| head`) is no error.
fn print(text: &str) -> Result<(), LabError> {
    print_while_read(text).map(drop)
}

/// Prints to standard output, and says whether somebody still reads it.
fn print_while_read(text: &str) -> Result<bool, LabError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(kontig_lab::Failed::Write { path: "standard output".into(), reason: e.to_string() }.into()),
    }
}
