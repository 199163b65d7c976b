//! Rules of page faults, for hosts that have processes: what they do to the LRU beside adding a page.

use super::rule::mechanism;

mechanism! {
    /// A process's page is made, copied or brought back from swap.
    pub struct FaultRules for "faults" {
        /// A page brought back by a read is copied when it is written to, if anybody holds it, the batch it waits in
        /// included.
        #[rule(since = "5.9–5.17", section = "4.7")]
        pub copies_held_pages: bool,
        /// While a page is read from a synchronous swap device the task may lose its CPU. The page is locked then.
        #[rule(since = "by 6.12", section = "4.7")]
        pub reading_swap_offers_cpu: bool,
        /// A page brought back from a synchronous swap device gives its place there up at once, and is dirty.
        #[rule(since = "by 7.2", section = "4.7")]
        pub frees_swap_at_once: bool,
        /// A page that is written to when it is brought back, and was this process's alone, keeps its place in swap unless half
        /// of that is used.
        #[rule(since = "by 7.2, gone by 7.3", section = "4.7")]
        pub keeps_place_of_own: bool,
        /// Before pages of a process are unmapped, this CPU's batches are put on the LRU.
        #[rule(since = "up to 6.12, gone by 6.14", section = "4.7")]
        pub drains_before_unmapping: bool,
        /// A huge page that several processes share is split when one of them writes to it, which then copies a small page.
        /// Before, the huge page was copied.
        #[rule(since = "5.8", section = "6.1")]
        pub splits_shared_huge: bool,
        /// `munmap` lets others fault while it gives the pages back, and only nobody map or unmap.
        #[rule(since = "4.20", section = "4.9")]
        pub unmaps_reading: bool,
        /// A fault locks its mapping, not the whole memory map. Up to 6.5 only for anonymous memory, which is left out.
        #[rule(since = "6.4", section = "4.9")]
        pub locks_mappings: bool,
        /// From flash a page is brought back with its neighbours in the process's memory; before, as from a disk, with those
        /// in swap.
        #[rule(since = "4.14", section = "4.7")]
        pub reads_swap_by_address: bool,
        /// Before a page brought back is written to, this CPU's batches are put on the LRU.
        #[rule(since = "by 7.2, gone by 7.3", section = "4.7")]
        pub drains_before_writing: bool,
    }
}
