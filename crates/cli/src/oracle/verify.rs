//! `kontig oracle verify`: recordings replayed through the engine, operation by operation.
//!
//! Each recording has a line: the numbers of results compared, or the first difference. A
//! difference or a folder that is not a recording does not stop the others from being verified.

use clap::Args;
use kontig_error::{AskedWrongly, Error};
use kontig_oracle::difference::Difference;
use kontig_oracle::replay::Compared;
use kontig_oracle::replay::faults::{Closeness, Figure, TOLERANCE};
use kontig_oracle::{BadRecording, OtherPatchLevel, Verdict, other_patch_level, verify_by};
use kontig_terminal::Ending;
use kontig_text::grouped;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};

pub const HELP: &str = "Examples:\n  \
    kontig oracle verify                          the newest recording under recordings/\n  \
    kontig oracle verify oracle/golden/6.1-stress1\n  \
    kontig oracle verify all                      every recording under oracle/golden and recordings\n  \
    kontig oracle verify all --json > verdicts.json\n  \
    kontig oracle verify recordings/7.3-stress --profile 7.2     how far another kernel's rules carry\n\n\
    A recording is a folder: a trace of allocations and frees with the kernel's results, a compaction with its \
    tracepoints, or memory under pressure with both, and the zone's state before and after. The engine starts from the \
    state before, carries out the same operations, and must return the same results and end in the same state: every \
    pfn, every list in order; under pressure also the LRU lists, at the end and at each dump. Files that no replay \
    needs (the texts of /proc beside the snapshots) are not compared, but a damaged one is refused.\n\n\
    A difference is reported with the operations before it, the engine's events, and its zone just before: enough to \
    find the rule.\n\n\
    A line says so if the recorded kernel's patch level is not the profile's, because a stable release can change a \
    rule. To settle it, pass --profile with a profile that states that level (docs/contributor/HACKING.md).\n\n\
    Huge page faults beside kcompactd cannot be replayed to the page, because the engine has no scheduler: their \
    totals \
    must be within 5 %.\n\n\
    Exit codes: 0 all equal (or within that); 3 at least one differs; 2 no such folder, a malformed recording, or a \
    kernel without a profile; 1 failed otherwise.";

/// Where `kontig oracle record` puts its recordings.
pub(super) const RECORDINGS: &str = "recordings";
/// Where `all` looks, from the current directory.
const ALL: [&str; 2] = ["oracle/golden", RECORDINGS];

/// Options of `kontig oracle verify`.
#[derive(Args)]
pub struct VerifyArgs {
    /// Recording folders, or 'all' (default: the newest under recordings/)
    #[arg(value_name = "DIR|all")]
    recordings: Vec<PathBuf>,
    /// Replay with this profile, by name or file, instead of the recorded kernel's
    #[arg(long, value_name = "NAME|FILE")]
    profile: Option<String>,
    /// Print one JSON document (schema kontig.verify/1) instead of lines
    #[arg(long)]
    json: bool,
}

struct Verified {
    dir: PathBuf,
    verdict: Result<Verdict, BadRecording>,
    other: Option<OtherPatchLevel>,
}

pub fn verify(args: &VerifyArgs) -> Result<Ending, Error> {
    let profile = args.profile.as_deref().map(kontig_profiles::open).transpose()?;
    let mut verified: Vec<Verified> = Vec::new();
    for dir in folders(&args.recordings)? {
        let verdict = match &profile {
            Some(profile) => verify_by(&dir, profile),
            None => kontig_oracle::verify(&dir),
        };
        // If the folder cannot be opened, the verdict says why.
        let other = other_patch_level(&dir, profile.as_ref()).unwrap_or_default();
        if let (false, Ok(verdict)) = (args.json, &verdict) {
            kontig_terminal::print(&in_words(&dir, verdict, other.as_ref()))?;
        }
        verified.push(Verified { dir, verdict, other });
    }
    if args.json {
        let recordings: Vec<Value> = verified.iter().map(as_json).collect();
        kontig_terminal::print(&format!("{:#}\n", json!({ "schema": "kontig.verify/1", "recordings": recordings })))?;
    }
    let different = verified.iter().any(|v| matches!(v.verdict, Ok(Verdict::Different(_))));
    // The last one is the caller's to say; a difference is the graver news.
    let bad = verified.iter().filter_map(|v| Some(bad_in_words(&v.dir, v.verdict.as_ref().err()?)));
    let mut bad: Vec<Error> = bad.map(asked_wrongly).collect();
    let last = if different { None } else { bad.pop() };
    for e in bad {
        let _ = writeln!(std::io::stderr(), "kontig: {e}");
    }
    match (different, last) {
        (true, _) => Ok(Ending::Different),
        (false, Some(e)) => Err(e),
        (false, None) => Ok(Ending::Done),
    }
}

