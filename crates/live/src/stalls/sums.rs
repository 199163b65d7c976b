//! Events of the kernel, added up to waits.
//!
//! A request that compacts says its order first (`mm_compaction_try_to_compact_pages`); each zone
//! is then found suitable for that order or left out (`mm_compaction_suitable`), and one that is
//! compacted begins and ends. Compaction without a request (kcompactd, a write to `compact_memory`)
//! is nobody's wait: no request comes before it in its thread, or, where that thread had made one,
//! its zones are not found suitable for an order before they begin. Reclaim tells its order when it
//! begins. Where events were lost, what had begun is forgotten: its end may be among them.

use super::{Stall, Stalls, WaitedFor};
use kontig_procfs::{Lost, TraceLine, lost_events};
use std::collections::BTreeMap;

/// The tracepoints that are needed.
pub const EVENTS: [&str; 6] = [
    "compaction/mm_compaction_try_to_compact_pages",
    "compaction/mm_compaction_suitable",
    "compaction/mm_compaction_begin",
    "compaction/mm_compaction_end",
    "vmscan/mm_vmscan_direct_reclaim_begin",
    "vmscan/mm_vmscan_direct_reclaim_end",
];

/// A process, by number and name.
pub type Process = (u32, String);

/// The work of a thread.
#[derive(Default)]
struct Thread {
    /// The request that it compacts for.
    request: Option<Request>,
    /// Whether the zone that it looked at last is compacted for this request.
    suits: bool,
    /// When a compaction of a zone began.
    compacts: Option<u64>,
    /// When reclaim began, and for which order.
    reclaims: Option<(u64, u32)>,
    last_us: u64,
}

/// A request that waits for compaction.
#[derive(Clone, Copy)]
struct Request {
    order: u32,
    /// How long all its zones have taken, microseconds; `None` before the first.
    took_us: Option<u64>,
}

/// The waits since they were last taken.
#[derive(Default)]
pub struct Sums {
    threads: BTreeMap<u32, Thread>,
    stalls: BTreeMap<(Process, WaitedFor, u32), Sum>,
    lost: u64,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    attempts: u64,
    us: u64,
    longest_us: u64,
}

impl Sums {
    /// Takes in a line of the trace; `process` names the process of a thread. A line that no kernel
    /// prints counts as a lost event: a thread's name may hold anything, a line feed too.
    pub fn line(&mut self, line: &str, process: &mut impl FnMut(&TraceLine<'_>) -> Process) {
        let lost = match lost_events(line) {
            Some(Lost::Events(events)) => events,
            Some(Lost::Unsaid) => 1,
            None => match TraceLine::parse("trace_pipe", 0, line) {
                Ok(None) => 0,
                Ok(Some(event)) => u64::from(self.event(&event, process).is_none()),
                Err(_) => 1,
            },
        };
        if lost > 0 {
            self.lost += lost;
            self.threads.clear();
        }
    }

    /// `None` if the event lacks its order.
    fn event(&mut self, e: &TraceLine<'_>, process: &mut impl FnMut(&TraceLine<'_>) -> Process) -> Option<()> {
        let thread = self.threads.entry(e.pid).or_default();
        thread.last_us = e.at_us;
        let order = || e.number("order").and_then(|order| u32::try_from(order).ok());
        let (what, order, us, is_first) = match e.event {
            "mm_compaction_try_to_compact_pages" => {
                thread.request = Some(Request { order: order()?, took_us: None });
                return Some(());
            }
            "mm_compaction_suitable" => {
                let of_request = thread.request.is_some_and(|request| order() == Some(request.order));
                thread.suits = of_request && e.field("ret") == Some("continue");
                return Some(());
            }
            "mm_compaction_begin" => {
                // A write to `compact_memory` asks for no order, and takes every zone.
                let suits = std::mem::take(&mut thread.suits);
                thread.request = thread.request.filter(|_| suits);
                thread.compacts = Some(e.at_us);
                return Some(());
            }
            "mm_compaction_end" => {
                let Some((began, request)) = thread.compacts.take().zip(thread.request.as_mut()) else {
                    return Some(());
                };
                let is_first = request.took_us.is_none();
                let us = e.at_us.saturating_sub(began);
                request.took_us = Some(request.took_us.unwrap_or(0) + us);
                (WaitedFor::Compaction, request.order, us, is_first)
            }
            "mm_vmscan_direct_reclaim_begin" => {
                thread.request = None;
                thread.reclaims = Some((e.at_us, order()?));
                return Some(());
            }
            "mm_vmscan_direct_reclaim_end" => {
                let Some((began, order)) = thread.reclaims.take() else { return Some(()) };
                (WaitedFor::Reclaim, order, e.at_us.saturating_sub(began), true)
            }
            _ => return Some(()),
        };
        let of_request = match (what, thread.request) {
            (WaitedFor::Compaction, Some(request)) => request.took_us.unwrap_or(us),
            _ => us,
        };
        let sum = self.stalls.entry((process(e), what, order)).or_default();
        sum.attempts += u64::from(is_first);
        sum.us += us;
        sum.longest_us = sum.longest_us.max(of_request);
        Some(())
    }

    /// The waits since they were last taken. What goes on counts when it ends.
    pub fn take(&mut self, seconds: f64) -> Stalls {
        // Threads end unseen.
        let newest = self.threads.values().map(|thread| thread.last_us).max().unwrap_or(0);
        self.threads.retain(|_, thread| newest - thread.last_us < FORGOTTEN_AFTER_US);
        let seconds_of = |us: u64| us as f64 / 1e6;
        let stall = |(((pid, name), waited_for, order), sum): ((Process, WaitedFor, u32), Sum)| Stall {
            pid,
            name,
            waited_for,
            order,
            attempts: sum.attempts,
            seconds: seconds_of(sum.us),
            longest_s: seconds_of(sum.longest_us),
        };
        let processes = std::mem::take(&mut self.stalls).into_iter().map(stall).collect();
        let lost_events = std::mem::take(&mut self.lost);
        let mut stalls = Stalls { seconds, processes, lost_events, not_known: None };
        stalls.sort();
        stalls
    }
}

