//! Rules of page faults, for hosts that have processes.

use super::rule::mechanism;

mechanism! {
    /// A process's page is made, copied or brought back from swap.
    pub struct FaultRules for "faults" {
        /// A page that a read fault brought back is copied on the first write if anybody holds it,
        /// even only the batch in which it waits for the LRU. From 5.9 to 5.17.
        #[rule(section = "4.7")]
        pub copies_held_pages: bool,
        /// A task that reads from a synchronous swap device may be preempted, with the page locked.
        #[rule(section = "4.7")]
        pub reading_swap_offers_cpu: bool,
        /// A task that copies a page, or that writes where it has the page of zeroes, may be
        /// preempted before the new page joins a batch. Since 5.4.
        #[rule(section = "4.7")]
        pub copying_offers_cpu: bool,
        /// A page brought back from a synchronous swap device frees its swap slot at once, and is
        /// dirty.
        #[rule(section = "4.7")]
        pub frees_swap_at_once: bool,
        /// A page that a write fault brings back, and that no other process shared, keeps its swap
        /// slot unless half of the swap space is used.
        #[rule(section = "4.7")]
        pub keeps_place_of_own: bool,
        /// Before pages of a process are unmapped, this CPU's batches are drained to the LRU.
        #[rule(section = "4.7")]
        pub drains_before_unmapping: bool,
        /// A write to a huge page that several processes share splits it and copies one small page;
        /// before, the huge page was copied. Since 5.8.
        #[rule(section = "6.1")]
        pub splits_shared_huge: bool,
        /// `munmap` holds the memory map only for reading while it frees pages: others may fault,
        /// but not map or unmap.
        #[rule(section = "4.9")]
        pub unmaps_reading: bool,
        /// A fault locks its mapping instead of the whole memory map. Since 6.4; up to 6.5 for
        /// anonymous memory alone, a limit that is not modelled.
        #[rule(section = "4.9")]
        pub locks_mappings: bool,
        /// Swap readahead from flash follows the process's addresses; before, as from a disk, the
        /// swap slots. Since 4.14.
        #[rule(section = "4.7")]
        pub reads_swap_by_address: bool,
        /// A fault on a mapped file's page maps those around it that are in memory, too, 16 at
        /// most. Since 3.15.
        #[rule(section = "4.7")]
        pub maps_around: bool,
        /// The top table of a memory map is two pages in one block, for the kernel and for the
        /// program (page-table isolation); before, one. Since 4.15; late kernels (7.2 has it) have
        /// one page where isolation is off, as on processors that do not need it.
        #[rule(section = "11.5")]
        pub isolates_page_tables: bool,
        /// Before a write to a page brought back from swap, this CPU's batches are drained to the
        /// LRU.
        #[rule(section = "4.7")]
        pub drains_before_writing: bool,
    }
}