fn asked_wrongly(reason: String) -> Error {
    AskedWrongly::Value(reason).into()
}

/// The folders to verify.
fn folders(named: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    if named.is_empty() {
        let newest = |dir: &PathBuf| std::fs::metadata(dir).and_then(|m| m.modified()).ok();
        return below(RECORDINGS).into_iter().max_by_key(newest).map(|dir| vec![dir]).ok_or_else(|| {
            asked_wrongly(format!(
                "no recordings under {RECORDINGS}/: make one with 'kontig oracle record', or name a folder"
            ))
        });
    }
    let mut found = Vec::new();
    for dir in named {
        if dir != Path::new("all") {
            found.push(dir.clone());
            continue;
        }
        let all: Vec<PathBuf> = ALL.iter().flat_map(|parent| below(parent)).collect();
        if all.is_empty() {
            return Err(asked_wrongly(format!("no recordings under {}/ or {}/ here", ALL[0], ALL[1])));
        }
        found.extend(all);
    }
    Ok(found)
}

/// Describes a bad recording; for an unknown name, suggests the nearest.
fn bad_in_words(dir: &Path, e: &BadRecording) -> String {
    if dir.exists() {
        return e.to_string();
    }
    let there: Vec<PathBuf> = ALL.iter().flat_map(|parent| below(parent)).collect();
    let name = |dir: &Path| dir.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let names: Vec<String> = there.iter().map(|dir| name(dir)).collect();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let asked = name(dir);
    let meant = if names.contains(&asked) { Some(asked) } else { kontig_profiles::nearest(&asked, &known) };
    match meant.and_then(|meant| there.iter().find(|dir| name(dir) == meant)) {
        Some(meant) => format!("{e}: did you mean {}?", meant.display()),
        None => e.to_string(),
    }
}

/// The subfolders by name; empty if there is no such folder.
fn below(parent: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let mut dirs: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.is_dir()).collect();
    dirs.sort();
    dirs
}

fn in_words(dir: &Path, verdict: &Verdict, other: Option<&OtherPatchLevel>) -> String {
    let dir = dir.display();
    let said = match verdict {
        Verdict::Equal(Compared { close: Some(close), .. }) => format!("{dir}: {}\n", approximately(close)),
        Verdict::Equal(compared) => format!("{dir}: equal: {}\n", counted(compared)),
        Verdict::Different(difference) => format!("{dir}: DIFFERENT at {difference}"),
        Verdict::NotReplayed(why) => format!("{dir}: not replayed: {why}\n"),
    };
    let other = other.map(|other| format!("{dir}: {other}\n"));
    said + &other.unwrap_or_default()
}

/// Counts of compared items, without those the recording lacks.
fn counted(c: &Compared) -> String {
    // Under pressure, reclaim's tracepoints are compared as well.
    let events = if c.lru_states > 0 { "tracepoints" } else { "compaction events" };
    let mut parts: Vec<String> = [
        (c.operations, "operations"),
        (c.pfns, "pfns"),
        (c.events, events),
        (c.migrations, "migrations"),
        (c.counters, "counters"),
    ]
    .into_iter()
    .filter(|(n, _)| *n > 0)
    .map(|(n, what)| format!("{} {what}", grouped(n)))
    .collect();
    if c.lru_states > 0 {
        parts.push(format!("{} pages on LRU lists in {} states", grouped(c.lru_pages), c.lru_states));
    }
    if c.final_states > 0 {
        parts.push(format!("final state with {} blocks in {} lists", grouped(c.listed), c.lists));
    }
    parts.join(", ")
}

