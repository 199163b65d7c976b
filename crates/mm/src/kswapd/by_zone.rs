//! kswapd where every zone has LRU lists of its own (up to 4.7): it balances the zones of its node
//! one by one.
//!
//! A round finds the highest zone that is not balanced and shrinks all zones from the lowest up to
//! it, except those with more than the balance gap free above the high watermark. Rounds go on,
//! priority by priority, until the node is balanced: for order 0 all its zones must be, for a
//! higher order enough zones for a quarter of its memory. kswapd itself checks order 0 only;
//! kcompactd makes the block. Source: kernel-behaviour §4.4.

use super::{DaemonStep, Kswapd, KswapdStage, NAP_NS};
use crate::event::{Event, Listen};
use crate::gfp::{AllocFlags, Gfp, Wmark};
use crate::owner::Owner;
use crate::reclaim::node::ShrinkNode;
use crate::reclaim::{DEF_PRIORITY, ScanControl};
use crate::state::Memory;
use crate::step::{Daemon, Step, Wait};
use crate::types::{CLUSTER_MAX, NodeId, Order, ZoneId, ZoneType};
use crate::vmstat::VmEvent;
use alloc::boxed::Box;

/// Divisor of a zone's managed pages for its balance gap (`KSWAPD_ZONE_BALANCE_GAP_RATIO`).
const BALANCE_GAP_RATIO: u64 = 100;

/// A balance run, in rounds.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    sc: ScanControl,
    /// Highest unbalanced zone of this round, or of the last one.
    end_zone: ZoneType,
    round: Option<Round>,
}

/// One pass over the zones of the node, at one priority.
#[derive(Clone, Debug)]
struct Round {
    /// Index of the next zone, from the lowest.
    next: usize,
    shrinking: Option<(ZoneId, ShrinkNode)>,
    raise_priority: bool,
}

impl Memory {
    /// The balance gap: pages that must be free above the high watermark for kswapd to skip the
    /// zone.
    pub(crate) fn balance_gap(&self, zone: ZoneId) -> u64 {
        let z = &self.zones[zone];
        z.wmark(Wmark::Low).min(z.managed.div_ceil(BALANCE_GAP_RATIO))
    }

    /// Whether the zone passes the watermark check at `beyond` pages above its high watermark.
    fn is_above_high(&self, zone: ZoneId, order: Order, beyond: u64, highest: ZoneType) -> bool {
        let z = &self.zones[zone];
        let (mark, plain) = (z.wmark(Wmark::High) + beyond, AllocFlags::mark(Wmark::High));
        z.watermark_ok(order, mark, highest, plain, z.free_pages_snapshot(), &self.shared.profile)
    }

    /// Whether kswapd is done with a zone: enough single pages are free to make a block of `order`.
    fn zone_balanced(&self, zone: ZoneId, order: Order, gap: u64, highest: ZoneType) -> bool {
        self.is_above_high(zone, Order::ZERO, gap + u64::from(order.pages()), highest)
    }

    /// Whether the node is balanced: all its zones, or for an order above 0 zones with a quarter of
    /// its memory. Unreclaimable zones count as balanced.
    fn zones_balanced(&self, node: NodeId, order: Order, highest: ZoneType) -> bool {
        let (mut managed, mut balanced) = (0, 0);
        for &zone in self.nodes[node].zones.iter().filter(|z| self.zones[**z].kind <= highest) {
            let z = &self.zones[zone];
            managed += z.managed;
            if !self.zone_reclaimable(zone) || self.zone_balanced(zone, order, 0, z.kind) {
                balanced += z.managed;
            } else if order == Order::ZERO {
                return false;
            }
        }
        order == Order::ZERO || balanced >= managed >> 2
    }

    /// Asks kswapd for free pages of `order` in this particular zone.
    pub(super) fn wakeup_kswapd_for_zone(&mut self, zone: ZoneId, order: Order, highest: ZoneType) {
        let node = self.zones[zone].node;
        let k = &mut self.nodes[node].kswapd;
        if k.order < order {
            k.order = order;
            k.highest = Some(k.highest.map_or(highest, |h| h.min(highest)));
        }
        if k.running || self.is_above_high(zone, order, 0, ZoneType::Dma) {
            return;
        }
        self.shared.emit(Listen::VMSCAN, || Event::WakeupKswapd { nid: node, order });
        self.nodes[node].kswapd.running = true;
        self.wakes.add(Daemon::Kswapd(node));
    }

    fn top_zone(&self, node: NodeId) -> ZoneType {
        self.nodes[node].zones.last().map_or(ZoneType::Normal, |z| self.zones[*z].kind)
    }
}

