//! `kontig trial`: what is foretold of this host beside what comes about, on memory that is fragmented for it.

use super::check::{NeedArgs, of_host};
use super::document;
use super::grid::Grid;
use super::host::HostArgs;
use super::prepare::{Means, carry_out, chosen};
use super::snapshot::page_size;
use super::touch::{mark, mark_explained};
use crate::Ending;
use clap::Args;
use kontig_lab::{AskedWrongly, Failed, LabError};
use kontig_live::age::{Aged, NotAged, Pattern};
use kontig_live::held::{Held, at_hand};
use kontig_live::need::{order, size as block_size};
use kontig_live::number::{count, percent, size};
use kontig_live::prepare::execute::default_journal;
use kontig_live::prepare::hurry::Hurry;
use kontig_live::prepare::{Allowed, Plan};
use kontig_live::touch::{Quantiles, Touched, touch};
use kontig_live::trial::{Latency, SCHEMA, Trial, Try};
use kontig_live::{ReadError, Roots};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// `kontig trial`.
#[derive(Args)]
pub struct TrialArgs {
    /// So much memory is fragmented each time, in GiB; part of it is given back at once
    #[arg(long, value_name = "N", value_parser = super::age::gib, default_value = "3")]
    gib: u64,
    /// Which pages are kept (default: each pattern in turn)
    #[arg(long = "pattern", value_name = "PATTERN", value_parser = Pattern::NAMED.map(|(name, _)| name))]
    patterns: Vec<String>,
    /// Tries of each pattern, with one seed after the other
    #[arg(long, value_name = "N", default_value_t = 3)]
    tries: u64,
    /// So many blocks are asked for beyond those that are there
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u64).range(1..1 << 32))]
    more: u64,
    /// The size of a block
    #[arg(long, value_name = "SIZE", default_value = "2M")]
    block: String,
    /// Also time first touches before and after a preparation of each pattern, while all blocks at hand are held: that leaves the
    /// host 2 GiB
    #[arg(long)]
    touch: bool,
    /// Stop a preparation after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    time: u64,
    /// Print JSON (schema kontig.trial/1)
    #[arg(long)]
    json: bool,
    /// Print the tables as Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print the tables of an earlier trial's JSON instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["touch", "patterns", "json"])]
    of: Option<PathBuf>,
    /// Where it is kept what settings were, while they are changed
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Which host.
    #[command(flatten)]
    host: HostArgs,
}

/// What --help says behind the options.
pub const HELP: &str = "Examples:\n  \
    kontig trial                                  five patterns, three tries each: pages and seconds, foretold and counted\n  \
    kontig trial --pattern random --tries 1       one of them\n  \
    kontig trial --gib 6 --tries 0 --touch        what first touches of huge pages take, before and after\n\n\
    Memory of its own is fragmented, then prepared as 'kontig prepare --execute' does; clean cache is not dropped. All memory goes back \
    and every setting is restored at the end, however that comes.\n\n\
    Exit codes: 0 done, whatever came about; 1 failed while running; 2 asked wrongly; 5 more privilege is needed (root).";

/// Why a trial ends before its end.
enum Ended {
    Unpermitted(String),
    Failed(LabError),
}

impl From<LabError> for Ended {
    fn from(e: LabError) -> Ended {
        Ended::Failed(e)
    }
}

impl From<ReadError> for Ended {
    fn from(e: ReadError) -> Ended {
        match e.is_permission() {
            true => Ended::Unpermitted(e.to_string()),
            false => failed(e.to_string()),
        }
    }
}

fn failed(reason: String) -> Ended {
    Ended::Failed(Failed::Run { run: "trial".into(), reason }.into())
}

/// Runs `kontig trial`.
pub fn trial(a: &TrialArgs) -> Result<Ending, LabError> {
    let trial = match &a.of {
        Some(file) => earlier(file)?,
        None => match of_this_host(a) {
            Ok(trial) => trial,
            Err(Ended::Unpermitted(why)) => {
                crate::say(&why);
                return Ok(Ending::Unpermitted);
            }
            Err(Ended::Failed(e)) => return Err(e),
        },
    };
    crate::print(&if a.json { document(&trial, false) } else { text(&trial, a.markdown) })?;
    Ok(Ending::Done)
}

fn earlier(file: &std::path::Path) -> Result<Trial, LabError> {
    let bad = |why: String| LabError::from(AskedWrongly::Value(format!("{}: {why}", file.display())));
    let text = std::fs::read_to_string(file).map_err(|e| bad(e.to_string()))?;
    let trial: Trial = serde_json::from_str(&text).map_err(|e| bad(e.to_string()))?;
    if trial.schema == SCHEMA {
        Ok(trial)
    } else {
        Err(bad(format!("its schema is '{}', not '{SCHEMA}'", trial.schema)))
    }
}

/// One trial of a host.
struct OfHost<'a> {
    a: &'a TrialArgs,
    roots: Roots,
    journal: PathBuf,
    order: u32,
    stop: Arc<AtomicBool>,
}

