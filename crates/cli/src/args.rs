//! The command line. Help, completions and man pages all come from here.

use crate::run_args::{ReproduceArgs, RerunArgs, RunArgs};
use clap::{Parser, Subcommand};
use kontig_host::commands::HostCommand;
use std::path::PathBuf;

/// Reproduce and explore Linux's memory compaction on a simulated machine.
#[derive(Parser)]
#[command(
    version,
    propagate_version = true,
    after_help = "Examples:\n  \
        kontig reproduce hugepage-latency                 the headline experiment, published and measured\n  \
        kontig reproduce java-heap backoff --html r.html  two more, as a page with the memory map\n  \
        kontig run hugealloc --machine xeon-64g --set vm.compaction_proactiveness=60\n  \
        \u{20}                                                 what if?\n  \
        kontig profile diff 6.1 7.2                       what changed between two kernels, rule by rule\n\n\
        Exit codes: 0 done; 1 failed while running; 2 invalid arguments or input; 3 a verified recording or a rerun \
        result differs. Commands that inspect a host add: 4 compaction would make the blocks; 5 more privilege is \
        needed; 6 the blocks cannot be made; 7 only dropping clean cache would make them; 8 unknown; 9 the blocks were \
        predicted, but not available afterwards; 10 another guard is at work."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    #[command(flatten)]
    Host(HostCommand),
    /// Run published experiments and compare the results with the published ones
    #[command(after_help = "Examples:\n  \
        kontig reproduce hugepage-latency\n  \
        kontig reproduce hugepage-latency java-heap backoff --json --out results/x --html r.html > r.json\n\n\
        'kontig list' shows the experiments. Without a name, the headline experiment runs.")]
    Reproduce(ReproduceArgs),
    /// Run a workload or an experiment with your own settings: what if?
    #[command(after_help = "Examples:\n  \
        kontig run hugealloc --machine desktop-32g --profile 6.1\n  \
        kontig run hugepage-latency --machine xeon-64g --set vm.compaction_proactiveness=80\n  \
        kontig run hugealloc --machine xeon-64g --profile 7.2 --with give_up_after=100 --repetitions 5\n  \
        kontig run heap --machine xeon-4g,xeon-64g --with size=1GiB..3GiB:1GiB --seed 1..5\n  \
        kontig run hugepage-latency --machine xeon-64g --profile 7.2\n  \
        kontig run kbuild+hugealloc --machine box-2g --profile 6.12,7.2 --set vm.defrag_mode=0,1\n  \
        kontig run heap --snapshot host.snap --set vm.compaction_proactiveness=0,20,60\n  \
        kontig run watch --machine tiny-64m --profile 5.6 --switch proactive-compaction --html watch.html\n\n\
        'kontig list' shows workloads, experiments, machines, profiles, switches and sysctls; 'kontig show workload \
        NAME' the parameters for --with.")]
    Run(RunArgs),
    /// Run a stored result again and check that it is the same, byte for byte
    #[command(after_help = "Example:\n  kontig rerun results/x\n\n\
        All stored run files are checked first. Exit codes: 0 the files and the runs match result.json; \
        1 a file is missing, truncated or changed; 3 the files are intact, but the runs differ.")]
    Rerun(RerunArgs),
    /// Show stored results beside each other
    #[command(after_help = crate::compare::HELP)]
    Compare(crate::compare::CompareArgs),
    /// Write stored results as tables for other tools: CSV or Parquet
    #[command(after_help = crate::export::HELP)]
    Export(crate::export::ExportArgs),
    /// Show what compaction did in a trace, of a run or of a real host
    #[command(after_help = crate::trace::HELP)]
    Trace(crate::trace::TraceArgs),
    /// Write a workload that replays a recording of a real host
    #[command(subcommand, after_help = crate::workload::HELP)]
    Workload(crate::workload::WorkloadCommand),
    /// Show experiments, workloads, machines, profiles, switches and sysctls
    List {
        /// Print JSON (schema kontig.list/1)
        #[arg(long)]
        json: bool,
    },
    /// Print the file of an experiment, workload, machine or profile; its contents; or a result
    #[command(after_help = crate::show::HELP)]
    Show(crate::show::ShowArgs),
    /// Show the rules of a kernel generation, or how two differ
    #[command(subcommand)]
    Profile(crate::profile::ProfileCommand),
    /// Verify the engine against real kernels: record, verify, fidelity, guest, doctor
    #[command(subcommand)]
    Oracle(crate::oracle::OracleCommand),
    /// Measure how fast Kontig is on this machine, and explain each figure
    #[command(after_help = crate::bench::HELP)]
    Bench(crate::bench::BenchArgs),
    /// Print a completion script for a shell
    Completions { shell: clap_complete::Shell },
    /// Write man pages to a directory
    Man {
        /// Created if it does not exist
        dir: PathBuf,
    },
}

impl Command {
    /// Whether it runs experiments.
    pub fn runs(&self) -> bool {
        matches!(self, Command::Reproduce(_) | Command::Rerun(_) | Command::Run(_))
    }

    /// Advice for a command that has run out of memory.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Command::Reproduce(_) | Command::Rerun(_) => {
                Some("choose fewer runs side by side with -j 1, or a smaller machine in the experiment")
            }
            Command::Run(_) => Some("choose a smaller machine with --machine, or fewer runs side by side with -j 1"),
            Command::Bench(bench) if bench.full => Some("choose smaller machines: leave --full out"),
            Command::Bench(_) => Some("end other programs first, or measure fewer rows"),
            _ => None,
        }
    }
}
