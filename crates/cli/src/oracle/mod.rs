//! `kontig oracle`: the engine held against real kernels.

pub mod doctor;
pub mod fidelity;
pub mod guest;
pub mod record;
pub mod verify;

use crate::Ending;
use clap::Subcommand;
use kontig_lab::LabError;

/// What can be asked of the oracle.
#[derive(Subcommand)]
pub enum OracleCommand {
    /// Boot a real kernel under emulation and record what its allocator does
    Record(record::RecordArgs),
    /// Replay recordings through the engine and show the first difference
    #[command(after_help = verify::HELP)]
    Verify(verify::VerifyArgs),
    /// Replay all recordings and conclude, mechanism by mechanism, what can be believed
    #[command(after_help = fidelity::HELP)]
    Fidelity(fidelity::FidelityArgs),
    /// Compare what real kernels counted under a program's pattern with what the laboratory counts
    #[command(after_help = guest::HELP)]
    Guest(guest::GuestArgs),
    /// Show what is missing to make recordings, and the line that installs it
    Doctor(doctor::DoctorArgs),
}

/// Carries out one of them.
pub fn oracle(command: &OracleCommand) -> Result<Ending, LabError> {
    match command {
        OracleCommand::Record(a) => record::record(a),
        OracleCommand::Verify(a) => verify::verify(a),
        OracleCommand::Fidelity(a) => fidelity::fidelity(a),
        OracleCommand::Guest(a) => guest::guest(a),
        OracleCommand::Doctor(a) => doctor::doctor(a).map(|()| Ending::Done),
    }
}
