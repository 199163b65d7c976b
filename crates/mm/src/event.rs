//! Tracepoints, as values with the kernel's field names. Their `Display` is the kernel's format.
//!
//! Nothing is recorded unless a host listens: an event site costs one test of a bit. The engine has
//! no clock; instead, an event carries the counts of the work done before it, which a host turns
//! into time.

use crate::gfp::{Gfp, Wmark};
use crate::types::{Backing, LruList, MigrateType, NodeId, Order, PAGEBLOCK_ORDER, Pfn, ZoneId, ZoneType};
use crate::work::Work;
use alloc::vec::Vec;
use core::fmt;

/// A set of groups of tracepoints that a host can listen to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listen(u8);

impl Listen {
    /// `kmem`: every allocation and free. Large.
    pub const KMEM: Listen = Listen(1);
    /// Only `kmem:mm_page_alloc_extfrag`, which is rare.
    pub const EXTFRAG: Listen = Listen(2);
    /// `compaction`: runs, scanners, deferral, kcompactd.
    pub const COMPACTION: Listen = Listen(4);
    /// `compaction` in detail: every test and every isolated range.
    pub const COMPACTION_DETAIL: Listen = Listen(8);
    /// `vmscan`: kswapd and direct reclaim.
    pub const VMSCAN: Listen = Listen(16);

    /// `huge_memory`: khugepaged, which belongs to the host.
    pub const HUGE_MEMORY: Listen = Listen(32);

    /// The groups of both sets.
    pub const fn with(self, o: Listen) -> Listen {
        Listen(self.0 | o.0)
    }
}

/// The node and zone of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At {
    pub node: NodeId,
    pub zone: ZoneType,
    pub id: ZoneId,
}

/// The effort of a compaction run: the `mode` of its events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum MigrateMode {
    Async,
    /// Waits, but not for writeback.
    SyncLight,
    /// Waits for writeback too.
    Sync,
}

/// The end or the present state of a compaction run. The order matters: over several zones, the
/// greatest is the overall result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum CompactResult {
    /// This zone's failures are not due to fragmentation.
    NotSuitableZone,
    /// Too little is free to work with.
    Skipped,
    /// Deferred because of failures.
    Deferred,
    /// No block of the wanted order yet.
    NoSuitablePage,
    /// The run should go on.
    Continue,
    /// The scanners met after covering the whole zone.
    Complete,
    /// The scanners met after covering part of it.
    PartialSkipped,
    /// Another task needs the CPU or the lock.
    Contended,
    /// A block is available.
    Success,
}

impl CompactResult {
    /// The word tracepoints print.
    pub const fn name(self) -> &'static str {
        match self {
            CompactResult::NotSuitableZone => "not_suitable_zone",
            CompactResult::Skipped => "skipped",
            CompactResult::Deferred => "deferred",
            CompactResult::NoSuitablePage => "no_suitable_page",
            CompactResult::Continue => "continue",
            CompactResult::Complete => "complete",
            CompactResult::PartialSkipped => "partial_skipped",
            CompactResult::Contended => "contended",
            CompactResult::Success => "success",
        }
    }
}

/// The pages met in a scan by their state (the kernel's `reclaim_stat`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReclaimStat {
    /// Dirty or under writeback.
    pub dirty: u64,
    /// Dirty, and queued for writing by nobody.
    pub unqueued_dirty: u64,
    /// Under writeback and met for the second time.
    pub congested: u64,
    pub writeback: u64,
    /// Under writeback, such that kswapd must wait.
    pub immediate: u64,
    pub pageout: u64,
    /// Activated pages, anonymous and file.
    pub activate: [u64; 2],
    /// Kept because of a reference.
    pub ref_keep: u64,
    /// Pages that could not be unmapped.
    pub unmap_fail: u64,
}

/// The reason why reclaim makes a task wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Throttle {
    /// Pages are met again before they are written: for 100 ms, or until enough of them are.
    Writeback,
    /// All dirty pages wait for a slow device: for a tick.
    Congested,
    /// Nothing was reclaimed at nearly the last priority: for a tick.
    NoProgress,
}

