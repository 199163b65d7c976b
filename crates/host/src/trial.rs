//! `kontig trial`: prediction beside result on this host, on memory fragmented for it.

use crate::answer::{document, fitted, not_read};
use crate::check::{NeedArgs, of_host};
use crate::prepare::{Means, carry_out, chosen};
use crate::roots::HostArgs;
use crate::touch::{mark, mark_explained};
use clap::Args;
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_live::age::{Aged, NotAged, Pattern};
use kontig_live::cgroup::Limits;
use kontig_live::held::{Held, at_hand};
use kontig_live::need::order;
use kontig_live::prepare::execution::supply;
use kontig_live::prepare::hurry::Hurry;
use kontig_live::prepare::journal::{self, DEFAULT_JOURNAL, NoJournal};
use kontig_live::prepare::{Allowed, Plan, compacting};
use kontig_live::snapshot::host_page_size;
use kontig_live::touch::{Quantiles, Touched, touch};
use kontig_live::trial::{Latency, SCHEMA, Trial, Try};
use kontig_live::{ReadError, Roots};
use kontig_terminal::Ending;
use kontig_terminal::Grid;
use kontig_terminal::number::{MOST, whole};
use kontig_terminal::{width, wrap};
use kontig_text::{grouped, percent, short_size, size};
use std::cmp::Ordering::{Equal, Greater, Less};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Options of `kontig trial`.
#[derive(Args)]
pub struct TrialArgs {
    /// Carry the trial out; without this, only the plan is shown
    #[arg(long, conflicts_with = "of")]
    execute: bool,
    /// GiB of memory to fragment each time; part of it is given back at once
    #[arg(long, value_name = "N", value_parser = crate::age::gib, default_value = "3")]
    gib: u64,
    /// Pattern of the pages to keep (default: each in turn)
    #[arg(long = "pattern", value_name = "PATTERN", value_parser = Pattern::NAMED.map(|(name, _)| name))]
    patterns: Vec<String>,
    /// Tries of each pattern, each with its seed
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<u64>(0..=MOST))]
    tries: u64,
    /// Blocks to ask for beyond those that are there
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = whole::<u64>(1..=MOST))]
    more: u64,
    /// Size of a block
    #[arg(long, value_name = "SIZE", default_value = "2M")]
    block: String,
    /// Also time first touches before and after a preparation of each pattern, while all blocks at
    /// hand are held, which leaves the host 2 GiB
    #[arg(long)]
    touch: bool,
    /// Time after which a preparation stops
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = crate::span::seconds(1))]
    time: u64,
    /// Print JSON (schema kontig.trial/2)
    #[arg(long)]
    json: bool,
    /// Print the tables as Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print the tables of an earlier trial's JSON instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["touch", "patterns"])]
    of: Option<PathBuf>,
    /// File that keeps the values of settings while they are changed
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    #[command(flatten)]
    host: HostArgs,
}

/// The text of --help after the options.
pub const HELP: &str = "Examples:\n  \
    kontig trial                                            what would be done\n  \
    kontig trial --execute                                  five patterns, three tries each: pages and seconds, \
    predicted and counted\n  \
    kontig trial --execute --pattern random --tries 1       one of them\n  \
    kontig trial --execute --gib 6 --tries 0 --touch        what first touches of huge pages take, before and after\n\n\
    Memory of its own is fragmented, then prepared as 'kontig prepare --execute' does: the whole host is compacted, \
    at the highest \
    priority, and settings are changed meanwhile. Clean cache is not dropped. All memory goes back and every \
    setting is restored at the end, even after 'kill -9'.\n\n\
    Exit codes: 0 done, whatever came about; 1 failed while running; 2 asked wrongly; 5 more privilege is needed \
    (root).";

/// The reason why a trial ends early.
enum Aborted {
    Unpermitted(String),
    Failed(Error),
}

impl From<Error> for Aborted {
    fn from(e: Error) -> Aborted {
        Aborted::Failed(e)
    }
}

