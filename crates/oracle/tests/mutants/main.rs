//! Plants mistakes in the engine, one rule at a time (`oracle/mutants.toml`); some golden recording
//! must differ for each. A mistake that no recording notices yet needs a generated trace that does,
//! to be recorded later. If none can, the mistake has the reason (`unnoticed`), and none may notice
//! it.
//!
//! `KONTIG_MUTANTS=NAME,NAME` tries only these, each with the recording in `caught_by`, or with
//! all.
//!
//! All mistakes are built into one copy of the engine's source, as `if mutant::is(N) { wrong } else
//! { right }`, so that one build serves all. The engine itself has no trace of them.

mod evidence;

use serde::Deserialize;
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How many are tried side by side.
const PARALLEL: usize = 2;
/// CPU time after which a replay counts as endless, which is noticed as well; the longest takes a
/// second. It is not wall-clock time, because a host that hangs would then pass for a mistake.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
struct Mutants {
    mutant: Vec<Mutant>,
}

/// A mistake in one rule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutant {
    name: String,
    rule: String,
    /// The mechanism of `oracle/mechanisms.toml` it is in.
    mechanism: String,
    file: String,
    find: String,
    replace: String,
    #[serde(default)]
    statement: bool,
    #[serde(default)]
    caught_by: String,
    /// Why no recording can notice.
    unnoticed: Option<String>,
    /// While no recording notices: the generated trace that does, and the recording it starts from.
    awaits: Option<Awaits>,
}

/// A trace still to be recorded.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Awaits {
    trace: String,
    start: String,
}

impl Mutant {
    /// The text with the mistake in it, to be made when `number` is on.
    fn schema(&self, number: usize) -> String {
        let (wrong, right) = (&self.replace, &self.find);
        let choice = format!("if crate::mutant::is({number}) {{ {wrong} }} else {{ {right} }}");
        if self.statement { choice } else { format!("({choice})") }
    }
}

/// Module added to the copy of the engine: it selects a mistake, or notes where one could be made.
const SWITCH: &str = "
/// Selects a mistake, or notes where one could be made.
pub mod mutant {
    use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    /// Selects none, and notes those that could have been made.
    pub const SURVEY: u32 = u32::MAX;
    static ON: AtomicU32 = AtomicU32::new(0);
    static MET: [AtomicBool; 1024] = [const { AtomicBool::new(false) }; 1024];
    /// Selects the mistake of this number.
    pub fn set(number: u32) {
        ON.store(number, Ordering::Relaxed);
    }
    /// Whether this mistake could have been made.
    pub fn met(number: usize) -> bool {
        MET[number].load(Ordering::Relaxed)
    }
    #[inline(always)]
    pub(crate) fn is(number: u32) -> bool {
        let on = ON.load(Ordering::Relaxed);
        if on == SURVEY {
            MET[number as usize].store(true, Ordering::Relaxed);
        }
        on == number
    }
}
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn write(path: &Path, text: &str) {
    // Left alone if it is the same: the build has less to do.
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return;
    }
    fs::create_dir_all(path.parent().expect("a file in a folder")).expect("a folder can be made");
    fs::write(path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

fn mutants() -> Vec<Mutant> {
    let path = root().join("oracle/mutants.toml");
    toml::from_str::<Mutants>(&read(&path)).unwrap_or_else(|e| panic!("{}: {e}", path.display())).mutant
}

/// All files below a folder.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let paths = entries.map(|e| e.expect("a readable folder").path());
    paths.flat_map(|p| if p.is_dir() { files(&p) } else { vec![p] }).collect()
}

/// The source of one file with its mistakes in it.
fn mutated(file: &str, source: &str, mutants: &[Mutant]) -> String {
    let mut places: Vec<(usize, usize, String)> = Vec::new();
    for (i, m) in mutants.iter().enumerate().filter(|(_, m)| m.file == file) {
        let found: Vec<usize> = source.match_indices(&m.find).map(|(at, _)| at).collect();
        let [at] = found[..] else {
            panic!("{}: its text occurs {} times in {file}, not once: {}", m.name, found.len(), m.find)
        };
        places.push((at, at + m.find.len(), m.schema(i + 1)));
    }
    places.extend(evidence::probes(file, source).into_iter().map(|(at, probe)| (at, at, probe)));
    places.sort();
    let (mut text, mut done) = (String::new(), 0);
    for (from, to, schema) in places {
        assert!(from >= done, "{file}: two mutants change the same text: {schema}");
        text += &source[done..from];
        text += &schema;
        done = to;
    }
    text + &source[done..]
}

