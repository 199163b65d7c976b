//! Reclaim cost of anonymous and of file pages: the kind that cost more lately is scanned less.
//!
//! Pages that are written or refault cost I/O; pages that are scanned and stay cost the scan. Up to
//! 7.2 a cost is added when it arises; from 7.3 on events are only counted, and read when reclaim
//! begins with a node. Costs decay: both are halved when their sum exceeds a quarter of the lists.
//! Source: kernel-behaviour §4.2.

use crate::rules::BalancedBy;
use crate::state::{Backing, CostsRead, LruList, Lruvec, Memory, NodeStat};
use crate::types::{CLUSTER_MAX, CpuId, LruvecId};

impl Memory {
    /// Adds the cost of `io` pages written or refaulted and of `rotated` pages scanned in vain.
    pub(crate) fn lru_note_cost(&mut self, lruvec: LruvecId, backing: Backing, io: u64, rotated: u64) {
        let rules = &self.shared.profile.reclaim;
        if rules.balance == BalancedBy::Rotations {
            return;
        }
        let cost = if rules.cost_of_rotation { io * u64::from(CLUSTER_MAX) + rotated } else { io };
        if cost == 0 && rules.fades_by_costs_only {
            return;
        }
        let add = |vec: &mut Lruvec| {
            vec.cost[backing.index()] += cost;
            if vec.costs_are_high() {
                vec.halve_costs();
            }
        };
        add(&mut self.lru.vecs[lruvec]);
        if self.groups.are_kept() {
            self.for_lists_above(lruvec, add);
        }
    }

    /// Adds the cost of a scan: of its pages, `written` were written and `stayed` stayed.
    pub(crate) fn note_look(&mut self, cpu: CpuId, lruvec: LruvecId, backing: Backing, written: u64, stayed: u64) {
        if self.shared.profile.reclaim.costs_from_counters {
            // Written pages are counted where they are written.
            self.lru.vecs[lruvec].count(NodeStat::rotate(backing), cpu, stayed as i64);
        } else {
            self.lru_note_cost(lruvec, backing, written, stayed);
        }
    }

    /// Reclaim begins with a node: turns what was counted since the last time into cost.
    pub(crate) fn read_costs(&mut self, lruvec: LruvecId) {
        if !self.shared.profile.reclaim.costs_from_counters {
            return;
        }
        let vec = &mut self.lru.vecs[lruvec];
        for backing in Backing::ALL {
            let mut io = vec.stat(NodeStat::restore(backing));
            if backing == Backing::Anon {
                io += vec.stat(NodeStat::VmscanWrite);
            }
            let now = CostsRead { rotated: vec.stat(NodeStat::rotate(backing)), io };
            let before = core::mem::replace(&mut vec.costs_read[backing.index()], now);
            vec.cost[backing.index()] += (now.io - before.io) * u64::from(CLUSTER_MAX) + now.rotated - before.rotated;
        }
        while vec.costs_are_high() {
            vec.halve_costs();
        }
    }
}

impl Lruvec {
    fn costs_are_high(&self) -> bool {
        let listed: u64 = LruList::EVICTABLE.iter().map(|list| self.size_state(*list)).sum();
        self.cost[0] + self.cost[1] > listed / 4
    }

    fn halve_costs(&mut self) {
        self.cost.iter_mut().for_each(|cost| *cost /= 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{linux, ordered_machine_with};

    const CPU: CpuId = CpuId::new(0);
    const VEC: LruvecId = LruvecId::new(0);

    /// A machine with this many pages counted on each of its lists.
    fn listing(profile: &str, pages: i64) -> Memory {
        let mut m = ordered_machine_with(1, linux(profile));
        for list in LruList::EVICTABLE {
            m.lru.vecs[VEC].stats.add_to_total(list.index(), pages);
        }
        m
    }

    fn cost(m: &Memory) -> [u64; 2] {
        m.lru.vecs[VEC].cost
    }

    #[test]
    fn costs_are_halved_when_they_pass_a_quarter_of_the_lists() {
        let mut m = listing("6.1", 10);
        m.lru_note_cost(VEC, Backing::Anon, 5, 0);
        m.lru_note_cost(VEC, Backing::File, 5, 0);
        assert_eq!(cost(&m), [5, 5]);
        m.lru_note_cost(VEC, Backing::File, 1, 0);
        assert_eq!(cost(&m), [2, 3]);
    }

    #[test]
    fn from_7_3_on_costs_are_what_was_counted_since_reclaim_last_began() {
        let mut m = listing("7.3", 1000);
        m.note_look(CPU, VEC, Backing::Anon, 7, 100);
        m.note_look(CPU, VEC, Backing::File, 0, 200);
        assert_eq!(cost(&m), [0, 0], "nothing is noted when it happens");
        let stats = &mut m.lru.vecs[VEC].stats;
        stats.add_to_total(NodeStat::VmscanWrite as usize, 7);
        stats.add_to_total(NodeStat::WorkingsetRestoreFile as usize, 1);
        m.read_costs(VEC);
        assert_eq!(cost(&m), [7 * 32 + 100, 32 + 200], "all that was written is a cost of anonymous pages");
        m.read_costs(VEC);
        assert_eq!(cost(&m), [324, 232], "it is read once");
    }

    #[test]
    fn from_7_3_on_costs_are_halved_until_they_are_low() {
        let mut m = listing("7.3", 100);
        m.note_look(CPU, VEC, Backing::Anon, 0, 1000);
        m.read_costs(VEC);
        assert_eq!(cost(&m), [62, 0]);
        let mut m = listing("7.2", 100);
        m.note_look(CPU, VEC, Backing::Anon, 0, 1000);
        assert_eq!(cost(&m), [500, 0], "before, once");
    }

    #[test]
    fn counts_that_a_cpu_has_not_folded_in_are_no_cost_yet() {
        let mut m = listing("7.3", 1000);
        let kept = m.lru.vecs[VEC].stat_threshold as u64;
        m.note_look(CPU, VEC, Backing::File, 0, kept);
        m.read_costs(VEC);
        assert_eq!(cost(&m), [0, 0]);
        m.note_look(CPU, VEC, Backing::File, 0, 1);
        m.read_costs(VEC);
        assert_eq!(cost(&m), [0, kept + 1]);
    }
}
