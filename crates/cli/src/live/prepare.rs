//! `kontig prepare`: blocks made available before something starts.

use super::check::{self, NeedArgs};
use super::host::HostArgs;
use super::snapshot::page_size;
use super::{document, not_read};
use crate::Ending;
use crate::args::MOST;
use crate::number::whole;
use clap::Args;
use kontig_lab::files::{check_writable, write_file};
use kontig_lab::{AskedWrongly, Failed, LabError};
use kontig_live::check::{Verdict, choices};
use kontig_live::need::Need;
use kontig_live::number::{count, percent, size, time};
use kontig_live::prepare::execute::{Orders, execute};
use kontig_live::prepare::got::{Got, HostGot, Watch};
use kontig_live::prepare::guard::{self, Guard};
use kontig_live::prepare::hurry::{self, Hurry};
use kontig_live::prepare::journal::{DEFAULT_JOURNAL, Leftover, NoJournal};
use kontig_live::prepare::{Allowed, Cost, Ended, Plan, Receipt};
use kontig_live::{Host, Roots};
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// `kontig prepare`.
#[derive(Args)]
pub struct PrepareArgs {
    /// What is needed.
    #[command(flatten)]
    need: NeedArgs,
    /// Carry the plan out; without it, it is only shown
    #[arg(long)]
    execute: bool,
    /// Clean cache may be dropped where compaction alone is not enough: what is read again has to be read from disk
    #[arg(long)]
    allow_drop_caches: bool,
    /// Put the blocks into the pools of huge pages, where nobody else takes them. It stays so
    #[arg(long)]
    reserve: bool,
    /// Stop after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = whole::<u64>(1..=MOST))]
    time: u64,
    /// Write the receipt (JSON, schema kontig.prepare/1) to a file
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
    /// Print the receipt instead of a text
    #[arg(long)]
    json: bool,
    /// Where it is kept what settings were, while they are changed
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// A command to run once the needs are met
    #[arg(last = true, value_name = "COMMAND", requires = "execute")]
    command: Vec<String>,
    /// Which host.
    #[command(flatten)]
    host: HostArgs,
}

/// What --help says behind the options.
pub const HELP: &str = "Examples:\n  \
    kontig prepare --need 2000x2M                     what would be done\n  \
    kontig prepare --need 2000x2M --execute --receipt r.json\n  \
    kontig prepare --need 2000x2M --execute --allow-drop-caches -- java -XX:+UseTransparentHugePages -jar x.jar\n  \
    kontig prepare --need 512x2M@0 --reserve --execute\n\n\
    Exit codes: 0 the needs are met; 4 compaction would meet them; 7 only dropping clean cache would; 6 nothing would; \
    9 they were not met in the end, though predicted; 8 it cannot be told on this host; 5 more privilege is needed (root); \
    1 failed while running; 2 asked wrongly. With a command that was run, its own.";

/// Runs `kontig prepare`.
pub fn prepare(a: &PrepareArgs) -> Result<Ending, LabError> {
    let roots = a.host.roots()?;
    a.receipt.as_deref().map_or(Ok(()), check_writable)?;
    // What is predicted is as old as the look at the host is, while others go on.
    let goes_first = a.execute.then(Hurry::up);
    let found = match check::of_host(&a.need, &roots)? {
        Ok(found) => found,
        Err(e) => return not_read("prepare", &e),
    };
    let page_size = page_size();
    let needs =
        chosen(&a.need, &found.check.needs.iter().map(|asked| asked.need.as_str()).collect::<Vec<_>>(), page_size)?;
    let allowed = Allowed { drop_caches: a.allow_drop_caches, reserve: a.reserve };
    let verdict = found.check.verdict;
    let plan = Plan::of(found.check.clone(), &needs, page_size, &roots, allowed);
    if !a.execute || plan.lacks.is_some() {
        let receipt = Receipt { leftover: Leftover::find(a.journal()), ..Receipt::planned(plan) };
        give(a, &receipt)?;
        return Ok(found.ending());
    }
    let stop = Arc::new(AtomicBool::new(false));
    let raised = stop.clone();
    crate::interrupt::act(move || raised.store(true, Ordering::Relaxed));
    let journal = a.journal();
    let means = Means { roots: &roots, journal, time: Duration::from_secs(a.time), stop: &stop };
    let mut receipt = match carry_out(plan, &needs, &means)? {
        Ok(receipt) => receipt,
        Err(e) if e.is_permission() => {
            crate::say(&e.to_string());
            return Ok(Ending::Unpermitted);
        }
        Err(e) => return Err(failed("prepare", e.to_string())),
    };
    drop(goes_first);
    give(a, &receipt)?;
    if stop.load(Ordering::Relaxed) {
        return Err(Failed::Interrupted { kept: "every setting is as it was".into() }.into());
    }
    if receipt.ended == Ended::NotPermitted {
        receipt.done.iter().filter_map(|done| done.failed.as_deref()).for_each(crate::say);
        return Ok(Ending::Unpermitted);
    }
    if !receipt.reached {
        return Ok(Ending::Code(if verdict == Verdict::Met && !a.reserve { 0 } else { 9 }));
    }
    match a.command.split_first() {
        Some((program, args)) => {
            let got = run(program, args, &roots)?;
            let code = got.exit_code;
            crate::say(&told(&got));
            receipt.got = Some(got);
            keep(a, &receipt)?;
            Ok(Ending::Code(code))
        }
        None => Ok(Ending::Done),
    }
}