impl Throttle {
    /// The kernel's name for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Throttle::Writeback => "VMSCAN_THROTTLE_WRITEBACK",
            Throttle::Congested => "VMSCAN_THROTTLE_CONGESTED",
            Throttle::NoProgress => "VMSCAN_THROTTLE_NOPROGRESS",
        }
    }

    /// The longest wait: a tenth of a second for writeback, else a clock tick (250 Hz).
    pub(crate) const fn longest_ns(self) -> u64 {
        match self {
            Throttle::Writeback => 100_000_000,
            Throttle::Congested | Throttle::NoProgress => 4_000_000,
        }
    }
}

/// The conclusion of khugepaged about a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanResult {
    Fail,
    Succeed,
    /// Nothing is mapped there.
    PmdNull,
    /// It is a huge page already.
    PmdMapped,
    ExceedNonePte,
    ExceedSwapPte,
    ExceedSharedPte,
    /// The process may write to none of it.
    PageRo,
    LackReferencedPage,
    /// Somebody else holds a page.
    PageCount,
    PageLru,
    PageLock,
    AllocHugePageFail,
    /// The huge page cannot be charged to the process's memory control group.
    CgroupChargeFail,
    /// The process or the range is gone.
    VmaNull,
}

impl ScanResult {
    /// The word tracepoints print.
    pub const fn name(self) -> &'static str {
        match self {
            ScanResult::Fail => "failed",
            ScanResult::Succeed => "succeeded",
            ScanResult::PmdNull => "pmd_null",
            ScanResult::PmdMapped => "page_pmd_mapped",
            ScanResult::ExceedNonePte => "exceed_none_pte",
            ScanResult::ExceedSwapPte => "exceed_swap_pte",
            ScanResult::ExceedSharedPte => "exceed_shared_pte",
            ScanResult::PageRo => "no_writable_page",
            ScanResult::LackReferencedPage => "lack_referenced_page",
            ScanResult::PageCount => "not_suitable_page_count",
            ScanResult::PageLru => "page_not_in_lru",
            ScanResult::PageLock => "page_locked",
            ScanResult::AllocHugePageFail => "alloc_huge_page_failed",
            ScanResult::CgroupChargeFail => "ccgroup_charge_failed",
            ScanResult::VmaNull => "vma_null",
        }
    }
}

/// The page-table entries of a range as khugepaged has seen them, up to the one that decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ptes {
    /// The last page looked at.
    pub pfn: Option<Pfn>,
    pub writable: bool,
    pub referenced: u32,
    pub none_or_zero: u32,
    /// The entries of pages that are in swap.
    pub unmapped: u32,
}

