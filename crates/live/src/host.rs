//! Everything a host says of its memory in text, read once.
//!
//! The rule: each file is read by itself, and what becomes of it, its contents or why there are
//! none, is kept. Reading never fails as a whole; the user of a file reports that it is not there.

pub mod numbers;
pub mod page_size;
pub mod pools;
pub mod thp;

use crate::cgroup::Limits;
use crate::error::ReadError;
use crate::lru_gen;
use crate::roots::{Roots, names};
use kontig_procfs::{BadText, BuddyInfo, MemInfo, NodeMemInfo, PageTypeInfo, Pressure, SlabInfo, VmStat, ZoneInfo};
use page_size::PageSize;
use pools::Pool;
use std::path::Path;
use thp::Thp;

/// A file's contents, or why it was not read.
pub type Reading<T> = Result<T, ReadError>;

/// The state of a host's memory at one moment, as its files show it.
#[derive(Clone, Debug)]
pub struct Host {
    pub release: Reading<String>,
    pub uptime_s: Reading<f64>,
    pub page_size: Option<PageSize>,
    /// Free blocks of each order.
    pub buddyinfo: Reading<BuddyInfo>,
    /// Free blocks and pageblocks by type: for root only.
    pub pagetypeinfo: Reading<PageTypeInfo>,
    /// Zones with their marks.
    pub zoneinfo: Reading<ZoneInfo>,
    pub vmstat: Reading<VmStat>,
    pub meminfo: Reading<MemInfo>,
    /// How long tasks were stalled for want of memory.
    pub pressure: Reading<Pressure>,
    /// Caches of small objects: for root only.
    pub slabinfo: Reading<SlabInfo>,
    /// The memory of each node.
    pub nodes: Vec<Reading<NodeMemInfo>>,
    /// Files below `/proc/sys/vm` that may be read, by name. Those that can only be written are not
    /// among them.
    pub sysctls: Vec<(String, Reading<String>)>,
    /// Transparent huge pages; missing where the kernel has none.
    pub thp: Reading<Thp>,
    /// Limits of this process's control groups.
    pub limits: Limits,
    /// Pools of huge pages, by size.
    pub pools: Reading<Vec<Pool>>,
    /// The parts of the multi-generational LRU that are on; missing where the kernel has none.
    pub lru_gen: Reading<u64>,
}

impl Host {
    /// Reads all of it.
    pub fn read(roots: &Roots) -> Host {
        let meminfo = proc(roots, "meminfo", MemInfo::parse);
        let zoneinfo = proc(roots, "zoneinfo", ZoneInfo::parse);
        Host {
            release: roots.read_proc("sys/kernel/osrelease").map(|text| text.trim().to_string()),
            uptime_s: uptime(roots),
            page_size: page_size::of(roots, meminfo.as_ref().ok(), zoneinfo.as_ref().ok()),
            buddyinfo: buddyinfo(roots),
            pagetypeinfo: proc(roots, "pagetypeinfo", PageTypeInfo::parse),
            zoneinfo,
            vmstat: proc(roots, "vmstat", VmStat::parse),
            meminfo,
            pressure: proc(roots, "pressure/memory", Pressure::parse),
            slabinfo: proc(roots, "slabinfo", SlabInfo::parse),
            nodes: nodes(roots),
            sysctls: sysctls(roots),
            thp: thp::read(roots),
            limits: Limits::read(roots),
            pools: pools::read(roots),
            lru_gen: lru_gen::enabled(roots),
        }
    }

    /// A sysctl below `vm` as the kernel prints it; `None` where it does not exist or cannot be
    /// read.
    pub fn sysctl(&self, name: &str) -> Option<&str> {
        let (_, reading) = self.sysctls.iter().find(|(n, _)| n == name)?;
        reading.as_deref().ok()
    }

    /// A sysctl that is one number.
    pub fn sysctl_number(&self, name: &str) -> Option<u64> {
        self.sysctl(name)?.parse().ok()
    }

