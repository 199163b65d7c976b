//! `kontig oracle record`: a real kernel booted under emulation, and what its allocator did.

use crate::Ending;
use crate::args::MOST;
use crate::number::whole;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use kontig_lab::{AskedWrongly, Failed, LabError};
use kontig_oracle::guest::PREFIX;
use kontig_program::pattern::NAMED;
use kontig_recorder::experiment::{Asked, GIVEN_LRU, Plan};
use kontig_recorder::given::Given;
use kontig_recorder::kernel::{Kernel, Series};
use kontig_recorder::reclaim::GivenOps;
use kontig_recorder::{Control, Made, Progress, Ready, RecordError};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// All patterns of guests.
const GUESTS: &str = "guest";

/// What `--help` teaches.
const HELP: &str = "Examples:
  kontig oracle record mixed
  kontig oracle record direct-movable --order 4
  kontig oracle record mixed --kernel 7.2 --root /var/lib/kontig/7.2 --set vm.defrag_mode=1
  kontig oracle record lru-file --seed 9 && kontig oracle verify recordings/6.1-lru-file
  kontig oracle record guest-anon --seeds 5 --out oracle/guest/recorded
  kontig oracle record guest-anon --seeds 5 --out oracle/guest/recorded --again
  kontig oracle record trace mine.txt && kontig oracle verify recordings/6.1-mine

A trace FILE is text, an operation a line ('#' starts a comment), or a recording's trace.bin, unpacked:
  alloc NAME ORDER TYPE [RIGHT ...]   ORDER 0 to 10; TYPE unmovable, reclaimable or movable;
                                      RIGHT kswapd, direct, retry, high, atomic, owned
  free NAME
docs/traces.md says what each means to the kernel.

An lru FILE is text, too, or a recording's lru.txt, unpacked. PAGE is a file's,
such as f0:1f: page 1f (hexadecimal) of f0, the first of 16 files. OWN is one of
the process's memory, such as a:1f. RIGHT is as above, or dma32, but not owned:
  alloc N ORDER TYPE [RIGHT ...]      a block, remembered under a number
  free N                              that block
  add PAGE ORDER TYPE [RIGHT ...]     a page or folio, as readahead adds it
  read PAGE ORDER TYPE [RIGHT ...]    marked as accessed; added if not there
  touch PAGE                          marked as accessed if there
  truncate PAGE ORDER                 removed from the file
  dirty PAGE                          marked as changed
  writeback PAGE                      a flusher begins to write it
  written PAGE                        and ends
  device FILE fast|slow               written at once by reclaim, or by finish
  finish N                            the oldest N of these are written
  load OWN                            the process reads a byte
  store OWN                           the process writes a byte
  drop OWN                            the process gives the page back
  object TYPE [RIGHT ...]             a page that a shrinker frees, oldest first
  drain                               what the CPU has collected goes to the lists
  wait                                until kswapd and kcompactd sleep
  dump                                the state is kept, as d0, d1 and so on
oracle/golden/README.md says what each does in the kernel.

'kontig oracle doctor' shows what is missing to make recordings.";

/// Options of `kontig oracle record`.
#[derive(Args)]
#[command(after_help = HELP)]
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
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=MOST))]
    ops: Option<usize>,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>(0..=u64::MAX))]
    seed: u64,
    /// guest-* only: record so many seeds, from --seed on; 'guest' is every pattern
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..=MOST))]
    seeds: Option<u64>,
    /// Boot once more for a recording that is there already, and exit with 3 if a byte differs
    #[arg(long)]
    again: bool,
    /// Size of the requests of direct-* and kcompactd-order (default: 9)
    #[arg(long, value_name = "ORDER", value_parser = whole::<u8>(0..=10))]
    order: Option<u8>,
    /// Write down compaction's tracepoints also for traces and direct-*
    #[arg(long)]
    events: bool,
    /// A sysctl to set before, such as vm.defrag_mode=1
    #[arg(long = "set", value_name = "SYSCTL=VALUE")]
    set: Vec<String>,
    /// The recording's folder (default: recordings/KERNEL-EXPERIMENT); with --seeds the one that theirs are in
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A Debian root the kernel comes from, as oracle/make-root makes it
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

/// Runs `kontig oracle record`.
pub fn record(a: &RecordArgs) -> Result<Ending, LabError> {
    let plans = plans(a)?;
    let kernel = Kernel::find(a.kernel, a.root.as_deref()).map_err(told)?;
    let stop = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&stop);
    crate::interrupt::act(move || raised.store(true, Ordering::Relaxed));
    let bar = progress_bar();
    let progress = |stage| bar.set_message(message(stage, &kernel.release));
    let control = Control { stop: &stop, progress: &progress };
    let print = |made: Result<Made, RecordError>| {
        bar.suspend(|| made.map_err(told).and_then(|made| crate::print(&summary(&made))))
    };
    let differs = |ready: &Ready<'_>, plan: &Plan, out: &Path| -> Result<bool, LabError> {
        let differing = ready.again(plan, out, &control).map_err(told)?;
        let (folder, said) = match &differing {
            None => (out.display(), "a second boot has given the same bytes".to_string()),
            Some(file) => (out.display(), format!("a second boot has given another {file}")),
        };
        bar.suspend(|| crate::print(&format!("{folder}: {said}\n")))?;
        Ok(differing.is_some())
    };
    let done = match &plans[..] {
        several if a.again => Ready::new(&kernel, &control).map_err(told).and_then(|ready| {
            let mut any = false;
            for (plan, out) in several {
                any |= differs(&ready, plan, out)?;
            }
            Ok(if any { Ending::Different } else { Ending::Done })
        }),
        [(plan, out)] => print(kontig_recorder::record(plan, &kernel, out, &control)).map(|()| Ending::Done),
        // Of several, those that are there already are left as they are: whoever was interrupted goes on.
        several => Ready::new(&kernel, &control).map_err(told).and_then(|ready| {
            let mut missing = several.iter().filter(|(_, out)| !out.exists());
            missing.try_for_each(|(plan, out)| print(ready.record(plan, out, &control)))?;
            Ok(Ending::Done)
        }),
    };
    bar.finish_and_clear();
    done
}

