//! `kontig explain`: what is wrong with a host, why, and what to do about it.

use crate::answer::{document, not_read};
use crate::history::{HistoryArgs, Past};
use crate::roots::HostArgs;
use clap::Args;
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_live::cgroup::Limit;
use kontig_live::explain::facts::{self, HostFacts};
use kontig_live::explain::rule::{self, BadRules, Rule, Severity};
use kontig_live::explain::{Explanation, Finding};
use kontig_live::prepare::journal::{DEFAULT_JOURNAL, Leftover};
use kontig_live::snapshot::host_page_size;
use kontig_live::{Host, ReadError, Roots, Snapshot, Status};
use kontig_terminal::Ending;
use kontig_terminal::wrap;
use kontig_text::time;
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Options of `kontig explain`.
#[derive(Args)]
pub struct ExplainArgs {
    /// Seconds to wait, for rates over them instead of since boot
    #[arg(long, value_name = "TIME", value_parser = crate::status::interval())]
    interval: Option<Duration>,
    /// Judge by rules of your own instead of the built-in ones
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Show the conditions that hold, and the rules that do not hold here, too
    #[arg(long)]
    all: bool,
    /// Try the recommended settings in the laboratory, on a snapshot of this host (root): before
    /// and after, side by side
    #[arg(long)]
    simulate: bool,
    #[command(flatten)]
    history: HistoryArgs,
    /// Print one JSON document (schema kontig.explain/1)
    #[arg(long)]
    json: bool,
    /// Journal of 'prepare': one that a killed run left is named
    #[arg(long, value_name = "FILE", default_value = DEFAULT_JOURNAL)]
    journal: PathBuf,
    #[command(flatten)]
    host: HostArgs,
}

/// The text of --help after the options.
pub const HELP: &str = "Examples:\n  \
    kontig explain\n  \
    kontig explain --interval 60          by what happens in a minute\n  \
    kontig explain --json --rules my.toml\n  \
    kontig explain --history host.history --at -3h\n  \
    kontig explain --simulate             what the recommended settings would change, in a simulation\n\n\
    It changes nothing: it prints what to do, and what undoes it.\n\
    Exit codes: 0 done, whatever was found; 1 failed while running; 2 asked wrongly; 5 more privilege is needed.";

/// The laboratory, as far as `--simulate` asks it.
pub trait Laboratory {
    /// The outcome, as a document.
    type Simulation: Serialize;

    /// Tries what the findings recommend on a snapshot of the host, which has this limit.
    ///
    /// # Errors
    /// If the host cannot be simulated, or the simulation fails.
    fn simulate(
        &self,
        findings: &[Finding],
        snapshot: Snapshot,
        limit: Option<&Limit>,
    ) -> Result<Self::Simulation, Error>;

    /// The outcome, as a text for this number of columns.
    fn text(&self, simulation: &Self::Simulation, width: usize) -> String;
}

/// The laboratory of a program that has none.
pub enum NoLaboratory {}

impl Laboratory for NoLaboratory {
    type Simulation = ();

    fn simulate(&self, _: &[Finding], _: Snapshot, _: Option<&Limit>) -> Result<(), Error> {
        match *self {}
    }

    fn text(&self, (): &(), _: usize) -> String {
        match *self {}
    }
}

/// The command line of a program without a laboratory: it does not name `--simulate`.
pub fn without_laboratory(explain: clap::Command) -> clap::Command {
    let help: Vec<&str> = HELP.lines().filter(|line| !line.contains("--simulate")).collect();
    explain.mut_arg("simulate", |simulate| simulate.hide(true)).after_help(help.join("\n"))
}