/// How close a replay is that cannot be equal.
fn approximately(c: &Closeness) -> String {
    let figures: Vec<String> = c
        .figures
        .iter()
        .map(|f| {
            let held = if f.held { "" } else { ", not held" };
            format!("{} {} (the kernel's {}{held})", grouped(f.engine), f.name, grouped(f.kernel))
        })
        .collect();
    format!(
        "within {TOLERANCE} %: {}; the same: the first {} of {} faults, the first {} of {} compaction events",
        figures.join(", "),
        grouped(c.faults_same),
        grouped(c.faults),
        grouped(c.events_same),
        grouped(c.events)
    )
}

fn as_json(verified: &Verified) -> Value {
    let path = verified.dir.display().to_string();
    let mut said = match &verified.verdict {
        Ok(Verdict::Equal(Compared { close: Some(c), .. })) => {
            json!({ "path": path, "verdict": "close", "closeness": closeness_as_json(c) })
        }
        Ok(Verdict::Equal(c)) => json!({ "path": path, "verdict": "equal", "compared": compared_as_json(c) }),
        Ok(Verdict::Different(d)) => {
            json!({ "path": path, "verdict": "different", "difference": difference_as_json(d) })
        }
        Ok(Verdict::NotReplayed(why)) => json!({ "path": path, "verdict": "not-replayed", "reason": why }),
        Err(e) => json!({ "path": path, "verdict": "error", "reason": e.to_string() }),
    };
    if let Some(other) = &verified.other {
        said["other_patch_level"] =
            json!({ "recorded": other.recorded, "profile": other.profile, "stated": other.stated });
    }
    said
}

pub(super) fn compared_as_json(c: &Compared) -> Value {
    json!({
        "operations": c.operations,
        "pfns": c.pfns,
        "events": c.events,
        "migrations": c.migrations,
        "counters": c.counters,
        "lru_states": c.lru_states,
        "lru_pages": c.lru_pages,
        "lists": c.lists,
        "listed": c.listed,
        "final_states": c.final_states,
    })
}

pub(super) fn closeness_as_json(c: &Closeness) -> Value {
    let figure = |f: &Figure| json!({ "name": f.name, "kernel": f.kernel, "engine": f.engine, "held": f.held });
    json!({
        "tolerance_percent": TOLERANCE,
        "faults": c.faults,
        "faults_same": c.faults_same,
        "events": c.events,
        "events_same": c.events_same,
        "figures": c.figures.iter().map(figure).collect::<Vec<_>>(),
    })
}

fn difference_as_json(d: &Difference) -> Value {
    let around: Vec<Value> = d.around.iter().map(|s| json!({ "title": s.title, "lines": s.lines })).collect();
    json!({
        "at": d.at.to_string(),
        "asked": d.asked,
        "kernel": d.kernel,
        "engine": d.engine,
        "around": around,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_compared_under_pressure_are_named() {
        let c = Compared { operations: 70_000, events: 2_862, lru_states: 2, lru_pages: 56_583, ..Compared::default() };
        let of_the_end = Compared { lists: 30, listed: 512, final_states: 1, ..c.clone() };
        let pressure = "70,000 operations, 2,862 tracepoints, 56,583 pages on LRU lists in 2 states";
        assert_eq!(counted(&of_the_end), format!("{pressure}, final state with 512 blocks in 30 lists"));
        let compaction = Compared { lru_states: 0, ..of_the_end };
        assert!(counted(&compaction).contains("2,862 compaction events, final state"), "{}", counted(&compaction));
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([7, 100, 1_000, 1_172_674].map(grouped), ["7", "100", "1,000", "1,172,674"]);
    }
}
