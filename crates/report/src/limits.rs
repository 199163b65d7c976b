//! The one list of limits, of the simulation and of its verification.
//! The page and the README show it.

/// The limits, in Markdown without links.
pub const LIMITS: [&str; 10] = [
    "**Address translation.** What huge pages are for, fewer TLB misses and shorter page walks, is not simulated: a \
     program's own time is the same with them and \
     without (a JVM's user time with THP never and always). What is measured is what it costs to get them.",
    "**Generations of pages** (the multi-generational LRU), memory control groups (`check` and `prepare` count their \
     limits), CMA, memory hotplug and zswap.",
    "**AutoNUMA.** Neither pages nor threads move to another node for being used there.",
    "**Large folios of files.** The page cache has single pages, where newer file systems have folios that are used, \
     reclaimed and moved as a whole.",
    "**Huge pages on their way to swap** are split first; kernels write them whole where swap has room.",
    "**Pinned pages.** Nobody pins pages for DMA or locks them; what cannot move is the kernel's own: slabs, page \
     tables, stacks, pages of drivers.",
    "**File systems' metadata**, but for a part of XFS's.",
    "**Disks only where a machine has one.** Machines without a `[[disk]]`, such as seed 000's, have neither page \
     cache nor swap: reclaim finds nothing there.",
    "**Times** are sums of the costs in the machine file, from the literature, measured on one host, or fitted to \
     unpatched columns; interrupts and completions take none of their own. Counts depend on \
     times only by who comes first.",
    "**Kernels that are not recorded.** Linux 4.4 with kcompactd, 4.6, 4.20-rc3, 5.6, 5.9, 6.14 and 6.15 follow \
     their sources and descriptions. No recording is of several \
     CPUs or nodes at once.",
];
