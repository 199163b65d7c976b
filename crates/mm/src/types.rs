//! The engine's vocabulary: page frame numbers, orders, migratetypes, zones, nodes, CPUs.
//!
//! Each has a type of its own, so that a pfn is never added to an order and a zone is never looked
//! up by a node number. The numbers are the kernel's, because tracepoints and proc files show them.

use core::fmt;

/// Bytes in a base page.
pub const PAGE_SIZE: u64 = 4096;
/// Order of a huge page that a PMD maps: 2 MiB on x86-64.
pub const HPAGE_PMD_ORDER: Order = Order(9);
/// Pages of such a huge page.
pub const HPAGE_PMD_NR: u32 = HPAGE_PMD_ORDER.pages();
/// Order of a pageblock, the unit that owns a migratetype: the size of a huge page.
pub const PAGEBLOCK_ORDER: Order = HPAGE_PMD_ORDER;
/// Pages in a pageblock.
pub const PAGEBLOCK_PAGES: u32 = HPAGE_PMD_NR;
/// Largest order the buddy lists hold: 4 MiB.
pub const MAX_ORDER: Order = Order(10);
/// Number of buddy orders, 0 to 10.
pub const NR_ORDERS: usize = 11;
/// Orders above this are "costly": the allocator gives up on them early.
pub const PAGE_ALLOC_COSTLY_ORDER: Order = Order(3);
/// Pages isolated or reclaimed at a time (SWAP_CLUSTER_MAX and COMPACT_CLUSTER_MAX).
pub const CLUSTER_MAX: u32 = 32;

/// A page frame number: the index of a 4 KiB frame in physical memory. 2³² frames are 16 TiB.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Pfn(u32);

impl Pfn {
    /// The page frame number `n`.
    #[inline(always)]
    pub const fn new(n: u32) -> Self {
        Pfn(n)
    }
    /// The number as u32.
    #[inline(always)]
    pub const fn get(self) -> u32 {
        self.0
    }
    /// The number as an array index.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
    /// Index of the pageblock this frame lies in.
    #[inline(always)]
    pub const fn pageblock(self) -> usize {
        (self.0 >> 9) as usize
    }
    /// First frame of this frame's pageblock.
    #[inline(always)]
    pub const fn pageblock_start(self) -> Pfn {
        Pfn(self.0 & !(PAGEBLOCK_PAGES - 1))
    }
    /// First frame after this frame's pageblock.
    #[inline(always)]
    pub const fn pageblock_end(self) -> Pfn {
        Pfn((self.0 | (PAGEBLOCK_PAGES - 1)) + 1)
    }
    /// First frame of the naturally aligned block of `order` around this frame.
    #[inline(always)]
    pub const fn block_start(self, order: Order) -> Pfn {
        Pfn(self.0 & !((1 << order.0) - 1))
    }
    /// First frame after the naturally aligned block of `order` around this frame.
    #[inline(always)]
    pub const fn block_end(self, order: Order) -> Pfn {
        Pfn((self.0 | ((1 << order.0) - 1)) + 1)
    }
    /// Whether this frame starts a pageblock.
    #[inline(always)]
    pub const fn is_pageblock_aligned(self) -> bool {
        self.0 & (PAGEBLOCK_PAGES - 1) == 0
    }
    /// Whether this frame starts a naturally aligned block of `order`.
    #[inline(always)]
    pub const fn is_aligned(self, order: Order) -> bool {
        self.0 & ((1 << order.0) - 1) == 0
    }
    /// The other half of the block of twice the size.
    #[inline(always)]
    pub const fn buddy(self, order: Order) -> Pfn {
        Pfn(self.0 ^ (1 << order.0))
    }
    /// The frame `pages` further on.
    #[inline(always)]
    pub const fn plus(self, pages: u32) -> Pfn {
        Pfn(self.0 + pages)
    }
    /// The frame `pages` before.
    #[inline(always)]
    pub const fn minus(self, pages: u32) -> Pfn {
        Pfn(self.0 - pages)
    }
    /// First frame of pageblock `index`.
    #[inline(always)]
    pub const fn of_pageblock(index: usize) -> Pfn {
        Pfn((index as u32) << 9)
    }
}

impl fmt::Debug for Pfn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
impl fmt::Display for Pfn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// log2 of a block's size in pages, 0 to 10.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Order(u8);

impl Order {
    /// Order 0: one page.
    pub const ZERO: Order = Order(0);

