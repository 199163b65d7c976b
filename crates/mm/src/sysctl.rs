//! The tunables under `/proc/sys/vm`, by the kernel's names and ranges (kernel-behaviour §7.8), and
//! those of huge pages (`thp`)
//! and of generations (`lru_gen`).
//!
//! [`SYSCTLS`] says everything about them: which kernels have one, its range, and the effect of a
//! write. Whoever writes, reads or lists them uses it. A machine also knows which of its settings
//! made a difference: each decision that a value takes part in is repeated with the value set at
//! boot ([`Memory::sysctl_mattered`]).

mod dirty;
mod lru_gen;
mod node_reclaim;
mod thp;

pub(crate) use node_reclaim::{MIN_SLAB_RATIO, MIN_UNMAPPED_RATIO, ZONE_RECLAIM_MODE};
pub(crate) use thp::at_boot;

use crate::rules::{Generations, ProactiveScore, Profile};
use crate::state::{Memory, SYSCTL_COUNT, Shared, Tunables, Watermarks};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// The part of a write that is the host's to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SysctlEffect {
    None,
    /// Run `compact_memory`: a full compaction of every node.
    CompactMemory,
    /// Wake every node's kcompactd for a proactive check (6.1 on a non-zero proactiveness).
    WakeKcompactd,
}

/// Why a sysctl could not be written or read. It was not changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SysctlError {
    /// No modelled kernel has it.
    Unknown { name: String },
    /// Only other kernels have it.
    Absent { name: &'static str, profile: String },
    /// The kernel has it, and what it does there is not modelled.
    NotModelled { name: &'static str, profile: String },
    NoSuchWord {
        name: &'static str,
        value: String,
        /// The profile, if other kernels have the word.
        lacks: Option<String>,
        /// The words of this kernel.
        words: String,
    },
    /// Not a number, or outside the range.
    Invalid { name: &'static str, value: String, min: u32, max: u32 },
}

impl fmt::Display for SysctlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SysctlError::Unknown { name } => write!(f, "unknown sysctl '{name}'"),
            SysctlError::Absent { name, profile } => write!(f, "{name}: profile '{profile}' does not have it"),
            SysctlError::NotModelled { name, profile } => {
                write!(f, "{name}: what it does in profile '{profile}' is not modelled")
            }
            SysctlError::NoSuchWord { name, value, lacks: Some(profile), words } => {
                write!(f, "{name}: profile '{profile}' does not have '{value}', only {words}")
            }
            SysctlError::NoSuchWord { name, value, lacks: None, words } => {
                write!(f, "{name}: '{value}' is none of {words}")
            }
            SysctlError::Invalid { name, value, min, max } if min == max => {
                write!(f, "{name}: '{value}' is not {min}, all that can be written to it")
            }
            SysctlError::Invalid { name, value, min, max } if *max == u32::MAX && !is_large(value) => {
                write!(f, "{name}: '{value}' is not a whole number of at least {min}")
            }
            SysctlError::Invalid { name, value, min, max } => {
                write!(f, "{name}: '{value}' is not a whole number from {min} to {max}")
            }
        }
    }
}

/// Whether it is a number; if it is invalid, it is then too large.
fn is_large(value: &str) -> bool {
    value.bytes().all(|b| b.is_ascii_digit())
}

impl core::error::Error for SysctlError {}

/// A tunable of the kernel.
pub struct Sysctl {
    /// With its prefix, `vm.`, `thp.` or `lru_gen.`.
    pub name: &'static str,
    /// The effect, without range and default.
    pub summary: &'static str,
    /// `None` if a write only triggers an action and keeps nothing.
    setting: Option<Setting>,
    exists: fn(&Profile) -> bool,
    range: fn(&Profile) -> (u32, u32),
    /// If it takes words instead of numbers. Its value is the index of a word.
    words: Option<Words>,
    effect: fn(&Profile, u32) -> SysctlEffect,
}

struct Words {
    /// Those of all kernels, in the kernel's order.
    all: &'static [&'static str],
    /// Whether a kernel has the word at this index.
    has: fn(&Profile, u32) -> bool,
}

