//! `kontig oracle record`: boots a real kernel under emulation and records its allocator.

use super::verify::RECORDINGS;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_oracle::guest::PREFIX;
use kontig_oracle::patterns::NAMED;
use kontig_recorder::experiment::{Asked, GIVEN_LRU, Plan};
use kontig_recorder::given::Given;
use kontig_recorder::kernel::{Kernel, Series};
use kontig_recorder::reclaim::GivenOps;
use kontig_recorder::{Control, Made, Progress, Ready, RecordError};
use kontig_terminal::Ending;
use kontig_terminal::number::{MOST, whole};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The experiment that stands for all guest patterns that are steps.
const GUESTS: &str = "guest";

const HELP: &str = "Examples:
  kontig oracle record mixed
  kontig oracle record direct-movable --order 4
  kontig oracle record mixed --kernel 7.2 --root /var/lib/kontig/7.2 --set vm.defrag_mode=1
  kontig oracle record lru-file --seed 9 && kontig oracle verify recordings/6.1-lru-file
  kontig oracle record cpus-file --qemu /var/lib/kontig/6.12
  kontig oracle record nodes-file --seed 9
  kontig oracle record guest-anon --seeds 5 --out oracle/guest/recorded
  kontig oracle record guest-anon --seeds 5 --out oracle/guest/recorded --again
  kontig oracle record guest-build --seed 2 --sources /usr/src/linux-6.1
  kontig oracle record trace mine.txt && kontig oracle verify recordings/6.1-mine

A trace FILE is text, an operation a line ('#' starts a comment), or a recording's trace.bin, unpacked:
  alloc NAME ORDER TYPE [RIGHT ...]   ORDER 0 to 10; TYPE unmovable, reclaimable or movable;
                                      RIGHT kswapd, direct, retry, high, atomic, owned
  free NAME
docs/kernel/traces.md explains what each means to the kernel.

An lru FILE is text as well, or a recording's lru.txt, unpacked. PAGE is a page
of a file: f0:1f is page 1f (hexadecimal) of f0, the first of 16 files. OWN is a
page of the process: a:1f. RIGHT is as above, or dma32, but not owned:
  alloc N ORDER TYPE [RIGHT ...]      allocate a block, remembered as number N
  free N                              free that block
  add PAGE ORDER TYPE [RIGHT ...]     add a page or folio, as readahead does
  read PAGE ORDER TYPE [RIGHT ...]    mark it accessed; add it if absent
  touch PAGE                          mark it accessed if present
  truncate PAGE ORDER                 remove it from the file
  dirty PAGE                          mark it dirty
  writeback PAGE                      start writeback, as a flusher does
  written PAGE                        end its writeback
  device FILE fast|slow               reclaim's writes end at once, or at finish
  finish N                            end the oldest N of these writes
  load OWN                            the process reads a byte
  store OWN                           the process writes a byte
  drop OWN                            the process gives the page back
  object TYPE [RIGHT ...]             a page for a shrinker to free, oldest first
  drain                               flush the CPU's batches to the LRU lists
  cpu N                               go on on CPU N, 0 to 3
  drain-all                           flush the batches of all CPUs
  drain-pages                         flush the free pages of all CPUs
  fold                                add the CPU's parts of counters to them
  node N [M ...]                      go to node N alone (1 to 4), or first of M ...
  wait                                wait until kswapd and kcompactd sleep
  dump                                save the state as d0, d1, ...
In generations (6.12, 7.2; first line 'lru_gen N', 1, 3 or 7), SWAPPINESS is 0 to 200 or own:
  age SWAPPINESS [force]              begin a generation
  evict BEYOND SWAPPINESS PAGES       evict the oldest, and BEYOND more
In memory control groups (6.12; first line 'groups PARENT ...', of each in turn
from number 1 on; 0 is the root):
  enter GROUP                         what follows is charged to this group
  limit GROUP max|high|low|min PAGES  set a limit, or max for none
  flush                               add up the groups' counters
oracle/golden/README.md explains what each does in the kernel.

'kontig oracle doctor' shows what is missing for making recordings.";

/// Options of `kontig oracle record`.
#[derive(Args)]
#[command(after_help = HELP)]
pub struct RecordArgs {
    /// Experiment: mixed, direct-movable, lru-file, ... (an unknown name lists all), or trace or
    /// lru for your own operations
    #[arg(value_name = "EXPERIMENT")]
    experiment: String,
    /// Operations for 'trace' or 'lru', or in place of the experiment's own
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[arg(long, value_name = "SERIES", default_value_t = Series::V6_1, help = format!("Kernel: {}", Series::known()))]
    kernel: Series,
    /// Number of operations (default: the experiment's)
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=MOST))]
    ops: Option<usize>,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>(0..=u64::MAX))]
    seed: u64,
    /// Record N seeds, from --seed on (guest-* only; 'guest' is every pattern but guest-build)
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..=MOST))]
    seeds: Option<u64>,
    /// Boot again for an existing recording, and exit with 3 if a byte differs
    #[arg(long)]
    again: bool,
    /// Size of the requests of direct-* and kcompactd-order (default: 9)
    #[arg(long, value_name = "ORDER", value_parser = whole::<u8>(0..=10))]
    order: Option<u8>,
    /// Also record compaction's tracepoints for traces and direct-*
    #[arg(long)]
    events: bool,
    /// Set a sysctl first: vm.defrag_mode=1
    #[arg(long = "set", value_name = "SYSCTL=VALUE")]
    set: Vec<String>,
    /// Folder of the recording (default: recordings/KERNEL-EXPERIMENT);
    /// with --seeds, the folder of all
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Debian root with the kernel, made by oracle/make-root
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Debian root with the QEMU to use (several CPUs need 8.1 or later; Debian 12 has 7.2)
    #[arg(long, value_name = "DIR")]
    qemu: Option<PathBuf>,
    /// Unpacked kernel that guest-build builds (default: the package linux-source-6.1)
    #[arg(long, value_name = "DIR")]
    sources: Option<PathBuf>,
}

