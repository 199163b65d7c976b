//! Results on disk: all that is needed to rerun them and to see that nothing changed.
//!
//! A result is a directory: `result.json` (the request with every input in full, the tables, and a
//! hash of each input and of each run), `runs/` with a file for each run, written as soon as it
//! ends, and `host.json` with facts that differ from host to host. All but the last are the same
//! bytes for the same inputs, anywhere. A directory holds one result: nothing is overwritten, and
//! nothing is ever deleted. An interrupted session leaves the same, with the finished runs and the
//! tables of complete experiments; one that was killed leaves its finished runs. Either can be
//! resumed: `request.json`, written before anything runs, says of which inputs the runs are. It is
//! locked while a session is at work, so that two never share a directory.

use crate::hash::sha256;
use crate::identity::Identity;
use crate::outcome::Outcome;
use crate::plan::{RunPlan, Views, key};
use crate::resolved::Resolved;
use kontig_error::files::{check_directory, file_name, write_with_directory};
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_results::PacePoint;
use kontig_results::{ExperimentResult, RunResult, Seeds};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::path::{Component, Path, PathBuf};

/// The schema that `result.json` names.
pub const RESULT_SCHEMA: &str = "kontig.result/7";

/// The contents of `result.json`.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct StoredResult {
    /// Always [`RESULT_SCHEMA`] when written.
    pub schema: String,
    /// The version that wrote it.
    pub version: String,
    pub seed: Seeds,
    /// The experiments, every input in full.
    pub inputs: Vec<Resolved>,
    /// SHA-256 of the inputs of each experiment or case, as JSON.
    pub input_sha256: BTreeMap<String, String>,
    pub experiments: Vec<ExperimentResult>,
    /// Pace sweeps by experiment.
    pub pace: BTreeMap<String, Vec<PacePoint>>,
    /// Run files, by their paths below the directory.
    pub runs: BTreeMap<String, RunFile>,
}

/// Size and hash of a run's file.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct RunFile {
    pub bytes: u64,
    pub sha256: String,
}

/// The contents of `host.json`, of all sessions that wrote to the directory.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct HostFacts {
    /// Their times, one after the other.
    pub wall_s: f64,
    pub peak_rss_bytes: u64,
}

/// The stored form of JSON: indented, with a final newline.
fn json(value: &impl Serialize, path: &Path) -> Result<Vec<u8>, Error> {
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(|e| Failed::Write { path: path.display().to_string(), reason: e.to_string() })?;
    text.push(b'\n');
    Ok(text)
}

const RESULT: &str = "result.json";
const HOST: &str = "host.json";
const RUNS: &str = "runs";
const REQUEST: &str = "request.json";

/// The contents of `request.json`: what decides the runs of a directory.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
struct Request {
    version: String,
    seed: Seeds,
    /// SHA-256 of the inputs of each experiment or case.
    input_sha256: BTreeMap<String, String>,
    /// Places where its runs leave files, by option: of a finished run nothing is written again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    beside: BTreeMap<String, PathBuf>,
}

impl Request {
    fn of(seed: &Seeds, inputs: &[Resolved], views: &Views) -> Result<Request, Error> {
        let (version, seed) = (env!("CARGO_PKG_VERSION").into(), seed.clone());
        Ok(Request { version, seed, input_sha256: input_sha256(inputs)?, beside: beside(views) })
    }
}

/// Where runs leave files, by option.
fn beside(views: &Views) -> BTreeMap<String, PathBuf> {
    // No `..`: what a run leaves must be the same when it is resumed.
    let Views { procfs, mmtests, trace, history, maps: _ } = views;
    // The same name in another directory is another place, whose files are not ours to remove.
    let place = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    [("--procfs", procfs), ("--mmtests", mmtests), ("--trace", trace), ("--history", history)]
        .into_iter()
        .filter_map(|(option, path)| Some((option.into(), place(path.as_ref()?))))
        .collect()
}

