//! How far compaction is from the least that would do: the fewest page moves for more blocks, what
//! this kernel's compaction takes for them, and the blocks that no move can free.
//!
//! The counts come from a snapshot, so a file is as good as the host itself. `fewest` says why its
//! number is the least, `probe` what it is set against.

mod fewest;
mod on_cpus_lists;
mod probe;

pub use fewest::Fewest;
pub use on_cpus_lists::OnCpusLists;
pub use probe::{Effort, Probe};

use crate::blocks::{Block, Class, ZoneBlocks};
use crate::confidence::Confidence;
use crate::need::Need;
use crate::obstacles::{Obstacle, Obstacles};
use crate::snapshot::{FoundZone, Snapshot};
use crate::sweep::{Ended, Way};
use kontig_mm::Profile;
use serde::Serialize;
use std::ops::RangeInclusive;

/// Name and version of a bound's schema.
pub const SCHEMA: &str = "kontig.bound/2";

/// The bound of a snapshot for blocks of one order.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Bound {
    pub schema: &'static str,
    pub kernel: String,
    /// The rules of the probe.
    pub profile: String,
    /// How far the probe can be relied on; null where it was not run.
    pub confidence: Option<Confidence>,
    pub page_bytes: u64,
    pub order: u32,
    pub block_bytes: u64,
    /// `None` is all nodes.
    pub node: Option<u32>,
    pub counts: Counts,
    pub on_cpus_lists: OnCpusLists,
    /// Pages that stay, by kind, the kind in most blocks first; without memory that was never the
    /// allocator's.
    pub kinds: Vec<Obstacle>,
    pub placement: Placement,
    /// Blocks by their movable pages and by those that stay.
    pub histogram: Vec<Cell>,
    /// The same blocks by ranges of a gigabyte; none of blocks that are larger.
    pub ranges: Vec<Range>,
    /// Whole gigabytes, as if they were the blocks asked about: the ranges that are whole.
    pub gigabytes: Counts,
    /// More blocks that can be made at most, and their cost.
    pub gains: Vec<Gain>,
    /// The whole compaction as it is, and once dirty pages have been written; null where it was not
    /// run.
    pub probe: Option<Effort>,
    pub probe_synced: Option<Effort>,
    /// Where the one as it is ends early.
    pub ended: Vec<Ended>,
    /// Why it was not run.
    pub no_probe: Option<String>,
}

/// Blocks by what they are good for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ByClass {
    pub blocks: u64,
    pub free: u64,
    /// Without a page that stays.
    pub emptiable: u64,
    /// With a page that stays.
    pub poisoned: u64,
    /// Partly no memory of the allocator's.
    pub never: u64,
}

/// The blocks of all zones, and how many of the emptiable ones there is room to empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counts {
    #[serde(flatten)]
    pub of_class: ByClass,
    /// Wherever pages are placed.
    pub more_at_most: u64,
    /// With the room that the kernel's compaction uses: in movable pageblocks, above the min mark.
    pub more_in_compactions_room: u64,
}

impl Counts {
    fn of<'a>(blocks: impl Iterator<Item = &'a Block>, fewest: &Fewest) -> Counts {
        let more_in_compactions_room = fewest.in_compactions_room.min(fewest.most());
        Counts { of_class: by_class(blocks), more_at_most: fewest.most(), more_in_compactions_room }
    }
}

/// Poisoned blocks, and those that would be if the same pages had been placed side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Placement {
    pub staying_pages: u64,
    pub poisoned: u64,
    /// Blocks that perfect placement would take for them.
    pub least: u64,
}

impl Placement {
    /// Blocks that perfect placement would save.
    pub fn saved(&self) -> u64 {
        self.poisoned.saturating_sub(self.least)
    }
}

/// Blocks with a number of pages of each kind, both bounds included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Cell {
    pub movable: [u64; 2],
    pub staying: [u64; 2],
    pub blocks: u64,
}

