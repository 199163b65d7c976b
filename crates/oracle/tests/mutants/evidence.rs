//! Measures the evidence for docs/generated/fidelity.md: the recordings that run through each
//! mechanism of
//! the engine, and those that notice each mistake.
//!
//! The copy of the engine notes when an entry point of a mechanism (`oracle/mechanisms.toml`) is
//! passed. `KONTIG_EVIDENCE=write` writes the result to `oracle/evidence.toml`; otherwise the test
//! compares with that file.

use super::{Mutant, Noticed, name, noticed_by, read, root, run};
use kontig_oracle::Recording;
use kontig_oracle::fidelity::evidence::MEASURE;
use kontig_oracle::fidelity::evidence::{EVIDENCE, MECHANISMS, Measured, Mechanisms};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Module added to the copy of the engine: it notes the entry points that were passed.
pub const PASSED: &str = "
/// Where somebody came by.
pub mod probe {
    use core::sync::atomic::{AtomicBool, Ordering};
    static PASSED: [AtomicBool; 256] = [const { AtomicBool::new(false) }; 256];
    #[inline(always)]
    pub(crate) fn pass(number: usize) {
        PASSED[number].store(true, Ordering::Relaxed);
    }
    /// Whether somebody came by there.
    pub fn passed(number: usize) -> bool {
        PASSED[number].load(Ordering::Relaxed)
    }
}
";

