//! `--against COMMIT`: the benchmark of this tree and that of another commit, row by row and by
//! turns, each in a process of its own, on one CPU.
//!
//! A turn measures one group of rows with both programs, and the next turn begins with the other
//! one: what drifts on the host drifts for both. A ratio is that of two medians of one turn.

use kontig_bench::measure::Samples;
use kontig_bench::options::RIVALS;
use kontig_bench::quiet::{Watch, not_quiet};
use kontig_bench::table::Unit;
use kontig_bench::{Options, meaning, table};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A row is called slower from this ratio on, if there are several turns and none says otherwise.
const SLOWER: f64 = 1.05;

/// Builds the commit's benchmark, measures both, and prints the table.
///
/// # Errors
/// What failed, in one line.
pub fn compare(commit: &str, options: &Options) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().map_err(|e| e.to_string())?;
    let old = build(&root, &full_name(&root, commit)?)?;
    let new = std::env::current_exe().map_err(|e| format!("this program's own file: {e}"))?;
    let cpu = pin()?;
    let mut groups: Vec<Vec<&str>> = meaning::groups().into_iter().chain([vec!["R"]]).collect();
    groups.retain(|rows| options.wants(rows, ""));
    if groups.is_empty() {
        return Err("no row has such a number; --against takes --filter by number only".into());
    }
    eprintln!("{} groups of rows, {} turns each, on CPU {cpu}", groups.len(), options.turns);
    let watch = Watch::start();
    let mut line = Line::new(options.json);
    for group in groups.iter().map(|rows| rows[0]) {
        let mut rows: BTreeMap<String, Compared> = BTreeMap::new();
        let mut order = Vec::new();
        for turn in 0..options.turns {
            let by_turns = if turn % 2 == 0 { [(&old, false), (&new, true)] } else { [(&new, true), (&old, false)] };
            for (program, is_new) in by_turns {
                let rows_of_group = measure(program, group, options.quick)?;
                for row in rows_of_group.into_iter().filter(|row| options.wants(&[&row.number], "")) {
                    let compared = rows.entry(row.number.clone()).or_insert_with(|| {
                        order.push(row.number.clone());
                        Compared { what: row.what.clone(), unit: row.unit.clone(), medians: [Vec::new(), Vec::new()] }
                    });
                    compared.medians[usize::from(is_new)].push(row.median);
                    if is_new {
                        (compared.what, compared.unit) = (row.what, row.unit);
                    }
                }
            }
        }
        order.iter().for_each(|number| line.print(number, &rows[number]));
    }
    if let Some(others) = not_quiet(watch.others()) {
        eprintln!("{others}");
    }
    Ok(())
}

fn full_name(root: &Path, commit: &str) -> Result<String, String> {
    let out = Command::new("git")
        .args(["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{commit}^{{commit}}")])
        .current_dir(root)
        .output()
        .map_err(|e| format!("git: {e}"))?;
    let name = String::from_utf8_lossy(&out.stdout).trim().to_string();
    if out.status.success() { Ok(name) } else { Err(format!("--against: this repository has no commit '{commit}'")) }
}

/// The benchmark's program as of a commit, built below `target/against`.
fn build(root: &Path, commit: &str) -> Result<PathBuf, String> {
    let below = root.join("target/against");
    let tree = below.join(commit);
    eprintln!("building {} in {}", &commit[..12], tree.display());
    if !tree.exists() {
        // It gets its name once it is whole.
        let (archive, part) = (below.join(format!("{commit}.tar")), below.join(format!("{commit}.part")));
        let failed = |path: &Path| format!("{}: ", path.display());
        fs::create_dir_all(&part).map_err(|e| failed(&part) + &e.to_string())?;
        succeed(Command::new("git").args(["archive", "--output"]).arg(&archive).arg(commit).current_dir(root))?;
        succeed(Command::new("tar").arg("-xf").arg(&archive).current_dir(&part))?;
        fs::rename(&part, &tree).map_err(|e| failed(&tree) + &e.to_string())?;
        fs::remove_file(&archive).map_err(|e| failed(&archive) + &e.to_string())?;
    }
    let out = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["bench", "-p", "kontig-bench", "--no-run", "--message-format", "json-render-diagnostics"])
        .current_dir(&tree)
        // Each commit has its own: cargo takes the parts of one tree for those of another, as their
        // paths within the tree are the same and the files are older than what was built.
        .env("CARGO_TARGET_DIR", tree.join("target"))
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("cargo: {e}"))?;
    let artifacts = String::from_utf8_lossy(&out.stdout);
    let program = artifacts.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(|artifact| {
        let is_it = artifact["target"]["name"] == "engine";
        is_it.then(|| artifact["executable"].as_str().map(PathBuf::from)).flatten()
    });
    program.filter(|_| out.status.success()).ok_or(format!("the benchmark of {commit} does not build"))
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

