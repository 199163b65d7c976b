//! `kontig prepare`: makes blocks available before a program starts.

use crate::answer::{document, fitted};
use crate::check::{self, NeedArgs};
use crate::command::{NOT_STARTED, exit_code, start};
use crate::roots::HostArgs;
use clap::Args;
use kontig_error::files::{check_distinct, check_writable, write_file};
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_live::caller::Caller;
use kontig_live::cgroup::Limits;
use kontig_live::check::choices;
use kontig_live::need::Need;
use kontig_live::prepare::execute::execute;
use kontig_live::prepare::execution::Execution;
use kontig_live::prepare::got::{Got, HostGot, Watch};
use kontig_live::prepare::hurry::{self, Hurry};
use kontig_live::prepare::journal::{self, DEFAULT_JOURNAL, Leftover, NoJournal};
use kontig_live::prepare::restorer::{self, Restorer};
use kontig_live::prepare::{Allowed, Cost, Ended, Plan, PlanStep, Receipt};
use kontig_live::snapshot::host_page_size;
use kontig_live::{Host, Roots};
use kontig_terminal::Ending;
use kontig_text::{grouped, percent, size, time};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Options of `kontig prepare`.
#[derive(Args)]
pub struct PrepareArgs {
    #[command(flatten)]
    need: NeedArgs,
    /// Carry the plan out; without this, it is only shown
    #[arg(long)]
    execute: bool,
    /// Drop clean cache where compaction alone is not enough: files have to be read from disk again
    #[arg(long)]
    allow_drop_caches: bool,
    /// Time after which it stops; also the limit on waiting for another 'prepare'
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = crate::span::seconds(1))]
    time: u64,
    /// Write the receipt (JSON, schema kontig.prepare/2) to a file
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
    /// Print the receipt instead of a text; not with a COMMAND, whose output would be mixed with it
    #[arg(long)]
    json: bool,
    /// File that keeps the values of settings while they are changed
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Go on even if the needs are not met: run COMMAND, or end with exit code 0. The verdict is on
    /// standard error and in the receipt. A mistake in the options still fails
    #[arg(long)]
    start_anyway: bool,
    /// Command to run once the needs are met
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    host: HostArgs,
}

/// The text of --help after the options.
pub const HELP: &str = "Examples:\n  \
    kontig prepare --need 2000x2M                     what would be done\n  \
    kontig prepare --need 2000x2M --execute --receipt r.json\n  \
    kontig prepare --need 2000x2M --execute --allow-drop-caches -- java -XX:+UseTransparentHugePages -jar x.jar\n  \
    kontig prepare --need 512x2M@0 --reserve --execute\n  \
    kontig prepare --need 2000x2M --execute --start-anyway -- ./server\n\n\
    Exit codes: 0 the needs are met; 4 compaction would meet them; 7 only dropping clean cache would; 6 nothing would; \
    9 they were not met in the end, though predicted; 8 it cannot be told on this host; 5 more privilege is needed \
    (root); 1 failed while running; 2 asked wrongly.\n\
    With a command: its own exit code, 128 and the signal's number if a signal ended it; 125 if it was not started, \
    126 if it cannot be run, 127 if it is not found.";

