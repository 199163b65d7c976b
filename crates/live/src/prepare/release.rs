//! Free pages on CPUs' own lists, given back to the free lists.
//!
//! From Linux 6.7 on such a list may hold a sixteenth of a zone and more, in single pages: after
//! somebody has freed a lot of memory, hundreds of MiB lie there. No free block forms around them,
//! and pages that compaction frees go there as well. So their limit
//! (`vm.percpu_pagelist_high_fraction`) is set to the least there is while pages are moved; and
//! since a list that nothing is freed to shrinks only once a second, by an eighth or 2,016 pages,
//! `vm.stat_refresh` is read, which makes every CPU do that second's work at once.

use crate::error::ReadError;
use crate::roots::{self, Roots};
use kontig_procfs::ZoneInfo;
use std::path::{Path, PathBuf};

/// The setting of the part of a zone that the lists may hold; from Linux 5.14 on.
pub fn limit(roots: &Roots) -> PathBuf {
    roots.proc("sys/vm/percpu_pagelist_high_fraction")
}

/// The smallest part: lists hold four batches then.
pub const LEAST: &str = "2147483647";

/// The file whose read makes each CPU do the work of a second. For root; from Linux 4.7 on. `None`
/// where there is none, and where CPUs are kept for programs of their own: the read disturbs these,
/// and waits for ever for one whose program never gives it up. Nor where that cannot be read.
pub fn refresh(roots: &Roots) -> Option<PathBuf> {
    let path = roots.proc("sys/vm/stat_refresh");
    (path.exists() && isolates_no_cpu(roots)).then_some(path)
}

/// Whether no CPU is kept for programs of its own, as far as that can be read: a container may not
/// see the lists. A kernel without `nohz_full` has no such list, and writes `(null)` for one that
/// was never made.
fn isolates_no_cpu(roots: &Roots) -> bool {
    let list = |name: &str| roots.read_sys(format!("devices/system/cpu/{name}"));
    let is_empty = |text: &String| matches!(text.trim(), "" | "(null)");
    list("isolated").is_ok_and(|text| is_empty(&text)) && list("nohz_full").map_or(true, |text| is_empty(&text))
}

/// Reads at most. A list with a sixteenth of a terabyte takes more; such a host can wait for the
/// kernel.
const ROUNDS: u32 = 256;
/// Rounds in a row without gain before it stops: others go on freeing meanwhile.
const IDLE_ROUNDS: u32 = 3;

/// Shrinks the lists until they do not get shorter; `stop` ends it early. Returns the pages given
/// back.
///
/// # Errors
/// If a file cannot be read.
pub fn all(roots: &Roots, path: &Path, stop: impl Fn() -> bool) -> Result<u64, ReadError> {
    let before = cached(roots)?;
    let (mut least, mut idle) = (before, 0);
    for _ in 0..ROUNDS {
        if idle == IDLE_ROUNDS || stop() {
            break;
        }
        roots::read(path)?;
        let now = cached(roots)?;
        idle = if now < least { 0 } else { idle + 1 };
        least = least.min(now);
    }
    Ok(before - least)
}

/// Free pages on CPUs' lists.
fn cached(roots: &Roots) -> Result<u64, ReadError> {
    let zones = roots.parse_proc("zoneinfo", ZoneInfo::parse)?;
    let sets = zones.zones.iter().filter_map(|z| z.populated.as_ref()).flat_map(|p| &p.cpus);
    Ok(sets.filter_map(|set| set.lists.get("count")).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_host_with_isolated_cpus_is_not_asked_for_work_on_every_cpu() {
        let tree = tempfile::tempdir().expect("a directory");
        let roots = Roots { procfs: tree.path().join("proc"), sysfs: tree.path().join("sys") };
        assert_eq!(refresh(&roots), None, "there is no such file");
        fs::create_dir_all(roots.proc("sys/vm")).expect("made");
        fs::write(roots.proc("sys/vm/stat_refresh"), "").expect("written");
        assert_eq!(refresh(&roots), None, "nobody says that no CPU is isolated");
        let cpus = roots.sys("devices/system/cpu");
        fs::create_dir_all(&cpus).expect("made");
        fs::write(cpus.join("isolated"), "\n").expect("written");
        assert!(refresh(&roots).is_some(), "the kernel has no nohz_full");
        for (isolated, nohz_full, asked) in
            [("\n", "(null)\n", true), ("\n", "\n", true), ("2-3\n", "(null)\n", false), ("\n", "1\n", false)]
        {
            fs::write(cpus.join("isolated"), isolated).expect("written");
            fs::write(cpus.join("nohz_full"), nohz_full).expect("written");
            assert_eq!(refresh(&roots).is_some(), asked, "{isolated:?} {nohz_full:?}");
        }
    }
}