/// A range of a gigabyte.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Range {
    pub node: u32,
    /// Its first address, in bytes.
    pub start: u64,
    /// Whether all of it lies in the zone.
    pub is_whole: bool,
    #[serde(flatten)]
    pub of_class: ByClass,
    pub free_pages: u64,
    pub movable_pages: u64,
    pub staying_pages: u64,
    /// Its blocks by address, a letter each: see [`Class`].
    #[serde(skip)]
    pub map: Vec<(usize, Class)>,
}

/// More blocks, and what they cost.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Gain {
    pub more: u64,
    /// Null where no placement makes as many.
    pub fewest_moves: Option<u64>,
    /// The effort of this kernel's compaction as it is; null where it does not make as many, or was
    /// not run.
    pub compaction: Option<Effort>,
    /// The same once dirty pages have been written.
    pub synced: Option<Effort>,
}

/// The blocks asked about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked {
    pub order: u32,
    /// `None` is all nodes.
    pub node: Option<u32>,
    /// More blocks whose cost is wanted; `None` shows a few shares of what can be had.
    pub more: Option<u64>,
}

impl Bound {
    /// The bound of a snapshot, with a probe by the rules of `profile`.
    pub fn of(snapshot: &Snapshot, profile: &Profile, asked: Asked) -> Bound {
        let Asked { order, node, more } = asked;
        let zones = zones(snapshot, order, node);
        let fewest = Fewest::of(&zones, 1 << order);
        let mut nodes = snapshot.nodes();
        nodes.retain(|n| node.is_none_or(|node| node == *n));
        let (probe, no_probe) = match Probe::run(snapshot, profile, order, &nodes) {
            Ok(probe) => (Some(probe), None),
            Err(why) => (None, Some(why)),
        };
        // Without a folio that was not split, writing changes nothing.
        let synced = match &probe {
            Some(probe) if probe.ended.is_empty() => Some(probe.clone()),
            Some(_) => Probe::of(snapshot, profile, order, &nodes, Way::Synced).ok(),
            None => None,
        };
        let all: Vec<&Block> = zones.iter().flat_map(|zone| &zone.blocks).collect();
        let gain = |more: u64| Gain {
            more,
            fewest_moves: fewest.moves(more),
            compaction: probe.as_ref().and_then(|probe| probe.until(more)),
            synced: synced.as_ref().and_then(|probe| probe.until(more)),
        };
        let probes = || probe.iter().chain(&synced);
        let mut wanted = more.map_or_else(|| shares(fewest.most(), probes()), |more| vec![more]);
        wanted.dedup();
        let need = Need { count: 1, order, node, unmovable: false };
        let page_bytes = snapshot.host.page_size;
        let whole = self::zones(snapshot, (RANGE / page_bytes).ilog2(), node);
        let of_whole = Fewest::of(&whole, RANGE / page_bytes);
        let gigabytes = Counts::of(whole.iter().flat_map(|zone| &zone.blocks), &of_whole);
        let mut kinds = Obstacles::of(snapshot, &need).kinds;
        kinds.retain(|kind| !kind.state.is_fixed());
        let asked = snapshot.zones.iter().filter(|zone| node.is_none_or(|node| node == zone.node));
        let ranges = match page_bytes << order {
            bytes if bytes > RANGE => Vec::new(),
            _ => asked.zip(&zones).flat_map(|(zone, blocks)| ranges(zone, blocks, page_bytes)).collect(),
        };
        Bound {
            schema: SCHEMA,
            kernel: snapshot.host.kernel.clone(),
            profile: profile.name.clone(),
            confidence: probe.as_ref().map(|_| Confidence::of(snapshot, profile)),
            page_bytes,
            order,
            block_bytes: page_bytes << order,
            node,
            counts: Counts::of(all.iter().copied(), &fewest),
            on_cpus_lists: OnCpusLists::of(snapshot, node),
            kinds,
            placement: zones.iter().map(|zone| placement(zone, 1 << order)).fold(Placement::default(), both),
            histogram: histogram(&all, 1 << order),
            ranges,
            gigabytes,
            gains: wanted.into_iter().map(gain).collect(),
            probe: probe.as_ref().map(Probe::end),
            probe_synced: synced.as_ref().map(Probe::end),
            ended: probe.map(|probe| probe.ended).unwrap_or_default(),
            no_probe,
        }
    }
}