impl Words {
    /// The words of one kernel.
    fn of(&self, profile: &Profile) -> impl Iterator<Item = &'static str> {
        let has = |(place, _): &(u32, &&str)| (self.has)(profile, *place);
        (0..).zip(self.all).filter(has).map(|(_, word)| *word).collect::<Vec<_>>().into_iter()
    }
}

struct Setting {
    get: fn(&Tunables) -> u32,
    set: fn(&mut Tunables, u32),
    /// Boot computes it from the machine's size.
    computed: bool,
    decides: Decides,
}

/// The effect of a value, which decides how to tell whether it made a difference.
#[derive(Clone, Copy, PartialEq)]
enum Decides {
    /// The zones' marks, computed at the write.
    Marks,
    /// Only the decisions made through [`Shared::decide`].
    WhatIsAsked,
    /// Something in every allocation.
    Everything,
    /// The lists that reclaim takes pages from, on a machine that reclaims.
    Lists,
    /// Nothing, because the engine lacks the pages it is about.
    Nothing,
}

const ALWAYS: fn(&Profile) -> bool = |_| true;
const NO_EFFECT: fn(&Profile, u32) -> SysctlEffect = |_, _| SysctlEffect::None;

static COMPACT_MEMORY: Sysctl = Sysctl {
    name: "vm.compact_memory",
    summary: "compact every zone completely",
    setting: None,
    exists: ALWAYS,
    range: |_| (1, 1),
    words: None,
    effect: |_, _| SysctlEffect::CompactMemory,
};

static COMPACT_UNEVICTABLE_ALLOWED: Sysctl = Sysctl {
    name: "vm.compact_unevictable_allowed",
    summary: "whether mlocked pages may be migrated; no page is mlocked here",
    setting: Some(Setting {
        get: |t| u32::from(t.compact_unevictable_allowed),
        set: |t, n| t.compact_unevictable_allowed = n == 1,
        computed: false,
        decides: Decides::Nothing,
    }),
    exists: |p| p.compaction.moves_locked,
    range: |_| (0, 1),
    words: None,
    effect: NO_EFFECT,
};

pub(crate) static COMPACTION_PROACTIVENESS: Sysctl = Sysctl {
    name: "vm.compaction_proactiveness",
    summary: "how hard kcompactd works ahead of need",
    setting: Some(Setting {
        get: |t| t.compaction_proactiveness,
        set: |t, n| t.compaction_proactiveness = n,
        computed: false,
        decides: Decides::WhatIsAsked,
    }),
    exists: |p| p.proactive.score != ProactiveScore::Off,
    range: |_| (0, 100),
    words: None,
    effect: |p, n| match p.proactive.write_wakes && n > 0 {
        true => SysctlEffect::WakeKcompactd,
        false => SysctlEffect::None,
    },
};

static DEFRAG_MODE: Sysctl = Sysctl {
    name: "vm.defrag_mode",
    summary: "reclaim and compact before splitting foreign pageblocks",
    setting: Some(Setting {
        get: |t| u32::from(t.defrag_mode),
        set: |t, n| t.defrag_mode = n == 1,
        computed: false,
        decides: Decides::Everything,
    }),
    exists: |p| p.fallback.defrag_mode,
    range: |_| (0, 1),
    words: None,
    effect: NO_EFFECT,
};

pub(crate) static EXTFRAG_THRESHOLD: Sysctl = Sysctl {
    name: "vm.extfrag_threshold",
    summary: "fragmentation index up to which a failure is put down to lack of memory, and nothing is compacted",
    setting: Some(Setting {
        get: |t| t.extfrag_threshold,
        set: |t, n| t.extfrag_threshold = n,
        computed: false,
        decides: Decides::WhatIsAsked,
    }),
    exists: ALWAYS,
    range: |_| (0, 1000),
    words: None,
    effect: NO_EFFECT,
};

static MIN_FREE_KBYTES: Sysctl = Sysctl {
    name: "vm.min_free_kbytes",
    summary: "kB kept free; sets the min watermarks",
    setting: Some(Setting {
        get: |t| t.min_free_kbytes,
        set: |t, n| t.min_free_kbytes = n,
        computed: true,
        decides: Decides::Marks,
    }),
    exists: ALWAYS,
    range: |_| (0, u32::MAX),
    words: None,
    effect: NO_EFFECT,
};

