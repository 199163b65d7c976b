//! `kontig oracle record`.

use clap::Args;
use kontig_lab::LabError;

/// What it is asked.
#[derive(Args)]
pub struct RecordArgs {}

/// Does it.
pub fn record(_: &RecordArgs) -> Result<(), LabError> {
    Ok(())
}
