//! A request's flags (gfp flags) and the allocator's own, which follow from them (alloc flags).
//!
//! The names are the kernel's. The bit positions are not, since they differ from release to release
//! and no interface of the engine shows them.

use crate::types::{MigrateType, ZoneType};
use core::ops::BitOr;

/// The flags of a request.
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
    DMA = 0, "__GFP_DMA";
    HIGHMEM = 1, "__GFP_HIGHMEM";
    DMA32 = 2, "__GFP_DMA32";
    MOVABLE = 3, "__GFP_MOVABLE";
    /// The page belongs to a cache that can be shrunk.
    RECLAIMABLE = 4, "__GFP_RECLAIMABLE";
    /// May use part of the reserves.
    HIGH = 5, "__GFP_HIGH";
    IO = 6, "__GFP_IO";
    FS = 7, "__GFP_FS";
    /// May reclaim and compact itself.
    DIRECT_RECLAIM = 8, "__GFP_DIRECT_RECLAIM";
    KSWAPD_RECLAIM = 9, "__GFP_KSWAPD_RECLAIM";
    /// Try reclaim and compaction once, lightly.
    NORETRY = 10, "__GFP_NORETRY";
    /// Try hard, but fail in the end.
    RETRY_MAYFAIL = 11, "__GFP_RETRY_MAYFAIL";
    /// Never use the reserves.
    NOMEMALLOC = 12, "__GFP_NOMEMALLOC";
    THISNODE = 13, "__GFP_THISNODE";
    NOWARN = 14, "__GFP_NOWARN";
    COMP = 15, "__GFP_COMP";
    HARDWALL = 16, "__GFP_HARDWALL";
    ZERO = 17, "__GFP_ZERO";
    /// Marks an atomic request, up to 6.2; its rights come from other bits.
    ATOMIC_MARK = 18, "__GFP_ATOMIC";
    /// Try until it succeeds.
    NOFAIL = 19, "__GFP_NOFAIL";
}

impl BitOr for Gfp {
    type Output = Gfp;
    fn bitor(self, o: Gfp) -> Gfp {
        self.with(o)
    }
}

impl Gfp {
    pub const NONE: Gfp = Gfp(0);
    /// Asked by khugepaged. No flag of the kernel's, which knows the task; it is not printed.
    pub const BY_KHUGEPAGED: Gfp = Gfp(1 << 31);
    /// May reclaim in every way.
    pub const RECLAIM: Gfp = Gfp::DIRECT_RECLAIM.with(Gfp::KSWAPD_RECLAIM);
    pub const KERNEL: Gfp = Gfp::RECLAIM.with(Gfp::IO).with(Gfp::FS);
    pub const ATOMIC: Gfp = Gfp::HIGH.with(Gfp::KSWAPD_RECLAIM).with(Gfp::ATOMIC_MARK);
    /// User memory that can be migrated.
    pub const HIGHUSER_MOVABLE: Gfp = Gfp::KERNEL.with(Gfp::HARDWALL).with(Gfp::HIGHMEM).with(Gfp::MOVABLE);
    /// A huge page, without reclaim of any sort.
    pub const TRANSHUGE_LIGHT: Gfp =
        Gfp::HIGHUSER_MOVABLE.with(Gfp::COMP).with(Gfp::NOMEMALLOC).with(Gfp::NOWARN).without(Gfp::RECLAIM);
    /// A huge page, with direct reclaim and compaction.
    pub const TRANSHUGE: Gfp = Gfp::TRANSHUGE_LIGHT.with(Gfp::DIRECT_RECLAIM);

    /// The flags of both sets.
    pub const fn with(self, o: Gfp) -> Gfp {
        Gfp(self.0 | o.0)
    }
    /// The flags of this set that are not in the other.
    pub const fn without(self, o: Gfp) -> Gfp {
        Gfp(self.0 & !o.0)
    }
    /// Whether all flags of `o` are set.
    #[inline(always)]
    pub const fn has(self, o: Gfp) -> bool {
        self.0 & o.0 == o.0
    }

    /// The migratetype of the request (kernel-behaviour §1.2).
    ///
    /// # Panics
    /// If both MOVABLE and RECLAIMABLE are set, which means nothing in the kernel.
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

    /// Parses the output of [`Gfp`]'s `Display`: kernel names joined by `|`, composites included.
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

/// The mark that a watermark check compares free memory with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Wmark {
    /// Below it, only requests with a right to the reserves succeed.
    Min = 0,
    /// Below it, kswapd is woken.
    Low = 1,
    /// Above it, kswapd sleeps.
    High = 2,
}

/// The allocator's flags for a request (kernel-behaviour §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AllocFlags {
    pub wmark: Wmark,
    bits: u8,
}

impl AllocFlags {
    /// `__GFP_HIGH`: half the mark is enough (ALLOC_MIN_RESERVE, formerly ALLOC_HIGH).
    pub const MIN_RESERVE: u8 = 1;
    /// The request cannot wait: a further quarter less (ALLOC_NON_BLOCK, formerly ALLOC_HARDER).
    pub const NON_BLOCK: u8 = 2;
    /// May use the HIGHATOMIC reserve.
    pub const HIGHATOMIC: u8 = 4;
    /// Convert whole pageblocks or nothing.
    pub const NOFRAGMENT: u8 = 8;
    pub const KSWAPD: u8 = 16;
    /// The request is marked atomic.
    pub const ATOMIC_MARK: u8 = 32;
    /// Goes round the zones of its node.
    pub const FAIR: u8 = 64;
    /// Takes no small foreign block, because the request would rather wait.
    pub const FRAGMENT_STALL: u8 = 128;

    /// Flags with this mark and no bits.
    pub const fn mark(wmark: Wmark) -> AllocFlags {
        AllocFlags { wmark, bits: 0 }
    }

    /// These flags with more bits.
    #[inline(always)]
    pub const fn with(self, bits: u8) -> AllocFlags {
        AllocFlags { wmark: self.wmark, bits: self.bits | bits }
    }
    /// These flags without these bits.
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
