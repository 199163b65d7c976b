//! Suitability: whether compacting a zone could help a request at all.
//!
//! Not if the page is already there, not if there is too little free memory to move pages about in, and for costly
//! orders not if memory is lacking rather than in pieces. Source: kernel-behaviour §5.2 (4.8–6.4; 6.15).

use crate::event::{At, CompactResult, Event, Listen};
use crate::gfp::{AllocFlags, Wmark};
use crate::state::{Memory, Zone};
use crate::sysctl::EXTFRAG_THRESHOLD;
use crate::types::{Order, ZoneId, ZoneType};

impl Zone {
    /// The zone's place, for events.
    pub(crate) fn at(&self) -> At {
        At { node: self.node, zone: self.kind, id: self.id }
    }
}

impl Memory {
    /// Whether to compact `zone` for a request; `order` is `None` for the whole zone, which always goes ahead.
    /// `daemon`: kcompactd asks, to which in defrag_mode only whole free pageblocks count as the page being there.
    pub fn compaction_suitable(
        &mut self,
        zone: ZoneId,
        order: Option<Order>,
        flags: AllocFlags,
        highest: ZoneType,
        daemon: bool,
    ) -> CompactResult {
        self.shared.work.any = true;
        self.shared.work.tests += 1;
        let Some(o) = order else {
            return CompactResult::Continue;
        };
        let z = &self.zones[zone];
        let free = z.free_pages;
        let there = if daemon && self.shared.tunables.defrag_mode { z.free_pages_in_blocks() } else { free };
        let mut result = self.suitable_by_watermarks(zone, o, flags, highest, there, free);
        if result == CompactResult::Continue && o.is_costly() {
            let index = self.zones[zone].contig_info(o).fragmentation_index(o);
            if self.shared.decide(&EXTFRAG_THRESHOLD, |t| (0..=i64::from(t)).contains(&index)) {
                result = CompactResult::NotSuitableZone;
            }
        }
        if result == CompactResult::Success && self.shared.profile.compaction.success_is_untraced {
            return result;
        }
        let at = self.zones[zone].at();
        self.shared.emit(Listen::COMPACTION_DETAIL, || Event::Suitable { at, order, ret: result });
        if result == CompactResult::NotSuitableZone { CompactResult::Skipped } else { result }
    }

    /// The watermark part of the test: the page is there if `there` pages are enough, and compaction may work if `free`
    /// are.
    fn suitable_by_watermarks(
        &self,
        zone: ZoneId,
        order: Order,
        flags: AllocFlags,
        highest: ZoneType,
        there: i64,
        free: i64,
    ) -> CompactResult {
        let z = &self.zones[zone];
        let profile = &self.shared.profile;
        let mark = flags.wmark.unwrap_or(Wmark::Min);
        if z.watermark_ok(order, z.wmark(mark), highest, flags, there, profile) {
            return CompactResult::Success;
        }
        if self.has_room_to_compact(zone, order, mark, highest, free) {
            CompactResult::Continue
        } else {
            CompactResult::Skipped
        }
    }

    /// Whether `free` pages are enough to move pages about in for `order`.
    fn has_room_to_compact(&self, zone: ZoneId, order: Order, mark: Wmark, highest: ZoneType, free: i64) -> bool {
        let z = &self.zones[zone];
        let profile = &self.shared.profile;
        let base = match profile.compaction.room_above_callers_mark {
            false => z.wmark(if order.is_costly() { Wmark::Low } else { Wmark::Min }),
            true if order.is_costly() => z.wmark(mark) + (z.watermarks.low - z.watermarks.min),
            true => z.wmark(mark),
        };
        let plain = AllocFlags::mark(Wmark::Min);
        z.watermark_ok(Order::ZERO, base + profile.compaction.gap(order), highest, plain, free, profile)
    }

    /// Whether reclaim could make room to compact the zone in for a request; `free` counts the pages that are free or can
    /// be reclaimed.
    /// Up to 6.4 that the page is there already is no reason to go on; later kernels do not ask.
    pub(crate) fn worth_reclaiming_for(
        &self,
        zone: ZoneId,
        order: Order,
        flags: AllocFlags,
        highest: ZoneType,
        free: i64,
    ) -> bool {
        if self.shared.profile.compaction.retry_asks_room_only {
            return self.has_room_to_compact(zone, order, Wmark::Min, highest, free);
        }
        let there = self.zones[zone].free_pages;
        match self.suitable_by_watermarks(zone, order, flags, highest, there, free) {
            CompactResult::Success => self.shared.profile.compaction.retries_for_page_there,
            result => result == CompactResult::Continue,
        }
    }
}
