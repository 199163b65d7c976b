//! The rules by which a command predicts what a host's kernel does.

use kontig_error::{Error, Failed};
use kontig_mm::Profile;

/// The rules that were named, or those for a kernel, for this command.
pub fn profile(command: &str, name: Option<&str>, kernel: &str) -> Result<Profile, Error> {
    if let Some(name) = name {
        return Ok(kontig_profiles::open(name)?);
    }
    let none = || {
        let reason = format!("'{kernel}' is no kernel's release: choose rules with --profile");
        Failed::Run { run: command.into(), reason }.into()
    };
    kontig_profiles::of_kernel(kernel).ok_or_else(none)
}