/// A tracepoint with its fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // the fields are the kernel's, named as in its format files
pub enum Event {
    /// A page or block was allocated.
    PageAlloc {
        pfn: Pfn,
        order: Order,
        migratetype: MigrateType,
    },
    /// A page or block was freed.
    PageFree {
        pfn: Pfn,
        order: Order,
    },
    /// A block left the free lists.
    PageAllocZoneLocked {
        pfn: Pfn,
        order: Order,
        migratetype: MigrateType,
        percpu_refill: bool,
    },
    /// A block went from a per-CPU list to the free lists.
    PagePcpuDrain {
        pfn: Pfn,
        order: Order,
        migratetype: MigrateType,
    },
    /// A request was served from another type's free list. The kernel's event does not say which
    /// mark it had to leave free, low on the fast path; nor is it printed.
    PageAllocExtfrag {
        mark: Wmark,
        pfn: Pfn,
        alloc_order: Order,
        fallback_order: Order,
        alloc_migratetype: MigrateType,
        fallback_migratetype: MigrateType,
        change_ownership: bool,
    },
    /// A compaction run starts.
    CompactionBegin {
        zone_start: Pfn,
        migrate_pfn: Pfn,
        free_pfn: Pfn,
        zone_end: Pfn,
        mode: MigrateMode,
    },
    /// A compaction run ends.
    CompactionEnd {
        zone_start: Pfn,
        migrate_pfn: Pfn,
        free_pfn: Pfn,
        zone_end: Pfn,
        mode: MigrateMode,
        status: CompactResult,
    },
    /// The migration scanner has scanned a range.
    IsolateMigratepages {
        start_pfn: Pfn,
        end_pfn: Pfn,
        nr_scanned: u64,
        nr_taken: u64,
    },
    /// The free scanner has scanned a range.
    IsolateFreepages {
        start_pfn: Pfn,
        end_pfn: Pfn,
        nr_scanned: u64,
        nr_taken: u64,
    },
    /// A batch of pages was migrated.
    Migratepages {
        nr_migrated: u64,
        nr_failed: u64,
    },
    /// Direct compaction begins on a zonelist.
    TryToCompactPages {
        order: Order,
        priority: u8,
    },
    /// Whether a run is finished.
    Finished {
        at: At,
        order: Option<Order>,
        ret: CompactResult,
    },
    /// Whether a zone is worth compacting.
    Suitable {
        at: At,
        order: Option<Order>,
        ret: CompactResult,
    },
    Deferred {
        at: At,
        order: Order,
        order_failed: u8,
        consider: u32,
        limit: u32,
    },
    /// Compaction failed, and the next attempts will be deferred.
    DeferCompaction {
        at: At,
        order: Order,
        order_failed: u8,
        consider: u32,
        limit: u32,
    },
    /// Compaction is no longer deferred.
    DeferReset {
        at: At,
        order: Order,
        order_failed: u8,
        consider: u32,
        limit: u32,
    },
    /// kcompactd goes to sleep.
    KcompactdSleep {
        nid: NodeId,
    },
    /// kcompactd starts to work.
    KcompactdWake {
        nid: NodeId,
        order: Option<Order>,
        highest_zoneidx: ZoneType,
    },
    /// A wakeup of kcompactd.
    WakeupKcompactd {
        nid: NodeId,
        order: Option<Order>,
        highest_zoneidx: ZoneType,
    },
    /// kswapd goes to sleep.
    KswapdSleep {
        nid: NodeId,
    },
    /// A task waits for kswapd rather than mix a pageblock. The kernel's event comes when it goes
    /// on, and has the time it waited.
    FragmentationStall {
        nid: NodeId,
    },
    /// kswapd starts to work.
    KswapdWake {
        nid: NodeId,
        order: Order,
    },
    /// A wakeup of kswapd.
    WakeupKswapd {
        nid: NodeId,
        order: Order,
    },
    DirectReclaimBegin {
        order: Order,
        gfp: Gfp,
    },
    /// A task begins to reclaim for a memory control group's limit.
    MemcgReclaimBegin {
        order: Order,
        gfp: Gfp,
    },
    MemcgReclaimEnd {
        nr_reclaimed: u64,
    },
    DirectReclaimEnd {
        nr_reclaimed: u64,
    },
    /// A request begins to reclaim on a near node before it goes to another.
    NodeReclaimBegin {
        nid: NodeId,
        order: Order,
        gfp: Gfp,
    },
    NodeReclaimEnd {
        nr_reclaimed: u64,
    },
    /// Pages were taken off an LRU list.
    LruIsolate {
        highest_zoneidx: ZoneType,
        order: Order,
        nr_requested: u64,
        nr_scanned: u64,
        nr_skipped: u64,
        nr_taken: u64,
        lru: LruList,
    },
    /// A cluster of inactive pages was processed.
    LruShrinkInactive {
        nid: NodeId,
        nr_scanned: u64,
        nr_reclaimed: u64,
        stat: ReclaimStat,
        priority: i8,
        backing: Backing,
    },
    /// A cluster of active pages was processed.
    LruShrinkActive {
        nid: NodeId,
        nr_taken: u64,
        nr_active: u64,
        nr_deactivated: u64,
        nr_referenced: u64,
        priority: i8,
        backing: Backing,
    },
    /// Reclaim has written a page.
    WriteFolio {
        pfn: Pfn,
        backing: Backing,
    },
    /// A task waits, because reclaim outruns its success.
    Throttled {
        nid: NodeId,
        reason: Throttle,
    },
    /// khugepaged has looked at a range of the process with this number.
    KhugepagedScanPmd {
        process: u32,
        ptes: Ptes,
        status: ScanResult,
    },
    /// khugepaged has gone through a range once more, to copy it.
    CollapseHugePageIsolate {
        ptes: Ptes,
        status: ScanResult,
    },
    /// khugepaged has made a huge page of a range, or has not.
    CollapseHugePage {
        process: u32,
        isolated: bool,
        status: ScanResult,
    },
    /// A shrinker is called.
    ShrinkSlabStart {
        nid: NodeId,
        nr_objects_to_shrink: u64,
        cache_items: u64,
        delta: u64,
        total_scan: u64,
        priority: i8,
    },
    /// A shrinker has returned.
    ShrinkSlabEnd {
        nid: NodeId,
        unused_scan: u64,
        new_scan: u64,
        total_scan: u64,
        last_shrinker_retval: u64,
    },
}

