//! Compares the generations of the node's pages with the kernel's: which there are, every list page
//! by page, its count, and what the feedback loop knows of each tier; with memory control groups,
//! those of each, and the order in which reclaim comes to them.

use super::host::Files;
use crate::difference::{At, Difference};
use crate::error::BadRecording;
use crate::recording::lru::{GenerationsOf, LruPage, LruState, PROCESS_PAGES, PROCESS_START};
use crate::recording::{NODE, Recording};
use kontig_mm::state::{Gen, Generations, MAX_NR_TIERS, MemcgLru, Tier};
use kontig_mm::types::PAGEBLOCK_PAGES;
use kontig_mm::{GroupId, LruvecId, Memory, Pfn};

const KINDS: [&str; 2] = ["anon", "file"];
/// The build of the recorded kernels; the engine knows no other.
const BUILT: [(&str, i64); 2] = [("hist_gens", 1), ("refs_width", 2)];
/// The kernel's number for the segment at the tail of a bin (`MEMCG_LRU_TAIL`).
const AT_TAIL: i64 = 2;

/// The end of a page's line, with its generation and uses; nothing without both.
pub(super) fn shown(generation: Option<usize>, refs: u8) -> String {
    match (generation, refs) {
        (None, 0) => String::new(),
        (None, refs) => format!(" -.{refs}"),
        (Some(generation), refs) => format!(" {generation}.{refs}"),
    }
}

/// Sets up the generations of the first state, whose lists are empty.
pub(super) fn begin(rec: &Recording, m: &mut Memory, start: &LruState) -> Result<(), BadRecording> {
    let bad = |reason: String| BadRecording::whole(rec.path("t0.lru"), reason);
    begin_of(m, LruvecId::new(NODE.index()), &start.generations).map_err(bad)?;
    for (group, of) in m.groups().ids().zip(&start.groups).skip(1) {
        let lruvec = m.lruvec_of_group(group, NODE);
        begin_of(m, lruvec, &of.generations).map_err(|e| bad(format!("group {}: {e}", group.index())))?;
    }
    if m.groups().are_kept() {
        let seq = u64::try_from(start.number("bins_seq")).map_err(|_| bad("'BINS seq' is negative".into()))?;
        let bin = |((generation, bin), groups): (&(u8, u8), &Vec<u16>)| {
            (*generation, *bin, groups.iter().map(|group| GroupId::new(*group)).collect())
        };
        let bins: Vec<_> = start.bins.iter().map(bin).collect();
        let at_tail: Vec<bool> = of_groups(start).map(|of| of.number("segment") == AT_TAIL).collect();
        let order = MemcgLru::of_bins(seq, &bins, &at_tail).map_err(bad)?;
        *m.group_order_mut(NODE) = order;
    }
    Ok(())
}

/// The generations of all groups.
fn of_groups(state: &LruState) -> impl Iterator<Item = &GenerationsOf> {
    let of_root = (!state.groups.is_empty()).then_some(&state.generations);
    of_root.into_iter().chain(state.groups.iter().skip(1).map(|of| &of.generations))
}

fn begin_of(m: &mut Memory, lruvec: LruvecId, start: &GenerationsOf) -> Result<(), String> {
    for (name, value) in BUILT {
        let is = start.number(name);
        if is != value {
            return Err(format!("{name} is {is}, and the engine knows only kernels where it is {value}"));
        }
    }
    if !start.lists.is_empty() {
        return Err("generations hold pages at the start, and nothing says whose they are".into());
    }
    let number = |name: &str| u64::try_from(start.number(name)).map_err(|_| format!("{name} is negative"));
    let (max_seq, walk_seq) = (number("max_seq")?, number("walk_seq")?);
    let min_seq = [number("anon_min_seq")?, number("file_min_seq")?];
    let gens = m.lruvec_mut(lruvec).gens_mut();
    (gens.max_seq, gens.min_seq, gens.walk_seq) = (max_seq, min_seq, walk_seq);
    for (kind, name) in KINDS.iter().enumerate() {
        for tier in 0..MAX_NR_TIERS {
            gens.tiers[kind][tier] = recorded(start, name, tier);
        }
    }
    Ok(())
}

/// Sets the place of the process's memory, which says which pages share a page table.
pub(super) fn set_process(rec: &Recording, host: &mut Files) -> Result<(), BadRecording> {
    let start = rec.lru_state("t0", NODE)?;
    let (first, pages) = (start.number(PROCESS_START), start.number(PROCESS_PAGES));
    host.set_process(pages as u32, (first % i64::from(PAGEBLOCK_PAGES)) as u32);
    Ok(())
}

