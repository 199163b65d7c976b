//! What a trace lacks, and what of it is not taken over, in a line each.

use crate::recorded::Recording;
use kontig_program::NotTaken;
use kontig_workload::trace::recording::MOST_ORDER;
use std::collections::{BTreeMap, BTreeSet};

/// Times and counts of things that were left out, or taken otherwise.
#[derive(Default)]
pub(super) struct LeftOut {
    pub(super) lost: u64,
    pub(super) gaps: u64,
    pub(super) failed: u64,
    pub(super) frees: u64,
    pub(super) missed_frees: u64,
    /// Pages that were moved, and are followed.
    pub(super) moved: u64,
    /// Pages that were moved to where the trace does not say.
    pub(super) moved_away: u64,
    pub(super) other_events: u64,
    pub(super) too_large: u64,
    /// Whether a thread's process is not known.
    pub(super) threads_alone: bool,
    without_effect: BTreeSet<String>,
    lacking: BTreeMap<String, u64>,
    unknown: BTreeMap<String, u64>,
}

impl LeftOut {
    pub(super) fn flag(&mut self, flag: NotTaken<'_>) {
        match flag {
            NotTaken::WithoutEffect(name) => _ = self.without_effect.insert(name.into()),
            NotTaken::Lacking(name) => *self.lacking.entry(name.into()).or_default() += 1,
            NotTaken::Unknown(name) => *self.unknown.entry(name.into()).or_default() += 1,
        }
    }

    pub(super) fn notes(&self, recording: &Recording) -> Vec<String> {
        let stay = recording.each().filter(|allocation| allocation.stays()).count() as u64;
        let too_large = format!("allocations of an order above {MOST_ORDER}, which the engine lacks, left out");
        let (defrag, otherwise) = recording.defrag();
        let otherwise_asked =
            format!("huge pages that the recording asked for otherwise than thp.defrag={defrag} does");
        let counted = [
            (self.lost, "events that the tracer lost, with what they allocated or freed"),
            (self.gaps, "places where the tracer lost events and does not say how many"),
            (self.frees, "frees of what was not allocated in the recording, left out"),
            (self.missed_frees, "pages allocated again without a free, taken for freed then"),
            (self.moved, "moves of pages, which are freed where they were then"),
            (
                self.moved_away,
                "pages that kcompactd moved and the trace does not say where to: they end there; \
                 migrate:remove_migration_pte says it of pages that a process maps",
            ),
            (stay, "allocations that were not freed in the recording, or not all of them: they stay to the end"),
            (self.failed, "allocations that had failed, left out"),
            (self.too_large, too_large.as_str()),
            (self.other_events, "events that say nothing of an allocation, left out"),
            (otherwise as u64, otherwise_asked.as_str()),
        ];
        let counted = counted.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{what}: {n}"));
        let names: Vec<&str> = self.without_effect.iter().map(String::as_str).collect();
        let without_effect = (!names.is_empty()).then(|| format!("flags without effect here: {}", names.join(", ")));
        let lacking = self.lacking.iter().map(|(name, n)| format!("flag {name}, whose effect is lacking here: {n}"));
        let unknown =
            self.unknown.iter().map(|(name, n)| format!("flag {name}, which is not known here, left out: {n}"));
        let threads = "threads are named without their processes: each is replayed as a process of its own; perf \
                       script -F comm,pid,tid,cpu,time,event,trace and option record-tgid of ftrace name both";
        let threads = self.threads_alone.then(|| threads.into());
        counted.chain(without_effect).chain(lacking).chain(unknown).chain(threads).collect()
    }
}
