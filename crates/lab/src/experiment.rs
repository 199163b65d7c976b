//! Experiments and targets, as data.

use crate::files::{file_name, is_file_name};
use kontig_mm::sysctl::Sysctl;
use kontig_workload::{LONGEST_PAUSE_US, Workload, Wrong, within};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An experiment: one workload on one machine under several variants.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name it is asked for by.
    pub id: String,
    /// One line: what it shows.
    pub summary: String,
    /// What the source leaves open and was assumed here, and why.
    pub assumptions: String,
    /// The machine's name.
    pub machine: String,
    /// The published figures to hold the result against.
    pub target: Option<String>,
    /// How often each variant runs, each time with another seed.
    #[serde(default = "once")]
    pub repetitions: u32,
    /// What runs.
    pub workload: Workload,
    /// The variants, baseline first.
    pub variant: Vec<Variant>,
    /// The workload's pause between operations, varied on a smaller machine.
    pub pace: Option<Pace>,
}

const fn once() -> u32 {
    1
}

/// One column: a kernel generation with patches and settings.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The column's name.
    pub name: String,
    /// The profile's name.
    pub profile: String,
    /// Patches on top, by name.
    #[serde(default)]
    pub switches: Vec<String>,
    /// Sysctls, set before anything runs.
    #[serde(default)]
    pub sysctls: BTreeMap<String, toml::Value>,
}

/// A sweep over the pause between huge-page allocations: how fast may they be taken before one stalls?
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// The machine it runs on: smaller, because every point is a run of its own.
    pub machine: String,
    /// The pauses, µs.
    pub pause_us: Vec<f64>,
}

/// Published figures.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The name it is asked for by.
    pub id: String,
    /// The columns, baseline first.
    pub variants: Vec<String>,
    /// The rows.
    pub row: Vec<TargetRow>,
}

/// A published row.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct TargetRow {
    /// What was measured.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Whether it is one of the figures the document is known for.
    #[serde(default)]
    pub headline: bool,
    /// One figure a column.
    pub values: Vec<f64>,
}

impl Variant {
    /// The sysctls as texts.
    pub fn sysctl_texts(&self) -> Vec<(String, String)> {
        let text = |v: &toml::Value| match v {
            toml::Value::String(s) => s.clone(),
            other => other.to_string(),
        };
        self.sysctls.iter().map(|(k, v)| (k.clone(), text(v))).collect()
    }
}

impl Experiment {
    /// Whether it makes sense as a whole.
    ///
    /// # Errors
    /// What does not.
    pub fn validate(&self) -> Result<(), Wrong> {
        let wrong = |way: &[&str], reason: String| Err(Wrong::at(way, reason));
        if !is_file_name(&self.id) {
            return wrong(&["id"], format!("id = \"{}\": an id is made of letters, digits and .-_=+", self.id));
        }
        if self.variant.is_empty() {
            return wrong(&["variant"], "an experiment has at least one [[variant]]".into());
        }
        for (i, v) in self.variant.iter().enumerate() {
            let number = i.to_string();
            let name = &["variant", &number, "name"];
            if self.variant[..i].iter().any(|w| w.name == v.name) {
                return wrong(name, format!("two variants are called '{}'", v.name));
            }
            let short = |name: &String| Sysctl::find(name).map_or(name.as_str(), |s| s.short_name()).to_string();
            let mut sysctls: Vec<String> = v.sysctls.keys().map(short).collect();
            sysctls.sort();
            if let Some(twice) = sysctls.windows(2).find(|w| w[0] == w[1]) {
                let reason = format!("variant '{}' sets vm.{} twice", v.name, twice[0]);
                return wrong(&["variant", &number, "sysctls"], reason);
            }
            if !is_file_name(&file_name(&v.name)) {
                return wrong(name, format!("a variant cannot be called '{}'", v.name));
            }
            if let Some(w) = self.variant[..i].iter().find(|w| file_name(&w.name) == file_name(&v.name)) {
                return wrong(name, format!("variants '{}' and '{}' would be stored under one name", w.name, v.name));
            }
        }
        if self.repetitions == 0 {
            return wrong(&["repetitions"], "repetitions = 0: nothing would run".into());
        }
        if self.repetitions > MOST_RUNS {
            return wrong(&["repetitions"], format!("repetitions = {}: at most {MOST_RUNS}", self.repetitions));
        }
        if self.pace.is_some() && !self.workload.measures_one_driver() {
            let reason = "[pace] varies the pause of one driver of huge pages: the phase 'measure' waits for one task, \
                          of kind = \"hugealloc\"";
            return wrong(&["pace"], reason.into());
        }
        for (i, pause) in self.pace.iter().flat_map(|p| p.pause_us.iter().enumerate()) {
            let pauses = &["pace", "pause_us"];
            within("pause_us", *pause, LONGEST_PAUSE_US).map_err(|reason| Wrong::at(pauses, reason))?;
            if self.pace.iter().any(|p| p.pause_us[..i].contains(pause)) {
                return wrong(pauses, format!("pause_us holds {pause} twice"));
            }
        }
        self.workload.validate().map_err(|wrong| wrong.below(&["workload"]))
    }

    /// The names of machines, profiles and targets it goes by.
    pub(crate) fn names_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let profiles = self.variant.iter_mut().map(|v| &mut v.profile);
        let machines = std::iter::once(&mut self.machine).chain(self.pace.as_mut().map(|pace| &mut pace.machine));
        machines.chain(&mut self.target).chain(profiles)
    }
}

impl Target {
    /// Whether it makes sense as a whole.
    ///
    /// # Errors
    /// What does not.
    pub fn validate(&self) -> Result<(), String> {
        for r in &self.row {
            if r.values.len() != self.variants.len() {
                return Err(format!(
                    "row '{}' has {} values for {} variants",
                    r.name,
                    r.values.len(),
                    self.variants.len()
                ));
            }
            if let Some(v) = r.values.iter().find(|v| !v.is_finite()) {
                return Err(format!("row '{}' has the value {v}", r.name));
            }
        }
        Ok(())
    }
}

/// Repetitions an experiment may have.
const MOST_RUNS: u32 = 10_000;