/// Builds the runner on the mutated engine; returns the program.
fn build(mutants: &[Mutant]) -> PathBuf {
    let (root, to) = (root(), Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutants"));
    let engine = root.join("crates/mm");
    for path in files(&engine.join("src")) {
        let file = path.strip_prefix(engine.join("src")).expect("below it").to_string_lossy().into_owned();
        let mut text = mutated(&file, &read(&path), mutants);
        if file == "lib.rs" {
            text += SWITCH;
            text += evidence::PASSED;
        }
        write(&to.join("crates/mm/src").join(&file), &text);
    }
    for m in mutants {
        assert!(engine.join("src").join(&m.file).is_file(), "{}: the engine has no {}", m.name, m.file);
    }
    write(&to.join("crates/mm/Cargo.toml"), &read(&engine.join("Cargo.toml")));
    let replay = root.join("crates/oracle");
    for path in files(&replay.join("src")) {
        let file = path.strip_prefix(&replay).expect("below it");
        // The recorder is not needed to replay.
        if !file.starts_with("src/record") {
            write(&to.join("crates/oracle").join(file), &read(&path).replace("pub mod record;\n", ""));
        }
    }
    write(&to.join("crates/oracle/Cargo.toml"), &read(&replay.join("Cargo.toml")));
    for copied in ["crates/procfs", "crates/profiles", "crates/program", "crates/text", "profiles"] {
        for path in files(&root.join(copied)) {
            write(&to.join(path.strip_prefix(&root).expect("below it")), &read(&path));
        }
    }
    write(&to.join("crates/runner/src/main.rs"), include_str!("runner.rs"));
    write(
        &to.join("crates/runner/Cargo.toml"),
        "[package]\nname = \"runner\"\nedition.workspace = true\n\n\
         [dependencies]\nkontig-mm.workspace = true\nkontig-oracle.workspace = true\n",
    );
    let workspace = read(&root.join("Cargo.toml")).replace("default-members = [\"crates/cli\"]\n", "");
    write(&to.join("Cargo.toml"), &workspace);
    if !to.join("Cargo.lock").exists() {
        write(&to.join("Cargo.lock"), &read(&root.join("Cargo.lock")));
    }
    let target = to.join("target");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "--package", "runner", "--target-dir"])
        .arg(&target)
        .current_dir(&to)
        .env("RUSTFLAGS", "--cap-lints allow")
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the mutated engine does not build");
    target.join("debug/runner")
}

/// The golden recordings, shortest first.
fn recordings() -> Vec<PathBuf> {
    let dirs = fs::read_dir(root().join("oracle/golden")).expect("the golden recordings are part of the source");
    let size = |dir: &PathBuf| {
        let elsewhere = kontig_oracle::Recording::open(dir).map_or_else(|e| panic!("{e}"), |r| r.about.files);
        let elsewhere = elsewhere.values().map(|path| dir.join(format!("{path}.xz")));
        files(dir).into_iter().chain(elsewhere).map(|f| f.metadata().map_or(0, |m| m.len())).sum::<u64>()
    };
    let mut dirs: Vec<PathBuf> = dirs.map(|e| e.expect("readable").path()).filter(|p| p.is_dir()).collect();
    dirs.sort_by_key(size);
    dirs
}

/// The folder of this process's unpacked recordings, a gigabyte; gone in the end.
struct Copies(PathBuf);

