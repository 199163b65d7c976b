//! Rules of huge pages for hosts that have processes: the requests that a fault makes, and what
//! khugepaged collapses.

use super::rule::{mechanism, variants};

variants! {
    /// The requests a fault makes for a huge page, given the administrator's `defrag` and the
    /// program's `madvise`.
    pub enum HugeRequests {
        /// One request, for any node, with both reclaim and compaction or with neither; it never
        /// wakes kswapd.
        Once,
        /// One request, for the local node alone, with both reclaim and compaction or with neither;
        /// it never wakes kswapd. Up to 4.5.
        OnceDirect,
        /// The same, and `defer` exists, which only wakes kswapd. 4.6 and 4.7.
        OnceOrDeferred,
        /// One request: for any node if it may reclaim, and then longer for a program that has
        /// asked for huge pages; else for the local node alone. `defer+madvise` exists.
        OnceAnyNode,
        /// One request, for the local node alone, which tries longer for a program that has asked
        /// for huge pages. `defer+madvise` exists. From 4.20 to 5.3.
        OnceLocal,
        /// A light request for the local node, then one for any node, which tries longer for a
        /// program that has asked for huge pages. `defer+madvise` exists. Since 5.4.
        LocalThenAny,
    }
}

variants! {
    /// The ranges of small pages that khugepaged makes a huge page of.
    pub enum Collapses {
        /// Only a range whose pages the process has for itself, in memory and not in the swap
        /// cache, and may all write to. Up to 3.19.
        Writable,
        /// A range whose pages the process has for itself and in memory, and to one of which at
        /// least it may write; since 4.1 zero pages count as missing ones. From 4.0 to 4.7.
        Own,
        /// A range to one of whose pages at least the process may write, and which it has for
        /// itself; some may be in swap (`max_ptes_swap`). From 4.8 to 5.7.
        Swapped,
        /// A range to one of whose pages at least the process may write; some may be in swap, and
        /// some shared with other processes (`max_ptes_shared`). From 5.8 to 6.17.
        Shared,
        /// A range to whose pages the process need not be allowed to write; some may be in swap,
        /// and some shared with other processes. Since 6.18.
        ReadOnly,
    }
}

impl Collapses {
    /// Whether pages may be in swap.
    pub const fn swapped(self) -> bool {
        !matches!(self, Collapses::Writable | Collapses::Own)
    }

    /// Whether pages may be shared with other processes.
    pub const fn shared(self) -> bool {
        matches!(self, Collapses::Shared | Collapses::ReadOnly)
    }
}

mechanism! {
    /// A page fault asks for a huge page, or khugepaged makes one.
    pub struct HugePageRules for "huge_pages" {
        /// The requests a fault makes.
        #[rule(section = "3.8")]
        pub requests: HugeRequests,
        /// By default only programs that have asked for huge pages wait for them: `defrag` is
        /// `madvise`; before, it was `always`.
        #[rule(section = "3.8")]
        pub waits_where_advised: bool,
        /// A new mapping of a multiple of 2 MiB begins at a boundary of 2 MiB, wherever the program
        /// leaves the place to the kernel; before, and of any other length, it lies right below
        /// the last one. Since 6.7, which aligned longer ones of any length, too, up to 6.11.
        #[rule(section = "6.1")]
        pub aligns_mappings: bool,
        /// The ranges that khugepaged collapses.
        #[rule(section = "6.2")]
        pub collapses: Collapses,
    }
}
