//! Profiles by name or file, with switches thrown.

use crate::error::{AskedWrongly, LabError};
use crate::names::unknown;
use kontig_mm::Profile;
use kontig_profiles::Switch;

/// A profile by name, or read from a file.
pub fn named(name: &str) -> Result<Profile, LabError> {
    Ok(kontig_profiles::open(name)?)
}

/// All built-in profiles, oldest kernel first.
pub fn all() -> Vec<Profile> {
    kontig_profiles::all().collect()
}

pub(crate) fn switch(name: &str) -> Result<Switch, LabError> {
    let mut known = kontig_profiles::switches();
    known.remove(name).ok_or_else(|| unknown("switch", name, known.keys().map(String::as_str)))
}

/// A profile with switches thrown, in their order.
pub fn with_switches(name: &str, switched: &[String]) -> Result<Profile, LabError> {
    switched.iter().try_fold(named(name)?, |profile, s| {
        switch(s)?.throw(&profile).ok_or_else(|| {
            let reason = match kontig_profiles::to_throw_before(s, &profile) {
                Some(before) => format!(" as it is: throw '{}' before it", before.join("', '")),
                None => ", which has it already or differently: leave it out".into(),
            };
            AskedWrongly::Value(format!("switch '{s}' does not fit profile '{name}'{reason}")).into()
        })
    })
}
