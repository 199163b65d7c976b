//! Reclaim on a near node before a request goes to the next one: `vm.zone_reclaim_mode`, and how
//! much a node must have for that.
//!
//! Source: kernel-behaviour §4.13.

use super::{Decides, NO_EFFECT, Setting, Sysctl};

/// The mode is a signed number that may not be negative.
const MODE_MAX: u32 = i32::MAX as u32;

pub(crate) static ZONE_RECLAIM_MODE: Sysctl = Sysctl {
    name: "vm.zone_reclaim_mode",
    summary: "requests reclaim on near nodes before they take from others (1), write (2) and unmap pages (4) there",
    setting: Some(Setting {
        get: |t| t.zone_reclaim_mode,
        set: |t, n| t.zone_reclaim_mode = n,
        computed: false,
        decides: Decides::WhatIsAsked,
    }),
    exists: |p| p.node_reclaim.modelled,
    range: |_| (0, MODE_MAX),
    words: None,
    effect: NO_EFFECT,
};

pub(crate) static MIN_UNMAPPED_RATIO: Sysctl = Sysctl {
    name: "vm.min_unmapped_ratio",
    summary: "per cent of a node above which its pages of files are reason for vm.zone_reclaim_mode to reclaim",
    setting: Some(Setting {
        get: |t| t.min_unmapped_ratio,
        set: |t, n| t.min_unmapped_ratio = n,
        computed: false,
        decides: Decides::WhatIsAsked,
    }),
    exists: |p| p.node_reclaim.modelled,
    range: |_| (0, 100),
    words: None,
    effect: NO_EFFECT,
};

pub(crate) static MIN_SLAB_RATIO: Sysctl = Sysctl {
    name: "vm.min_slab_ratio",
    summary: "per cent of a node above which reclaimable slab is reason for vm.zone_reclaim_mode to reclaim",
    setting: Some(Setting {
        get: |t| t.min_slab_ratio,
        set: |t, n| t.min_slab_ratio = n,
        computed: false,
        decides: Decides::WhatIsAsked,
    }),
    exists: |p| p.node_reclaim.modelled,
    range: |_| (0, 100),
    words: None,
    effect: NO_EFFECT,
};
