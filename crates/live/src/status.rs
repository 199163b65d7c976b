//! The state of a host's memory now, for an operator: `kontig status`.
//!
//! The rule: every number is read or follows from what was read; where the host does not tell, it
//! is `null` in the JSON, never 0. Sizes are in bytes, shares between 0 and 1, counters have the
//! kernel's names. [`Status`] is the JSON of `kontig status --json`; `docs/operator/host.md` has
//! its schema.

pub mod events;
pub mod frames;
pub mod owners;
pub mod purpose;
pub mod settings;
pub mod zone;

use crate::deferred;
use crate::error::{ReadError, Unread};
use crate::host::Host;
use crate::lru_gen;
use crate::prepare::journal::Leftover;
use crate::proactive;
use crate::stalls::Stalls;
use events::Events;
use frames::Frames;
use kontig_procfs::buddyinfo::FreeBlocks;
use owners::Owners;
use purpose::Purpose;
use serde::Serialize;
use settings::Setting;
use zone::{Zone, ZoneParts};

/// Name and version of the schema of [`Status`].
pub const STATUS_SCHEMA: &str = "kontig.status/2";

/// The answer of `kontig status`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Status {
    pub schema: &'static str,
    pub kernel: Option<String>,
    pub uptime_s: Option<f64>,
    pub page_bytes: u64,
    /// Whether that size was concluded from the amounts of used and free memory, since the kernel
    /// did not tell it.
    pub page_bytes_concluded: bool,
    /// The order of the huge page that the kernel's score is of; null on a kernel without huge
    /// pages.
    pub huge_page_order: Option<u32>,
    /// `--order`, or the order of the huge page.
    pub order: u32,
    /// Bytes of a block of that order.
    pub order_bytes: u64,
    /// The nodes with memory.
    pub nodes: Vec<Node>,
    /// Pools of huge pages that are set aside, and each size the kernel can make them of.
    pub pools: Vec<Pool>,
    /// The kernel's caches of objects that take the most memory, the largest first; null where they
    /// may not be read.
    pub caches: Option<Vec<Cache>>,
    /// Uses of all frames; null unless asked for.
    pub frames: Option<Vec<Frames>>,
    /// Memory by control group; null unless asked for.
    pub owners: Option<Owners>,
    /// The journal of a preparation that is at work or was killed; `None` unless somebody has
    /// looked for it.
    pub leftover: Option<Leftover>,
    /// Counters since boot, and over the interval if there was one.
    pub events: Events,
    /// Processes that waited over the interval; null unless asked for.
    pub stalls: Option<Stalls>,
    /// Settings as they were read.
    pub settings: Vec<Setting>,
    /// Whether the host's pages age by generations; null where it is not known.
    pub lru_gen_on: Option<bool>,
    /// Files that were not read, and why: more privilege or another kernel shows more.
    pub not_read: Vec<NotRead>,
}

/// A node with memory.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Node {
    pub node: u32,
    /// Memory that its zones hand out, bytes.
    pub managed_bytes: u64,
    /// Free memory on the free lists, bytes.
    pub free_bytes: u64,
    /// The kernel's fragmentation score, 0 to 100; null on a kernel without huge pages.
    pub score: Option<u64>,
    /// The score above which the kernel compacts by itself; null where it does not do so at all, or
    /// does not say which kernel it is.
    pub compacts_above: Option<u64>,
    /// The score at which it stops.
    pub compacts_until: Option<u64>,
    /// Blocks of the order asked about that requests get now, without compaction or reclaim; null
    /// if the free lists have no such order.
    pub at_hand: Option<u64>,
    /// Its memory by use.
    pub purposes: Vec<Purpose>,
    /// Its zones with memory, lowest first.
    pub zones: Vec<Zone>,
}

/// A pool of huge pages.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Pool {
    pub bytes: u64,
    /// Pages in the pool.
    pub pages: Option<u64>,
    /// Pages of it that nobody has.
    pub free: Option<u64>,
    /// Free pages that are promised to mappings.
    pub reserved: Option<u64>,
    /// Pages beyond the pool that mappings may have, if they can be made when asked for.
    pub overcommit: Option<u64>,
}

/// A cache of the kernel's objects.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Cache {
    pub name: String,
    /// Memory of all its slabs, bytes.
    pub bytes: u64,
    /// Memory of the objects in use, bytes.
    pub used_bytes: u64,
}

/// A file that was not read.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct NotRead {
    pub path: String,
    /// `missing`, `no permission`, `malformed` or `failed`.
    pub why: &'static str,
    pub text: String,
}

