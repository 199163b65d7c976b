//! The figures of one sample: blocks of a huge page at hand, the score, and what was counted since
//! boot. They are worked out from the texts as `kontig status` does it.

use super::count::{Count, ROWS, Source};
use super::sample::{Sample, Stored};
use crate::error::{ReadError, Unread};
use crate::host::page_size::PageSize;
use crate::host::thp::Thp;
use crate::host::{Host, Reading, possible};
use crate::status::Status;
use crate::status::events::count;
use kontig_procfs::{BadText, BuddyInfo, Choice, MemInfo, Pressure, ProcessStat, VmStat, ZoneInfo};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct NodePoint {
    pub node: u32,
    /// Blocks of a huge page that requests get at once.
    pub at_hand: Option<u64>,
    /// The kernel's fragmentation score, 0 to 100.
    pub score: Option<u64>,
    pub free_bytes: u64,
}

/// The figures of one sample. What the sample does not tell is `None`, or not among the counts.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    pub unix_ms: i64,
    pub boot: Option<Arc<str>>,
    pub uptime_s: Option<f64>,
    /// Seconds after which the next sample should be taken.
    pub interval_s: f64,
    pub nodes: Vec<NodePoint>,
    pub counts: BTreeMap<Count, f64>,
    /// Waits and events of groups since they were made, by their path and kind.
    pub groups: BTreeMap<(String, &'static str), f64>,
}

impl Point {
    pub fn of(sample: &Sample) -> Point {
        let host = host(sample);
        let status = Status::of(&host, None, None).ok();
        let nodes = status.iter().flat_map(|status| &status.nodes);
        let node = |node: &crate::status::Node| NodePoint {
            node: node.node,
            at_hand: node.at_hand,
            score: node.score,
            free_bytes: node.free_bytes,
        };
        let counts = ROWS.iter().filter_map(|row| Some((row.count, counted(sample, &host, row.source)?)));
        Point {
            unix_ms: sample.unix_ms,
            boot: sample.boot().map(Arc::from),
            uptime_s: sample.uptime_s(),
            interval_s: sample.interval_s(),
            nodes: nodes.map(node).collect(),
            counts: counts.collect(),
            groups: groups(sample),
        }
    }

    /// Huge pages at hand on all nodes.
    pub fn at_hand(&self) -> Option<u64> {
        self.nodes.iter().map(|node| node.at_hand).sum::<Option<u64>>().filter(|_| !self.nodes.is_empty())
    }

    /// The worst score of any node.
    pub fn score(&self) -> Option<u64> {
        self.nodes.iter().filter_map(|node| node.score).max()
    }

    /// Seconds from an earlier point to this, by the clock that no one sets; `None` if it was
    /// another boot.
    pub fn seconds_since(&self, earlier: &Point) -> Option<f64> {
        (self.boot == earlier.boot).then_some(())?;
        Some(self.uptime_s? - earlier.uptime_s?).filter(|seconds| *seconds > 0.0)
    }
}

/// Bytes of a page, as the recorder was told them, or as they follow from other texts.
pub fn page_bytes(sample: &Sample) -> Option<u64> {
    Some(host(sample).page_size?.bytes)
}

/// Bytes of a huge page; `None` on a kernel that has none.
pub fn huge_page_bytes(sample: &Sample) -> Option<u64> {
    let host = host(sample);
    Some(host.page_size?.bytes << host.huge_page_order()?)
}

/// The part of a host that the figures need.
pub(crate) fn host(sample: &Sample) -> Host {
    let missing = |path: &str| ReadError { path: path.into(), why: Unread::Missing };
    let text = |path: &str| sample.text(path).ok_or_else(|| missing(path));
    fn parsed<T>(text: Reading<&str>, path: &str, parse: fn(&str, &str) -> Result<T, BadText>) -> Reading<T> {
        Ok(parse(path, text?)?)
    }
    macro_rules! parse {
        ($type:ty, $path:literal) => {
            parsed(text($path), $path, <$type>::parse)
        };
    }
    const THP: &str = "sys/kernel/mm/transparent_hugepage";
    let thp = || {
        let path = format!("{THP}/enabled");
        let enabled = Choice::parse(&path, text(&path)?)?;
        let pmd_size = sample.text(&format!("{THP}/hpage_pmd_size")).and_then(|text| text.trim().parse().ok());
        Ok(Thp::of(enabled, pmd_size))
    };
    let (meminfo, zoneinfo) = (parse!(MemInfo, "proc/meminfo"), parse!(ZoneInfo, "proc/zoneinfo"));
    let told = sample.text(super::sample::PAGE_SIZE).and_then(|text| text.trim().parse().ok());
    let told = told.map(|bytes| PageSize { bytes, concluded: false });
    Host {
        release: text("proc/sys/kernel/osrelease").map(|text| text.trim().to_string()),
        uptime_s: Err(missing("proc/uptime")),
        page_size: told.or_else(|| PageSize::concluded(meminfo.as_ref().ok(), zoneinfo.as_ref().ok())),
        buddyinfo: parse!(BuddyInfo, "proc/buddyinfo").and_then(|info| possible("proc/buddyinfo".as_ref(), info)),
        pagetypeinfo: Err(missing("proc/pagetypeinfo")),
        zoneinfo,
        vmstat: parse!(VmStat, "proc/vmstat"),
        meminfo,
        pressure: parse!(Pressure, "proc/pressure/memory"),
        slabinfo: Err(missing("proc/slabinfo")),
        nodes: Vec::new(),
        sysctls: sysctls(sample),
        thp: thp(),
        limits: Default::default(),
        pools: Err(missing("sys/kernel/mm/hugepages")),
        lru_gen: Err(missing("sys/kernel/mm/lru_gen/enabled")),
    }
}