impl Event {
    /// The name of the tracepoint.
    pub const fn name(&self) -> &'static str {
        match self {
            Event::PageAlloc { .. } => "mm_page_alloc",
            Event::PageFree { .. } => "mm_page_free",
            Event::PageAllocZoneLocked { .. } => "mm_page_alloc_zone_locked",
            Event::PagePcpuDrain { .. } => "mm_page_pcpu_drain",
            Event::PageAllocExtfrag { .. } => "mm_page_alloc_extfrag",
            Event::CompactionBegin { .. } => "mm_compaction_begin",
            Event::CompactionEnd { .. } => "mm_compaction_end",
            Event::IsolateMigratepages { .. } => "mm_compaction_isolate_migratepages",
            Event::IsolateFreepages { .. } => "mm_compaction_isolate_freepages",
            Event::Migratepages { .. } => "mm_compaction_migratepages",
            Event::TryToCompactPages { .. } => "mm_compaction_try_to_compact_pages",
            Event::Finished { .. } => "mm_compaction_finished",
            Event::Suitable { .. } => "mm_compaction_suitable",
            Event::Deferred { .. } => "mm_compaction_deferred",
            Event::DeferCompaction { .. } => "mm_compaction_defer_compaction",
            Event::DeferReset { .. } => "mm_compaction_defer_reset",
            Event::KcompactdSleep { .. } => "mm_compaction_kcompactd_sleep",
            Event::KcompactdWake { .. } => "mm_compaction_kcompactd_wake",
            Event::WakeupKcompactd { .. } => "mm_compaction_wakeup_kcompactd",
            Event::KswapdSleep { .. } => "mm_vmscan_kswapd_sleep",
            Event::FragmentationStall { .. } => "mm_fragmentation_stall",
            Event::KswapdWake { .. } => "mm_vmscan_kswapd_wake",
            Event::WakeupKswapd { .. } => "mm_vmscan_wakeup_kswapd",
            Event::DirectReclaimBegin { .. } => "mm_vmscan_direct_reclaim_begin",
            Event::DirectReclaimEnd { .. } => "mm_vmscan_direct_reclaim_end",
            Event::NodeReclaimBegin { .. } => "mm_vmscan_node_reclaim_begin",
            Event::NodeReclaimEnd { .. } => "mm_vmscan_node_reclaim_end",
            Event::MemcgReclaimBegin { .. } => "mm_vmscan_memcg_reclaim_begin",
            Event::MemcgReclaimEnd { .. } => "mm_vmscan_memcg_reclaim_end",
            Event::LruIsolate { .. } => "mm_vmscan_lru_isolate",
            Event::LruShrinkInactive { .. } => "mm_vmscan_lru_shrink_inactive",
            Event::LruShrinkActive { .. } => "mm_vmscan_lru_shrink_active",
            Event::WriteFolio { .. } => "mm_vmscan_write_folio",
            Event::Throttled { .. } => "mm_vmscan_throttled",
            Event::KhugepagedScanPmd { .. } => "mm_khugepaged_scan_pmd",
            Event::CollapseHugePageIsolate { .. } => "mm_collapse_huge_page_isolate",
            Event::CollapseHugePage { .. } => "mm_collapse_huge_page",
            Event::ShrinkSlabStart { .. } => "mm_shrink_slab_start",
            Event::ShrinkSlabEnd { .. } => "mm_shrink_slab_end",
        }
    }
}

