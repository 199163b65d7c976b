//! Counters of a real kernel whose own program executes a pattern, for comparison with a simulated
//! one.
//!
//! Such a recording is a reference and is not replayed: a kernel that has the machine to itself
//! boots, lays out its memory and runs its daemons in its own time. Each pattern is recorded with
//! several seeds; means are compared, and both spreads are shown ([`compare`]).

pub mod change;
pub mod compare;
pub mod sampled;
pub mod samples;

use crate::build::{self, BuiltFrom};
use crate::error::BadRecording;
use crate::patterns::{NAMED, Named};
use crate::recording::about::About;
use crate::recording::files::Folder;
use kontig_mm::types::{NR_ORDERS, PAGEBLOCK_PAGES};
use kontig_mm::{MigrateType, ZoneSpec, ZoneType};
use kontig_procfs::zoneinfo::Zone;
use kontig_procfs::{Counters, PageTypeInfo, VmStat, ZoneInfo};
use kontig_program::act;
use samples::Sample;
use std::collections::BTreeMap;
use std::path::Path;

/// Prefix of an experiment's name, before the pattern's.
pub const PREFIX: &str = "guest-";
/// Files of the steps the guest executed and of the texts of all phases.
const STEPS: &str = "steps.txt";
const STATES: &str = "states.txt";
/// File of a build's samples.
const SAMPLES: &str = "samples.txt";

/// The program of a guest: steps that the laboratory plays as well, or a real build, for which the
/// laboratory has a workload.
#[derive(Clone, Copy)]
pub enum Pattern {
    Steps(&'static Named),
    Build,
}

impl Pattern {
    /// The pattern of a name.
    pub fn find(name: &str) -> Option<Pattern> {
        let steps = NAMED.iter().find(|pattern| pattern.name == name).map(Pattern::Steps);
        steps.or((name == build::NAME).then_some(Pattern::Build))
    }

    pub const fn name(&self) -> &'static str {
        match self {
            Pattern::Steps(pattern) => pattern.name,
            Pattern::Build => build::NAME,
        }
    }

    /// The names of all.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMED.iter().map(|pattern| pattern.name).chain([build::NAME])
    }

    /// A sentence about it, without its end.
    pub const fn what(&self) -> &'static str {
        match self {
            Pattern::Steps(pattern) => pattern.what,
            Pattern::Build => build::WHAT,
        }
    }
}

/// A recording of a pattern.
#[derive(Clone, Debug)]
pub struct Guest {
    pub series: String,
    pub version: String,
    pub pattern: String,
    /// The seed of its steps.
    pub seed: u64,
    pub sysctls: BTreeMap<String, String>,
    /// Counters at the end of each phase.
    pub states: Vec<State>,
    /// The zones when counting began.
    pub zones: Vec<BootedZone>,
    /// A build's samples, in the order of time; none of steps.
    pub samples: Vec<Sample>,
    /// The sources and the compiler of a build.
    pub built: Option<BuiltFrom>,
}

/// Counters at the end of a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub phase: String,
    /// `/proc/vmstat`, counts of a tracepoint ([`EXTFRAG`]) and CPU time of daemons ([`DAEMONS`]).
    pub counters: Counters,
    /// Time since the phase before.
    pub took_ns: u64,
}

/// Counters of `kmem:mm_page_alloc_extfrag`: all events, those that split a block smaller than a
/// pageblock, and those that split a larger one.
pub const EXTFRAG: [&str; 3] = ["extfrag", "extfrag_small", "extfrag_pageblock"];

/// Counters of the CPU time of kswapd and kcompactd, in ns.
pub const DAEMONS: [&str; 2] = ["kswapd_ns", "kcompactd_ns"];

/// A zone of the kernel when counting began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootedZone {
    pub spec: ZoneSpec,
    /// Pages of the kernel's own: neither free nor on an LRU list.
    pub taken: u64,
    /// Anonymous pages on an LRU list.
    pub anon: u64,
    /// Free pages on per-CPU lists.
    pub on_cpus: u64,
    /// Those of them that lie in unmovable pageblocks, as far as the kernel says.
    pub unmovable_on_cpus: u64,
    /// Pageblocks that are not movable: type, number, and their free blocks of each order.
    pub types: Vec<(MigrateType, u32, [u32; NR_ORDERS])>,
}

