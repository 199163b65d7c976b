//! Spaces: the parameters of a sweep, and the cells that they make.

use kontig_error::{AskedWrongly, Error};
use kontig_lab::catalog;
use kontig_lab::cell::Cell;
use kontig_lab::resolved::Resolved;
use kontig_lab::sysctls;
use kontig_lab::what_if::{Changes, WhatIf, what_if};
use serde::Deserialize;

/// A space as the package's Python writes it: a list of values for each parameter.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Space {
    workload: String,
    /// Empty for the workload's own.
    machine: Vec<String>,
    /// Empty for the workload's own.
    profile: Vec<String>,
    switch: Vec<String>,
    set: Vec<(String, Vec<String>)>,
    with: Vec<(String, Vec<String>)>,
    seed: Vec<u64>,
}

impl Space {
    /// All combinations, and notes about them.
    pub(crate) fn cells(&self) -> Result<(Vec<Cell>, Vec<String>), Error> {
        let empty = |what: &str| Err(AskedWrongly::Value(format!("{what}: no value, so nothing would run")).into());
        if self.seed.is_empty() {
            return empty("seed");
        }
        if let Some((name, _)) = self.set.iter().chain(&self.with).find(|(_, values)| values.is_empty()) {
            return empty(name);
        }
        let (experiment, source, own) = catalog::to_run(&self.workload)?;
        let changes = Changes {
            machines: self.machine.clone(),
            profiles: self.profile.clone(),
            switches: self.switch.clone(),
            settings: self.set.clone(),
            parameters: self.with.clone(),
            ..Changes::default()
        };
        let WhatIf { mut experiment, mut notes, .. } = what_if(experiment, &changes)?;
        notes.extend(sysctls::set_own(&mut experiment.variant, &own)?);
        let all = Resolved::all(&experiment, Some(&source))?;
        Ok((all.iter().flat_map(|resolved| Cell::all(resolved, &self.seed)).collect(), notes))
    }
}
