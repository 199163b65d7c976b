//! What a requester says (gfp flags) and what the allocator makes of it (alloc flags).
//!
//! The names are the kernel's; the bit positions are ours, since they differ from release to release and no
//! interface of the engine shows them.

use crate::types::{MigrateType, ZoneType};
use core::ops::BitOr;

/// A requester's flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Gfp(u32);

macro_rules! gfp_bits {
    ($($(#[$doc:meta])* $name:ident = $bit:expr, $printed:literal;)*) => {
        impl Gfp {
            $($(#[$doc])* pub const $name: Gfp = Gfp(1 << $bit);)*
            const NAMES: &'static [(Gfp, &'static str)] = &[$((Gfp::$name, $printed)),*];
        }
    };
}

gfp_bits! {
    /// Zone: DMA.
    DMA = 0, "__GFP_DMA";
    /// Zone: high memory allowed.
    HIGHMEM = 1, "__GFP_HIGHMEM";
    /// Zone: below 4 GiB.
    DMA32 = 2, "__GFP_DMA32";
    /// The page can be migrated.
    MOVABLE = 3, "__GFP_MOVABLE";
    /// The page belongs to a cache that can be shrunk.
    RECLAIMABLE = 4, "__GFP_RECLAIMABLE";
    /// May use part of the reserves.
    HIGH = 5, "__GFP_HIGH";
    /// May start I/O.
    IO = 6, "__GFP_IO";
    /// May call into the file system.
    FS = 7, "__GFP_FS";
    /// May reclaim and compact itself.
    DIRECT_RECLAIM = 8, "__GFP_DIRECT_RECLAIM";
    /// May wake kswapd.
    KSWAPD_RECLAIM = 9, "__GFP_KSWAPD_RECLAIM";
    /// Try reclaim and compaction once, lightly.
    NORETRY = 10, "__GFP_NORETRY";
    /// Try hard, but fail in the end.
    RETRY_MAYFAIL = 11, "__GFP_RETRY_MAYFAIL";
    /// Never use the reserves.
    NOMEMALLOC = 12, "__GFP_NOMEMALLOC";
    /// Only this node.
    THISNODE = 13, "__GFP_THISNODE";
    /// No warning on failure.
    NOWARN = 14, "__GFP_NOWARN";
    /// A compound page.
    COMP = 15, "__GFP_COMP";
    /// Obey the cpuset.
    HARDWALL = 16, "__GFP_HARDWALL";
    /// Zero the page.
    ZERO = 17, "__GFP_ZERO";
    /// Marks an atomic request, up to 6.2; its rights come from other bits.
    ATOMIC_MARK = 18, "__GFP_ATOMIC";
    /// Try until there is a block.
    NOFAIL = 19, "__GFP_NOFAIL";
}

impl BitOr for Gfp {
    type Output = Gfp;
    fn bitor(self, o: Gfp) -> Gfp {
        self.with(o)
    }
}

impl Gfp {
    /// Nothing set.
    pub const NONE: Gfp = Gfp(0);
    /// May reclaim in every way.
    pub const RECLAIM: Gfp = Gfp::DIRECT_RECLAIM.with(Gfp::KSWAPD_RECLAIM);
    /// Ordinary kernel memory.
    pub const KERNEL: Gfp = Gfp::RECLAIM.with(Gfp::IO).with(Gfp::FS);
    /// Atomic context.
    pub const ATOMIC: Gfp = Gfp::HIGH.with(Gfp::KSWAPD_RECLAIM).with(Gfp::ATOMIC_MARK);
    /// User memory that can be migrated.
    pub const HIGHUSER_MOVABLE: Gfp = Gfp::KERNEL.with(Gfp::HARDWALL).with(Gfp::HIGHMEM).with(Gfp::MOVABLE);
    /// A huge page, without reclaim of any sort.
    pub const TRANSHUGE_LIGHT: Gfp =
        Gfp::HIGHUSER_MOVABLE.with(Gfp::COMP).with(Gfp::NOMEMALLOC).with(Gfp::NOWARN).without(Gfp::RECLAIM);
    /// A huge page, with direct reclaim and compaction.
    pub const TRANSHUGE: Gfp = Gfp::TRANSHUGE_LIGHT.with(Gfp::DIRECT_RECLAIM);

    /// Both sets.
    pub const fn with(self, o: Gfp) -> Gfp {
        Gfp(self.0 | o.0)
    }
    /// This set less the other.
    pub const fn without(self, o: Gfp) -> Gfp {
        Gfp(self.0 & !o.0)
    }
    /// Whether all of `o` is set.
    #[inline(always)]
    pub const fn has(self, o: Gfp) -> bool {
        self.0 & o.0 == o.0
    }

    /// The migratetype asked for (kernel-behaviour §1.2).
    ///
    /// # Panics
    /// If both MOVABLE and RECLAIMABLE are set: the kernel has no meaning for it.
    #[inline]
    pub const fn migratetype(self) -> MigrateType {
        match (self.has(Gfp::MOVABLE), self.has(Gfp::RECLAIMABLE)) {
            (false, false) => MigrateType::Unmovable,
            (true, false) => MigrateType::Movable,
            (false, true) => MigrateType::Reclaimable,
            (true, true) => panic!("gfp both movable and reclaimable"),
        }
    }

    /// The highest zone the request may use (§1.5).
    #[inline]
    pub const fn highest_zone(self) -> ZoneType {
        if self.has(Gfp::DMA) {
            ZoneType::Dma
        } else if self.has(Gfp::DMA32) {
            ZoneType::Dma32
        } else if self.has(Gfp::HIGHMEM.with(Gfp::MOVABLE)) {
            ZoneType::Movable
        } else {
            ZoneType::Normal
        }
    }

    /// Parses what [`Gfp`]'s `Display` prints: kernel names joined by `|`, composites included.
    pub fn parse(text: &str) -> Option<Gfp> {
        let mut all = Gfp::NONE;
        for word in text.split('|').map(str::trim) {
            let found = Gfp::COMPOSITES
                .iter()
                .chain(Gfp::NAMES)
                .find(|(_, name)| *name == word)
                .map(|(g, _)| *g)
                .or(if word == "none" { Some(Gfp::NONE) } else { None })?;
            all = all.with(found);
        }
        Some(all)
    }

    const COMPOSITES: &'static [(Gfp, &'static str)] = &[
        (Gfp::TRANSHUGE, "GFP_TRANSHUGE"),
        (Gfp::TRANSHUGE_LIGHT, "GFP_TRANSHUGE_LIGHT"),
        (Gfp::HIGHUSER_MOVABLE, "GFP_HIGHUSER_MOVABLE"),
        (Gfp::KERNEL, "GFP_KERNEL"),
        (Gfp::ATOMIC, "GFP_ATOMIC"),
    ];
}

