//! A snapshot: the use of every frame of a host at one moment.
//!
//! The kernel's own words are kept apart from inferences. Said: each frame's flags, the zones'
//! sizes and marks, how many free blocks of each order and how many pageblocks of each type there
//! are. Inferred (`infer`): which frames without a flag lie on CPUs' lists or were never given to
//! the allocator, which type a pageblock has, where one free block ends and the next begins, and
//! that lists are in the order of addresses. [`Snapshot::agreement`] says how well the inferences
//! agree with the kernel's counts.
//!
//! A snapshot holds states and counts. It names no process, no file and no address of a program.

mod infer;
pub(crate) mod take;
mod text;

pub use text::BadSnapshot;

use crate::frame::State;
use kontig_mm::{MigrateType, Order};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;

/// A host at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// Facts of the host as a whole.
    pub host: Host,
    /// Its zones with memory, by address.
    pub zones: Vec<FoundZone>,
    /// A byte a frame, from frame 0 on: see [`Frame`].
    frames: Vec<Frame>,
    /// The pageblocks' types, inferred.
    types: Vec<MigrateType>,
}

/// No machine has more frames than this: 16 TiB of 4 KiB pages.
const MAX_FRAMES: u64 = 1 << 32;

/// Facts of the host as a whole.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// The kernel's release, as `6.18.44-fc`.
    pub kernel: String,
    pub page_size: u64,
    pub block_order: u8,
    pub cpus: usize,
    /// Pages that somebody has pinned for I/O, of all nodes; which ones is not shown. `None` where
    /// the kernel does not say.
    pub pinned: Option<u64>,
    /// Pages of swap. `None` where the kernel did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_pages: Option<u64>,
    /// Settings that decide something in the engine, and their values: of `vm`, of transparent huge
    /// pages (`thp.`), and `lru_gen.enabled`.
    pub sysctls: Vec<(String, String)>,
}

/// A zone with memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoundZone {
    pub node: u32,
    /// Its name, as the kernel prints it.
    pub name: String,
    pub start: u64,
    /// Frames from the first to the last.
    pub spanned: u64,
    /// Frames that are memory.
    pub present: u64,
    /// Frames the allocator was given.
    pub managed: u64,
    /// Marks, without boost: min, low, high, promo.
    pub marks: [u64; 4],
    /// Added to the marks for now.
    pub boost: u64,
    /// Pages kept from the kernel's requests and from users' that could go to a higher zone.
    pub protection: [u64; 2],
    /// Free pages on the CPUs' lists.
    pub cached: u64,
    /// Free pages that are on no list until a request finds nothing else: not initialised yet, or
    /// not accepted by a confidential guest.
    #[serde(default, skip_serializing_if = "is_none")]
    pub deferred: u64,
    /// Free blocks of each order, as `/proc/buddyinfo` has them.
    pub free: Vec<u64>,
    /// Pageblocks of each type: unmovable, movable, reclaimable, highatomic. `None` where the
    /// kernel did not say.
    pub blocks: Option<[u64; MigrateType::COUNT]>,
}

/// Whether there are no pages.
fn is_none(pages: &u64) -> bool {
    *pages == 0
}

impl FoundZone {
    /// Pages that the allocator has, deferred ones included.
    pub fn managed_at_most(&self) -> u64 {
        (self.managed + self.deferred).min(self.present)
    }

    pub fn frames(&self) -> Range<usize> {
        self.start as usize..(self.start + self.spanned) as usize
    }

    /// Refuses a zone that cannot be.
    ///
    /// # Errors
    /// In one line, why not.
    pub fn check(&self) -> Result<(), String> {
        let bad = |what: String| Err(format!("{}: {what}", self.title()));
        if self.start.checked_add(self.spanned).is_none_or(|end| end > MAX_FRAMES) {
            return bad("ends beyond 16 TiB".into());
        }
        if self.managed > self.present || self.present > self.spanned {
            return bad("managed ≤ present ≤ spanned must hold".into());
        }
        let free = self.free_pages().filter(|pages| *pages <= self.managed);
        if free.is_none() {
            return bad(format!("more free pages than the {} that it has", self.managed));
        }
        if self.cached > self.managed {
            return bad(format!("{} free pages on CPUs' lists of the {} that it has", self.cached, self.managed));
        }
        if self.deferred > self.present {
            return bad(format!("{} free pages on no list of the {} that it has", self.deferred, self.present));
        }
        let kept = self.marks.iter().chain(&self.protection).chain([&self.boost]).max();
        match kept.copied().filter(|pages| *pages > MAX_FRAMES) {
            Some(pages) => bad(format!("a mark, boost or protection of {pages} pages, more than a machine has")),
            None => Ok(()),
        }
    }