/// Locks the directory of a session against others, on this host or, where the file system passes
/// locks on, on another. The end of the process, however it comes, ends the lock.
fn lock(dir: &Path) -> Result<File, Error> {
    let path = dir.join(REQUEST);
    let fail = |e: std::io::Error| Failed::Write { path: path.display().to_string(), reason: e.to_string() };
    // A network file system locks only what is open for writing.
    let file = OpenOptions::new().read(true).write(true).open(&path).map_err(fail)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => {
            let reason =
                format!("another kontig is at work in {}: wait for it, or give --out another directory", dir.display());
            Err(AskedWrongly::Value(reason).into())
        }
        // Some file systems have no locks.
        _ => Ok(file),
    }
}

/// The hash of the inputs of each experiment or case, as JSON.
fn input_sha256(inputs: &[Resolved]) -> Result<BTreeMap<String, String>, Error> {
    inputs.iter().map(|r| Ok((r.key(), sha256(&json(r, Path::new(&r.experiment.id))?)))).collect()
}

/// A directory that a result is written to.
pub struct Store {
    dir: PathBuf,
    /// Whether it was not there before.
    made: bool,
    /// Whether its runs have begun, and leave files elsewhere that no new session replaces: one
    /// that resumes it clears them.
    left_elsewhere: bool,
    /// Sum of the times of earlier sessions, and the most memory.
    earlier: HostFacts,
    /// Held as long as the session lasts, so that no other continues it meanwhile.
    _lock: File,
}

