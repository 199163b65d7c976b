//! The one list of limits, of the simulation and of its verification.
//! The page and the README show it.

/// The limits, in Markdown without links.
pub const LIMITS: [&str; 11] = [
    "**Times are sums of costs** from the literature, from one host, or fitted to unpatched kernels' columns.",
    "**Some published rows are missed.** Each table names them, with the cause as far as a trial showed one.",
    "**Address translation** takes time in workloads of the kind `accesses` alone.",
    "**Active and inactive lists:** of multi-generational LRUs, which distributions enable, only 6.12's and 7.2's.",
    "**Memory control groups** are 6.12's and 7.2's alone, without kernel memory.",
    "**Not modelled:** CMA, hotplug, zswap, AutoNUMA, pinned pages.",
    "**Large folios** are files' alone; of metadata, a part of XFS's and the inodes that ext4 reads.",
    "**Huge pages are split before swap-out**; kernels write them whole where swap has room.",
    "**No disk, no reclaim.** A machine without a `[[disk]]`, such as seed 000's, has neither page cache nor \
     swap.",
    "**Seven kernels are not recorded:** 4.4 with kcompactd, 4.6, 4.20-rc3, 5.6, 5.9, 6.14 and 6.15 follow their \
     sources; of 3.13, 4.4 and 5.0, reclaim does.",
    "**No recording has nodes with CPUs**, or several busy CPUs.",
];