/// Runs `kontig prepare`, and the command behind it.
pub fn prepare(a: &PrepareArgs) -> Result<Ending, Error> {
    if let Some(reason) = contradiction(a) {
        let Some(program) = a.command.first() else { return Err(AskedWrongly::Value(reason.into()).into()) };
        kontig_terminal::say(&format!("{program} was not started: {reason}"));
        return Ok(Ending::Code(NOT_STARTED));
    }
    let prepared = match prepare_host(a) {
        // The user has stopped it, or the options are wrong.
        Err(e @ (Error::Failed(Failed::Interrupted { .. }) | Error::Asked(_))) => Err(e),
        Err(e) if a.start_anyway => {
            kontig_terminal::say(&e.to_string());
            Ok(Prepared {
                receipt: None,
                unmet: Some(Unmet { code: e.exit_code(), why: "the preparation failed".into() }),
            })
        }
        prepared => prepared,
    };
    let Some((program, args)) = a.command.split_first() else {
        return Ok(match prepared?.unmet {
            Some(unmet) if a.start_anyway => {
                kontig_terminal::say(&format!("prepare: {}: goes on anyway", unmet.why));
                Ending::Done
            }
            Some(unmet) => Ending::Code(unmet.code),
            None => Ending::Done,
        });
    };
    let not_started = |why: &str| {
        kontig_terminal::say(&format!("{program} was not started: {why}"));
        Ok(Ending::Code(NOT_STARTED))
    };
    match prepared {
        Err(e) => not_started(&e.to_string()),
        Ok(Prepared { unmet: Some(unmet), .. }) if !a.start_anyway => not_started(&unmet.why),
        Ok(Prepared { receipt, unmet }) => {
            if let Some(unmet) = unmet {
                kontig_terminal::say(&format!("prepare: {}: {program} is started anyway", unmet.why));
            }
            Ok(Ending::Code(run(a, program, args, receipt)))
        }
    }
}

/// Two options that cannot be had together, or one that needs another.
fn contradiction(a: &PrepareArgs) -> Option<&'static str> {
    match (a.command.is_empty(), a.execute) {
        (false, false) => Some("without --execute no block is made for it: add --execute, or leave the command out"),
        (true, false) if a.start_anyway => {
            Some("--start-anyway goes on after a preparation, and without --execute there is none: add --execute")
        }
        (false, true) if a.json => {
            Some("--json would be mixed with its output: write the receipt to a file with --receipt FILE instead")
        }
        _ => None,
    }
}

/// The end of the preparation of a host.
struct Prepared {
    /// `None` where there is no plan.
    receipt: Option<Receipt>,
    /// `None` where the needs are met.
    unmet: Option<Unmet>,
}

/// The reason why needs are not met.
struct Unmet {
    /// The exit code of `kontig prepare` without a command.
    code: u8,
    why: String,
}

impl Prepared {
    fn unmet(receipt: Option<Receipt>, code: u8) -> Prepared {
        let why = match (code, receipt.as_ref().and_then(|receipt| receipt.plan.lacks)) {
            (5, _) => "more privilege is needed".into(),
            (_, Some(lacks)) => lacks.into(),
            _ => "the needs are not met".into(),
        };
        Prepared { receipt, unmet: Some(Unmet { code, why }) }
    }
}