impl Store {
    /// Creates and tests the directory for a new result, before anything runs.
    ///
    /// # Errors
    /// If it holds a result or a part of one, or cannot be created or written to.
    pub fn create(dir: &Path, seed: &Seeds, inputs: &[Resolved], views: &Views) -> Result<Store, Error> {
        let taken = |there: &str| {
            // Without its request no session can be continued.
            let resume = if dir.join(REQUEST).exists() { "continue it with --resume, " } else { "" };
            let reason = format!(
                "{} holds {there} of an earlier result, which is never overwritten: {resume}give --out another \
                 directory, or remove this one first",
                dir.display()
            );
            Error::from(AskedWrongly::Value(reason))
        };
        if let Some(there) = [RESULT, HOST, RUNS].iter().find(|n| dir.join(n).symlink_metadata().is_ok()) {
            return Err(taken(there));
        }
        let made = !dir.exists();
        check_directory(dir)?;
        // Of two sessions given the same directory at once, only one can create this.
        let runs = dir.join(RUNS);
        std::fs::create_dir(&runs).map_err(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => taken(RUNS),
            _ => Failed::Write { path: runs.display().to_string(), reason: e.to_string() }.into(),
        })?;
        let request = json(&Request::of(seed, inputs, views)?, dir)?;
        write_with_directory(&dir.join(REQUEST), &request)?;
        Ok(Store { dir: dir.into(), made, left_elsewhere: false, earlier: HostFacts::default(), _lock: lock(dir)? })
    }

    /// Whether a session has begun in the directory, so that another can resume it.
    pub fn is_begun(dir: &Path) -> bool {
        dir.join(REQUEST).exists()
    }

    /// The directory of an interrupted session of the same request; a new one if there is none.
    ///
    /// # Errors
    /// If it belongs to another request, or as [`Store::create`].
    pub fn resume(dir: &Path, seed: &Seeds, inputs: &[Resolved], views: &Views) -> Result<Store, Error> {
        let path = dir.join(REQUEST);
        let shown = path.display().to_string();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Store::create(dir, seed, inputs, views),
            Err(e) => return Err(AskedWrongly::Unreadable { path: shown, reason: e.to_string() }.into()),
        };
        let there: Request = serde_json::from_str(&text).map_err(|e| AskedWrongly::Malformed {
            path: shown,
            line: e.line(),
            reason: match e.is_data() {
                true => foreign(&e, "give --out another directory"),
                false => format!("no request of an earlier session ({}): give --out another directory", fault(&e)),
            },
        })?;
        let lock = lock(dir)?;
        let now = Request::of(seed, inputs, views)?;
        let other = |what: String| {
            let reason = format!(
                "{} holds runs of {what}: resume with the same arguments, files and build of kontig, or give --out \
                 another directory",
                dir.display()
            );
            Err(AskedWrongly::Value(reason).into())
        };
        if there.version != now.version {
            return other(format!("kontig {}", there.version));
        }
        if there.seed != now.seed {
            let count = if let Seeds::These(seeds) = &there.seed { seeds.len() as u32 } else { 1 };
            return other(there.seed.said(count));
        }
        let differs = |key: &&String| there.input_sha256.get(*key) != now.input_sha256.get(*key);
        if let Some(key) = there.input_sha256.keys().chain(now.input_sha256.keys()).find(differs) {
            return other(match there.input_sha256.contains_key(key) {
                true => format!("other inputs of {key}"),
                false => format!("other experiments, not of {key}"),
            });
        }
        let differs = |option: &&String| there.beside.get(*option) != now.beside.get(*option);
        if let Some(option) = there.beside.keys().chain(now.beside.keys()).find(differs) {
            return other(match there.beside.get(option) {
                Some(path) => format!("a session with {option} {}", path.display()),
                None => format!("a session without {option}"),
            });
        }
        // Without a readable file only the time is lost.
        let facts = std::fs::read(dir.join(HOST)).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let left_elsewhere = views.mmtests.is_some() || views.history.is_some();
        Ok(Store { dir: dir.into(), made: false, left_elsewhere, earlier: facts.unwrap_or_default(), _lock: lock })
    }

    /// Says that the runs begin. Returns whether the session can be resumed even if none of them
    /// ends: they leave files elsewhere.
    pub fn begin(&mut self, views: &Views) -> bool {
        self.left_elsewhere = views.mmtests.is_some() || views.history.is_some();
        self.left_elsewhere
    }

    /// Time and memory of all sessions together, with this one's facts.
    pub fn in_all(&self, now: &HostFacts) -> HostFacts {
        HostFacts {
            wall_s: self.earlier.wall_s + now.wall_s,
            peak_rss_bytes: self.earlier.peak_rss_bytes.max(now.peak_rss_bytes),
        }
    }

    /// Writes what all sessions together took so far, for the one that goes on if this is killed.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_host(&self, now: &HostFacts) -> Result<(), Error> {
        write_with_directory(&self.dir.join(HOST), &json(&self.in_all(now), &self.dir)?)
    }

    /// A run that an earlier session has finished.
    ///
    /// # Errors
    /// If its file cannot be read as a run.
    pub fn run(&self, plan: &RunPlan) -> Result<Option<RunResult>, Error> {
        let path = self.dir.join(run_path(&plan.experiment, &plan.case, &plan.variant.name, plan.repetition));
        let bad = |reason: String| Error::from(Failed::Result { path: path.display().to_string(), reason });
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|e| match e.is_data() {
                true => bad(foreign(&e, "give --out another directory")),
                false => bad(format!(
                    "no run that a session has written ({}): remove it, and --resume repeats it",
                    fault(&e)
                )),
            }),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(bad(e.to_string())),
        }
    }

    /// The path of a run's file below the directory.
    fn run_path(run: &RunResult) -> String {
        run_path(&run.experiment, &run.case, &run.variant, run.repetition)
    }

    /// Stores a run that has just ended. Returns its path and file entry, for
    /// [`StoredResult::new`].
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_run(&self, run: &RunResult) -> Result<(String, RunFile), Error> {
        let (name, bytes) = (Store::run_path(run), run_bytes(run)?);
        write_with_directory(&self.dir.join(&name), &bytes)?;
        Ok((name, RunFile::of(&bytes)))
    }

    /// Writes the rest of the result.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn complete(&self, result: &StoredResult, host: &HostFacts) -> Result<(), Error> {
        write_with_directory(&self.dir.join(RESULT), &json(result, &self.dir)?)?;
        self.keep_host(host)
    }
}

impl Drop for Store {
    /// A session that left nothing leaves the directory as it found it.
    fn drop(&mut self) {
        if self.left_elsewhere {
            return;
        }
        // No directory is removed unless it is empty.
        if std::fs::remove_dir(self.dir.join(RUNS)).is_ok() {
            let _ = std::fs::remove_file(self.dir.join(REQUEST));
        }
        if self.made {
            let _ = std::fs::remove_dir(&self.dir);
        }
    }
}

fn run_path(experiment: &str, case: &str, variant: &str, repetition: u32) -> String {
    let case = if case.is_empty() { String::new() } else { format!("{}/", file_name(case)) };
    format!("{RUNS}/{experiment}/{case}{}/{repetition}.json", file_name(variant))
}