impl From<ReadError> for Aborted {
    fn from(e: ReadError) -> Aborted {
        match e.is_permission() {
            true => Aborted::Unpermitted(e.to_string()),
            false => failed(e.to_string()),
        }
    }
}

impl From<NoJournal> for Aborted {
    fn from(e: NoJournal) -> Aborted {
        match e.is_permission() {
            true => Aborted::Unpermitted(e.to_string()),
            false => failed(e.to_string()),
        }
    }
}

fn failed(reason: String) -> Aborted {
    Aborted::Failed(Failed::Run { run: "trial".into(), reason }.into())
}

/// Carries out `kontig trial`.
pub fn trial(a: &TrialArgs) -> Result<Ending, Error> {
    if a.tries == 0 && !a.touch && a.of.is_none() {
        let reason = "--tries 0: nothing would be tried; ask for at least 1, or for first touches alone with --touch";
        return Err(AskedWrongly::Value(reason.into()).into());
    }
    if !a.execute && a.of.is_none() {
        if a.json {
            let reason = "--json prints what was tried, and without --execute nothing is: add --execute";
            return Err(AskedWrongly::Value(reason.into()).into());
        }
        return planned(a);
    }
    let trial = match &a.of {
        Some(file) => earlier(file)?,
        None => match of_this_host(a) {
            Ok(trial) => trial,
            Err(Aborted::Unpermitted(why)) => {
                kontig_terminal::say(&why);
                return Ok(Ending::Unpermitted);
            }
            Err(Aborted::Failed(e)) => return Err(e),
        },
    };
    kontig_terminal::print(&if a.json { document(&trial, false) } else { text(&trial, a.markdown) })?;
    Ok(Ending::Done)
}

/// Prints the plan, and does nothing.
fn planned(a: &TrialArgs) -> Result<Ending, Error> {
    let roots = a.host.roots()?;
    let nodes: Vec<u32> = match supply(&roots) {
        Ok(supply) => supply.nodes().collect::<BTreeSet<_>>().into_iter().collect(),
        Err(e) => return not_read("trial", &e),
    };
    let bad = |why: String| Error::from(AskedWrongly::Value(format!("--block: {why}")));
    order(&a.block, host_page_size()).map_err(bad)?;
    let (patterns, blocks) = (a.patterns(), grouped(a.more));
    let mut text = format!(
        "plan (nothing was done; --execute does it): {} times, with the patterns {}\n   take {} of memory, give a \
         part of it back, and prepare {blocks} blocks of {} more than there are; for that\n",
        grouped(a.tries.saturating_mul(patterns.len() as u64)),
        patterns.join(", "),
        size(a.gib),
        a.block
    );
    for step in compacting(&roots, &nodes, true) {
        text += &format!("   {}\n", step.words());
    }
    if a.touch {
        text +=
            "   once for each pattern, hold all blocks at hand, which leaves the host 2 GiB, and time first touches\n";
    }
    // A tree of files may lack what says it.
    if let Some(too_much) = Aged::refused(&roots, a.gib).unwrap_or_default() {
        text += &format!("with --execute it would be refused: {too_much}\n");
    }
    kontig_terminal::print(&fitted(&text))?;
    Ok(Ending::Done)
}

impl TrialArgs {
    fn patterns(&self) -> Vec<String> {
        let all = || Pattern::NAMED.iter().map(|(name, _)| name.to_string()).collect();
        if self.patterns.is_empty() { all() } else { self.patterns.clone() }
    }
}

