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
    /// Pages allocated from DMA.
    PgallocDma = "pgalloc_dma";
    /// Pages allocated from DMA32.
    PgallocDma32 = "pgalloc_dma32";
    /// Pages allocated from Normal.
    PgallocNormal = "pgalloc_normal";
    /// Pages allocated from Movable.
    PgallocMovable = "pgalloc_movable";
    /// Pages allocated from Device: never.
    PgallocDevice = "pgalloc_device";
    /// Direct reclaims by requests whose highest zone is DMA.
    AllocstallDma = "allocstall_dma";
    /// … DMA32.
    AllocstallDma32 = "allocstall_dma32";
    /// … Normal.
    AllocstallNormal = "allocstall_normal";
    /// … Movable (user memory, even where no such zone exists).
    AllocstallMovable = "allocstall_movable";
    /// … Device: never.
    AllocstallDevice = "allocstall_device";
    /// Pages reclaim passed over because they were in DMA.
    PgscanSkipDma = "pgskip_dma";
    /// … DMA32.
    PgscanSkipDma32 = "pgskip_dma32";
    /// … Normal.
    PgscanSkipNormal = "pgskip_normal";
    /// … Movable.
    PgscanSkipMovable = "pgskip_movable";
    /// … Device: never.
    PgscanSkipDevice = "pgskip_device";
    /// Pages freed.
    Pgfree = "pgfree";
    /// Pages made active.
    Pgactivate = "pgactivate";
    /// Pages made inactive.
    Pgdeactivate = "pgdeactivate";
    /// Anonymous pages that may be dropped.
    Pglazyfree = "pglazyfree";
    /// Page faults.
    Pgfault = "pgfault";
    /// Anonymous pages that were dropped.
    Pglazyfreed = "pglazyfreed";
    /// Active pages looked at.
    Pgrefill = "pgrefill";
    /// Pages kswapd freed.
    PgstealKswapd = "pgsteal_kswapd";
    /// Pages direct reclaim freed.
    PgstealDirect = "pgsteal_direct";
    /// Pages kswapd looked at.
    PgscanKswapd = "pgscan_kswapd";
    /// Pages direct reclaim looked at.
    PgscanDirect = "pgscan_direct";
    /// Tasks that waited for kswapd instead of reclaiming.
    PgscanDirectThrottle = "pgscan_direct_throttle";
    /// Anonymous pages looked at.
    PgscanAnon = "pgscan_anon";
    /// Pages of files looked at.
    PgscanFile = "pgscan_file";
    /// Anonymous pages freed.
    PgstealAnon = "pgsteal_anon";
    /// Pages of files freed.
    PgstealFile = "pgsteal_file";
    /// Objects shrinkers looked at.
    SlabsScanned = "slabs_scanned";
    /// kswapd balance runs.
    Pageoutrun = "pageoutrun";
    /// kswapd went to sleep and was woken at once.
    KswapdLowWmarkHitQuickly = "kswapd_low_wmark_hit_quickly";
    /// kswapd could not sleep, or found the node unbalanced after its nap.
    KswapdHighWmarkHitQuickly = "kswapd_high_wmark_hit_quickly";
    /// Pages moved to the end of the inactive list.
    Pgrotated = "pgrotated";
    /// Processes killed for want of memory.
    OomKill = "oom_kill";
    /// Pages migrated.
    PgmigrateSuccess = "pgmigrate_success";
    /// Pages that could not be migrated.
    PgmigrateFail = "pgmigrate_fail";
    /// Frames the migration scanner looked at.
    CompactMigrateScanned = "compact_migrate_scanned";
    /// Frames the free scanner looked at.
    CompactFreeScanned = "compact_free_scanned";
    /// Pages isolated, sources and targets together.
    CompactIsolated = "compact_isolated";
    /// Direct compactions.
    CompactStall = "compact_stall";
    /// Direct compactions that gave no page.
    CompactFail = "compact_fail";
    /// Direct compactions that gave a page.
    CompactSuccess = "compact_success";
    /// kcompactd woken to work.
    CompactDaemonWake = "compact_daemon_wake";
    /// Of `compact_migrate_scanned`, by kcompactd.
    CompactDaemonMigrateScanned = "compact_daemon_migrate_scanned";
    /// Of `compact_free_scanned`, by kcompactd.
    CompactDaemonFreeScanned = "compact_daemon_free_scanned";
    /// Pages found to be such as cannot be evicted.
    UnevictablePgsCulled = "unevictable_pgs_culled";
    /// Pages that can be evicted again.
    UnevictablePgsRescued = "unevictable_pgs_rescued";
    /// Huge pages given to a page fault.
    ThpFaultAlloc = "thp_fault_alloc";
    /// Page faults that wanted a huge page and got a small one.
    ThpFaultFallback = "thp_fault_fallback";
    /// Huge pages that khugepaged was given.
    ThpCollapseAlloc = "thp_collapse_alloc";
    /// Huge pages that khugepaged did not get.
    ThpCollapseAllocFailed = "thp_collapse_alloc_failed";
    /// Ranges of which too much is missing for khugepaged.
    ThpScanExceedNonePte = "thp_scan_exceed_none_pte";
    /// Ranges of which too much is in swap.
    ThpScanExceedSwapPte = "thp_scan_exceed_swap_pte";
    /// Ranges of which others have too much, too.
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
    /// Adds `n`.
    #[inline(always)]
    pub fn add(&mut self, e: VmEvent, n: u64) {
        self.counts[e as usize] += n;
    }
    /// The value.
    #[inline(always)]
    pub fn get(&self, e: VmEvent) -> u64 {
        self.counts[e as usize]
    }
    /// All counters with their values.
    pub fn iter(&self) -> impl Iterator<Item = (VmEvent, u64)> + '_ {
        VmEvent::ALL.iter().map(|&e| (e, self.get(e)))
    }
}
