//! A zone: its free lists, marks and per-CPU lists, and compaction's memory of it.

use super::{List, LruList, PerCpuPages, Stats, Table, Watermarks, ZoneCompaction};
use crate::types::{CpuId, LruvecId, MigrateType, NR_ORDERS, NodeId, Order, Pfn, ZoneId, ZoneType};

/// The blocks a zone has given, by requester (`numa_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NumaCounts {
    pub(crate) given: u64,
    /// Of these, to requests that preferred another node (`numa_miss`).
    pub miss: u64,
    /// Blocks of another node given to requests that preferred this zone (`numa_foreign`).
    pub foreign: u64,
    /// Blocks given to tasks whose policy interleaves nodes, when this one was due
    /// (`numa_interleave`).
    pub interleave: u64,
    /// Of the blocks given, to CPUs of other nodes (`numa_other`).
    pub other: u64,
}

impl NumaCounts {
    /// Blocks given to requests that preferred its node (`numa_hit`).
    pub const fn hit(&self) -> u64 {
        self.given - self.miss
    }
    /// Blocks given to CPUs of its node (`numa_local`).
    pub const fn local(&self) -> u64 {
        self.given - self.other
    }
}

/// A populated zone of the machine.
#[derive(Clone)]
pub struct Zone {
    pub id: ZoneId,
    pub node: NodeId,
    /// The LRU lists of its pages.
    pub lruvec: LruvecId,
    /// The place in the node's zone table.
    pub kind: ZoneType,
    pub start: Pfn,
    pub end: Pfn,
    /// One past the last pageblock all of whose frames exist. Compaction does not visit those
    /// behind it.
    pub whole_end: Pfn,
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
    /// Free pages on HIGHATOMIC lists, if the profile counts them.
    pub nr_free_highatomic: u64,
    /// A fallback boosted the marks and kswapd has not been woken for it yet.
    pub boosted_flag: bool,
    /// kswapd is reclaiming this zone.
    pub reclaim_active: bool,
    /// Free pages fell below the high mark and have not been above it since: auto-tuned per-CPU
    /// lists only shrink.
    pub below_high: bool,
    /// Compaction's memory between runs.
    pub compaction: ZoneCompaction,
    /// A CPU's part of the free-page counter is folded in above this.
    pub stat_threshold: i64,
    /// The largest that threshold has been: a CPU that has counted nothing since has a part from
    /// then.
    pub(crate) largest_threshold: i64,
    /// Below this the free-page counter is read exactly; 0 if it never needs to be.
    pub percpu_drift_mark: u64,
    /// Pages that reclaim has scanned since any page of the zone was freed, in kernels that count
    /// them (up to 4.11).
    pub pages_scanned: u64,
    /// Users' pages isolated from the LRU.
    pub nr_isolated: u64,
    /// Pages on each LRU list.
    pub(crate) lru: Stats<{ LruList::COUNT }>,
    pub(crate) numa: NumaCounts,
    /// Pages the zone may still give before the fair policy turns to the next one.
    pub(crate) alloc_batch: Stats<1>,
    /// The zone has given its share.
    pub(crate) fair_depleted: bool,
    pub(crate) free_pages: i64,
    pub(crate) nr_free: [u64; NR_ORDERS],
    pub(crate) lists: [[List; MigrateType::COUNT]; NR_ORDERS],
    pub(crate) pcps: Table<CpuId, PerCpuPages>,
}

impl Zone {
    /// Free pages as the kernel's counter shows them: exact but for the CPUs' unfolded parts.
    #[inline(always)]
    pub fn nr_free_pages(&self) -> u64 {
        self.free_pages.max(0) as u64
    }

    /// Free pages, with every CPU's part folded in.
    pub fn nr_free_pages_exact(&self) -> u64 {
        let all = self.free_pages + self.pcps.iter().map(|p| p.free_diff).sum::<i64>();
        u64::try_from(all).expect("a zone never has fewer than no free pages")
    }

    /// Pages on all LRU lists, exact. If the order of the LRU is not kept, all count as inactive
    /// anonymous.
    pub fn nr_lru(&self) -> u64 {
        LruList::ALL.iter().map(|list| self.nr_listed(*list)).sum()
    }

    /// Pages the zone may still give before the fair policy turns to the next one, as the kernel's
    /// counter shows them.
    pub fn nr_alloc_batch(&self) -> u64 {
        self.alloc_batch.get(0)
    }

    /// Pages on one LRU list as reclaim reads them: without the parts that CPUs have not folded in.
    pub fn nr_listed_as_read(&self, list: LruList) -> u64 {
        self.lru.get(list.index())
    }

    /// A CPU's part of the size of one LRU list, not yet folded in.
    pub fn unfolded(&self, list: LruList, cpu: CpuId) -> i64 {
        self.lru.part(list.index(), cpu)
    }

    /// Pages on one LRU list, exact.
    pub fn nr_listed(&self, list: LruList) -> u64 {
        u64::try_from(self.lru.exact(list.index())).expect("a list never has fewer than no pages")
    }

    /// The blocks it has given, by requester.
    pub fn numa(&self) -> NumaCounts {
        self.numa
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
        &self.pcps[cpu]
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

    /// Whether the kernel has a `struct page` for the frame, even one that says the frame is
    /// missing: it has them for whole sections of 128 MiB, and frames missing here are at the end
    /// of the zone.
    pub(crate) fn has_frame_at(&self, pfn: Pfn) -> bool {
        const SECTION: u32 = 1 << 15;
        pfn < self.end && pfn.get() < self.whole_end.get().next_multiple_of(SECTION)
    }

    /// The first frame of the last pageblock.
    pub fn last_pageblock(&self) -> Pfn {
        self.end.minus(1).pageblock_start()
    }
}