impl Guest {
    /// Opens a folder.
    ///
    /// # Errors
    /// If it does not exist, is not of a pattern, or is damaged.
    pub fn open(dir: &Path) -> Result<Guest, BadRecording> {
        let folder = Folder::open(dir)?;
        let about = About::read(&folder, &folder.name())?;
        let wrong = |file: &str, reason: String| BadRecording::whole(folder.path(file), reason);
        let pattern = about.experiment.strip_prefix(PREFIX).and_then(Pattern::find);
        let (Some(pattern), Some(seed)) = (pattern, about.seed) else {
            let reason = format!("'{}' is no pattern's recording with a seed", about.experiment);
            return Err(wrong("recording.toml", reason));
        };
        let (phases, samples): (Vec<&str>, Vec<Sample>) = match pattern {
            Pattern::Steps(pattern) => {
                let acts = pattern.acts(seed);
                let steps = act::text(&acts).map_err(|reason| wrong(STEPS, reason))?;
                if folder.text(STEPS)? != steps {
                    let name = pattern.name;
                    let reason = format!("these are not the steps that pattern {name} has now: record it anew");
                    return Err(wrong(STEPS, reason));
                }
                (act::phases(&acts).collect(), Vec::new())
            }
            Pattern::Build => {
                let samples = samples::parse(&folder.text(SAMPLES)?);
                let bad = |(line, reason)| BadRecording::line(folder.path(SAMPLES), line, reason);
                (build::PHASES.to_vec(), samples.map_err(bad)?)
            }
        };
        let text = folder.text(STATES)?;
        let read = |phase: &str, kind: &str| {
            section(&text, phase, kind).ok_or_else(|| wrong(STATES, format!("has no '== {phase} {kind}'")))
        };
        let bad = |e: kontig_procfs::BadText| BadRecording::whole(folder.path(STATES), e.to_string());
        let mut states = Vec::new();
        let mut zones = Vec::new();
        for phase in phases {
            let at = |kind: &str| format!("{phase} {kind}");
            let mut counters = VmStat::parse(&at("vmstat"), read(phase, "vmstat")?).map_err(bad)?.0;
            match extfrag(read(phase, "extfrag")?) {
                Some(events) => EXTFRAG.iter().zip(events).for_each(|(name, n)| counters.push(*name, n)),
                None => return Err(wrong(STATES, format!("'== {}' has a line of another form", at("extfrag")))),
            }
            if states.is_empty() {
                let info = ZoneInfo::parse(&at("zoneinfo"), read(phase, "zoneinfo")?).map_err(bad)?;
                let types = PageTypeInfo::parse(&at("pagetypeinfo"), read(phase, "pagetypeinfo")?).map_err(bad)?;
                zones = info.zones.iter().filter_map(|zone| booted(zone, &types)).collect();
                if let Some(zone) = zones.iter_mut().max_by_key(|zone| zone.on_cpus) {
                    zone.unmovable_on_cpus = unmovable_on_cpus(zone, &counters);
                }
            }
            // The oldest recordings have none.
            if let Some(text) = section(&text, phase, "daemons") {
                let ns = daemons(text).ok_or_else(|| {
                    wrong(STATES, format!("'== {}' is not 'kswapd N' and 'kcompactd N'", at("daemons")))
                })?;
                DAEMONS.iter().zip(ns).for_each(|(name, n)| counters.push(*name, n));
            }
            let took_ns = took(read(phase, "clock")?)
                .ok_or_else(|| wrong(STATES, format!("'== {}' does not begin with a line 'ns N'", at("clock"))))?;
            states.push(State { phase: phase.into(), counters, took_ns });
        }
        let (series, version, pattern) = (about.series, about.version, pattern.name().into());
        let text = |value: &toml::Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
        let sysctls = about.sysctls.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        Ok(Guest { series, version, pattern, seed, sysctls, states, zones, samples, built: about.built })
    }
}

