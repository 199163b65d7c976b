//! The events of a measurement: all are counted by kind; the first and the last are kept.
//!
//! A run may have millions. The first show how it began, the last how it ended. Those between are
//! dropped once there are too many; the result says how many of each kind.

use kontig_mm::Event;
use kontig_results::{EventCount, TimedEvent};
use std::collections::{BTreeMap, VecDeque};

/// Events kept from the start.
pub(crate) const FIRST: usize = 10_000;
/// Events kept from the end.
pub(crate) const LAST: usize = 10_000;

/// Events in the order of their times.
#[derive(Clone)]
pub(crate) struct EventLog {
    first: Vec<(u64, Event)>,
    last: VecDeque<(u64, Event)>,
    counts: BTreeMap<&'static str, EventCount>,
}

impl EventLog {
    pub(crate) fn new() -> EventLog {
        EventLog { first: Vec::new(), last: VecDeque::new(), counts: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, events: impl IntoIterator<Item = (u64, Event)>) {
        for (at, event) in events {
            self.counts.entry(event.name()).or_default().happened += 1;
            if self.first.len() < FIRST {
                self.first.push((at, event));
                continue;
            }
            if self.last.len() == LAST
                && let Some((_, dropped)) = self.last.pop_front()
            {
                self.counts.entry(dropped.name()).or_default().dropped += 1;
            }
            self.last.push_back((at, event));
        }
    }

    /// The events kept, in the kernel's format, and the counts of all by tracepoint.
    pub(crate) fn finish(self) -> (Vec<TimedEvent>, BTreeMap<String, EventCount>) {
        let text = |(at_ns, event): (u64, Event)| TimedEvent { at_ns, event: event.to_string() };
        let kept = self.first.into_iter().chain(self.last).map(text).collect();
        (kept, self.counts.into_iter().map(|(name, count)| (name.into(), count)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_mm::NodeId;

    fn event(i: u64) -> (u64, Event) {
        let nid = NodeId::new(0);
        (i, if i.is_multiple_of(2) { Event::KswapdSleep { nid } } else { Event::KcompactdSleep { nid } })
    }

    #[test]
    fn as_many_as_are_kept_are_all_kept() {
        let mut log = EventLog::new();
        let all = (FIRST + LAST) as u64;
        log.add((0..all).map(event));
        let (kept, counts) = log.finish();
        assert!(kept.iter().map(|e| e.at_ns).eq(0..all));
        assert!(counts.values().all(|c| c.happened == all / 2 && c.dropped == 0));
    }

    #[test]
    fn events_are_dropped_from_the_middle_and_counted_by_kind() {
        let mut log = EventLog::new();
        let all = (FIRST + LAST) as u64 + 5;
        for i in 0..all {
            log.add([event(i)]);
        }
        let (kept, counts) = log.finish();
        let (first, last) = (FIRST as u64, LAST as u64);
        assert!(kept.iter().map(|e| e.at_ns).eq((0..first).chain(all - last..all)));
        assert_eq!(counts["mm_vmscan_kswapd_sleep"], EventCount { happened: all.div_ceil(2), dropped: 3 });
        assert_eq!(counts["mm_compaction_kcompactd_sleep"], EventCount { happened: all / 2, dropped: 2 });
    }
}