pub(crate) static SWAPPINESS: Sysctl = Sysctl {
    name: "vm.swappiness",
    summary: "how readily anonymous pages are reclaimed instead of file pages",
    setting: Some(Setting {
        get: |t| t.swappiness,
        set: |t, n| t.swappiness = n,
        computed: false,
        decides: Decides::WhatIsAsked,
    }),
    exists: ALWAYS,
    range: |p| (0, p.reclaim.swappiness_max),
    words: None,
    effect: NO_EFFECT,
};

pub(crate) static WATERMARK_BOOST_FACTOR: Sysctl = Sysctl {
    name: "vm.watermark_boost_factor",
    summary: "1/10,000 of the high mark that fragmenting fallbacks may add to the marks",
    setting: Some(Setting {
        get: |t| t.watermark_boost_factor,
        set: |t, n| t.watermark_boost_factor = n,
        computed: false,
        decides: Decides::WhatIsAsked,
    }),
    exists: |p| p.boost.raises_marks,
    range: |_| (0, u32::MAX),
    words: None,
    effect: NO_EFFECT,
};

pub(crate) static FRAGMENT_STALL_ORDER: Sysctl = Sysctl {
    name: "vm.fragment_stall_order",
    summary: "movable requests rather wait than take foreign blocks below this order",
    setting: Some(Setting {
        get: |t| t.fragment_stall_order,
        set: |t, n| t.fragment_stall_order = n,
        computed: false,
        decides: Decides::WhatIsAsked,
    }),
    exists: |p| p.fallback.stalls_movable,
    range: |_| (0, 11),
    words: None,
    effect: NO_EFFECT,
};

static WATERMARK_SCALE_FACTOR: Sysctl = Sysctl {
    name: "vm.watermark_scale_factor",
    summary: "1/10,000 of a zone between watermarks",
    setting: Some(Setting {
        get: |t| t.watermark_scale_factor,
        set: |t, n| t.watermark_scale_factor = n,
        computed: false,
        decides: Decides::Marks,
    }),
    exists: |p| p.watermark.spaced_by_size,
    range: |p| (1, p.watermark.scale_factor_max),
    words: None,
    effect: NO_EFFECT,
};

/// All sysctls of all kernels, by name.
pub static SYSCTLS: [&Sysctl; SYSCTL_COUNT] = [
    &COMPACT_MEMORY,
    &COMPACT_UNEVICTABLE_ALLOWED,
    &COMPACTION_PROACTIVENESS,
    &DEFRAG_MODE,
    &dirty::BACKGROUND_BYTES,
    &dirty::BACKGROUND_RATIO,
    &dirty::BYTES,
    &dirty::EXPIRE,
    &dirty::RATIO,
    &dirty::WRITEBACK,
    &EXTFRAG_THRESHOLD,
    &MIN_FREE_KBYTES,
    &MIN_SLAB_RATIO,
    &MIN_UNMAPPED_RATIO,
    &SWAPPINESS,
    &WATERMARK_BOOST_FACTOR,
    &FRAGMENT_STALL_ORDER,
    &WATERMARK_SCALE_FACTOR,
    &ZONE_RECLAIM_MODE,
    &lru_gen::ENABLED,
    &thp::DEFRAG,
    &thp::ENABLED,
    &thp::KHUGEPAGED_ALLOC_SLEEP,
    &thp::KHUGEPAGED_DEFRAG,
    &thp::KHUGEPAGED_MAX_PTES_NONE,
    &thp::KHUGEPAGED_MAX_PTES_SHARED,
    &thp::KHUGEPAGED_MAX_PTES_SWAP,
    &thp::KHUGEPAGED_PAGES_TO_SCAN,
    &thp::KHUGEPAGED_SCAN_SLEEP,
];