fn mechanisms() -> Mechanisms {
    let path = root().join(MECHANISMS);
    toml::from_str(&read(&path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Positions in a file of the engine, and the probes to insert there.
pub fn probes(file: &str, source: &str) -> Vec<(usize, String)> {
    let mut probes = Vec::new();
    for (number, m) in mechanisms().mechanism.iter().enumerate() {
        for place in m.begins.iter().filter(|p| p.file == file) {
            let found: Vec<usize> = source.match_indices(&place.at).map(|(at, _)| at).collect();
            let [start] = found[..] else {
                panic!("{MECHANISMS}: '{}' occurs {} times in {file}, not once", place.at, found.len())
            };
            let brace = source[start..].find('{').unwrap_or_else(|| panic!("no '{{' after '{}'", place.at));
            let when = place.when.as_deref().unwrap_or("true");
            probes.push((start + brace + 1, format!(" if {when} {{ crate::probe::pass({number}); }} ")));
        }
    }
    probes
}

/// Mechanisms and mistakes that each recording ran through, in the order of the recordings.
pub struct Survey {
    mechanisms: Vec<Vec<usize>>,
    mistakes: Vec<Vec<usize>>,
}

impl Survey {
    /// The recordings that can notice a mistake: the others do not come by where it would be made.
    pub fn by_mistake<'r>(&self, number: usize, recordings: &'r [PathBuf]) -> Vec<&'r PathBuf> {
        let all = recordings.iter().zip(&self.mistakes);
        all.filter(|(_, met)| met.contains(&number)).map(|(dir, _)| dir).collect()
    }
}

/// Replays every recording without a mistake.
pub fn survey(program: &Path, recordings: &[PathBuf]) -> Survey {
    let numbers = |line: &str| line.split_ascii_whitespace().map(|n| n.parse().expect("a number")).collect();
    let said = in_parallel(recordings, |dir| {
        let said = run(program, "--survey", &[dir.as_os_str()]).expect("an engine without a mistake ends");
        let passed = said.split_once('\n');
        let (mechanisms, mistakes) = passed.unwrap_or_else(|| panic!("{}, without a mistake: {said}", name(dir)));
        (numbers(mechanisms), numbers(mistakes))
    });
    let (mechanisms, mistakes) = said.into_iter().unzip();
    Survey { mechanisms, mistakes }
}

/// Measures; writes it down or holds it against what is written. `tried` says which recording has
/// noticed each mistake already, and how.
pub fn hold(program: &Path, mutants: &[Mutant], recordings: &[PathBuf], met: &Survey, tried: &[Noticed]) {
    let path = root().join(EVIDENCE);
    let reached = reached(recordings, met);
    if std::env::var_os("KONTIG_EVIDENCE").is_some_and(|v| v == "write") {
        let noticed = noticed(program, mutants, recordings, met);
        let head = format!(
            "# The recordings that run through each mechanism, and for each planted mistake the shortest recording of\n\
             # each kernel that notices it. Measured, not written by hand:\n# {MEASURE}\n\n"
        );
        let text = toml::to_string(&Measured { reached, noticed }).expect("names can be written");
        std::fs::write(&path, head + &text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        return;
    }
    let written: Measured = toml::from_str(&read(&path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(written.reached, reached, "{EVIDENCE} says otherwise; measure again: {MEASURE}");
    let claims: Vec<(usize, &String)> = mutants
        .iter()
        .enumerate()
        .flat_map(|(i, m)| written.noticed.get(&m.name).into_iter().flatten().map(move |r| (i, r)))
        .filter(|(i, recording)| tried[*i].as_ref().is_none_or(|(by, _)| by != *recording))
        .collect();
    let wrong = in_parallel(&claims, |(i, recording)| {
        let dir = recordings.iter().find(|d| name(d) == **recording)?;
        noticed_by(program, i + 1, &[dir])
    });
    let wrong: Vec<String> = claims
        .iter()
        .zip(wrong)
        .filter(|(_, noticed)| noticed.is_none())
        .map(|((i, r), _)| format!("{r} does not notice {}", mutants[*i].name))
        .collect();
    assert!(wrong.is_empty(), "{EVIDENCE}: {}; measure again: {MEASURE}", wrong.join(", "));
}

/// For every mechanism the recordings that run through it.
fn reached(recordings: &[PathBuf], met: &Survey) -> BTreeMap<String, Vec<String>> {
    let mechanisms = mechanisms().mechanism;
    let through = |number: usize| {
        let these = recordings.iter().zip(&met.mechanisms).filter(|(_, p)| p.contains(&number));
        let mut names: Vec<String> = these.map(|(dir, _)| name(dir)).collect();
        names.sort();
        names
    };
    mechanisms.iter().enumerate().map(|(i, m)| (m.name.as_ref().clone(), through(i))).collect()
}

/// For each mistake, the first recording of each kernel that notices it, equal ones before close
/// ones.
fn noticed(program: &Path, mutants: &[Mutant], recordings: &[PathBuf], met: &Survey) -> BTreeMap<String, Vec<String>> {
    let series = |dir: &PathBuf| Recording::open(dir).unwrap_or_else(|e| panic!("{e}")).about.series;
    let series: BTreeMap<&PathBuf, String> = recordings.iter().map(|dir| (dir, series(dir))).collect();
    let numbers: Vec<usize> = (0..mutants.len()).collect();
    let found = in_parallel(&numbers, |i| {
        let mut of_series: BTreeMap<&str, Vec<&PathBuf>> = BTreeMap::new();
        for dir in met.by_mistake(i + 1, recordings) {
            of_series.entry(&series[dir]).or_default().push(dir);
        }
        let is_close = |dir: &&PathBuf| Recording::open(dir).is_ok_and(|recording| recording.has("thp.txt"));
        of_series.values_mut().for_each(|dirs| dirs.sort_by_key(is_close));
        let first = |dirs: &Vec<&PathBuf>| {
            dirs.iter().find(|dir| noticed_by(program, i + 1, &[dir]).is_some()).map(|dir| name(dir))
        };
        of_series.values().filter_map(first).collect::<Vec<String>>()
    });
    mutants.iter().map(|m| m.name.clone()).zip(found).filter(|(_, found)| !found.is_empty()).collect()
}

/// Does something with each, two at a time; the results in order.
pub fn in_parallel<T: Sync, R: Send>(all: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let results = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..super::PARALLEL {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = all.get(i) else { break };
                    let result = f(one);
                    results.lock().expect("no thread panics with it").push((i, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("all threads are done");
    results.sort_by_key(|(i, _)| *i);
    results.into_iter().map(|(_, r)| r).collect()
}
