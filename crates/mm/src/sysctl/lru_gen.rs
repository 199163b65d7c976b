//! The switch of the multi-generational LRU: `/sys/kernel/mm/lru_gen/enabled`.
//!
//! The file is a mask: 1 keeps pages in generations, 2 also ages them by walks of page tables, 4
//! has a walk pass over tables that were not used. Source: kernel-behaviour §4.10.7.

use super::{Decides, NO_EFFECT, Setting, Sysctl};
use crate::Memory;
use crate::rules::Generations;
use crate::state::LruGen;

pub(super) static ENABLED: Sysctl = Sysctl {
    name: "lru_gen.enabled",
    summary: "generations of pages (1), aged by walks of page tables (2) that pass over unused ones (4)",
    setting: Some(Setting {
        get: |t| t.lru_gen.0,
        set: |t, n| t.lru_gen = LruGen(n),
        computed: true,
        decides: Decides::Lists,
    }),
    exists: |p| !matches!(p.lru_gen.generations, Generations::None | Generations::Unmodelled),
    range: |_| (0, LruGen::ALL.0),
    words: None,
    effect: NO_EFFECT,
};

impl Memory {
    /// Enables what distributions boot this kernel with. Call it before anything runs.
    pub fn boot_as_distributions_do(&mut self) {
        let profile = &self.shared.profile;
        if !profile.lru_gen.enabled || !ENABLED.exists(profile) {
            return;
        }
        self.shared.tunables.lru_gen = LruGen::ALL;
        self.shared.at_boot.lru_gen = LruGen::ALL;
        self.set_lru_gen(true, core::iter::empty());
    }
}
