//! Event counters, by the names `/proc/vmstat` prints.

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident = $printed:literal;)*) => {
        /// An event counter of `/proc/vmstat`.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum VmEvent { $($(#[$doc])* $name),* }

        impl VmEvent {
            /// All counters, in the kernel's order.
            pub const ALL: &'static [VmEvent] = &[$(VmEvent::$name),*];
            /// The name in `/proc/vmstat`.
            pub const fn name(self) -> &'static str {
                match self { $(VmEvent::$name => $printed),* }
            }
        }
    };
}

events! {
    /// Pages allocated from DMA; the next ones alike, and Device gives none.
    PgallocDma = "pgalloc_dma";
    PgallocDma32 = "pgalloc_dma32";
    PgallocNormal = "pgalloc_normal";
    PgallocMovable = "pgalloc_movable";
    PgallocDevice = "pgalloc_device";
    /// Direct reclaims by requests whose highest zone is DMA; the next ones alike.
    AllocstallDma = "allocstall_dma";
    AllocstallDma32 = "allocstall_dma32";
    AllocstallNormal = "allocstall_normal";
    /// User memory, even on machines without such a zone.
    AllocstallMovable = "allocstall_movable";
    AllocstallDevice = "allocstall_device";
    /// Pages that reclaim skipped because they were in DMA; the next ones alike.
    PgscanSkipDma = "pgskip_dma";
    PgscanSkipDma32 = "pgskip_dma32";
    PgscanSkipNormal = "pgskip_normal";
    PgscanSkipMovable = "pgskip_movable";
    PgscanSkipDevice = "pgskip_device";
    Pgfree = "pgfree";
    Pgactivate = "pgactivate";
    Pgdeactivate = "pgdeactivate";
    Pglazyfree = "pglazyfree";
    Pgfault = "pgfault";
    Pglazyfreed = "pglazyfreed";
    /// Active pages that were scanned.
    Pgrefill = "pgrefill";
    PgstealKswapd = "pgsteal_kswapd";
    PgstealDirect = "pgsteal_direct";
    PgscanKswapd = "pgscan_kswapd";
    PgscanDirect = "pgscan_direct";
    /// Tasks that waited for kswapd instead of reclaiming.
    PgscanDirectThrottle = "pgscan_direct_throttle";
    PgscanAnon = "pgscan_anon";
    PgscanFile = "pgscan_file";
    PgstealAnon = "pgsteal_anon";
    PgstealFile = "pgsteal_file";
    /// The same for each zone, as up to 4.7.
    PgrefillDma = "pgrefill_dma";
    PgrefillDma32 = "pgrefill_dma32";
    PgrefillNormal = "pgrefill_normal";
    PgrefillMovable = "pgrefill_movable";
    PgstealKswapdDma = "pgsteal_kswapd_dma";
    PgstealKswapdDma32 = "pgsteal_kswapd_dma32";
    PgstealKswapdNormal = "pgsteal_kswapd_normal";
    PgstealKswapdMovable = "pgsteal_kswapd_movable";
    PgstealDirectDma = "pgsteal_direct_dma";
    PgstealDirectDma32 = "pgsteal_direct_dma32";
    PgstealDirectNormal = "pgsteal_direct_normal";
    PgstealDirectMovable = "pgsteal_direct_movable";
    PgscanKswapdDma = "pgscan_kswapd_dma";
    PgscanKswapdDma32 = "pgscan_kswapd_dma32";
    PgscanKswapdNormal = "pgscan_kswapd_normal";
    PgscanKswapdMovable = "pgscan_kswapd_movable";
    PgscanDirectDma = "pgscan_direct_dma";
    PgscanDirectDma32 = "pgscan_direct_dma32";
    PgscanDirectNormal = "pgscan_direct_normal";
    PgscanDirectMovable = "pgscan_direct_movable";
    /// Objects that shrinkers scanned.
    SlabsScanned = "slabs_scanned";
    /// Runs of kswapd's `balance_pgdat`.
    Pageoutrun = "pageoutrun";
    /// kswapd went to sleep and was woken at once.
    KswapdLowWmarkHitQuickly = "kswapd_low_wmark_hit_quickly";
    /// kswapd could not sleep, or found the node unbalanced after its nap.
    KswapdHighWmarkHitQuickly = "kswapd_high_wmark_hit_quickly";
    /// Pages moved to the end of the inactive list.
    Pgrotated = "pgrotated";
    /// Processes killed for want of memory.
    OomKill = "oom_kill";
    PgmigrateSuccess = "pgmigrate_success";
    /// Pages that could not be migrated.
    PgmigrateFail = "pgmigrate_fail";
    /// Pages that the migration scanner scanned.
    CompactMigrateScanned = "compact_migrate_scanned";
    /// Pages that the free scanner scanned.
    CompactFreeScanned = "compact_free_scanned";
    /// Pages isolated, sources and targets together.
    CompactIsolated = "compact_isolated";
    CompactStall = "compact_stall";
    /// Direct compactions that ended without a page.
    CompactFail = "compact_fail";
    /// Direct compactions that ended with a page.
    CompactSuccess = "compact_success";
    /// Wakeups of kcompactd to work.
    CompactDaemonWake = "compact_daemon_wake";
    /// Of `compact_migrate_scanned`, by kcompactd.
    CompactDaemonMigrateScanned = "compact_daemon_migrate_scanned";
    /// Of `compact_free_scanned`, by kcompactd.
    CompactDaemonFreeScanned = "compact_daemon_free_scanned";
    /// Pages that reclaim found to be unevictable.
    UnevictablePgsCulled = "unevictable_pgs_culled";
    /// Pages that can be evicted again.
    UnevictablePgsRescued = "unevictable_pgs_rescued";
    /// Huge pages given to a page fault.
    ThpFaultAlloc = "thp_fault_alloc";
    /// Page faults that wanted a huge page and got a small one.
    ThpFaultFallback = "thp_fault_fallback";
    /// Huge pages that khugepaged allocated.
    ThpCollapseAlloc = "thp_collapse_alloc";
    /// Huge pages that khugepaged failed to allocate.
    ThpCollapseAllocFailed = "thp_collapse_alloc_failed";
    /// Ranges with too many missing pages for khugepaged.
    ThpScanExceedNonePte = "thp_scan_exceed_none_pte";
    /// Ranges with too many pages in swap.
    ThpScanExceedSwapPte = "thp_scan_exceed_swap_pte";
    /// Ranges with too many pages that other processes share.
    ThpScanExceedSharePte = "thp_scan_exceed_share_pte";
    /// Huge mappings split into small ones.
    ThpSplitPmd = "thp_split_pmd";
    /// Huge pages split into small ones.
    ThpSplitPage = "thp_split_page";
}

/// The values of all event counters, in events or pages since the machine started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vmstat {
    counts: [u64; VmEvent::ALL.len()],
}

impl Default for Vmstat {
    fn default() -> Self {
        Vmstat { counts: [0; VmEvent::ALL.len()] }
    }
}

impl Vmstat {
    /// Adds to a counter.
    #[inline(always)]
    pub fn add(&mut self, e: VmEvent, n: u64) {
        self.counts[e as usize] += n;
    }
    /// The value of a counter.
    #[inline(always)]
    pub fn get(&self, e: VmEvent) -> u64 {
        self.counts[e as usize]
    }
    /// Every counter with its value.
    pub fn iter(&self) -> impl Iterator<Item = (VmEvent, u64)> + '_ {
        VmEvent::ALL.iter().map(|&e| (e, self.get(e)))
    }
}