impl Status {
    /// The state of `host` for blocks of `order` (the huge page's if `None`). `before` is an
    /// earlier look and the seconds since then.
    ///
    /// # Errors
    /// If free lists or zones were not read, or nothing tells the size of a page.
    pub fn of(host: &Host, order: Option<u32>, before: Option<(&Host, f64)>) -> Result<Status, ReadError> {
        let (buddy, zones) = (host.buddyinfo.as_ref().map_err(Clone::clone)?, host.zoneinfo.as_ref());
        let zones = zones.map_err(Clone::clone)?;
        let page = host.page_size.ok_or_else(|| page_size_lacks(host))?;
        let huge_page_order = host.huge_page_order();
        let order = order.or(huge_page_order).unwrap_or(0);
        let parts =
            ZoneParts { page_bytes: page.bytes, order, huge_page_order, types: host.pagetypeinfo.as_ref().ok() };
        let not_initialised = deferred::not_initialised(zones, host.meminfo.as_ref().ok(), page.bytes);
        let deferred = deferred::of_zones(zones, not_initialised);
        let mut nodes: Vec<Node> = Vec::new();
        for at in buddy.zones.iter().map(|zone| zone.at.node) {
            if nodes.iter().any(|node| node.node == at) {
                continue;
            }
            let free = buddy.zones.iter().filter(|zone| zone.at.node == at);
            let of_zone = |free: &FreeBlocks| {
                let (info, deferred) = zones.zones.iter().zip(&deferred).find(|(info, _)| info.at == free.at)?;
                Some(parts.zone(free, info, *deferred))
            };
            let found: Vec<Zone> = free.filter_map(of_zone).collect();
            nodes.push(node(host, at, page.bytes, found));
        }
        Ok(Status {
            schema: STATUS_SCHEMA,
            kernel: host.release.as_ref().ok().cloned(),
            uptime_s: host.uptime_s.as_ref().ok().copied(),
            page_bytes: page.bytes,
            page_bytes_concluded: page.concluded,
            huge_page_order,
            order,
            order_bytes: page.bytes << order,
            nodes,
            pools: pools(host),
            caches: caches(host, page.bytes),
            frames: None,
            leftover: None,
            owners: None,
            events: Events::of(host, before),
            stalls: None,
            settings: settings::of(host),
            lru_gen_on: lru_gen::is_on(&host.lru_gen),
            not_read: host.unread().into_iter().map(NotRead::from).collect(),
        })
    }
}

/// A node from its zones.
fn node(host: &Host, number: u32, page_bytes: u64, zones: Vec<Zone>) -> Node {
    let present: u64 = zones.iter().map(|z| z.present_bytes / page_bytes).sum();
    // As the kernel works it out: each zone's own, by its share of the node, cut to a whole number.
    let weighted = |z: &Zone| Some(z.score? * (z.present_bytes / page_bytes) / (present + 1));
    let release = host.release.as_ref().ok();
    let proactive = release.zip(host.sysctl_number("compaction_proactiveness"));
    let scores = proactive.and_then(|(release, proactiveness)| proactive::scores(release, proactiveness));
    Node {
        node: number,
        managed_bytes: zones.iter().map(|z| z.managed_bytes).sum(),
        free_bytes: zones.iter().map(|z| z.free_bytes).sum(),
        score: zones.iter().map(weighted).sum(),
        compacts_above: scores.map(|scores| scores.above),
        compacts_until: scores.map(|scores| scores.until),
        at_hand: zones.iter().map(|z| z.at_hand).sum(),
        purposes: purpose::of(host, number, page_bytes),
        zones,
    }
}

/// Number of caches shown.
const CACHES: usize = 8;

fn caches(host: &Host, page_bytes: u64) -> Option<Vec<Cache>> {
    let info = host.slabinfo.as_ref().ok()?;
    let cache = |c: &kontig_procfs::slabinfo::Cache| Cache {
        name: c.name.clone(),
        bytes: c.pages().saturating_mul(page_bytes),
        used_bytes: c.active_objects.saturating_mul(c.object_size),
    };
    let mut caches: Vec<Cache> = info.caches.iter().map(cache).collect();
    caches.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    caches.truncate(CACHES);
    Some(caches)
}

fn pools(host: &Host) -> Vec<Pool> {
    let pools = host.pools.as_deref().unwrap_or_default();
    let pool = |pool: &crate::host::pools::Pool| {
        let number = |name: &str| pool.all.get(name);
        Pool {
            bytes: pool.bytes,
            pages: number("nr_hugepages"),
            free: number("free_hugepages"),
            reserved: number("resv_hugepages"),
            overcommit: number("nr_overcommit_hugepages"),
        }
    };
    pools.iter().map(pool).collect()
}

/// Why it is not known how large a page is: where the process's own file does not tell, two others
/// would.
fn page_size_lacks(host: &Host) -> ReadError {
    let unread = host.meminfo.as_ref().err().or(host.zoneinfo.as_ref().err());
    let silent = || ReadError::malformed("meminfo".as_ref(), 0, "it does not tell, with zoneinfo, how large a page is");
    unread.cloned().unwrap_or_else(silent)
}

impl From<&ReadError> for NotRead {
    fn from(error: &ReadError) -> NotRead {
        let why = match error.why {
            Unread::Missing => "missing",
            Unread::NoPermission => "no permission",
            Unread::Malformed { .. } => "malformed",
            Unread::Failed(_) => "failed",
        };
        NotRead { path: error.path.display().to_string(), why, text: error.to_string() }
    }
}