impl PrepareArgs {
    fn journal(&self) -> &Path {
        self.journal.as_deref().unwrap_or(Path::new(DEFAULT_JOURNAL))
    }
}

/// With what a plan is carried out.
pub(super) struct Means<'a> {
    pub(super) roots: &'a Roots,
    pub(super) journal: &'a Path,
    pub(super) time: Duration,
    pub(super) stop: &'a AtomicBool,
}

/// Carries a plan out. A process of its own writes, another one restores the settings if this one is killed: both are this program.
pub(super) fn carry_out(plan: Plan, needs: &[Need], means: &Means) -> Result<Result<Receipt, NoJournal>, LabError> {
    let program = std::env::current_exe().map_err(|e| failed("prepare", e.to_string()))?;
    let writer = |path: &Path, sync: bool| {
        let args = if sync { &["write-one", "--sync"][..] } else { &["write-one"] };
        Command::new(&program).args(args).arg(path).stdin(Stdio::null()).spawn()
    };
    let Means { roots, journal, time, stop } = *means;
    let orders = Orders { roots, journal, time, stop, writer: &writer };
    let mut restores = Command::new(&program);
    restores.arg("restore-at-end").arg(journal).args([&roots.procfs, &roots.sysfs]);
    let guard = Guard::start(restores);
    let executed = execute(plan, needs, &orders);
    drop(guard);
    Ok(executed)
}

/// The rungs that the check has chosen.
pub(super) fn chosen(need: &NeedArgs, texts: &[&str], page_size: u64) -> Result<Vec<Need>, LabError> {
    let is_it = |needs: &Vec<Need>| needs.iter().map(|n| n.text(page_size)).eq(texts.iter().map(|t| t.to_string()));
    let all = choices(&need.ladders(page_size)?);
    all.into_iter().find(is_it).ok_or_else(|| failed("prepare", "no rung of the ladder was chosen".into()))
}

fn failed(run: &str, reason: String) -> LabError {
    Failed::Run { run: run.into(), reason }.into()
}

/// Prints the receipt, and writes it where it is wanted.
fn give(a: &PrepareArgs, receipt: &Receipt) -> Result<(), LabError> {
    keep(a, receipt)?;
    crate::print(&if a.json { document(receipt, false) } else { text(receipt) })
}

/// Writes the receipt where it is wanted.
fn keep(a: &PrepareArgs, receipt: &Receipt) -> Result<(), LabError> {
    a.receipt.as_ref().map_or(Ok(()), |path| write_file(path, document(receipt, false).as_bytes()))
}

fn text(r: &Receipt) -> String {
    let mut text = check::text(&r.plan.check);
    for setting in &r.recovered {
        text.push_str(&format!("restored {}, as an earlier run was killed\n", setting.path.display()));
    }
    if !r.executed {
        if let Some(leftover) = &r.leftover {
            text.push_str(&format!("{}\n", leftover.words()));
        }
        match r.plan.lacks {
            Some(lacks) => text.push_str(&format!("nothing would be done: {lacks}\n")),
            None if r.plan.steps.is_empty() => text.push_str("nothing is to be done\n"),
            None => text.push_str("plan (nothing was done; --execute does it):\n"),
        }
        r.plan.steps.iter().for_each(|step| text.push_str(&format!("   {}\n", step.words())));
        return text;
    }
    for done in &r.done {
        let early = if done.ended_early { ", ended as soon as it was enough" } else { "" };
        let failed = done.failed.as_ref().map_or(String::new(), |why| format!(": FAILED: {why}"));
        text.push_str(&format!("done: {}{early}: {}{failed}\n", done.step.words(), cost(&done.cost)));
    }
    if let Some((p, real)) = r.predicted.as_ref().zip(r.real.as_ref()) {
        let predicted =
            format!("{} pages moved in {}", count(p.pages_moved), check::range(p.seconds, p.seconds_at_most));
        text.push_str(&format!("predicted: {predicted}; it took: {}\n", cost(real)));
    }
    for after in r.after.iter().flatten() {
        let blocks = after.blocks.map_or("?".into(), count);
        text.push_str(&format!("{}: {blocks} of {} there now\n", after.need, count(after.needed)));
    }
    for setting in &r.restored {
        text.push_str(&format!("restored {} to {}\n", setting.path.display(), setting.was));
    }
    text.push_str(&format!("=> {}\n", if r.reached { Ended::Reached.words() } else { r.ended.words() }));
    text
}

