//! The page's content: replays of all recordings, and the standing of each mechanism and kernel.

use super::evidence::{Evidence, Limit, Mechanism};
use crate::difference::Difference;
use crate::error::BadRecording;
use crate::recording::Recording;
use crate::recording::about::profile_of;
use crate::replay::Compared;
use crate::trace::recipes;
use crate::verify::{Verdict, verify, verify_by};
use std::path::{Path, PathBuf};

/// Folder of the recordings that the engine reproduces.
pub const GOLDEN: &str = "oracle/golden";
/// Folder of the recordings that it does not reproduce.
pub const DIFFERING: &str = "oracle/differing";

/// Standing of a mechanism against one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Recordings that run through it are equal, and would not be with a mistake in it.
    Exact {
        recordings: usize,
        /// Planted mistakes that are noticed.
        mistakes: usize,
    },
    /// Recordings that run through it are equal, but none is known to notice a mistake.
    Equal { recordings: usize },
    /// Only recordings that cannot be equal run through it; their totals are within the tolerance.
    Close {
        recordings: usize,
        /// Planted mistakes that are noticed.
        mistakes: usize,
    },
    /// A recording that runs through it is not reproduced.
    Differs { recording: String },
    /// No recording runs through it.
    Unverified,
    /// The kernel does not have it.
    Absent,
}

/// A kernel with recordings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Series in the form `6.1`.
    pub series: String,
    /// Version in the form `6.1.192`.
    pub version: String,
}

/// A mechanism and its standings.
#[derive(Clone, Debug)]
pub struct Row {
    pub mechanism: Mechanism,
    /// One for each of [`Page::kernels`].
    pub standings: Vec<Standing>,
}

/// A recording and the result of its replay.
#[derive(Clone, Debug)]
pub struct Replayed {
    pub name: String,
    pub series: String,
    /// Empty if the recording states none.
    pub version: String,
    /// The experiment in a few words, and its sysctls.
    pub what: String,
    pub outcome: Outcome,
}

/// Result of a replay.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Equal, or close if equality cannot be had.
    Reproduced(Compared),
    /// Not equal; the first difference.
    Different(Box<Difference>),
    /// Nothing could be replayed; the reason.
    NotReplayed(String),
}

/// How far one kernel's rules carry to the next: the newest kernel's recordings, replayed by the
/// profile of the kernel before it.
#[derive(Clone, Debug)]
pub struct Carried {
    pub kernel: Kernel,
    /// The kernel before it.
    pub by: Kernel,
    /// Recordings that are equal all the same.
    pub equal: usize,
    /// The others, with their first difference.
    pub different: Vec<(String, String)>,
}

/// Contents of the page.
#[derive(Clone, Debug)]
pub struct Page {
    /// Recorded kernels, oldest first.
    pub kernels: Vec<Kernel>,
    pub rows: Vec<Row>,
    pub recordings: Vec<Replayed>,
    /// `None` if only one kernel is recorded.
    pub carried: Option<Carried>,
    /// Recordings that are not reproduced, with the reason if it is known.
    pub differing: Vec<(Replayed, Option<String>)>,
    pub limits: Vec<Limit>,
    /// Number of planted mistakes.
    pub mistakes: usize,
    /// Mistakes that no recording notices.
    pub unnoticed: Vec<Unnoticed>,
}

/// A planted mistake that no recording notices.
#[derive(Clone, Debug)]
pub struct Unnoticed {
    pub mistake: String,
    pub mechanism: String,
    /// The reason, if it is known.
    pub why: Option<String>,
}

impl Page {
    /// Replays the project's recordings and further ones. The latter are listed, but the standings
    /// rest on the project's own.
    ///
    /// # Errors
    /// If a recording cannot be replayed, or the evidence is malformed or names other recordings.
    pub fn of(root: &Path, further: &[PathBuf]) -> Result<Page, BadRecording> {
        Page::replayed_by(verify, root, further)
    }

