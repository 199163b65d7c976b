//! The GFP masks of huge-page faults.
//!
//! For hosts that have processes: `transparent_hugepage/defrag` says how much a fault may cost, a
//! program advises with `MADV_HUGEPAGE`, and the profile says what its kernel makes of both.
//! Source: kernel-behaviour §3.8.

use crate::gfp::Gfp;
use crate::rules::{HugeRequests, Profile};

/// A value of `transparent_hugepage/defrag`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HugeDefrag {
    /// Every fault reclaims and compacts directly.
    Always,
    /// Faults only wake kswapd and kcompactd.
    Defer,
    /// As `Defer`, but advised faults reclaim and compact directly.
    DeferMadvise,
    /// Advised faults reclaim and compact directly; others do nothing.
    Madvise,
    /// No fault reclaims, compacts or wakes a daemon.
    Never,
}

impl HugeDefrag {
    /// All values, in the kernel's order.
    pub const ALL: [HugeDefrag; 5] =
        [HugeDefrag::Always, HugeDefrag::Defer, HugeDefrag::DeferMadvise, HugeDefrag::Madvise, HugeDefrag::Never];

    /// The kernel's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            HugeDefrag::Always => "always",
            HugeDefrag::Defer => "defer",
            HugeDefrag::DeferMadvise => "defer+madvise",
            HugeDefrag::Madvise => "madvise",
            HugeDefrag::Never => "never",
        }
    }

    /// The value that is set at boot.
    pub fn default_of(profile: &Profile) -> HugeDefrag {
        if profile.huge_pages.waits_where_advised { HugeDefrag::Madvise } else { HugeDefrag::Always }
    }

    /// Whether the profile's kernel has this value.
    pub fn exists(self, profile: &Profile) -> bool {
        match self {
            HugeDefrag::Always | HugeDefrag::Madvise | HugeDefrag::Never => true,
            HugeDefrag::Defer => !matches!(profile.huge_pages.requests, HugeRequests::Once | HugeRequests::OnceDirect),
            HugeDefrag::DeferMadvise => {
                !matches!(profile.huge_pages.requests, HugeRequests::OnceDirect | HugeRequests::OnceOrDeferred)
            }
        }
    }

    /// The mask a fault tries first, and the one it tries if that fails. `advised`: the program has
    /// asked for huge pages there.
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
        match profile.huge_pages.requests {
            HugeRequests::Once => (light | Gfp::NORETRY, None),
            HugeRequests::LocalThenAny if direct => (local, Some(any)),
            HugeRequests::OnceAnyNode if direct => (any, None),
            HugeRequests::OnceLocal if direct => (any | Gfp::THISNODE, None),
            _ => (local, None),
        }
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
    fn before_seed_003_a_huge_pages_fault_stalls_by_default_and_after_it_only_where_that_was_asked_for() {
        let by_default = |profile: &str, advised| {
            let profile = linux(profile);
            HugeDefrag::default_of(&profile).requests(&profile, advised).0.has(Gfp::DIRECT_RECLAIM)
        };
        assert_eq!([false, true].map(|advised| by_default("4.4-kcompactd", advised)), [true, true]);
        assert_eq!([false, true].map(|advised| by_default("4.6", advised)), [false, true]);
    }

    #[test]
    fn up_to_4_7_there_is_one_try_and_it_is_local() {
        for profile in ["4.4-kcompactd", "4.6"] {
            assert_eq!(asks(profile, HugeDefrag::Always, true), (Gfp::TRANSHUGE | ONCE, None));
            assert_eq!(asks(profile, HugeDefrag::Never, true), (Gfp::TRANSHUGE_LIGHT | ONCE, None));
        }
        let deferred = Gfp::TRANSHUGE_LIGHT | Gfp::KSWAPD_RECLAIM | ONCE;
        assert_eq!(asks("4.6", HugeDefrag::Defer, true), (deferred, None));
        assert!(!HugeDefrag::Defer.exists(&linux("4.4-kcompactd")) && !HugeDefrag::DeferMadvise.exists(&linux("4.6")));
    }

    #[test]
    fn in_3_13_a_fault_asks_every_node_once_and_wakes_no_daemon() {
        assert_eq!(asks("3.13", HugeDefrag::Always, false), (Gfp::TRANSHUGE | Gfp::NORETRY, None));
        assert_eq!(asks("3.13", HugeDefrag::Never, false), (Gfp::TRANSHUGE_LIGHT | Gfp::NORETRY, None));
        assert!(!HugeDefrag::Defer.exists(&linux("3.13")));
        assert_eq!(HugeDefrag::default_of(&linux("3.13")), HugeDefrag::Always);
    }

    #[test]
    fn in_4_20_rc_there_is_one_try_and_it_is_local_where_it_may_not_reclaim() {
        assert_eq!(asks("4.20-rc3", HugeDefrag::Madvise, true), (Gfp::TRANSHUGE, None));
        assert_eq!(asks("4.20-rc3", HugeDefrag::Always, false), (Gfp::TRANSHUGE | Gfp::NORETRY, None));
        assert_eq!(asks("4.20-rc3", HugeDefrag::Madvise, false), (Gfp::TRANSHUGE_LIGHT | ONCE, None));
        assert!(HugeDefrag::DeferMadvise.exists(&linux("4.20-rc3")));
    }

    #[test]
    fn in_5_0_the_one_try_is_local_again_and_harder_for_who_asked_for_huge_pages() {
        assert_eq!(asks("5.0", HugeDefrag::Madvise, true), (Gfp::TRANSHUGE | Gfp::THISNODE, None));
        assert_eq!(asks("5.0", HugeDefrag::Always, false), (Gfp::TRANSHUGE | ONCE, None));
        assert_eq!(asks("5.0", HugeDefrag::Madvise, false), (Gfp::TRANSHUGE_LIGHT | ONCE, None));
        assert!(HugeDefrag::DeferMadvise.exists(&linux("5.0")));
    }

    #[test]
    fn later_any_node_is_tried_too_and_harder_for_who_asked_for_huge_pages() {
        let first = Gfp::TRANSHUGE | ONCE;
        assert_eq!(asks("6.1", HugeDefrag::Madvise, true), (first, Some(Gfp::TRANSHUGE)));
        assert_eq!(asks("6.1", HugeDefrag::Always, false), (first, Some(Gfp::TRANSHUGE | Gfp::NORETRY)));
        assert_eq!(asks("6.1", HugeDefrag::Madvise, false), (Gfp::TRANSHUGE_LIGHT | ONCE, None));
    }
}
