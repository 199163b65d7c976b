//! The administrator's settings for huge pages: `/sys/kernel/mm/transparent_hugepage`, by the names
//! of its files.
//!
//! A fault's requests follow from them ([`crate::huge_page`]). khugepaged belongs to the host.
//! Source: kernel-behaviour §3.8, §6.

use super::{ALWAYS, Decides, NO_EFFECT, Setting, Sysctl, Words};
use crate::gfp::Gfp;
use crate::huge_page::HugeDefrag;
use crate::state::{Memory, Tunables};

/// Values of `enabled`: the programs that get huge pages.
const EVERYBODY: u32 = 0;
const NOBODY: u32 = 2;

pub(super) static ENABLED: Sysctl = Sysctl {
    name: "thp.enabled",
    summary: "programs whose memory may use huge pages",
    setting: Some(Setting {
        get: |t| t.thp_enabled,
        set: |t, n| t.thp_enabled = n,
        computed: false,
        decides: Decides::WhatIsAsked,
    }),
    exists: ALWAYS,
    range: |_| (0, 2),
    words: Some(Words { all: &["always", "madvise", "never"], has: |_, _| true }),
    effect: NO_EFFECT,
};

pub(super) static DEFRAG: Sysctl = Sysctl {
    name: "thp.defrag",
    summary: "effort that a fault may make for a huge page",
    setting: Some(Setting {
        get: |t| t.thp_defrag as u32,
        set: |t, n| t.thp_defrag = HugeDefrag::ALL[n as usize],
        computed: true,
        decides: Decides::WhatIsAsked,
    }),
    exists: ALWAYS,
    range: |_| (0, 4),
    words: Some(Words {
        all: &[
            HugeDefrag::Always.name(),
            HugeDefrag::Defer.name(),
            HugeDefrag::DeferMadvise.name(),
            HugeDefrag::Madvise.name(),
            HugeDefrag::Never.name(),
        ],
        has: |profile, n| HugeDefrag::ALL[n as usize].exists(profile),
    }),
    effect: NO_EFFECT,
};

macro_rules! khugepaged {
    ($($SYSCTL:ident = $name:literal, $field:ident, $min:literal..$max:expr, $exists:expr, $summary:literal;)*) => {
        $(pub(super) static $SYSCTL: Sysctl = Sysctl {
            name: concat!("thp.khugepaged.", $name),
            summary: $summary,
            setting: Some(Setting {
                get: |t| t.khugepaged.$field,
                set: |t, n| t.khugepaged.$field = n,
                computed: false,
                decides: Decides::WhatIsAsked,
            }),
            exists: $exists,
            range: |_| ($min, $max),
            words: None,
            effect: NO_EFFECT,
        };)*
    };
}

khugepaged! {
    KHUGEPAGED_ALLOC_SLEEP = "alloc_sleep_millisecs", alloc_sleep_millisecs, 0..u32::MAX, ALWAYS,
        "sleep of khugepaged after it failed to allocate a huge page";
    KHUGEPAGED_DEFRAG = "defrag", defrag, 0..1, ALWAYS, "whether khugepaged reclaims and compacts for a huge page";
    KHUGEPAGED_MAX_PTES_NONE = "max_ptes_none", max_ptes_none, 0..511, ALWAYS,
        "missing pages of a range that khugepaged still collapses";
    KHUGEPAGED_MAX_PTES_SHARED = "max_ptes_shared", max_ptes_shared, 0..511, |p| p.huge_pages.collapses.shared(),
        "shared pages of a range that khugepaged still collapses";
    KHUGEPAGED_MAX_PTES_SWAP = "max_ptes_swap", max_ptes_swap, 0..511, |p| p.huge_pages.collapses.swapped(),
        "swapped-out pages of a range that khugepaged still collapses";
    KHUGEPAGED_PAGES_TO_SCAN = "pages_to_scan", pages_to_scan, 1..u32::MAX, ALWAYS,
        "pages that khugepaged scans before it sleeps";
    KHUGEPAGED_SCAN_SLEEP = "scan_sleep_millisecs", scan_sleep_millisecs, 0..u32::MAX, ALWAYS,
        "sleep of khugepaged between scans";
}

impl Memory {
    /// Whether a program's memory may use huge pages; `advised` if it has asked for them.
    pub fn wants_huge(&mut self, advised: bool) -> bool {
        self.shared.decide(&ENABLED, |enabled| enabled == EVERYBODY || enabled != NOBODY && advised)
    }

    /// After a write to `enabled`, khugepaged raises `vm.min_free_kbytes`, unless nobody gets huge
    /// pages: even if boot has forgotten that, or the administrator has lowered it (§1.3).
    pub(super) fn raise_min_free_for_huge_pages(&mut self) {
        let raised = self.min_free_kbytes_for_huge_pages();
        if self.tunables().thp_enabled == NOBODY || self.tunables().min_free_kbytes >= raised {
            return;
        }
        self.shared.tunables.min_free_kbytes = raised;
        // The write has made a difference, whatever `enabled` was before.
        self.note(&ENABLED, true);
        self.setup_watermarks();
        self.setup_fixed_reserve();
    }

