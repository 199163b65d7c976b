//! The evidence: three files under `oracle/`, checked against each other.
//!
//! `mechanisms.toml` lists the mechanisms and their entry points in the engine; `mutants.toml`
//! lists the mistakes planted in them. `evidence.toml` has the recordings that run through each
//! mechanism and those that notice each mistake. The test that plants the mistakes measures it, and
//! fails if the file differs.

use crate::error::BadRecording;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use toml::Spanned;

/// Path of the mechanisms, below the project's folder.
pub const MECHANISMS: &str = "oracle/mechanisms.toml";
/// Path of the planted mistakes.
pub const MUTANTS: &str = "oracle/mutants.toml";
/// Path of the measured evidence.
pub const EVIDENCE: &str = "oracle/evidence.toml";
/// The command that measures it.
pub const MEASURE: &str = "KONTIG_EVIDENCE=write cargo test --release -p kontig-oracle --test mutants";

/// A mechanism of the engine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mechanism {
    pub name: Spanned<String>,
    /// Paths of its files below `crates/mm/src`.
    pub engine: Vec<String>,
    /// Its sections of `docs/kernel/kernel-behaviour/`, as shown.
    pub rules: String,
    /// Entry points: an execution that passes one runs through the mechanism.
    pub begins: Vec<Place>,
    /// Series of the kernels that do not have it.
    #[serde(default)]
    pub absent: Vec<String>,
    /// Reason why it is not verified for some kernels.
    #[serde(default)]
    pub unverified: String,
}

/// A place in the engine's source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Path of a file below `crates/mm/src`.
    pub file: String,
    /// Text that occurs once in it; the place is after the first `{` from there on.
    pub at: String,
    /// Condition for an execution to count; without it all do.
    pub when: Option<String>,
}

/// A limit of all recordings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    pub what: String,
    pub why: String,
}

/// The contents of `mechanisms.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mechanisms {
    /// The mechanisms, in reading order.
    pub mechanism: Vec<Mechanism>,
    /// Features that are not verified, or not modelled, as a whole.
    #[serde(default)]
    pub limit: Vec<Limit>,
    /// Known reasons why recordings are not reproduced.
    #[serde(default)]
    pub differing: BTreeMap<String, String>,
    /// Short descriptions of experiments.
    #[serde(default)]
    pub experiments: BTreeMap<String, String>,
}

/// A mistake planted in a mechanism; only the fields needed here.
#[derive(Clone, Debug, Deserialize)]
pub struct Mistake {
    pub name: Spanned<String>,
    pub mechanism: Option<String>,
    /// Reason why no recording can notice it.
    #[serde(default)]
    pub unnoticed: Option<String>,
}

#[derive(Deserialize)]
struct Mutants {
    mutant: Vec<Mistake>,
}

/// The contents of `evidence.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Recordings that run through each mechanism.
    pub reached: BTreeMap<String, Vec<String>>,
    /// For each mistake, one recording of each kernel that notices it.
    pub noticed: BTreeMap<String, Vec<String>>,
}

/// Mechanisms, mistakes and measurements.
#[derive(Clone, Debug)]
pub struct Evidence {
    pub mechanisms: Mechanisms,
    pub mistakes: Vec<Mistake>,
    pub measured: Measured,
}

impl Evidence {
    /// Reads the files below the project's folder.
    ///
    /// # Errors
    /// If one is missing or malformed, or they contradict each other.
    pub fn read(root: &Path) -> Result<Evidence, BadRecording> {
        let mechanisms: Mechanisms = read(root, MECHANISMS)?.0;
        let (Mutants { mutant: mistakes }, mutants_text) = read(root, MUTANTS)?;
        let measured: Measured = read(root, EVIDENCE)?.0;
        let known = |name: &str| mechanisms.mechanism.iter().any(|m| m.name.as_ref() == name);
        for m in &mistakes {
            let at = |reason: String| {
                BadRecording::line(root.join(MUTANTS), line_of(&mutants_text, m.name.span().start), reason)
            };
            match &m.mechanism {
                None => return Err(at(format!("'{}' names no mechanism of {MECHANISMS}", m.name.as_ref()))),
                Some(name) if !known(name) => return Err(at(format!("{MECHANISMS} has no mechanism '{name}'"))),
                Some(_) => {}
            }
        }
        Ok(Evidence { mechanisms, mistakes, measured })
    }