    /// Like [`Page::of`], with the verdict on each recording from `verify`, which may have replayed
    /// it before.
    ///
    /// # Errors
    /// As [`Page::of`].
    pub fn replayed_by(
        verify: impl Fn(&Path) -> Result<Verdict, BadRecording>,
        root: &Path,
        further: &[PathBuf],
    ) -> Result<Page, BadRecording> {
        let replayed = |dir: &Path, evidence: &Evidence| replayed(dir, verify(dir)?, evidence);
        let evidence = Evidence::read(root)?;
        let mut recordings = Vec::new();
        for dir in folders(&root.join(GOLDEN))? {
            recordings.push(replayed(&dir, &evidence)?);
        }
        check(root, &evidence, &recordings)?;
        let mut page = conclude(&evidence, recordings);
        page.carried = carried(&root.join(GOLDEN), &page)?;
        let differing = root.join(DIFFERING);
        if differing.is_dir() {
            for dir in folders(&differing)? {
                let of = replayed(&dir, &evidence)?;
                let why = evidence.mechanisms.differing.get(&of.name).cloned();
                page.differing.push((of, why));
            }
        }
        for dir in further {
            page.recordings.push(replayed(dir, &evidence)?);
        }
        Ok(page)
    }

    /// Whether a recording was not reproduced.
    pub fn differs(&self) -> bool {
        self.recordings.iter().any(|r| matches!(r.outcome, Outcome::Different(_)))
    }
}

/// The folders in a folder, by name.
fn folders(parent: &Path) -> Result<Vec<PathBuf>, BadRecording> {
    let none = || BadRecording::whole(parent, "no such folder: this is for the project's own folder");
    let entries = std::fs::read_dir(parent).map_err(|_| none())?;
    let mut dirs: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(|p| p.is_dir()).collect();
    dirs.sort();
    Ok(dirs)
}

fn replayed(dir: &Path, verdict: Verdict, evidence: &Evidence) -> Result<Replayed, BadRecording> {
    let rec = Recording::open(dir)?;
    let outcome = match verdict {
        Verdict::Equal(compared) => Outcome::Reproduced(compared),
        Verdict::Different(difference) => Outcome::Different(difference),
        Verdict::NotReplayed(why) => Outcome::NotReplayed(why),
    };
    let about = rec.about;
    let of_a_trace = || recipes().find(|r| r.name == about.experiment).map(|r| first_clause(r.what));
    let in_words = evidence.mechanisms.experiments.get(&about.experiment).cloned().or_else(of_a_trace);
    let mut what = in_words.unwrap_or_else(|| about.experiment.clone());
    for (name, value) in &about.sysctls {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        what += &format!("; {} {value}", name.trim_start_matches("vm."));
    }
    Ok(Replayed { name: rec.name, series: about.series, version: about.version, what, outcome })
}

/// Replays the newest kernel's recordings by the profile before it.
fn carried(golden: &Path, page: &Page) -> Result<Option<Carried>, BadRecording> {
    let [.., by, kernel] = &page.kernels[..] else { return Ok(None) };
    let Some(profile) = profile_of(&by.series) else { return Ok(None) };
    let mut carried = Carried { kernel: kernel.clone(), by: by.clone(), equal: 0, different: Vec::new() };
    for r in page.recordings.iter().filter(|r| r.series == kernel.series) {
        match verify_by(&golden.join(&r.name), &profile)? {
            Verdict::Equal(_) => carried.equal += 1,
            Verdict::Different(d) => carried.different.push((r.name.clone(), d.at.to_string())),
            Verdict::NotReplayed(_) => {}
        }
    }
    Ok(Some(carried))
}

/// The part of a description before the rule it is for.
fn first_clause(what: &str) -> String {
    what.split(':').next().unwrap_or_default().to_string()
}

/// Checks that every name in the evidence exists.
fn check(root: &Path, evidence: &Evidence, recordings: &[Replayed]) -> Result<(), BadRecording> {
    let measured = &evidence.measured;
    let bad = |reason: String| {
        let reason = format!("{reason}; measure again: {}", super::evidence::MEASURE);
        Err(BadRecording::whole(root.join(super::evidence::EVIDENCE), reason))
    };
    for name in measured.reached.values().chain(measured.noticed.values()).flatten() {
        if !recordings.iter().any(|r| r.name == *name) {
            return bad(format!("there is no recording '{name}'"));
        }
    }
    for name in measured.reached.keys() {
        if !evidence.mechanisms.mechanism.iter().any(|m| m.name.as_ref() == name) {
            return bad(format!("there is no mechanism '{name}'"));
        }
    }
    for name in measured.noticed.keys() {
        if !evidence.mistakes.iter().any(|m| m.name.as_ref() == name) {
            return bad(format!("there is no mistake '{name}'"));
        }
    }
    Ok(())
}

