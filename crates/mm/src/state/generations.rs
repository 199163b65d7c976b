//! The generations of the multi-generational LRU: their lists in order, and what their feedback
//! loop remembers.
//!
//! Generations are numbered; the youngest four at most have lists, in a ring: one for anonymous
//! pages and one for file pages in each zone. The two youngest are what other kernels call active.
//! A page carries its generation, the list it is on, and how often it was used beyond what its
//! flags hold: one byte, kept only where generations are. Source: kernel-behaviour §4.10.

use super::list::List;
use super::mm_list::Walker;
use crate::types::{Pfn, ZoneType};

/// Most generations that have lists at a time.
pub const MAX_NR_GENS: usize = 4;
/// Fewest generations: the two that count as active.
pub const MIN_NR_GENS: u64 = 2;
/// Classes of pages by how often they were used.
pub const MAX_NR_TIERS: usize = 4;
/// Most uses that a page's byte counts.
pub(crate) const MAX_REFS: u8 = 3;

const KINDS: usize = 2;
const ZONES: usize = ZoneType::COUNT;

/// A place in the ring of generations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gen(u8);

impl Gen {
    /// The place of the generation with this number.
    #[inline(always)]
    pub const fn of(seq: u64) -> Gen {
        Gen((seq % MAX_NR_GENS as u64) as u8)
    }
    /// Its index in the ring.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
    /// The place after it.
    pub(crate) const fn next(self) -> Gen {
        Gen((self.0 + 1) % MAX_NR_GENS as u8)
    }
    /// All places, in the order of the ring.
    pub fn all() -> impl Iterator<Item = Gen> {
        (0..MAX_NR_GENS as u8).map(Gen)
    }
}

/// The byte that a page carries where there are generations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Used(u8);

impl Used {
    const GEN: u8 = 0b111;
    const LIST: u8 = 0b11 << 3;
    const REFS: u8 = 0b11 << 5;
    const SWAP_CACHE: u8 = 1 << 7;

    /// The generation that the page belongs to; `None` while it is off the lists.
    #[inline(always)]
    pub fn generation(self) -> Option<Gen> {
        (self.0 & Used::GEN).checked_sub(1).map(Gen)
    }
    /// The generation whose list it is on, which promotion leaves as it was.
    pub(crate) const fn listed(self) -> Gen {
        Gen((self.0 & Used::LIST) >> 3)
    }
    /// Uses beyond those that the flags hold.
    pub const fn refs(self) -> u8 {
        (self.0 & Used::REFS) >> 5
    }
    /// Whether the page is in the swap cache, as far as the engine was told.
    pub(crate) const fn in_swap_cache(self) -> bool {
        self.0 & Used::SWAP_CACHE != 0
    }
    pub(crate) fn set_generation(&mut self, generation: Option<Gen>) {
        self.0 = self.0 & !Used::GEN | generation.map_or(0, |g| g.0 + 1);
    }
    pub(super) fn set_listed(&mut self, of: Gen) {
        self.0 = self.0 & !Used::LIST | of.0 << 3;
    }
    pub(crate) fn set_refs(&mut self, refs: u8) {
        self.0 = self.0 & !Used::REFS | refs << 5;
    }
    pub(crate) fn set_swap_cache(&mut self, is: bool) {
        self.0 = self.0 & !Used::SWAP_CACHE | if is { Used::SWAP_CACHE } else { 0 };
    }
}

/// Pages by generation, kind and zone.
pub(crate) type Sizes = [[[i64; ZONES]; KINDS]; MAX_NR_GENS];

/// The counts that a feedback loop keeps of the pages of a kind that were used equally often: in
/// the oldest generation, and on average before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tier {
    pub avg_refaulted: u64,
    pub avg_total: u64,
    pub refaulted: u64,
    pub evicted: u64,
    pub protected: u64,
}

/// The generations of a node.
#[derive(Clone, Debug)]
pub struct Generations {
    /// Number of the youngest generation.
    pub max_seq: u64,
    /// Numbers of the oldest, of anonymous and of file pages.
    pub min_seq: [u64; KINDS],
    /// The youngest generation for which page tables were walked, or could have been.
    pub walk_seq: u64,
    pub(crate) walker: Walker,
    pub(crate) lists: [[[List; ZONES]; KINDS]; MAX_NR_GENS],
    /// The kernel's counts of the lists' pages: promotion is counted before a page moves.
    pub(crate) nr_pages: Sizes,
    /// By kind and tier.
    pub tiers: [[Tier; MAX_NR_TIERS]; KINDS],
}

impl Generations {
    /// As a node has them when it is new.
    pub(crate) fn new() -> Generations {
        Generations {
            max_seq: MIN_NR_GENS + 1,
            min_seq: [0; KINDS],
            walk_seq: MIN_NR_GENS,
            walker: Walker::default(),
            lists: [const { [const { [const { List::new() }; ZONES] }; KINDS] }; MAX_NR_GENS],
            nr_pages: Sizes::default(),
            tiers: [[Tier::default(); MAX_NR_TIERS]; KINDS],
        }
    }

    /// Whether a generation counts as active.
    #[inline(always)]
    pub(crate) const fn is_active(&self, of: Gen) -> bool {
        of.0 == Gen::of(self.max_seq).0 || of.0 == Gen::of(self.max_seq - 1).0
    }
    /// Generations of a kind that have lists.
    pub(crate) const fn nr_gens(&self, kind: usize) -> u64 {
        self.max_seq - self.min_seq[kind] + 1
    }
    /// Pages of a kind in a generation, as reclaim reads their number.
    pub(crate) fn size(&self, seq: u64, kind: usize) -> u64 {
        self.nr_pages[Gen::of(seq).index()][kind].iter().map(|pages| (*pages).max(0) as u64).sum()
    }
    /// The kernel's count of a list's pages.
    pub fn nr_pages(&self, of: Gen, kind: usize, zone: ZoneType) -> i64 {
        self.nr_pages[of.index()][kind][zone.index()]
    }
    /// The pages of a list, newest first.
    pub fn list(&self, of: Gen, kind: usize, zone: ZoneType) -> impl Iterator<Item = Pfn> + '_ {
        self.lists[of.index()][kind][zone.index()].iter()
    }
}
