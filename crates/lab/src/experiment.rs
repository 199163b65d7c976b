//! Experiments as files describe them.

use crate::missed::Lack;
use crate::names::short_sysctl;
use crate::page::PageText;
use crate::parameters;
use crate::target::CaveatOf;
use kontig_error::files::{file_name, is_file_name};
use kontig_mm::sysctl::Sysctl;
use kontig_workload::{LONGEST_PAUSE_US, Workload, Wrong, within};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An experiment: a workload on a machine under several variants, or several such cases.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name on the command line.
    pub id: String,
    /// One line: what it shows.
    pub summary: String,
    /// Assumptions where the source is silent, and the reasons.
    pub assumptions: String,
    pub machine: String,
    /// The published figures to hold the result against.
    pub target: Option<String>,
    /// Runs of each variant, each with another seed.
    #[serde(default = "once")]
    pub repetitions: u32,
    pub workload: Workload,
    /// Rounds: repetitions of the measured phases on one machine, without a reboot in between.
    #[serde(default = "once")]
    pub rounds: u32,
    /// The variants, baseline first.
    pub variant: Vec<Variant>,
    /// Machines and configurations, each with a table of its own.
    #[serde(default)]
    pub case: Vec<Case>,
    /// Published rows that are scored apart, beside those the target says so of.
    #[serde(default)]
    pub caveat: Vec<CaveatOf>,
    /// Shortcomings of the model, printed under the rows that are missed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lack: Vec<Lack>,
    /// The workload's pause between operations, varied on a smaller machine.
    pub pace: Option<Pace>,
    /// The text of its page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<PageText>,
}

const fn once() -> u32 {
    1
}

/// One column: a kernel generation with patches and settings.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    pub name: String,
    pub profile: String,
    /// Its machine, if that is not the experiment's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Patches on top, by name.
    #[serde(default)]
    pub switches: Vec<String>,
    /// Sysctls, set before anything runs.
    #[serde(default)]
    pub sysctls: BTreeMap<String, toml::Value>,
    /// Parameters of the workload that differ, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub with: BTreeMap<String, toml::Value>,
}

/// One of several machines or configurations of an experiment. Unnamed parts are the experiment's
/// own.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    pub machine: Option<String>,
    /// The published figures to hold it against.
    pub target: Option<String>,
    pub workload: Option<Workload>,
    /// Sysctls of every variant, set before anything runs.
    #[serde(default)]
    pub sysctls: BTreeMap<String, toml::Value>,
}

/// A sweep over the pause between huge-page allocations, which finds the pace at which they begin
/// to stall.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// The machine it runs on: smaller, because every point is a run of its own.
    pub machine: String,
    pub pause_us: Vec<f64>,
}

impl Variant {
    /// Its profile's name, and its switches.
    pub(crate) fn kernel(&self) -> (&str, &[String]) {
        (&self.profile, &self.switches)
    }

    /// The sysctls as texts.
    pub fn sysctl_texts(&self) -> Vec<(String, String)> {
        texts(&self.sysctls)
    }

    /// The same, under the kernel's names.
    pub fn sysctls_by_full_name(&self) -> BTreeMap<String, String> {
        let named = |(name, value): (String, String)| (Sysctl::full_name(&name).to_owned(), value);
        self.sysctl_texts().into_iter().map(named).collect()
    }
}

/// Sysctls with their values as `/proc/sys` takes them.
pub(crate) fn texts(sysctls: &BTreeMap<String, toml::Value>) -> Vec<(String, String)> {
    let text = |v: &toml::Value| match v {
        toml::Value::String(s) => s.clone(),
        other => other.to_string(),
    };
    sysctls.iter().map(|(k, v)| (k.clone(), text(v))).collect()
}

impl Experiment {
    /// The publication it belongs to: what stands before the first colon or comma of its summary.
    pub fn series(&self) -> &str {
        self.summary.split_once([':', ',']).map_or(&self.summary, |(series, _)| series)
    }

