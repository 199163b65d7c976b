//! The commands, with what the command line says of each.

use crate::command::code_of_usage_error;
use crate::explain::{ExplainArgs, Laboratory};
use crate::{age, bound, check, explain, guard, history, metrics, prepare, snapshot, status, top, touch, trial};
use clap::{FromArgMatches, Subcommand};
use kontig_error::Error;
use kontig_live::Roots;
use kontig_terminal::{Ending, number};
use std::path::PathBuf;

/// The commands about a real host.
#[derive(Subcommand)]
pub enum HostCommand {
    /// Show this host's memory: available huge pages, fragmentation, stalls, settings
    #[command(after_help = status::HELP)]
    Status(status::StatusArgs),
    /// Predict whether blocks will be available: now, after compaction, after dropping cache, or
    /// not at all, and why
    #[command(after_help = check::HELP)]
    Check(check::CheckArgs),
    /// Show the fewest page moves for more blocks, the moves that compaction takes, and the blocks
    /// that no move can free
    #[command(after_help = bound::HELP)]
    Bound(bound::BoundArgs),
    /// Keep blocks at hand, by compaction in user space; without --execute, only say when it would
    #[command(after_help = guard::HELP)]
    Guard(Box<guard::GuardArgs>),
    /// Make blocks available before something starts; without --execute, only print the plan
    #[command(after_help = prepare::HELP)]
    Prepare(prepare::PrepareArgs),
    /// Write a file with the use of every page frame of this host
    #[command(after_help = snapshot::HELP)]
    Snapshot(snapshot::SnapshotArgs),
    /// Fragment part of this host's memory on purpose, and keep it fragmented
    #[command(after_help = age::HELP)]
    Age(age::AgeArgs),
    /// Touch memory for the first time, and show how long each huge page took
    #[command(after_help = touch::HELP)]
    Touch(touch::TouchArgs),
    /// Compare predictions for this host with results, on memory fragmented for the test; without
    /// --execute, only print the plan
    #[command(after_help = trial::HELP)]
    Trial(trial::TrialArgs),
    /// Write 1 to a file: a child of 'prepare' and 'guard', so that the write can be killed
    #[command(hide = true)]
    WriteOne {
        /// Write dirty pages to disk first.
        #[arg(long)]
        sync: bool,
        /// Go before all other processes meanwhile.
        #[arg(long)]
        first: bool,
        path: PathBuf,
    },
    /// Print why blocks cannot be made on a node, by all of its frames: a child of 'guard', so that
    /// the look can be ended
    #[command(hide = true)]
    LookAtFrames { node: u32, order: u32, procfs: PathBuf, sysfs: PathBuf },
    /// Restore the settings of this host when 'prepare' or 'guard' is killed: a child of it
    #[command(hide = true)]
    RestoreAtEnd { journal: PathBuf, procfs: PathBuf, sysfs: PathBuf },
    /// Record this host's memory over time, and say what the record shows
    #[command(subcommand, after_help = history::HELP)]
    History(history::HistoryCommand),
    /// Watch this host's memory on one screen, or go through a history
    #[command(after_help = top::HELP)]
    Top(top::TopArgs),
    /// Give Prometheus the series of this host that node_exporter does not have
    #[command(after_help = metrics::HELP)]
    Metrics(metrics::MetricsArgs),
    /// Diagnose why this host lacks large blocks, and say what to do about it
    #[command(after_help = explain::HELP)]
    Explain(ExplainArgs),
}

impl HostCommand {
    /// Whether it takes signals itself.
    pub fn takes_signals(&self) -> bool {
        matches!(self, HostCommand::Guard(_))
    }

    /// Carries it out, with the laboratory of the program that has one.
    ///
    /// # Errors
    /// A line: what was asked wrongly, or what failed.
    pub fn run(self, laboratory: Option<&impl Laboratory>) -> Result<Ending, Error> {
        match self {
            HostCommand::Status(a) => status::status(&a),
            HostCommand::Check(a) => check::check(&a),
            HostCommand::Bound(a) => bound::bound(&a),
            HostCommand::Guard(a) => guard::guard(&a),
            HostCommand::Prepare(a) => prepare::prepare(&a),
            HostCommand::Snapshot(a) => snapshot::snapshot(&a),
            HostCommand::Age(a) => age::age(&a),
            HostCommand::Touch(a) => touch::touch(&a),
            HostCommand::Trial(a) => trial::trial(&a),
            HostCommand::WriteOne { path, sync, first } => prepare::write_one(&path, sync, first),
            HostCommand::LookAtFrames { node, order, procfs, sysfs } => {
                guard::look_at_frames(&Roots { procfs, sysfs }, node, order)
            }
            HostCommand::RestoreAtEnd { journal, procfs, sysfs } => prepare::restore_at_end(&journal, procfs, sysfs),
            HostCommand::History(c) => history::history(c),
            HostCommand::Top(a) => top::top(&a),
            HostCommand::Metrics(a) => metrics::metrics(&a),
            HostCommand::Explain(a) => explain::explain(&a, laboratory),
        }
    }
}

/// Parses the command line of a program with these commands. Where it cannot be parsed, or asks for
/// help, the program ends.
pub fn parsed<C: FromArgMatches>(command: clap::Command) -> C {
    let matches = number::take_negative(command).try_get_matches();
    matches.and_then(|matches| C::from_arg_matches(&matches)).unwrap_or_else(|e| {
        // If even this cannot be printed, only the exit code is left.
        let _ = e.print();
        std::process::exit(code_of_usage_error(e.exit_code()))
    })
}