impl Copies {
    fn new() -> Copies {
        let name = format!("mutants-recordings-{}", std::process::id());
        Copies(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Copies of the recordings without compression, in the same order: each is replayed many times,
/// and unpacking takes longer than most replays.
fn unpacked(recordings: &[PathBuf], Copies(to): &Copies) -> Vec<PathBuf> {
    evidence::in_parallel(recordings, |dir| {
        let (rec, copy) = (kontig_oracle::Recording::open(dir).unwrap_or_else(|e| panic!("{e}")), to.join(name(dir)));
        fs::create_dir_all(&copy).unwrap_or_else(|e| panic!("{}: {e}", copy.display()));
        for path in files(dir) {
            let file = path.file_name().expect("a file").to_string_lossy();
            let file = file.strip_suffix(".xz").unwrap_or(&file);
            let bytes = rec.bytes(file).unwrap_or_else(|e| panic!("{e}"));
            fs::write(copy.join(file), bytes).unwrap_or_else(|e| panic!("{}: {e}", copy.display()));
        }
        copy
    })
}

fn name(dir: &Path) -> String {
    dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Output of the runner, if it ends in time.
fn run(program: &Path, mistake: &str, args: &[&OsStr]) -> Option<String> {
    let mut runner: Child = Command::new(program)
        .arg(mistake)
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the runner runs");
    while runner.try_wait().expect("a child can be asked").is_none() {
        if cpu_time(runner.id()) > LIMIT {
            runner.kill().expect("a child can be ended");
            runner.wait().expect("a child that ended");
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let out = runner.wait_with_output().expect("what the runner said");
    let said = String::from_utf8_lossy(&out.stdout).trim_end().to_string();
    Some(if out.status.success() { said } else { "the engine stops".into() })
}

/// CPU time of a process so far; clock ticks are a hundredth of a second everywhere.
fn cpu_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let (_, behind_name) = stat.rsplit_once(')').unwrap_or_default();
    let fields = behind_name.split_ascii_whitespace().skip(11).take(2);
    Duration::from_millis(10 * fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>())
}

/// The recording that notices a mistake, and how; `None` if none does.
type Noticed = Option<(String, String)>;

/// The first recording that notices mutant `number`, and how.
fn noticed_by(program: &Path, number: usize, recordings: &[&PathBuf]) -> Noticed {
    recordings.iter().find_map(|dir| {
        let how = match run(program, &number.to_string(), &[dir.as_os_str()]) {
            None => "the engine does not end".into(),
            Some(said) if said.is_empty() => return None,
            Some(said) => said,
        };
        Some((name(dir), how))
    })
}

/// Whether a generated trace ends otherwise with mutant `number`.
fn changes(program: &Path, number: usize, awaits: &Awaits) -> bool {
    let dir = root().join("oracle/golden").join(&awaits.start);
    let args = [OsStr::new("--trace"), OsStr::new(&awaits.trace), dir.as_os_str()];
    run(program, &number.to_string(), &args) != run(program, "0", &args)
}

/// The mutants that `KONTIG_MUTANTS` names, by what notices each; nothing if it names none.
fn only(mutants: &[Mutant]) -> Option<Vec<usize>> {
    let names = std::env::var("KONTIG_MUTANTS").ok()?;
    let find = |name: &str| mutants.iter().position(|m| m.name == name);
    Some(names.split(',').map(|name| find(name).unwrap_or_else(|| panic!("no mutant is called '{name}'"))).collect())
}

/// Tries a few mutants, each by the recording known to notice it, or by all.
fn try_only(program: &Path, mutants: &[Mutant], numbers: &[usize], recordings: &[PathBuf]) {
    let mut wrong = Vec::new();
    for &i in numbers {
        let m = &mutants[i];
        let known = recordings.iter().filter(|dir| name(dir) == m.caught_by).collect::<Vec<_>>();
        let tried = if known.is_empty() { recordings.iter().collect() } else { known };
        let result = noticed_by(program, i + 1, &tried);
        println!("{:36} {}", m.name, result.as_ref().map_or("NOBODY".into(), |(by, how)| format!("{by:30} {how}")));
        if result.is_some() == m.unnoticed.is_some() {
            wrong.push(m.name.as_str());
        }
    }
    assert!(wrong.is_empty(), "not as oracle/mutants.toml says: {}", wrong.join(", "));
}

#[test]
fn every_rule_done_wrongly_is_noticed_by_a_recording() {
    let mutants = mutants();
    assert!(mutants.len() >= 24, "{} mutants", mutants.len());
    let program = build(&mutants);
    let (recordings, copies) = (recordings(), Copies::new());
    if let Some(numbers) = only(&mutants) {
        return try_only(&program, &mutants, &numbers, &recordings);
    }
    let recordings = unpacked(&recordings, &copies);
    let met = evidence::survey(&program, &recordings);
    let numbers: Vec<usize> = (0..mutants.len()).collect();
    let results = evidence::in_parallel(&numbers, |&i| {
        let mut order = met.by_mistake(i + 1, &recordings);
        order.sort_by_key(|dir| name(dir) != mutants[i].caught_by);
        noticed_by(&program, i + 1, &order).or_else(|| {
            let awaits = mutants[i].awaits.as_ref().filter(|a| changes(&program, i + 1, a))?;
            Some((format!("{} (to be recorded)", awaits.trace), format!("from {} on", awaits.start)))
        })
    });
    let mut table = String::new();
    let (mut survivors, mut explained) = (Vec::new(), Vec::new());
    for (m, result) in mutants.iter().zip(&results) {
        let (recording, how) = result.clone().unwrap_or_else(|| ("NOBODY".into(), m.rule.clone()));
        writeln!(table, "{:36} {recording:30} {how}", m.name).expect("a String takes any text");
        match (result, &m.unnoticed) {
            (None, None) => survivors.push(format!("{} ({})", m.name, m.mechanism)),
            (Some(_), Some(_)) => explained.push(format!("{} by {recording}", m.name)),
            _ => {}
        }
    }
    println!("{table}");
    assert!(survivors.is_empty(), "nothing notices: {}\n{table}", survivors.join(", "));
    assert!(explained.is_empty(), "said to be unnoticed, and noticed: {}", explained.join(", "));
    evidence::hold(&program, &mutants, &recordings, &met, &results);
}