impl Event {
    /// Whether it belongs to [`Listen::HUGE_MEMORY`].
    pub const fn is_of_huge_memory(&self) -> bool {
        matches!(
            self,
            Event::KhugepagedScanPmd { .. } | Event::CollapseHugePageIsolate { .. } | Event::CollapseHugePage { .. }
        )
    }

    /// Whether it belongs to [`Listen::COMPACTION_DETAIL`].
    pub const fn is_compaction_detail(&self) -> bool {
        matches!(
            self,
            Event::Suitable { .. }
                | Event::Finished { .. }
                | Event::IsolateMigratepages { .. }
                | Event::IsolateFreepages { .. }
                | Event::Migratepages { .. }
        )
    }
}

impl MigrateMode {
    /// The word of begin and end events: SYNC_LIGHT counts as sync.
    const fn name(self) -> &'static str {
        match self {
            MigrateMode::Async => "async",
            MigrateMode::SyncLight | MigrateMode::Sync => "sync",
        }
    }
}

/// An address that stands for a process's `mm_struct`: tracepoints tell processes apart by it.
const fn mm_struct(process: u32) -> u64 {
    0xffff_8880_0000_0000 + 2048 * process as u64
}

/// −1 for "the whole zone", as tracepoints print it.
fn order_or_all(order: &Option<Order>) -> i32 {
    order.map_or(-1, |o| i32::from(o.get()))
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name())?;
        match self {
            Event::PageAlloc { pfn, order, migratetype } => {
                write!(f, "pfn={pfn} order={} migratetype={}", order.get(), migratetype.index())
            }
            Event::PageFree { pfn, order } => write!(f, "pfn={pfn} order={}", order.get()),
            Event::PageAllocZoneLocked { pfn, order, migratetype, percpu_refill } => write!(
                f,
                "pfn={pfn} order={} migratetype={} percpu_refill={}",
                order.get(),
                migratetype.index(),
                u8::from(*percpu_refill)
            ),
            Event::PagePcpuDrain { pfn, order, migratetype } => {
                write!(f, "pfn={pfn} order={} migratetype={}", order.get(), migratetype.index())
            }
            Event::PageAllocExtfrag {
                mark: _,
                pfn,
                alloc_order,
                fallback_order,
                alloc_migratetype,
                fallback_migratetype,
                change_ownership,
            } => write!(
                f,
                "pfn={pfn} alloc_order={} fallback_order={} pageblock_order={} alloc_migratetype={} \
                 fallback_migratetype={} fragmenting={} change_ownership={}",
                alloc_order.get(),
                fallback_order.get(),
                PAGEBLOCK_ORDER.get(),
                alloc_migratetype.index(),
                fallback_migratetype.index(),
                u8::from(!fallback_order.is_whole_pageblock()),
                u8::from(*change_ownership)
            ),
            Event::CompactionBegin { zone_start, migrate_pfn, free_pfn, zone_end, mode } => write!(
                f,
                "zone_start={zone_start} migrate_pfn={migrate_pfn} free_pfn={free_pfn} zone_end={zone_end}, mode={}",
                mode.name()
            ),
            Event::CompactionEnd { zone_start, migrate_pfn, free_pfn, zone_end, mode, status } => write!(
                f,
                "zone_start={zone_start} migrate_pfn={migrate_pfn} free_pfn={free_pfn} zone_end={zone_end}, \
                 mode={} status={}",
                mode.name(),
                status.name()
            ),
            Event::IsolateMigratepages { start_pfn, end_pfn, nr_scanned, nr_taken }
            | Event::IsolateFreepages { start_pfn, end_pfn, nr_scanned, nr_taken } => {
                write!(f, "range=({start_pfn} ~ {end_pfn}) nr_scanned={nr_scanned} nr_taken={nr_taken}")
            }
            Event::Migratepages { nr_migrated, nr_failed } => {
                write!(f, "nr_migrated={nr_migrated} nr_failed={nr_failed}")
            }
            Event::TryToCompactPages { order, priority } => {
                write!(f, "order={} priority={priority}", order.get())
            }
            Event::Finished { at, order, ret } | Event::Suitable { at, order, ret } => write!(
                f,
                "node={} zone={:<8} order={} ret={}",
                at.node.index(),
                at.zone.name(),
                order_or_all(order),
                ret.name()
            ),
            Event::Deferred { at, order, order_failed, consider, limit }
            | Event::DeferCompaction { at, order, order_failed, consider, limit }
            | Event::DeferReset { at, order, order_failed, consider, limit } => write!(
                f,
                "node={} zone={:<8} order={} order_failed={order_failed} consider={consider} limit={limit}",
                at.node.index(),
                at.zone.name(),
                order.get()
            ),
            Event::KcompactdSleep { nid } | Event::KswapdSleep { nid } | Event::FragmentationStall { nid } => {
                write!(f, "nid={}", nid.index())
            }
            Event::KcompactdWake { nid, order, highest_zoneidx }
            | Event::WakeupKcompactd { nid, order, highest_zoneidx } => write!(
                f,
                "nid={} order={} classzone_idx={:<8}",
                nid.index(),
                order_or_all(order),
                highest_zoneidx.name()
            ),
            Event::KswapdWake { nid, order } | Event::WakeupKswapd { nid, order } => {
                write!(f, "nid={} order={}", nid.index(), order.get())
            }
            Event::DirectReclaimBegin { order, gfp } | Event::MemcgReclaimBegin { order, gfp } => {
                write!(f, "order={} gfp_flags={gfp}", order.get())
            }
            Event::NodeReclaimBegin { nid, order, gfp } => {
                write!(f, "nid={} order={} gfp_flags={gfp}", nid.index(), order.get())
            }
            Event::DirectReclaimEnd { nr_reclaimed }
            | Event::NodeReclaimEnd { nr_reclaimed }
            | Event::MemcgReclaimEnd { nr_reclaimed } => {
                write!(f, "nr_reclaimed={nr_reclaimed}")
            }
            Event::LruIsolate { highest_zoneidx, order, nr_requested, nr_scanned, nr_skipped, nr_taken, lru } => {
                write!(
                    f,
                    "isolate_mode=0 classzone={} order={} nr_requested={nr_requested} nr_scanned={nr_scanned} \
                     nr_skipped={nr_skipped} nr_taken={nr_taken} lru={}",
                    highest_zoneidx.index(),
                    order.get(),
                    lru.name()
                )
            }
            Event::LruShrinkInactive { nid, nr_scanned, nr_reclaimed, stat, priority, backing } => write!(
                f,
                "nid={} nr_scanned={nr_scanned} nr_reclaimed={nr_reclaimed} nr_dirty={} nr_writeback={} \
                 nr_congested={} nr_immediate={} nr_activate_anon={} nr_activate_file={} nr_ref_keep={} \
                 nr_unmap_fail={} priority={priority} flags={}",
                nid.index(),
                stat.dirty,
                stat.writeback,
                stat.congested,
                stat.immediate,
                stat.activate[0],
                stat.activate[1],
                stat.ref_keep,
                stat.unmap_fail,
                reclaim_flags(*backing)
            ),
            Event::LruShrinkActive { nid, nr_taken, nr_active, nr_deactivated, nr_referenced, priority, backing } => {
                write!(
                    f,
                    "nid={} nr_taken={nr_taken} nr_active={nr_active} nr_deactivated={nr_deactivated} \
                 nr_referenced={nr_referenced} priority={priority} flags={}",
                    nid.index(),
                    reclaim_flags(*backing)
                )
            }
            Event::WriteFolio { pfn, backing } => write!(f, "pfn={pfn} flags={}", reclaim_flags(*backing)),
            Event::KhugepagedScanPmd { process, ptes, status } => write!(
                f,
                "mm={:016x}, scan_pfn=0x{:x}, writable={}, referenced={}, none_or_zero={}, status={}, unmapped={}",
                mm_struct(*process),
                ptes.pfn.map_or(u64::MAX, |pfn| u64::from(pfn.get())),
                u8::from(ptes.writable),
                ptes.referenced,
                ptes.none_or_zero,
                status.name(),
                ptes.unmapped
            ),
            Event::CollapseHugePageIsolate { ptes, status } => write!(
                f,
                "scan_pfn=0x{:x}, none_or_zero={}, referenced={}, writable={}, status={}",
                ptes.pfn.map_or(u64::MAX, |pfn| u64::from(pfn.get())),
                ptes.none_or_zero,
                ptes.referenced,
                u8::from(ptes.writable),
                status.name()
            ),
            Event::CollapseHugePage { process, isolated, status } => {
                write!(f, "mm={:016x}, isolated={}, status={}", mm_struct(*process), u8::from(*isolated), status.name())
            }
            Event::Throttled { nid, reason } => {
                write!(f, "nid={} usec_timeout={} reason={}", nid.index(), reason.longest_ns() / 1000, reason.name())
            }
            Event::ShrinkSlabStart { nid, nr_objects_to_shrink, cache_items, delta, total_scan, priority } => write!(
                f,
                "nid: {} objects to shrink {nr_objects_to_shrink} cache items {cache_items} delta {delta} \
                 total_scan {total_scan} priority {priority}",
                nid.index()
            ),
            Event::ShrinkSlabEnd { nid, unused_scan, new_scan, total_scan, last_shrinker_retval } => write!(
                f,
                "nid: {} unused scan count {unused_scan} new scan count {new_scan} total_scan {total_scan} \
                 last shrinker return val {last_shrinker_retval}",
                nid.index()
            ),
        }
    }
}

