//! The tunables under `/proc/sys/vm`, by the kernel's names and ranges (kernel-behaviour §7.8).

use crate::memory::Memory;
use crate::profile::ProactiveRules;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

/// The values in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tunables {
    /// `vm.min_free_kbytes`, kB.
    pub min_free_kbytes: u32,
    /// `vm.watermark_scale_factor`, in 1/10,000 of a zone.
    pub watermark_scale_factor: u32,
    /// `vm.watermark_boost_factor`, in 1/10,000 of the high mark.
    pub watermark_boost_factor: u32,
    /// `vm.extfrag_threshold`: up to this fragmentation index, lack of memory is to blame.
    pub extfrag_threshold: u32,
    /// `vm.compaction_proactiveness`, 0 (off) to 100.
    pub compaction_proactiveness: u32,
    /// `vm.defrag_mode`: keep pageblocks whole before anything else.
    pub defrag_mode: bool,
    /// `vm.compact_unevictable_allowed`: whether mlocked pages may be migrated.
    pub compact_unevictable_allowed: bool,
}

impl Default for Tunables {
    fn default() -> Self {
        Tunables {
            min_free_kbytes: 0,
            watermark_scale_factor: 10,
            watermark_boost_factor: 15_000,
            extfrag_threshold: 500,
            compaction_proactiveness: 20,
            defrag_mode: false,
            compact_unevictable_allowed: true,
        }
    }
}

/// What a write asks the host to do beyond the engine's own state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SysctlEffect {
    /// Nothing more.
    None,
    /// Run `compact_memory`: a full compaction of every node.
    CompactMemory,
    /// Wake every node's kcompactd for a proactive check (6.1 on a non-zero proactiveness).
    WakeKcompactd,
}

/// Why a sysctl could not be written; nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SysctlError {
    /// No such sysctl in this profile.
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// Not a number, or outside the range.
    Invalid {
        /// The sysctl.
        name: &'static str,
        /// What was to be written.
        value: String,
        /// Smallest value allowed.
        min: u32,
        /// Largest value allowed.
        max: u32,
    },
}

impl fmt::Display for SysctlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SysctlError::Unknown { name } => write!(f, "unknown sysctl '{name}'"),
            SysctlError::Invalid { name, value, min, max } if *max == u32::MAX => {
                write!(f, "{name}: '{value}' is not a whole number of at least {min}")
            }
            SysctlError::Invalid { name, value, min, max } => {
                write!(f, "{name}: '{value}' is not a whole number from {min} to {max}")
            }
        }
    }
}

impl core::error::Error for SysctlError {}

/// The sysctls a machine has, with a line each.
pub const SYSCTLS: &[(&str, &str)] = &[
    ("vm.compact_memory", "write 1: compact every zone completely"),
    ("vm.compact_unevictable_allowed", "0..1, whether mlocked pages may be migrated (default 1)"),
    ("vm.compaction_proactiveness", "0..100, how hard kcompactd works ahead of need (default 20)"),
    ("vm.defrag_mode", "0..1, reclaim and compact before splitting foreign pageblocks (default 0; profile 7.2)"),
    ("vm.extfrag_threshold", "0..1000, fragmentation index up to which lack of memory is blamed (default 500)"),
    ("vm.min_free_kbytes", "kB kept free; sets the min watermarks (default: computed)"),
    ("vm.watermark_boost_factor", "1/10,000 of the high mark a fragmenting fallback may add (default 15000)"),
    ("vm.watermark_scale_factor", "1/10,000 of a zone between watermarks (default 10)"),
];

impl Memory {
    /// The tunables in force.
    pub fn tunables(&self) -> &Tunables {
        &self.sh.tunables
    }

    /// Writes a sysctl by its name, with or without the `vm.` prefix. An error changes nothing.
    pub fn sysctl_write(&mut self, name: &str, value: &str) -> Result<SysctlEffect, SysctlError> {
        let unknown = || SysctlError::Unknown { name: name.to_string() };
        let short = name.strip_prefix("vm.").unwrap_or(name);
        let full = SYSCTLS.iter().map(|(n, _)| *n).find(|n| &n[3..] == short).ok_or_else(unknown)?;
        if short == "compaction_proactiveness" && self.sh.profile.proactive == ProactiveRules::Off {
            return Err(SysctlError::Unknown {
                name: format!("{name}' (no proactive compaction in profile '{}", self.sh.profile.name),
            });
        }
        if short == "defrag_mode" && !self.sh.profile.defrag_mode {
            return Err(SysctlError::Unknown { name: format!("{name}' (not in profile '{}", self.sh.profile.name) });
        }
        let (min, max) = match short {
            "compact_memory" => (1, 1),
            "compact_unevictable_allowed" | "defrag_mode" => (0, 1),
            "compaction_proactiveness" => (0, 100),
            "extfrag_threshold" => (0, 1000),
            "watermark_scale_factor" => (1, self.sh.profile.watermark_scale_factor_max),
            _ => (0, u32::MAX),
        };
        let n = value
            .trim()
            .parse::<u32>()
            .ok()
            .filter(|n| (min..=max).contains(n))
            .ok_or_else(|| SysctlError::Invalid { name: full, value: value.to_string(), min, max })?;
        let t = &mut self.sh.tunables;
        match short {
            "compact_memory" => return Ok(SysctlEffect::CompactMemory),
            "compact_unevictable_allowed" => t.compact_unevictable_allowed = n == 1,
            "compaction_proactiveness" => {
                t.compaction_proactiveness = n;
                let triggers = [ProactiveRules::Unweighted, ProactiveRules::HalfLeeway];
                if n > 0 && triggers.contains(&self.sh.profile.proactive) {
                    return Ok(SysctlEffect::WakeKcompactd);
                }
            }
            "defrag_mode" => t.defrag_mode = n == 1,
            "extfrag_threshold" => t.extfrag_threshold = n,
            "watermark_boost_factor" => t.watermark_boost_factor = n,
            "min_free_kbytes" => {
                t.min_free_kbytes = n;
                self.setup_watermarks();
            }
            _ => {
                t.watermark_scale_factor = n;
                self.setup_watermarks();
            }
        }
        Ok(SysctlEffect::None)
    }
}
