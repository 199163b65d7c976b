//! The evidence: three files under `oracle/`, read and held against each other.
//!
//! `mechanisms.toml` lists the mechanisms and where in the engine each begins; `mutants.toml` lists the mistakes planted in
//! them. `evidence.toml` says which recordings run through which mechanism and which notice which mistake; the test that
//! plants the mistakes (`crates/oracle/tests/mutants.rs`) measures it, and fails if the file says otherwise.

use crate::error::BadRecording;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use toml::Spanned;

/// The files, below the project's folder.
pub const MECHANISMS: &str = "oracle/mechanisms.toml";
/// The planted mistakes.
pub const MUTANTS: &str = "oracle/mutants.toml";
/// What was measured.
pub const EVIDENCE: &str = "oracle/evidence.toml";

/// A mechanism of the engine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mechanism {
    /// What it is called in the field.
    pub name: Spanned<String>,
    /// Its files below `crates/mm/src`.
    pub engine: Vec<String>,
    /// Its sections of `docs/kernel-behaviour/`.
    pub rules: String,
    /// Where it begins: code that passes one of these places runs through it.
    pub begins: Vec<Place>,
    /// The kernels, by series, that do not have it.
    #[serde(default)]
    pub absent: Vec<String>,
    /// Why some kernel's is not verified, where it is not.
    #[serde(default)]
    pub unverified: String,
}

/// A place in the engine's source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The file, below `crates/mm/src`.
    pub file: String,
    /// A text in it that occurs once; the place is behind the first `{` from its start on.
    pub at: String,
    /// What has to hold there, if not all that comes by counts.
    pub when: Option<String>,
}

/// Something no recording can say anything about.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

/// `mechanisms.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mechanisms {
    /// The mechanisms, in reading order.
    pub mechanism: Vec<Mechanism>,
    /// What is not verified, or not there, as a whole.
    #[serde(default)]
    pub limit: Vec<Limit>,
    /// Why a recording is not reproduced, where that is established.
    #[serde(default)]
    pub differing: BTreeMap<String, String>,
    /// What an experiment does, in a few words.
    #[serde(default)]
    pub experiments: BTreeMap<String, String>,
}

/// A mistake planted in a mechanism, as far as it matters here.
#[derive(Clone, Debug, Deserialize)]
pub struct Mistake {
    /// What it is called.
    pub name: Spanned<String>,
    /// The mechanism it is in.
    pub mechanism: Option<String>,
    /// Why no recording can notice it, where none can.
    #[serde(default)]
    pub unnoticed: Option<String>,
}

#[derive(Deserialize)]
struct Mutants {
    mutant: Vec<Mistake>,
}

/// `evidence.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// For every mechanism the recordings that run through it.
    pub reached: BTreeMap<String, Vec<String>>,
    /// For every mistake a recording of each kernel that notices it, where there is one.
    pub noticed: BTreeMap<String, Vec<String>>,
}

/// All of it.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// The mechanisms.
    pub mechanisms: Mechanisms,
    /// The mistakes.
    pub mistakes: Vec<Mistake>,
    /// What was measured.
    pub measured: Measured,
}

impl Evidence {
    /// Reads the files below the project's folder.
    ///
    /// # Errors
    /// If one is missing or malformed, or they do not belong together.
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

/// The line, from 1, of a position in a text.
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