fn of_this_host(a: &TrialArgs) -> Result<Trial, Ended> {
    let roots = a.host.roots()?;
    let bad = |why: String| LabError::from(AskedWrongly::Value(format!("--block: {why}")));
    let stop = Arc::new(AtomicBool::new(false));
    let raised = stop.clone();
    crate::interrupt::act(move || raised.store(true, Ordering::Relaxed));
    let of_host = OfHost {
        a,
        order: order(&a.block, page_size()).map_err(bad)?,
        journal: a.journal.clone().unwrap_or_else(default_journal),
        roots,
        stop,
    };
    let mut trial = Trial {
        schema: SCHEMA.into(),
        kernel: of_host.roots.read_proc("sys/kernel/osrelease")?.trim().into(),
        aged_bytes: a.gib,
        more: a.more,
        load: Vec::new(),
        tries: Vec::new(),
        latencies: Vec::new(),
    };
    let all = || Pattern::NAMED.iter().map(|(name, _)| name.to_string()).collect();
    for pattern in if a.patterns.is_empty() { all() } else { a.patterns.clone() } {
        for seed in 1..=a.tries {
            trial.load.extend(load(&of_host.roots));
            let aged = of_host.age(&pattern, seed)?;
            let a_try = of_host.prepared(&pattern, seed)?;
            drop(aged);
            crate::say(&format!("{pattern}, seed {seed}: {}", said(&a_try)));
            trial.tries.push(a_try);
        }
        if a.touch {
            let latency = of_host.latency(&pattern)?;
            crate::say(&format!("{pattern}, first touches: {}", latency.prepared.ended));
            trial.latencies.push(latency);
        }
    }
    Ok(trial)
}