fn run_bytes(run: &RunResult) -> Result<Vec<u8>, Error> {
    let mut text =
        serde_json::to_vec(run).map_err(|e| Failed::Write { path: Store::run_path(run), reason: e.to_string() })?;
    text.push(b'\n');
    Ok(text)
}

impl RunFile {
    fn of(bytes: &[u8]) -> RunFile {
        RunFile { bytes: bytes.len() as u64, sha256: sha256(bytes) }
    }

    /// The damage of the file at `path`, if it is not as it was written.
    fn damage(&self, path: &Path) -> Option<String> {
        let there = match path.metadata() {
            Ok(m) => m,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Some("this run's file is missing: it was deleted or never copied".into());
            }
            Err(e) => return Some(format!("this run's file cannot be read: {e}")),
        };
        if !there.is_file() {
            return Some("this is no regular file, but a run's file was written here".into());
        }
        if there.len() < self.bytes {
            return Some(format!("this run's file is cut: {} of {} bytes are left", there.len(), self.bytes));
        }
        if there.len() > self.bytes {
            return Some(format!("this run's file was changed: {} bytes instead of {}", there.len(), self.bytes));
        }
        let now = match std::fs::read(path) {
            Ok(bytes) => sha256(&bytes),
            Err(e) => return Some(format!("this run's file cannot be read: {e}")),
        };
        let before = &self.sha256;
        (now != *before).then(|| format!("this run's file was changed: its sha256 is {now}, result.json says {before}"))
    }
}

/// A run's file in a stored result.
pub struct StoredRun {
    dir: PathBuf,
    name: String,
    file: RunFile,
}

impl StoredRun {
    /// Where it is stored.
    pub fn path(&self) -> PathBuf {
        self.dir.join(&self.name)
    }

    /// Whether the other's file has the same bytes.
    pub fn has_bytes_of(&self, other: &StoredRun) -> bool {
        self.file == other.file
    }

    /// Reads the run from its file.
    ///
    /// # Errors
    /// If that is missing, cut or changed.
    pub fn read(&self) -> Result<RunResult, Error> {
        match self.file.damage(&self.path()) {
            Some(reason) => Err(Failed::Result { path: self.path().display().to_string(), reason }.into()),
            None => read_run(&self.dir, &self.name),
        }
    }
}

fn read_run(dir: &Path, name: &str) -> Result<RunResult, Error> {
    let file = dir.join(name);
    let bad = |reason: String| Error::from(Failed::Result { path: file.display().to_string(), reason });
    let bytes = std::fs::read(&file).map_err(|e| bad(format!("this run's file cannot be read: {e}")))?;
    serde_json::from_slice(&bytes).map_err(|e| match e.is_data() {
        true => bad(foreign(&e, AGAIN)),
        false => bad(format!("no run that a session has written: {}", fault(&e))),
    })
}

/// The remedy for a result that this build cannot read.
const AGAIN: &str = "run it again, or use the build that wrote it";

/// The fault of JSON, without the names that serde would have taken instead.
fn fault(e: &serde_json::Error) -> String {
    let text = e.to_string();
    text.split(", expected one of").next().unwrap_or_default().replace('`', "'")
}

/// JSON of another form than this build writes.
fn foreign(e: &serde_json::Error, remedy: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("written by another build of kontig than this one ({version}), or changed since ({}): {remedy}", fault(e))
}

/// The directory of a result, given by itself or by its `result.json`.
fn directory(path: &Path) -> &Path {
    if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) }
}

/// All files below a directory, with paths beginning with `prefix`; links are not followed.
fn files_below(dir: &Path, prefix: &str, found: &mut Vec<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = format!("{prefix}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            files_below(&entry.path(), &name, found)?;
        } else {
            found.push(name);
        }
    }
    Ok(())
}

impl StoredResult {
    /// The result of a session, the same bytes on every host.
    ///
    /// # Errors
    /// If a part has no JSON form.
    pub fn new(
        seed: &Seeds,
        inputs: &[Resolved],
        outcomes: &[Outcome],
        runs: BTreeMap<String, RunFile>,
    ) -> Result<StoredResult, Error> {
        Ok(StoredResult {
            schema: RESULT_SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            seed: seed.clone(),
            inputs: inputs.to_vec(),
            input_sha256: input_sha256(inputs)?,
            experiments: outcomes.iter().map(|o| o.result.clone()).collect(),
            pace: outcomes
                .iter()
                .filter(|o| !o.pace.is_empty())
                .map(|o| (key(&o.result.id, &o.result.case), o.pace.clone()))
                .collect(),
            runs,
        })
    }

