//! Compares the generations of the node's pages with the kernel's: which there are, every list page
//! by page, its count, and what the feedback loop knows of each tier.

use super::host::Files;
use crate::difference::{At, Difference};
use crate::error::BadRecording;
use crate::recording::lru::{LruPage, LruState, PROCESS_PAGES, PROCESS_START};
use crate::recording::{NODE, Recording};
use kontig_mm::state::{Gen, MAX_NR_TIERS, Tier};
use kontig_mm::types::PAGEBLOCK_PAGES;
use kontig_mm::{LruvecId, Memory, Pfn};

const KINDS: [&str; 2] = ["anon", "file"];
/// The build of the recorded kernels; the engine knows no other.
const BUILT: [(&str, i64); 2] = [("hist_gens", 1), ("refs_width", 2)];

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
    for (name, value) in BUILT {
        let is = start.number(name);
        if is != value {
            return Err(bad(format!("{name} is {is}, and the engine knows only kernels where it is {value}")));
        }
    }
    if !start.generations.is_empty() {
        return Err(bad("generations hold pages at the start, and nothing says whose they are".into()));
    }
    let number = |name: &str| u64::try_from(start.number(name)).map_err(|_| bad(format!("{name} is negative")));
    let (max_seq, walk_seq) = (number("max_seq")?, number("walk_seq")?);
    let min_seq = [number("anon_min_seq")?, number("file_min_seq")?];
    let gens = m.lruvec_mut(LruvecId::new(NODE.index())).gens_mut();
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

fn recorded(state: &LruState, kind: &str, tier: usize) -> Tier {
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
    let gens = memory.lru().of_node(NODE).gens();
    let mut all = vec![
        ("max_seq".to_string(), want.number("max_seq").to_string(), gens.max_seq.to_string()),
        ("anon_min_seq".to_string(), want.number("anon_min_seq").to_string(), gens.min_seq[0].to_string()),
        ("file_min_seq".to_string(), want.number("file_min_seq").to_string(), gens.min_seq[1].to_string()),
        ("walk_seq".to_string(), want.number("walk_seq").to_string(), gens.walk_seq.to_string()),
    ];
    for (kind, of) in KINDS.iter().enumerate() {
        for tier in 0..MAX_NR_TIERS {
            let (kernel, engine) = (recorded(want, of, tier), gens.tiers[kind][tier]);
            all.push((format!("tier {tier} of {of}"), format!("{kernel:?}"), format!("{engine:?}")));
        }
    }
    let mut listed = 0;
    for (kind, of) in KINDS.iter().enumerate() {
        for place in Gen::all() {
            for zone in memory.nodes()[NODE.index()].zones.iter().map(|z| memory.zone(*z)) {
                let key = (of.to_string(), place.index() as u8, zone.kind.name().to_string());
                let kernel = want.generations.get(&key).cloned().unwrap_or_default();
                let what = format!("generation {} of {of} in {}", place.index(), zone.kind.name());
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
