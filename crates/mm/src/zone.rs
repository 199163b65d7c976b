//! A zone: its free lists, marks, per-CPU lists, and what compaction remembers of it.

use crate::compact::ZoneCompaction;
use crate::frame::{Frames, List};
use crate::pageblock::Pageblocks;
use crate::pcp::PerCpuPages;
use crate::profile::FreeLists;
use crate::shared::Shared;
use crate::types::{CpuId, MigrateType, NR_ORDERS, NodeId, Order, Pfn, ZoneId, ZoneType};
use crate::watermark::Watermarks;
use alloc::vec::Vec;

/// A populated zone.
#[derive(Clone)]
pub struct Zone {
    /// Its index in the machine.
    pub id: ZoneId,
    /// The node it belongs to.
    pub node: NodeId,
    /// Which of the node's zones it is.
    pub kind: ZoneType,
    /// First frame.
    pub start: Pfn,
    /// One past the last frame.
    pub end: Pfn,
    /// Frames that exist.
    pub present: u64,
    /// Frames the allocator manages: present less reserved.
    pub managed: u64,
    /// The marks as computed, without boost, in pages.
    pub watermarks: Watermarks,
    /// Pages added to every mark after a fragmenting fallback.
    pub watermark_boost: u64,
    /// Pages kept from requests whose highest zone is the index (`protection` in zoneinfo).
    pub lowmem_reserve: [u64; ZoneType::COUNT],
    /// Pages in HIGHATOMIC pageblocks.
    pub nr_reserved_highatomic: u64,
    /// Free pages on HIGHATOMIC lists, where the profile counts them.
    pub nr_free_highatomic: u64,
    /// A fallback boosted the marks and kswapd has not been woken for it yet.
    pub boosted_flag: bool,
    /// kswapd is reclaiming this zone.
    pub reclaim_active: bool,
    /// Free pages were found below the high mark, and not above it since: per-CPU lists that follow use only shrink.
    pub below_high: bool,
    /// What compaction remembers between runs.
    pub compaction: ZoneCompaction,
    /// How far a CPU's part of the free-page counter may run before it is folded in.
    pub stat_threshold: i64,
    /// Below this the free-page counter is read exactly; 0 when it never needs to be.
    pub percpu_drift_mark: u64,
    /// Movable pages on the LRU.
    pub nr_lru: u64,
    /// Movable pages isolated from the LRU.
    pub nr_isolated: u64,
    pub(crate) free_pages: i64,
    pub(crate) nr_free: [u64; NR_ORDERS],
    pub(crate) lists: [[List; MigrateType::COUNT]; NR_ORDERS],
    pub(crate) pcps: Vec<PerCpuPages>,
}

impl Zone {
    /// Free pages as the kernel's counter shows them: exact to within the CPUs' unfolded parts.
    #[inline(always)]
    pub fn nr_free_pages(&self) -> u64 {
        self.free_pages.max(0) as u64
    }

    /// Free pages, every CPU's part folded in.
    pub fn nr_free_pages_exact(&self) -> u64 {
        let all = self.free_pages + self.pcps.iter().map(|p| p.free_diff).sum::<i64>();
        u64::try_from(all).expect("a zone never has fewer than no free pages")
    }

    /// Free blocks of `order`, of every type (not those on per-CPU lists).
    #[inline(always)]
    pub fn nr_free(&self, order: Order) -> u64 {
        self.nr_free[order.index()]
    }

    /// Free pages in blocks of at least pageblock size (`nr_free_pages_blocks`).
    pub fn free_pages_in_blocks(&self) -> i64 {
        let whole = Order::all().filter(|o| o.is_whole_pageblock());
        whole.map(|o| (self.nr_free[o.index()] << o.get()) as i64).sum()
    }

    /// The free list of `order` and `migratetype`.
    pub fn free_list(&self, order: Order, migratetype: MigrateType) -> &List {
        &self.lists[order.index()][migratetype.index()]
    }

    /// The per-CPU lists of `cpu`.
    pub fn pcp(&self, cpu: CpuId) -> &PerCpuPages {
        &self.pcps[cpu.index()]
    }

    /// Pages on all per-CPU lists.
    pub fn pcp_pages(&self) -> u64 {
        self.pcps.iter().map(|p| u64::from(p.count)).sum()
    }

    /// Frames spanned, holes included.
    pub fn spanned(&self) -> u64 {
        u64::from(self.end.get() - self.start.get())
    }

    /// Whether `pfn` lies in the zone's span.
    #[inline(always)]
    pub fn spans(&self, pfn: Pfn) -> bool {
        self.start <= pfn && pfn < self.end
    }

    /// The last pageblock's first frame.
    pub fn last_pageblock(&self) -> Pfn {
        self.end.minus(1).pageblock_start()
    }
}

/// A zone with its lock held by `cpu`, and everything that may be touched under it.
pub(crate) struct Locked<'a> {
    pub(crate) zone: &'a mut Zone,
    pub(crate) frames: &'a mut Frames,
    pub(crate) blocks: &'a mut Pageblocks,
    pub(crate) sh: &'a mut Shared,
    pub(crate) cpu: CpuId,
}

impl Locked<'_> {
    /// Counts the taking of the zone's lock.
    #[inline(always)]
    pub(crate) fn count_lock(&mut self) {
        self.sh.work.any = true;
        self.sh.work.zone_locks += 1;
        self.sh.work.zones |= 1 << self.zone.id.index();
    }

    /// Changes the free-page counter, through this CPU's part of it (kernel-behaviour §1.6).
    #[inline(always)]
    pub(crate) fn mod_free_pages(&mut self, delta: i64) {
        let t = self.zone.stat_threshold;
        let diff = &mut self.zone.pcps[self.cpu.index()].free_diff;
        let x = *diff + delta;
        if x > t || x < -t {
            self.zone.free_pages += x;
            *diff = 0;
        } else {
            *diff = x;
        }
    }

    /// Counts pages that join (or leave) the free lists of one type, where every block counts on its own.
    #[inline(always)]
    pub(crate) fn mod_free_pages_of(&mut self, t: MigrateType, delta: i64) {
        self.mod_free_pages(delta);
        if t == MigrateType::HighAtomic && self.sh.profile.free_lists == FreeLists::AsPageblock {
            self.zone.nr_free_highatomic = self.zone.nr_free_highatomic.saturating_add_signed(delta);
        }
    }

    /// Counts pages that left the free lists during one hold of the lock, where they are counted together.
    #[inline(always)]
    pub(crate) fn account_taken(&mut self, pages: u32) {
        if pages > 0 && self.sh.profile.free_lists == FreeLists::AsFreed {
            self.mod_free_pages(-i64::from(pages));
        }
    }
}
