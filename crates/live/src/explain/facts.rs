//! Facts of a host, each a number or a word, which the rules use.
//!
//! | fact | what |
//! | --- | --- |
//! | `NAME` | a counter of `/proc/vmstat`, that of all zones together where there is one for each |
//! | `NAME.per_hour` | how fast it grows: over the interval, or since boot |
//! | `vm.NAME` | a sysctl |
//! | `thp.NAME` | what is chosen in `transparent_hugepage/NAME` |
//! | `khugepaged.NAME` | a number there |
//! | `nodes` | nodes with memory |
//! | `score` | the highest fragmentation score of a node |
//! | `at_hand` | huge pages that requests get now |
//! | `managed_bytes`, `free_bytes`, `free_cma_bytes`, `boost_bytes` | sums over the zones |
//! | `reserve_bytes` | high marks, and what zones keep from users' requests |
//! | `movable_bytes`, `droppable_bytes`, `anonymous_bytes`, `locked_bytes` | memory by use |
//! | `huge_bytes` | anonymous memory in huge pages |
//! | `mem_total_bytes` | `MemTotal` |
//! | `lru_gen` | mask of the multi-generational LRU's parts that are on; 0 without it |
//! | `lru_gen_left_out` | 1 if it is on and this kernel's is not modelled, else 0 |
//! | `deferred_bytes` | free memory that the allocator gets when it is wanted |
//! | `not_given_bytes` | what `MemTotal` says beyond that and what the zones hand out |
//! | `limit_bytes` | the tightest limit of this process's control groups; else all memory |
//! | `limit_room_bytes` | the rest of that limit; else free memory |
//! | `limit_group` | the group of that limit; else `none` |
//! | `pageblocks`, `unmovable_pageblocks` | known to root only |

use crate::deferred;
use crate::host::Host;
use crate::lru_gen;
use crate::status::purpose::{Can, Kind};
use crate::status::zone::Zone;
use crate::status::{Status, events};
use kontig_mm::sysctl::SYSCTLS;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The value of a fact.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fact {
    Number(f64),
    Word(String),
}

/// Facts that are words.
const WORDS: [&str; 4] = ["limit_group", "thp.enabled", "thp.defrag", "thp.shmem_enabled"];

/// Facts worked out from several files.
const AMOUNTS: [&str; 22] = [
    "nodes",
    "score",
    "at_hand",
    "managed_bytes",
    "free_bytes",
    "free_cma_bytes",
    "boost_bytes",
    "reserve_bytes",
    "movable_bytes",
    "droppable_bytes",
    "anonymous_bytes",
    "locked_bytes",
    "huge_bytes",
    "mem_total_bytes",
    "lru_gen",
    "lru_gen_left_out",
    "deferred_bytes",
    "not_given_bytes",
    "limit_bytes",
    "limit_room_bytes",
    "pageblocks",
    "unmovable_pageblocks",
];

/// Settings and counts of khugepaged that kernels have.
const KHUGEPAGED: [&str; 8] = [
    "alloc_sleep_millisecs",
    "defrag",
    "full_scans",
    "max_ptes_none",
    "max_ptes_shared",
    "max_ptes_swap",
    "pages_collapsed",
    "scan_sleep_millisecs",
];

/// Whether the fact of this name is a word.
pub(super) fn is_word(name: &str) -> bool {
    WORDS.contains(&name)
}

/// The names of all facts, but for rates: those that this host shows, and those that other kernels
/// do.
pub fn names(host: &Host) -> BTreeSet<String> {
    let counters = host.vmstat.iter().flat_map(|vmstat| vmstat.0.names());
    let counters = counters.chain(kontig_procfs::from_mm::counter_names().map(|name| -> &str { name }));
    // A counter of all zones together has the name without a zone's.
    let counters = counters.flat_map(|name| [Some(name), events::without_zone(name)]).flatten();
    let sysctls = host.sysctls.iter().map(|(name, _)| name.as_str());
    let sysctls = sysctls.chain(SYSCTLS.iter().filter_map(|sysctl| sysctl.name.strip_prefix("vm.")));
    let khugepaged = host.thp.iter().flat_map(|thp| &thp.khugepaged.values).map(|(name, _)| name.as_str());
    let facts = WORDS.into_iter().chain(AMOUNTS).map(str::to_string);
    facts
        .chain(counters.map(str::to_string))
        .chain(sysctls.map(|name| format!("vm.{name}")))
        .chain(khugepaged.chain(KHUGEPAGED).map(|name| format!("khugepaged.{name}")))
        .collect()
}

