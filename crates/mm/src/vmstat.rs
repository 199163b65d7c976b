//! Counters of `/proc/vmstat`, by the names it prints.
//!
//! A counter's name, unit, direction and words stand where it is declared, and everything that
//! shows it takes them from there.

/// Whether a change of a counter is good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// More of it is better.
    More,
    /// Fewer of it is better.
    Fewer,
    /// The counter only describes.
    Either,
}

/// The declaration of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counter {
    /// As `/proc/vmstat` prints it.
    pub name: &'static str,
    /// As figures print it, plural.
    pub unit: &'static str,
    /// Decides which variant of an experiment did better.
    pub wanted: Wanted,
    /// It can fall: its value counts, not how far it rose.
    pub is_level: bool,
    /// The declaration's doc comment, without its full stop.
    pub words: &'static str,
}

impl Counter {
    /// A counter that only rises.
    pub const fn new(name: &'static str, unit: &'static str, wanted: Wanted, words: &'static str) -> Counter {
        Counter { name, unit, wanted, is_level: false, words }
    }

    /// A level, in pages.
    pub const fn level(name: &'static str, words: &'static str) -> Counter {
        Counter { is_level: true, ..Counter::new(name, "pages", Wanted::Either, words) }
    }
}

/// A counter of which the better variant has fewer.
pub const fn fewer(name: &'static str, unit: &'static str, words: &'static str) -> Counter {
    Counter::new(name, unit, Wanted::Fewer, words)
}

/// A counter of which the better variant has more.
pub const fn more(name: &'static str, unit: &'static str, words: &'static str) -> Counter {
    Counter::new(name, unit, Wanted::More, words)
}

