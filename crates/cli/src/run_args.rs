//! Options of the commands that run experiments.

use crate::number::{MOST, whole};
use clap::Args;
use kontig_workload::fragmenter::Holes;
use std::path::PathBuf;

/// Where results go, and how much of the host they may use.
#[derive(Args)]
pub struct OutputArgs {
    /// Print one JSON document (schema kontig.reproduce/3) instead of tables
    #[arg(long)]
    pub json: bool,
    /// Print the statistics of every figure over repetitions and rounds, too: means, deviations, the best, and which
    /// differences are more than chance
    #[arg(long, conflicts_with = "json")]
    pub statistics: bool,
    /// Keep everything needed to rerun: inputs, counters, histograms, time series. A directory that holds a result is refused
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write one self-contained page: tables, curves, memory map
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write a page of Markdown: the experiment's questions, each with the rows that answer it
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write a small picture of the memory map
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the simulated machine's /proc files at the start and the end of each measurement
    #[arg(long, value_name = "DIR")]
    pub procfs: Option<PathBuf>,
    /// Write results in the layout of MMTests, whose own scripts then compare the variants: DIR/EXPERIMENT is the
    /// directory for compare-mmtests.pl. Variants that are there already are refused, whatever else is there stays
    #[arg(long, value_name = "DIR")]
    pub mmtests: Option<PathBuf>,
    /// Seed of all randomness; each further repetition has the next
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>(0..=u64::MAX))]
    pub seed: u64,
    /// Runs side by side (default: one for each CPU, as far as memory allows); results do not depend on it
    #[arg(long, short, value_name = "N", value_parser = whole::<usize>(1..=MOST))]
    pub jobs: Option<usize>,
}

/// `kontig reproduce`.
#[derive(Args)]
pub struct ReproduceArgs {
    /// Experiments, by name or file
    #[arg(value_name = "NAME", default_value = "hugepage-latency")]
    pub names: Vec<String>,
    /// Where results go.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `kontig run`.
#[derive(Args)]
pub struct RunArgs {
    /// A workload, an experiment, or an experiment file
    #[arg(value_name = "WORKLOAD|EXPERIMENT")]
    pub what: String,
    /// Machine, by name or file (default: the experiment's, or the one that 'kontig list' has behind the workload)
    #[arg(long, value_name = "NAME|FILE")]
    pub machine: Option<String>,
    /// Begin as a host was found, instead of fragmenting memory: a file of 'kontig snapshot'. Zones, CPUs and settings are the
    /// host's; --machine gives costs and disks (default then: skylake-1s), and --profile is the nearest to the host's kernel
    #[arg(long, value_name = "FILE", conflicts_with = "holes")]
    pub snapshot: Option<String>,
    /// Kernel generation, by name or file (default: the experiment's variants; 6.1 for a workload). What it has already
    /// of an experiment's switches is left out, and variants that are then the same run once. Several: 6.12,7.2
    #[arg(long, value_name = "NAME|FILE", value_delimiter = ',')]
    pub profile: Vec<String>,
    /// A sysctl to set, such as vm.compaction_proactiveness=60; with several values, such as vm.defrag_mode=0,1, each is
    /// a variant of its own
    #[arg(long = "set", value_name = "SYSCTL=VALUE")]
    pub set: Vec<String>,
    /// A seed's patch to apply
    #[arg(long = "switch", value_name = "NAME")]
    pub switch: Vec<String>,
    /// Run every variant so often, each time with another seed: figures then come with their spread
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=MOST))]
    pub repetitions: Option<u32>,
    /// Let a driver of huge pages go on until N allocations fail in a row
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=MOST))]
    pub give_up_after: Option<u32>,
    /// Which pages of every 2 MiB the fragmenter frees (a workload's own are random)
    #[arg(long, value_name = "PATTERN", value_parser = Holes::NAMED.map(|(name, _)| name))]
    pub holes: Option<String>,
    /// Where results go.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `kontig rerun`.
#[derive(Args)]
pub struct RerunArgs {
    /// A result directory written by --out
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
    /// Runs side by side
    #[arg(long, short, value_name = "N", value_parser = whole::<usize>(1..=MOST))]
    pub jobs: Option<usize>,
}
