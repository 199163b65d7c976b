//! What an operation cost, in things done rather than in time.
//!
//! The engine has no clock. It counts; a host turns the counts into nanoseconds with a cost model, or
//! ignores them because the time has really passed.

/// Things done since the host last took the count.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Work {
    /// Something below was counted: lets a host skip the sum on the commonest path, a hit in the per-CPU lists.
    pub any: bool,
    /// Zones whose lock was taken, a bit for each.
    pub zones: u64,
    /// Zones a free-list walk considered beyond the first.
    pub zones_tried: u64,
    /// Times a zone's lock was taken by the allocator.
    pub zone_locks: u64,
    /// Blocks moved between the free lists and a per-CPU list or a requester.
    pub buddy_blocks: u64,
    /// Blocks halved.
    pub splits: u64,
    /// Buddies joined.
    pub merges: u64,
    /// Free blocks moved from one type's list to another's.
    pub stolen_blocks: u64,
    /// Pages looked at to decide whether a pageblock changes hands.
    pub steal_scanned: u64,
    /// Pageblocks a compaction scanner visited: looked at the first frame's state and went on.
    pub blocks_visited: u64,
    /// Pageblocks the migration scanner passed over by their skip hint alone: it looked at no frame.
    pub blocks_hinted: u64,
    /// Frames the migration scanner looked at.
    pub migrate_scanned: u64,
    /// Frames the free scanner looked at.
    pub free_scanned: u64,
    /// Free-list entries looked at by compaction's fast searches.
    pub list_scanned: u64,
    /// Pages taken off the LRU.
    pub isolated: u64,
    /// Free pages taken as migration targets.
    pub free_isolated: u64,
    /// Pages migrated.
    pub migrated: u64,
    /// Migrations that failed.
    pub migrate_failed: u64,
    /// Per-CPU lists drained.
    pub drains: u64,
    /// Frames sampled to reset skip hints.
    pub reset_sampled: u64,
    /// Suitability and finished tests made.
    pub tests: u64,
    /// Pages that left the LRU by reclaim, or were looked at for it.
    pub reclaim_scanned: u64,
    /// Pages that reclaim passed over, because freeing them would not have helped.
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
        macro_rules! sum { ($($f:ident),*) => {{ $(self.$f += o.$f;)* }}; }
        work_fields!(sum);
    }
}
