//! The files that come with Kontig: machines, workloads, experiments and the published targets.
//!
//! They are compiled in, so that one binary is enough.

/// A kind of file, each of which can start from another of its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    Machine,
    Workload,
    Experiment,
    Target,
}

macro_rules! data {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../", $name)))),*]
    };
}

/// Paths and texts; each file is called after the name inside it.
type Files = &'static [(&'static str, &'static str)];

const MACHINES: Files = data![
    "machines/xeon-1t.toml",
    "machines/xeon-64g.toml",
    "machines/desktop-32g.toml",
    "machines/desktop-8g.toml",
    "machines/skylake-1s.toml",
    "machines/box-2g.toml",
    "machines/xeon-4g.toml",
    "machines/tiny-64m.toml",
    "machines/guest-512m.toml",
    "machines/guest-620m.toml",
    "machines/guest-2g.toml",
    "machines/haswell-2s-64g.toml",
    "machines/haswell-1s-32g.toml",
    "machines/haswell-2s.toml",
    "machines/server-64g.toml",
    "machines/server-1t.toml",
    "machines/zen4-guest-16g.toml",
];
const WORKLOADS: Files = data![
    "workloads/hugealloc.toml",
    "workloads/heap.toml",
    "workloads/compact.toml",
    "workloads/watch.toml",
    "workloads/watch-unmovable.toml",
    "workloads/hugealloc-busy.toml",
    "workloads/kbuild.toml",
    "workloads/kbuild+hugealloc.toml",
    "workloads/kbuild+stream.toml",
    "workloads/kbuild-guest.toml",
    "workloads/fio+huge-faults.toml",
    "workloads/fio+huge-faults-2s.toml",
    "workloads/file-server.toml",
    "workloads/java.toml",
    "workloads/jvm-heap.toml",
    "workloads/forking-store.toml",
    "workloads/guests.toml",
    "workloads/kbuild+highalloc.toml",
    "workloads/highalloc.toml",
    "workloads/jvm-beside-files.toml",
    "workloads/jvm-in-container.toml",
    "workloads/postgres-like.toml",
    "workloads/vm-host.toml",
    "workloads/model-server.toml",
    "workloads/dpdk-start.toml",
    "workloads/container-host.toml",
    "workloads/busy-day.toml",
];
const EXPERIMENTS: Files = data![
    "experiments/hugepage-latency.toml",
    "experiments/java-heap.toml",
    "experiments/stutter.toml",
    "experiments/hugealloc-kbuild.toml",
    "experiments/hugealloc-kbuild-async.toml",
    "experiments/hugealloc-kbuild-wmarks.toml",
    "experiments/hugealloc-kbuild-handoff.toml",
    "experiments/hugealloc-kbuild-vanillafix.toml",
    "experiments/thpscale.toml",
    "experiments/usemem.toml",
    "experiments/usemem-uma.toml",
    "experiments/defrag-modes.toml",
    "experiments/thpfioscale.toml",
    "experiments/thpfioscale-series.toml",
    "experiments/backoff.toml",
    "experiments/compact-32g.toml",
    "experiments/pageblock-goal.toml",
    "experiments/stress-highalloc.toml",
    "experiments/stress-highalloc-thp.toml",
];
const TARGETS: Files = data![
    "experiments/targets/hugepage-latency.toml",
    "experiments/targets/java-heap.toml",
    "experiments/targets/stutter.toml",
    "experiments/targets/hugealloc-kbuild.toml",
    "experiments/targets/hugealloc-kbuild-async.toml",
    "experiments/targets/hugealloc-kbuild-wmarks.toml",
    "experiments/targets/hugealloc-kbuild-handoff.toml",
    "experiments/targets/hugealloc-kbuild-vanillafix.toml",
    "experiments/targets/thpscale.toml",
    "experiments/targets/usemem.toml",
    "experiments/targets/thpfioscale.toml",
    "experiments/targets/thpfioscale-series.toml",
    "experiments/targets/backoff.toml",
    "experiments/targets/compact-32g.toml",
    "experiments/targets/stress-highalloc.toml",
    "experiments/targets/stress-highalloc-thp.toml",
];

impl Form {
    pub fn name(self) -> &'static str {
        match self {
            Form::Machine => "machine",
            Form::Workload => "workload",
            Form::Experiment => "experiment",
            Form::Target => "target",
        }
    }

    pub fn files(self) -> Files {
        match self {
            Form::Machine => MACHINES,
            Form::Workload => WORKLOADS,
            Form::Experiment => EXPERIMENTS,
            Form::Target => TARGETS,
        }
    }

    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.files().iter().map(|(path, _)| stem(path))
    }

    /// Keys of a base that say nothing of a file that starts from it.
    pub(crate) fn own(self) -> &'static [&'static str] {
        match self {
            Form::Machine => &["name", "summary", "notes"],
            Form::Workload => &["summary"],
            Form::Experiment => &["id", "summary", "lack", "caveat", "page"],
            Form::Target => &["id", "caveat"],
        }
    }
}

/// The name of a built-in file, which is also the name inside it if it has one.
pub fn stem(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path).trim_end_matches(".toml")
}
