//! A zone while its lock is held, and the counters kept under the lock.

use super::frames::Frames;
use super::pageblock::Pageblocks;
use super::shared::Shared;
use super::zone::Zone;
use crate::rules::FreeLists;
use crate::types::{CpuId, MigrateType};

/// A zone with its lock held by `cpu`, and everything that may be touched under it.
pub(crate) struct Locked<'a> {
    pub(crate) zone: &'a mut Zone,
    pub(crate) frames: &'a mut Frames,
    pub(crate) blocks: &'a mut Pageblocks,
    pub(crate) shared: &'a mut Shared,
    pub(crate) cpu: CpuId,
}

impl Locked<'_> {
    /// Counts one acquisition of the zone's lock.
    #[inline(always)]
    pub(crate) fn count_lock(&mut self) {
        self.shared.work.any = true;
        self.shared.work.zone_locks += 1;
        self.shared.work.zones |= 1 << self.zone.id.index();
    }

    /// Changes the free-page counter, through this CPU's part of it (kernel-behaviour §1.6).
    #[inline(always)]
    pub(crate) fn mod_free_pages(&mut self, delta: i64) {
        let t = self.zone.stat_threshold;
        let diff = &mut self.zone.pcps[self.cpu].free_diff;
        let x = *diff + delta;
        if x > t || x < -t {
            self.zone.free_pages += x;
            *diff = 0;
        } else {
            *diff = x;
        }
    }

    /// Counts pages that join or leave the free lists of one type, in kernels where every block
    /// counts on its own.
    #[inline(always)]
    pub(crate) fn mod_free_pages_of(&mut self, t: MigrateType, delta: i64) {
        self.mod_free_pages(delta);
        self.mod_free_highatomic(t, delta);
    }

    #[inline(always)]
    fn mod_free_highatomic(&mut self, t: MigrateType, delta: i64) {
        if t == MigrateType::HighAtomic && self.shared.profile.buddy.free_lists == FreeLists::AsPageblock {
            self.zone.nr_free_highatomic = self.zone.nr_free_highatomic.saturating_add_signed(delta);
        }
    }

    /// Counts pages that join or leave the free lists of one type one by one: the counter may be
    /// folded on the way.
    pub(crate) fn mod_free_pages_singly(&mut self, t: MigrateType, delta: i64) {
        let (mut pages, sign) = (delta.abs(), delta.signum());
        // The threshold may have been lowered since the part was counted.
        while pages > 0 && self.zone.pcps[self.cpu].free_diff.abs() > self.zone.stat_threshold {
            self.mod_free_pages(sign);
            pages -= 1;
        }
        let period = self.zone.stat_threshold + 1;
        let diff = &mut self.zone.pcps[self.cpu].free_diff;
        // Pages until this CPU's part is folded in for the first time.
        let first = period - sign * *diff;
        if pages < first {
            *diff += sign * pages;
        } else {
            let folds = 1 + (pages - first) / period;
            *diff = sign * ((pages - first) % period);
            self.zone.free_pages += sign * folds * period;
        }
        self.mod_free_highatomic(t, delta);
    }

    /// Counts pages that left the free lists during one hold of the lock, in kernels that count
    /// them together.
    #[inline(always)]
    pub(crate) fn account_taken(&mut self, pages: u32) {
        if pages > 0 && self.shared.profile.buddy.free_lists == FreeLists::AsFreed {
            self.mod_free_pages(-i64::from(pages));
        }
    }
}