impl Sysctl {
    /// The sysctl of this name; the `vm.` prefix may be missing.
    pub fn find(name: &str) -> Option<&'static Sysctl> {
        let short = name.strip_prefix("vm.").unwrap_or(name);
        SYSCTLS.iter().copied().find(|s| s.short_name() == short)
    }

    /// The kernel's name for what goes by this one; the name itself if nothing does.
    pub fn full_name(name: &str) -> &str {
        Sysctl::find(name).map_or(name, |sysctl| sysctl.name)
    }

    /// The name without `vm.`.
    pub fn short_name(&self) -> &'static str {
        self.name.strip_prefix("vm.").unwrap_or(self.name)
    }

    fn position(&self) -> usize {
        SYSCTLS.iter().position(|s| core::ptr::eq(*s, self)).expect("every sysctl is listed")
    }

    /// Whether the kernel of a profile has it.
    pub fn exists(&self, profile: &Profile) -> bool {
        (self.exists)(profile)
    }

    /// The smallest and the largest value a kernel takes.
    pub fn range(&self, profile: &Profile) -> (u32, u32) {
        (self.range)(profile)
    }

    /// The words that a kernel takes; `None` if it takes numbers.
    pub fn words(&self, profile: &Profile) -> Option<impl Iterator<Item = &'static str>> {
        self.words.as_ref().map(|words| words.of(profile))
    }

    /// A value in the form in which it is read.
    pub fn text_of(&self, value: u32) -> String {
        let word = self.words.as_ref().and_then(|words| words.all.get(value as usize));
        word.map_or_else(|| value.to_string(), |word| word.to_string())
    }

    /// Whether a write is kept; otherwise it only triggers an action.
    pub fn is_setting(&self) -> bool {
        self.setting.is_some()
    }

    /// The value that boot sets on every machine; `None` if it depends on the machine, or nothing
    /// is kept.
    pub fn default_value(&self) -> Option<u32> {
        self.setting.as_ref().filter(|s| !s.computed).map(|s| (s.get)(&Tunables::default()))
    }

    /// The value that a text stands for, if this kernel takes it.
    ///
    /// # Errors
    /// If the kernel does not have it, or the text is not a number of its range.
    pub fn parse(&self, profile: &Profile, text: &str) -> Result<u32, SysctlError> {
        if core::ptr::eq(self, &lru_gen::ENABLED) && profile.lru_gen.generations == Generations::Unmodelled {
            return Err(SysctlError::NotModelled { name: self.name, profile: profile.name.clone() });
        }
        if !self.exists(profile) {
            return Err(SysctlError::Absent { name: self.name, profile: profile.name.clone() });
        }
        if let Some(words) = &self.words {
            let place = words.all.iter().position(|word| *word == text.trim()).map(|place| place as u32);
            return place.filter(|place| (words.has)(profile, *place)).ok_or_else(|| SysctlError::NoSuchWord {
                name: self.name,
                value: text.to_string(),
                lacks: place.map(|_| profile.name.clone()),
                words: words.of(profile).collect::<Vec<_>>().join(", "),
            });
        }
        let (min, max) = self.range(profile);
        let number = text.trim().parse::<u32>().ok().filter(|n| (min..=max).contains(n));
        number.ok_or_else(|| SysctlError::Invalid { name: self.name, value: text.to_string(), min, max })
    }
}

impl Shared {
    /// A decision by a sysctl's value. Notes whether the value set at boot would have decided
    /// otherwise.
    #[inline]
    pub(crate) fn decide<T: PartialEq>(&mut self, by: &'static Sysctl, decision: impl Fn(u32) -> T) -> T {
        let setting = by.setting.as_ref().expect("a sysctl that decides has a value");
        debug_assert!(setting.decides == Decides::WhatIsAsked);
        let (now, at_boot) = ((setting.get)(&self.tunables), (setting.get)(&self.at_boot));
        let decided = decision(now);
        if now != at_boot && decision(at_boot) != decided {
            self.mattered[by.position()] = true;
        }
        decided
    }
}

impl Memory {
    /// The tunables in force.
    pub fn tunables(&self) -> &Tunables {
        &self.shared.tunables
    }

