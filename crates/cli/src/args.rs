//! What can be asked for. Help, completions and man pages all come from here.

use crate::number::whole;
use clap::{Args, Parser, Subcommand};
use kontig_workload::fragmenter::Holes;
use std::path::PathBuf;

/// The machine whose costs and disks a host's snapshot has where none is named: one socket, files and swap on flash.
pub const COSTS_OF_HOSTS: &str = "skylake-1s";

/// The largest number of anything that is counted in 32 bits.
pub const MOST: u64 = u32::MAX as u64;

/// Reproduce and explore Linux's memory compaction on a simulated machine.
#[derive(Parser)]
#[command(
    version,
    propagate_version = true,
    after_help = "Examples:\n  \
        kontig reproduce hugepage-latency                 the headline experiment, next to the published figures\n  \
        kontig reproduce java-heap backoff --html r.html  two more, as a page with the memory map\n  \
        kontig run hugealloc --machine xeon-64g --profile 6.1 --set vm.compaction_proactiveness=60\n                                                    \
        what if?\n  \
        kontig profile diff 6.1 7.2                       what changed between two kernels, rule by rule\n\n\
        Exit codes: 0 done; 1 failed while running; 2 asked wrongly; 3 a verified recording or a rerun result \
        differs; of the commands about a host: 5 more privilege is needed; 4 compaction would make the blocks; 7 only dropping clean \
        cache would; 6 nothing would; 8 it cannot be told; 9 they were predicted, but not there in the end."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Say what this host's memory is like: huge pages at hand, fragmentation, stalls, settings
    #[command(after_help = crate::live::status::HELP)]
    Status(crate::live::status::StatusArgs),
    /// Say whether blocks will be there: now, after compacting, after dropping cache, or not at all, and why
    #[command(after_help = crate::live::check::HELP)]
    Check(crate::live::check::CheckArgs),
    /// Make blocks available before something starts: a plan, or with --execute the deed
    #[command(after_help = crate::live::prepare::HELP)]
    Prepare(crate::live::prepare::PrepareArgs),
    /// Keep what every frame of this host is used for, as a file
    #[command(after_help = crate::live::snapshot::HELP)]
    Snapshot(crate::live::snapshot::SnapshotArgs),
    /// Fragment a part of this host's memory on purpose, and hold it so
    #[command(after_help = crate::live::age::HELP)]
    Age(crate::live::age::AgeArgs),
    /// Touch memory for the first time, and say how long each huge page took
    #[command(after_help = crate::live::touch::HELP)]
    Touch(crate::live::touch::TouchArgs),
    /// Compare what is predicted of this host with what happens, on memory that is fragmented for it; with --execute
    #[command(after_help = crate::live::trial::HELP)]
    Trial(crate::live::trial::TrialArgs),
    /// Write 1 to a file: what 'prepare' has a process of its own do, so that it can be ended
    #[command(hide = true)]
    WriteOne {
        /// Write dirty pages to disk first.
        #[arg(long)]
        sync: bool,
        /// The file.
        path: PathBuf,
    },
    /// Restore the settings of this host when 'prepare' is killed: what it has a process of its own do
    #[command(hide = true)]
    RestoreAtEnd {
        /// The journal.
        journal: PathBuf,
        /// Where procfs is mounted.
        procfs: PathBuf,
        /// Where sysfs is mounted.
        sysfs: PathBuf,
    },
    /// Say what is wrong with this host's large blocks, why, and what to do about it
    #[command(after_help = crate::live::explain::HELP)]
    Explain(crate::live::explain::ExplainArgs),
    /// Run published experiments and hold the results against what was published
    #[command(after_help = "Examples:\n  \
        kontig reproduce hugepage-latency\n  \
        kontig reproduce hugepage-latency java-heap backoff compact-32g --json > r.json --out results/x --html report.html\n\n\
        'kontig list' shows the experiments. Without a name, the headline experiment runs.")]
    Reproduce(ReproduceArgs),
    /// Run a workload or an experiment under settings of your own: what if?
    #[command(after_help = "Examples:\n  \
        kontig run hugealloc --machine desktop-32g --profile 6.1\n  \
        kontig run hugepage-latency --machine xeon-64g --set vm.compaction_proactiveness=80\n  \
        kontig run hugealloc --machine xeon-64g --profile 7.2 --give-up-after 100 --repetitions 5\n  \
        kontig run hugepage-latency --machine xeon-64g --profile 7.2\n  \
        kontig run kbuild+hugealloc --machine box-2g --profile 6.12,7.2 --set vm.defrag_mode=0,1\n  \
        kontig run heap --snapshot host.snap --set vm.compaction_proactiveness=0,20,60\n  \
        kontig run watch --machine tiny-64m --profile 5.6 --switch proactive-compaction --html watch.html\n\n\
        'kontig list' shows workloads, experiments, machines, profiles, switches and sysctls.")]
    Run(RunArgs),
    /// Run a stored result again and see that it is the same, byte for byte
    #[command(after_help = "Example:\n  kontig rerun results/x\n\n\
        Every stored run file is read first. Exit codes: 0 the files and the runs are as result.json says; \
        1 a file is missing, cut or changed; 3 the files are whole, but the runs give something else.")]
    Rerun(RerunArgs),
    /// Show experiments, workloads, machines, profiles, switches and sysctls
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the file of an experiment, workload or machine, to be copied and changed
    Show {
        /// Its name, as 'kontig list' has it
        name: String,
    },
    /// Show the rules of a kernel generation, and where two differ
    #[command(subcommand)]
    Profile(crate::profile::ProfileCommand),
    /// Hold the engine against real kernels: record, verify, doctor, fidelity
    #[command(subcommand)]
    Oracle(crate::oracle::OracleCommand),
    /// Measure how fast Kontig is on this machine, and say what each figure means
    #[command(after_help = crate::bench::HELP)]
    Bench(crate::bench::BenchArgs),
    /// Print completions for a shell
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write man pages to a directory
    Man {
        /// The directory; made if need be.
        dir: PathBuf,
    },
}

impl Command {
    /// Which of its options make it do with less memory.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Command::Reproduce(_) | Command::Rerun(_) => Some("choose fewer runs side by side with -j 1"),
            Command::Run(_) => Some("choose a smaller machine with --machine, or fewer runs side by side with -j 1"),
            Command::Bench(bench) if bench.full => Some("choose smaller machines: leave --full out"),
            Command::Bench(_) => Some("end other programs first, or measure fewer rows"),
            _ => None,
        }
    }
}

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