fn earlier(file: &std::path::Path) -> Result<Trial, Error> {
    let bad = |why: String| Error::from(AskedWrongly::Value(format!("{}: {why}", file.display())));
    let text = kontig_profiles::read_text(&file.display().to_string())?;
    let trial: Trial = serde_json::from_str(&text)
        .map_err(|e| bad(format!("this is not what 'kontig trial --execute --json' prints: {e}")))?;
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

fn of_this_host(a: &TrialArgs) -> Result<Trial, Aborted> {
    let roots = a.host.roots()?;
    let bad = |why: String| Error::from(AskedWrongly::Value(format!("--block: {why}")));
    let stop = Arc::new(AtomicBool::new(false));
    let raised = stop.clone();
    kontig_terminal::interrupt::act(move || raised.store(true, Ordering::Relaxed));
    let of_host = OfHost {
        a,
        order: order(&a.block, host_page_size()).map_err(bad)?,
        journal: a.journal.clone().unwrap_or_else(|| DEFAULT_JOURNAL.into()),
        roots,
        stop,
    };
    journal::check(&of_host.journal)?;
    let mut trial = Trial {
        schema: SCHEMA.into(),
        kernel: of_host.roots.read_proc("sys/kernel/osrelease")?.trim().into(),
        aged_bytes: a.gib,
        more: a.more,
        tries: Vec::new(),
        latencies: Vec::new(),
    };
    for pattern in a.patterns() {
        for seed in 1..=a.tries {
            let aged = of_host.age(&pattern, seed)?;
            let a_try = of_host.prepared(&pattern, seed)?;
            drop(aged);
            kontig_terminal::say(&format!("{pattern}, seed {seed}: {}", said(&a_try)));
            trial.tries.push(a_try);
        }
        if a.touch {
            let latency = of_host.latency(&pattern)?;
            kontig_terminal::say(&format!("{pattern}, first touches: {}", latency.prepared.ended));
            trial.latencies.push(latency);
        }
    }
    Ok(trial)
}

impl OfHost<'_> {
    fn interrupted(&self) -> Result<(), Aborted> {
        let kept = || Failed::Interrupted { kept: "all memory is given back, every setting is as it was".into() };
        if self.stop.load(Ordering::Relaxed) { Err(Aborted::Failed(kept().into())) } else { Ok(()) }
    }

    fn age(&self, pattern: &str, seed: u64) -> Result<Aged, Aborted> {
        let named = Pattern::NAMED.iter().find(|(name, _)| *name == pattern).map(|(_, pattern)| *pattern);
        let named = named.ok_or_else(|| failed(format!("'{pattern}' is no pattern")))?;
        // It is this process's own memory, whatever host is read.
        let aged = Aged::take(&Roots::default(), self.a.gib, named, seed, &self.stop);
        aged.map_err(|e| match e {
            NotAged::TooMuch(_) => Aborted::Failed(AskedWrongly::Value(e.to_string()).into()),
            NotAged::Stopped => self.interrupted().err().unwrap_or_else(|| failed(e.to_string())),
            e => failed(e.to_string()),
        })
    }

    /// Prepares the host for `--more` blocks beyond those that are there.
    fn prepared(&self, pattern: &str, seed: u64) -> Result<Try, Aborted> {
        let _hurry = Hurry::up();
        let page = host_page_size();
        let blocks = at_hand(&self.roots, self.order).map_err(failed)? + self.a.more;
        let needs = vec![format!("{blocks}x{}", short_size(page << self.order))];
        let need = NeedArgs { needs, reserve: false, profile: None };
        // Nobody takes these blocks, so no control group's limit is in their way.
        let found = of_host(&need, &self.roots, Limits::default())??;
        if let Some(e) = found.unpermitted {
            return Err(e.into());
        }
        let texts: Vec<&str> = found.check.needs.iter().map(|asked| asked.need.as_str()).collect();
        let needs = chosen(&need, &texts, page)?;
        let plan = Plan::of(found.check.clone(), (&needs, &found.caller), page, &self.roots, Allowed::default());
        if let Some(lacks) = plan.lacks {
            let blocks = self.a.more;
            return Err(failed(format!(
                "{pattern}: no {blocks} more blocks are predicted: {lacks}; ask for fewer with --more"
            )));
        }
        let time = Duration::from_secs(self.a.time);
        let means = Means { roots: &self.roots, caller: &found.caller, journal: &self.journal, time, stop: &self.stop };
        let receipt = carry_out(plan, &needs, &means)??;
        self.interrupted()?;
        Ok(Try::of(&receipt, pattern, seed))
    }

    /// Times first touches before and after a preparation, while nothing else is at hand. With the
    /// highest priority: others' turns are no wait for a block.
    fn latency(&self, pattern: &str) -> Result<Latency, Aborted> {
        let _aged = self.age(pattern, 1)?;
        let _hurry = Hurry::up();
        let held = Held::all(&self.roots, self.order, host_page_size(), &self.stop)
            .map_err(|e| self.interrupted().err().unwrap_or_else(|| failed(e)))?;
        let before = self.touched()?;
        let prepared = self.prepared(pattern, 1)?;
        let after = self.touched()?;
        Ok(Latency { pattern: pattern.into(), held_bytes: held.bytes(), before, after, prepared })
    }

    /// Times first touches of memory that is given back then.
    fn touched(&self) -> Result<Touched, Aborted> {
        let bytes = self.a.more.min(MOST_TOUCHED) << self.order << host_page_size().ilog2();
        let (touched, _memory) = touch(&self.roots, bytes, false, &self.stop).map_err(|e| failed(e.to_string()))?;
        self.interrupted()?;
        Ok(touched)
    }
}

