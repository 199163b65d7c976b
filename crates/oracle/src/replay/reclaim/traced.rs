//! Reclaim's tracepoints, line by line: who reclaimed, how much was looked at of which list, and what came of it.
//!
//! Lines about slabs that the trace does not own are the kernel's own business and left out; so is what the engine does
//! not say of an event (gfp flags, and whose it is).

use crate::difference::{At, Difference, Section};
use crate::error::BadRecording;
use crate::recording::Recording;
use crate::trace::lru::LruOp;
use kontig_mm::{Event, Memory};

const COMPARED: [&str; 14] = [
    "mm_compaction_begin",
    "mm_compaction_end",
    "mm_compaction_isolate_migratepages",
    "mm_compaction_isolate_freepages",
    "mm_compaction_migratepages",
    "mm_compaction_finished",
    "mm_vmscan_direct_reclaim_begin",
    "mm_vmscan_direct_reclaim_end",
    "mm_vmscan_lru_isolate",
    "mm_vmscan_lru_shrink_inactive",
    "mm_vmscan_lru_shrink_active",
    "mm_vmscan_kswapd_wake",
    "mm_vmscan_kswapd_sleep",
    "mm_vmscan_wakeup_kswapd",
];
const NONE: &str = "no more events";
const LINES_SHOWN: usize = 12;

/// The kernel's tracepoints that are compared, and how many have been.
pub(super) struct Recorded {
    lines: Vec<String>,
    at: usize,
}

impl Recorded {
    pub(super) fn open(rec: &Recording) -> Result<Recorded, BadRecording> {
        let text = rec.text("trace.txt")?;
        Ok(Recorded { lines: text.lines().filter_map(kernel_line).collect(), at: 0 })
    }

    pub(super) fn compared(&self) -> u64 {
        self.at as u64
    }

    /// Compares what the engine did in an operation.
    pub(super) fn next(&mut self, _: &Memory, events: &[Event], i: usize, op: &LruOp) -> Result<(), Box<Difference>> {
        for event in events.iter().filter(|e| COMPARED.contains(&e.name())) {
            let engine = trimmed(&event.to_string());
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

    /// The kernel must not have done more.
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

/// The event of a line, if it is one that is compared.
fn kernel_line(line: &str) -> Option<String> {
    let event = COMPARED.iter().find_map(|name| line.find(&format!("{name}: ")).map(|at| &line[at..]))?;
    Some(trimmed(event))
}

/// Without what the engine does not say.
fn trimmed(event: &str) -> String {
    const UNSAID: [&str; 4] = ["gfp_flags=", "isolate_mode=", "pid=", "memcg_id="];
    let words = event.split_whitespace().filter(|w| !UNSAID.iter().any(|name| w.starts_with(name)));
    words.collect::<Vec<_>>().join(" ")
}