    /// The path and file entry of a run that is not stored, for [`StoredResult::new`].
    ///
    /// # Errors
    /// If it has no JSON form.
    pub fn run_file(run: &RunResult) -> Result<(String, RunFile), Error> {
        Ok((Store::run_path(run), RunFile::of(&run_bytes(run)?)))
    }

    /// Whether it has this run. An interrupted result has only the finished ones.
    pub fn has(&self, plan: &RunPlan) -> bool {
        self.runs.contains_key(&run_path(&plan.experiment, &plan.case, &plan.variant.name, plan.repetition))
    }

    /// Reads a result from its directory or from `result.json` itself.
    ///
    /// # Errors
    /// If it is missing, not a result, or of another schema version.
    pub fn read(path: &Path) -> Result<StoredResult, Error> {
        let file = if path.is_dir() { path.join(RESULT) } else { path.to_path_buf() };
        let shown = file.display().to_string();
        let bad = |reason: String| Error::from(Failed::Result { path: shown.clone(), reason });
        let unread = |e: std::io::Error| {
            let stopped = e.kind() == std::io::ErrorKind::NotFound && file.with_file_name(REQUEST).exists();
            bad(match stopped {
                true => "the session that wrote here was stopped: --resume finishes it".into(),
                false => format!("no result can be read here: {e}"),
            })
        };
        let text = std::fs::read_to_string(&file).map_err(unread)?;
        let value: serde_json::Value = serde_json::from_str(&text).map_err(|e| bad(format!("not a result: {e}")))?;
        match value.get("schema").and_then(|s| s.as_str()) {
            Some(RESULT_SCHEMA) => {}
            Some(other) if other.starts_with("kontig.reproduce/") => {
                return Err(bad(format!("schema {other} holds tables and no runs: give a directory that --out wrote")));
            }
            Some(other) => {
                return Err(bad(format!(
                    "written by another version of kontig: schema {other}, and this one reads {RESULT_SCHEMA}: {AGAIN}"
                )));
            }
            None => return Err(bad("not a result: it names no schema".into())),
        }
        let stored: StoredResult = serde_json::from_value(value).map_err(|e| bad(foreign(&e, AGAIN)))?;
        for r in &stored.inputs {
            let id = r.key();
            if stored.input_sha256.get(&id) != Some(&sha256(&json(r, Path::new(&id))?)) {
                return Err(bad(format!(
                    "the inputs of {id} have another hash than it names: written by another build of kontig than this \
                     one ({}), or changed since: {AGAIN}",
                    env!("CARGO_PKG_VERSION")
                )));
            }
            r.check().map_err(|reason| bad(format!("the inputs of {id} contradict themselves: {reason}")))?;
        }
        Ok(stored)
    }

    /// Reads all runs of the result at `path`, in the order of their files' names.
    ///
    /// # Errors
    /// The first file that is missing, truncated or changed.
    pub fn read_runs(&self, path: &Path) -> Result<Vec<RunResult>, Error> {
        self.check_runs(path)?;
        self.runs.keys().map(|name| read_run(directory(path), name)).collect()
    }

    /// The runs that it has, in the order of their plans. No run's file is read.
    ///
    /// # Errors
    /// If it has a run that its inputs do not lead to.
    pub fn stored_runs(&self, path: &Path) -> Result<Vec<(RunPlan, Identity, StoredRun)>, Error> {
        let planned = self.planned_runs(path)?.into_iter();
        Ok(planned.filter_map(|(plan, identity, file)| Some((plan, identity, file?))).collect())
    }

