//! `kontig guard`: keeps blocks at hand, for as long as it runs.

mod log;
mod policy;
mod replay;

use crate::answer::not_read;
use crate::roots::HostArgs;
use crate::rules::profile;
use clap::{Args, Subcommand};
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_live::guard::daemon::{Means, Mode, is_at_work, watch};
use kontig_live::guard::diagnose::by_frames;
use kontig_live::guard::drive::{Drive, JOURNAL};
use kontig_live::guard::event::Event;
use kontig_live::guard::hold::{DEFAULT_DIR, Hold};
use kontig_live::guard::policy::ForHost;
use kontig_live::prepare::execution::supply;
use kontig_live::snapshot::host_page_size;
use kontig_live::{ReadError, Roots};
use kontig_terminal::number::{MOST, whole};
use kontig_terminal::{Ending, print_while_read, say};
use policy::PolicyArgs;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Options of `kontig guard`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub struct GuardArgs {
    #[command(subcommand)]
    command: Option<GuardCommand>,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Compact; without this, only say when it would, and what that would gain
    #[arg(long)]
    execute: bool,
    /// With --execute: raise vm.compaction_proactiveness while blocks are lacking, and let the
    /// kernel compact
    #[arg(long, requires = "execute")]
    drive_sysctl: bool,
    /// With --execute: write dirty pages, as 'sync' does, before a run that follows one without
    /// gain. From Linux 6.9 on, a compaction ends at a large dirty folio. Others' writes wait for
    /// it
    #[arg(long, requires = "execute", conflicts_with = "drive_sysctl")]
    sync: bool,
    /// Seconds after which it ends by itself
    #[arg(long, value_name = "SECONDS", value_parser = whole::<u64>(1..=MOST))]
    time: Option<u64>,
    /// Log lines of JSON (schema kontig.guard/1)
    #[arg(long)]
    json: bool,
    /// Rules by which a run is predicted (default: the newest profile that is not newer than the
    /// kernel)
    #[arg(long, value_name = "NAME|FILE")]
    profile: Option<String>,
    #[command(flatten)]
    control: ControlArgs,
    #[command(flatten)]
    host: HostArgs,
}

/// Where a guard is controlled.
#[derive(Args)]
pub struct ControlArgs {
    /// Directory of the hold and of the lock
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIR)]
    control: PathBuf,
}

#[derive(Subcommand)]
enum GuardCommand {
    /// Keep a running guard from compacting, until 'kontig guard resume'
    Hold {
        /// Seconds after which it is resumed by itself
        #[arg(long, value_name = "SECONDS", value_parser = whole::<u64>(1..=MOST))]
        time: Option<u64>,
        #[command(flatten)]
        control: ControlArgs,
    },
    /// Show when a guard would have compacted a recorded host, and what it would have kept at most
    Replay {
        /// A file of 'kontig history record'
        #[arg(value_name = "FILE")]
        history: PathBuf,
        #[command(flatten)]
        policy: PolicyArgs,
        /// Rules of the kernel's own compaction (default: the newest profile that is not newer than
        /// the recorded kernel)
        #[arg(long, value_name = "NAME|FILE")]
        profile: Option<String>,
        /// Print JSON (schema kontig.guard-replay/1)
        #[arg(long)]
        json: bool,
    },
    /// End a hold: the guard compacts again
    Resume {
        #[command(flatten)]
        control: ControlArgs,
    },
}

/// The text of --help after the options.
pub const HELP: &str = "Examples:\n  \
    kontig guard --keep 2000x2M                        what it would do, and gain\n  \
    kontig guard --keep 2000x2M --execute --json       keep them (root)\n  \
    kontig guard --policy /etc/kontig/guard.toml --execute\n  \
    kontig guard hold --time 600                       not now\n  \
    kontig guard replay host.history --keep 2000x2M    what it would have kept last night\n\n\
    It looks every half second, compacts by the node's own file, and ends a compaction as soon as the blocks are \
    there or its CPU time is used up. Nothing is left to restore when it is killed.\n\n\
    Exit codes: 0 ended by Ctrl-C, SIGTERM or --time; 1 failed while running; 2 asked wrongly; 5 more privilege is \
    needed (root); 10 another guard is at work.";

/// The exit code where another guard is at work: a new start changes nothing while it is.
const ANOTHER_IS_AT_WORK: u8 = 10;

/// Carries out `kontig guard`.
pub fn guard(a: &GuardArgs) -> Result<Ending, Error> {
    match &a.command {
        Some(GuardCommand::Hold { time, control }) => hold(control, *time),
        Some(GuardCommand::Resume { control }) => resume(control),
        Some(GuardCommand::Replay { history, policy, profile, json }) => {
            replay::replay(history, policy, profile.as_deref(), *json)
        }
        None => keep(a),
    }
}

fn hold(control: &ControlArgs, time: Option<u64>) -> Result<Ending, Error> {
    let hold = Hold::in_dir(&control.control);
    match hold.set(time) {
        Ok(()) => {
            let until = time.map_or("until 'kontig guard resume'".into(), |s| format!("for {s} s"));
            let whom =
                if is_at_work(&control.control) { "" } else { "; no guard is at work there, the next one will be" };
            kontig_terminal::print(&format!("held {until} ({}){whom}\n", hold.path().display()))?;
            Ok(Ending::Done)
        }
        Err(e) => not_controlled(&hold, &e),
    }
}

