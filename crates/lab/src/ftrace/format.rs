//! The text of a tracepoint in the format of the profile's kernel.
//!
//! Scripts are written for the kernel they were used on: MMTests' read decimal frame numbers, as
//! kernels before 5.14 print them, and compaction's first events have the form of 3.14, which
//! introduced them.

use kontig_mm::event::{CompactResult, ScanResult};
use kontig_mm::{Event, Pfn, Profile};

/// Where the kernel keeps the `struct page` of a frame, 64 bytes each (`vmemmap`). Older kernels
/// print this address, newer ones a hash of it.
const VMEMMAP: u64 = 0xffff_ea00_0000_0000;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Format {
    /// The version of the kernel.
    version: (u32, u32),
}

impl Format {
    /// The format of a profile's kernel: of the newest if its name is no version.
    pub(super) fn of(profile: &Profile) -> Format {
        Format { version: kontig_procfs::from_mm::version(&profile.kernel).unwrap_or((u32::MAX, 0)) }
    }

    fn is_before(self, major: u32, minor: u32) -> bool {
        self.version < (major, minor)
    }

    /// The event's text without its name; `None` if the kernel has no such tracepoint.
    pub(super) fn text(self, event: &Event) -> Option<String> {
        if self.is_before(4, 0)
            && let Some(text) = first_compaction_events(event)
        {
            return text;
        }
        let text = event.to_string();
        let text = text.strip_prefix(event.name()).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(&text);
        match *event {
            Event::Throttled { .. } if self.is_before(5, 16) => None,
            Event::DirectReclaimBegin { order, gfp } if self.is_before(5, 1) => {
                let class = if self.is_before(4, 8) {
                    String::new()
                } else {
                    format!(" classzone_idx={}", gfp.highest_zone().index())
                };
                Some(format!("order={} may_writepage=1 gfp_flags={gfp}{class}", order.get()))
            }
            Event::KhugepagedScanPmd { .. }
            | Event::CollapseHugePageIsolate { .. }
            | Event::CollapseHugePage { .. } => self.of_khugepaged(event, text),
            Event::PageAlloc { pfn, .. }
            | Event::PageFree { pfn, .. }
            | Event::PageAllocZoneLocked { pfn, .. }
            | Event::PagePcpuDrain { pfn, .. }
            | Event::PageAllocExtfrag { pfn, .. }
            | Event::WriteFolio { pfn, .. } => Some(self.with_page(text, pfn)),
            _ => Some(text.into()),
        }
    }

    /// khugepaged's events exist since 4.5. Kernels without a reason have the more general one.
    fn of_khugepaged(self, event: &Event, text: &str) -> Option<String> {
        let (Event::KhugepagedScanPmd { status, .. }
        | Event::CollapseHugePageIsolate { status, .. }
        | Event::CollapseHugePage { status, .. }) = *event
        else {
            return None;
        };
        if self.is_before(4, 5) {
            return None;
        }
        let word = match status {
            ScanResult::ExceedSwapPte if self.is_before(4, 8) => "pte_non_present",
            ScanResult::PmdMapped if self.is_before(6, 1) => "pmd_null",
            ScanResult::PmdNull if !self.is_before(7, 2) => "no_pte_table",
            status => status.name(),
        };
        let mut text = text.replace(&format!("status={}", status.name()), &format!("status={word}"));
        if let Event::KhugepagedScanPmd { ptes, .. } = event
            && self.is_before(4, 8)
        {
            let referenced = format!("referenced={},", u8::from(ptes.referenced > 0));
            text = text.replace(&format!("referenced={},", ptes.referenced), &referenced);
            text.truncate(text.rfind(", unmapped=").unwrap_or(text.len()));
        }
        if !self.is_before(6, 18) {
            text = text.replace("writable=0, ", "").replace("writable=1, ", "");
        }
        if !self.is_before(7, 2) && !matches!(event, Event::KhugepagedScanPmd { .. }) {
            text += ", order=9";
        }
        Some(text)
    }

    /// A text that begins with the frame, with the page before it.
    fn with_page(self, text: &str, pfn: Pfn) -> String {
        let rest = text.split_once(' ').map_or("", |(_, rest)| rest);
        let (page, n) = (VMEMMAP + 64 * u64::from(pfn.get()), pfn.get());
        match self.is_before(5, 14) {
            true => format!("page={page:x} pfn={n} {rest}"),
            false => format!("page={page:x} pfn=0x{n:x} {rest}"),
        }
    }
}

/// Compaction's events as 3.14 has them, `Some(None)` for those it lacks; `None` for other events.
/// Frames are decimal; the status is a number.
fn first_compaction_events(event: &Event) -> Option<Option<String>> {
    Some(match *event {
        Event::CompactionBegin { zone_start, migrate_pfn, free_pfn, zone_end, .. } => {
            let [start, migrate, free, end] = [zone_start, migrate_pfn, free_pfn, zone_end].map(Pfn::get);
            Some(format!("zone_start={start} migrate_start={migrate} free_start={free} zone_end={end}"))
        }
        Event::CompactionEnd { status, .. } => Some(format!("status={}", status_number(status))),
        Event::IsolateMigratepages { nr_scanned, nr_taken, .. }
        | Event::IsolateFreepages { nr_scanned, nr_taken, .. } => {
            Some(format!("nr_scanned={nr_scanned} nr_taken={nr_taken}"))
        }
        Event::TryToCompactPages { .. }
        | Event::Finished { .. }
        | Event::Suitable { .. }
        | Event::Deferred { .. }
        | Event::DeferCompaction { .. }
        | Event::DeferReset { .. }
        | Event::KcompactdSleep { .. }
        | Event::KcompactdWake { .. }
        | Event::WakeupKcompactd { .. } => None,
        _ => return None,
    })
}

