//! How much of each list is looked at: the share that the priority says, divided between anonymous pages and those of
//! files by what taking them has cost lately and by `vm.swappiness`.
//!
//! Source: kernel-behaviour §4.2.

use super::control::ScanControl;
use crate::state::{Backing, LruList, Lruvec, Memory, NodeStat};
use crate::sysctl::SWAPPINESS;
use crate::types::NodeId;

/// Pages to be looked at, of each list.
pub(super) type Scan = [u64; 4];

/// Whose lists are looked at.
enum Balance {
    /// Both kinds, by their sizes.
    Equal,
    /// Both kinds, by these shares.
    Shares([u64; 2]),
    /// One kind only.
    Only(Backing),
}

/// Whether the inactive list is small beside the active one: 1:1 below a GiB, then by the root of ten times the GiB.
pub(super) fn inactive_is_low(vec: &Lruvec, backing: Backing) -> bool {
    let (inactive, active) = (vec.size(backing.inactive()), vec.size(backing.active()));
    let gib = (inactive + active) >> 18;
    let ratio = if gib > 0 { (10 * gib).isqrt() } else { 1 };
    inactive * ratio < active
}

impl Memory {
    /// Whether anonymous pages can go anywhere.
    pub(crate) fn can_reclaim_anon(&self) -> bool {
        self.lru.swap.free > 0
    }

    /// Decides, before a node's lists are scanned, what may be made inactive and which kind is spared.
    pub(super) fn prepare_scan_count(&mut self, node: NodeId, sc: &mut ScanControl) {
        let vec = &self.lru.vecs[node];
        sc.cost = vec.cost;
        for backing in Backing::ALL {
            // Pages that come back mean that something new is in use: the old has to go.
            let refaulting = vec.stat(NodeStat::activate(backing)) != vec.refaults[backing.index()];
            sc.may_deactivate[backing.index()] = sc.force_deactivate || refaulting || inactive_is_low(vec, backing);
        }
        let [anon, file] = sc.may_deactivate;
        sc.cache_trim_mode = vec.size(LruList::InactiveFile) >> sc.priority > 0 && !file;
        // As the file lists shrink their pages have ever less time to be used again: do not go on to the end.
        let files = vec.size(LruList::ActiveFile) + vec.size(LruList::InactiveFile);
        let (mut free, mut high) = (0, 0);
        for zone in self.nodes[node].zones.iter().map(|z| &self.zones[*z]) {
            free += zone.nr_free_pages();
            if zone.managed > 0 {
                high += zone.wmark(crate::gfp::Wmark::High);
            }
        }
        let inactive_anon = vec.size(LruList::InactiveAnon);
        sc.file_is_tiny = files + free <= high && !anon && inactive_anon >> sc.priority > 0;
    }

    /// How much of each of a node's lists is looked at, at this priority.
    pub(super) fn get_scan_count(&mut self, node: NodeId, sc: &ScanControl) -> Scan {
        let balance = self.scan_balance(sc);
        LruList::EVICTABLE.map(|list| {
            let backing = Backing::of(list);
            let share = self.lru_size(node, list, sc) >> sc.priority;
            match &balance {
                Balance::Equal => share,
                Balance::Shares(of) => share * of[backing.index()] / (of[0] + of[1]),
                Balance::Only(kind) if *kind == backing => share,
                Balance::Only(_) => 0,
            }
        })
    }

    /// A list's size, as far as its pages lie in zones that help.
    fn lru_size(&self, node: NodeId, list: LruList, sc: &ScanControl) -> u64 {
        let zones = self.nodes[node].zones.iter().map(|z| &self.zones[*z]);
        zones.filter(|z| z.managed > 0 && z.kind <= sc.highest).map(|z| z.lru.get(list.index())).sum()
    }

    fn scan_balance(&mut self, sc: &ScanControl) -> Balance {
        if !sc.may_swap || !self.can_reclaim_anon() {
            return Balance::Only(Backing::File);
        }
        if sc.priority == 0 && self.shared.decide(&SWAPPINESS, |swappiness| swappiness > 0) {
            return Balance::Equal;
        }
        if sc.file_is_tiny {
            return Balance::Only(Backing::Anon);
        }
        if sc.cache_trim_mode {
            return Balance::Only(Backing::File);
        }
        let total = sc.cost[0] + sc.cost[1];
        let cost = sc.cost.map(|cost| total + cost);
        let total = cost[0] + cost[1];
        let shares = |swappiness: u32| {
            let weights = [u64::from(swappiness), 200 - u64::from(swappiness)];
            [0, 1].map(|of: usize| weights[of] * (total + 1) / (cost[of] + 1))
        };
        Balance::Shares(self.shared.decide(&SWAPPINESS, shares))
    }
}
