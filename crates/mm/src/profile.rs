//! A kernel generation, as data: which variant of each mechanism is on.
//!
//! The engine never asks for a version. Where generations differ, it asks the profile for the variant, and the
//! variant is named after what it does. Source: kernel-behaviour §8 and the sections named at each field.

use crate::gfp::AllocFlags;
use crate::types::{CLUSTER_MAX, Order};
use alloc::string::String;

/// Per-CPU page lists (kernel-behaviour §1.7, §2.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum PcpRules {
    /// Order 0 only; high = 6 × batch; a full list gives back one batch, round-robin with growing shares.
    OrderZero,
    /// Orders 0–3 and huge pages; high from the low watermark; consecutive frees give back ever more.
    MultiOrder,
    /// The same lists; high moves with use between the low watermark's share and an eighth of the zone, refills of
    /// single pages double while nothing is freed (6.7 and later).
    AutoTuned,
}

/// Which list a free block is kept on (§2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum FreeLists {
    /// That of the type it was freed as, even where its pageblock has since changed type (up to 6.9).
    AsFreed,
    /// Always that of its pageblock's type: merging across pageblocks retypes the absorbed one, larger blocks are
    /// freed pageblock by pageblock, and every block taken or moved is counted on its own (6.10 and later).
    AsPageblock,
}

/// What a type without free blocks of its own does (§2.5, §2.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum FallbackRules {
    /// Moves foreign blocks to its own lists, then takes from those (4.13–6.9).
    MoveThenTake,
    /// Claims a whole pageblock or, failing that, takes a single block and leaves the rest where it is (6.15 and
    /// later).
    ClaimOrSteal,
}

/// Pageblocks kept for atomic requests of high order (§2.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum HighAtomicRules {
    /// 1 % of the zone and a pageblock; watermarks leave out all that is reserved.
    ReservedCounts,
    /// 1 % of the zone, rounded up, and none in zones where that is less than a pageblock; watermarks leave out only
    /// what of it is free; such requests do not refill per-CPU lists (6.12 and later).
    FreeCounts,
}

/// Who may dip into the reserves below the min watermark (§3.1, §3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum ReserveRules {
    /// ALLOC_HIGH and ALLOC_HARDER, as up to 6.2: only HARDER counts the HIGHATOMIC reserve as free.
    HighHarder,
    /// ALLOC_MIN_RESERVE and ALLOC_NON_BLOCK: either counts it.
    MinReserveNonBlock,
}

/// The first form of the compaction searches of 5.1, or the corrected one of 5.11–5.12 (§5.13).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum FastSearch {
    /// As merged in 5.1.
    Original,
    /// With the corrections of 5.11 and 5.12; the block found is marked skip.
    Corrected,
}

/// Background compaction that keeps a node's fragmentation score within bounds (§5.10).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum ProactiveRules {
    /// None.
    Off,
    /// As in seed 000: a zone stops at its weighted score; no gain skips the next 64 checks.
    Weighted,
    /// As in 5.12 and later: a zone stops at its own score; no gain stretches the timeout to 32 s.
    Unweighted,
    /// The same, with no floor under the lower threshold, the upper one at most half as much higher, and what is
    /// scanned counted as the daemon's too.
    HalfLeeway,
}

/// Single pages that are not held to the boosted min mark (§3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum IgnoresBoost {
    /// None (up to 5.8).
    None,
    /// Those marked `__GFP_ATOMIC` (5.9–6.2).
    MarkedAtomic,
    /// Those with `__GFP_HIGH` (6.3 and later).
    MinReserve,
}

impl IgnoresBoost {
    /// Whether it holds for a request with these flags.
    #[inline(always)]
    pub(crate) fn holds_for(self, flags: AllocFlags) -> bool {
        match self {
            IgnoresBoost::None => false,
            IgnoresBoost::MarkedAtomic => flags.any(AllocFlags::ATOMIC_MARK),
            IgnoresBoost::MinReserve => flags.any(AllocFlags::MIN_RESERVE),
        }
    }
}

/// When a direct compaction counts as a `compact_stall` (§3.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum StallCounting {
    /// Always (5.1–5.12).
    Always,
    /// Unless every zone was skipped (5.13 and later).
    UnlessSkipped,
    /// Unless every zone was skipped or put off.
    UnlessSkippedOrDeferred,
}