/// The text under a line `== PHASE KIND`.
fn section<'a>(text: &'a str, phase: &str, kind: &str) -> Option<&'a str> {
    let head = format!("== {phase} {kind}\n");
    let from = if text.starts_with(&head) { 0 } else { text.find(&format!("\n{head}"))? + 1 } + head.len();
    let rest = &text[from..];
    Some(&rest[..rest.find("\n== ").map_or(rest.len(), |end| end + 1)])
}

/// Duration of a phase. The second line, the CPU time of the process, is not read.
fn took(text: &str) -> Option<u64> {
    text.lines().next()?.strip_prefix("ns ")?.parse().ok()
}

/// Events of the tracepoint: all, on small blocks, on pageblocks.
fn extfrag(text: &str) -> Option<[u64; 3]> {
    let mut sum = [0; 3];
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, _, small, large] = words[..] else { return None };
        let (small, large): (u64, u64) = (small.parse().ok()?, large.parse().ok()?);
        sum = [sum[0] + small + large, sum[1] + small, sum[2] + large];
    }
    Some(sum)
}

/// CPU time of kswapd and kcompactd, in ns.
fn daemons(text: &str) -> Option<[u64; 2]> {
    let (kswapd, kcompactd) = text.trim_end().split_once('\n')?;
    let kswapd = kswapd.strip_prefix("kswapd ")?.parse().ok()?;
    Some([kswapd, kcompactd.strip_prefix("kcompactd ")?.parse().ok()?])
}

/// A zone, if it has memory.
fn booted(zone: &Zone, types: &PageTypeInfo) -> Option<BootedZone> {
    let populated = zone.populated.as_ref()?;
    let kind = [ZoneType::Dma, ZoneType::Dma32, ZoneType::Normal].into_iter().find(|t| t.name() == zone.at.zone)?;
    let pages = |name: &str| zone.sizes.get(name).unwrap_or(0);
    let sum =
        |wanted: fn(&str) -> bool| populated.counters.iter().filter(|(name, _)| wanted(name)).map(|(_, n)| n).sum();
    let listed: u64 = sum(is_list);
    // Free pages outside the free lists: those of the CPUs.
    let on_cpus: u64 = populated.cpus.iter().filter_map(|cpu| cpu.lists.get("count")).sum();
    // The engine's zones start at a pageblock; the first one at frame 0, which no kernel has.
    let first = populated.last.get("start_pfn").unwrap_or(0);
    let start = (first / u64::from(PAGEBLOCK_PAGES)) * u64::from(PAGEBLOCK_PAGES);
    let end = (first + pages("spanned")).next_multiple_of(u64::from(PAGEBLOCK_PAGES));
    let spec = ZoneSpec {
        node: 0,
        kind,
        start: u32::try_from(start).ok()?,
        end: u32::try_from(end).ok()?,
        present: pages("present"),
        managed: pages("managed"),
    };
    let anon = sum(|name| is_list(name) && name.ends_with("_anon"));
    let taken = pages("managed").saturating_sub(zone.free + listed + on_cpus);
    let not_movable = [MigrateType::Unmovable, MigrateType::Reclaimable];
    let types = not_movable.into_iter().filter_map(|t| Some((t, blocks_of(zone, types, t)?, free_of(zone, types, t)?)));
    Some(BootedZone { spec, taken, anon, on_cpus, unmovable_on_cpus: 0, types: types.collect() })
}

/// Pages on per-CPU lists that lie in a zone's unmovable pageblocks: what there is neither free nor
/// what the kernel counts as its own. Kernels that do not count what they map (before 7.2) do not
/// tell; 6.1 has hardly any (a phase that touches more pages than are on the lists leaves 139).
fn unmovable_on_cpus(zone: &BootedZone, counters: &Counters) -> u64 {
    let counted = |name: &str| counters.get(name).unwrap_or(0);
    let Some(mapped) = counters.get("nr_vmalloc") else { return 0 };
    let own = mapped + counted("nr_slab_unreclaimable") + counted("nr_page_table_pages");
    let unmovable = zone.types.iter().find(|(migratetype, ..)| *migratetype == MigrateType::Unmovable);
    let not_free = unmovable.map_or(0, |(_, blocks, free)| {
        let free: u64 = free.iter().enumerate().map(|(order, blocks)| u64::from(*blocks) << order).sum();
        u64::from(blocks * PAGEBLOCK_PAGES).saturating_sub(free)
    });
    not_free.saturating_sub(own).min(zone.on_cpus)
}