    /// The order `n`.
    ///
    /// # Panics
    /// If `n` is above 10, the largest order of the buddy lists.
    #[inline(always)]
    pub const fn new(n: u8) -> Self {
        assert!(n <= 10, "order above MAX_ORDER");
        Order(n)
    }
    /// The number as u8.
    #[inline(always)]
    pub const fn get(self) -> u8 {
        self.0
    }
    /// The number as an array index.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
    /// Pages in a block of this order.
    #[inline(always)]
    pub const fn pages(self) -> u32 {
        1 << self.0
    }
    /// Whether requests of this order are "costly".
    #[inline(always)]
    pub const fn is_costly(self) -> bool {
        self.0 > PAGE_ALLOC_COSTLY_ORDER.0
    }
    /// Whether a block of this order covers whole pageblocks.
    #[inline(always)]
    pub const fn is_whole_pageblock(self) -> bool {
        self.0 >= PAGEBLOCK_ORDER.0
    }
    /// The orders from this one up to the largest.
    #[inline(always)]
    pub fn and_up(self) -> impl DoubleEndedIterator<Item = Order> {
        (self.0..=MAX_ORDER.0).map(Order)
    }
    /// All buddy orders, ascending.
    pub fn all() -> impl DoubleEndedIterator<Item = Order> {
        Order::ZERO.and_up()
    }
    /// The next larger order. Never called on the largest.
    #[inline(always)]
    pub(crate) const fn up(self) -> Order {
        Order(self.0 + 1)
    }
    #[inline(always)]
    pub(crate) const fn down(self) -> Order {
        Order(self.0 - 1)
    }
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "order {}", self.0)
    }
}

/// The mobility of the pages in a pageblock, or on a free list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum MigrateType {
    /// Kernel memory that stays where it is.
    Unmovable = 0,
    /// Pages that can be migrated: user memory.
    Movable = 1,
    /// Kernel caches that can be shrunk.
    Reclaimable = 2,
    /// Reserve for atomic high-order requests.
    HighAtomic = 3,
}

impl MigrateType {
    /// Number of types with free lists here (CMA and ISOLATE blocks do not occur).
    pub const COUNT: usize = 4;
    /// Number of types with per-CPU lists.
    pub const PCP_TYPES: usize = 3;
    /// All types, in the kernel's order.
    pub const ALL: [MigrateType; 4] =
        [MigrateType::Unmovable, MigrateType::Movable, MigrateType::Reclaimable, MigrateType::HighAtomic];

    /// The type with this index.
    #[inline(always)]
    pub const fn from_index(i: usize) -> MigrateType {
        MigrateType::ALL[i]
    }
    /// The index of the type.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self as usize
    }
    /// Whether blocks of this type may merge with blocks of another across a pageblock boundary.
    #[inline(always)]
    pub const fn is_mergeable(self) -> bool {
        (self as u8) < 3
    }
    /// The name `/proc/pagetypeinfo` prints.
    pub const fn name(self) -> &'static str {
        match self {
            MigrateType::Unmovable => "Unmovable",
            MigrateType::Movable => "Movable",
            MigrateType::Reclaimable => "Reclaimable",
            MigrateType::HighAtomic => "HighAtomic",
        }
    }
}

/// The place of a zone in its node's zone table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum ZoneType {
    /// Memory below 16 MiB.
    Dma = 0,
    /// Memory below 4 GiB.
    Dma32 = 1,
    Normal = 2,
    /// Memory set aside for movable pages; usually empty.
    Movable = 3,
    /// Device memory; never allocated from here.
    Device = 4,
}

impl ZoneType {
    /// Number of zone types a node lists.
    pub const COUNT: usize = 5;
    /// The highest zone of a request against which no zone holds a lowmem reserve: old kernels
    /// check watermarks for class 0 where they mean no request in particular.
    pub const WITHOUT_RESERVE: ZoneType = ZoneType::Dma;
    /// All types, lowest zone first.
    pub const ALL: [ZoneType; 5] =
        [ZoneType::Dma, ZoneType::Dma32, ZoneType::Normal, ZoneType::Movable, ZoneType::Device];

    /// The index of the type.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self as usize
    }
    /// The name proc files print.
    pub const fn name(self) -> &'static str {
        match self {
            ZoneType::Dma => "DMA",
            ZoneType::Dma32 => "DMA32",
            ZoneType::Normal => "Normal",
            ZoneType::Movable => "Movable",
            ZoneType::Device => "Device",
        }
    }
}

/// A populated zone of the machine: its index in [`crate::Memory::zones`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ZoneId(u8);

impl ZoneId {
    /// The zone at this index.
    pub const fn new(i: usize) -> Self {
        ZoneId(i as u8)
    }
    /// The number as an array index.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number of a NUMA node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NodeId(u8);

impl NodeId {
    /// The node number `i`.
    pub const fn new(i: usize) -> Self {
        NodeId(i as u8)
    }
    /// The number as an array index.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of NUMA nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodeSet(u64);

impl NodeSet {
    /// Every node a machine can have.
    pub const ALL: NodeSet = NodeSet(u64::MAX);
    /// A set without any node.
    pub const NONE: NodeSet = NodeSet(0);

