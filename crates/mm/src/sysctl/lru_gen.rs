//! The switch of the multi-generational LRU: `/sys/kernel/mm/lru_gen/enabled`.
//!
//! The file is a mask: 1 keeps pages in generations, 2 also ages them by walks of page tables, 4
//! lets a walk pass over tables that were not used. Of these the first alone is modelled. Source:
//! kernel-behaviour §4.10.7.

use super::{Decides, NO_EFFECT, Setting, Sysctl};
use crate::rules::Generations;

pub(super) static ENABLED: Sysctl = Sysctl {
    name: "lru_gen.enabled",
    summary: "whether pages are kept in generations; distributions boot with 7, which adds walks of page tables",
    setting: Some(Setting {
        get: |t| u32::from(t.lru_gen),
        set: |t, n| t.lru_gen = n == 1,
        computed: false,
        decides: Decides::Lists,
    }),
    exists: |p| !matches!(p.lru_gen.generations, Generations::None | Generations::Unmodelled),
    range: |_| (0, 1),
    words: None,
    effect: NO_EFFECT,
};
