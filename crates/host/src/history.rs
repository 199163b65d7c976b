//! `kontig history`: a host's memory recorded over time, and what the record says.

mod compare;
mod period;
mod record;
mod report;
mod show;
mod source;

use clap::Subcommand;
use kontig_error::Error;
use kontig_terminal::Ending;

pub use source::{HistoryArgs, Past, open, wrong};

/// The commands about a history.
#[derive(Subcommand)]
pub enum HistoryCommand {
    /// Record the kernel's texts about memory, again and again, into a file that is only appended
    /// to
    #[command(after_help = record::HELP)]
    Record(record::RecordArgs),
    /// Show one moment, as 'kontig status' shows the present
    #[command(after_help = show::HELP)]
    Show(show::ShowArgs),
    /// Sum a history up: huge pages at hand, stalls, who paid, what changed
    #[command(after_help = report::HELP)]
    Report(report::ReportArgs),
    /// Say what differs between two histories, or two periods of one
    #[command(after_help = compare::HELP)]
    Compare(compare::CompareArgs),
}

/// The text of --help after the options.
pub const HELP: &str = "Examples:\n  \
    kontig history record host.history                     every 10 s, until Ctrl-C\n  \
    kontig history show host.history --at -3h              three hours before its last sample\n  \
    kontig history report host.history --html night.html   a page with time lines\n  \
    kontig history compare host.history@-2d..-1d host.history@-1d..\n  \
    kontig check --need 2000x2M --history host.history --at -3h";

/// Carries out `kontig history`.
///
/// # Errors
/// A line: what was asked wrongly, or what failed.
pub fn history(c: HistoryCommand) -> Result<Ending, Error> {
    match c {
        HistoryCommand::Record(a) => record::record(&a),
        HistoryCommand::Show(a) => show::show(&a),
        HistoryCommand::Report(a) => report::report(&a),
        HistoryCommand::Compare(a) => compare::compare(&a),
    }
}