pub fn record(a: &RecordArgs) -> Result<Ending, Error> {
    let plans = plans(a)?;
    if let Some((_, missing)) = plans.iter().find(|(_, out)| a.again && !out.is_dir()) {
        let folder = missing.display();
        let reason =
            format!("--again: there is no recording {folder}: name its folder with --out, or leave out --again");
        return Err(AskedWrongly::Value(reason).into());
    }
    plans.iter().try_for_each(|(plan, _)| plan.check_host()).map_err(told)?;
    let kernel = Kernel::find(a.kernel, a.root.as_deref()).map_err(told)?;
    if a.out.is_none() && !a.again {
        std::fs::create_dir_all(RECORDINGS)
            .map_err(|e| Failed::Write { path: RECORDINGS.into(), reason: e.to_string() })?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&stop);
    kontig_terminal::interrupt::act(move || raised.store(true, Ordering::Relaxed));
    let bar = progress_bar();
    let progress = |stage| bar.set_message(message(stage, &kernel.release));
    let control = Control { stop: &stop, progress: &progress };
    let print = |made: Result<Made, RecordError>| {
        bar.suspend(|| made.map_err(told).and_then(|made| kontig_terminal::print(&summary(&made))))
    };
    let differs = |ready: &Ready<'_>, plan: &Plan, out: &Path| -> Result<bool, Error> {
        let differing = ready.again(plan, out, &control).map_err(told)?;
        let (folder, said) = match &differing {
            None => (out.display(), "a second boot has given the same bytes".to_string()),
            Some(file) => (out.display(), format!("a second boot has given another {file}")),
        };
        bar.suspend(|| kontig_terminal::print(&format!("{folder}: {said}\n")))?;
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
        // Existing recordings are kept, so an interrupted series can be continued.
        several => Ready::new(&kernel, &control).map_err(told).and_then(|ready| {
            let mut missing = several.iter().filter(|(_, out)| !out.exists());
            missing.try_for_each(|(plan, out)| print(ready.record(plan, out, &control)))?;
            Ok(Ending::Done)
        }),
    };
    bar.finish_and_clear();
    done
}

/// The recordings to make, each with its folder.
fn plans(a: &RecordArgs) -> Result<Vec<(Plan, PathBuf)>, Error> {
    let asked = asked(a)?;
    let plan = |asked: &Asked| Plan::new(asked, a.kernel).map_err(told);
    let Some(seeds) = a.seeds else {
        let plan = plan(&asked)?;
        let out = a.out.clone().unwrap_or_else(|| Path::new(RECORDINGS).join(plan.folder_name(a.kernel)));
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
    let folder = a.out.as_deref().unwrap_or(Path::new(RECORDINGS));
    let each = (a.seed..a.seed.saturating_add(seeds)).flat_map(|seed| names.iter().map(move |name| (seed, name)));
    each.map(|(seed, name)| {
        let plan = plan(&Asked { experiment: name.clone(), seed, ..asked.clone() })?;
        let out = folder.join(plan.folder_name(a.kernel));
        Ok((plan, out))
    })
    .collect()
}

fn asked(a: &RecordArgs) -> Result<Asked, Error> {
    let mut sysctls = BTreeMap::new();
    for setting in &a.set {
        let (name, value) = setting.split_once('=').ok_or_else(|| {
            AskedWrongly::Value(format!("--set {setting}: not of the form SYSCTL=VALUE, such as vm.defrag_mode=1"))
        })?;
        sysctls.insert(name.to_string(), value.to_string());
    }
    let content = |path: &PathBuf| -> Result<(String, Vec<u8>), Error> {
        let file = path.display().to_string();
        let content =
            std::fs::read(path).map_err(|e| AskedWrongly::Unreadable { path: file.clone(), reason: e.to_string() })?;
        Ok((file, content))
    };
    let read = |path: &PathBuf| -> Result<Given, Error> {
        let (file, content) = content(path)?;
        Ok(Given::read(&file, &content).map_err(AskedWrongly::Value)?)
    };
    let read_lru = |path: &PathBuf| -> Result<GivenOps, Error> {
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
        sources: a.sources.clone(),
        qemu_root: a.qemu.clone(),
    })
}

fn told(e: RecordError) -> Error {
    match e {
        RecordError::Asked(reason) => AskedWrongly::Value(reason).into(),
        RecordError::Failed(reason) => Failed::Run { run: "oracle record".into(), reason }.into(),
        RecordError::Interrupted => Failed::Interrupted { kept: "nothing was kept".into() }.into(),
    }
}

/// A spinner, on a terminal only.
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
            sources: None,
            qemu: None,
        }
    }

    #[test]
    fn several_seeds_of_all_patterns_have_a_folder_each() {
        let plans = plans(&args("guest", Some(2))).expect("patterns");
        let folders: Vec<String> = plans.iter().map(|(_, out)| out.display().to_string()).collect();
        assert_eq!(folders.len(), 2 * NAMED.len());
        assert_eq!(
            (folders[0].as_str(), folders[NAMED.len() + 2].as_str()),
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
                "max|high|low|min" => "max".into(),
                "N" | "GROUP" | "ORDER" | "SWAPPINESS" | "BEYOND" | "PAGES" => "3".into(),
                "TYPE" => "movable".into(),
                other => other.into(),
            };
            let form =
                form.replace("[RIGHT ...]", "kswapd dma32").replace("[force]", "force").replace("[M ...]", "2 3");
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
