//! `kontig oracle record`: a real kernel booted under emulation, and what its allocator did.

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use kontig_lab::{AskedWrongly, Failed, LabError};
use kontig_recorder::experiment::{Asked, GIVEN_LRU, Plan};
use kontig_recorder::given::Given;
use kontig_recorder::kernel::{Kernel, Series};
use kontig_recorder::reclaim::GivenOps;
use kontig_recorder::{Control, Made, RecordError, Stage};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Options of `kontig oracle record`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kontig oracle record mixed\n  \
    kontig oracle record direct-movable --order 4\n  \
    kontig oracle record mixed --kernel 7.2 --root /var/lib/kontig/7.2 --set vm.defrag_mode=1\n  \
    kontig oracle record lru-file --seed 9 && kontig oracle verify recordings/6.1-lru-file\n  \
    kontig oracle record trace mine.txt && kontig oracle verify recordings/6.1-mine\n\n\
A trace FILE is text, an operation a line ('#' starts a comment), or a recording's trace.bin, unpacked:\n  \
    alloc NAME ORDER TYPE [RIGHT ...]   ORDER 0 to 10; TYPE unmovable, reclaimable or movable;\n                                      \
    RIGHT kswapd, direct, retry, high, atomic, owned\n  \
    free NAME\n\
docs/traces.md says what each means to the kernel.\n\n\
'kontig oracle doctor' shows what is missing to make recordings.")]
pub struct RecordArgs {
    /// What to do: mixed, direct-movable, lru-file, ... (an unknown name lists them all), or trace or lru for one of your own
    #[arg(value_name = "EXPERIMENT")]
    experiment: String,
    /// A trace: that of 'trace' or 'lru', or instead of the experiment's own
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The kernel: 5.10, 6.1, 6.12, 7.2 or 7.3
    #[arg(long, value_name = "SERIES", default_value_t = Series::V6_1)]
    kernel: Series,
    /// Operations of the trace (default: the experiment's)
    #[arg(long, value_name = "N")]
    ops: Option<usize>,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Size of the requests of direct-* and kcompactd-order (default: 9)
    #[arg(long, value_name = "ORDER")]
    order: Option<u8>,
    /// Write down compaction's tracepoints also for traces and direct-*
    #[arg(long)]
    events: bool,
    /// A sysctl to set before, such as vm.defrag_mode=1
    #[arg(long = "set", value_name = "SYSCTL=VALUE")]
    set: Vec<String>,
    /// The recording's folder (default: recordings/KERNEL-EXPERIMENT)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A Debian root the kernel comes from, as oracle/make-root makes it
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

/// Runs `kontig oracle record`.
pub fn record(a: &RecordArgs) -> Result<(), LabError> {
    let plan = Plan::new(&asked(a)?, a.kernel).map_err(told)?;
    let kernel = Kernel::find(a.kernel, a.root.as_deref()).map_err(told)?;
    let out = a.out.clone().unwrap_or_else(|| Path::new("recordings").join(plan.folder_name(a.kernel)));

    let stop = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&stop);
    crate::interrupt::act(move || raised.store(true, Ordering::Relaxed));
    let bar = progress_bar();
    let progress = |stage| bar.set_message(message(stage, &kernel.release));
    let made = kontig_recorder::record(&plan, &kernel, &out, &Control { stop: &stop, progress: &progress });
    bar.finish_and_clear();
    crate::print(&summary(&made.map_err(told)?))
}

fn asked(a: &RecordArgs) -> Result<Asked, LabError> {
    let mut sysctls = BTreeMap::new();
    for setting in &a.set {
        let (name, value) = setting.split_once('=').ok_or_else(|| {
            AskedWrongly::Value(format!("--set {setting}: not of the form SYSCTL=VALUE, such as vm.defrag_mode=1"))
        })?;
        sysctls.insert(name.to_string(), value.to_string());
    }
    let content = |path: &PathBuf| -> Result<(String, Vec<u8>), LabError> {
        let file = path.display().to_string();
        let content =
            std::fs::read(path).map_err(|e| AskedWrongly::Unreadable { path: file.clone(), reason: e.to_string() })?;
        Ok((file, content))
    };
    let read = |path: &PathBuf| -> Result<Given, LabError> {
        let (file, content) = content(path)?;
        Ok(Given::read(&file, &content).map_err(AskedWrongly::Value)?)
    };
    let read_lru = |path: &PathBuf| -> Result<GivenOps, LabError> {
        let (file, content) = content(path)?;
        Ok(GivenOps::read(&file, &content).map_err(AskedWrongly::Value)?)
    };
    let given_lru = a.experiment == GIVEN_LRU;
    let trace = a.file.as_ref().filter(|_| !given_lru).map(read).transpose()?;
    let lru = a.file.as_ref().filter(|_| given_lru).map(read_lru).transpose()?;
    Ok(Asked {
        experiment: a.experiment.clone(),
        ops: a.ops,
        seed: a.seed,
        order: a.order,
        sysctls,
        trace,
        lru,
        events: a.events,
    })
}

fn told(e: RecordError) -> LabError {
    match e {
        RecordError::Asked(reason) => AskedWrongly::Value(reason).into(),
        RecordError::Failed(reason) => Failed::Run { run: "oracle record".into(), reason }.into(),
        RecordError::Interrupted => Failed::Interrupted { kept: "nothing was kept".into() }.into(),
    }
}

/// A line that moves, on a terminal only.
fn progress_bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn message(stage: Stage, release: &str) -> String {
    match stage {
        Stage::Building => format!("building the module for {release}"),
        Stage::Running(0) => format!("{release} is booting and preparing memory"),
        Stage::Running(bytes) => format!("{release} is running: {:.1} MB of results", bytes as f64 / 1e6),
        Stage::Writing => "writing the recording".into(),
    }
}

fn summary(made: &Made) -> String {
    let bytes: u64 = made.files.iter().map(|(_, n)| n).sum();
    let (files, mb, seconds) = (made.files.len(), bytes as f64 / 1e6, made.took.as_secs_f64());
    let folder = made.folder.display();
    format!("{folder}: kernel {}, {files} files, {mb:.1} MB before compression, {seconds:.0} s\n", made.kernel)
}