/// Prepares the host once no other process does.
fn prepare_host(a: &PrepareArgs) -> Result<Prepared, Error> {
    let roots = a.host.roots()?;
    a.receipt.as_deref().map_or(Ok(()), check_receipt)?;
    check_distinct(&[("--receipt", a.receipt.as_deref()), ("--journal", a.journal.as_deref())])?;
    // A plan needs no permission to write.
    if let Some(Err(e)) = a.journal.as_deref().map(journal::check).filter(|check| !is_permission(check)) {
        return Err(failed("prepare", e.to_string()));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let waits_until = Instant::now() + Duration::from_secs(a.time);
    loop {
        if a.execute {
            wait_for_others(a, waits_until, &stop)?;
        }
        match prepare_alone(a, &roots, &stop)? {
            Ok(prepared) => return Ok(prepared),
            // It began since this one looked, so the look is old.
            Err(NoJournal::Busy(_)) if Instant::now() < waits_until => {}
            Err(e) if e.is_permission() => {
                kontig_terminal::say(&e.to_string());
                return Ok(Prepared::unmet(None, UNPERMITTED));
            }
            Err(e) => return Err(failed("prepare", e.to_string())),
        }
    }
}

fn is_permission(check: &Result<(), NoJournal>) -> bool {
    check.as_ref().is_err_and(NoJournal::is_permission)
}

/// Refuses a receipt that is no regular file: a pipe without a reader would block after the work.
fn check_receipt(path: &Path) -> Result<(), Error> {
    if path.metadata().is_ok_and(|about| !about.is_file() && !about.is_dir()) {
        let reason = "this is no regular file".into();
        return Err(Failed::Write { path: path.display().to_string(), reason }.into());
    }
    check_writable(path)
}

/// Waits until no other process prepares the host: its changed settings would be taken for the
/// host's own, and its blocks can be counted once it is through.
fn wait_for_others(a: &PrepareArgs, until: Instant, stop: &AtomicBool) -> Result<(), Error> {
    let mut said = false;
    while let Some(other) = Leftover::find(a.journal()).filter(|other| other.at_work) {
        let pid = other.pid.unwrap_or_default();
        if stop.load(Ordering::Relaxed) {
            return Err(Failed::Interrupted { kept: "every setting is as it was".into() }.into());
        }
        if Instant::now() >= until {
            let reason = format!("process {pid} is still preparing this host after {} s (--time)", a.time);
            return Err(failed("prepare", reason));
        }
        if !said {
            kontig_terminal::say(&format!("process {pid} is preparing this host: waiting for it to end"));
            said = true;
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
    Ok(())
}

/// Looks at the host, carries the plan out if allowed, and prints the receipt. The inner error is
/// the journal's.
fn prepare_alone(a: &PrepareArgs, roots: &Roots, stop: &Arc<AtomicBool>) -> Result<Result<Prepared, NoJournal>, Error> {
    // A prediction gets old while others go on.
    let goes_first = a.execute.then(Hurry::up);
    let found = match check::of_host(&a.need, roots, Limits::read(roots))? {
        Ok(found) => found,
        Err(e) if e.is_permission() => {
            kontig_terminal::say(&e.to_string());
            return Ok(Ok(Prepared::unmet(None, UNPERMITTED)));
        }
        Err(e) => return Err(failed("prepare", e.to_string())),
    };
    let page_size = host_page_size();
    let needs =
        chosen(&a.need, &found.check.needs.iter().map(|asked| asked.need.as_str()).collect::<Vec<_>>(), page_size)?;
    let allowed = Allowed { drop_caches: a.allow_drop_caches };
    let plan = Plan::of(found.check.clone(), (&needs, &found.caller), page_size, roots, allowed);
    if !a.execute || plan.lacks.is_some() {
        let receipt = Receipt { leftover: Leftover::find(a.journal()), ..Receipt::planned(plan) };
        give(a, &receipt)?;
        let code = match found.ending() {
            Ending::Unpermitted => UNPERMITTED,
            Ending::Code(code) => code,
            Ending::Done => 0,
            Ending::Different => unreachable!("a check compares nothing"),
        };
        return Ok(Ok(match code {
            0 => Prepared { receipt: Some(receipt), unmet: None },
            code => Prepared::unmet(Some(receipt), code),
        }));
    }
    let raised = stop.clone();
    kontig_terminal::interrupt::act(move || raised.store(true, Ordering::Relaxed));
    let means = Means { roots, caller: &found.caller, journal: a.journal(), time: Duration::from_secs(a.time), stop };
    let receipt = match carry_out(plan, &needs, &means)? {
        Ok(receipt) => receipt,
        Err(e) => return Ok(Err(e)),
    };
    drop(goes_first);
    give(a, &receipt)?;
    if stop.load(Ordering::Relaxed) {
        return Err(Failed::Interrupted { kept: "every setting is as it was".into() }.into());
    }
    if receipt.ended == Ended::NotPermitted {
        receipt.done.iter().filter_map(|done| done.failed.as_deref()).for_each(kontig_terminal::say);
        return Ok(Ok(Prepared::unmet(Some(receipt), UNPERMITTED)));
    }
    Ok(Ok(match receipt.reached {
        true => Prepared { receipt: Some(receipt), unmet: None },
        false => Prepared::unmet(Some(receipt), NOT_MET_IN_THE_END),
    }))
}

impl PrepareArgs {
    fn journal(&self) -> &Path {
        self.journal.as_deref().unwrap_or(Path::new(DEFAULT_JOURNAL))
    }
}

/// Exit codes of `kontig prepare` that a check does not have.
const UNPERMITTED: u8 = 5;
const NOT_MET_IN_THE_END: u8 = 9;

/// Arguments of [`carry_out`] beside the plan.
pub(crate) struct Means<'a> {
    pub(crate) roots: &'a Roots,
    pub(crate) caller: &'a Caller,
    pub(crate) journal: &'a Path,
    pub(crate) time: Duration,
    pub(crate) stop: &'a AtomicBool,
}

/// Carries a plan out. One child writes, another restores the settings if this process is killed:
/// both are this program.
pub(crate) fn carry_out(plan: Plan, needs: &[Need], means: &Means) -> Result<Result<Receipt, NoJournal>, Error> {
    let program = std::env::current_exe().map_err(|e| failed("prepare", e.to_string()))?;
    let writer = |path: &Path, sync: bool| {
        let args = if sync { &["write-one", "--first", "--sync"][..] } else { &["write-one", "--first"] };
        Command::new(&program).args(args).arg(path).stdin(Stdio::null()).spawn()
    };
    let Means { roots, caller, journal, time, stop } = *means;
    let execution = Execution { roots, caller, journal, time, stop, writer: &writer };
    let mut restores = Command::new(&program);
    restores.arg("restore-at-end").arg(journal).args([&roots.procfs, &roots.sysfs]);
    let restorer = Restorer::start(restores);
    let executed = execute(plan, needs, &execution);
    drop(restorer);
    Ok(executed)
}

/// The rungs that the check chose.
pub(crate) fn chosen(need: &NeedArgs, texts: &[&str], page_size: u64) -> Result<Vec<Need>, Error> {
    let is_it = |needs: &Vec<Need>| needs.iter().map(|n| n.text(page_size)).eq(texts.iter().map(|t| t.to_string()));
    let all = choices(&need.ladders(page_size)?);
    all.into_iter().find(is_it).ok_or_else(|| failed("prepare", "no rung of the ladder was chosen".into()))
}

fn failed(run: &str, reason: String) -> Error {
    Failed::Run { run: run.into(), reason }.into()
}

/// Prints the receipt, and writes it to the file if there is one.
fn give(a: &PrepareArgs, receipt: &Receipt) -> Result<(), Error> {
    keep(a, receipt)?;
    kontig_terminal::print(&if a.json { document(receipt, false) } else { text(receipt) })
}

/// Writes the receipt to the file if there is one.
fn keep(a: &PrepareArgs, receipt: &Receipt) -> Result<(), Error> {
    a.receipt.as_ref().map_or(Ok(()), |path| write_file(path, document(receipt, false).as_bytes()))
}

fn text(r: &Receipt) -> String {
    let mut text = check::text(&r.plan.check);
    for setting in &r.recovered {
        text.push_str(&format!("an earlier run was killed: {}\n", setting.words()));
    }
    if !r.executed {
        if let Some(leftover) = &r.leftover {
            text.push_str(&format!("{}\n", leftover.words()));
        }
        match r.plan.lacks {
            Some(lacks) => text.push_str(&format!("nothing would be done: {lacks}\n")),
            None if r.plan.steps.is_empty() => text.push_str("there is nothing to do\n"),
            None => text.push_str("plan (nothing was done; --execute does it):\n"),
        }
        r.plan.steps.iter().for_each(|step| text.push_str(&format!("   {}\n", step.words())));
        return fitted(&text);
    }
    for done in &r.done {
        let early = if done.ended_early { ", ended as soon as it was enough" } else { "" };
        let failed = done.failed.as_ref().map_or(String::new(), |why| format!(": FAILED: {why}"));
        text.push_str(&format!("done: {}{early}: {}{failed}\n", done.step.words(), cost(&done.cost)));
    }
    if let Some((p, real)) = r.predicted.as_ref().zip(r.real.as_ref()) {
        let predicted =
            format!("{} pages moved in {}", grouped(p.pages_moved), check::range(p.seconds, p.seconds_at_most));
        text.push_str(&format!("predicted: {predicted}; it took: {}\n", cost(real)));
    }
    for after in r.after.iter().flatten() {
        let blocks = after.blocks.map_or("?".into(), grouped);
        text.push_str(&format!("{}: {blocks} of {} there now\n", after.need, grouped(after.needed)));
    }
    for setting in &r.restored {
        text.push_str(&format!("{}\n", setting.words()));
    }
    // A command is copied as one line.
    let give_back = r.give_back.as_ref().map_or(String::new(), |command| {
        let filled = r.done.iter().any(|done| matches!(done.step, PlanStep::Reserve { .. }));
        format!("to give the pools' {} pages back:\n   {command}\n", if filled { "new" } else { "free" })
    });
    let ended = if r.reached { Ended::Reached } else { r.ended };
    format!("{}{give_back}=> {}\n", fitted(&text), ended.words())
}

fn cost(c: &Cost) -> String {
    let cache = c.cache_bytes.map_or(String::new(), |[before, after]| {
        format!(", page cache {} before and {} afterwards", size(before), size(after))
    });
    format!("{} pages moved in {}{cache}", c.pages_moved.map_or("?".into(), grouped), time(c.seconds))
}

/// Runs the command, watches its huge pages, and adds them to the receipt. Returns the exit code.
fn run(a: &PrepareArgs, program: &str, args: &[String], receipt: Option<Receipt>) -> u8 {
    // They were there at the first look.
    let roots = a.host.roots().unwrap_or_default();
    let before = Host::read(&roots);
    let began = Instant::now();
    let mut child = match start(program, args) {
        Ok(child) => child,
        Err(code) => return code,
    };
    let pid = child.id();
    kontig_terminal::interrupt::act(move || kontig_live::prepare::terminate(pid));
    let mut watch = Watch::of(&roots, pid);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => watch.look(),
            Err(e) => {
                kontig_terminal::say(&format!("{program}: its end is not known: {e}"));
                return 1;
            }
        }
        std::thread::sleep(BETWEEN_LOOKS);
    };
    let after = Host::read(&roots);
    let counted = |name: &str| Some(after.counter(name)?.saturating_sub(before.counter(name)?));
    let (most, looks) = watch.seen();
    let got = Got {
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
    };
    kontig_terminal::say(&told(&got));
    let code = got.exit_code;
    if let Some(receipt) = receipt {
        // The command is over, and its exit code counts.
        let kept = keep(a, &Receipt { got: Some(got), ..receipt });
        kept.unwrap_or_else(|e| kontig_terminal::say(&e.to_string()));
    }
    code
}