    /// Pages of all its free blocks; `None` where that is more than a number holds.
    fn free_pages(&self) -> Option<u64> {
        let pages = |(order, blocks): (u32, &u64)| blocks.checked_mul(1u64.checked_shl(order)?);
        (0..).zip(&self.free).try_fold(0u64, |sum, of_order| sum.checked_add(pages(of_order)?))
    }

    /// The node and the kernel's name of the zone.
    pub fn title(&self) -> String {
        format!("node {} zone {}", self.node, self.name)
    }
}

/// A frame: its state, and whether it continues the block before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame(u8);

const TAIL: u8 = 0x80;

impl Frame {
    /// The first frame of a block.
    pub const fn head(state: State) -> Frame {
        Frame(state as u8)
    }
    /// Any other frame of a block.
    pub const fn tail(state: State) -> Frame {
        Frame(state as u8 | TAIL)
    }
    pub fn state(self) -> State {
        State::ALL[usize::from(self.0 & !TAIL)]
    }
    /// Whether it continues the block before it.
    pub const fn is_tail(self) -> bool {
        self.0 & TAIL != 0
    }
}

/// A run of frames that belong together: a free block, a compound page, or single frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    pub pfn: usize,
    pub pages: usize,
    pub state: State,
}

impl Snapshot {
    /// The frame with this number.
    pub fn frame(&self, pfn: usize) -> Frame {
        self.frames.get(pfn).copied().unwrap_or(Frame::head(State::Hole))
    }

    /// Number of frames from frame 0 on.
    pub fn nr_frames(&self) -> usize {
        self.frames.len()
    }

    /// Pages of a pageblock.
    pub fn pages_per_block(&self) -> usize {
        1 << self.host.block_order
    }

    /// The type of the pageblock of this number, inferred.
    pub fn block_type(&self, block: usize) -> MigrateType {
        self.types.get(block).copied().unwrap_or(MigrateType::Movable)
    }

    /// The largest order of free lists.
    pub fn max_order(&self) -> usize {
        self.zones.iter().map(|z| z.free.len()).max().unwrap_or(1).saturating_sub(1)
    }

    /// Whether this host's compaction moves pages of this use: `vm.compact_unevictable_allowed`
    /// decides about those locked in memory.
    pub fn moves(&self, state: State) -> bool {
        state.is_movable() && !(state == State::Locked && self.keeps_locked())
    }

    /// Whether it leaves locked pages where they are.
    pub fn keeps_locked(&self) -> bool {
        self.setting("compact_unevictable_allowed").is_some_and(|value| value == "0")
    }

    /// The mask of `lru_gen/enabled`: 0 where pages are on active and inactive lists, or the
    /// snapshot does not say.
    pub fn lru_gen(&self) -> u32 {
        self.setting("lru_gen.enabled").and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    fn setting(&self, short_name: &str) -> Option<&str> {
        let is_it = |name: &str| name.trim_start_matches("vm.") == short_name;
        self.host.sysctls.iter().find(|(name, _)| is_it(name)).map(|(_, value)| value.trim())
    }

    /// Frames of each state in a range, in the order of [`State::ALL`].
    pub fn census(&self, frames: Range<usize>) -> [u64; State::ALL.len()] {
        let mut census = [0; State::ALL.len()];
        for frame in &self.frames[frames.start.min(self.frames.len())..frames.end.min(self.frames.len())] {
            census[frame.state() as usize] += 1;
        }
        census
    }

    /// The pieces of a range of frames, by address.
    pub fn pieces(&self, frames: Range<usize>) -> impl Iterator<Item = Piece> + '_ {
        let mut at = frames.start;
        let end = frames.end.min(self.frames.len());
        std::iter::from_fn(move || {
            let pfn = (at < end).then_some(at)?;
            let first = self.frames[pfn];
            let state = first.state();
            // Whole free blocks are found by arithmetic, compound pages by their tails.
            let continues = |f: &Frame| f.is_tail() && f.state() == state;
            let pages = 1 + self.frames[pfn + 1..end].iter().take_while(|f| continues(f)).count();
            at = pfn + pages;
            Some(Piece { pfn, pages, state })
        })
    }

    /// Free blocks of each order in a zone, as they are inferred.
    pub fn free_blocks(&self, zone: &FoundZone) -> Vec<u64> {
        let mut blocks = vec![0; zone.free.len()];
        for piece in self.pieces(zone.frames()).filter(|p| p.state == State::Free) {
            if let Some(n) = blocks.get_mut(piece.pages.ilog2() as usize) {
                *n += 1;
            }
        }
        blocks
    }