fn cost(c: &Cost) -> String {
    let cache = c.cache_bytes.map_or(String::new(), |[before, after]| {
        format!(", page cache {} before and {} afterwards", size(before), size(after))
    });
    format!("{} pages moved in {}{cache}", c.pages_moved.map_or("?".into(), count), time(c.seconds))
}

/// Runs the command, and looks at what it gets.
fn run(program: &str, args: &[String], roots: &Roots) -> Result<Got, LabError> {
    let before = Host::read(roots);
    let began = Instant::now();
    let mut child = Command::new(program).args(args).spawn().map_err(|e| failed(program, e.to_string()))?;
    let pid = child.id();
    crate::interrupt::act(move || kontig_live::prepare::terminate(pid));
    let mut watch = Watch::of(roots, pid);
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|e| failed(program, e.to_string()))? {
            break status;
        }
        watch.look();
        std::thread::sleep(BETWEEN_LOOKS);
    };
    let after = Host::read(roots);
    let counted = |name: &str| Some(after.counter(name)?.saturating_sub(before.counter(name)?));
    let (most, looks) = watch.seen();
    Ok(Got {
        program: program.into(),
        seconds: began.elapsed().as_secs_f64(),
        exit_code: exit_code(status),
        resident_bytes: most.map(|(resident, _)| resident),
        huge_bytes: most.map(|(_, huge)| huge),
        looks,
        of_host: HostGot {
            given: counted("thp_fault_alloc"),
            refused: counted("thp_fault_fallback"),
            waited: counted("compact_stall"),
        },
    })
}

/// What a command got, in words.
fn told(got: &Got) -> String {
    let program = &got.program;
    let own = match got.huge_bytes.zip(got.resident_bytes) {
        Some((huge, resident)) => {
            let share = percent(huge as f64 / resident.max(1) as f64);
            format!(
                "{program} had {} of its {} in huge pages ({share}) when it had the most",
                size(huge),
                size(resident)
            )
        }
        None => format!("{program} ended before it was looked at"),
    };
    let show = |number: Option<u64>| number.map_or("?".into(), count);
    let HostGot { given, refused, waited } = got.of_host;
    format!(
        "{own}; on the whole host meanwhile: {} huge pages given at the first touch, {} refused, {} requests waited for compaction",
        show(given),
        show(refused),
        show(waited)
    )
}

/// Between two looks at whether the command is over.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// The exit code a shell would have: 128 and the signal's number after a signal.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Waits for the end of the process that prepares the host, and restores what it has left, if it was killed.
pub fn restore_at_end(journal: &Path, procfs: PathBuf, sysfs: PathBuf) -> Result<Ending, LabError> {
    let restored = guard::restore_at_end(std::io::stdin(), journal, &Roots { procfs, sysfs });
    let restored = restored.map_err(|e| failed("prepare", e.to_string()))?;
    for setting in restored {
        crate::say(&format!("restored {} to {}, as 'prepare' was killed", setting.path.display(), setting.was));
    }
    Ok(Ending::Done)
}

/// Writes 1 to a file, once dirty pages are on disk where that is wanted.
pub fn write_one(path: &Path, sync: bool) -> Result<Ending, LabError> {
    kontig_live::prepare::end_with_parent();
    hurry::before_all_sessions();
    if sync {
        kontig_live::prepare::sync();
    }
    match std::fs::write(path, "1") {
        Ok(()) => Ok(Ending::Done),
        // Who has started this says so.
        Err(e) if matches!(e.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
            Ok(Ending::Unpermitted)
        }
        Err(e) => Err(AskedWrongly::Value(format!("{}: {e}", path.display())).into()),
    }
}
