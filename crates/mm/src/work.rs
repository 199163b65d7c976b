//! The cost of an operation, in counts instead of time.
//!
//! The engine has no clock. It counts; a host turns the counts into nanoseconds with a cost model,
//! or ignores them because the time has really passed.

/// Counts of work since the host last took them.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Work {
    /// Something below was counted. Lets a host skip the sum on the commonest path, a hit in the
    /// per-CPU lists.
    pub any: bool,
    /// A bit for each zone whose lock was taken.
    pub zones: u64,
    /// A bit for each node's or, up to 4.7, zone's LRU whose lock was taken.
    pub lrus: u64,
    /// Pages that joined, left or changed a list with that lock held.
    pub listed: u64,
    /// Zones that free-list walks tried beyond the first.
    pub zones_tried: u64,
    /// Acquisitions of a zone's lock by the allocator.
    pub zone_locks: u64,
    /// Blocks moved between the free lists and a per-CPU list or a requester.
    pub buddy_blocks: u64,
    pub splits: u64,
    pub merges: u64,
    /// Free blocks moved from one type's list to another's.
    pub stolen_blocks: u64,
    /// Pages examined to decide whether a pageblock changes type.
    pub steal_scanned: u64,
    /// Pageblocks that a compaction scanner left after a look at their first frame.
    pub blocks_visited: u64,
    /// Pageblocks that the migration scanner skipped by their hint alone, without a look at any
    /// frame.
    pub blocks_hinted: u64,
    /// Frames that the migration scanner scanned.
    pub migrate_scanned: u64,
    /// Frames that the free scanner scanned.
    pub free_scanned: u64,
    /// Free-list entries scanned by compaction's fast searches.
    pub list_scanned: u64,
    /// Pages taken off the LRU.
    pub isolated: u64,
    /// Free pages taken as migration targets.
    pub free_isolated: u64,
    pub migrated: u64,
    pub migrate_failed: u64,
    pub drains: u64,
    /// Frames sampled to reset skip hints.
    pub reset_sampled: u64,
    /// Suitability and finished tests.
    pub tests: u64,
    /// Pages that left the LRU for reclaim, or were scanned for it.
    pub reclaim_scanned: u64,
    /// Pages that reclaim skipped, because freeing them would not have helped.
    pub reclaim_skipped: u64,
}

macro_rules! work_fields {
    ($m:ident) => {
        $m!(
            zones_tried,
            zone_locks,
            buddy_blocks,
            splits,
            merges,
            stolen_blocks,
            steal_scanned,
            blocks_visited,
            blocks_hinted,
            migrate_scanned,
            free_scanned,
            list_scanned,
            isolated,
            free_isolated,
            migrated,
            migrate_failed,
            drains,
            reset_sampled,
            tests,
            reclaim_scanned,
            reclaim_skipped
        )
    };
}

impl Work {
    /// Each count with its name.
    pub fn fields(&self) -> [(&'static str, u64); 21] {
        macro_rules! list { ($($f:ident),*) => { [$((stringify!($f), self.$f)),*] }; }
        work_fields!(list)
    }

    /// Adds another count to this one.
    pub fn add(&mut self, o: &Work) {
        self.any |= o.any;
        self.zones |= o.zones;
        self.lrus |= o.lrus;
        self.listed += o.listed;
        macro_rules! sum { ($($f:ident),*) => {{ $(self.$f += o.$f;)* }}; }
        work_fields!(sum);
    }
}
