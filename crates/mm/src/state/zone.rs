//! A zone: its free lists, marks, per-CPU lists, and what compaction remembers of it.

use super::{List, LruList, PerCpuPages, Stats, Table, Watermarks, ZoneCompaction};
use crate::types::{CpuId, LruvecId, MigrateType, NR_ORDERS, NodeId, Order, Pfn, ZoneId, ZoneType};

/// How many blocks a zone gave, and to whom (`numa_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NumaCounts {
    /// Blocks it gave.
    pub(crate) given: u64,
    /// Of these, to requests that preferred another node (`numa_miss`).
    pub miss: u64,
    /// Blocks that requests which preferred this zone got of another node (`numa_foreign`).
    pub foreign: u64,
    /// Blocks it gave to those whose policy goes round the nodes and had come to this one (`numa_interleave`).
    pub interleave: u64,
    /// Of the blocks it gave, to CPUs of other nodes (`numa_other`).
    pub other: u64,
}

impl NumaCounts {
    /// Blocks it gave to requests that preferred its node (`numa_hit`).
    pub const fn hit(&self) -> u64 {
        self.given - self.miss
    }
    /// Blocks it gave to CPUs of its node (`numa_local`).
    pub const fn local(&self) -> u64 {
        self.given - self.other
    }
}

/// A populated zone.
#[derive(Clone)]
pub struct Zone {
    /// Its index in the machine.
    pub id: ZoneId,
    /// The node it belongs to.
    pub node: NodeId,
    /// The LRU lists its pages are on.
    pub lruvec: LruvecId,
    /// Which of the node's zones it is.
    pub kind: ZoneType,
    /// First frame.
    pub start: Pfn,
    /// One past the last frame.
    pub end: Pfn,
    /// One past the last pageblock all of whose frames exist: compaction does not visit those behind it.
    pub whole_end: Pfn,
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
    /// Pages reclaim has looked at since any page of the zone was freed, where the kernel counts them (up to 4.11).
    pub pages_scanned: u64,
    /// Users' pages isolated from the LRU.
    pub nr_isolated: u64,
    /// Pages on each LRU list.
    pub(crate) lru: Stats<{ LruList::COUNT }>,
    /// For whom it gave blocks.
    pub(crate) numa: NumaCounts,
    /// Pages that the zone has still to give before those that go round look at the next one.
    pub(crate) alloc_batch: Stats<1>,
    /// It has given them all.
    pub(crate) fair_depleted: bool,
    pub(crate) free_pages: i64,
    pub(crate) nr_free: [u64; NR_ORDERS],
    pub(crate) lists: [[List; MigrateType::COUNT]; NR_ORDERS],
    pub(crate) pcps: Table<CpuId, PerCpuPages>,
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

    /// Pages on the LRU, of every list, exact. Where the order of the LRU is not kept all count as inactive anonymous.
    pub fn nr_lru(&self) -> u64 {
        LruList::ALL.iter().map(|list| self.nr_listed(*list)).sum()
    }

    /// Pages it has still to give before those that go round look at the next zone, as the kernel's counter shows them.
    pub fn nr_alloc_batch(&self) -> u64 {
        self.alloc_batch.get(0)
    }

    /// Pages on one LRU list as reclaim reads them: without what CPUs have not folded in.
    pub fn nr_listed_as_read(&self, list: LruList) -> u64 {
        self.lru.get(list.index())
    }

    /// Pages on one LRU list, exact.
    pub fn nr_listed(&self, list: LruList) -> u64 {
        u64::try_from(self.lru.exact(list.index())).expect("a list never has fewer than no pages")
    }

    /// How many blocks it gave, and to whom.
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

    /// Whether the kernel has something about the frame, be it that it is missing: it has of whole sections, of 128 MiB,
    /// and what is missing here is missing at the zone's end.
    pub(crate) fn has_frame_at(&self, pfn: Pfn) -> bool {
        const SECTION: u32 = 1 << 15;
        pfn < self.end && pfn.get() < self.whole_end.get().next_multiple_of(SECTION)
    }

    /// The last pageblock's first frame.
    pub fn last_pageblock(&self) -> Pfn {
        self.end.minus(1).pageblock_start()
    }
}
