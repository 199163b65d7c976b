//! `kontig oracle verify`.

use clap::Args;
use kontig_lab::LabError;

/// What it is asked.
#[derive(Args)]
pub struct VerifyArgs {}

/// Does it.
pub fn verify(_: &VerifyArgs) -> Result<(), LabError> {
    Ok(())
}