fn conclude(evidence: &Evidence, recordings: Vec<Replayed>) -> Page {
    let kernels = kernels(&recordings);
    let row = |m: &Mechanism| {
        let standings = kernels.iter().map(|k| standing(evidence, m, &recordings, &k.series)).collect();
        Row { mechanism: m.clone(), standings }
    };
    let rows = evidence.mechanisms.mechanism.iter().map(row).collect();
    let unnoticed = evidence.mistakes.iter().filter(|m| evidence.noticed(m.name.as_ref()).is_empty());
    let unnoticed = unnoticed.map(|m| Unnoticed {
        mistake: m.name.as_ref().clone(),
        mechanism: m.mechanism.clone().unwrap_or_default(),
        why: m.unnoticed.clone(),
    });
    let unnoticed = unnoticed.collect();
    let mistakes = evidence.mistakes.len();
    let limits = std::iter::once(not_recorded()).chain(evidence.mechanisms.limit.iter().cloned()).collect();
    Page { kernels, rows, recordings, carried: None, differing: Vec::new(), limits, mistakes, unnoticed }
}

/// The profiles of kernels that were never recorded.
fn not_recorded() -> Limit {
    let names: Vec<String> = kontig_profiles::all().filter(|p| !p.recorded).map(|p| p.name).collect();
    Limit {
        what: format!("Linux {}", names.join(", ")),
        why: "rules taken from sources and descriptions alone; these kernels are no longer packaged and were \
              not recorded"
            .into(),
    }
}

/// The series recorded, oldest first, each with the version its recordings name.
fn kernels(recordings: &[Replayed]) -> Vec<Kernel> {
    let mut kernels: Vec<Kernel> = Vec::new();
    for r in recordings {
        match kernels.iter_mut().find(|k| k.series == r.series) {
            Some(k) if k.version == k.series && !r.version.is_empty() => k.version.clone_from(&r.version),
            Some(_) => {}
            None => {
                let version = if r.version.is_empty() { &r.series } else { &r.version };
                kernels.push(Kernel { series: r.series.clone(), version: version.clone() });
            }
        }
    }
    kernels.sort_by_key(|k| k.series.split('.').map(|n| n.parse().unwrap_or(0)).collect::<Vec<u32>>());
    kernels
}

fn standing(evidence: &Evidence, m: &Mechanism, recordings: &[Replayed], series: &str) -> Standing {
    let name = m.name.as_ref().as_str();
    let of_series = |n: &&String| recordings.iter().find(|r| r.series == series && r.name == **n);
    let (mut equal, mut close) = (Vec::new(), Vec::new());
    for r in evidence.reached(name).iter().filter_map(|n| of_series(&n)) {
        match &r.outcome {
            Outcome::Different(_) => return Standing::Differs { recording: r.name.clone() },
            Outcome::Reproduced(Compared { close: Some(_), .. }) => close.push(&r.name),
            Outcome::Reproduced(_) => equal.push(&r.name),
            Outcome::NotReplayed(_) => {}
        }
    }
    // A mistake noticed by a close recording might not be noticed by the equal ones.
    let by = if equal.is_empty() { &close } else { &equal };
    let noticed = |mistake: &&str| evidence.noticed(mistake).iter().any(|n| by.contains(&n));
    let mistakes = evidence.mistakes_in(name).filter(noticed).count();
    match (equal.len(), close.len(), mistakes) {
        (0, 0, _) if m.absent.iter().any(|s| s == series) => Standing::Absent,
        (0, 0, _) => Standing::Unverified,
        (0, recordings, mistakes) => Standing::Close { recordings, mistakes },
        (recordings, _, 0) => Standing::Equal { recordings },
        (recordings, _, mistakes) => Standing::Exact { recordings, mistakes },
    }
}

#[cfg(test)]
mod tests {
    use super::super::evidence::{Measured, Mechanisms, Mistake};
    use super::*;
    use crate::difference::At;
    use crate::replay::faults::Closeness;
    use std::collections::BTreeMap;

