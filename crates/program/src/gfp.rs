//! GFP flags: what a driver says of an allocation, under the kernel's names.
//!
//! A set of names and no more. Which zones, reserves and waits they stand for is the machine's
//! affair.

use std::fmt;
use std::ops::BitOr;

/// A set of GFP flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Gfp(u32);

macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $kernel:literal;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Bit { $($name),* }
        impl Gfp {
            $($(#[$doc])* pub const $name: Gfp = Gfp(1 << Bit::$name as u32);)*
            /// Every single flag with the kernel's name for it.
            pub const FLAGS: &'static [(Gfp, &'static str)] = &[$((Gfp::$name, $kernel)),*];
        }
    };
}

flags! {
    /// From the DMA zone.
    DMA = "__GFP_DMA";
    HIGHMEM = "__GFP_HIGHMEM";
    DMA32 = "__GFP_DMA32";
    /// The page can be migrated.
    MOVABLE = "__GFP_MOVABLE";
    /// The page belongs to a cache that can be shrunk.
    RECLAIMABLE = "__GFP_RECLAIMABLE";
    /// May use part of the reserves.
    HIGH = "__GFP_HIGH";
    IO = "__GFP_IO";
    /// May call into the file system.
    FS = "__GFP_FS";
    /// May reclaim and compact itself.
    DIRECT_RECLAIM = "__GFP_DIRECT_RECLAIM";
    KSWAPD_RECLAIM = "__GFP_KSWAPD_RECLAIM";
    /// Tries reclaim and compaction once, lightly.
    NORETRY = "__GFP_NORETRY";
    /// Tries hard, but fails in the end.
    RETRY_MAYFAIL = "__GFP_RETRY_MAYFAIL";
    /// Never uses the reserves.
    NOMEMALLOC = "__GFP_NOMEMALLOC";
    THISNODE = "__GFP_THISNODE";
    /// No warning on failure.
    NOWARN = "__GFP_NOWARN";
    COMP = "__GFP_COMP";
    HARDWALL = "__GFP_HARDWALL";
    ZERO = "__GFP_ZERO";
    /// Marks an atomic request, up to 6.2.
    ATOMIC_MARK = "__GFP_ATOMIC";
}

impl Gfp {
    pub const NONE: Gfp = Gfp(0);
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

    /// The kernel's names for sets, the larger before the smaller ones within them.
    const SETS: &'static [(Gfp, &'static str)] = &[
        (Gfp::TRANSHUGE, "GFP_TRANSHUGE"),
        (Gfp::TRANSHUGE_LIGHT, "GFP_TRANSHUGE_LIGHT"),
        (Gfp::HIGHUSER_MOVABLE, "GFP_HIGHUSER_MOVABLE"),
        (Gfp::KERNEL, "GFP_KERNEL"),
        (Gfp::ATOMIC, "GFP_ATOMIC"),
    ];

    fn named() -> impl Iterator<Item = (Gfp, &'static str)> {
        Gfp::SETS.iter().chain(Gfp::FLAGS).copied()
    }

    /// The union of both sets.
    pub const fn with(self, other: Gfp) -> Gfp {
        Gfp(self.0 | other.0)
    }
    /// This set less the other.
    pub const fn without(self, other: Gfp) -> Gfp {
        Gfp(self.0 & !other.0)
    }
    /// Whether all of `other` is in this set.
    pub const fn has(self, other: Gfp) -> bool {
        self.0 & other.0 == other.0
    }
    /// The flags of the set, each as its place in [`Gfp::FLAGS`].
    pub fn places(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let place = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(place)
        })
    }

    /// Reads kernel names joined by `|`, such as `GFP_KERNEL|__GFP_COMP`; `none` is the empty set.
    pub fn parse(text: &str) -> Option<Gfp> {
        let of = |word: &str| match word {
            "none" => Some(Gfp::NONE),
            _ => Gfp::named().find(|(_, name)| *name == word).map(|(gfp, _)| gfp),
        };
        text.split('|').map(str::trim).try_fold(Gfp::NONE, |all, word| Some(all | of(word)?))
    }
}

impl BitOr for Gfp {
    type Output = Gfp;
    fn bitor(self, other: Gfp) -> Gfp {
        self.with(other)
    }
}

impl fmt::Display for Gfp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Gfp::NONE {
            return f.write_str("none");
        }
        let (mut left, mut between) = (*self, "");
        for (gfp, name) in Gfp::named() {
            if left.has(gfp) {
                write!(f, "{between}{name}")?;
                between = "|";
                left = left.without(gfp);
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Gfp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_a_round_trip() {
        for g in [Gfp::KERNEL, Gfp::TRANSHUGE, Gfp::KERNEL | Gfp::COMP | Gfp::NORETRY, Gfp::NONE, Gfp::ATOMIC] {
            assert_eq!(Gfp::parse(&g.to_string()), Some(g), "{g}");
        }
        assert_eq!((Gfp::KERNEL | Gfp::COMP).to_string(), "GFP_KERNEL|__GFP_COMP");
        assert_eq!(Gfp::parse("GFP_NONSENSE"), None);
    }

    #[test]
    fn a_set_is_the_sum_of_its_places() {
        let all = Gfp::FLAGS.iter().fold(Gfp::NONE, |all, (gfp, _)| all | *gfp);
        for set in [Gfp::NONE, Gfp::KERNEL, Gfp::TRANSHUGE, all] {
            assert_eq!(set.places().fold(Gfp::NONE, |sum, at| sum | Gfp::FLAGS[at].0), set);
        }
    }
}