fn recorded(state: &GenerationsOf, kind: &str, tier: usize) -> Tier {
    let t = state.tiers.get(&(kind.to_string(), tier as u8)).copied().unwrap_or_default();
    Tier {
        avg_refaulted: t.avg_refaulted,
        avg_total: t.avg_total,
        refaulted: t.refaulted,
        evicted: t.evicted,
        protected: t.protected,
    }
}

/// Compares with the recorded state of this name; `pages` compares a list. Returns how many numbers
/// and pages are equal.
pub(super) fn compare(
    name: &str,
    want: &LruState,
    memory: &Memory,
    pages: impl Fn(&str, &[LruPage], &[Pfn]) -> Option<Box<Difference>>,
) -> Result<(u64, u64), Box<Difference>> {
    if !memory.lru().has_generations() {
        return Ok((0, 0));
    }
    let (mut all, mut listed) = (Vec::new(), 0);
    let of_node = memory.lru().of_node(NODE).gens();
    listed += compare_of("", &want.generations, of_node, memory, &mut all, &pages)?;
    for (group, of) in memory.groups().ids().zip(&want.groups).skip(1) {
        let gens = memory.lru().vecs()[memory.lruvec_of_group(group, NODE).index()].gens();
        let whose = format!(" of group {}", group.index());
        listed += compare_of(&whose, &of.generations, gens, memory, &mut all, &pages)?;
    }
    if memory.groups().are_kept() {
        let order = memory.group_order(NODE);
        all.push(("the old generation of groups".into(), want.number("bins_seq").to_string(), order.seq().to_string()));
        let kernel: Vec<_> = want.bins.iter().map(|((of, bin), groups)| format!("{of}.{bin}: {groups:?}")).collect();
        let engine = order.bins().into_iter().map(|(of, bin, groups)| {
            format!("{of}.{bin}: {:?}", groups.iter().map(|group| group.index()).collect::<Vec<_>>())
        });
        all.push(("bins of groups".into(), kernel.join(", "), engine.collect::<Vec<_>>().join(", ")));
        for (group, of) in memory.groups().ids().zip(of_groups(want)) {
            let what = format!("whether group {} is at the tail", group.index());
            let kernel = of.number("segment") == AT_TAIL;
            all.push((what, kernel.to_string(), order.is_at_tail(group).to_string()));
        }
    }
    match all.iter().find(|(_, kernel, engine)| kernel != engine) {
        None => Ok((all.len() as u64, listed)),
        Some((what, kernel, engine)) => Err(Box::new(Difference {
            at: At::State(format!("{name}: {what}")),
            asked: None,
            kernel: kernel.clone(),
            engine: engine.clone(),
            around: Vec::new(),
        })),
    }
}

/// Compares the lists of one set of generations, and adds its numbers to `all`: their names, the
/// kernel's and the engine's. Returns how many pages are listed.
fn compare_of(
    whose: &str,
    want: &GenerationsOf,
    gens: &Generations,
    memory: &Memory,
    all: &mut Vec<(String, String, String)>,
    pages: &impl Fn(&str, &[LruPage], &[Pfn]) -> Option<Box<Difference>>,
) -> Result<u64, Box<Difference>> {
    for (name, engine) in [
        ("max_seq", gens.max_seq),
        ("anon_min_seq", gens.min_seq[0]),
        ("file_min_seq", gens.min_seq[1]),
        ("walk_seq", gens.walk_seq),
    ] {
        all.push((format!("{name}{whose}"), want.number(name).to_string(), engine.to_string()));
    }
    for (kind, of) in KINDS.iter().enumerate() {
        for tier in 0..MAX_NR_TIERS {
            let (kernel, engine) = (recorded(want, of, tier), gens.tiers[kind][tier]);
            all.push((format!("tier {tier} of {of}{whose}"), format!("{kernel:?}"), format!("{engine:?}")));
        }
    }
    let mut listed = 0;
    for (kind, of) in KINDS.iter().enumerate() {
        for place in Gen::all() {
            for zone in memory.nodes()[NODE.index()].zones.iter().map(|z| memory.zone(*z)) {
                let key = (of.to_string(), place.index() as u8, zone.kind.name().to_string());
                let kernel = want.lists.get(&key).cloned().unwrap_or_default();
                let what = format!("generation {} of {of} in {}{whose}", place.index(), zone.kind.name());
                let got: Vec<Pfn> = gens.list(place, kind, zone.kind).collect();
                if let Some(d) = pages(&what, &kernel.pages, &got) {
                    return Err(d);
                }
                listed += kernel.pages.len() as u64;
                let size = gens.nr_pages(place, kind, zone.kind);
                all.push((format!("size of {what}"), kernel.size.to_string(), size.to_string()));
            }
        }
    }
    Ok(listed)
}
