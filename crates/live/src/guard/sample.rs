//! All that the controller knows of a host at one moment: free blocks and marks of each node's
//! zones, and who waits for what.
//!
//! It is made of the kernel's own texts, so a recorded host is read alike ([`Texts`]).

use crate::deferred;
use crate::error::ReadError;
use crate::host::{order_of, possible};
use crate::roots::Roots;
use crate::supply::ZoneSupply;
use kontig_mm::index::ContigInfo;
use kontig_procfs::{BadText, BuddyInfo, MemInfo, Pressure, ZoneInfo};
use serde::Serialize;
use std::path::Path;

/// The order of a huge page where no file tells.
const USUAL_ORDER: u32 = 9;

/// A host at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// Seconds, from any beginning.
    pub at_s: f64,
    pub nodes: Vec<NodeSample>,
    /// How busy the host is.
    pub busy: Busy,
    /// `vm.compaction_proactiveness`; `None` where the kernel has none.
    pub kernel_compacts: Option<u64>,
}

/// How busy a host is; a field is `None` if the kernel does not say.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Busy {
    /// The share of the last 10 seconds in which some task waited for a CPU.
    pub waited_cpu: Option<f64>,
    /// The same for memory.
    pub waited_memory: Option<f64>,
    /// Tasks that run or want to, of the last minute, for each CPU.
    pub load: Option<f64>,
}

/// A node's free memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeSample {
    pub node: u32,
    /// The order of a huge page, which the kernel's own score is about.
    pub huge_order: u32,
    pub zones: Vec<ZoneSample>,
}

/// A zone's free memory, and what it keeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneSample {
    pub name: String,
    pub present: u64,
    /// The low mark with what is kept from users' requests.
    pub kept: u64,
    /// Free blocks of each order.
    pub free: Vec<u64>,
    /// Free pages on no list until they are wanted.
    pub deferred: u64,
}

impl ZoneSample {
    /// Makes blocks of an order of smaller ones, the largest first. Returns their number.
    fn join(&mut self, most: u64, order: u32) -> u64 {
        let small = self.free.len().min(order as usize);
        let pages: u64 = (0..).zip(&self.free[..small]).map(|(o, n): (u32, &u64)| n << o).sum();
        let made = most.min(pages >> order);
        let mut left = made << order;
        for o in (0..small).rev() {
            let taken = self.free[o].min(left >> o);
            self.free[o] -= taken;
            left -= taken << o;
        }
        // A larger one is split for the rest.
        if let Some(o) = (0..small).find(|o| left > 0 && self.free[*o] > 0) {
            self.free[o] -= 1;
            self.free[0] += (1 << o) - left;
        }
        if let Some(n) = self.free.get_mut(order as usize) {
            *n += made;
        }
        made
    }

    fn free_pages(&self) -> u64 {
        ContigInfo::new(&self.free, 0).free_pages
    }
}

impl NodeSample {
    /// Blocks of an order that users' requests get without compaction.
    pub fn at_hand(&self, order: u32) -> u64 {
        let of_zone = |zone: &ZoneSample| {
            ZoneSupply::new(self.node, zone.free.clone(), zone.deferred, zone.kept, [0; 2]).at_hand(order).unwrap_or(0)
        };
        self.zones.iter().map(of_zone).sum()
    }

    /// Blocks of an order that its free pages above the marks make at most.
    pub fn possible(&self, order: u32) -> u64 {
        let of_zone = |zone: &ZoneSample| (zone.free_pages() + zone.deferred).saturating_sub(zone.kept) >> order;
        self.zones.iter().map(of_zone).sum()
    }

    pub fn present(&self) -> u64 {
        self.zones.iter().map(|zone| zone.present).sum()
    }

    pub fn free_pages(&self) -> u64 {
        self.zones.iter().map(ZoneSample::free_pages).sum()
    }

    /// The same with this number of blocks more, made of the free pages in smaller ones; and the
    /// number for which there were enough.
    pub fn with_blocks(&self, more: u64, order: u32) -> (NodeSample, u64) {
        let (mut node, mut made) = (self.clone(), 0);
        for zone in &mut node.zones {
            made += zone.join(more - made, order);
        }
        (node, made)
    }

    /// Free pages in blocks that are too small.
    pub fn too_small(&self, order: u32) -> u64 {
        let of_zone = |zone: &ZoneSample| {
            let info = ContigInfo::new(&zone.free, order);
            info.free_pages - (info.suitable << order)
        };
        self.zones.iter().map(of_zone).sum()
    }

    /// The kernel's fragmentation score of the node, 0 to 100: each zone's, by its share of the
    /// node.
    pub fn score(&self) -> u64 {
        let present = self.present();
        let of_zone = |z: &ZoneSample| ContigInfo::new(&z.free, self.huge_order).extfrag() * z.present / (present + 1);
        self.zones.iter().map(of_zone).sum()
    }
}

