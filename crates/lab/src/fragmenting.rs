//! Fragmenting events: requests that were given a part of a pageblock of another type.
//!
//! They are the tracepoint `mm_page_alloc_extfrag` with a fallback order below a pageblock's, by the type that asked: what
//! MMTests counts of a trace.

use kontig_mm::types::PAGEBLOCK_ORDER;
use kontig_mm::{Event, MigrateType};

/// How many there were, of all types and of each.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fragmenting {
    by_type: [u64; 3],
}

impl Fragmenting {
    /// Counts those among these events.
    pub(crate) fn note(&mut self, events: &[(u64, Event)]) {
        for (_, event) in events {
            if let Event::PageAllocExtfrag { fallback_order, alloc_migratetype, .. } = event
                && *fallback_order < PAGEBLOCK_ORDER
                && let Some(of_type) = self.by_type.get_mut(*alloc_migratetype as usize)
            {
                *of_type += 1;
            }
        }
    }

    /// Each number with what it is called.
    pub(crate) fn named(self) -> [(&'static str, u64); 4] {
        let of = |t: MigrateType| self.by_type[t as usize];
        [
            ("extfrag events, order < 9", self.by_type.iter().sum()),
            ("extfrag events, unmovable", of(MigrateType::Unmovable)),
            ("extfrag events, movable", of(MigrateType::Movable)),
            ("extfrag events, reclaimable", of(MigrateType::Reclaimable)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_mm::{Order, Pfn};

    #[test]
    fn only_what_leaves_a_pageblock_mixed_counts_by_the_type_that_asked() {
        let event = |order, t| {
            let extfrag = Event::PageAllocExtfrag {
                pfn: Pfn::new(0),
                alloc_order: Order::ZERO,
                fallback_order: Order::new(order),
                alloc_migratetype: t,
                fallback_migratetype: MigrateType::Movable,
                change_ownership: false,
            };
            (0, extfrag)
        };
        let mut counted = Fragmenting::default();
        let (unmovable, reclaimable) = (MigrateType::Unmovable, MigrateType::Reclaimable);
        counted.note(&[event(8, unmovable), event(0, reclaimable), event(3, unmovable), event(9, reclaimable)]);
        assert_eq!(counted.named().map(|(_, n)| n), [3, 2, 0, 1]);
    }
}