fn resume(control: &ControlArgs) -> Result<Ending, Error> {
    let hold = Hold::in_dir(&control.control);
    match hold.end() {
        Ok(was) => {
            kontig_terminal::print(if was { "resumed\n" } else { "it was not held\n" })?;
            Ok(Ending::Done)
        }
        Err(e) => not_controlled(&hold, &e),
    }
}

fn not_controlled(hold: &Hold, e: &io::Error) -> Result<Ending, Error> {
    let path = hold.path();
    match e.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            say(&format!("{}: no permission to write it: {}", path.display(), kontig_live::error::remedy()));
            Ok(Ending::Unpermitted)
        }
        io::ErrorKind::NotFound => {
            let text = format!("--control: {}: there is no such directory: make it first", dir(path).display());
            Err(AskedWrongly::Value(text).into())
        }
        _ => Err(failed(format!("{}: {e}", path.display()))),
    }
}

fn dir(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

fn failed(reason: String) -> Error {
    Failed::Run { run: "guard".into(), reason }.into()
}

/// Runs until it is told to end.
fn keep(a: &GuardArgs) -> Result<Ending, Error> {
    let roots = a.host.roots()?;
    if a.control.control != Path::new(DEFAULT_DIR) && !a.control.control.is_dir() {
        let text = format!("--control: {}: there is no such directory: make it first", a.control.control.display());
        return Err(AskedWrongly::Value(text).into());
    }
    let (kernel, max_order) = match of_host(&roots) {
        Ok(found) => found,
        Err(e) => return not_read("guard", &e),
    };
    let profile = profile("guard", a.profile.as_deref(), &kernel)?;
    let host = ForHost { page_bytes: host_page_size(), proactive: profile.proactive, max_order };
    let policy = a.policy.read(host, a.sync)?;
    if a.drive_sysctl && !roots.proc("sys/vm/compaction_proactiveness").exists() {
        let text = "--drive-sysctl: this kernel has no vm.compaction_proactiveness (5.9 and later have): leave it out";
        return Err(AskedWrongly::Value(text.into()).into());
    }
    let (stop, anew) = signals()?;
    let program = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
    let writer = |path: &Path| Command::new(&program).arg("write-one").arg(path).stdin(Stdio::null()).spawn();
    let looker = |node: u32, order: u32| {
        let mut looks = Command::new(&program);
        looks.args(["look-at-frames", &node.to_string(), &order.to_string()]).args([&roots.procfs, &roots.sysfs]);
        looks.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()
    };
    let journal = a.control.control.join(JOURNAL);
    let restores = || {
        let mut restores = Command::new(&program);
        restores.arg("restore-at-end").arg(&journal).args([&roots.procfs, &roots.sysfs]);
        restores
    };
    let mode = match (a.execute, a.drive_sysctl) {
        (false, _) => Mode::DryRun,
        (true, false) => Mode::Execute { writer: &writer, looker: &looker },
        (true, true) => Mode::Drive(Drive { journal: journal.clone(), restores: &restores }),
    };
    let mut lost = None;
    let mut told = |event: &Event| {
        let text = if a.json { crate::answer::document(event, true) } else { log::line(event, host_page_size()) };
        let is_read = print_while_read(&text);
        // Somebody has to know of what changes the host: a service is started anew.
        match is_read {
            Ok(false) if a.execute => lost = Some(failed("nobody reads the log any more".into())),
            Ok(is_read) => return is_read,
            Err(e) => lost = Some(e),
        }
        false
    };
    let means = Means {
        roots: &roots,
        page_bytes: host_page_size(),
        profile: &profile,
        mode,
        reread: &|| a.policy.read(host, a.sync).map_err(|e| e.to_string()),
        stop: &stop,
        anew: &anew,
        dir: &a.control.control,
        time: a.time.map(Duration::from_secs),
        told: &mut told,
    };
    let watched = watch(means, policy);
    match watched {
        Ok(()) => lost.map_or(Ok(Ending::Done), Err),
        Err(e) if e.is_permission() => {
            say(&e.to_string());
            Ok(Ending::Unpermitted)
        }
        Err(e) if e.is_busy() => {
            say(&e.to_string());
            Ok(Ending::Code(ANOTHER_IS_AT_WORK))
        }
        Err(e) if e.is_wrong() => Err(AskedWrongly::Value(e.to_string()).into()),
        Err(e) => Err(failed(e.to_string())),
    }
}

/// Looks at every frame for a guard, whose child this is, and prints why no blocks of this order
/// are made of this node; null where the frames do not tell.
pub fn look_at_frames(roots: &Roots, node: u32, order: u32) -> Result<Ending, Error> {
    kontig_live::prepare::end_with_parent();
    let found = by_frames(roots, host_page_size(), node, order);
    kontig_terminal::print(&crate::answer::document(&found, true))?;
    Ok(Ending::Done)
}

/// The kernel's release, and the largest order of its free lists.
fn of_host(roots: &Roots) -> Result<(String, u32), ReadError> {
    Ok((roots.read_proc("sys/kernel/osrelease")?.trim().to_string(), supply(roots)?.max_order()))
}

/// Raised by SIGINT and SIGTERM, and by SIGHUP.
fn signals() -> Result<(Arc<AtomicBool>, Arc<AtomicBool>), Error> {
    let (stop, anew) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    for (signal, flag) in [(SIGINT, &stop), (SIGTERM, &stop), (SIGHUP, &anew)] {
        signal_hook::flag::register(signal, flag.clone()).map_err(|e| failed(e.to_string()))?;
    }
    Ok((stop, anew))
}