/// A sentence on the huge pages of a command.
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
    let show = |number: Option<u64>| number.map_or("?".into(), grouped);
    let HostGot { given, refused, waited } = got.of_host;
    format!(
        "{own}; on the whole host meanwhile: {} huge pages given at the first touch, {} refused, {} requests waited \
         for compaction",
        show(given),
        show(refused),
        show(waited)
    )
}

/// Time between two looks at another process.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Waits for the end of the preparing process, and restores its settings if it was killed.
pub fn restore_at_end(journal: &Path, procfs: PathBuf, sysfs: PathBuf) -> Result<Ending, Error> {
    let restored = restorer::restore_at_end(std::io::stdin(), journal, &Roots { procfs, sysfs });
    let restored = restored.map_err(|e| failed("prepare", e.to_string()))?;
    for setting in restored {
        kontig_terminal::say(&format!("the process that had changed it was killed: {}", setting.words()));
    }
    Ok(Ending::Done)
}

/// Writes 1 to a file; with `sync`, once dirty pages are on disk, and with `first`, before all
/// other processes.
pub fn write_one(path: &Path, sync: bool, first: bool) -> Result<Ending, Error> {
    kontig_live::prepare::end_with_parent();
    if first {
        hurry::before_all_sessions();
    }
    if sync {
        kontig_live::prepare::sync();
    }
    match std::fs::write(path, "1") {
        Ok(()) => Ok(Ending::Done),
        // The parent prints that.
        Err(e) if matches!(e.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
            Ok(Ending::Unpermitted)
        }
        Err(e) => Err(AskedWrongly::Value(format!("{}: {e}", path.display())).into()),
    }
}