    /// All runs that its inputs lead to, in the order of their plans, each with its file if it has
    /// that run. No run's file is read.
    ///
    /// # Errors
    /// As [`StoredResult::stored_runs`].
    pub fn planned_runs(&self, path: &Path) -> Result<Vec<(RunPlan, Identity, Option<StoredRun>)>, Error> {
        let mut planned = Vec::new();
        for input in &self.inputs {
            for (plan, identity) in input.identified(&self.seed, &self.version)? {
                let name = run_path(&plan.experiment, &plan.case, &plan.variant.name, plan.repetition);
                let file = self.runs.get(&name).cloned();
                let run = file.map(|file| StoredRun { dir: directory(path).into(), name, file });
                planned.push((plan, identity, run));
            }
        }
        let found = planned.iter().filter(|(.., run)| run.is_some()).count();
        match self.runs.len() - found {
            0 => Ok(planned),
            others => {
                let reason = format!("damaged: its inputs do not lead to {others} of its {} runs", self.runs.len());
                Err(Failed::Result { path: directory(path).join(RESULT).display().to_string(), reason }.into())
            }
        }
    }

    /// How many runs of an experiment it has, and of how many.
    ///
    /// # Errors
    /// If its inputs contradict themselves.
    pub fn runs_of(&self, input: &Resolved) -> Result<(usize, usize), Error> {
        let plans = input.plans(&self.seed, &Views::default())?;
        let plans = || plans.iter().flatten();
        Ok((plans().filter(|plan| self.has(plan)).count(), plans().count()))
    }

    /// Reads every run's file of the result at `path` and compares it with the stored hash. Returns
    /// the other files in `runs/`, as sorted paths below the directory.
    ///
    /// # Errors
    /// The first file that is missing, truncated or changed, and the number of others.
    pub fn check_runs(&self, path: &Path) -> Result<Vec<String>, Error> {
        let dir = directory(path);
        // A path in a result of unknown origin must not lead outside.
        let below = |name: &str| Path::new(name).components().all(|c| matches!(c, Component::Normal(_)));
        if let Some(name) = self.runs.keys().find(|n| !Path::new(n).starts_with(RUNS) || !below(n)) {
            let reason = format!("damaged: '{name}' is no place for a run's file");
            return Err(Failed::Result { path: dir.join(RESULT).display().to_string(), reason }.into());
        }
        let damages: Vec<(&String, String)> =
            self.runs.iter().filter_map(|(name, file)| Some((name, file.damage(&dir.join(name))?))).collect();
        if let Some((name, damage)) = damages.first() {
            let more = match damages.len() - 1 {
                0 => String::new(),
                more => format!(" ({more} more of the {} run files are missing, cut or changed, too)", self.runs.len()),
            };
            let path = dir.join(name).display().to_string();
            return Err(Failed::Result { path, reason: format!("{damage}{more}") }.into());
        }
        let mut others = Vec::new();
        files_below(&dir.join(RUNS), RUNS, &mut others)
            .map_err(|e| Failed::Result { path: dir.join(RUNS).display().to_string(), reason: e.to_string() })?;
        others.retain(|name| !self.runs.contains_key(name));
        others.sort();
        Ok(others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_one_sessions_and_is_left_as_it_was_if_nothing_was_kept() {
        let dir = std::env::temp_dir().join(format!("kontig-store-{}", std::process::id()));
        let create = || Store::create(&dir, &Seeds::From(1), &[], &Views::default());
        let first = create().expect("nobody has it");
        let second = create().err().expect("taken").to_string();
        assert!(second.contains("which is never overwritten"), "{second}");
        let both = Store::resume(&dir, &Seeds::From(1), &[], &Views::default()).err().expect("at work").to_string();
        assert!(both.contains("another kontig is at work in"), "{both}");
        drop(first);
        assert!(!dir.exists(), "it was made for the session");
        std::fs::create_dir(&dir).expect("made");
        drop(create().expect("free again"));
        // Runs without their request are no session: to say --resume here would lead back here.
        std::fs::create_dir(dir.join(RUNS)).expect("made");
        let resumed = Store::resume(&dir, &Seeds::From(1), &[], &Views::default()).err().expect("no session");
        assert!(!resumed.to_string().contains("--resume"), "{resumed}");
        assert!(second.contains("--resume"), "{second}");
        std::fs::remove_dir_all(&dir).expect("removed");
    }

    #[test]
    fn a_figure_read_back_is_the_figure_that_was_written() {
        for i in 1..20_000u32 {
            let x = f64::from(i).sqrt() / 7.0 * 1e-3;
            let back: f64 = serde_json::from_str(&serde_json::to_string(&x).unwrap()).unwrap();
            assert_eq!(x.to_bits(), back.to_bits(), "{x}");
        }
    }
}
