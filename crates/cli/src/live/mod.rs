//! The commands about a real host: a file each, and what they share.

pub mod explain;
pub mod grid;
pub mod host;
pub mod status;

use crate::Ending;
use kontig_lab::{Failed, LabError};
use kontig_live::ReadError;

/// How a command ends that the host did not let read what it needs: with permission lacking told apart.
pub fn not_read(command: &str, error: &ReadError) -> Result<Ending, LabError> {
    if error.is_permission() {
        crate::say(&error.to_string());
        return Ok(Ending::Unpermitted);
    }
    Err(Failed::Run { run: command.into(), reason: error.to_string() }.into())
}