/// Carries out `kontig explain`.
pub fn explain<L: Laboratory>(a: &ExplainArgs, laboratory: Option<&L>) -> Result<Ending, Error> {
    let laboratory = match (a.simulate, laboratory) {
        (false, _) => None,
        (true, Some(laboratory)) => Some(laboratory),
        (true, None) => {
            let reason = "--simulate: this program has no laboratory; 'kontig explain --simulate' has one";
            return Err(AskedWrongly::Value(reason.into()).into());
        }
    };
    let past = a.history.moment()?;
    let roots = match &past {
        Some(past) => past.tree.roots.clone(),
        None => a.host.roots()?,
    };
    let rules = match &a.rules {
        None => rule::parse(rule::RULES).map_err(|e| Failed::Run { run: "explain".into(), reason: e.to_string() })?,
        Some(file) => own_rules(&file.display().to_string(), &Host::read(&roots))?,
    };
    let before = match (a.interval, &past) {
        (None, _) => None,
        (Some(interval), Some(past)) => Some(past.earlier(interval)?),
        (Some(interval), None) => {
            let (host, at) = (Host::read(&roots), Instant::now());
            std::thread::sleep(interval);
            Some((host, at.elapsed().as_secs_f64()))
        }
    };
    let host = Host::read(&roots);
    let since = before.as_ref().map(|(host, seconds)| (host, *seconds));
    let status = match Status::of(&host, None, since) {
        Ok(status) => status,
        Err(e) => return past.map_or_else(|| not_read("explain", &e), |past| Err(past.error(&e))),
    };
    let facts = HostFacts::of(&host, &status, since);
    let e = Explanation::of(&rules, &facts, status.kernel.as_deref(), since.map(|(_, seconds)| seconds));
    let width = kontig_terminal::columns().unwrap_or(100).min(100);
    // A journal is this host's, now.
    let leftover = Leftover::find(&a.journal).filter(|_| past.is_none());
    if !a.json {
        let left = leftover.as_ref().map_or(String::new(), |left| wrap("", &left.words(), 2, width) + "\n");
        kontig_terminal::print(&(left + &text(&e, a.all, width)))?;
    }
    let tried = match laboratory {
        None => None,
        Some(laboratory) => match frames(past.as_ref(), &roots)? {
            Ok(snapshot) => {
                let limit = host.limits.memory.as_ref();
                Some((laboratory, laboratory.simulate(&e.findings, snapshot, limit)?))
            }
            Err(e) => return not_read("explain", &e),
        },
    };
    if a.json {
        let simulation = tried.as_ref().map(|(_, simulation)| simulation);
        kontig_terminal::print(&document(&Document { explanation: &e, leftover, simulation }, false))?;
    } else if let Some((laboratory, simulation)) = tried {
        kontig_terminal::print(&laboratory.text(&simulation, width))?;
    }
    Ok(Ending::Done)
}

/// The use of every frame: now, or as it was recorded before the moment.
fn frames(past: Option<&Past>, roots: &Roots) -> Result<Result<Snapshot, ReadError>, Error> {
    match past {
        None => Ok(Snapshot::take(roots, host_page_size())),
        Some(past) => past.snapshot()?.map(|(_, snapshot)| Ok(snapshot)).ok_or_else(|| past.no_snapshot()),
    }
}

/// The rules of a user's file, all of whose facts must be known.
fn own_rules(path: &str, host: &Host) -> Result<Vec<Rule>, Error> {
    let text = kontig_profiles::read_text(path)?;
    let bad = |e: BadRules| Error::from(AskedWrongly::Malformed { path: path.into(), line: e.line, reason: e.reason });
    let rules = rule::parse(&text).map_err(bad)?;
    rule::check_facts(&rules, &text, &facts::names(host)).map_err(bad)?;
    Ok(rules)
}

/// The JSON: what the host's rules say, and the simulation if it was asked for.
#[derive(Serialize)]
struct Document<'a, S> {
    #[serde(flatten)]
    explanation: &'a Explanation,
    leftover: Option<Leftover>,
    simulation: Option<&'a S>,
}

fn text(e: &Explanation, all: bool, width: usize) -> String {
    let kernel = e.kernel.as_deref().unwrap_or("of unknown release");
    let rates = e.interval_s.map_or("rates since boot".into(), |s| format!("rates over {}", time(s)));
    let judged = e.findings.len() + e.fine.len();
    let mut text = wrap("", &format!("Linux {kernel}: {judged} rules judged, {rates}"), 0, width);
    for (severity, title) in
        [(Severity::Act, "To be mended"), (Severity::Know, "To be known"), (Severity::Good, "As it should be")]
    {
        let of_this: Vec<&Finding> = e.findings.iter().filter(|f| f.severity == severity).collect();
        if !of_this.is_empty() {
            text += &format!("\n{title}\n");
        }
        text += &of_this.iter().map(|f| finding(f, all, width)).collect::<Vec<_>>().join("\n");
    }
    if e.findings.is_empty() {
        text += "\nNothing was found.\n";
    }
    if !e.undecided.is_empty() {
        text += "\nNot decided\n";
        for rule in &e.undecided {
            text += &wrap(&format!("  {}: ", rule.id), &format!("lacks {}", rule.lacks.join(", ")), 4, width);
        }
    }
    if all {
        for (title, rules) in [("Not so here", &e.fine), ("About other kernels", &e.other_kernels)] {
            if !rules.is_empty() {
                text += &format!("\n{title}\n");
                text += &wrap("  ", &rules.join(", "), 2, width);
            }
        }
    }
    text
}

fn finding(f: &Finding, all: bool, width: usize) -> String {
    let mut text = wrap("  ", &f.title, 2, width);
    text += &wrap("    ", &f.reason, 4, width);
    let lines = [
        ("do", Some(&f.r#do)),
        ("undo", f.undo.as_ref()),
        ("cost", f.cost.as_ref()),
        ("because", Some(&f.because.join("; ")).filter(|_| all)),
        ("kernels", Some(&format!("{}, see {}", f.kernels, f.source))),
    ]
    .map(|(name, line)| {
        line.map_or(String::new(), |line| wrap(&format!("    {:<9}", format!("{name}:")), line, 13, width))
    });
    text += &lines.concat();
    text
}