/// What is to be recorded, each with its folder.
fn plans(a: &RecordArgs) -> Result<Vec<(Plan, PathBuf)>, LabError> {
    let asked = asked(a)?;
    let plan = |asked: &Asked| Plan::new(asked, a.kernel).map_err(told);
    let Some(seeds) = a.seeds else {
        let plan = plan(&asked)?;
        let out = a.out.clone().unwrap_or_else(|| Path::new("recordings").join(plan.folder_name(a.kernel)));
        return Ok(vec![(plan, out)]);
    };
    let all = a.experiment == GUESTS;
    let names: Vec<String> = match all {
        true => NAMED.iter().map(|pattern| format!("{PREFIX}{}", pattern.name)).collect(),
        false => vec![a.experiment.clone()],
    };
    if seeds == 0 || !names.iter().all(|name| name.starts_with(PREFIX)) {
        let reason = format!("--seeds {seeds}: is for {PREFIX}* and '{GUESTS}', and at least 1");
        return Err(AskedWrongly::Value(reason).into());
    }
    let folder = a.out.as_deref().unwrap_or(Path::new("recordings"));
    let each = (a.seed..a.seed.saturating_add(seeds)).flat_map(|seed| names.iter().map(move |name| (seed, name)));
    each.map(|(seed, name)| {
        let plan = plan(&Asked { experiment: name.clone(), seed, ..asked.clone() })?;
        let out = folder.join(plan.folder_name(a.kernel));
        Ok((plan, out))
    })
    .collect()
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

fn message(progress: Progress, release: &str) -> String {
    match progress {
        Progress::Building => format!("building the module for {release}"),
        Progress::Running(0) => format!("{release} is booting and preparing memory"),
        Progress::Running(bytes) => format!("{release} is running: {:.1} MB of results", bytes as f64 / 1e6),
        Progress::Writing => "writing the recording".into(),
    }
}

fn summary(made: &Made) -> String {
    let bytes: u64 = made.files.iter().map(|(_, n)| n).sum();
    let (files, mb, seconds) = (made.files.len(), bytes as f64 / 1e6, made.took.as_secs_f64());
    let folder = made.folder.display();
    format!("{folder}: kernel {}, {files} files, {mb:.1} MB before compression, {seconds:.0} s\n", made.kernel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_oracle::trace::lru;

    fn args(experiment: &str, seeds: Option<u64>) -> RecordArgs {
        RecordArgs {
            experiment: experiment.into(),
            file: None,
            kernel: Series::V6_1,
            ops: None,
            seed: 3,
            seeds,
            order: None,
            events: false,
            again: false,
            set: Vec::new(),
            out: None,
            root: None,
        }
    }

    #[test]
    fn several_seeds_of_all_patterns_have_a_folder_each() {
        let plans = plans(&args("guest", Some(2))).expect("patterns");
        let folders: Vec<String> = plans.iter().map(|(_, out)| out.display().to_string()).collect();
        assert_eq!(folders.len(), 2 * NAMED.len());
        assert_eq!(
            (folders[0].as_str(), folders[8].as_str()),
            ("recordings/6.1-guest-file-seed3", "recordings/6.1-guest-fork-seed4")
        );
        for (experiment, seeds) in [("mixed", 2), ("guest-anon", 0)] {
            let refused = super::plans(&args(experiment, Some(seeds))).expect_err("refused").to_string();
            assert!(refused.contains(&format!("--seeds {seeds}: is for guest-* and 'guest'")), "{refused}");
        }
    }

    #[test]
    fn help_shows_how_every_operation_of_an_lru_file_is_written() {
        let (_, section) = HELP.split_once("An lru FILE").expect("it is explained");
        let (section, _) = section.split_once("oracle/golden").expect("with a place to read on");
        let written = |line: &str| -> Option<String> {
            let (form, _meaning) = line.strip_prefix("  ")?.split_once("  ")?;
            let word = |word: &'_ str| match word {
                "PAGE" => "f0:1f".to_string(),
                "OWN" => "a:1f".into(),
                "FILE" => "f0".into(),
                "fast|slow" => "slow".into(),
                "N" | "ORDER" => "3".into(),
                "TYPE" => "movable".into(),
                other => other.into(),
            };
            let form = form.replace("[RIGHT ...]", "kswapd dma32");
            Some(form.split(' ').map(word).collect::<Vec<_>>().join(" "))
        };
        let mut shown: Vec<&str> =
            section.lines().filter_map(written).map(|line| lru::parse(&line).expect(&line).name()).collect();
        shown.sort_unstable();
        shown.dedup();
        let header = include_str!("../../../../oracle/module/kontig.h");
        let known = header.lines().filter(|line| line.trim().starts_with("OP_"));
        assert_eq!(shown.len(), known.count(), "{shown:?}");
    }
}