    /// The share of the free memory inferred to lie in blocks of the orders in `/proc/buddyinfo`,
    /// from 0 to 1. The host went on between the two reads, so it is hardly ever 1.
    pub fn agreement(&self) -> f64 {
        let (mut differ, mut free) = (0, 0);
        for zone in &self.zones {
            for (order, (a, b)) in self.free_blocks(zone).iter().zip(&zone.free).enumerate() {
                differ += a.abs_diff(*b) << order;
                free += b << order;
            }
        }
        // A block that is elsewhere is missing in one order and too many in another.
        1.0 - (differ as f64 / 2.0 / (free as f64).max(1.0)).min(1.0)
    }

    /// Blocks of `order` that are free as they are, naturally aligned: also of orders above those
    /// of free lists.
    pub fn free_spans(&self, zone: &FoundZone, order: u32) -> u64 {
        self.count_spans(zone, order, |f| f.state() == State::Free)
    }

    /// Naturally aligned blocks of `order` whose frames all satisfy `wanted`.
    pub fn count_spans(&self, zone: &FoundZone, order: u32, wanted: impl Fn(Frame) -> bool) -> u64 {
        aligned(zone.frames(), order).filter(|block| self.frames[block.clone()].iter().all(|f| wanted(*f))).count()
            as u64
    }

    /// Its nodes, each once, in the order of their numbers.
    pub fn nodes(&self) -> Vec<u32> {
        let nodes: BTreeSet<u32> = self.zones.iter().map(|zone| zone.node).collect();
        nodes.into_iter().collect()
    }
}

/// The naturally aligned blocks of an order that lie wholly in a range of frames.
pub(crate) fn aligned(frames: Range<usize>, order: u32) -> impl Iterator<Item = Range<usize>> {
    let pages = 1usize.checked_shl(order).unwrap_or(usize::MAX);
    let first = frames.start.checked_next_multiple_of(pages).unwrap_or(frames.end);
    let starts = (first..frames.end).step_by(pages).take_while(move |start| frames.end - start >= pages);
    starts.map(move |start| start..start + pages)
}

/// Bytes of a page of the host this runs on.
pub fn host_page_size() -> u64 {
    rustix::param::page_size() as u64
}

/// Pages of the largest block that may start at `pfn`, has at most `room` pages and at most
/// `max_order`.
pub fn largest_block(pfn: usize, room: usize, max_order: usize) -> usize {
    let aligned = if pfn == 0 { max_order } else { (pfn.trailing_zeros() as usize).min(max_order) };
    1 << aligned.min(room.ilog2() as usize)
}

/// The engine's order for this number of pages, if it has one.
pub fn engine_order(pages: usize) -> Option<Order> {
    let order = pages.ilog2() as u8;
    (pages.is_power_of_two() && order <= kontig_mm::types::MAX_ORDER.get()).then(|| Order::new(order))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_whose_zones_do_not_lie_in_a_row_is_one_node() {
        const ZONE: &str = concat!(
            r#"{"node":NODE,"name":"Normal","start":START,"spanned":8,"present":8,"managed":8,"marks":[0,0,0,0],"#,
            r#""boost":0,"protection":[0,0],"cached":0,"free":[0,0,0,0],"blocks":null}"#,
        );
        let zone = |node: u32, start: u32| ZONE.replace("NODE", &node.to_string()).replace("START", &start.to_string());
        let zones = [zone(0, 0), zone(1, 8), zone(0, 16)].join(",");
        let header = concat!(
            r#"{"schema":"kontig.snapshot/1","host":{"kernel":"6.12.9","page_size":4096,"block_order":3,"#,
            r#""cpus":1,"pinned":0,"sysctls":[]},"zones":[ZONES]}"#,
        );
        let header = header.replace("ZONES", &zones);
        let snapshot = Snapshot::parse(&format!("{header}\n0 M a8 *3\n")).expect("a snapshot");
        assert_eq!(snapshot.nodes(), [0, 1]);
    }

    #[test]
    fn blocks_are_aligned_and_lie_wholly_in_their_range() {
        assert_eq!(aligned(3..17, 2).collect::<Vec<_>>(), [4..8, 8..12, 12..16]);
        assert_eq!(
            aligned(3..7, 2).count() + aligned(0..7, 64).count() + aligned(usize::MAX - 2..usize::MAX, 2).count(),
            0
        );
    }
}