    /// Writes a sysctl by its name; the `vm.` prefix may be missing. An error changes nothing.
    ///
    /// # Errors
    /// If the profile has no such sysctl, or the sysctl does not take the value.
    pub fn sysctl_write(&mut self, name: &str, value: &str) -> Result<SysctlEffect, SysctlError> {
        let sysctl = Sysctl::find(name).ok_or_else(|| SysctlError::Unknown { name: name.to_string() })?;
        let n = sysctl.parse(&self.shared.profile, value)?;
        if let Some(setting) = &sysctl.setting {
            (setting.set)(&mut self.shared.tunables, n);
            match setting.decides {
                Decides::Marks => {
                    self.note_marks(sysctl);
                    self.setup_watermarks();
                    self.setup_fixed_reserve();
                }
                Decides::Everything => {
                    let differs = n != (setting.get)(&self.shared.at_boot);
                    self.note(sysctl, differs);
                }
                Decides::Lists => {
                    let differs = n != (setting.get)(&self.shared.at_boot) && self.lru.is_ordered();
                    self.note(sysctl, differs);
                }
                Decides::WhatIsAsked | Decides::Nothing => {}
            }
        }
        if core::ptr::eq(sysctl, &lru_gen::ENABLED) {
            self.set_lru_gen(self.shared.tunables.lru_gen.is_on(), core::iter::empty());
        }
        if core::ptr::eq(sysctl, &thp::ENABLED) {
            self.raise_min_free_for_huge_pages();
        }
        Ok((sysctl.effect)(&self.shared.profile, n))
    }

    /// A sysctl's current value; `None` if this kernel does not have it or it keeps none.
    pub fn sysctl_read(&self, sysctl: &Sysctl) -> Option<u32> {
        let setting = sysctl.setting.as_ref().filter(|_| sysctl.exists(&self.shared.profile))?;
        Some((setting.get)(&self.shared.tunables))
    }

    /// The value set at boot; `None` as for [`Memory::sysctl_read`].
    pub fn sysctl_at_boot(&self, sysctl: &Sysctl) -> Option<u32> {
        let setting = sysctl.setting.as_ref().filter(|_| sysctl.exists(&self.shared.profile))?;
        Some((setting.get)(&self.shared.at_boot))
    }

    /// Takes the settings in force as those of boot: they are what a host had when its memory was
    /// imported, and what is set from now on differs from them or not.
    pub fn begin_with_settings_in_force(&mut self) {
        self.shared.at_boot = self.shared.tunables;
        self.shared.mattered = Default::default();
    }

    /// Whether a setting may have made a difference to the machine. If not, every decision so far
    /// was the same as with the value set at boot (and the other settings as they are), and so is
    /// the machine.
    pub fn sysctl_mattered(&self, sysctl: &Sysctl) -> bool {
        self.shared.mattered[sysctl.position()]
    }

    /// Whether the memory has been used since boot.
    fn is_at_work(&self) -> bool {
        self.shared.vmstat.iter().any(|(_, n)| n > 0)
    }

    /// Notes whether a setting makes a difference from now on. A difference that it made to a
    /// machine at work stands.
    fn note(&mut self, sysctl: &Sysctl, differs: bool) {
        let forget = !self.is_at_work();
        let mattered = &mut self.shared.mattered[sysctl.position()];
        *mattered = differs || *mattered && !forget;
    }

    /// Notes which of the settings behind the marks make a difference to them after a write. On a
    /// machine at work the write itself does: it ends boosts.
    fn note_marks(&mut self, written: &Sysctl) {
        let at_work = self.is_at_work();
        let marks = self.marks_under(&self.shared.tunables);
        for sysctl in SYSCTLS {
            let Some(setting) = sysctl.setting.as_ref().filter(|s| s.decides == Decides::Marks) else { continue };
            let mut without = self.shared.tunables;
            (setting.set)(&mut without, (setting.get)(&self.shared.at_boot));
            let ends_boosts = at_work && core::ptr::eq(sysctl, written);
            let differs = ends_boosts || self.marks_under(&without) != marks;
            self.note(sysctl, differs);
        }
    }