impl core::fmt::Display for Gfp {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.0 == 0 {
            return f.write_str("none");
        }
        let mut left = *self;
        let mut first = true;
        for (g, name) in Gfp::COMPOSITES.iter().chain(Gfp::NAMES) {
            if left.has(*g) {
                if !first {
                    f.write_str("|")?;
                }
                f.write_str(name)?;
                left = left.without(*g);
                first = false;
            }
        }
        Ok(())
    }
}

/// The mark a watermark check holds free memory against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Wmark {
    /// Below it only reserves.
    Min = 0,
    /// Below it kswapd wakes.
    Low = 1,
    /// Above it kswapd sleeps.
    High = 2,
}

/// What the allocator makes of a request (kernel-behaviour §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AllocFlags {
    /// The mark to hold free memory against.
    pub wmark: Wmark,
    bits: u8,
}

impl AllocFlags {
    /// `__GFP_HIGH`: half the mark is enough (ALLOC_MIN_RESERVE, formerly ALLOC_HIGH).
    pub const MIN_RESERVE: u8 = 1;
    /// Cannot wait: a further quarter less (ALLOC_NON_BLOCK, formerly ALLOC_HARDER).
    pub const NON_BLOCK: u8 = 2;
    /// May use the HIGHATOMIC reserve.
    pub const HIGHATOMIC: u8 = 4;
    /// Convert whole pageblocks or nothing.
    pub const NOFRAGMENT: u8 = 8;
    /// May wake kswapd.
    pub const KSWAPD: u8 = 16;
    /// The request is marked atomic.
    pub const ATOMIC_MARK: u8 = 32;
    /// Goes round the zones of its node.
    pub const FAIR: u8 = 64;

    /// Only a mark.
    pub const fn mark(wmark: Wmark) -> AllocFlags {
        AllocFlags { wmark, bits: 0 }
    }

    /// With these bits too.
    #[inline(always)]
    pub const fn with(self, bits: u8) -> AllocFlags {
        AllocFlags { wmark: self.wmark, bits: self.bits | bits }
    }
    /// Without these bits.
    #[inline(always)]
    pub const fn without(self, bits: u8) -> AllocFlags {
        AllocFlags { wmark: self.wmark, bits: self.bits & !bits }
    }
    /// Whether any of these bits is set.
    #[inline(always)]
    pub const fn any(self, bits: u8) -> bool {
        self.bits & bits != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn names_survive_a_round_trip() {
        for g in [Gfp::KERNEL, Gfp::TRANSHUGE, Gfp::KERNEL | Gfp::COMP | Gfp::NORETRY, Gfp::NONE, Gfp::ATOMIC] {
            assert_eq!(Gfp::parse(&g.to_string()), Some(g), "{g}");
        }
        assert_eq!((Gfp::KERNEL | Gfp::COMP).to_string(), "GFP_KERNEL|__GFP_COMP");
        assert_eq!(Gfp::parse("GFP_NONSENSE"), None);
    }

    #[test]
    fn a_request_may_use_zones_up_to_its_own() {
        assert_eq!(Gfp::KERNEL.highest_zone(), ZoneType::Normal);
        assert_eq!(Gfp::HIGHUSER_MOVABLE.highest_zone(), ZoneType::Movable);
        assert_eq!((Gfp::KERNEL | Gfp::DMA32).highest_zone(), ZoneType::Dma32);
    }
}
