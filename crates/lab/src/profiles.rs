//! Profiles by name or file, with switches thrown.

use crate::names::unknown;
use kontig_error::{AskedWrongly, Error};
use kontig_mm::Profile;
use kontig_profiles::{Fit, Switch};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// A profile by name, or read from a file.
pub fn named(name: &str) -> Result<Profile, Error> {
    Ok(kontig_profiles::open(name)?)
}

/// All built-in profiles, oldest kernel first.
pub fn all() -> Vec<Profile> {
    kontig_profiles::all().collect()
}

pub(crate) fn switch(name: &str) -> Result<Switch, Error> {
    let mut known = kontig_profiles::switches();
    known.remove(name).ok_or_else(|| unknown("switch", name, known.keys().map(String::as_str)))
}

/// A profile with switches thrown, in their order.
pub fn with_switches(name: &str, switched: &[String]) -> Result<Profile, Error> {
    switched.iter().try_fold(named(name)?, |profile, s| {
        let switch = switch(s)?;
        switch.throw(&profile).ok_or_else(|| {
            let reason = match kontig_profiles::to_throw_before(s, &profile) {
                Some(before) => format!(" as it is: throw '{}' before it", before.join("', '")),
                None => match switch.fit(&profile) {
                    Fit::Already => ", which has it already: leave it out".into(),
                    _ => format!(": it fits {}", fitting(&switch)),
                },
            };
            AskedWrongly::Value(format!("switch '{s}' does not fit profile '{name}'{reason}")).into()
        })
    })
}

/// The built-in profiles that a switch fits as they are.
fn fitting(switch: &Switch) -> String {
    let fits = kontig_profiles::all().filter(|profile| switch.fit(profile) == Fit::Fits);
    match fits.map(|profile| profile.name).collect::<Vec<_>>() {
        none if none.is_empty() => "no profile without another switch".into(),
        names => names.join(", "),
    }
}

/// The profile of each of these, given by names and switches. A sweep's thousands of variants have
/// a few profiles, and each of them is read once.
pub(crate) fn of_each<'a>(all: impl Iterator<Item = (&'a str, &'a [String])>) -> Result<Vec<Profile>, Error> {
    let mut read: BTreeMap<(&str, &[String]), Profile> = BTreeMap::new();
    let mut of = |named: (&'a str, &'a [String])| match read.entry(named) {
        Entry::Occupied(there) => Ok(there.get().clone()),
        Entry::Vacant(new) => Ok(new.insert(with_switches(named.0, named.1)?).clone()),
    };
    all.map(&mut of).collect()
}
