//! GFP flags: what a driver says of an allocation, under the kernel's names.
//!
//! A set of names and no more. Which zones, reserves and waits they stand for is the machine's
//! affair. Files, command lines and traces all name flags, and [`Gfp::read`] reads them all.

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

    /// Further sets of the kernel, which are read and never printed: their flags are.
    const MORE_SETS: &'static [(Gfp, &'static str)] = &[
        (Gfp::KERNEL, "GFP_KERNEL_ACCOUNT"),
        (Gfp::KERNEL.with(Gfp::HARDWALL), "GFP_USER"),
        (Gfp::KERNEL.with(Gfp::HARDWALL).with(Gfp::HIGHMEM), "GFP_HIGHUSER"),
        (Gfp::RECLAIM.with(Gfp::IO), "GFP_NOFS"),
        (Gfp::RECLAIM, "GFP_NOIO"),
        (Gfp::KSWAPD_RECLAIM, "GFP_NOWAIT"),
        (Gfp::RECLAIM, "__GFP_RECLAIM"),
        (Gfp::DMA, "GFP_DMA"),
        (Gfp::DMA32, "GFP_DMA32"),
    ];

    /// Flags that decide nothing here: who pays for a page, who will write to it, how it is
    /// checked.
    const WITHOUT_EFFECT: [&'static str; 13] = [
        "__GFP_ACCOUNT",
        "__GFP_WRITE",
        "__GFP_COLD",
        "__GFP_NOTRACK",
        "__GFP_NOLOCKDEP",
        "__GFP_ZEROTAGS",
        "__GFP_SKIP_ZERO",
        "__GFP_SKIP_KASAN",
        "__GFP_SKIP_KASAN_POISON",
        "__GFP_SKIP_KASAN_UNPOISON",
        "__GFP_NO_OBJ_EXT",
        "__GFP_CMA",
        "__GFP_OTHER_NODE",
    ];

    /// Flags that decide something in a kernel and nothing here: an allocation may fail that must
    /// not, and does not take the reserves that it may.
    const LACKING: [&'static str; 2] = ["__GFP_NOFAIL", "__GFP_MEMALLOC"];

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
    /// What was not taken over is returned beside the set.
    pub fn read(text: &str) -> (Gfp, Vec<NotTaken<'_>>) {
        let (mut all, mut not_taken) = (Gfp::NONE, Vec::new());
        for word in text.split('|').map(str::trim).filter(|word| *word != "none") {
            match Gfp::named().chain(Gfp::MORE_SETS.iter().copied()).find(|(_, name)| *name == word) {
                Some((gfp, _)) => all = all | gfp,
                None if Gfp::WITHOUT_EFFECT.contains(&word) => not_taken.push(NotTaken::WithoutEffect(word)),
                None if Gfp::LACKING.contains(&word) => not_taken.push(NotTaken::Lacking(word)),
                None => not_taken.push(NotTaken::Unknown(word)),
            }
        }
        (all, not_taken)
    }

    /// Reads names as [`Gfp::read`] does; `None` if one is unknown, or its effect is lacking here.
    pub fn parse(text: &str) -> Option<Gfp> {
        let (gfp, not_taken) = Gfp::read(text);
        not_taken.iter().all(|flag| matches!(flag, NotTaken::WithoutEffect(_))).then_some(gfp)
    }
}

/// A flag that was read and is not in the set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotTaken<'a> {
    /// It decides nothing here.
    WithoutEffect(&'a str),
    /// It decides something in a kernel that is lacking here.
    Lacking(&'a str),
    Unknown(&'a str),
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
    fn a_workload_reads_the_kernels_sets_that_a_trace_prints() {
        for (_, set) in Gfp::SETS.iter().chain(Gfp::MORE_SETS) {
            let gfp = Gfp::parse(set).filter(|gfp| *gfp != Gfp::NONE);
            assert_eq!(Gfp::parse(&format!("{set}|__GFP_ACCOUNT")), gfp, "{set}");
            assert!(gfp.is_some(), "{set}");
        }
        assert_eq!(Gfp::parse("GFP_NOFS"), Some(Gfp::RECLAIM | Gfp::IO));
    }

    #[test]
    fn a_flag_that_is_not_taken_over_has_its_reason() {
        let (gfp, not_taken) = Gfp::read("GFP_KERNEL|__GFP_NOFAIL|0x8000000|__GFP_WRITE");
        assert_eq!(gfp, Gfp::KERNEL);
        assert_eq!(
            not_taken,
            [NotTaken::Lacking("__GFP_NOFAIL"), NotTaken::Unknown("0x8000000"), NotTaken::WithoutEffect("__GFP_WRITE")]
        );
        assert_eq!(Gfp::parse("GFP_KERNEL|__GFP_NOFAIL"), None);
    }

    #[test]
    fn a_set_is_the_sum_of_its_places() {
        let all = Gfp::FLAGS.iter().fold(Gfp::NONE, |all, (gfp, _)| all | *gfp);
        for set in [Gfp::NONE, Gfp::KERNEL, Gfp::TRANSHUGE, all] {
            assert_eq!(set.places().fold(Gfp::NONE, |sum, at| sum | Gfp::FLAGS[at].0), set);
        }
    }
}