    /// The mistakes in a mechanism.
    pub fn mistakes_in(&self, mechanism: &str) -> impl Iterator<Item = &str> {
        let here = move |m: &&Mistake| m.mechanism.as_deref() == Some(mechanism);
        self.mistakes.iter().filter(here).map(|m| m.name.as_ref().as_str())
    }

    /// The recordings that run through a mechanism.
    pub fn reached(&self, mechanism: &str) -> &[String] {
        self.measured.reached.get(mechanism).map_or(&[], Vec::as_slice)
    }

    /// The recordings known to notice a mistake.
    pub fn noticed(&self, mistake: &str) -> &[String] {
        self.measured.noticed.get(mistake).map_or(&[], Vec::as_slice)
    }
}

fn read<T: DeserializeOwned>(root: &Path, file: &str) -> Result<(T, String), BadRecording> {
    let path = root.join(file);
    let text = std::fs::read_to_string(&path).map_err(|e| {
        let reason = e.to_string();
        let plain = reason.split(" (os error").next().unwrap_or_default();
        BadRecording::whole(&path, format!("cannot be read: {plain}"))
    })?;
    match toml::from_str(&text) {
        Ok(value) => Ok((value, text)),
        Err(e) => {
            let line = line_of(&text, e.span().map_or(0, |s| s.start));
            Err(BadRecording::line(path, line, e.message().lines().collect::<Vec<_>>().join("; ")))
        }
    }
}

/// Line of a byte position in a text, counted from 1.
fn line_of(text: &str, position: usize) -> usize {
    text.bytes().take(position).filter(|b| *b == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(mutants: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a folder can be made");
        std::fs::create_dir(dir.path().join("oracle")).expect("a folder can be made");
        let mechanisms = "[[mechanism]]\nname = \"Fallback\"\nengine = []\nrules = \"§2.5\"\nbegins = []\n";
        for (file, text) in [(MECHANISMS, mechanisms), (MUTANTS, mutants), (EVIDENCE, "[reached]\n[noticed]\n")] {
            std::fs::write(dir.path().join(file), text).expect("a file can be written");
        }
        dir
    }

    fn said(mutants: &str) -> String {
        let dir = folder(mutants);
        let e = Evidence::read(dir.path()).expect_err("something is wrong");
        e.to_string().replace(&format!("{}/", dir.path().display()), "")
    }

    #[test]
    fn every_mistake_is_in_a_mechanism_that_is_listed() {
        let evidence = Evidence::read(folder("[[mutant]]\nname = \"m\"\nmechanism = \"Fallback\"\n").path());
        assert_eq!(evidence.expect("nothing is wrong").mistakes_in("Fallback").collect::<Vec<_>>(), ["m"]);
        let none = said("\n[[mutant]]\nname = \"m\"\n");
        assert_eq!(none, "oracle/mutants.toml: line 3: 'm' names no mechanism of oracle/mechanisms.toml");
        let unknown = said("[[mutant]]\nname = \"m\"\nmechanism = \"Swap\"\n");
        assert_eq!(unknown, "oracle/mutants.toml: line 2: oracle/mechanisms.toml has no mechanism 'Swap'");
    }

    #[test]
    fn a_malformed_file_is_named_with_its_line() {
        let e = said("[[mutant]]\nname = 1\n");
        assert!(e.starts_with("oracle/mutants.toml: line 2: invalid type"), "{e}");
    }
}
