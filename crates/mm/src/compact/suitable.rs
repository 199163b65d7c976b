//! Suitability: whether compacting a zone could help a request at all.
//!
//! It cannot if the page is already available or if too little memory is free to migrate pages to;
//! for costly orders also not if the fragmentation index says that memory is lacking rather than
//! fragmented. Source: kernel-behaviour §5.2 (4.8–6.4; 6.15).

use crate::event::{At, CompactResult, Event, Listen};
use crate::gfp::{AllocFlags, Wmark};
use crate::state::{Memory, Zone};
use crate::sysctl::EXTFRAG_THRESHOLD;
use crate::types::{Order, ZoneId, ZoneType};

impl Zone {
    /// The zone's node, kind and id, for events.
    pub(crate) fn at(&self) -> At {
        At { node: self.node, zone: self.kind, id: self.id }
    }
}

impl Memory {
    /// Whether to compact `zone` for a request. A whole-zone run (`order` is `None`) always goes
    /// ahead. For kcompactd (`daemon`) in defrag_mode, the page counts as available only by whole
    /// free pageblocks.
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
        let (flags, highest) = self.shared.profile.compaction.rights(flags, highest);
        let z = &self.zones[zone];
        let free = z.free_pages;
        let there = if daemon && self.kcompactd_makes_pageblocks() { z.free_pages_in_blocks() } else { free };
        let room_first = self.shared.profile.compaction.asks_room_first;
        let mut result = match room_first {
            false => self.suitable_by_watermarks(zone, o, flags, highest, there, free),
            true if self.has_room_to_compact(zone, o, Wmark::Low, highest, free) => CompactResult::Continue,
            true => CompactResult::Skipped,
        };
        let index_decides = o.is_costly() || self.shared.profile.compaction.index_decides_for_all;
        if result == CompactResult::Continue && index_decides {
            let index = self.zones[zone].contig_info(o).fragmentation_index();
            if self.shared.decide(&EXTFRAG_THRESHOLD, |t| (0..=i64::from(t)).contains(&index)) {
                result = CompactResult::NotSuitableZone;
            }
        }
        if room_first && result == CompactResult::Continue && self.is_there_with_room(zone, o, highest) {
            result = CompactResult::Success;
        }
        if result == CompactResult::Success && self.shared.profile.compaction.success_is_untraced {
            return result;
        }
        let at = self.zones[zone].at();
        self.shared.emit(Listen::COMPACTION_DETAIL, || Event::Suitable { at, order, ret: result });
        if result == CompactResult::NotSuitableZone { CompactResult::Skipped } else { result }
    }

    /// The watermark part of the test: `there` is the free count for whether the page is available,
    /// `free` the one for whether compaction has room to work.
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
        let by_low_mark = profile.compaction.suits_by_low_mark;
        let mark = if by_low_mark { Wmark::Low } else { flags.wmark };
        if z.watermark_ok(order, z.wmark(mark), highest, flags, there, profile) {
            return CompactResult::Success;
        }
        if self.has_room_to_compact(zone, order, mark, highest, free) {
            CompactResult::Continue
        } else {
            CompactResult::Skipped
        }
    }

    /// Whether a block of this order is available above the low mark and the room that compaction
    /// for it would need.
    fn is_there_with_room(&self, zone: ZoneId, order: Order, highest: ZoneType) -> bool {
        let (z, profile) = (&self.zones[zone], &self.shared.profile);
        let mark = z.wmark(Wmark::Low) + profile.compaction.gap(order);
        let plain = AllocFlags::mark(Wmark::Min);
        order.and_up().any(|o| z.nr_free(o) != 0) && z.watermark_ok(order, mark, highest, plain, z.free_pages, profile)
    }

    /// Whether `free` pages leave room to migrate pages for `order`: the base watermark plus the
    /// compaction gap.
    fn has_room_to_compact(&self, zone: ZoneId, order: Order, mark: Wmark, highest: ZoneType, free: i64) -> bool {
        let z = &self.zones[zone];
        let profile = &self.shared.profile;
        let base = match profile.compaction.room_above_callers_mark {
            false if profile.compaction.suits_by_low_mark => z.wmark(Wmark::Low),
            false => z.wmark(if order.is_costly() { Wmark::Low } else { Wmark::Min }),
            true if order.is_costly() => z.wmark(mark) + (z.watermarks.low - z.watermarks.min),
            true => z.wmark(mark),
        };
        let plain = AllocFlags::mark(Wmark::Min);
        z.watermark_ok(Order::ZERO, base + profile.compaction.gap(order), highest, plain, free, profile)
    }

    /// Whether reclaim could make enough room to compact the zone for a request; `free` counts free
    /// and reclaimable pages.
    ///
    /// Up to 5.10 a page that is already available is reason enough to retry; later, up to 6.4, it
    /// is none, and from 6.5 on it is not checked.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{linux, with_single_pages};

    const ZONE: ZoneId = ZoneId::new(0);

    /// Suitability of a zone with 512 free pages, each alone, under these watermarks.
    fn suits(profile: &str, order: u8, min: u64, low: u64) -> CompactResult {
        let mut m = with_single_pages(16, 2, linux(profile));
        let free = m.zones[ZONE].free_pages;
        assert_eq!(free, 512);
        (m.zones[ZONE].watermarks.min, m.zones[ZONE].watermarks.low) = (min, low);
        let plain = AllocFlags::mark(Wmark::Min);
        m.compaction_suitable(ZONE, Some(Order::new(order)), plain, ZoneType::Normal, false)
    }

    #[test]
    fn up_to_4_8_room_is_needed_above_the_low_mark_for_any_order() {
        for (profile, suitable) in [("4.6", CompactResult::Skipped), ("5.6", CompactResult::Continue)] {
            assert_eq!(suits(profile, 2, 400, 504), suitable, "{profile}");
            assert_eq!(suits(profile, 2, 400, 503), CompactResult::Continue, "8 pages more than that are enough");
        }
    }

    #[test]
    fn up_to_4_8_small_orders_too_are_not_compacted_for_where_memory_is_lacking() {
        // Single pages alone: for order 1 the index is 1000 - (1000 + 512 * 1000 / 2) / 512 = 499.
        assert_eq!(suits("4.6", 1, 0, 0), CompactResult::Skipped);
        assert_eq!(suits("5.6", 1, 0, 0), CompactResult::Continue);
    }

    #[test]
    fn since_6_15_single_pages_are_no_reason_for_kcompactd_to_leave_a_zone_alone_in_defrag_mode() {
        let high = AllocFlags::mark(Wmark::High);
        for (defrag_mode, daemon, there) in [(true, true, false), (true, false, true), (false, true, true)] {
            let mut m = crate::testing::with_a_pageblock_in_pieces(linux("6.15"), defrag_mode);
            let result = m.compaction_suitable(ZONE, Some(Order::new(9)), high, ZoneType::Normal, daemon);
            assert_eq!(result == CompactResult::Success, there, "{defrag_mode}, {daemon}");
        }
    }
}