    /// Checks that its parts are valid and fit together.
    ///
    /// # Errors
    /// The part that does not, and the remedy.
    pub fn validate(&self) -> Result<(), Wrong> {
        let wrong = |way: &[&str], reason: String| Err(Wrong::at(way, reason));
        if !is_file_name(&self.id) {
            return wrong(&["id"], format!("id = \"{}\": an id is made of letters, digits and .-_=+", self.id));
        }
        if self.variant.is_empty() {
            return wrong(&["variant"], "an experiment has at least one [[variant]]".into());
        }
        // Sweeps have thousands of variants.
        let mut stored: BTreeMap<String, &str> = BTreeMap::new();
        for (i, v) in self.variant.iter().enumerate() {
            let number = i.to_string();
            let name = &["variant", &number, "name"];
            let other = stored.insert(file_name(&v.name), &v.name);
            if other == Some(v.name.as_str()) {
                return wrong(name, format!("two variants are called '{}'", v.name));
            }
            let mut sysctls: Vec<&str> = v.sysctls.keys().map(|name| short_sysctl(name)).collect();
            sysctls.sort();
            if let Some(twice) = sysctls.windows(2).find(|w| w[0] == w[1]) {
                let reason = format!("variant '{}' sets vm.{} twice", v.name, twice[0]);
                return wrong(&["variant", &number, "sysctls"], reason);
            }
            if !is_file_name(&file_name(&v.name)) {
                return wrong(name, format!("a variant cannot be called '{}'", v.name));
            }
            if let Some(other) = other {
                return wrong(name, format!("variants '{other}' and '{}' would be stored under one name", v.name));
            }
        }
        for (name, n) in [("repetitions", self.repetitions), ("rounds", self.rounds)] {
            if n == 0 {
                return wrong(&[name], format!("{name} = 0: nothing would run"));
            }
            if n > MOST_RUNS {
                return wrong(&[name], format!("{name} = {n}: at most {MOST_RUNS}"));
            }
        }
        if self.rounds > 1 && self.pace.is_some() {
            return wrong(&["pace"], "[pace] makes runs of one round: leave out rounds or [pace]".into());
        }
        self.validate_cases()?;
        if self.pace.is_some() && self.workload.beginning().is_some() {
            return wrong(
                &["pace"],
                "[pace] runs on another machine than the one that starts so: leave out one of the two".into(),
            );
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
        self.workload.validate().map_err(|wrong| wrong.below(&["workload"]))?;
        self.validate_parameters()
    }

    /// Checks the workload of each variant that has parameters of its own.
    fn validate_parameters(&self) -> Result<(), Wrong> {
        // With cases, each has its own workload.
        let of_cases: Vec<Experiment> = self.case.iter().map(|case| self.of_case(case)).collect();
        let each = if of_cases.is_empty() { std::slice::from_ref(self) } else { &of_cases };
        for e in each {
            for (i, v) in e.variant.iter().enumerate() {
                e.workload_of(v).map_err(|reason| Wrong::at(&["variant", &i.to_string(), "with"], reason))?;
            }
        }
        Ok(())
    }

    /// The workload of one of its variants.
    ///
    /// # Errors
    /// The parameter that there is not, or why it cannot have the value.
    pub(crate) fn workload_of(&self, v: &Variant) -> Result<Workload, String> {
        let values: Vec<(&str, &toml::Value)> = v.with.iter().map(|(name, value)| (name.as_str(), value)).collect();
        match values.as_slice() {
            [] => Ok(self.workload.clone()),
            values => parameters::set(&self.workload, values, None)
                .map_err(|refused| format!("{}: {}", refused.name, refused.reason)),
        }
    }

    /// Whether the seed of a run matters.
    pub(crate) fn is_random(&self) -> bool {
        self.variant.iter().any(|v| self.workload_of(v).is_ok_and(|workload| workload.is_random()))
    }

    /// Checks that its cases have distinct names and valid workloads.
    fn validate_cases(&self) -> Result<(), Wrong> {
        for (i, case) in self.case.iter().enumerate() {
            let number = i.to_string();
            let wrong = |key: &str, reason: String| Err(Wrong::at(&["case", &number, key], reason));
            if case.name.is_empty() || !is_file_name(&file_name(&case.name)) {
                return wrong("name", format!("a case cannot be called '{}'", case.name));
            }
            if let Some(other) = self.case[..i].iter().find(|other| file_name(&other.name) == file_name(&case.name)) {
                return wrong(
                    "name",
                    format!("cases '{}' and '{}' would be stored under one name", other.name, case.name),
                );
            }
            if let Some(workload) = &case.workload {
                workload.validate().map_err(|wrong| wrong.below(&["case", &number, "workload"]))?;
            }
        }
        if self.pace.is_some() && self.variant.iter().any(|v| v.machine.is_some() || !v.with.is_empty()) {
            return Err(Wrong::at(&["pace"], "[pace] is of one machine and workload: no variant has its own"));
        }
        if !self.case.is_empty() && self.pace.is_some() {
            return Err(Wrong::at(&["pace"], "[pace] is of one case: leave out [[case]] or [pace]"));
        }
        Ok(())
    }

    /// Reduces the experiment to one of its cases.
    pub(crate) fn of_case(&self, case: &Case) -> Experiment {
        let mut e = Experiment { case: Vec::new(), ..self.clone() };
        if let Some(machine) = &case.machine {
            e.machine.clone_from(machine);
        }
        if let Some(target) = &case.target {
            e.target = Some(target.clone());
        }
        if let Some(workload) = &case.workload {
            e.workload = workload.clone();
        }
        for variant in &mut e.variant {
            // A variant's own sysctls override those of its case.
            let own = std::mem::replace(&mut variant.sysctls, case.sysctls.clone());
            variant.sysctls.retain(|name, _| !own.keys().any(|own| short_sysctl(own) == short_sysctl(name)));
            variant.sysctls.extend(own);
        }
        e
    }

    /// Every name of a machine, profile or target in it.
    pub(crate) fn names_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let variants = self.variant.iter_mut().flat_map(|v| v.machine.iter_mut().chain([&mut v.profile]));
        let machines = std::iter::once(&mut self.machine).chain(self.pace.as_mut().map(|pace| &mut pace.machine));
        let cases = self.case.iter_mut().flat_map(|case| case.machine.iter_mut().chain(&mut case.target));
        machines.chain(&mut self.target).chain(variants).chain(cases)
    }
}

/// Repetitions an experiment may have.
const MOST_RUNS: u32 = 10_000;