    /// A counter of `/proc/vmstat`.
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.vmstat.as_ref().ok()?.get(name)
    }

    /// The order of the huge page that an entry of a page table's middle level maps. The kernel's
    /// own fragmentation score is for this order.
    pub fn huge_page_order(&self) -> Option<u32> {
        let page = self.page_size?.bytes;
        let thp = self.thp.as_ref().ok().and_then(|thp| thp.pmd_size);
        let pool = || self.meminfo.as_ref().ok()?.kb("Hugepagesize").map(|kb| kb.saturating_mul(1024));
        let bytes = thp.or_else(pool)?;
        order_of(bytes, page)
    }

    /// Why files were not read, of those that every host has or that say more to root.
    pub fn unread(&self) -> Vec<&ReadError> {
        let nodes = self.nodes.iter().map(|n| n.as_ref().err());
        let sysctls = self.sysctls.iter().map(|(_, reading)| reading.as_ref().err());
        let files = [
            self.release.as_ref().err(),
            self.uptime_s.as_ref().err(),
            self.buddyinfo.as_ref().err(),
            self.pagetypeinfo.as_ref().err(),
            self.zoneinfo.as_ref().err(),
            self.vmstat.as_ref().err(),
            self.meminfo.as_ref().err(),
            self.pressure.as_ref().err(),
            self.slabinfo.as_ref().err(),
            self.thp.as_ref().err(),
            self.pools.as_ref().err(),
        ];
        let lru_gen = self.lru_gen.as_ref().err().filter(|e| !e.is_missing());
        let thp = self.thp.iter().flat_map(Thp::unread).map(Some);
        let pools = self.pools.iter().flatten().flat_map(Pool::unread).map(Some);
        files.into_iter().chain(nodes).chain(sysctls).chain([lru_gen]).chain(thp).chain(pools).flatten().collect()
    }
}

/// A file below `/proc`, parsed.
pub(crate) fn proc<T>(roots: &Roots, file: &str, parse: impl Fn(&str, &str) -> Result<T, BadText>) -> Reading<T> {
    roots.parse_proc(file, parse)
}

/// A file below `/sys`, parsed.
fn sys<T>(roots: &Roots, file: &str, parse: impl Fn(&str, &str) -> Result<T, BadText>) -> Reading<T> {
    parsed(&roots.sys(file), &roots.read_sys(file)?, parse)
}

fn parsed<T>(path: &Path, text: &str, parse: impl Fn(&str, &str) -> Result<T, BadText>) -> Reading<T> {
    Ok(parse(&path.display().to_string(), text)?)
}

fn uptime(roots: &Roots) -> Reading<f64> {
    let text = roots.read_proc("uptime")?;
    let seconds = text.split_whitespace().next().and_then(|word| word.parse().ok()).filter(|s: &f64| s.is_finite());
    seconds.ok_or_else(|| ReadError::malformed(&roots.proc("uptime"), 1, "it does not begin with seconds"))
}

/// Free blocks of each order.
pub(crate) fn buddyinfo(roots: &Roots) -> Reading<BuddyInfo> {
    proc(roots, "buddyinfo", BuddyInfo::parse).and_then(|info| possible(&roots.proc("buddyinfo"), info))
}

/// More free pages than any machine has are a mistake, and orders no machine has, too.
pub(crate) fn possible(path: &Path, info: BuddyInfo) -> Reading<BuddyInfo> {
    const MOST_ORDERS: usize = 40;
    const MOST_PAGES: u64 = 1 << 48;
    let pages = |of_order: &[u64]| {
        (0..).zip(of_order).try_fold(0u64, |sum, (order, n)| {
            n.checked_mul(1 << order).and_then(|pages| sum.checked_add(pages)).filter(|sum| *sum <= MOST_PAGES)
        })
    };
    for (line, zone) in (1..).zip(&info.zones) {
        if zone.of_order.len() > MOST_ORDERS || pages(&zone.of_order).is_none() {
            let reason = "more free memory than a machine can have";
            return Err(ReadError::malformed(path, line, reason));
        }
    }
    Ok(info)
}

const NODES: &str = "devices/system/node";

fn nodes(roots: &Roots) -> Vec<Reading<NodeMemInfo>> {
    let mut numbers: Vec<u32> = match names(&roots.sys(NODES)) {
        Ok(names) => names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok()).collect(),
        // A kernel without NUMA has no such directory.
        Err(e) if e.is_missing() => return vec![],
        Err(e) => return vec![Err(e)],
    };
    numbers.sort_unstable();
    numbers.iter().map(|n| sys(roots, &format!("{NODES}/node{n}/meminfo"), NodeMemInfo::parse)).collect()
}

/// Files that trigger an action when written; nobody can read them.
const WRITE_ONLY: [&str; 3] = ["compact_memory", "drop_caches", "stat_refresh"];

fn sysctls(roots: &Roots) -> Vec<(String, Reading<String>)> {
    let names = match names(&roots.proc("sys/vm")) {
        Ok(names) => names,
        Err(e) => return vec![("".into(), Err(e))],
    };
    let read = |name: String| {
        let value = roots.read_proc(format!("sys/vm/{name}")).map(|text| text.trim().to_string());
        (name, value)
    };
    names.into_iter().filter(|name| !WRITE_ONLY.contains(&name.as_str())).map(read).collect()
}

/// The order of a huge page of this many bytes.
pub(crate) fn order_of(bytes: u64, page: u64) -> Option<u32> {
    let pages = bytes.checked_div(page)?;
    (pages.is_power_of_two() && pages * page == bytes).then(|| pages.trailing_zeros())
}
