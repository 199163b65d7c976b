//! What a page fault that wants a huge page asks for.
//!
//! It is for hosts that have processes: administrators say in `transparent_hugepage/defrag` how much a fault may cost, a
//! program advises (`MADV_HUGEPAGE`), and the profile knows what its kernel makes of both. Source: kernel-behaviour §3.8.

use crate::gfp::Gfp;
use crate::rules::{HugeRequests, Profile};

/// What `transparent_hugepage/defrag` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HugeDefrag {
    /// Any fault reclaims and compacts.
    Always,
    /// kswapd and kcompactd do.
    Defer,
    /// They do, but for those who have asked for huge pages the fault does itself.
    DeferMadvise,
    /// The faults of those who have asked for huge pages do.
    Madvise,
    /// None does.
    Never,
}

impl HugeDefrag {
    /// All there are, in the kernel's order.
    pub const ALL: [HugeDefrag; 5] =
        [HugeDefrag::Always, HugeDefrag::Defer, HugeDefrag::DeferMadvise, HugeDefrag::Madvise, HugeDefrag::Never];

    /// As the kernel writes it.
    pub const fn name(self) -> &'static str {
        match self {
            HugeDefrag::Always => "always",
            HugeDefrag::Defer => "defer",
            HugeDefrag::DeferMadvise => "defer+madvise",
            HugeDefrag::Madvise => "madvise",
            HugeDefrag::Never => "never",
        }
    }

    /// What boot sets.
    pub fn default_of(profile: &Profile) -> HugeDefrag {
        if profile.huge_pages.waits_where_advised { HugeDefrag::Madvise } else { HugeDefrag::Always }
    }

    /// Whether the kernel has it.
    pub fn exists(self, profile: &Profile) -> bool {
        match self {
            HugeDefrag::Always | HugeDefrag::Madvise | HugeDefrag::Never => true,
            HugeDefrag::Defer => profile.huge_pages.requests != HugeRequests::OnceDirect,
            HugeDefrag::DeferMadvise => profile.huge_pages.requests == HugeRequests::LocalThenAny,
        }
    }

    /// What a fault asks for first, and then if that fails; `advised`: the program has asked for huge pages there.
    pub fn requests(self, profile: &Profile, advised: bool) -> (Gfp, Option<Gfp>) {
        let direct = match self {
            HugeDefrag::Always => true,
            HugeDefrag::Madvise | HugeDefrag::DeferMadvise => advised,
            HugeDefrag::Defer | HugeDefrag::Never => false,
        };
        let deferred = matches!(self, HugeDefrag::Defer | HugeDefrag::DeferMadvise) && !direct;
        let light = match (direct, deferred) {
            (true, _) => Gfp::TRANSHUGE,
            (_, true) => Gfp::TRANSHUGE_LIGHT | Gfp::KSWAPD_RECLAIM,
            _ => Gfp::TRANSHUGE_LIGHT,
        };
        let local = light | Gfp::THISNODE | Gfp::NORETRY;
        let any = if advised { light } else { light | Gfp::NORETRY };
        let tries_any = profile.huge_pages.requests == HugeRequests::LocalThenAny && direct;
        (local, tries_any.then_some(any))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::linux;

    fn asks(profile: &str, defrag: HugeDefrag, advised: bool) -> (Gfp, Option<Gfp>) {
        defrag.requests(&linux(profile), advised)
    }

    const ONCE: Gfp = Gfp::THISNODE.with(Gfp::NORETRY);

    #[test]
    fn later_any_node_is_tried_too_and_harder_for_who_asked_for_huge_pages() {
        let first = Gfp::TRANSHUGE | ONCE;
        assert_eq!(asks("6.1", HugeDefrag::Madvise, true), (first, Some(Gfp::TRANSHUGE)));
        assert_eq!(asks("6.1", HugeDefrag::Always, false), (first, Some(Gfp::TRANSHUGE | Gfp::NORETRY)));
        assert_eq!(asks("6.1", HugeDefrag::Madvise, false), (Gfp::TRANSHUGE_LIGHT | ONCE, None));
    }
}
