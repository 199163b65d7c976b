//! `kontig oracle doctor`.

use clap::Args;
use kontig_lab::LabError;

/// What it is asked.
#[derive(Args)]
pub struct DoctorArgs {}

/// Does it.
pub fn doctor(_: &DoctorArgs) -> Result<(), LabError> {
    Ok(())
}
