//! `kontig oracle`: the engine verified against real kernels.

pub mod doctor;
pub mod fidelity;
pub mod guest;
pub mod record;
mod source_tree;
pub mod verify;

use clap::Subcommand;
use kontig_error::Error;
use kontig_terminal::Ending;

#[derive(Subcommand)]
pub(crate) enum OracleCommand {
    /// Boot a real kernel under emulation and record what its allocator does
    Record(record::RecordArgs),
    /// Replay recordings through the engine and show the first difference
    #[command(after_help = verify::HELP)]
    Verify(verify::VerifyArgs),
    /// Replay all recordings and report, mechanism by mechanism, how far to trust the engine
    #[command(after_help = fidelity::HELP)]
    Fidelity(fidelity::FidelityArgs),
    /// Compare the counters of real kernels under a program's load with the laboratory's
    #[command(after_help = guest::HELP)]
    Guest(guest::GuestArgs),
    /// Show what is missing for making recordings, and how to install it
    Doctor(doctor::DoctorArgs),
}

pub fn oracle(command: &OracleCommand) -> Result<Ending, Error> {
    match command {
        OracleCommand::Record(a) => record::record(a),
        OracleCommand::Verify(a) => verify::verify(a),
        OracleCommand::Fidelity(a) => fidelity::fidelity(a),
        OracleCommand::Guest(a) => guest::guest(a),
        OracleCommand::Doctor(a) => doctor::doctor(a).map(|()| Ending::Done),
    }
}
