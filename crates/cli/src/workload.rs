//! `kontig workload`: recordings of a real host as workloads.

use clap::{Args, Subcommand};
use kontig_error::{AskedWrongly, Error};
use kontig_lab::catalog;
use kontig_lab::recorded::Recording;
use kontig_profiles::{MOST_BYTES, STANDARD_INPUT};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Examples, below the options.
pub const HELP: &str = "Examples:\n  \
    perf record -a -e kmem:mm_page_alloc,kmem:mm_page_free,migrate:remove_migration_pte -- sleep 10\n  \
    perf script -F comm,pid,tid,cpu,time,event,trace > t.txt\n  \
    kontig workload from-trace t.txt > mine.toml && kontig run mine.toml --profile 6.1,7.2\n  \
    # kernels before 5.18 have no migrate:remove_migration_pte: leave it out\n  \
    kontig workload from-smaps --every 5 $(ls -v smaps.*) > grows.toml\n\n\
    The workload goes to standard output, remarks on what is missing to standard error.";

/// The kinds of recordings that it reads.
#[derive(Subcommand)]
pub enum WorkloadCommand {
    /// Replay the allocations of a trace: text of perf script, trace-cmd report or ftrace with
    /// kmem:mm_page_alloc and kmem:mm_page_free, and migrate:remove_migration_pte if it has it
    FromTrace(TraceArgs),
    /// Replay a process's memory from copies of its /proc/PID/smaps, as it grew and shrank
    FromSmaps(SmapsArgs),
}

/// Options of `kontig workload from-trace`.
#[derive(Args)]
pub struct TraceArgs {
    /// The text of the trace
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    on: OnMachine,
}

/// Options of `kontig workload from-smaps`.
#[derive(Args)]
pub struct SmapsArgs {
    /// The copies, in the order in which they were taken
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Seconds from one copy to the next
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    every: f64,
    #[command(flatten)]
    on: OnMachine,
}

/// The machine that a workload names.
#[derive(Args)]
struct OnMachine {
    /// The machine that the workload runs on, unless 'kontig run' names another
    #[arg(long, value_name = "NAME|FILE", default_value = "skylake-1s")]
    machine: String,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|s| (1e-3..=1e6).contains(s));
    seconds.ok_or_else(|| "seconds from 0.001 to 1000000".into())
}

/// Checks that copies whose names end in numbers come in the order of these: a shell sorts
/// `smaps.10` before `smaps.2`.
fn in_order(files: &[PathBuf]) -> Result<(), Error> {
    let number = |file: &PathBuf| -> Option<u64> {
        let name = file.to_str()?;
        name[name.trim_end_matches(|c: char| c.is_ascii_digit()).len()..].parse().ok()
    };
    let Some(numbers) = files.iter().map(number).collect::<Option<Vec<u64>>>() else { return Ok(()) };
    match numbers.windows(2).position(|two| two[0] >= two[1]) {
        None => Ok(()),
        Some(at) => {
            let (first, second) = (files[at].display(), files[at + 1].display());
            let reason = format!("{first} comes before {second}: name the copies in order, such as $(ls -v smaps.*)");
            Err(AskedWrongly::Value(reason).into())
        }
    }
}

pub fn workload(command: &WorkloadCommand) -> Result<(), Error> {
    let unreadable = |path: &Path, e: std::io::Error| {
        let path = path.display().to_string();
        Error::from(AskedWrongly::Unreadable { path, reason: e.to_string() })
    };
    let (recording, of, on) = match command {
        WorkloadCommand::FromTrace(TraceArgs { file, on }) => {
            if file.as_os_str() == STANDARD_INPUT {
                let path = "standard input".to_string();
                (Recording::of_trace(&path, std::io::stdin().lock())?, path, on)
            } else {
                let text = File::open(file).map_err(|e| unreadable(file, e))?;
                let path = file.display().to_string();
                (Recording::of_trace(&path, text)?, path, on)
            }
        }
        WorkloadCommand::FromSmaps(SmapsArgs { files, every, on }) => {
            let read = |file: &PathBuf| {
                let text = std::fs::read_to_string(file).map_err(|e| unreadable(file, e))?;
                Ok((file.display().to_string(), text))
            };
            in_order(files)?;
            let copies = files.iter().map(read).collect::<Result<Vec<_>, Error>>()?;
            (Recording::of_smaps(&copies, *every)?, format!("{} copies of smaps", copies.len()), on)
        }
    };
    catalog::machine(&on.machine)?;
    let text = recording.workload(&of, &on.machine);
    if text.len() as u64 > MOST_BYTES {
        let (is, most) = (text.len() >> 20, MOST_BYTES >> 20);
        let remedy = "record for a shorter time, or fewer processes";
        return Err(
            AskedWrongly::Value(format!("{of}: a workload of {is} MiB, at most {most} can be run: {remedy}")).into()
        );
    }
    recording.notes.iter().for_each(|note| kontig_terminal::say(note));
    kontig_terminal::print(&text)
}