/// The fewest page moves for more blocks of an order.
pub fn fewest(snapshot: &Snapshot, order: u32, node: Option<u32>) -> Fewest {
    Fewest::of(&zones(snapshot, order, node), 1 << order)
}

/// Poisoned blocks of an order, and those of perfect placement.
pub fn placements(snapshot: &Snapshot, order: u32, node: Option<u32>) -> Placement {
    let zones = zones(snapshot, order, node);
    zones.iter().map(|zone| placement(zone, 1 << order)).fold(Placement::default(), both)
}

fn zones(snapshot: &Snapshot, order: u32, node: Option<u32>) -> Vec<ZoneBlocks> {
    let asked = |zone: &&FoundZone| node.is_none_or(|node| node == zone.node);
    snapshot.zones.iter().filter(asked).map(|zone| ZoneBlocks::of(snapshot, zone, order)).collect()
}

/// A tenth, a quarter and a half of what can be made, what each compaction makes in all, and all.
fn shares<'a>(most: u64, probes: impl Iterator<Item = &'a Probe>) -> Vec<u64> {
    let of_probes = probes.map(|probe| probe.end().more.min(most));
    let mut shares: Vec<u64> = [most / 10, most / 4, most / 2, most].into_iter().chain(of_probes).collect();
    shares.retain(|more| *more > 0);
    shares.sort_unstable();
    shares
}

fn by_class<'a>(blocks: impl Iterator<Item = &'a Block>) -> ByClass {
    let mut counts = ByClass::default();
    for block in blocks {
        counts.blocks += 1;
        *match block.class() {
            Class::Free => &mut counts.free,
            Class::Emptiable => &mut counts.emptiable,
            Class::Poisoned => &mut counts.poisoned,
            Class::Never => &mut counts.never,
        } += 1;
    }
    counts
}

/// The blocks that a zone's staying pages take, and would take side by side: first in blocks that
/// never become free, as those are lost anyway.
fn placement(zone: &ZoneBlocks, pages: u64) -> Placement {
    let blocks = || zone.blocks.iter();
    let staying_pages: u64 = blocks().map(|block| block.staying).sum();
    let room: u64 = blocks().filter(|b| b.class() == Class::Never).map(|b| pages - b.fixed).sum();
    let poisoned = blocks().filter(|b| b.class() == Class::Poisoned).count() as u64;
    Placement { staying_pages, poisoned, least: staying_pages.saturating_sub(room).div_ceil(pages) }
}

fn both(a: Placement, b: Placement) -> Placement {
    Placement {
        staying_pages: a.staying_pages + b.staying_pages,
        poisoned: a.poisoned + b.poisoned,
        least: a.least + b.least,
    }
}

/// Bounds of the histogram's classes, for blocks of `pages` pages.
fn classes(pages: u64) -> (Vec<RangeInclusive<u64>>, Vec<RangeInclusive<u64>>) {
    let up_to = |bounds: &[u64]| {
        let mut classes = Vec::new();
        let mut from = 0;
        for bound in bounds.iter().copied().filter(|bound| *bound <= pages) {
            if bound >= from {
                classes.push(from..=bound);
                from = bound + 1;
            }
        }
        classes
    };
    (up_to(&[0, pages / 8, pages / 4, pages / 2, pages - pages / 4, pages]), up_to(&[0, 1, 8, 64, pages]))
}

fn histogram(blocks: &[&Block], pages: u64) -> Vec<Cell> {
    let (movable, staying) = classes(pages);
    let cell = |m: &RangeInclusive<u64>, s: &RangeInclusive<u64>| Cell {
        movable: [*m.start(), *m.end()],
        staying: [*s.start(), *s.end()],
        blocks: blocks.iter().filter(|b| m.contains(&b.movable) && s.contains(&(b.staying + b.fixed))).count() as u64,
    };
    movable.iter().flat_map(|m| staying.iter().map(move |s| cell(m, s))).collect()
}

