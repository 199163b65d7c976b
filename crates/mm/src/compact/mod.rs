//! Compaction: moving pages from the bottom of a zone to free pages at its top until a large block is free.
//!
//! One run over one zone is a [`CompactRun`]. Two scanners walk towards each other: the migration scanner
//! ([`migrate_scanner`]) isolates movable pages from low pageblocks, the free scanner ([`free_scanner`]) isolates
//! free pages from high ones ([`targets`] keeps them), and every isolated page is migrated to a free one ([`migrate`]). What ends a run is in
//! [`finished`], what keeps one from starting in [`suitable`], what puts one off after failures in [`defer`], and
//! what a run leaves as hints for the next in [`skip`]. Source: kernel-behaviour §5.

pub mod defer;
pub mod direct;
pub mod finished;
pub mod free_scanner;
pub mod migrate;
pub mod migrate_scanner;
pub mod proactive;
pub mod run;
pub mod skip;
pub mod suitable;
pub mod targets;

use crate::profile::CompactionRules;
use crate::types::{MigrateType, Order, Pfn};
use crate::zone::Locked;

pub use run::{CompactControl, CompactRun, MigrateOutcome, Owner, RunStep, Turn};

/// What a zone remembers between compaction runs.
#[derive(Clone, Debug, Default)]
pub struct ZoneCompaction {
    /// Where the next run's migration scanner starts: asynchronous, then synchronous.
    pub cached_migrate_pfn: [Pfn; 2],
    /// Where the next run's free scanner starts.
    pub cached_free_pfn: Pfn,
    /// A migration scanner that starts at or below this has covered the whole zone when it meets the other.
    pub init_migrate_pfn: Pfn,
    /// A free scanner that starts at or above this is at its beginning.
    pub init_free_pfn: Pfn,
    /// A direct run met: kswapd shall reset the skip hints when it goes to sleep.
    pub blockskip_flush: bool,
    /// Attempts put off since the last failure.
    pub considered: u32,
    /// 2 to this power attempts are put off.
    pub defer_shift: u8,
    /// Orders from this one up are put off.
    pub order_failed: u8,
    pub(crate) capture: Capture,
}

/// A direct compactor's claim on a block that merges to the order it wants while it frees pages itself (§5.9.4).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Capture {
    wanted: Option<(Order, MigrateType)>,
    page: Option<Pfn>,
}

impl Capture {
    /// Claims the next block of `order` for a request of type `t`.
    pub(crate) fn arm(&mut self, order: Order, t: MigrateType) {
        self.wanted = Some((order, t));
    }
    /// Ends the claim and hands over what it got.
    pub(crate) fn disarm(&mut self) -> Option<Pfn> {
        self.wanted = None;
        self.page.take()
    }
    /// Whether a block has been captured.
    pub(crate) fn has_page(&self) -> bool {
        self.page.is_some()
    }
    #[inline(always)]
    pub(crate) fn wants(&self, order: Order) -> bool {
        matches!(self.wanted, Some((wanted, _)) if wanted == order)
    }
}

impl Locked<'_> {
    /// Captures a freed block instead of listing it. A block below pageblock size is left to its movable pageblock,
    /// unless (6.15) the request is movable as well.
    #[cold]
    pub(crate) fn capture(&mut self, pfn: Pfn, order: Order, t: MigrateType) -> bool {
        let batched = self.sh.profile.compaction == CompactionRules::Batched;
        let claim = &mut self.zone.compaction.capture;
        let Some((_, for_whom)) = claim.wanted else {
            return false;
        };
        let fits = t != MigrateType::Movable || batched && for_whom == MigrateType::Movable;
        if claim.page.is_some() || !order.is_whole_pageblock() && !fits {
            return false;
        }
        claim.page = Some(pfn);
        if batched && t != for_whom {
            self.emit_extfrag(pfn, order, order, for_whom, t);
        }
        true
    }
}
