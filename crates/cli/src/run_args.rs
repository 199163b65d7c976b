//! Options of the commands that run experiments.

use crate::figures::FiguresArgs;
use crate::shard::Shard;
use crate::values::seeds;
use clap::Args;
use kontig_results::Seeds;
use kontig_terminal::number::{MOST, whole};
use std::path::PathBuf;

/// Where results go, and how much of the host the runs may use.
#[derive(Args)]
pub struct OutputArgs {
    /// Print one JSON document (schema kontig.reproduce/6) instead of tables
    #[arg(long, conflicts_with_all = ["all_figures", "figures"])]
    pub json: bool,
    #[command(flatten)]
    pub figures: FiguresArgs,
    /// Also print statistics of every figure over repetitions and rounds: mean, deviation, best,
    /// and which differences are significant
    #[arg(long, conflicts_with = "json")]
    pub statistics: bool,
    /// Store everything needed to rerun: inputs, counters, histograms, time series. A directory
    /// that already holds a result is refused
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Continue an interrupted session whose result is in --out: finished runs are not repeated
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Write one self-contained HTML page: tables, curves, memory map
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write a Markdown page: the experiment's questions, each with the rows that answer it; of
    /// 'kontig reproduce --all', the scores and every published row
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write the memory map as a small picture
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the simulated machine's /proc files at the start and the end of each measurement
    #[arg(long, value_name = "DIR")]
    pub procfs: Option<PathBuf>,
    /// Write results in the layout of MMTests, for its scripts to compare the variants:
    /// DIR/EXPERIMENT is the directory for compare-mmtests.pl. Existing variants are refused; other
    /// files are kept
    #[arg(long, value_name = "DIR")]
    pub mmtests: Option<PathBuf>,
    /// Write the tracepoints of compaction and reclaim, as ftrace prints them, for Perfetto and
    /// scripts; FILE.dat is for trace-cmd. Of several runs, each writes FILE with its name inserted
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Record the simulated machine's /proc every 10 simulated seconds of the measurement, as
    /// 'kontig history record' records a host: for 'kontig guard replay', 'history report' and
    /// 'top'. Of several runs, each writes FILE with its name inserted
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// Seed of the random numbers; each further repetition uses the next. Several, 1,5,9 or 1..5,
    /// are the seeds of as many repetitions
    #[arg(long, value_name = "SEEDS", default_value = "1", value_parser = seeds)]
    pub seed: Seeds,
    /// Number of parallel runs (default: one per CPU, as memory
    /// allows); results do not depend on it
    #[arg(long, short, value_name = "N", value_parser = whole::<usize>(1..=MOST))]
    pub jobs: Option<usize>,
}

/// Options of `kontig reproduce`.
#[derive(Args)]
pub struct ReproduceArgs {
    /// Experiments, by name or file
    #[arg(value_name = "NAME", default_value = "hugepage-latency")]
    pub names: Vec<String>,
    /// Run every published experiment, and print one page of scores, series by series, with the
    /// worst misses; tables go to --html, --json and --out
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Options of `kontig run`.
#[derive(Args)]
pub struct RunArgs {
    /// A workload or an experiment, by name or file; - is standard input, as for --machine and
    /// --profile
    #[arg(value_name = "WORKLOAD|EXPERIMENT")]
    pub what: String,
    /// Machine, by name or file; several as box-2g,xeon-64g make a variant each (default: the
    /// experiment's, or the one 'kontig list' shows with the workload)
    #[arg(long, value_name = "NAME|FILE", value_delimiter = ',')]
    pub machine: Vec<String>,
    /// Start from a host's state, a file of 'kontig snapshot', instead of fragmenting memory.
    /// Zones, CPUs and settings are the host's; --machine supplies costs and disks (default here:
    /// skylake-1s), and --profile defaults to the one nearest to the host's kernel
    #[arg(long, value_name = "FILE")]
    pub snapshot: Option<String>,
    /// Kernel generation, by name or file; several as 6.12,7.2 (default: the
    /// experiment's variants; 6.1 for a workload). Switches that it already includes are
    /// dropped, and identical variants run once
    #[arg(long, value_name = "NAME|FILE", value_delimiter = ',')]
    pub profile: Vec<String>,
    /// Set a sysctl: vm.compaction_proactiveness=60. Several values, vm.defrag_mode=0,1 or
    /// vm.compaction_proactiveness=0..100:20, make a variant each
    #[arg(long = "set", value_name = "SYSCTL=VALUE")]
    pub set: Vec<String>,
    /// Set parameters of the workload, which 'kontig show workload NAME' lists: jobs=8,size=16GiB.
    /// Several values, size=1GiB,2GiB or size=1GiB..4GiB:1GiB, make a variant each. Where several
    /// parameters have a name, more of it says which: measure.kbuild.jobs=8
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub with: Vec<String>,
    /// Apply a patch series, by the name 'kontig list' shows
    #[arg(long = "switch", value_name = "NAME")]
    pub switch: Vec<String>,
    /// The variant that the others are compared with, by its name, such as 7.2+defrag_mode=1
    /// (default: the first)
    #[arg(long, value_name = "VARIANT")]
    pub baseline: Option<String>,
    /// Run every variant N times, each with its own seed, and show the spread of the figures
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=MOST))]
    pub repetitions: Option<u32>,
    /// Run only the I-th of N equal parts of the runs, 1/8 to 8/8, for as many machines or jobs of
    /// a cluster. Each stores its result in an --out of its own; 'kontig export' merges them
    #[arg(
        long,
        value_name = "I/N",
        requires = "out",
        conflicts_with_all = ["json", "html", "markdown", "svg", "all_figures", "figures", "statistics"]
    )]
    pub shard: Option<Shard>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Options of `kontig rerun`.
#[derive(Args)]
pub struct RerunArgs {
    /// A result directory written by --out
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
    /// Number of parallel runs
    #[arg(long, short, value_name = "N", value_parser = whole::<usize>(1..=MOST))]
    pub jobs: Option<usize>,
}
