//! Events of the kernel, added up to waits.
//!
//! A request that compacts says its order first (`mm_compaction_try_to_compact_pages`); each zone
//! that it compacts then begins and ends. Compaction without a request (kcompactd, a write to
//! `compact_memory`) has no such event before it and is nobody's wait. Reclaim tells its order when
//! it begins. Where events were lost, what had begun is forgotten: its end may be among them.

use super::{Stall, Stalls, WaitedFor};
use crate::error::ReadError;
use kontig_procfs::{BadText, Lost, TraceLine, lost_events};
use std::collections::BTreeMap;
use std::path::Path;

/// The tracepoints that are needed.
pub const EVENTS: [&str; 5] = [
    "compaction/mm_compaction_try_to_compact_pages",
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
    lines: usize,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    times: u64,
    us: u64,
    longest_us: u64,
}

impl Sums {
    /// Takes in a line of the trace; `process` names the process of a thread.
    ///
    /// # Errors
    /// If no kernel prints such a line.
    pub fn line(
        &mut self,
        file: &Path,
        line: &str,
        process: &mut impl FnMut(&TraceLine<'_>) -> Process,
    ) -> Result<(), ReadError> {
        self.lines += 1;
        if let Some(lost) = lost_events(line) {
            self.lost += match lost {
                Lost::Events(events) => events,
                Lost::Unsaid => 1,
            };
            self.threads.clear();
            return Ok(());
        }
        let path = file.display().to_string();
        let Some(event) = TraceLine::parse(&path, self.lines, line)? else { return Ok(()) };
        self.event(&event, process).map_err(|reason| BadText { file: path, line: self.lines, reason }.into())
    }

    fn event(&mut self, e: &TraceLine<'_>, process: &mut impl FnMut(&TraceLine<'_>) -> Process) -> Result<(), String> {
        let thread = self.threads.entry(e.pid).or_default();
        thread.last_us = e.at_us;
        let order = || {
            let order = e.number("order").and_then(|order| u32::try_from(order).ok());
            order.ok_or_else(|| format!("{} without its order", e.event))
        };
        let (what, order, us, is_first) = match e.event {
            "mm_compaction_try_to_compact_pages" => {
                thread.request = Some(Request { order: order()?, took_us: None });
                return Ok(());
            }
            "mm_compaction_begin" => {
                thread.compacts = Some(e.at_us);
                return Ok(());
            }
            "mm_compaction_end" => {
                let Some((began, request)) = thread.compacts.take().zip(thread.request.as_mut()) else { return Ok(()) };
                let is_first = request.took_us.is_none();
                let us = e.at_us.saturating_sub(began);
                request.took_us = Some(request.took_us.unwrap_or(0) + us);
                (WaitedFor::Compaction, request.order, us, is_first)
            }
            "mm_vmscan_direct_reclaim_begin" => {
                thread.request = None;
                thread.reclaims = Some((e.at_us, order()?));
                return Ok(());
            }
            "mm_vmscan_direct_reclaim_end" => {
                let Some((began, order)) = thread.reclaims.take() else { return Ok(()) };
                (WaitedFor::Reclaim, order, e.at_us.saturating_sub(began), true)
            }
            _ => return Ok(()),
        };
        let of_request = match (what, thread.request) {
            (WaitedFor::Compaction, Some(request)) => request.took_us.unwrap_or(us),
            _ => us,
        };
        let sum = self.stalls.entry((process(e), what, order)).or_default();
        sum.times += u64::from(is_first);
        sum.us += us;
        sum.longest_us = sum.longest_us.max(of_request);
        Ok(())
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
            times: sum.times,
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
        text.lines().for_each(|line| sums.line(Path::new("trace_pipe"), line, &mut process).expect("a line"));
        sums.take(2.0)
    }

    fn stall(pid: u32, name: &str, waited_for: WaitedFor, order: u32, seconds: f64) -> Stall {
        Stall { pid, name: name.into(), waited_for, order, times: 1, seconds, longest_s: seconds }
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

    #[test]
    fn a_line_that_no_kernel_prints_is_named() {
        let mut sums = Sums::default();
        let process = &mut |e: &TraceLine<'_>| (e.pid, e.comm.to_string());
        let refused = |sums: &mut Sums, line, process: &mut _| {
            sums.line(Path::new("trace_pipe"), line, process).expect_err("refused").to_string()
        };
        assert!(refused(&mut sums, "root:x:0:0", process).starts_with("trace_pipe: line 1: no line of a trace"));
        let line = " cc1-77 [001] ..... 1.5: mm_vmscan_direct_reclaim_begin: may_writepage=1";
        let said = "trace_pipe: line 2: mm_vmscan_direct_reclaim_begin without its order";
        assert_eq!(refused(&mut sums, line, process), said);
    }
}
