//! Replays a recording in the engine and compares every result with the kernel's.
//!
//! Each kind of recording has its own file: [`operations`] (allocations and frees, direct
//! compaction among them), [`reclaim`] (memory under pressure) and [`sweep`] (a node compacted as a
//! whole). For [`faults`] (huge pages faulted in beside kcompactd) only bounds are held. Each ends
//! with the counters and the final state ([`outcome`]), and returns what was compared or the first
//! [`Difference`].

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

/// Numbers of items that were compared and are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    pub operations: u64,
    /// Results that are a pfn.
    pub pfns: u64,
    /// Tracepoints of compaction and, under memory pressure, of reclaim.
    pub events: u64,
    /// Migrations, by source and destination, in order.
    pub migrations: u64,
    pub counters: u64,
    /// States of the LRU lists, on the way and at the end.
    pub lru_states: u64,
    /// Pages and folios on the LRU lists in all these states, in order.
    pub lru_pages: u64,
    /// Free lists and per-CPU lists of the final state.
    pub lists: u64,
    /// Blocks on them, in order.
    pub listed: u64,
    /// Final states of zones: lists, watermarks, counters, pageblock types, skip hints, and
    /// compaction's cached positions and deferral.
    pub final_states: u64,
    /// Frames the engine's migration scanner counted beyond the kernel's. This is the one
    /// tolerance; see [`outcome`].
    pub scanned_beyond: u64,
    /// Closeness of a replay that cannot be equal.
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

/// Checks to make while replaying.
#[derive(Clone, Copy, Debug, Default)]
pub struct Care {
    /// Operations between two walks of the engine's checker; it also walks at the end.
    pub check_every: Option<usize>,
}

/// Replays one part of a recording.
///
/// # Errors
/// If the recording is malformed. A difference is not an error.
pub fn replay(rec: &Recording, part: Part, care: Care) -> Result<Replayed, BadRecording> {
    match part {
        Part::Reclaim => reclaim::replay(rec, care),
        Part::Operations | Part::Direct => operations::replay(rec, part, care),
        Part::Sweep { proactive } => sweep::replay(rec, proactive, care),
        Part::Faults => Ok(faults::replay(rec)?.map(|close| Compared { close: Some(close), ..Compared::default() })),
    }
}

/// Migrates every page and records the order. In the recordings no migration failed.
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
