//! Names of changed variants, after their contents.

use super::notes::Notes;
use super::parameters::Parameter;
use crate::experiment::{Experiment, Variant};
use crate::{catalog, profiles, sysctls};
use kontig_error::Error;
use kontig_mm::Profile;
use kontig_mm::sysctl::Sysctl;
use kontig_workload::shown;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// Names the variants after their contents. Of equal ones, keeps the first.
pub(super) fn rename_and_drop_same(
    e: &mut Experiment,
    swept: &[&Sysctl],
    asked: &[Parameter],
    notes: &mut Notes,
) -> Result<(), Error> {
    let profiles = profiles::of_each(e.variant.iter().map(Variant::kernel))?;
    let own: BTreeSet<&String> = e.variant.iter().filter_map(|v| v.machine.as_ref()).collect();
    let own = own.into_iter().map(|name| Ok((name.clone(), catalog::machine(name)?.0.name)));
    let machines: BTreeMap<String, String> = own.collect::<Result<_, Error>>()?;
    let mut first: BTreeMap<(String, String, Option<String>), String> = BTreeMap::new();
    for (mut v, profile) in std::mem::take(&mut e.variant).into_iter().zip(&profiles) {
        let mut name = described(&v, profile, swept, asked)?;
        if let Some(machine) = v.machine.as_ref().and_then(|machine| machines.get(machine)) {
            name += &format!(" on {machine}");
        }
        match first.entry((name.clone(), v.profile.clone(), v.machine.clone())) {
            Entry::Occupied(first) => {
                notes.add(format!("'{}' and '{}' are both {name} now, which is run once", first.get(), v.name));
            }
            Entry::Vacant(new) => {
                new.insert(std::mem::replace(&mut v.name, name));
                e.variant.push(v);
            }
        }
    }
    Ok(())
}

/// A variant's name from its contents, but for its machine: `7.2`,
/// `5.6+proactive-compaction+proactiveness=80`, `6.1+size=2GiB`. A setting with several values
/// shows each, the default too.
fn described(v: &Variant, p: &Profile, swept: &[&Sysctl], asked: &[Parameter]) -> Result<String, Error> {
    let mut name = p.name.clone();
    for s in &v.switches {
        name += &format!("+{s}");
    }
    for (sysctl, value) in v.sysctl_texts() {
        let sysctl = sysctls::setting(&sysctl)?;
        if !sysctls::is_default(sysctl, &value) || swept.iter().any(|swept| swept.name == sysctl.name) {
            let short = sysctl.short_name();
            name += &format!("+{}={value}", short.strip_prefix("compaction_").unwrap_or(short));
        }
    }
    // Parameters of the experiment's own variants have their whole names.
    for (path, value) in &v.with {
        let as_asked = asked.iter().find(|parameter| parameter.path == *path);
        // What all variants have tells none from another.
        if as_asked.is_none_or(|parameter| parameter.values.len() > 1) {
            let called = as_asked.map_or(path, |parameter| &parameter.name);
            name += &format!("+{called}={}", shown(value).replace(' ', ""));
        }
    }
    Ok(name)
}