/// Binds this process, and those it starts, to the last CPU it may use.
fn pin() -> Result<usize, String> {
    // SAFETY: both calls get a set of the size they are told, which is all zeroes to begin with.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        if libc::sched_getaffinity(0, size, &mut set) == 0 {
            let last = (0..libc::CPU_SETSIZE as usize).rev().find(|cpu| libc::CPU_ISSET(*cpu, &set));
            if let Some(cpu) = last {
                libc::CPU_ZERO(&mut set);
                libc::CPU_SET(cpu, &mut set);
                if libc::sched_setaffinity(0, size, &set) == 0 {
                    return Ok(cpu);
                }
            }
        }
    }
    Err(format!("binding the benchmark to one CPU: {}", std::io::Error::last_os_error()))
}

/// One row of one process.
struct Measured {
    number: String,
    what: String,
    unit: String,
    median: f64,
}

/// Runs a program on a group of rows.
fn measure(program: &Path, group: &str, quick: bool) -> Result<Vec<Measured>, String> {
    let mut command = Command::new(program);
    // Two commits are compared with each other, not with rivals.
    command.args(["--json", "--filter", group]).env_remove(RIVALS).stderr(Stdio::inherit());
    if quick {
        command.arg("--quick");
    }
    let out = command.output().map_err(|e| format!("{}: {e}", program.display()))?;
    if !out.status.success() {
        return Err(format!("{}: row {group}: {}", program.display(), out.status));
    }
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).ok()?;
        // What follows the sign is a figure of one run.
        let what = row["what"].as_str()?.split(" = ").next()?;
        Some(Measured {
            number: row["row"].as_str()?.into(),
            what: what.into(),
            unit: row["unit"].as_str()?.into(),
            median: row["ours"]["median"].as_f64()?,
        })
    };
    let rows = String::from_utf8_lossy(&out.stdout).lines().filter_map(row).collect::<Vec<_>>();
    // A filter also selects by text.
    Ok(rows.into_iter().filter(|row| meaning::group(&row.number) == meaning::group(group)).collect())
}

/// The medians of a row's turns: of the commit, and of this tree.
struct Compared {
    what: String,
    unit: String,
    medians: [Vec<f64>; 2],
}

impl Compared {
    /// New to old, turn by turn; none where one of them lacks the row.
    fn ratios(&self) -> Option<Samples> {
        let [old, new] = &self.medians;
        (!old.is_empty() && old.len() == new.len())
            .then(|| Samples::new(new.clone()).ratios(&Samples::new(old.clone())))
    }

    fn slower(&self) -> bool {
        self.unit != Unit::YesNo.name()
            && self.ratios().is_some_and(|r| r.count() > 1 && r.median() >= SLOWER && r.min() > 1.0)
    }
}

/// Prints rows as they are measured.
struct Line {
    json: bool,
}

impl Line {
    fn new(json: bool) -> Line {
        if !json {
            println!("{:<5}  {:<62}  {:>10}  {:>10}  new/old (min–max)", "row", "what", "old", "new");
        }
        Line { json }
    }

    fn print(&mut self, number: &str, row: &Compared) {
        let [old, new] = row.medians.each_ref().map(|of| (!of.is_empty()).then(|| Samples::new(of.clone()).median()));
        let ratios = row.ratios();
        if self.json {
            let ratio = ratios.map(|r| serde_json::json!({ "median": r.median(), "min": r.min(), "max": r.max() }));
            let line = serde_json::json!({
                "row": number, "what": row.what, "unit": row.unit, "old": old, "new": new, "ratio": ratio,
                "slower": row.slower(),
            });
            return println!("{line}");
        }
        let figure = |value: Option<f64>| value.map_or("–".into(), table::number);
        let ratio = match ratios {
            Some(r) if row.unit != Unit::YesNo.name() => format!("{:.2} ({:.2}–{:.2})", r.median(), r.min(), r.max()),
            _ => String::new(),
        };
        let slower = if row.slower() { "  SLOWER: say why" } else { "" };
        println!("{number:<5}  {:<62}  {:>10}  {:>10}  {ratio}{slower}", row.what, figure(old), figure(new));
    }
}
