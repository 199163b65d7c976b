//! How far compaction is from the least that would do: the fewest page moves for more blocks, what
//! this kernel's compaction takes for them, and the blocks that no move can free.
//!
//! The counts come from a snapshot, so a file is as good as the host itself. `fewest` says why its
//! number is the least, `probe` what it is set against.

mod counts;
mod fewest;
mod histogram;
mod on_cpus_lists;
mod placement;
mod probe;
mod ranges;

pub use counts::{ByClass, Counts};
pub use fewest::Fewest;
pub use histogram::Cell;
pub use on_cpus_lists::OnCpusLists;
pub use placement::Placement;
pub use probe::{Effort, Probe};
pub use ranges::Range;

use crate::blocks::{Block, ZoneBlocks};
use crate::confidence::Confidence;
use crate::need::Need;
use crate::obstacles::{Obstacle, Obstacles};
use crate::snapshot::{FoundZone, Snapshot};
use crate::sweep::{Ended, Way};
use kontig_mm::Profile;
use ranges::RANGE;
use serde::Serialize;

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
    /// More blocks that take no page move: they are whole once CPUs' lists are emptied. The
    /// compactions' blocks have them among them.
    pub without_a_move: u64,
    /// The whole compaction as it is, and once dirty pages have been written; null where it was not
    /// run.
    pub probe: Option<Effort>,
    pub probe_synced: Option<Effort>,
    /// Where the one as it is ends early.
    pub ended: Vec<Ended>,
    /// Why it was not run.
    pub no_probe: Option<String>,
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
            _ => asked.zip(&zones).flat_map(|(zone, blocks)| ranges::ranges(zone, blocks, page_bytes)).collect(),
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
            placement: Placement::of(&zones, 1 << order),
            histogram: histogram::histogram(&all, 1 << order),
            ranges,
            gigabytes,
            gains: wanted.into_iter().map(gain).collect(),
            without_a_move: fewest.without_a_move(),
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
    Placement::of(&zones(snapshot, order, node), 1 << order)
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
        let snapshot = host("0 M c512\n200 M c256 F256\n400 M F512\n600 M a512\n800 M i512\n", 5);
        let bound = bound(&snapshot, None);
        let found = bound.on_cpus_lists;
        assert_eq!((found.pages, found.share), (768, 768.0 / 2048.0), "those initialised late are free, too");
        assert_eq!(bound.without_a_move, 2);
        let all = bound.probe.expect("it was run");
        assert_eq!((all.more, all.pages_moved), (2, 0), "they are among the compaction's blocks");
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
