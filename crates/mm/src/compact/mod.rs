//! Compaction: migrates pages from the bottom of a zone to free pages at its top until a large
//! block is free.
//!
//! A [`CompactRun`] is one run over one zone. Two scanners walk towards each other: the migration
//! scanner ([`migrate_scanner`]) isolates movable pages in low pageblocks, the free scanner
//! ([`free_scanner`]) isolates free pages in high ones ([`targets`] keeps them), and every isolated
//! page is migrated to a free one ([`migrate`]). [`suitable`] decides whether a run may start,
//! [`defer`] skips attempts after failures, [`finished`] ends a run, and [`skip`] keeps the hints a
//! run leaves for the next. [`walk`] steps over pageblocks that a run need not stop at. The oldest
//! kernels have scanners of their own (`page_by_page`). Source: kernel-behaviour §5.

pub mod defer;
pub mod direct;
pub mod finished;
pub mod free_scanner;
pub mod migrate;
pub mod migrate_scanner;
mod page_by_page;
pub mod proactive;
pub mod run;
pub mod skip;
mod state;
pub mod suitable;
pub mod targets;
pub mod walk;

use crate::gfp::Wmark;
use crate::state::Locked;
use crate::types::{MigrateType, Order, Pfn};

pub(crate) use state::Carried;
pub use state::{CompactControl, CompactRun};
pub use walk::Passed;

impl Locked<'_> {
    /// Captures a freed block for the request that compacts, instead of putting it on a free list.
    /// A block smaller than a pageblock stays in its movable pageblock, unless the rules let a
    /// movable request have it.
    #[cold]
    pub(crate) fn capture(&mut self, pfn: Pfn, order: Order, t: MigrateType) -> bool {
        let rules = &self.shared.profile.compaction;
        let (captures_movable, traces_capture) = (rules.captures_movable, rules.traces_capture);
        let claim = &mut self.zone.compaction.capture;
        let Some((_, for_whom)) = claim.wanted else {
            return false;
        };
        let fits = t != MigrateType::Movable || captures_movable && for_whom == MigrateType::Movable;
        if claim.page.is_some() || !order.is_whole_pageblock() && !fits {
            return false;
        }
        claim.page = Some(pfn);
        if traces_capture && t != for_whom {
            self.emit_extfrag(pfn, (order, for_whom, Wmark::Min), (order, t));
        }
        true
    }
}
