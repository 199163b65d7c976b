//! Shrinks the caches of objects: of each as large a part as of the LRU lists, more of what is cheap to make again.
//!
//! What was not done because it was less than a batch is done later. Source: kernel-behaviour §4.6.

use super::control::ScanControl;
use crate::event::{Event, Listen};
use crate::host::{Owner, Shrinker};
use crate::state::Memory;
use crate::types::NodeId;
use crate::vmstat::VmEvent;

impl Memory {
    /// Asks each of the node's shrinkers for its part. Returns the pages that were freed by it.
    pub(super) fn shrink_slab<O: Owner>(&mut self, owner: &mut O, node: NodeId, sc: &ScanControl) -> u64 {
        let (mut number, mut pages) = (0, 0);
        while let Some(shrinker) = owner.shrinker(node, number) {
            if shrinker.freeable > 0 {
                pages += self.do_shrink_slab(owner, node, number, shrinker, sc.priority);
            }
            number += 1;
        }
        pages
    }

    fn do_shrink_slab<O: Owner>(
        &mut self,
        owner: &mut O,
        node: NodeId,
        number: usize,
        shrinker: Shrinker,
        priority: i8,
    ) -> u64 {
        let Shrinker { freeable, seeks, batch } = shrinker;
        let deferred = &mut self.lru.vecs[node].deferred;
        if deferred.len() <= number {
            deferred.resize(number + 1, 0);
        }
        let before = core::mem::take(&mut deferred[number]);
        let delta = if seeks > 0 { (freeable >> priority) * 4 / u64::from(seeks) } else { freeable / 2 };
        let mut total = ((before >> priority) + delta).min(2 * freeable);
        let (start, mut scanned, mut freed, mut pages) = (total, 0, 0, 0);
        self.shared.emit(Listen::VMSCAN, || Event::ShrinkSlabStart {
            nid: node,
            nr_objects_to_shrink: before,
            cache_items: freeable,
            delta,
            total_scan: start,
            priority,
        });
        while total >= batch || total >= freeable {
            let Some(done) = owner.shrink(self, node, number, total.min(batch)) else { break };
            self.shared.vmstat.add(VmEvent::SlabsScanned, done.scanned);
            total = total.saturating_sub(done.scanned);
            scanned += done.scanned;
            freed += done.freed;
            pages += done.pages;
            self.offer_cpu(owner);
        }
        let next = (before + delta).saturating_sub(scanned).min(2 * freeable);
        self.lru.vecs[node].deferred[number] += next;
        let new_scan = self.lru.vecs[node].deferred[number];
        self.shared.emit(Listen::VMSCAN, || Event::ShrinkSlabEnd {
            nid: node,
            unused_scan: before,
            new_scan,
            total_scan: total,
            last_shrinker_retval: freed,
        });
        pages
    }
}