/// Where facts are known from.
pub trait Facts {
    /// A fact by name; `None` if it is not known.
    fn get(&self, name: &str) -> Option<Fact>;

    /// A fact in words: amounts of memory in their units.
    fn words(&self, name: &str) -> Option<String> {
        Some(match self.get(name)? {
            Fact::Word(word) => word,
            Fact::Number(n) if name.ends_with("_bytes") => kontig_text::size(n as u64),
            // A setting must be written back as it is.
            Fact::Number(n) if name.contains('.') && !name.ends_with(".per_hour") => format!("{n:.0}"),
            Fact::Number(n) => kontig_text::grouped(n.round() as u64),
        })
    }
}

impl Facts for BTreeMap<String, Fact> {
    fn get(&self, name: &str) -> Option<Fact> {
        BTreeMap::get(self, name).cloned()
    }
}

/// The facts of a host.
pub struct HostFacts<'a> {
    host: &'a Host,
    status: &'a Status,
    before: Option<(&'a Host, f64)>,
}

impl<'a> HostFacts<'a> {
    /// Facts of a host and of its status; `before` is an earlier look and the seconds since then,
    /// else rates are since boot.
    pub fn of(host: &'a Host, status: &'a Status, before: Option<(&'a Host, f64)>) -> HostFacts<'a> {
        HostFacts { host, status, before }
    }

    fn per_hour(&self, counter: &str) -> Option<f64> {
        let now = events::count(self.host, counter)?;
        let (grown, seconds) = match self.before {
            Some((before, seconds)) => (now.saturating_sub(events::count(before, counter)?), seconds),
            None => (now, *self.host.uptime_s.as_ref().ok()?),
        };
        (seconds > 0.0).then(|| grown as f64 / seconds * 3600.0)
    }

    fn zones(&self) -> impl Iterator<Item = &Zone> {
        self.status.nodes.iter().flat_map(|node| &node.zones)
    }

    fn sum(&self, of: impl Fn(&Zone) -> Option<u64>) -> Option<u64> {
        self.zones().map(of).sum()
    }

    /// Bytes of this use; `None` if a counter that says it is missing.
    fn used(&self, wanted: impl Fn(Kind, Can) -> bool) -> Option<u64> {
        self.host.zoneinfo.as_ref().ok()?;
        let purposes = self.status.nodes.iter().flat_map(|node| &node.purposes);
        purposes.filter(|p| wanted(p.kind, p.can)).map(|p| p.bytes).sum()
    }

    fn pageblocks(&self, wanted: impl Fn(&str) -> bool) -> Option<u64> {
        self.sum(|zone| {
            let types = zone.pageblocks.as_ref()?;
            Some(types.iter().filter(|t| wanted(&t.migratetype)).map(|t| t.blocks).sum())
        })
    }

    /// Bytes of memory that is not initialised yet.
    fn not_initialised(&self) -> Option<u64> {
        let (zones, meminfo) = (self.host.zoneinfo.as_ref().ok()?, self.host.meminfo.as_ref().ok()?);
        let page = self.status.page_bytes;
        Some(deferred::not_initialised(zones, Some(meminfo), page).saturating_mul(page))
    }

    /// Bytes not initialised yet, and bytes that a confidential guest has not accepted yet.
    fn deferred(&self) -> Option<u64> {
        let zones = &self.host.zoneinfo.as_ref().ok()?.zones;
        let not_accepted: u64 = zones.iter().map(deferred::not_accepted).sum();
        Some(self.not_initialised()?.saturating_add(not_accepted.saturating_mul(self.status.page_bytes)))
    }

    /// Facts worked out from several files.
    fn amount(&self, name: &str) -> Option<u64> {
        match name {
            "nodes" => Some(self.status.nodes.len() as u64),
            "score" => self.status.nodes.iter().map(|node| node.score).max().flatten(),
            "at_hand" => self.status.nodes.iter().map(|node| node.at_hand).sum(),
            "managed_bytes" => self.sum(|z| Some(z.managed_bytes)),
            "free_bytes" => self.sum(|z| Some(z.free_bytes)),
            "free_cma_bytes" => self.sum(|z| z.free_cma_bytes),
            "boost_bytes" => self.sum(|z| z.marks.boost_bytes),
            "reserve_bytes" => self.sum(|z| Some((z.marks.high_bytes + z.marks.reserve_bytes).min(z.managed_bytes))),
            "movable_bytes" => self.used(|_, can| matches!(can, Can::Move | Can::MoveOrDrop)),
            "droppable_bytes" => self.used(|_, can| can == Can::MoveOrDrop),
            "anonymous_bytes" => self.used(|kind, _| kind == Kind::Anonymous),
            "locked_bytes" => self.used(|kind, _| kind == Kind::Locked),
            "huge_bytes" => self.host.meminfo.as_ref().ok()?.kb("AnonHugePages")?.checked_mul(1024),
            "mem_total_bytes" => self.host.meminfo.as_ref().ok()?.kb("MemTotal")?.checked_mul(1024),
            "lru_gen" => match &self.host.lru_gen {
                Ok(mask) => Some(*mask),
                Err(e) => e.is_missing().then_some(0),
            },
            "lru_gen_left_out" => {
                let is_on = self.amount("lru_gen")? > 0;
                Some(u64::from(is_on && !lru_gen::is_modelled(self.host.release.as_deref().ok())))
            }
            "deferred_bytes" => self.deferred(),
            "not_given_bytes" => {
                let (all, managed) = (self.amount("mem_total_bytes")?, self.amount("managed_bytes")?);
                Some(all.saturating_sub(managed.saturating_add(self.not_initialised()?)))
            }
            "limit_bytes" => match &self.host.limits.memory {
                Some(limit) => Some(limit.limit_bytes),
                None => self.amount("mem_total_bytes"),
            },
            "limit_room_bytes" => match &self.host.limits.memory {
                Some(limit) => Some(limit.room_bytes()),
                None => self.amount("free_bytes"),
            },
            "pageblocks" => self.pageblocks(|_| true),
            "unmovable_pageblocks" => self.pageblocks(|name| name == "Unmovable"),
            _ => events::count(self.host, name),
        }
    }
}

impl Facts for HostFacts<'_> {
    fn get(&self, name: &str) -> Option<Fact> {
        if let Some(counter) = name.strip_suffix(".per_hour") {
            return self.per_hour(counter).map(Fact::Number);
        }
        if let Some(sysctl) = name.strip_prefix("vm.") {
            return self.host.sysctl_number(sysctl).map(|n| Fact::Number(n as f64));
        }
        let thp = || self.host.thp.as_ref().ok();
        if let Some(number) = name.strip_prefix("khugepaged.") {
            return thp()?.khugepaged(number).map(|n| Fact::Number(n as f64));
        }
        let chosen = match name {
            "limit_group" => self.host.limits.memory.as_ref().map_or("none", |limit| &limit.group),
            "thp.enabled" => thp()?.enabled_for(thp()?.pmd_size?),
            "thp.defrag" => &thp()?.defrag.as_ref().ok()?.chosen,
            "thp.shmem_enabled" => &thp()?.shmem_enabled.as_ref().ok()?.chosen,
            _ => return self.amount(name).map(|n| Fact::Number(n as f64)),
        };
        Some(Fact::Word(chosen.to_string()))
    }
}