    fn evidence(reached: &[&str], noticed: &[&str]) -> Evidence {
        let mechanisms: Mechanisms =
            toml::from_str("[[mechanism]]\nname = \"M\"\nengine = []\nrules = \"\"\nbegins = []\nabsent = [\"5.6\"]\n")
                .expect("well-formed");
        #[derive(serde::Deserialize)]
        struct One {
            mutant: Vec<Mistake>,
        }
        let mistakes: One = toml::from_str("[[mutant]]\nname = \"m\"\nmechanism = \"M\"\n").expect("well-formed");
        let list = |names: &[&str]| names.iter().map(|n| n.to_string()).collect();
        let measured = Measured {
            reached: BTreeMap::from([("M".into(), list(reached))]),
            noticed: BTreeMap::from([("m".into(), list(noticed))]),
        };
        Evidence { mechanisms, mistakes: mistakes.mutant, measured }
    }

    fn recording(name: &str, outcome: Outcome) -> Replayed {
        let series = name.split('-').next().unwrap_or_default().to_string();
        Replayed { name: name.into(), version: format!("{series}.9"), series, what: "something".into(), outcome }
    }

    fn equal(name: &str) -> Replayed {
        recording(name, Outcome::Reproduced(Compared::default()))
    }

    fn close(name: &str) -> Replayed {
        let close = Closeness { faults: 2, faults_same: 1, events: 0, events_same: 0, figures: Vec::new() };
        recording(name, Outcome::Reproduced(Compared { close: Some(close), ..Compared::default() }))
    }

    fn different(name: &str) -> Replayed {
        let (kernel, engine) = ("1".into(), "2".into());
        let d = Difference { at: At::Operation(1), asked: None, kernel, engine, around: Vec::new() };
        recording(name, Outcome::Different(Box::new(d)))
    }

    fn stands(reached: &[&str], noticed: &[&str], recordings: Vec<Replayed>) -> Vec<Standing> {
        conclude(&evidence(reached, noticed), recordings).rows.remove(0).standings
    }

    #[test]
    fn exact_takes_a_mistake_noticed_by_the_same_kernel() {
        let recordings = vec![equal("10.1-b"), equal("7.2-a")];
        let got = stands(&["7.2-a", "10.1-b"], &["7.2-a"], recordings);
        assert_eq!(got, [Standing::Exact { recordings: 1, mistakes: 1 }, Standing::Equal { recordings: 1 }]);
    }

    #[test]
    fn close_is_what_remains_where_no_recording_is_equal() {
        assert_eq!(stands(&["7.2-a"], &[], vec![close("7.2-a")]), [Standing::Close { recordings: 1, mistakes: 0 }]);
        let both = stands(&["7.2-a", "7.2-b"], &[], vec![close("7.2-a"), equal("7.2-b")]);
        assert_eq!(both, [Standing::Equal { recordings: 1 }]);
    }

    #[test]
    fn one_difference_outweighs_all_that_is_equal() {
        let got = stands(&["7.2-a", "7.2-b"], &["7.2-a"], vec![equal("7.2-a"), different("7.2-b")]);
        assert_eq!(got, [Standing::Differs { recording: "7.2-b".into() }]);
    }

    #[test]
    fn a_mechanism_that_no_recording_runs_through_is_not_verified() {
        assert_eq!(stands(&[], &[], vec![equal("6.1-a"), equal("5.6-a")]), [Standing::Absent, Standing::Unverified]);
    }

    #[test]
    fn evidence_of_a_recording_that_is_gone_is_refused() {
        let e = check(Path::new("."), &evidence(&["6.1-gone"], &[]), &[]).expect_err("it is gone");
        assert!(e.to_string().contains("oracle/evidence.toml: there is no recording '6.1-gone'"), "{e}");
    }

    #[test]
    fn kernels_come_oldest_first() {
        let kernels = kernels(&[equal("10.1-a"), equal("6.1-a"), equal("6.1-b")]);
        assert_eq!(kernels.iter().map(|k| k.version.as_str()).collect::<Vec<_>>(), ["6.1.9", "10.1.9"]);
    }
}