/// Reads samples of a host, each file as seldom as will do.
pub struct Sampler {
    page_bytes: u64,
    huge_order: u32,
    zones: Option<(f64, Vec<ZoneSample>, Vec<u32>)>,
    /// CPUs at work; `None` before the first look at zones.
    cpus: Option<usize>,
    busy: Option<(f64, Busy)>,
}

/// Seconds for which marks and sizes of zones are taken to be as they were.
const ZONES_FOR_S: f64 = 5.0;
/// The same where a zone has free memory on no list, which shrinks as the lists grow.
const DEFERRED_FOR_S: f64 = 0.4;
/// Seconds for which the load is taken to be as it was: the kernel's own averages are renewed every
/// two.
const BUSY_FOR_S: f64 = 2.0;

/// The texts of a host, here or recorded.
pub trait Texts {
    /// The text of a file below `/proc`.
    ///
    /// # Errors
    /// If it is missing, or may not be read.
    fn proc(&self, file: &str) -> Result<String, ReadError>;

    /// The same below `/sys`.
    ///
    /// # Errors
    /// As [`Texts::proc`].
    fn sys(&self, file: &str) -> Result<String, ReadError>;
}

impl Texts for Roots {
    fn proc(&self, file: &str) -> Result<String, ReadError> {
        self.read_proc(file)
    }

    fn sys(&self, file: &str) -> Result<String, ReadError> {
        self.read_sys(file)
    }
}

/// The order of a huge page, as `status` finds it, where free lists have such blocks: a pool may
/// have larger ones.
fn huge_order(texts: &impl Texts, page_bytes: u64, lists: usize) -> Option<u32> {
    let thp = texts.sys("kernel/mm/transparent_hugepage/hpage_pmd_size").ok();
    let thp = thp.and_then(|text| text.trim().parse().ok());
    let pool = || parsed(texts, "meminfo", MemInfo::parse).ok()?.kb("Hugepagesize")?.checked_mul(1024);
    order_of(thp.or_else(pool)?, page_bytes).filter(|order| (*order as usize) < lists)
}

impl Sampler {
    pub fn new(page_bytes: u64) -> Sampler {
        Sampler { page_bytes, huge_order: USUAL_ORDER, zones: None, cpus: None, busy: None }
    }

    /// The host at this moment.
    ///
    /// # Errors
    /// If free lists or zones cannot be read.
    pub fn sample(&mut self, texts: &impl Texts, at_s: f64) -> Result<Sample, ReadError> {
        let nodes = self.nodes(texts, at_s)?;
        let busy = match self.busy {
            Some((then, busy)) if (0.0..BUSY_FOR_S).contains(&(at_s - then)) => busy,
            _ => self.busy.insert((at_s, busy(texts, self.cpus))).1,
        };
        let kernel_compacts =
            texts.proc("sys/vm/compaction_proactiveness").ok().and_then(|text| text.trim().parse().ok());
        Ok(Sample { at_s, nodes, busy, kernel_compacts })
    }

    /// The free memory alone.
    ///
    /// # Errors
    /// If free lists or zones cannot be read.
    pub fn nodes(&mut self, texts: &impl Texts, at_s: f64) -> Result<Vec<NodeSample>, ReadError> {
        let buddy = possible(Path::new("buddyinfo"), parsed(texts, "buddyinfo", BuddyInfo::parse)?)?;
        let old = self.zones.as_ref().is_none_or(|(then, zones, _)| {
            // What comes onto a list meanwhile would count twice.
            let for_s = if zones.iter().any(|zone| zone.deferred > 0) { DEFERRED_FOR_S } else { ZONES_FOR_S };
            !(0.0..for_s).contains(&(at_s - then))
        });
        if old {
            let info = parsed(texts, "zoneinfo", ZoneInfo::parse)?;
            let meminfo = parsed(texts, "meminfo", MemInfo::parse).ok();
            let not_initialised = deferred::not_initialised(&info, meminfo.as_ref(), self.page_bytes);
            let deferred = deferred::of_zones(&info, not_initialised);
            let each = || info.zones.iter().zip(&deferred);
            let populated = || each().filter(|(zone, _)| zone.sizes.get("managed").is_some_and(|n| n > 0));
            let zones = populated().map(|(zone, deferred)| ZoneSample {
                name: zone.at.zone.clone(),
                present: zone.sizes.get("present").unwrap_or(0),
                kept: zone.sizes.get("low").unwrap_or(0) + zone.protection.iter().copied().max().unwrap_or(0),
                free: Vec::new(),
                deferred: *deferred,
            });
            self.cpus = info.cpus();
            let lists = buddy.zones.iter().map(|zone| zone.of_order.len()).max().unwrap_or(0);
            self.huge_order = huge_order(texts, self.page_bytes, lists).unwrap_or(USUAL_ORDER);
            self.zones = Some((at_s, zones.collect(), populated().map(|(zone, _)| zone.at.node).collect()));
        }
        let Some((_, zones, of_nodes)) = &self.zones else { return Ok(Vec::new()) };
        let mut nodes: Vec<NodeSample> = Vec::new();
        for (zone, node) in zones.iter().zip(of_nodes) {
            let found = buddy.zones.iter().find(|free| free.at.node == *node && free.at.zone == zone.name);
            let Some(free) = found else { continue };
            let zone = ZoneSample { free: free.of_order.clone(), ..zone.clone() };
            match nodes.iter_mut().find(|known| known.node == *node) {
                Some(known) => known.zones.push(zone),
                None => nodes.push(NodeSample { node: *node, huge_order: self.huge_order, zones: vec![zone] }),
            }
        }
        Ok(nodes)
    }
}