/// No wait is longer.
const FORGOTTEN_AFTER_US: u64 = 600_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines as `trace_pipe` of Linux 6.18 has them.
    const TRACE: &str = include_str!("trace_pipe.txt");

    fn taken(sums: &mut Sums, text: &str) -> Stalls {
        // Threads 4243 and 4244 are those of process 4242.
        let mut process = |e: &TraceLine<'_>| (if e.comm == "java" { 4242 } else { e.pid }, e.comm.to_string());
        text.lines().for_each(|line| sums.line(line, &mut process));
        sums.take(2.0)
    }

    fn stall(pid: u32, name: &str, waited_for: WaitedFor, order: u32, seconds: f64) -> Stall {
        Stall { pid, name: name.into(), waited_for, order, attempts: 1, seconds, longest_s: seconds }
    }

    #[test]
    fn a_request_waits_for_all_its_zones_and_compaction_without_a_request_is_nobodys_wait() {
        let stalls = taken(&mut Sums::default(), TRACE);
        let cc1 = stall(77, "cc1", WaitedFor::Reclaim, 0, 0.05);
        assert_eq!(stalls.processes, [cc1, stall(4242, "java", WaitedFor::Compaction, 9, 0.003)]);
        assert_eq!((stalls.seconds, stalls.lost_events), (2.0, 0));
    }

    #[test]
    fn a_wait_counts_in_the_span_in_which_it_ends() {
        let mut sums = Sums::default();
        let (first, rest) = TRACE.split_at(TRACE.find("             cc1-77      [001] ..... 100.055").expect("there"));
        assert_eq!(taken(&mut sums, first).processes.len(), 1);
        assert_eq!(taken(&mut sums, rest).processes, [stall(77, "cc1", WaitedFor::Reclaim, 0, 0.05)]);
        assert!(taken(&mut sums, "").processes.is_empty());
    }

    #[test]
    fn lost_events_are_counted_and_what_had_begun_before_them_is_forgotten() {
        let at = TRACE.find("             cc1-77      [001] ..... 100.055").expect("there");
        let text = format!("{}CPU:1 [LOST 27 EVENTS]\n{}", &TRACE[..at], &TRACE[at..]);
        let stalls = taken(&mut Sums::default(), &text);
        assert_eq!((stalls.lost_events, stalls.processes.len()), (27, 1));
        assert_eq!(stalls.processes[0].name, "java");
    }

    /// `prctl` lets any user choose the name of a thread.
    #[test]
    fn lines_broken_by_a_threads_name_count_as_lost_and_end_nothing() {
        let broken = "a\nb-7 [000] ..... 99.5: mm_compaction_begin: zone_start=0x1\n\
            c [1] d-8 [000] ..... 99.6: mm_vmscan_direct_reclaim_begin: order=0\n\
            cc1-77 [001] ..... 99.7: mm_vmscan_direct_reclaim_begin: may_writepage=1\n";
        let stalls = taken(&mut Sums::default(), &format!("{broken}{TRACE}"));
        assert_eq!((stalls.lost_events, stalls.processes.len()), (3, 2));
    }

    /// A shell on Linux 6.18 that has filled a pool, and then writes to `compact_memory`.
    #[test]
    fn a_write_to_compact_memory_is_not_the_wait_of_the_threads_last_request_however_soon_it_comes() {
        let told = [
            "0.376793: mm_compaction_try_to_compact_pages: order=9 gfp_mask=GFP_HIGHUSER_MOVABLE priority=2",
            "0.376794: mm_compaction_suitable: node=0 zone=Normal   order=9 ret=continue",
            "0.376794: mm_compaction_begin: zone_start=0x100000 migrate_pfn=0x18c400",
            "0.376843: mm_compaction_end: zone_start=0x100000 migrate_pfn=0x105e00 status=partial_skipped",
            "0.376843: mm_compaction_suitable: node=0 zone=DMA32    order=9 ret=skipped",
            "0.376844: mm_compaction_suitable: node=0 zone=DMA      order=9 ret=skipped",
            "0.388062: mm_compaction_begin: zone_start=0x1 migrate_pfn=0x1",
            "0.388074: mm_compaction_end: zone_start=0x1 migrate_pfn=0xe00 status=complete",
            "0.388074: mm_compaction_begin: zone_start=0x1000 migrate_pfn=0x1000",
            "0.388218: mm_compaction_end: zone_start=0x1000 migrate_pfn=0xffe00 status=complete",
        ];
        let line = |told: &str| format!("            bash-2356    [000] ..... {told}\n");
        let waited = stall(2356, "bash", WaitedFor::Compaction, 9, 0.000_049);
        let new: String = told.into_iter().map(line).collect();
        assert_eq!(taken(&mut Sums::default(), &new).processes, std::slice::from_ref(&waited));
        // On 6.1 a write finds every zone suitable, for no order.
        let asked = |told: &str| {
            let is_of_write = told.contains("0.388") && told.contains("_begin");
            let found = line("0.388062: mm_compaction_suitable: node=0 zone=DMA      order=-1 ret=continue");
            (if is_of_write { found } else { String::new() }) + &line(told)
        };
        let old: String = told.into_iter().map(asked).collect();
        assert_eq!(taken(&mut Sums::default(), &old).processes, [waited]);
    }
}