/// How a compaction run goes about its work (§5.3–§5.5, §5.11). The newer rules came one by one from 6.3 on; here they
/// are as they stand in 7.2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum CompactionRules {
    /// 5.1–6.2: isolated free blocks are split at once, and each page is moved to a target found just before.
    OneByOne,
    /// 7.2: free blocks stay whole until a page of them is wanted, targets are found for a whole batch before any page
    /// is moved, and what fails makes the scanner finish its pageblock.
    Batched,
}

impl CompactionRules {
    /// Free pages beyond the mark that make compaction for `order` worth its while (`compact_gap`, §5.2).
    pub fn gap(self, order: Order) -> u64 {
        let twice = 2 << order.get();
        match self {
            CompactionRules::OneByOne => twice,
            CompactionRules::Batched => twice.min(u64::from(CLUSTER_MAX)),
        }
    }
}

/// The order of the slow path's attempts (§3.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum SlowPathRules {
    /// 4.8 and later: a first compaction before the loop of reclaim and compaction.
    CompactThenLoop,
    /// 7.2: one loop, whose first round leaves reclaim out for costly requests and those that are not movable.
    OneLoop,
}

/// When a daemon gets the CPU of the task that has woken it (§4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Preemption {
    /// Where the task offers it: no sooner than its request waits, and else when it is done.
    Voluntary,
    /// At once, if the daemon is of a real-time class, as kswapd is made for recordings.
    Immediate,
}

/// A kernel generation.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Profile {
    /// The name it is asked for by, such as `6.1`.
    pub name: String,
    /// One line: what it stands for.
    pub summary: String,
    /// Memory is handed to the allocator in ascending order at boot; whether each block goes to the tail of its list,
    /// so that low memory is used first (5.10 and later), or to the head, so that high memory is.
    pub boot_frees_to_tail: bool,
    /// Per-CPU page lists.
    pub pcp: PcpRules,
    /// Which list a free block is kept on.
    pub free_lists: FreeLists,
    /// What a type without free blocks of its own does.
    pub fallback: FallbackRules,
    /// Whether there is `vm.defrag_mode`: no request splits a foreign pageblock before reclaim and compaction have
    /// been tried (§3.3, 6.15 and later).
    pub defrag_mode: bool,
    /// Pageblocks kept for atomic requests of high order.
    pub highatomic: HighAtomicRules,
    /// Only a request that may wake kswapd wakes it for a boost that somebody left behind (§2.7).
    pub boost_wakes_by_kswapd_requests: bool,
    /// A run of kswapd that a boost has started counts as failed, too, if it reclaims nothing (§4.4).
    pub boosted_runs_fail: bool,
    /// A request looks at nodes whose kswapd is at work only when no other node has a page (§3.4, 6.17 and later).
    pub busy_nodes_last: bool,
    /// Reserves below the min watermark.
    pub reserves: ReserveRules,
    /// Ceiling of the computed `vm.min_free_kbytes`, kB (§1.3).
    pub min_free_kbytes_cap: u32,
    /// Largest `vm.watermark_scale_factor` (§7.8).
    pub watermark_scale_factor_max: u32,
    /// Zones of fewer than four pageblocks are never boosted (§2.7).
    pub boost_spares_small_zones: bool,
    /// Which order-0 requests that fail try once more, against the unboosted min mark (§3.2).
    pub ignores_boost: IgnoresBoost,
    /// The order of the slow path's attempts.
    pub slow_path: SlowPathRules,
    /// How a compaction run goes about its work.
    pub compaction: CompactionRules,
    /// Compaction's searches through the free lists.
    pub fast_search: FastSearch,
    /// Proactive compaction.
    pub proactive: ProactiveRules,
    /// What counts as a stall.
    pub compact_stall: StallCounting,
    /// When a daemon gets the CPU of the task that has woken it: for hosts on which the two share one.
    pub preemption: Preemption,
    /// Where a zone has nothing to reclaim, its free pages are taken for it, so that a request in vain is tried again
    /// and again (§3.5).
    pub free_counts_as_reclaimable: bool,
    /// Whether a request that gives up in the retry loop, for whatever reason, takes a pageblock out of the HIGHATOMIC
    /// reserve first (6.8, and 6.1.192 by backport). Before, only one that has retried often enough does.
    pub unreserves_for_any_reason: bool,
    /// Whether a kernel of this generation was recorded and is reproduced; the others are followed from descriptions.
    pub recorded: bool,
    /// A costly NORETRY request bound to one node fails after one compaction and never reclaims (§0.3).
    pub thisnode_noretry_never_reclaims: bool,
}

