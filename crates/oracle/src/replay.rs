//! Replays: a recording carried out in the engine, every result held against the kernel's.
//!
//! Each kind of recording has its own file: [`operations`] (allocations and frees, direct compaction among them),
//! [`reclaim`] (memory under pressure) and [`sweep`] (a node compacted as a whole); [`faults`] (huge pages
//! asked for beside kcompactd) is held within bounds only. Each ends with the counters and the final state ([`outcome`]) and gives
//! either what was compared or the first [`Difference`].

mod daemons;
mod events;
pub mod faults;
pub mod operations;
pub mod outcome;
pub mod reclaim;
mod request;
pub mod sweep;

use crate::difference::Difference;
use crate::error::BadRecording;
use crate::recording::{Part, Recording};
use faults::Closeness;
use kontig_mm::Pfn;
use kontig_mm::{MigrateOutcome, Owner};

/// How many things were compared and found equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Operations carried out.
    pub operations: u64,
    /// Results that were a block: a pfn of the kernel's and the same one of the engine's.
    pub pfns: u64,
    /// Tracepoints: compaction's, and of memory under pressure reclaim's, too.
    pub events: u64,
    /// Pages migrated, from and to the same places in the same order.
    pub migrations: u64,
    /// Counters.
    pub counters: u64,
    /// States of the LRU lists, those on the way among them.
    pub lru_states: u64,
    /// Pages and folios on the LRU lists of all these states, in order.
    pub lru_pages: u64,
    /// Free lists and per-CPU lists of the final state.
    pub lists: u64,
    /// Blocks on them, in order.
    pub listed: u64,
    /// Zones' final states: marks, counters, pageblock types, skip hints and compaction's memory, beside the lists.
    pub final_states: u64,
    /// Frames the engine's migration scanner counted beyond the kernel's: the one tolerance there is, see [`outcome`].
    pub scanned_beyond: u64,
    /// Where equality cannot be reached, how close the replay is.
    pub close: Option<Closeness>,
}

impl Compared {
    /// Adds what another part of the recording compared.
    pub fn add(&mut self, o: Compared) {
        self.operations += o.operations;
        self.pfns += o.pfns;
        self.events += o.events;
        self.migrations += o.migrations;
        self.counters += o.counters;
        self.lru_states += o.lru_states;
        self.lru_pages += o.lru_pages;
        self.lists += o.lists;
        self.listed += o.listed;
        self.final_states += o.final_states;
        self.scanned_beyond += o.scanned_beyond;
        self.close = o.close.or(self.close.take());
    }
}

/// The result of a replay.
pub type Replayed = Result<Compared, Box<Difference>>;

/// How carefully to replay.
#[derive(Clone, Copy, Debug, Default)]
pub struct Care {
    /// Let the engine's checker walk the whole machine after every so many operations, and at the end.
    pub check_every: Option<usize>,
}

/// Replays one part of a recording.
///
/// # Errors
/// If the recording is malformed; that the engine differs is no error.
pub fn replay(rec: &Recording, part: Part, care: Care) -> Result<Replayed, BadRecording> {
    match part {
        Part::Reclaim => reclaim::replay(rec, care),
        Part::Operations | Part::Direct => operations::replay(rec, part, care),
        Part::Sweep { proactive } => sweep::replay(rec, proactive, care),
        Part::Faults => Ok(faults::replay(rec)?.map(|close| Compared { close: Some(close), ..Compared::default() })),
    }
}

/// Moves every page it is asked to move, and remembers the order: nobody had a reason to refuse in the recordings.
#[derive(Clone, Default)]
pub(crate) struct Moves(pub(crate) Vec<(Pfn, Pfn)>);

impl Owner for Moves {
    fn may_isolate(&mut self, _: Pfn) -> bool {
        true
    }
    fn migrate(&mut self, from: Pfn, to: Pfn, _: u32) -> MigrateOutcome {
        self.0.push((from, to));
        MigrateOutcome::Moved
    }
}