/// Huge pages touched at most.
const MOST_TOUCHED: u64 = 200;

/// A line about one try.
fn said(t: &Try) -> String {
    let pages = pages(t);
    let off = t.pages_off().map_or(String::new(), |off| format!(" ({} off)", percent(off)));
    format!("{pages} pages predicted / moved{off}, {}: {}", t.need, t.ended)
}

fn pages(t: &Try) -> String {
    let show = |pages: Option<u64>| pages.map_or("–".into(), grouped);
    format!("{} / {}", show(t.predicted.map(|predicted| predicted.pages_moved)), show(t.counted.pages_moved))
}

fn seconds(t: &Try) -> String {
    let show = |seconds: Option<f64>| seconds.map_or("–".into(), |seconds| format!("{seconds:.2}"));
    let predicted = show(t.predicted.map(|cost| cost.seconds));
    let at_most = t.predicted.and_then(|cost| cost.seconds_at_most);
    let at_most = at_most.map_or(String::new(), |seconds| format!(" to {seconds:.1}"));
    format!("{predicted}{at_most} / {} / {}", show(t.counted.cpu_seconds), show(Some(t.counted.seconds)))
}

/// The tables and their summary.
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
        let columns = if markdown { 120 } else { width() };
        text += &format!("{}\n{}", show(&table), wrap("", &summary(trial), 0, columns));
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

const TRIES: [&str; 4] = ["pattern", "pages, predicted / moved", "off", "seconds, predicted / of a CPU / in all"];
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
    vec![quantile(50.0, |q| q.p50), quantile(99.0, |q| q.p99), huge, t.stalls.map_or("–".into(), grouped)]
}

fn micros(seconds: f64) -> String {
    grouped((seconds * 1e6).round() as u64)
}

fn summary(trial: &Trial) -> String {
    let reached = trial.tries.iter().filter(|t| t.reached).count();
    let farthest = trial.tries.iter().filter_map(Try::pages_off).reduce(f64::max);
    let load = trial.loads().map_or(String::new(), |[least, most]| {
        format!(" It was least busy with {}, most busy with {}.", least.words(), most.words())
    });
    let ends = |order| trial.tries.iter().filter(|t| t.in_time() == Some(order)).count();
    format!(
        "Linux {}, {} fragmented each time, {} blocks more than there were.{load} {} of {} tries reached them; \
         pages were predicted within 25 % in {}, the farthest off {}. {} took a time within the range predicted, \
         {} less, {} more.",
        trial.kernel,
        size(trial.aged_bytes),
        grouped(trial.more),
        reached,
        trial.tries.len(),
        trial.within(0.25),
        farthest.map_or("unknown".into(), percent),
        ends(Equal),
        ends(Less),
        ends(Greater)
    )
}