impl Kswapd {
    /// Begins a run for what was asked for.
    pub(super) fn wake_for_zones(&mut self, m: &mut Memory) -> DaemonStep {
        let top = m.top_zone(self.node);
        let k = &mut m.nodes[self.node].kswapd;
        self.alloc_order = core::mem::take(&mut k.order);
        self.highest = k.highest.take().unwrap_or(top);
        self.begin_rounds(m)
    }

    fn begin_rounds(&mut self, m: &mut Memory) -> DaemonStep {
        m.nodes[self.node].kswapd.running = true;
        let (nid, order) = (self.node, self.alloc_order);
        m.shared.emit(Listen::VMSCAN, || Event::KswapdWake { nid, order });
        m.shared.vmstat.add(VmEvent::Pageoutrun, 1);
        let mut sc = ScanControl::new(self.cpu, Gfp::KERNEL, order, self.highest);
        sc.kswapd = true;
        self.state = KswapdStage::Rounds(Box::new(Rounds { sc, end_zone: ZoneType::Dma, round: None }));
        Step::Working
    }

    /// Advances the run by one step.
    pub(super) fn go_round<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, mut run: Box<Rounds>) -> DaemonStep {
        let Some(mut round) = run.round.take().or_else(|| self.begin_round(m, owner, &mut run)) else {
            return self.end_rounds(m, run.end_zone);
        };
        if round.shrinking.is_none() && !self.begin_zone(m, &mut run, &mut round) {
            // All zones are done.
            if round.raise_priority || run.sc.nr_reclaimed == 0 {
                run.sc.priority -= 1;
            }
            if run.sc.priority < 1 || m.zones_balanced(self.node, self.alloc_order, self.highest) {
                return self.end_rounds(m, run.end_zone);
            }
            self.state = KswapdStage::Rounds(run);
            return Step::Working;
        }
        let mut step = Step::Working;
        if let Some((zone, shrink)) = &mut round.shrinking {
            let zone = *zone;
            match shrink.step(m, owner, &mut run.sc) {
                Step::Working => {}
                Step::Wait(wait) => step = Step::Wait(wait),
                Step::Done(()) => {
                    round.shrinking = None;
                    round.raise_priority &= run.sc.nr_scanned < run.sc.nr_to_reclaim;
                    self.zone_done(m, zone, run.end_zone);
                }
            }
        }
        run.round = Some(round);
        self.state = KswapdStage::Rounds(run);
        step
    }

    /// Finds the highest zone that is not balanced; `None` if there is none.
    fn begin_round<O: Owner>(&self, m: &mut Memory, owner: &mut O, run: &mut Rounds) -> Option<Round> {
        run.sc.nr_reclaimed = 0;
        m.shared.work.any = true;
        m.shared.work.tests += 1;
        for at in (0..m.nodes[self.node].zones.len()).rev() {
            let zone = m.nodes[self.node].zones[at];
            if run.sc.priority != DEF_PRIORITY && !m.zone_reclaimable(zone) {
                continue;
            }
            let lruvec = m.zones[zone].lruvec;
            m.age_anon(owner, lruvec, &run.sc);
            if !m.zone_balanced(zone, self.alloc_order, 0, ZoneType::Dma) {
                run.end_zone = m.zones[zone].kind;
                return Some(Round { next: 0, shrinking: None, raise_priority: true });
            }
            let vec = &mut m.lru.vecs[lruvec];
            (vec.congested, vec.dirty) = (false, false);
        }
        None
    }

    /// Begins shrinking the next zone that needs it; false if there is none.
    fn begin_zone(&self, m: &mut Memory, run: &mut Rounds, round: &mut Round) -> bool {
        while let Some(&zone) = m.nodes[self.node].zones.get(round.next) {
            let (kind, end_zone) = (m.zones[zone].kind, run.end_zone);
            if kind > end_zone {
                return false;
            }
            round.next += 1;
            if run.sc.priority != DEF_PRIORITY && !m.zone_reclaimable(zone) {
                continue;
            }
            run.sc.nr_scanned = 0;
            run.sc.nr_to_reclaim = m.zones[zone].wmark(Wmark::High).max(u64::from(CLUSTER_MAX));
            if m.zone_balanced(zone, self.alloc_order, m.balance_gap(zone), end_zone) {
                round.raise_priority = false;
                continue;
            }
            round.shrinking = Some((zone, ShrinkNode::new(m.zones[zone].lruvec, kind == end_zone)));
            return true;
        }
        false
    }

    /// After a zone: a balanced zone no longer counts as congested.
    fn zone_done(&self, m: &mut Memory, zone: ZoneId, end_zone: ZoneType) {
        let balanced = m.zone_reclaimable(zone) && m.zone_balanced(zone, self.alloc_order, 0, end_zone);
        let vec = &mut m.lru.vecs[m.zones[zone].lruvec];
        vec.writeback = false;
        if balanced {
            (vec.congested, vec.dirty) = (false, false);
        }
    }

    /// Ends a run: begins another if more has been asked for since, else tries to sleep.
    fn end_rounds(&mut self, m: &mut Memory, end_zone: ZoneType) -> DaemonStep {
        self.balanced = end_zone;
        let top = m.top_zone(self.node);
        let k = &mut m.nodes[self.node].kswapd;
        let (order, highest) = (core::mem::take(&mut k.order), k.highest.take().unwrap_or(top));
        if self.alloc_order < order || self.highest > highest {
            (self.alloc_order, self.highest) = (order, highest);
            return self.begin_rounds(m);
        }
        if !self.may_sleep(m) {
            m.shared.vmstat.add(VmEvent::KswapdHighWmarkHitQuickly, 1);
            return self.wake_for_zones(m);
        }
        m.reset_isolation_suitable_node(self.node);
        m.wakeup_kcompactd(self.node, self.alloc_order, self.highest);
        m.nodes[self.node].kswapd.running = false;
        self.state = KswapdStage::Napping;
        Step::Wait(Wait::Time(NAP_NS))
    }

    /// Whether the zones that the last run was for are balanced.
    pub(super) fn may_sleep(&self, m: &Memory) -> bool {
        m.zones_balanced(self.node, self.alloc_order, self.balanced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::linux;

    const NODE: NodeId = NodeId::new(0);
    const DMA32: ZoneId = ZoneId::new(0);
    const NORMAL: ZoneId = ZoneId::new(1);

    /// Two zones, each all free and with something to reclaim, to be changed by the test.
    fn two_zones() -> Memory {
        let mut m = crate::testing::two_zones(linux("4.6"));
        for z in &mut m.zones {
            z.lru.add_to_total(crate::state::LruList::InactiveFile.index(), 100);
        }
        m
    }

    fn leaves(m: &mut Memory, zone: ZoneId, beyond_high: i64) {
        m.zones[zone].free_pages = m.zones[zone].wmark(Wmark::High) as i64 + beyond_high;
    }

    #[test]
    fn for_single_pages_all_zones_must_be_balanced() {
        let mut m = two_zones();
        assert!(m.zones_balanced(NODE, Order::ZERO, ZoneType::Normal));
        leaves(&mut m, DMA32, 1);
        assert!(!m.zones_balanced(NODE, Order::ZERO, ZoneType::Normal), "a page of the block asked for is kept back");
        leaves(&mut m, DMA32, 2);
        assert!(m.zones_balanced(NODE, Order::ZERO, ZoneType::Normal));
        leaves(&mut m, NORMAL, 0);
        assert!(!m.zones_balanced(NODE, Order::ZERO, ZoneType::Normal));
        assert!(m.zones_balanced(NODE, Order::ZERO, ZoneType::Dma32), "above that nobody has asked");
    }

    #[test]
    fn for_a_block_a_quarter_of_the_memory_is_enough() {
        let (mut m, order) = (two_zones(), Order::new(3));
        leaves(&mut m, NORMAL, 0);
        assert!(m.zones_balanced(NODE, order, ZoneType::Normal), "16 of 64 pageblocks");
        leaves(&mut m, DMA32, 8);
        assert!(!m.zones_balanced(NODE, order, ZoneType::Normal));
    }

    #[test]
    fn a_zone_that_was_looked_at_six_times_over_counts_as_balanced() {
        let mut m = two_zones();
        leaves(&mut m, NORMAL, 0);
        m.zones[NORMAL].pages_scanned = 600;
        assert!(m.zones_balanced(NODE, Order::ZERO, ZoneType::Normal));
        m.zones[NORMAL].pages_scanned = 599;
        assert!(!m.zones_balanced(NODE, Order::ZERO, ZoneType::Normal));
    }

    #[test]
    fn each_zone_is_asked_for_by_itself() {
        let mut m = two_zones();
        leaves(&mut m, DMA32, 0);
        m.wakeup_kswapd(NORMAL, Gfp::KERNEL, Order::ZERO, ZoneType::Normal);
        assert!(!m.has_wakes(), "Normal has enough");
        m.wakeup_kswapd(DMA32, Gfp::KERNEL, Order::ZERO, ZoneType::Normal);
        assert!(m.take_wakes().eq([Daemon::Kswapd(NODE)]));
    }

    #[test]
    fn the_gap_that_a_zone_is_left_alone_above_is_the_low_mark_or_a_hundredth() {
        let mut m = two_zones();
        m.zones[NORMAL].watermarks.low = 1000;
        assert_eq!(m.balance_gap(NORMAL), 246, "24,576 pages are managed");
        m.zones[NORMAL].watermarks.low = 200;
        assert_eq!(m.balance_gap(NORMAL), 200);
    }
}