/// The settings below `vm` that the sample has.
fn sysctls(sample: &Sample) -> Vec<(String, Reading<String>)> {
    const DIR: &str = "proc/sys/vm/";
    let value =
        |(path, stored): (&str, &Stored)| Some((path[DIR.len()..].to_string(), Ok(stored.text()?.trim().to_string())));
    sample.below(DIR).filter_map(value).collect()
}

/// The count that a sample tells.
pub(crate) fn counted(sample: &Sample, host: &Host, source: Source) -> Option<f64> {
    match source {
        Source::Counter(name) => count(host, name).map(|n| n as f64),
        Source::Thread(name) => threads(sample, name),
        Source::Pressure(who) => host.pressure.as_ref().ok()?.stall(who).map(|stall| stall.total_us as f64 / 1e6),
    }
}

/// Seconds of a CPU that the threads of this name took.
fn threads(sample: &Sample, name: &str) -> Option<f64> {
    let stats = sample.below("proc/").filter(|(path, _)| path.ends_with("/stat"));
    let stats = stats.filter_map(|(path, stored)| ProcessStat::parse(path, stored.text()?).ok());
    let of_name = stats.filter(|stat| stat.name.starts_with(name));
    of_name.map(|stat| stat.ticks() as f64 / TICKS_PER_S).reduce(|a, b| a + b)
}

/// Linux has told user space so on every machine since 2.6, but on Alpha and ia64: the machine that
/// was recorded need not be this one.
const TICKS_PER_S: f64 = 100.0;

/// Seconds in which some task of a group waited for memory, and its events.
fn groups(sample: &Sample) -> BTreeMap<(String, &'static str), f64> {
    let mut all = BTreeMap::new();
    for (path, stored) in sample.below("sys/fs/cgroup/") {
        let (Some((group, file)), Some(text)) = (path.rsplit_once('/'), stored.text()) else { continue };
        let group = group.trim_start_matches("sys/fs/cgroup");
        let group = ["/unified", "/memory"].into_iter().find_map(|m| group.strip_prefix(m)).unwrap_or(group);
        let group = if group.is_empty() { "/" } else { group };
        let mut add = |what, value: f64| all.insert((group.to_string(), what), value);
        match file {
            "memory.pressure" => {
                let pressure = Pressure::parse(path, text).ok();
                let some = pressure.as_ref().and_then(|p| p.stall("some"));
                some.map(|some| add(WAITED_S, some.total_us as f64 / 1e6));
            }
            "memory.failcnt" => {
                text.trim().parse().ok().map(|n| add(AT_LIMIT, n));
            }
            "memory.events" => {
                let fields = text.lines().filter_map(|line| line.split_once(' '));
                for (name, value) in fields {
                    let Ok(value) = value.parse::<f64>() else { continue };
                    match name {
                        "max" => add(AT_LIMIT, value),
                        "high" => add(SLOWED, value),
                        "oom_kill" => add(KILLED, value),
                        _ => None,
                    };
                }
            }
            _ => {}
        }
    }
    all
}

/// Kinds of waits and events of a group.
pub const WAITED_S: &str = "waited_s";
pub const AT_LIMIT: &str = "at_limit";
pub const SLOWED: &str = "slowed";
pub const KILLED: &str = "killed";

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(files: &[(&str, &str)]) -> Sample {
        let stored = |(path, text): &(&str, &str)| ((*path).into(), Stored::Text((*text).into()));
        Sample { unix_ms: 0, files: files.iter().map(stored).collect() }
    }

    #[test]
    fn threads_of_all_nodes_are_added_up_whatever_their_names_hold() {
        let stat = |pid: u32, name: &str, user: u32, kernel: u32| {
            format!("{pid} ({name}) S 2 0 0 0 -1 2129984 0 0 0 0 {user} {kernel} 0 0 20 0 1 0 78 0 0\n")
        };
        let texts = [stat(39, "kcompactd0", 1, 249), stat(40, "kcompactd1", 0, 50), stat(41, "kswapd0", 0, 7)];
        let sample = sample(&[
            ("proc/39/stat", &texts[0]),
            ("proc/40/stat", &texts[1]),
            ("proc/41/stat", &texts[2]),
            ("proc/stat", "cpu 1 2 3\n"),
        ]);
        assert_eq!(Point::of(&sample).counts, [(Count::Kcompactd, 3.0), (Count::Kswapd, 0.07)].into());
    }

    #[test]
    fn groups_of_both_versions_are_known_by_their_paths() {
        let sample = sample(&[
            ("sys/fs/cgroup/a/memory.events", "low 0\nhigh 3\nmax 4\noom 1\noom_kill 1\n"),
            ("sys/fs/cgroup/a/memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\n"),
            ("sys/fs/cgroup/memory/b/c/memory.failcnt", "5\n"),
        ]);
        let found: Vec<(String, &str, f64)> =
            Point::of(&sample).groups.into_iter().map(|((group, what), n)| (group, what, n)).collect();
        let of = |group: &str, what, n| (group.to_string(), what, n);
        let expected = [of("/a", AT_LIMIT, 4.0), of("/a", KILLED, 1.0), of("/a", SLOWED, 3.0), of("/a", WAITED_S, 2.5)];
        assert_eq!(found, [&expected[..], &[of("/b/c", AT_LIMIT, 5.0)]].concat());
    }
}