/// `COMPACT_SKIPPED`, `COMPACT_CONTINUE`, `COMPACT_PARTIAL` and `COMPACT_COMPLETE` of 3.14.
const fn status_number(status: CompactResult) -> u8 {
    match status {
        CompactResult::NotSuitableZone | CompactResult::Skipped | CompactResult::Deferred => 0,
        CompactResult::NoSuitablePage | CompactResult::Continue => 1,
        CompactResult::PartialSkipped | CompactResult::Contended | CompactResult::Success => 2,
        CompactResult::Complete => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_mm::event::{MigrateMode, Ptes};
    use kontig_mm::{MigrateType, Order, Wmark};

    const fn of(major: u32, minor: u32) -> Format {
        Format { version: (major, minor) }
    }

    #[test]
    fn the_format_is_that_of_the_profiles_kernel() {
        let version = |profile: &str| Format::of(&kontig_profiles::linux(profile)).version;
        assert_eq!(version("4.4-kcompactd"), (4, 4));
        assert_eq!(version("4.20-rc3"), (4, 20));
        assert_eq!(version("7.2"), (7, 2));
    }

    #[test]
    fn frames_are_decimal_before_5_14_as_mmtests_reads_them() {
        let event = Event::PageAllocExtfrag {
            mark: Wmark::Low,
            pfn: Pfn::new(0x1000),
            alloc_order: Order::ZERO,
            fallback_order: Order::new(3),
            alloc_migratetype: MigrateType::Unmovable,
            fallback_migratetype: MigrateType::Movable,
            change_ownership: false,
        };
        let rest = "alloc_order=0 fallback_order=3 pageblock_order=9 alloc_migratetype=0 fallback_migratetype=1 \
                    fragmenting=1 change_ownership=0";
        let text = |format: Format| format.text(&event).expect("both kernels have it");
        assert_eq!(text(of(4, 20)), format!("page=ffffea0000040000 pfn=4096 {rest}"));
        assert_eq!(text(of(5, 14)), format!("page=ffffea0000040000 pfn=0x1000 {rest}"));
    }

    #[test]
    fn khugepaged_is_traced_since_4_5_and_in_three_forms() {
        let ptes = Ptes { pfn: Some(Pfn::new(0x1200)), writable: true, referenced: 7, none_or_zero: 3, unmapped: 65 };
        let scan = Event::KhugepagedScanPmd { process: 1, ptes, status: ScanResult::ExceedSwapPte };
        assert_eq!(of(4, 4).text(&scan), None);
        let mm = "mm=ffff888000000800, scan_pfn=0x1200";
        let forms = [
            ((4, 6), "writable=1, referenced=1, none_or_zero=3, status=pte_non_present"),
            ((6, 1), "writable=1, referenced=7, none_or_zero=3, status=exceed_swap_pte, unmapped=65"),
            ((7, 2), "referenced=7, none_or_zero=3, status=exceed_swap_pte, unmapped=65"),
        ];
        for ((major, minor), rest) in forms {
            assert_eq!(of(major, minor).text(&scan), Some(format!("{mm}, {rest}")));
        }
        let made = Event::CollapseHugePage { process: 1, isolated: true, status: ScanResult::Succeed };
        let text = "mm=ffff888000000800, isolated=1, status=succeeded";
        assert_eq!(of(6, 1).text(&made).as_deref(), Some(text));
        assert_eq!(of(7, 3).text(&made), Some(format!("{text}, order=9")));
        let refused = Event::CollapseHugePageIsolate { ptes, status: ScanResult::PageRo };
        let text = "scan_pfn=0x1200, none_or_zero=3, referenced=7, writable=1, status=no_writable_page";
        assert_eq!(of(5, 10).text(&refused).as_deref(), Some(text));
    }

    #[test]
    fn compaction_has_its_first_form_before_4_0() {
        let [zone_start, migrate_pfn, free_pfn, zone_end] = [4096, 8192, 718_848, 720_896].map(Pfn::new);
        let begin =
            Event::CompactionBegin { zone_start, migrate_pfn, free_pfn, zone_end, mode: MigrateMode::SyncLight };
        let first = "zone_start=4096 migrate_start=8192 free_start=718848 zone_end=720896";
        assert_eq!(of(3, 14).text(&begin).as_deref(), Some(first));
        let later = "zone_start=0x1000 migrate_pfn=0x2000 free_pfn=0xaf800 zone_end=0xb0000, mode=sync";
        assert_eq!(of(4, 0).text(&begin).as_deref(), Some(later));
        let (mode, status) = (MigrateMode::SyncLight, CompactResult::PartialSkipped);
        let end = Event::CompactionEnd { zone_start, migrate_pfn, free_pfn, zone_end, mode, status };
        assert_eq!(of(3, 14).text(&end).as_deref(), Some("status=2"));
        let asks = Event::TryToCompactPages { order: Order::ZERO, priority: 1 };
        assert_eq!((of(3, 14).text(&asks), of(4, 0).text(&asks).is_some()), (None, true));
    }
}
