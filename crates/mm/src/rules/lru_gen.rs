//! Rules of the multi-generational LRU.

use super::rule::{mechanism, variants};

mechanism! {
    /// Users' pages are kept in generations, where `lru_gen/enabled` says so.
    pub struct LruGenRules for "lru_gen" {
        /// The kernel's multi-generational LRU, as far as it is known.
        #[rule(section = "4.10")]
        pub generations: Generations,
        /// Distributions boot it with its multi-generational LRU on, walks of page tables included
        /// (CONFIG_LRU_GEN_ENABLED).
        #[rule(section = "4.10.7")]
        pub enabled: bool,
    }
}

variants! {
    /// The rules of a multi-generational LRU.
    pub enum Generations {
        /// There is none: pages are on the classic lists.
        None,
        /// There is one whose rules are not known: pages are on the classic lists here.
        Unmodelled,
        /// The first tiers decide what is evicted; a page used through page tables is young at
        /// once, and so is a new anonymous one; a generation begins when the oldest holds little.
        ByFirstTiers,
        /// All tiers decide what is evicted; a page used through page tables is young at its second
        /// use, and a new one has been used once; a generation begins when two are left to evict
        /// from, and eviction goes on. The entries of a folio give up their marks of use as one.
        /// These are all of 7.2's rules.
        ByAllTiers,
    }
}

impl LruGenRules {
    /// Whether all tiers decide, not the first alone.
    #[inline(always)]
    pub const fn by_all_tiers(&self) -> bool {
        matches!(self.generations, Generations::ByAllTiers)
    }
}