    fn marks_under(&self, tunables: &Tunables) -> Vec<Watermarks> {
        self.zones.iter().map(|z| self.marks_of(z, tunables)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::linux;

    fn profiles() -> [Profile; 3] {
        ["5.6", "6.1", "7.2"].map(linux)
    }

    #[test]
    fn a_name_is_found_with_and_without_its_prefix_and_no_other_is() {
        for s in SYSCTLS {
            assert!(core::ptr::eq(Sysctl::find(s.name).unwrap(), s));
            assert!(core::ptr::eq(Sysctl::find(s.short_name()).unwrap(), s));
        }
        for none in
            ["", "vm.", "vm.vm.defrag_mode", "kernel.defrag_mode", "defrag_mod", "vm.percpu_pagelist_high_fraction"]
        {
            assert!(Sysctl::find(none).is_none(), "{none}");
        }
    }

    #[test]
    fn defaults_are_in_range_in_every_kernel_and_a_read_returns_the_written_value() {
        for s in SYSCTLS {
            let Some(setting) = &s.setting else { continue };
            for p in profiles() {
                let (min, max) = s.range(&p);
                assert!(s.default_value().is_none_or(|d| (min..=max).contains(&d)), "{}", s.name);
                for n in [min, max] {
                    let mut t = Tunables::default();
                    (setting.set)(&mut t, n);
                    assert_eq!((setting.get)(&t), n, "{}", s.name);
                    (setting.set)(&mut t, (setting.get)(&Tunables::default()));
                    assert_eq!(t, Tunables::default(), "{} sets nothing else", s.name);
                }
            }
        }
    }

    fn mattered(m: &Memory) -> Vec<&'static str> {
        SYSCTLS.iter().filter(|s| m.sysctl_mattered(s)).map(|s| s.name).collect()
    }

    /// A machine that has allocated a page and freed it.
    fn at_work(profile: Profile) -> Memory {
        let mut m = crate::testing::machine_with(64, profile);
        let (cpu, node) = (crate::CpuId::new(0), crate::NodeId::default());
        let pfn = m.alloc(crate::Request::new(cpu, node, crate::Gfp::KERNEL, crate::Order::ZERO)).expect("a page");
        m.free(cpu, pfn, crate::Order::ZERO);
        m
    }

    #[test]
    fn on_a_machine_at_work_the_setting_behind_the_marks_that_was_written_matters_and_the_other_does_not() {
        for written in [&MIN_FREE_KBYTES, &WATERMARK_SCALE_FACTOR] {
            let mut m = at_work(linux("6.1"));
            let as_it_is = m.sysctl_read(written).expect("a setting").to_string();
            assert_eq!(mattered(&m), [""; 0]);
            m.sysctl_write(written.name, &as_it_is).expect("a value it has");
            assert_eq!(mattered(&m), [written.name]);
        }
    }

    #[test]
    fn a_setting_that_was_in_force_at_work_mattered_even_if_it_is_set_back() {
        let mut m = at_work(linux("7.2"));
        m.sysctl_write("vm.defrag_mode", "1").expect("7.2 has it");
        m.sysctl_write("vm.defrag_mode", "0").expect("7.2 has it");
        assert_eq!(mattered(&m), ["vm.defrag_mode"]);
        // No decision has been taken by it yet.
        let mut m = crate::testing::machine_with(64, linux("7.2"));
        for (value, then) in [("1", &["vm.defrag_mode"][..]), ("0", &[])] {
            m.sysctl_write("vm.defrag_mode", value).expect("7.2 has it");
            assert_eq!(mattered(&m), then);
        }
    }

    #[test]
    fn the_range_and_the_existence_are_the_kernels() {
        let [old, middle, new] = profiles();
        let refused = |s: &Sysctl, p: &Profile, text: &str| s.parse(p, text).unwrap_err().to_string();
        assert_eq!(refused(&DEFRAG_MODE, &middle, "1"), "vm.defrag_mode: profile '6.1' does not have it");
        assert_eq!(DEFRAG_MODE.parse(&new, "1"), Ok(1));
        assert!(!COMPACTION_PROACTIVENESS.exists(&old) && COMPACTION_PROACTIVENESS.exists(&middle));
        assert_eq!(WATERMARK_SCALE_FACTOR.parse(&middle, " 3000\n"), Ok(3000));
        assert_eq!(
            refused(&WATERMARK_SCALE_FACTOR, &old, "3000"),
            "vm.watermark_scale_factor: '3000' is not a whole number from 1 to 1000"
        );
        assert_eq!(
            refused(&MIN_FREE_KBYTES, &old, "-1"),
            "vm.min_free_kbytes: '-1' is not a whole number of at least 0"
        );
        assert_eq!(
            refused(&MIN_FREE_KBYTES, &middle, "4294967296"),
            "vm.min_free_kbytes: '4294967296' is not a whole number from 0 to 4294967295"
        );
        assert_eq!(
            refused(&COMPACT_MEMORY, &old, "2"),
            "vm.compact_memory: '2' is not 1, all that can be written to it"
        );
    }
}