/// The `reclaim_flags` of reclaim's events: the kind of pages, and that nobody waits for writing.
const fn reclaim_flags(backing: Backing) -> &'static str {
    match backing {
        Backing::Anon => "RECLAIM_WB_ANON|RECLAIM_WB_ASYNC",
        Backing::File => "RECLAIM_WB_FILE|RECLAIM_WB_ASYNC",
    }
}

/// The events recorded since the host last took them. Each comes with the work that had been done,
/// and not yet taken, when it happened; from that, a host with a clock knows its time in the middle
/// of a step.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    listening: u8,
    events: Vec<(Event, Work)>,
}

impl Trace {
    /// Selects the groups to record from now on.
    pub fn listen(&mut self, what: Listen) {
        self.listening = what.0;
    }
    /// Whether any of these groups is recorded.
    #[inline(always)]
    pub fn listens_to(&self, what: Listen) -> bool {
        self.listening & what.0 != 0
    }
    /// Records an event that happened after `work`.
    pub(crate) fn push(&mut self, event: Event, work: Work) {
        self.events.push((event, work));
    }
    /// Returns the recorded events and forgets them.
    pub fn take(&mut self) -> Vec<Event> {
        self.events.drain(..).map(|(event, _)| event).collect()
    }
    /// Returns the recorded events and forgets them. Each comes with the work done between
    /// [`crate::Memory::take_work`] and the event.
    pub fn take_with_work(&mut self) -> impl Iterator<Item = (Event, Work)> {
        self.events.drain(..)
    }
}