/// Pageblocks of a type in a zone.
fn blocks_of(zone: &Zone, types: &PageTypeInfo, migratetype: MigrateType) -> Option<u32> {
    types.nodes.iter().flat_map(|node| &node.blocks).find_map(|table| {
        let column = table.types.iter().position(|name| name == migratetype.name())?;
        let (_, blocks) = table.zones.iter().find(|(at, _)| *at == zone.at)?;
        u32::try_from(blocks[column]).ok()
    })
}

/// The free blocks of a type in a zone, by order.
fn free_of(zone: &Zone, types: &PageTypeInfo, migratetype: MigrateType) -> Option<[u32; NR_ORDERS]> {
    let mut rows = types.nodes.iter().flat_map(|node| &node.free);
    let row = rows.find(|row| row.at == zone.at && row.migratetype == migratetype.name())?;
    let free: Option<Vec<u32>> = row.of_order.iter().map(|listed| u32::try_from(listed.blocks).ok()).collect();
    free?.try_into().ok()
}

/// Whether a zone's counter is the size of an LRU list.
fn is_list(name: &str) -> bool {
    let Some(list) = name.strip_prefix("nr_zone_") else { return false };
    list.starts_with("inactive_") || list.starts_with("active_") || list == "unevictable"
}

/// How far a counter rose from the first phase to the last; `None` if it was not counted.
fn counted(states: &[State], counter: &str) -> Option<f64> {
    let (first, last) = (states.first()?, states.last()?);
    Some(last.counters.get(counter)?.saturating_sub(first.counters.get(counter)?) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_under_its_phase_and_kind() {
        let text = "== start vmstat\na 1\n== start extfrag\nb\n== end vmstat\na 2\n";
        assert_eq!(section(text, "start", "vmstat"), Some("a 1\n"));
        assert_eq!(section(text, "start", "extfrag"), Some("b\n"));
        assert_eq!(section(text, "end", "vmstat"), Some("a 2\n"));
        assert_eq!(section(text, "end", "extfrag"), None);
    }

    #[test]
    fn a_phase_took_what_its_clock_says() {
        assert_eq!(took("ns 12\ncpu_ns 10\n"), Some(12));
        assert_eq!(took("cpu_ns 10\n"), None);
    }

    #[test]
    fn daemons_have_a_line_each() {
        assert_eq!(daemons("kswapd 12\nkcompactd 7\n"), Some([12, 7]));
        assert_eq!(daemons("kswapd 12\n"), None);
    }

    #[test]
    fn pages_of_unmovable_pageblocks_that_no_counter_has_are_on_the_cpus_lists() {
        let spec = ZoneSpec { node: 0, kind: ZoneType::Dma32, start: 0, end: 8192, present: 8192, managed: 8000 };
        let mut free = [0; NR_ORDERS];
        (free[0], free[5]) = (4, 3);
        let types = vec![(MigrateType::Unmovable, 4, free)];
        let zone = BootedZone { spec, taken: 0, anon: 0, on_cpus: 1500, unmovable_on_cpus: 0, types };
        let mut counters = Counters::default();
        [("nr_slab_unreclaimable", 700), ("nr_page_table_pages", 48)]
            .iter()
            .for_each(|(name, n)| counters.push(*name, *n));
        assert_eq!(unmovable_on_cpus(&zone, &counters), 0, "what is mapped is not counted");
        counters.push("nr_vmalloc", 200);
        assert_eq!(unmovable_on_cpus(&zone, &counters), 4 * 512 - 100 - 948);
        assert_eq!(unmovable_on_cpus(&BootedZone { on_cpus: 90, ..zone }, &counters), 90);
    }

    #[test]
    fn events_are_added_up_by_the_size_of_the_block() {
        assert_eq!(extfrag("movable unmovable 8 7\nunmovable movable 0 4\n"), Some([19, 8, 11]));
        assert_eq!(extfrag("movable unmovable 8\n"), None);
    }
}
