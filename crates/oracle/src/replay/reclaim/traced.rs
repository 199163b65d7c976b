//! Compares the tracepoints of reclaim and compaction line by line: who reclaimed, how much of each
//! list was scanned, which pages were written, the calls of the trace's own shrinker and their
//! results; when compaction was tried, deferred or begun, and over which ranges.
//!
//! Fields that the engine does not have (gfp flags, cgroups, addresses) are left out, and so are
//! events that are not the trace's: those of the kernel's own shrinkers, and kcompactd going to
//! sleep, which on 5.10 also happens by the clock. Whether a zone suits compaction shows in what
//! follows.

use crate::difference::{At, Difference, Section};
use crate::error::BadRecording;
use crate::recording::Recording;
use crate::trace::lru::LruOp;
use kontig_mm::{Event, Memory, Pfn};

const COMPARED: [&str; 28] = [
    "mm_compaction_begin",
    "mm_compaction_end",
    "mm_compaction_isolate_migratepages",
    "mm_compaction_isolate_freepages",
    "mm_compaction_migratepages",
    "mm_compaction_finished",
    "mm_compaction_try_to_compact_pages",
    "mm_compaction_deferred",
    "mm_compaction_defer_compaction",
    "mm_compaction_defer_reset",
    "mm_compaction_kcompactd_wake",
    "mm_compaction_wakeup_kcompactd",
    "mm_vmscan_direct_reclaim_begin",
    "mm_vmscan_direct_reclaim_end",
    "mm_vmscan_node_reclaim_begin",
    "mm_vmscan_node_reclaim_end",
    "mm_vmscan_memcg_reclaim_begin",
    "mm_vmscan_memcg_reclaim_end",
    "mm_vmscan_lru_isolate",
    "mm_vmscan_lru_shrink_inactive",
    "mm_vmscan_lru_shrink_active",
    "mm_vmscan_kswapd_wake",
    "mm_vmscan_kswapd_sleep",
    "mm_vmscan_wakeup_kswapd",
    "mm_vmscan_write_folio",
    "mm_vmscan_throttled",
    "mm_shrink_slab_start",
    "mm_shrink_slab_end",
];
/// Names of the event for a written page, the first up to 6.0.
const WRITE_PAGE: &str = "mm_vmscan_writepage";
const WRITE_FOLIO: &str = "mm_vmscan_write_folio";
/// Reason for which only kswapd waits. The kernel emits the event when the wait ends, after the
/// events of others meanwhile; a replay cannot know when that is, so these lines are not compared.
const WAIT_OF_KSWAPD: &str = "reason=VMSCAN_THROTTLE_WRITEBACK";
/// Prefix of shrinkers' events, and the module's name after the function of the trace's shrinker.
const SHRINK_SLAB: &str = "mm_shrink_slab_";
const OF_THE_MODULE: &str = " [kontig] ";
/// kswapd has ended its nap and sleeps for good.
const SLEEP: &str = "mm_vmscan_kswapd_sleep: ";
const NONE: &str = "no more events";
const LINES_SHOWN: usize = 12;

/// The kernel's compared tracepoints, and how many were compared so far.
pub(super) struct Recorded {
    lines: Vec<String>,
    at: usize,
}

impl Recorded {
    pub(super) fn open(rec: &Recording) -> Result<Recorded, BadRecording> {
        let text = rec.text("trace.txt")?;
        let mut lines: Vec<String> = text.lines().filter_map(kernel_line).collect();
        sort_sleeps(&mut lines);
        Ok(Recorded { lines, at: 0 })
    }

    pub(super) fn compared(&self) -> u64 {
        self.at as u64
    }