fn parsed<T>(texts: &impl Texts, file: &str, parse: impl Fn(&str, &str) -> Result<T, BadText>) -> Result<T, ReadError> {
    Ok(parse(&format!("/proc/{file}"), &texts.proc(file)?)?)
}

fn busy(texts: &impl Texts, cpus: Option<usize>) -> Busy {
    let waited = |what: &str| {
        let pressure = parsed(texts, &format!("pressure/{what}"), Pressure::parse).ok()?;
        pressure.stall("some")?.share(10).map(|share| f64::from(share) / 10_000.0)
    };
    Busy { waited_cpu: waited("cpu"), waited_memory: waited("memory"), load: load(texts, cpus) }
}

/// The load average of the last minute for each CPU that has lists of free pages: those at work.
fn load(texts: &impl Texts, cpus: Option<usize>) -> Option<f64> {
    let average: f64 = texts.proc("loadavg").ok()?.split_whitespace().next()?.parse().ok()?;
    let cpus = cpus.filter(|cpus| *cpus > 0)?;
    average.is_finite().then(|| average / cpus as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str, present: u64, kept: u64, free: Vec<u64>) -> ZoneSample {
        ZoneSample { name: name.into(), present, kept, free, deferred: 0 }
    }

    #[test]
    fn a_nodes_free_memory_is_told_as_the_kernel_and_its_requests_see_it() {
        let normal = zone("Normal", 8192, 512, vec![1024, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1]);
        let node = NodeSample { node: 0, huge_order: 9, zones: vec![zone("DMA", 0, 0, vec![0; 11]), normal] };
        assert_eq!((node.at_hand(9), node.possible(9), node.too_small(9)), (4, 5, 1024));
        assert_eq!(node.score(), 33 * 8192 / 8193, "1024 of 3072 free pages are too small");
    }

    #[test]
    fn a_check_the_status_and_guard_have_one_number_of_blocks_at_hand_where_memory_is_initialised_late() {
        use crate::host::Host;
        use crate::need::Need;
        use crate::prepare::execution::supply_of;
        use crate::status::Status;
        const ZONEINFO: &str = concat!(
            "Node 0, zone   Normal\n  per-node stats\n      nr_inactive_anon 0\n  pages free     4096\n",
            "        min      10\n        low      20\n        high     30\n        spanned  16384\n",
            "        present  16384\n        managed  8192\n        protection: (0)\n      nr_free_pages 4096\n",
            "  pagesets\n    cpu: 0\n              count: 0\n  node_unreclaimable:  0\n  start_pfn:           0\n",
        );
        let at_hand = |meminfo: &str| {
            let tree = tempfile::tempdir().expect("a directory");
            let roots = Roots { procfs: tree.path().into(), sysfs: tree.path().join("sys") };
            let buddyinfo = "Node 0, zone   Normal 0 0 0 0 0 0 0 0 0 4 2 \n";
            for (file, text) in [("zoneinfo", ZONEINFO), ("buddyinfo", buddyinfo), ("meminfo", meminfo)] {
                std::fs::write(roots.proc(file), text).expect("written");
            }
            let all = Need { count: 1 << 20, order: 9, node: None, unmovable: false };
            let check = supply_of(&roots, 4096).expect("read").obtainable(&[all])[0];
            let status = Status::of(&Host::read(&roots), Some(9), None).expect("a status");
            let guard = Sampler::new(4096).nodes(&roots, 0.0).expect("read")[0].at_hand(9);
            let orders = status.nodes[0].zones[0].orders[9].at_hand;
            (check, status.nodes[0].at_hand, Some(orders), Some(guard), status.nodes[0].zones[0].deferred_bytes)
        };
        let late = at_hand("MemTotal: 65536 kB\nMemFree: 49152 kB\n");
        // 12,288 pages are free, and the low mark keeps a block.
        assert_eq!(late, (Some(23), Some(23), Some(23), Some(23), 8192 * 4096));
        // A balloon has the other half: nobody gets that.
        let taken = at_hand("MemTotal: 65536 kB\nMemFree: 16384 kB\n");
        assert_eq!(taken, (Some(7), Some(7), Some(7), Some(7), 0));
    }

    #[test]
    fn blocks_are_made_of_smaller_ones_without_a_page_more() {
        let node = |free: Vec<u64>| NodeSample { node: 0, huge_order: 9, zones: vec![zone("Normal", 8192, 0, free)] };
        let made = |free, more| {
            let (node, made) = node(free).with_blocks(more, 3);
            (node.zones[0].free.clone(), made)
        };
        assert_eq!(made(vec![20, 0, 0, 1], 9), (vec![4, 0, 0, 3], 2));
        assert_eq!(made(vec![20, 0, 3, 0], 1), (vec![20, 0, 1, 1], 1));
        assert_eq!(made(vec![1, 0, 2, 0], 1), (vec![1, 0, 0, 1], 1));
        assert_eq!(made(vec![2, 1, 1, 0], 1), (vec![0, 0, 0, 1], 1));
        assert_eq!(made(vec![0, 3, 0, 0], 1), (vec![0, 3, 0, 0], 0));
    }

    #[test]
    fn more_free_memory_than_a_machine_can_have_is_refused_as_by_the_status() {
        struct Impossible;
        impl Texts for Impossible {
            fn proc(&self, file: &str) -> Result<String, ReadError> {
                let text = format!("Node 0, zone   Normal {} 1 1\n", u64::MAX);
                let missing = || ReadError { path: file.into(), why: crate::error::Unread::Missing };
                (file == "buddyinfo").then_some(text).ok_or_else(missing)
            }

            fn sys(&self, file: &str) -> Result<String, ReadError> {
                self.proc(file)
            }
        }
        let refused = Sampler::new(4096).nodes(&Impossible, 0.0).expect_err("impossible").to_string();
        assert!(refused.contains("more free memory than a machine can have"), "{refused}");
    }

    #[test]
    fn the_score_is_about_the_hosts_own_huge_page() {
        struct Host(&'static str, &'static str);
        impl Texts for Host {
            fn proc(&self, file: &str) -> Result<String, ReadError> {
                let missing = || ReadError { path: file.into(), why: crate::error::Unread::Missing };
                (file == "meminfo").then(|| self.0.into()).ok_or_else(missing)
            }

            fn sys(&self, _: &str) -> Result<String, ReadError> {
                Ok(self.1.into())
            }
        }
        let pool = "Hugepagesize:    1048576 kB\n";
        assert_eq!(huge_order(&Host(pool, "2097152\n"), 4096, 11), Some(9), "not that of the pool");
        assert_eq!(huge_order(&Host("", "536870912\n"), 65536, 14), Some(13));
        assert_eq!(huge_order(&Host("Hugepagesize:       2048 kB\n", ""), 4096, 11), Some(9));
        assert_eq!(huge_order(&Host(pool, ""), 4096, 11), None, "no free list has such blocks");
        let normal = zone("Normal", 8192, 0, vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1]);
        let score = |huge_order| NodeSample { node: 0, huge_order, zones: vec![normal.clone()] }.score();
        assert_eq!((score(9), score(10)), (0, 49));
    }

    #[test]
    fn a_zone_keeps_its_low_mark_and_the_largest_of_its_reserves() {
        const ZONEINFO: &str = concat!(
            "Node 0, zone   Normal\n  per-node stats\n      nr_inactive_anon 0\n  pages free     4096\n",
            "        min      600\n        low      750\n        high     900\n        spanned  8192\n",
            "        present  8192\n        managed  8192\n        protection: (0, 0, 300, 1000)\n",
            "      nr_free_pages 4096\n  pagesets\n    cpu: 0\n              count: 0\n",
            "  node_unreclaimable:  0\n  start_pfn:           0\n",
        );
        let tree = tempfile::tempdir().expect("a directory");
        let roots = Roots { procfs: tree.path().into(), sysfs: tree.path().join("sys") };
        let buddyinfo = "Node 0, zone   Normal 0 0 0 0 0 0 0 0 0 4 2 \n";
        for (file, text) in [("zoneinfo", ZONEINFO), ("buddyinfo", buddyinfo)] {
            std::fs::write(roots.proc(file), text).expect("written");
        }
        let nodes = Sampler::new(4096).nodes(&roots, 0.0).expect("read");
        assert_eq!(nodes[0].zones[0].kept, 750 + 1000);
        assert_eq!(nodes[0].at_hand(9), (4096 - 1750) / 512);
    }
}
