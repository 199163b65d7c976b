//! Why memory is in small pages: the kernel's questions in the kernel's order.

use super::Files;
use crate::host::Host;
use crate::host::thp::Thp;
use kontig_procfs::smaps::Mapping;
use serde::Serialize;

/// Why a mapping's memory is in small pages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The kernel has no transparent huge pages, or does not say how large they are.
    NoHugePages,
    /// The process used `prctl(PR_SET_THP_DISABLE)`.
    TurnedOffForTheProcess,
    /// The mapping has `madvise(MADV_NOHUGEPAGE)`.
    Refused,
    /// A file of a file system.
    File,
    /// Shared memory, for which huge pages are off.
    SharedMemory,
    Never,
    /// `enabled` is `madvise`, and nobody advised it.
    NotAdvised,
    /// No aligned huge page fits into the mapping.
    TooSmall,
    /// The kernel says that it cannot have them, but not why.
    NotEligible,
    /// Only the ends are small, where no aligned huge page fits.
    Ends,
    /// Parts of it are swapped out: huge pages that are swapped come back as small ones.
    Swapped,
    /// It could be huge: there was no block at the first touch, or less was touched than a huge
    /// page, and khugepaged has not been there since.
    NotCollapsed,
}

/// The reason of a mapping that has `small` bytes in small pages, `aligned` bytes of which can be
/// huge.
pub(super) fn of(host: &Host, files: &Files, m: &Mapping, aligned: u64, small: u64) -> Reason {
    let Some(thp) = host.thp.as_ref().ok().filter(|thp| thp.pmd_size.is_some()) else { return Reason::NoHugePages };
    let advised = m.flag("hg");
    if files.status.get("THP_enabled") == Some("0") {
        return Reason::TurnedOffForTheProcess;
    }
    if m.flag("nh") {
        return Reason::Refused;
    }
    if is_shared_memory(m) {
        if !shared_memory_has_them(thp, advised) {
            return Reason::SharedMemory;
        }
    } else if m.inode != 0 {
        return Reason::File;
    } else {
        match thp.enabled_for(thp.pmd_size.unwrap_or(0)) {
            "never" => return Reason::Never,
            "madvise" if !advised => return Reason::NotAdvised,
            _ => {}
        }
    }
    match () {
        () if aligned == 0 => Reason::TooSmall,
        () if m.number("THPeligible") == Some(0) => Reason::NotEligible,
        () if (m.end - m.start).saturating_sub(aligned) >= small => Reason::Ends,
        () if m.kb("Swap").is_some_and(|kb| kb > 0) => Reason::Swapped,
        () => Reason::NotCollapsed,
    }
}

/// Whether memory is shared without a file on a disk, by the names that the kernel gives it.
fn is_shared_memory(m: &Mapping) -> bool {
    let names = ["/memfd:", "/SYSV", "/dev/shm/", "/dev/zero (deleted)", "/anon_hugepage"];
    m.inode != 0 && names.iter().any(|name| m.name.starts_with(name))
}

fn shared_memory_has_them(thp: &Thp, advised: bool) -> bool {
    match thp.shmem_enabled.as_ref().map(|choice| choice.chosen.as_str()) {
        Ok("always" | "within_size" | "force") => true,
        Ok("advise") => advised,
        _ => false,
    }
}

impl Reason {
    /// The reason in words, with this host's settings.
    pub fn text(self, host: &Host) -> String {
        let thp = host.thp.as_ref().ok();
        let shmem = thp.and_then(|thp| thp.shmem_enabled.as_ref().ok()).map_or("not told", |c| c.chosen.as_str());
        match self {
            Reason::NoHugePages => "this kernel has no transparent huge pages".into(),
            Reason::TurnedOffForTheProcess => {
                "turned off for the process, by prctl(PR_SET_THP_DISABLE) in it or in who started it".into()
            }
            Reason::Refused => "the program refused them with madvise(MADV_NOHUGEPAGE)".into(),
            Reason::File => "contents of files: they are huge only where the file system has large folios".into(),
            Reason::SharedMemory => format!("shared memory: transparent_hugepage/shmem_enabled is {shmem}"),
            Reason::Never => "transparent_hugepage/enabled is never".into(),
            Reason::NotAdvised => "transparent_hugepage/enabled is madvise, and the program has not called \
                madvise(MADV_HUGEPAGE)"
                .into(),
            Reason::TooSmall => "the mapping is too small, or lies so that no aligned huge page fits into it".into(),
            Reason::NotEligible => "the kernel says that the mapping can not have them (THPeligible is 0)".into(),
            Reason::Ends => "the ends of mappings, where no aligned huge page fits".into(),
            Reason::Swapped => "parts are swapped out: they come back in small pages".into(),
            Reason::NotCollapsed => thp.map_or_else(String::new, not_collapsed),
        }
    }
}

/// Words for the effort of a first touch to get a block, and for khugepaged's later.
fn not_collapsed(thp: &Thp) -> String {
    let defrag = thp.defrag.as_ref().map_or("not told", |choice| choice.chosen.as_str());
    let compacts = match defrag {
        "always" => "a first touch compacts if no block is free",
        "madvise" | "defer+madvise" => "a first touch compacts only where the program advised huge pages",
        _ => "a first touch takes small pages if no block is free",
    };
    let later = match (thp.khugepaged("pages_to_scan"), thp.khugepaged("scan_sleep_millisecs")) {
        (Some(pages), Some(ms)) => format!("khugepaged looks at {pages} pages every {} s", ms as f64 / 1000.0),
        _ => "khugepaged does not say how fast it is".into(),
    };
    let none = thp
        .khugepaged("max_ptes_none")
        .map_or(String::new(), |n| format!(" and collapses where at most {n} pages were never touched"));
    format!("no huge page yet: {compacts} (defrag is {defrag}); {later}{none}")
}
