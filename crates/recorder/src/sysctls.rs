//! Checks sysctls before the kernel is booted.
//!
//! Names under `vm` were read from a booted kernel of each series (`crates/procfs/kernels/read`).
//! For those that the engine implements, the range is checked as well; the rest is up to the
//! kernel.

use crate::error::RecordError;
use crate::kernel::Series;
use kontig_mm::sysctl::Sysctl;

/// The switch of the multi-generational LRU. It is not below `/proc/sys`.
pub(super) const LRU_GEN: &str = "lru_gen.enabled";

impl Series {
    fn sysctls(self) -> impl Iterator<Item = &'static str> {
        self.sysctl_lines().lines()
    }
}

/// Whether a kernel of this series has it. What it does not have is off.
pub(super) fn exists(name: &str, series: Series) -> bool {
    name.strip_prefix("vm.").is_none_or(|short| series.sysctls().any(|known| known == short))
}

/// Refuses a sysctl that a kernel of this series would refuse.
///
/// # Errors
/// One line: the mistake, and a value that is accepted.
pub(super) fn check(name: &str, value: &str, series: Series) -> Result<(), RecordError> {
    let refuse = |reason: String| Err(RecordError::Asked(format!("--set {name}={value}: {reason}")));
    // Names and values pass through a shell and become paths under /proc/sys.
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let word = |s: &str| !s.is_empty() && s.chars().all(fine);
    let digits = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_digit());
    if name.split('.').count() < 2 || !name.split('.').all(word) {
        return refuse("is no sysctl's name, such as vm.defrag_mode".into());
    }
    if !digits(value.strip_prefix('-').unwrap_or(value)) {
        return refuse("the value is not a number".into());
    }
    let profile = kontig_profiles::linux(series.name());
    match name.strip_prefix("vm.") {
        Some(short) if !series.sysctls().any(|known| known == short) => {
            return refuse(format!("kernel {series} has no such sysctl{}", remedy(short, series)));
        }
        None if name != LRU_GEN => return Ok(()),
        None if !Sysctl::find(name).is_some_and(|sysctl| sysctl.exists(&profile)) => {
            return refuse("generations are recorded of 6.12 and 7.2; add --kernel 6.12 or --kernel 7.2".into());
        }
        _ => {}
    }
    match Sysctl::find(name) {
        Some(sysctl) if sysctl.parse(&profile, value).is_err() => {
            let takes = match sysctl.range(&profile) {
                (min, max) if min == max => format!("only {min}"),
                (min, u32::MAX) => format!("whole numbers from {min} on"),
                (min, max) => format!("whole numbers from {min} to {max}"),
            };
            refuse(format!("kernel {series} takes {takes}"))
        }
        _ => Ok(()),
    }
}

/// Suggests a kernel that has it, or the name probably meant.
fn remedy(short: &str, series: Series) -> String {
    let having: Vec<&str> =
        Series::ALL.into_iter().filter(|s| s.sysctls().any(|known| known == short)).map(Series::name).collect();
    if !having.is_empty() {
        return format!("; --kernel {} has it", having.join(" or "));
    }
    let known: Vec<&str> = series.sysctls().collect();
    kontig_profiles::nearest(short, &known).map_or(String::new(), |meant| format!("; did you mean vm.{meant}?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_mm::sysctl::SYSCTLS;

    fn refused(name: &str, value: &str) -> String {
        check(name, value, Series::V6_1).expect_err("refused").to_string()
    }

    #[test]
    fn values_that_the_kernel_would_refuse_are_refused_before_it_boots() {
        assert_eq!(
            refused("vm.watermark_bost_factor", "0"),
            "--set vm.watermark_bost_factor=0: kernel 6.1 has no such sysctl; did you mean vm.watermark_boost_factor?"
        );
        let having = "--set vm.defrag_mode=1: kernel 6.1 has no such sysctl; --kernel 7.2 or ";
        assert!(refused("vm.defrag_mode", "1").starts_with(having));
        assert!(refused("vm.swappiness", "201").ends_with("kernel 6.1 takes whole numbers from 0 to 200"));
        assert!(refused("vm.compact_memory", "2").ends_with("kernel 6.1 takes only 1"));
        for value in ["high", "", "-", "1-2", "$(x)"] {
            assert!(refused("vm.swappiness", value).ends_with("the value is not a number"), "{value}");
        }
        assert!(refused("lru_gen.enabled", "7").ends_with("add --kernel 6.12 or --kernel 7.2"));
        assert!(check("lru_gen.enabled", "9", Series::V7_2).is_err());
        assert!(refused("vm.min_free_kbytes", "-1").ends_with("takes whole numbers from 0 on"));
        assert!(refused("vm.x;reboot", "1").contains("is no sysctl's name"));
        assert!(refused("swappiness", "1").contains("is no sysctl's name"));
    }

    #[test]
    fn values_that_the_kernel_takes_are_accepted() {
        for (name, value) in [("vm.swappiness", "200"), ("vm.page-cluster", "0"), ("kernel.randomize_va_space", "0")] {
            check(name, value, Series::V6_1).expect("accepted");
        }
        check("vm.percpu_pagelist_fraction", "8", Series::V5_10).expect("5.10 has it");
        check("vm.percpu_pagelist_high_fraction", "8", Series::V7_2).expect("later kernels have this instead");
    }

    #[test]
    fn the_kernels_have_what_their_profiles_say() {
        for series in Series::ALL {
            let profile = kontig_profiles::linux(series.name());
            for sysctl in SYSCTLS.iter().filter(|s| s.name.starts_with("vm.")) {
                let has = series.sysctls().any(|known| known == sysctl.short_name());
                // Of node reclaim, old kernels have more than the engine has of them.
                let exists = sysctl.exists(&profile) || series.is_of_ubuntu() && has;
                assert_eq!(has, exists, "{} {series}", sysctl.name);
            }
        }
    }
}