/// A doc comment as words: without the space before it and the full stop.
pub(crate) const fn words(doc: &'static str) -> &'static str {
    let doc = doc.trim_ascii();
    match doc.as_bytes() {
        [.., b'.'] => doc.split_at(doc.len() - 1).0,
        _ => doc,
    }
}

/// An enumeration of counters. The doc comment of each is its words; `level` marks one that can
/// fall.
macro_rules! counters {
    (@is_level) => { false };
    (@is_level level) => { true };
    (
        $(#[doc = $about:literal])*
        pub enum $Enum:ident {
            $(
                $(#[doc = $words:literal])+
                $name:ident $(($first:expr))? = $printed:literal, $unit:literal, $wanted:ident $(, $level:ident)?;
            )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum $Enum { $($(#[doc = $words])+ $name $(= $first)?),* }

        impl $Enum {
            /// All counters, in order.
            pub const ALL: [$Enum; [$($printed),*].len()] = [$($Enum::$name),*];

            /// Name, unit, direction and words.
            pub const fn counter(self) -> $crate::vmstat::Counter {
                match self {
                    $($Enum::$name => $crate::vmstat::Counter {
                        name: $printed,
                        unit: $unit,
                        wanted: $crate::vmstat::Wanted::$wanted,
                        is_level: $crate::vmstat::counters!(@is_level $($level)?),
                        words: $crate::vmstat::words(concat!($($words),+)),
                    },)*
                }
            }

            /// The name in `/proc/vmstat`.
            pub const fn name(self) -> &'static str {
                self.counter().name
            }
        }
    };
}
pub(crate) use counters;

counters! {
    /// An event counter of `/proc/vmstat`, in the kernel's order.
    pub enum VmEvent {
        /// Pages allocated from DMA.
        PgallocDma = "pgalloc_dma", "pages", Either;
        /// Pages allocated from DMA32.
        PgallocDma32 = "pgalloc_dma32", "pages", Either;
        /// Pages allocated from Normal.
        PgallocNormal = "pgalloc_normal", "pages", Either;
        /// Pages allocated from Movable.
        PgallocMovable = "pgalloc_movable", "pages", Either;
        /// Pages allocated from Device (never).
        PgallocDevice = "pgalloc_device", "pages", Either;
        /// Direct reclaims by requests whose highest zone is DMA.
        AllocstallDma = "allocstall_dma", "stalls", Fewer;
        /// Direct reclaims by requests whose highest zone is DMA32.
        AllocstallDma32 = "allocstall_dma32", "stalls", Fewer;
        /// Direct reclaims by requests whose highest zone is Normal.
        AllocstallNormal = "allocstall_normal", "stalls", Fewer;
        /// Direct reclaims by requests whose highest zone is Movable, as that of user memory.
        AllocstallMovable = "allocstall_movable", "stalls", Fewer;
        /// Direct reclaims by requests whose highest zone is Device (never).
        AllocstallDevice = "allocstall_device", "stalls", Fewer;
        /// Pages reclaim passed over because they are in DMA.
        PgscanSkipDma = "pgskip_dma", "pages", Either;
        /// Pages reclaim passed over because they are in DMA32.
        PgscanSkipDma32 = "pgskip_dma32", "pages", Either;
        /// Pages reclaim passed over because they are in Normal.
        PgscanSkipNormal = "pgskip_normal", "pages", Either;
        /// Pages reclaim passed over because they are in Movable.
        PgscanSkipMovable = "pgskip_movable", "pages", Either;
        /// Pages reclaim passed over because they are in Device (never).
        PgscanSkipDevice = "pgskip_device", "pages", Either;
        /// Pages freed by anyone.
        Pgfree = "pgfree", "pages", Either;
        /// Pages moved to an active list.
        Pgactivate = "pgactivate", "pages", Either;
        /// Pages moved to an inactive list.
        Pgdeactivate = "pgdeactivate", "pages", Either;
        /// Anonymous pages marked MADV_FREE.
        Pglazyfree = "pglazyfree", "pages", Either;
        /// Page faults of processes.
        Pgfault = "pgfault", "faults", Either;
        /// MADV_FREE pages that reclaim dropped.
        Pglazyfreed = "pglazyfreed", "pages", Either;
        /// Active pages that were scanned.
        Pgrefill = "pgrefill", "pages", Fewer;
        /// Pages that kswapd reclaimed.
        PgstealKswapd = "pgsteal_kswapd", "pages", Fewer;
        /// Pages direct reclaim reclaimed.
        PgstealDirect = "pgsteal_direct", "pages", Fewer;
        /// Pages that khugepaged reclaimed; part of direct reclaim's up to 6.1.
        PgstealKhugepaged = "pgsteal_khugepaged", "pages", Fewer;
        /// Pages that were reclaimed because a command asked for it.
        PgstealProactive = "pgsteal_proactive", "pages", Fewer;
        /// Pages that kswapd scanned.
        PgscanKswapd = "pgscan_kswapd", "pages", Fewer;
        /// Pages direct reclaim scanned.
        PgscanDirect = "pgscan_direct", "pages", Fewer;
        /// Pages that khugepaged scanned; part of direct reclaim's up to 6.1.
        PgscanKhugepaged = "pgscan_khugepaged", "pages", Fewer;
        /// Pages that were scanned because a command asked for it.
        PgscanProactive = "pgscan_proactive", "pages", Fewer;
        /// Tasks that waited for kswapd instead of reclaiming.
        PgscanDirectThrottle = "pgscan_direct_throttle", "waits", Fewer;
        /// Anonymous pages scanned for reclaim.
        PgscanAnon = "pgscan_anon", "pages", Fewer;
        /// File pages scanned for reclaim.
        PgscanFile = "pgscan_file", "pages", Fewer;
        /// Anonymous pages that were reclaimed.
        PgstealAnon = "pgsteal_anon", "pages", Fewer;
        /// File pages that were reclaimed.
        PgstealFile = "pgsteal_file", "pages", Fewer;
        /// Reclaims on a near node, by `vm.zone_reclaim_mode`, that freed enough; not counted up to
        /// 6.1.
        ZoneReclaimSuccess = "zone_reclaim_success", "reclaims", Either;
        /// Reclaims on a near node, by `vm.zone_reclaim_mode`, that did not.
        ZoneReclaimFailed = "zone_reclaim_failed", "reclaims", Fewer;
        /// Active pages scanned in DMA; counted by zone up to 4.7.
        PgrefillDma = "pgrefill_dma", "pages", Fewer;
        /// Active pages scanned in DMA32; counted by zone up to 4.7.
        PgrefillDma32 = "pgrefill_dma32", "pages", Fewer;
        /// Active pages scanned in Normal; counted by zone up to 4.7.
        PgrefillNormal = "pgrefill_normal", "pages", Fewer;
        /// Active pages scanned in Movable; counted by zone up to 4.7.
        PgrefillMovable = "pgrefill_movable", "pages", Fewer;
        /// Pages kswapd reclaimed from DMA; counted by zone up to 4.7.
        PgstealKswapdDma = "pgsteal_kswapd_dma", "pages", Fewer;
        /// Pages kswapd reclaimed from DMA32; counted by zone up to 4.7.
        PgstealKswapdDma32 = "pgsteal_kswapd_dma32", "pages", Fewer;
        /// Pages kswapd reclaimed from Normal; counted by zone up to 4.7.
        PgstealKswapdNormal = "pgsteal_kswapd_normal", "pages", Fewer;
        /// Pages kswapd reclaimed from Movable; counted by zone up to 4.7.
        PgstealKswapdMovable = "pgsteal_kswapd_movable", "pages", Fewer;
        /// Pages direct reclaim reclaimed from DMA; counted by zone up to 4.7.
        PgstealDirectDma = "pgsteal_direct_dma", "pages", Fewer;
        /// Pages direct reclaim reclaimed from DMA32; counted by zone up to 4.7.
        PgstealDirectDma32 = "pgsteal_direct_dma32", "pages", Fewer;
        /// Pages direct reclaim reclaimed from Normal; counted by zone up to 4.7.
        PgstealDirectNormal = "pgsteal_direct_normal", "pages", Fewer;
        /// Pages direct reclaim reclaimed from Movable; counted by zone up to 4.7.
        PgstealDirectMovable = "pgsteal_direct_movable", "pages", Fewer;
        /// Pages kswapd scanned in DMA; counted by zone up to 4.7.
        PgscanKswapdDma = "pgscan_kswapd_dma", "pages", Fewer;
        /// Pages kswapd scanned in DMA32; counted by zone up to 4.7.
        PgscanKswapdDma32 = "pgscan_kswapd_dma32", "pages", Fewer;
        /// Pages kswapd scanned in Normal; counted by zone up to 4.7.
        PgscanKswapdNormal = "pgscan_kswapd_normal", "pages", Fewer;
        /// Pages kswapd scanned in Movable; counted by zone up to 4.7.
        PgscanKswapdMovable = "pgscan_kswapd_movable", "pages", Fewer;
        /// Pages direct reclaim scanned in DMA; counted by zone up to 4.7.
        PgscanDirectDma = "pgscan_direct_dma", "pages", Fewer;
        /// Pages direct reclaim scanned in DMA32; counted by zone up to 4.7.
        PgscanDirectDma32 = "pgscan_direct_dma32", "pages", Fewer;
        /// Pages direct reclaim scanned in Normal; counted by zone up to 4.7.
        PgscanDirectNormal = "pgscan_direct_normal", "pages", Fewer;
        /// Pages direct reclaim scanned in Movable; counted by zone up to 4.7.
        PgscanDirectMovable = "pgscan_direct_movable", "pages", Fewer;
        /// Objects that shrinkers scanned.
        SlabsScanned = "slabs_scanned", "objects", Fewer;
        /// Runs of kswapd to balance a node.
        Pageoutrun = "pageoutrun", "runs", Fewer;
        /// Times kswapd was woken from its nap before it could sleep.
        KswapdLowWmarkHitQuickly = "kswapd_low_wmark_hit_quickly", "naps", Either;
        /// Times kswapd could not sleep, or found the node unbalanced after its nap.
        KswapdHighWmarkHitQuickly = "kswapd_high_wmark_hit_quickly", "naps", Either;
        /// Pages moved to the tail of an inactive list.
        Pgrotated = "pgrotated", "pages", Either;
        /// Processes killed for lack of memory.
        OomKill = "oom_kill", "processes", Fewer;
        /// Pages that were migrated.
        PgmigrateSuccess = "pgmigrate_success", "pages", Fewer;
        /// Pages that could not be migrated.
        PgmigrateFail = "pgmigrate_fail", "pages", Fewer;
        /// Frames the migration scanner looked at.
        CompactMigrateScanned = "compact_migrate_scanned", "pages", Fewer;
        /// Frames the free scanner looked at.
        CompactFreeScanned = "compact_free_scanned", "pages", Fewer;
        /// Pages isolated, sources and targets together.
        CompactIsolated = "compact_isolated", "pages", Fewer;
        /// Direct compactions by requests.
        CompactStall = "compact_stall", "stalls", Fewer;
        /// Direct compactions that gave no page.
        CompactFail = "compact_fail", "stalls", Fewer;
        /// Direct compactions that gave a page.
        CompactSuccess = "compact_success", "stalls", More;
        /// Times kcompactd was woken to work.
        CompactDaemonWake = "compact_daemon_wake", "wakes", Fewer;
        /// kcompactd's part of `compact_migrate_scanned`.
        CompactDaemonMigrateScanned = "compact_daemon_migrate_scanned", "pages", Fewer;
        /// kcompactd's part of `compact_free_scanned`.
        CompactDaemonFreeScanned = "compact_daemon_free_scanned", "pages", Fewer;
        /// Pages found to be unevictable.
        UnevictablePgsCulled = "unevictable_pgs_culled", "pages", Either;
        /// Pages found evictable again.
        UnevictablePgsRescued = "unevictable_pgs_rescued", "pages", Either;
        /// Huge pages given to a page fault.
        ThpFaultAlloc = "thp_fault_alloc", "huge pages", More;
        /// Page faults that wanted a huge page and got a small one.
        ThpFaultFallback = "thp_fault_fallback", "faults", Fewer;
        /// Huge pages allocated for khugepaged.
        ThpCollapseAlloc = "thp_collapse_alloc", "huge pages", More;
        /// Huge pages khugepaged asked for in vain.
        ThpCollapseAllocFailed = "thp_collapse_alloc_failed", "huge pages", Fewer;
        /// Ranges khugepaged skipped: too many pages are missing.
        ThpScanExceedNonePte = "thp_scan_exceed_none_pte", "ranges", Either;
        /// Ranges khugepaged skipped: too many pages are in swap.
        ThpScanExceedSwapPte = "thp_scan_exceed_swap_pte", "ranges", Either;
        /// Ranges khugepaged skipped: too many pages are shared.
        ThpScanExceedSharePte = "thp_scan_exceed_share_pte", "ranges", Either;
        /// Huge mappings split into small ones.
        ThpSplitPmd = "thp_split_pmd", "mappings", Fewer;
        /// Huge pages split into small ones.
        ThpSplitPage = "thp_split_page", "huge pages", Fewer;
    }
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