    /// The first request of a fault that wants a huge page, and the one after that fails.
    pub fn huge_requests(&mut self, advised: bool) -> (Gfp, Option<Gfp>) {
        let requests = {
            let profile = &self.shared.profile;
            HugeDefrag::ALL.map(|defrag| defrag.requests(profile, advised))
        };
        self.shared.decide(&DEFRAG, |n| requests[n as usize])
    }

    /// The request of khugepaged for a huge page.
    pub fn khugepaged_request(&mut self) -> Gfp {
        self.shared.decide(&KHUGEPAGED_DEFRAG, |on| if on == 1 { Gfp::TRANSHUGE } else { Gfp::TRANSHUGE_LIGHT })
    }

    /// How long khugepaged sleeps between scans, ms.
    pub fn khugepaged_sleep_ms(&mut self) -> u32 {
        self.shared.decide(&KHUGEPAGED_SCAN_SLEEP, |ms| ms)
    }

    /// How long it sleeps after it failed to allocate a huge page, ms.
    pub fn khugepaged_alloc_sleep_ms(&mut self) -> u32 {
        self.shared.decide(&KHUGEPAGED_ALLOC_SLEEP, |ms| ms)
    }

    /// Whether it has scanned as many pages as it may before it sleeps.
    pub fn khugepaged_has_scanned_enough(&mut self, pages: u32) -> bool {
        self.shared.decide(&KHUGEPAGED_PAGES_TO_SCAN, |most| pages >= most)
    }

    /// Whether more pages of a range are missing than khugepaged collapses.
    pub fn khugepaged_misses_too_many(&mut self, pages: u32) -> bool {
        self.shared.decide(&KHUGEPAGED_MAX_PTES_NONE, |most| pages > most)
    }

    /// Whether more pages of a range are shared than khugepaged collapses; of a kernel that does
    /// not count them, none are too many.
    pub fn khugepaged_shares_too_many(&mut self, pages: u32) -> bool {
        let counts = self.shared.profile.huge_pages.collapses.shared();
        counts && self.shared.decide(&KHUGEPAGED_MAX_PTES_SHARED, |most| pages > most)
    }

    /// Whether more pages of a range are in swap than khugepaged collapses.
    pub fn khugepaged_swaps_too_many(&mut self, pages: u32) -> bool {
        match self.shared.profile.huge_pages.collapses.swapped() {
            true => self.shared.decide(&KHUGEPAGED_MAX_PTES_SWAP, |most| pages > most),
            false => pages > 0,
        }
    }
}

/// Pages of a machine that is large enough for huge pages: 512 MiB.
const LARGE_ENOUGH: u64 = 512 << 8;

/// The values that boot sets, by the profile and the managed pages. On a small machine it clears
/// all settings of huge pages; after they are switched on there, no request may make any effort
/// (§6.1).
pub(crate) fn at_boot(tunables: &mut Tunables, profile: &crate::rules::Profile, managed: u64) {
    tunables.thp_defrag = HugeDefrag::default_of(profile);
    if managed < LARGE_ENOUGH {
        tunables.thp_defrag = HugeDefrag::Never;
        tunables.khugepaged.defrag = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::linux;

    #[test]
    fn a_setting_of_khugepaged_mattered_once_it_decided_otherwise_than_boots_value() {
        let mut m = crate::testing::machine_with(64, linux("6.1"));
        let settings = [
            (&KHUGEPAGED_ALLOC_SLEEP, "1"),
            (&KHUGEPAGED_DEFRAG, "1"),
            (&KHUGEPAGED_MAX_PTES_NONE, "8"),
            (&KHUGEPAGED_MAX_PTES_SHARED, "8"),
            (&KHUGEPAGED_MAX_PTES_SWAP, "8"),
            (&KHUGEPAGED_PAGES_TO_SCAN, "8"),
            (&KHUGEPAGED_SCAN_SLEEP, "1"),
        ];
        let ask = |m: &mut Memory, pages: u32| {
            m.khugepaged_misses_too_many(pages);
            m.khugepaged_shares_too_many(pages);
            m.khugepaged_swaps_too_many(pages);
            m.khugepaged_has_scanned_enough(pages);
        };
        let mattered = |m: &Memory| settings.map(|(sysctl, _)| m.sysctl_mattered(sysctl));
        for (sysctl, value) in settings {
            m.sysctl_write(sysctl.name, value).expect("6.1 has it");
        }
        ask(&mut m, 5);
        assert_eq!(mattered(&m), [false; 7], "nothing was asked, or it was few pages");
        ask(&mut m, 9);
        assert_eq!(mattered(&m), [false, false, true, true, true, true, false]);
        m.khugepaged_alloc_sleep_ms();
        m.khugepaged_request();
        m.khugepaged_sleep_ms();
        assert_eq!(mattered(&m), [true; 7]);
    }

    #[test]
    fn below_512_mib_nothing_is_done_for_a_huge_page() {
        for (managed, expected) in
            [(LARGE_ENOUGH - 1, (HugeDefrag::Never, 0)), (LARGE_ENOUGH, (HugeDefrag::Madvise, 1))]
        {
            let mut tunables = Tunables::default();
            at_boot(&mut tunables, &linux("6.1"), managed);
            assert_eq!((tunables.thp_defrag, tunables.khugepaged.defrag), expected, "{managed} pages");
        }
    }
}