    /// Compares the engine's events of an operation.
    pub(super) fn next(&mut self, _: &Memory, events: &[Event], i: usize, op: &LruOp) -> Result<(), Box<Difference>> {
        let compared = events.iter().filter(|e| COMPARED.contains(&e.name()));
        let mut said: Vec<String> = compared.map(|event| trimmed(&event.to_string())).collect();
        sort_sleeps(&mut said);
        for engine in said {
            if engine.ends_with(WAIT_OF_KSWAPD) {
                continue;
            }
            let kernel = self.lines.get(self.at).map_or(NONE, String::as_str);
            if engine != kernel {
                let from = self.at.saturating_sub(LINES_SHOWN);
                let around = vec![
                    Section::new("during", vec![format!("operation {i}: {op}")]),
                    Section::new("the events before it", self.lines[from..self.at.min(self.lines.len())].to_vec()),
                ];
                let (kernel, at) = (kernel.to_string(), At::Event(self.at));
                return Err(Box::new(Difference { at, asked: None, kernel, engine, around }));
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Checks that the kernel has no further events.
    pub(super) fn end(&self) -> Result<(), Box<Difference>> {
        match self.lines.get(self.at) {
            None => Ok(()),
            Some(line) => {
                let (kernel, engine) = (line.clone(), NONE.to_string());
                Err(Box::new(Difference { at: At::Event(self.at), asked: None, kernel, engine, around: Vec::new() }))
            }
        }
    }
}

/// Orders events of nodes' kswapds that go to sleep one after the other: which of the naps that
/// began in one tick of the clock ends first is a matter of the kernel's timers.
fn sort_sleeps(lines: &mut [String]) {
    let sleeps = |line: &String| line.starts_with(SLEEP);
    lines.chunk_by_mut(|a, b| sleeps(a) && sleeps(b)).for_each(<[String]>::sort_unstable);
}

/// A line of the trace in the engine's form, if it is compared.
fn kernel_line(line: &str) -> Option<String> {
    let event = line.find(": mm_").map(|at| &line[at + 2..])?;
    let (name, fields) = event.split_once(": ")?;
    let name = if name == WRITE_PAGE { WRITE_FOLIO } else { name };
    if !COMPARED.contains(&name) || fields.ends_with(WAIT_OF_KSWAPD) {
        return None;
    }
    let fields = match name.starts_with(SHRINK_SLAB) {
        // The shrinker's function and module, then its address.
        true => fields.split_once(OF_THE_MODULE)?.1.split_once(": ")?.1,
        false => fields,
    };
    Some(trimmed(&format!("{name}: {fields}")))
}

/// Removes the fields the engine does not have, and writes pfns in hexadecimal.
fn trimmed(event: &str) -> String {
    const UNSAID: [&str; 7] =
        ["gfp_flags=", "gfp_mask=", "isolate_mode=", "pid=", "memcg_id=", "page=", "usect_delayed="];
    let mut words = Vec::new();
    let mut all = event.split_whitespace();
    while let Some(word) = all.next() {
        let decimal = word.strip_prefix("pfn=").and_then(|pfn| pfn.parse().ok());
        match decimal {
            Some(pfn) => words.push(format!("pfn={}", Pfn::new(pfn))),
            None if word == "gfp_flags" => drop(all.next()),
            None if UNSAID.iter().any(|name| word.starts_with(name)) => {}
            None => words.push(word.into()),
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::NODE;
    use kontig_mm::{Backing, Throttle};

    /// Asserts that a kernel's line equals this event of the engine.
    #[track_caller]
    fn is_said(line: &str, event: Event) {
        assert_eq!(kernel_line(line), Some(trimmed(&event.to_string())));
    }

    #[test]
    fn a_page_written_is_the_same_whatever_a_kernel_calls_it_and_however_it_counts() {
        let event = Event::WriteFolio { pfn: Pfn::new(0x10_7e46), backing: Backing::File };
        let flags = "flags=RECLAIM_WB_FILE|RECLAIM_WB_ASYNC";
        let (task, before) = ("kswapd1-39      [000] .....         4344: ", "page=ffffea00041fa2c0 pfn=1080902");
        is_said(&format!("{task}mm_vmscan_write_folio: page=(____ptrval____) pfn=0x107e46 {flags}"), event);
        is_said(&format!("{task}mm_vmscan_writepage: {before} {flags}"), event);
    }

    #[test]
    fn a_wait_is_the_same_however_long_it_took() {
        let event = Event::Throttled { nid: NODE, reason: Throttle::NoProgress };
        // The kernel's own spelling.
        let line = "runner-118 [000] ..... 9: mm_vmscan_throttled: nid=1 usec_timeout=4000 usect_delayed=4000";
        is_said(&format!("{line} reason=VMSCAN_THROTTLE_NOPROGRESS"), event);
    }

    #[test]
    fn the_traces_own_shrinker_is_compared_and_the_kernels_are_not() {
        let (nr_objects_to_shrink, cache_items, delta, total_scan, priority) = (3, 8091, 6, 7, 11);
        let event =
            Event::ShrinkSlabStart { nid: NODE, nr_objects_to_shrink, cache_items, delta, total_scan, priority };
        let of = |function: &str| {
            format!(
                "runner-114     [000] .....           23: mm_shrink_slab_start: {function} (____ptrval____): nid: 1 \
                 objects to shrink 3 gfp_flags __GFP_IO|__GFP_FS cache items 8091 delta 6 total_scan 7 priority 11"
            )
        };
        is_said(&of("scan+0x0/0x90 [kontig]"), event);
        assert_eq!(kernel_line(&of("super_cache_scan+0x0/0x1f0")), None);
        let (unused_scan, new_scan, last_shrinker_retval) = (2, 8, 0);
        is_said(
            "runner-114 [000] ..... 24: mm_shrink_slab_end: scan+0x0/0x90 [kontig] (____ptrval____): nid: 1 unused \
             scan count 2 new scan count 8 total_scan 7 last shrinker return val 0",
            Event::ShrinkSlabEnd { nid: NODE, unused_scan, new_scan, total_scan, last_shrinker_retval },
        );
    }
}