/// The load average of the last minute.
fn load(roots: &Roots) -> Option<f64> {
    roots.read_proc("loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

impl OfHost<'_> {
    fn interrupted(&self) -> Result<(), Ended> {
        let kept = || Failed::Interrupted { kept: "all memory is given back, every setting is as it was".into() };
        if self.stop.load(Ordering::Relaxed) { Err(Ended::Failed(kept().into())) } else { Ok(()) }
    }

    fn age(&self, pattern: &str, seed: u64) -> Result<Aged, Ended> {
        let named = Pattern::NAMED.iter().find(|(name, _)| *name == pattern).map(|(_, pattern)| *pattern);
        let named = named.ok_or_else(|| failed(format!("'{pattern}' is no pattern")))?;
        // It is this process's own memory, whichever host is looked at.
        let aged = Aged::take(&Roots::default(), self.a.gib, named, seed, &self.stop);
        aged.map_err(|e| match e {
            NotAged::TooMuch { .. } => Ended::Failed(AskedWrongly::Value(e.to_string()).into()),
            NotAged::Stopped => self.interrupted().err().unwrap_or_else(|| failed(e.to_string())),
            e => failed(e.to_string()),
        })
    }

    /// Prepares the host for so many more blocks than there are.
    fn prepared(&self, pattern: &str, seed: u64) -> Result<Try, Ended> {
        let _hurry = Hurry::up();
        let page = page_size();
        let blocks = at_hand(&self.roots, self.order).map_err(failed)? + self.a.more;
        let needs = vec![format!("{blocks}x{}", block_size(page << self.order))];
        let need = NeedArgs { needs, reserve: false, profile: None };
        let found = of_host(&need, &self.roots)??;
        if let Some(e) = found.unpermitted {
            return Err(e.into());
        }
        let texts: Vec<&str> = found.check.needs.iter().map(|asked| asked.need.as_str()).collect();
        let needs = chosen(&need, &texts, page)?;
        let plan = Plan::of(found.check.clone(), (&needs, &found.caller), page, &self.roots, Allowed::default());
        if let Some(lacks) = plan.lacks {
            let blocks = self.a.more;
            return Err(failed(format!(
                "{pattern}: no {blocks} more blocks are foretold: {lacks}; ask for fewer with --more"
            )));
        }
        let time = Duration::from_secs(self.a.time);
        let means = Means { roots: &self.roots, caller: &found.caller, journal: &self.journal, time, stop: &self.stop };
        let receipt = carry_out(plan, &needs, &means)?.map_err(|e| match e.is_permission() {
            true => Ended::Unpermitted(e.to_string()),
            false => failed(e.to_string()),
        })?;
        self.interrupted()?;
        Ok(Try::of(&receipt, pattern, seed))
    }

    /// What first touches take before and after a preparation, while nothing else is at hand. With the highest priority: others' turns
    /// are no wait for a block.
    fn latency(&self, pattern: &str) -> Result<Latency, Ended> {
        let _aged = self.age(pattern, 1)?;
        let _hurry = Hurry::up();
        let held = Held::all(&self.roots, self.order, page_size(), &self.stop)
            .map_err(|e| self.interrupted().err().unwrap_or_else(|| failed(e)))?;
        let before = self.touched()?;
        let prepared = self.prepared(pattern, 1)?;
        let after = self.touched()?;
        Ok(Latency { pattern: pattern.into(), held_bytes: held.bytes(), before, after, prepared })
    }

    /// First touches of memory that is given back then.
    fn touched(&self) -> Result<Touched, Ended> {
        let bytes = self.a.more.min(MOST_TOUCHED) << self.order << page_size().ilog2();
        let (touched, _memory) = touch(&self.roots, bytes, false, &self.stop).map_err(|e| failed(e.to_string()))?;
        self.interrupted()?;
        Ok(touched)
    }
}

/// Huge pages touched at most.
const MOST_TOUCHED: u64 = 200;

/// A try in a line.
fn said(t: &Try) -> String {
    let pages = pages(t);
    let off = t.pages_off().map_or(String::new(), |off| format!(" ({} off)", percent(off)));
    format!("{pages} pages foretold / moved{off}, {}: {}", t.need, t.ended)
}

fn pages(t: &Try) -> String {
    let show = |pages: Option<u64>| pages.map_or("–".into(), count);
    format!("{} / {}", show(t.foretold.map(|foretold| foretold.pages_moved)), show(t.counted.pages_moved))
}

fn seconds(t: &Try) -> String {
    let show = |seconds: Option<f64>| seconds.map_or("–".into(), |seconds| format!("{seconds:.2}"));
    let foretold = show(t.foretold.map(|cost| cost.seconds));
    format!("{foretold} / {} / {}", show(t.counted.cpu_seconds), show(Some(t.counted.seconds)))
}

/// The tables and what follows from them.
fn text(trial: &Trial, markdown: bool) -> String {
    let mut text = String::new();
    let show = |table: &Grid| if markdown { table.markdown() } else { table.text(0, None) };
    if !trial.tries.is_empty() {
        let mut table = Grid::new(TRIES, &[0, 1, 2, 3]);
        for pattern in trial.patterns() {
            let joined =
                |of: &dyn Fn(&Try) -> String| trial.of_pattern(pattern).map(of).collect::<Vec<_>>().join(" · ");
            let off = |t: &Try| t.pages_off().map_or("–".into(), percent);
            let name = if markdown { format!("`{pattern}`") } else { pattern.into() };
            table.row(vec![name, joined(&pages), joined(&off), joined(&seconds)]);
        }
        text += &show(&table);
        text += &format!("\n{}\n", summary(trial));
    }
    if !trial.latencies.is_empty() {
        let mut table = Grid::new(TOUCHES, &[0]);
        for latency in &trial.latencies {
            let name = if markdown { format!("`{}`", latency.pattern) } else { latency.pattern.clone() };
            let [before, after] = [&latency.before, &latency.after].map(touches);
            let floor = latency.after.floor_s.map_or("–".into(), |q| micros(q.p50));
            let above = latency.above_floor().map_or("–".into(), percent);
            table.row([vec![name], before, after, vec![floor, above]].concat());
        }
        text += if text.is_empty() { "" } else { "\n" };
        let table = show(&table);
        let explained = mark_explained(&table).map(|note| if markdown { format!("\n{note}") } else { note });
        text += &table;
        text += &explained.unwrap_or_default();
    }
    text
}

const TRIES: [&str; 4] = ["pattern", "pages, foretold / moved", "off", "seconds, foretold / of a CPU / in all"];
const TOUCHES: [&str; 11] = [
    "pattern",
    "before: p50, µs",
    "p99, µs",
    "huge",
    "waited",
    "after: p50, µs",
    "p99, µs",
    "huge",
    "waited",
    "floor, µs",
    "above it",
];

fn touches(t: &Touched) -> Vec<String> {
    let quantile = |percent: f64, of: fn(&Quantiles) -> f64| {
        t.huge_s.as_ref().map_or("–".into(), |q| mark(q, percent, micros(of(q))))
    };
    let huge = format!("{} of {}", t.huge, t.huge + t.small);
    vec![quantile(50.0, |q| q.p50), quantile(99.0, |q| q.p99), huge, t.stalls.map_or("–".into(), count)]
}

fn micros(seconds: f64) -> String {
    count((seconds * 1e6).round() as u64)
}

fn summary(trial: &Trial) -> String {
    let reached = trial.tries.iter().filter(|t| t.reached).count();
    let farthest = trial.tries.iter().filter_map(Try::pages_off).reduce(f64::max);
    let load = trial.mean_load().map_or(String::new(), |load| format!("; load {load:.1}"));
    format!(
        "Linux {}, {} fragmented each time, {} blocks more than there were{load}. {} of {} tries reached them; pages were foretold \
         within 25 % in {}, the farthest off {}.",
        trial.kernel,
        size(trial.aged_bytes),
        count(trial.more),
        reached,
        trial.tries.len(),
        trial.within(0.25),
        farthest.map_or("unknown".into(), percent)
    )
}