/// Bytes of a range.
const RANGE: u64 = 1 << 30;

fn ranges(found: &FoundZone, zone: &ZoneBlocks, page_bytes: u64) -> Vec<Range> {
    let frames = found.frames();
    let is_whole = |start: u64| {
        let bytes = |frame: usize| frame as u64 * page_bytes;
        bytes(frames.start) <= start && start + RANGE <= bytes(frames.end)
    };
    let range_of = |block: &Block| block.start as u64 * page_bytes / RANGE;
    let of_range = |blocks: &[Block]| {
        let sum = |pages: fn(&Block) -> u64| blocks.iter().map(pages).sum();
        Range {
            node: zone.node,
            start: range_of(&blocks[0]) * RANGE,
            is_whole: is_whole(range_of(&blocks[0]) * RANGE),
            of_class: by_class(blocks.iter()),
            free_pages: sum(Block::free),
            movable_pages: sum(|b| b.movable),
            staying_pages: sum(|b| b.staying),
            map: blocks.iter().map(|b| (b.start, b.class())).collect(),
        }
    };
    zone.blocks.chunk_by(|a, b| range_of(a) == range_of(b)).map(of_range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pageblocks of 512 pages, by their lines.
    fn host(blocks: &str, count: usize) -> Snapshot {
        let header = concat!(
            r#"{"schema":"kontig.snapshot/1","host":{"kernel":"6.12.9","page_size":4096,"block_order":9,"#,
            r#""cpus":1,"pinned":0,"sysctls":[]},"zones":[{"node":0,"name":"Normal","start":0,"spanned":PAGES,"#,
            r#""present":PAGES,"managed":PAGES,"marks":[20,25,30,35],"boost":0,"protection":[0,0],"cached":0,"#,
            r#""free":[0,0,0,0,0,0,0,0,0,0,0],"blocks":null}]}"#,
        );
        let header = header.replace("PAGES", &(count * 512).to_string());
        Snapshot::parse(&format!("{header}\n{blocks}")).expect("a snapshot")
    }

    fn bound(snapshot: &Snapshot, more: Option<u64>) -> Bound {
        Bound::of(snapshot, &kontig_profiles::linux("6.12"), Asked { order: 9, node: None, more })
    }

    #[test]
    fn compaction_moves_no_fewer_pages_than_the_bound_and_makes_no_more_blocks() {
        // Compaction empties blocks by address, so the full ones below come first.
        let (half, few) = (" a1 F1".repeat(256), format!(" a4{}", " F508"));
        let snapshot = host(&format!("0 M{half} *8\n1000 M{few} *8\n2000 M F512 *4\n"), 20);
        let bound = bound(&snapshot, Some(4));
        let gain = bound.gains[0];
        let probe = gain.compaction.expect("compaction makes them");
        assert_eq!(gain.fewest_moves, Some(16));
        assert!(probe.pages_moved >= 16 && probe.more >= 4, "{probe:?}");
        assert!(bound.probe.expect("it was run").more <= bound.counts.more_at_most);
        assert!(probe.cpu_seconds > 0.0 && probe.frames_scanned > 0);
    }

    #[test]
    fn blocks_are_told_apart_and_ranges_add_up() {
        let snapshot = host("0 M F512 *2\n400 M a512\n600 U s1 a511\n800 M r1 F511\na00 M F512\n", 6);
        let bound = bound(&snapshot, None);
        let Counts { of_class: ByClass { blocks, free, emptiable, poisoned, never }, more_at_most, .. } = bound.counts;
        assert_eq!((blocks, free, emptiable, poisoned, never), (6, 3, 1, 1, 1));
        assert_eq!(more_at_most, 0, "511 free pages outside free blocks are one too few");
        assert_eq!((bound.ranges.len(), bound.ranges[0].of_class.blocks), (1, 6));
        assert_eq!(bound.histogram.iter().map(|cell| cell.blocks).sum::<u64>(), 6);
        let cell = |movable: u64, staying: u64| {
            let has = |bounds: [u64; 2], n: u64| bounds[0] <= n && n <= bounds[1];
            bound.histogram.iter().find(|c| has(c.movable, movable) && has(c.staying, staying)).map(|c| c.blocks)
        };
        assert_eq!([cell(512, 0), cell(511, 1), cell(0, 1), cell(0, 0)], [Some(1), Some(1), Some(1), Some(3)]);
    }

    #[test]
    fn free_pages_on_cpus_lists_are_a_share_of_all_free_pages() {
        let snapshot = host("0 M c512\n200 M c256 F256\n400 M F512\n600 M a512\n", 4);
        let found = bound(&snapshot, None).on_cpus_lists;
        assert_eq!((found.pages, found.share), (768, 0.5));
        let elsewhere = OnCpusLists::of(&snapshot, Some(1));
        assert_eq!((elsewhere.pages, elsewhere.share), (0, 0.0));
    }

    #[test]
    fn pages_that_stay_take_the_fewest_blocks_side_by_side() {
        // 5 blocks with 200 pages each, and 100 pages beside memory that is lost anyway.
        let snapshot = host("0 U s200 F312 *5\na00 M r400 F112\n", 6);
        let placement = bound(&snapshot, None).placement;
        assert_eq!((placement.staying_pages, placement.poisoned), (1000, 5));
        assert_eq!((placement.least, placement.saved()), (2, 3), "888 pages beyond those 112");
    }

    #[test]
    fn a_large_dirty_folio_ends_compaction_as_it_is_and_is_named() {
        // Blocks with 32 folios of four dirty pages; above them single pages take what moves.
        let dirty = " d1^2 F12".repeat(32);
        let snapshot = host(&format!("0 M{dirty} *16\n2000 M{} *16\n", " a1 F1".repeat(256)), 32);
        let bound = bound(&snapshot, None);
        let (as_it_is, synced) = (bound.probe.expect("it was run"), bound.probe_synced.expect("it was run"));
        assert!(as_it_is.more < synced.more, "{as_it_is:?} {synced:?}");
        let ended = &bound.ended[0];
        assert_eq!((bound.ended.len(), ended.node, ended.zone.as_str()), (1, 0, "Normal"));
        assert_eq!(snapshot.frame(ended.pfn).state(), crate::frame::State::FileDirty);
        let last = bound.gains.last().expect("some can be made");
        assert!(last.compaction.is_none() && bound.gains.iter().any(|gain| gain.synced.is_some()));
    }

    #[test]
    fn locked_pages_stay_where_the_host_says_so() {
        let text = "0 M l1 F511 *4\n800 M a1 F511 *4\n";
        let movable = host(text, 8);
        let mut staying = movable.clone();
        staying.host.sysctls.push(("compact_unevictable_allowed".into(), "0".into()));
        let of = |snapshot: &Snapshot| {
            let bound = bound(snapshot, None);
            let locked = bound.kinds.iter().find(|kind| kind.kind == "locked in memory").map(|kind| kind.blocks);
            (bound.counts.of_class.emptiable, bound.counts.of_class.poisoned, locked, bound.probe.map(|end| end.more))
        };
        let (free, poisoned) = (of(&movable), of(&staying));
        assert_eq!((free.0, free.1, free.2), (8, 0, None));
        assert_eq!((poisoned.0, poisoned.1, poisoned.2), (4, 4, Some(4)));
        assert!(free.3 > Some(4) && poisoned.3 <= Some(4), "{free:?} {poisoned:?}");
    }

    #[test]
    fn of_blocks_above_the_free_lists_the_fewest_moves_are_known_and_there_is_no_probe() {
        let snapshot = host("0 M a512 *4\n800 M F512 *4\n", 8);
        let bound =
            Bound::of(&snapshot, &kontig_profiles::linux("6.12"), Asked { order: 11, node: None, more: Some(1) });
        assert_eq!((bound.counts.of_class.free, bound.counts.of_class.emptiable, bound.probe), (1, 1, None));
        assert!(bound.no_probe.is_some_and(|why| why.contains("largest order")));
        assert_eq!(bound.gains[0].fewest_moves, None, "moving would take the free one");
    }
}