    /// The set of one node.
    #[inline(always)]
    pub const fn only(node: NodeId) -> NodeSet {
        NodeSet(1 << node.0)
    }
    /// Whether the node is in the set.
    #[inline(always)]
    pub const fn has(self, node: NodeId) -> bool {
        self.0 >> node.0 & 1 != 0
    }
    /// The nodes in either set.
    pub(crate) const fn or(self, other: NodeSet) -> NodeSet {
        NodeSet(self.0 | other.0)
    }
    /// The nodes in both sets.
    #[inline(always)]
    pub const fn and(self, other: NodeSet) -> NodeSet {
        NodeSet(self.0 & other.0)
    }
    /// Whether the set has no node.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Number of nodes in the set.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }
    /// The nodes, lowest first.
    pub fn iter(self) -> impl Iterator<Item = NodeId> {
        (0..64).map(NodeId).filter(move |node| self.has(*node))
    }
}

impl FromIterator<NodeId> for NodeSet {
    fn from_iter<T: IntoIterator<Item = NodeId>>(nodes: T) -> NodeSet {
        nodes.into_iter().fold(NodeSet::default(), |set, node| NodeSet(set.0 | 1 << node.0))
    }
}

/// A memory control group. Number 0 is the root, which is never charged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct GroupId(u16);

impl GroupId {
    /// The group that all others are in.
    pub const ROOT: GroupId = GroupId(0);

    /// The group number `i`.
    pub const fn new(i: u16) -> Self {
        GroupId(i)
    }
    /// The number as an array index.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A limit or protection of a group, in pages, as an administrator sets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum GroupLimit {
    /// `memory.max`: charges above it reclaim, and fail in the end.
    Max,
    /// `memory.high`: tasks that charge above it reclaim before they go on, and wait.
    High,
    /// `memory.low`: spared as long as reclaim finds something elsewhere.
    Low,
    /// `memory.min`: spared in any case.
    Min,
}

impl GroupLimit {
    /// All of them, by number.
    pub const ALL: [GroupLimit; 4] = [GroupLimit::Max, GroupLimit::High, GroupLimit::Low, GroupLimit::Min];

    /// The end of its file's name.
    pub const fn name(self) -> &'static str {
        match self {
            GroupLimit::Max => "max",
            GroupLimit::High => "high",
            GroupLimit::Low => "low",
            GroupLimit::Min => "min",
        }
    }
}

/// The LRU lists of a node, or of a zone where the kernel keeps one set a zone; with memory control
/// groups, those of a group on a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LruvecId(u16);

impl LruvecId {
    /// The lists number `i`.
    #[inline(always)]
    pub const fn new(i: usize) -> Self {
        LruvecId(i as u16)
    }
    /// The number as an array index.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A CPU of the machine; each has its own page lists in every zone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct CpuId(u16);

impl CpuId {
    /// The CPU number `i`.
    pub const fn new(i: usize) -> Self {
        CpuId(i as u16)
    }
    /// The number as an array index.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One of the LRU lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum LruList {
    /// Anonymous pages that may be swapped out soon.
    InactiveAnon,
    ActiveAnon,
    /// File pages that may be dropped soon.
    InactiveFile,
    ActiveFile,
    /// Pages that cannot be evicted; the kernel keeps no order of them.
    Unevictable,
}

impl LruList {
    /// Number of LRU lists.
    pub const COUNT: usize = 5;
    /// The lists that reclaim scans, in that order.
    pub const EVICTABLE: [LruList; 4] =
        [LruList::InactiveAnon, LruList::ActiveAnon, LruList::InactiveFile, LruList::ActiveFile];
    /// All lists, by the kernel's numbers.
    pub const ALL: [LruList; LruList::COUNT] =
        [LruList::InactiveAnon, LruList::ActiveAnon, LruList::InactiveFile, LruList::ActiveFile, LruList::Unevictable];

    /// The kernel's number for it.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self as usize
    }
    /// Whether it holds file pages.
    #[inline(always)]
    pub const fn is_file(self) -> bool {
        matches!(self, LruList::InactiveFile | LruList::ActiveFile)
    }
    /// Whether it holds pages in use.
    #[inline(always)]
    pub const fn is_active(self) -> bool {
        matches!(self, LruList::ActiveAnon | LruList::ActiveFile)
    }
    /// The name the kernel prints.
    pub const fn name(self) -> &'static str {
        match self {
            LruList::InactiveAnon => "inactive_anon",
            LruList::ActiveAnon => "active_anon",
            LruList::InactiveFile => "inactive_file",
            LruList::ActiveFile => "active_file",
            LruList::Unevictable => "unevictable",
        }
    }
}

/// Anonymous pages or file pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Backing {
    /// Including shared memory: it goes to swap.
    Anon,
    File,
}

impl Backing {
    pub const ALL: [Backing; 2] = [Backing::Anon, Backing::File];

    /// The backing of a list's pages.
    #[inline(always)]
    pub const fn of(list: LruList) -> Backing {
        if list.is_file() { Backing::File } else { Backing::Anon }
    }
    /// 0 for anonymous pages, 1 for file pages.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self as usize
    }
    /// The inactive list of this backing.
    pub const fn inactive(self) -> LruList {
        match self {
            Backing::Anon => LruList::InactiveAnon,
            Backing::File => LruList::InactiveFile,
        }
    }
    /// The active list of this backing.
    pub const fn active(self) -> LruList {
        match self {
            Backing::Anon => LruList::ActiveAnon,
            Backing::File => LruList::ActiveFile,
        }
    }
}