impl Profile {
    /// Whether requests can be marked atomic. The mark went when the right to ignore a boost came to follow
    /// `__GFP_HIGH` (6.3).
    pub fn has_atomic_mark(&self) -> bool {
        self.ignores_boost != IgnoresBoost::MinReserve
    }

    /// 6.1.192 as Debian builds it; the one the recordings were made on. The files under `profiles/` are the
    /// source for hosts; this copy serves the engine's own tests and benchmarks.
    pub fn linux_6_1() -> Profile {
        Profile {
            name: "6.1".into(),
            summary: "Linux 6.1.192 (Debian 12)".into(),
            boot_frees_to_tail: true,
            pcp: PcpRules::MultiOrder,
            free_lists: FreeLists::AsFreed,
            fallback: FallbackRules::MoveThenTake,
            defrag_mode: false,
            highatomic: HighAtomicRules::ReservedCounts,
            boost_wakes_by_kswapd_requests: false,
            boosted_runs_fail: true,
            busy_nodes_last: false,
            reserves: ReserveRules::MinReserveNonBlock,
            min_free_kbytes_cap: 262_144,
            watermark_scale_factor_max: 3000,
            boost_spares_small_zones: true,
            ignores_boost: IgnoresBoost::MarkedAtomic,
            slow_path: SlowPathRules::CompactThenLoop,
            compaction: CompactionRules::OneByOne,
            fast_search: FastSearch::Corrected,
            proactive: ProactiveRules::Unweighted,
            compact_stall: StallCounting::UnlessSkipped,
            preemption: Preemption::Voluntary,
            free_counts_as_reclaimable: true,
            unreserves_for_any_reason: true,
            recorded: true,
            thisnode_noretry_never_reclaims: true,
        }
    }

    /// 7.2.12 as Debian's backports build it, the other one there are recordings of.
    pub fn linux_7_2() -> Profile {
        Profile {
            name: "7.2".into(),
            summary: "Linux 7.2.12 (Debian backports)".into(),
            pcp: PcpRules::AutoTuned,
            free_lists: FreeLists::AsPageblock,
            fallback: FallbackRules::ClaimOrSteal,
            defrag_mode: true,
            highatomic: HighAtomicRules::FreeCounts,
            boost_wakes_by_kswapd_requests: true,
            boosted_runs_fail: false,
            busy_nodes_last: true,
            preemption: Preemption::Immediate,
            free_counts_as_reclaimable: false,
            unreserves_for_any_reason: true,
            recorded: true,
            ignores_boost: IgnoresBoost::MinReserve,
            slow_path: SlowPathRules::OneLoop,
            compaction: CompactionRules::Batched,
            proactive: ProactiveRules::HalfLeeway,
            compact_stall: StallCounting::UnlessSkippedOrDeferred,
            ..Profile::linux_6_1()
        }
    }

    /// 5.6, the vanilla kernel of seed 000.
    pub fn linux_5_6() -> Profile {
        Profile {
            name: "5.6".into(),
            summary: "Linux 5.6-rc3, the vanilla kernel of seed 000".into(),
            boot_frees_to_tail: false,
            pcp: PcpRules::OrderZero,
            free_lists: FreeLists::AsFreed,
            fallback: FallbackRules::MoveThenTake,
            defrag_mode: false,
            highatomic: HighAtomicRules::ReservedCounts,
            boost_wakes_by_kswapd_requests: false,
            boosted_runs_fail: true,
            busy_nodes_last: false,
            reserves: ReserveRules::HighHarder,
            min_free_kbytes_cap: 65_536,
            watermark_scale_factor_max: 1000,
            boost_spares_small_zones: false,
            ignores_boost: IgnoresBoost::None,
            slow_path: SlowPathRules::CompactThenLoop,
            compaction: CompactionRules::OneByOne,
            fast_search: FastSearch::Original,
            proactive: ProactiveRules::Off,
            compact_stall: StallCounting::Always,
            preemption: Preemption::Voluntary,
            free_counts_as_reclaimable: false,
            unreserves_for_any_reason: false,
            recorded: false,
            thisnode_noretry_never_reclaims: false,
        }
    }
}
