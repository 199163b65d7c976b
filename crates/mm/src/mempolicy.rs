//! Memory policies: the node a request prefers, and the nodes it may use, by the policy of its task
//! or its mapping.
//!
//! Without one a request prefers the node of its CPU. `MPOL_PREFERRED` prefers another, `MPOL_BIND`
//! allows only some nodes, of which the nearest comes first, and `MPOL_INTERLEAVE` goes round some
//! nodes: in a mapping by page offset, elsewhere request by request. A request with
//! `__GFP_THISNODE` names its node itself, and one for zones below the machine's highest is not
//! bound. A huge page's fault first asks its preferred node alone, unless the policy interleaves
//! nodes or does not allow that one. Policies are for hosts that have processes. Source:
//! kernel-behaviour §1.5, §3.8; `mm/mempolicy.c` of 5.10, 6.1 and 7.2.

use crate::gfp::Gfp;
use crate::request::Request;
use crate::state::Memory;
use crate::types::{NodeId, NodeSet, ZoneType};

/// The nodes for the memory of a task, or of one of its mappings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MemPolicy {
    /// The node of the requesting CPU (`MPOL_LOCAL`, the default).
    #[default]
    Local,
    /// This node while it has free pages (`MPOL_PREFERRED`).
    Preferred(NodeId),
    /// Only these nodes (`MPOL_BIND`).
    Bind(NodeSet),
    /// These nodes in turn (`MPOL_INTERLEAVE`).
    Interleave(NodeSet),
}

impl MemPolicy {
    /// The node that a task on the node `local` prefers; `turn` counts interleaved requests.
    #[inline(always)]
    pub fn prefers(self, local: NodeId, turn: u32) -> NodeId {
        match self {
            MemPolicy::Local | MemPolicy::Bind(_) => local,
            MemPolicy::Preferred(node) => node,
            MemPolicy::Interleave(nodes) => nodes.iter().nth(turn as usize % nodes.len().max(1)).unwrap_or(local),
        }
    }

    /// Whether a huge page's fault first asks this node, which it prefers, alone.
    pub fn asks_by_itself(self, node: NodeId) -> bool {
        match self {
            MemPolicy::Local | MemPolicy::Preferred(_) => true,
            MemPolicy::Bind(nodes) => nodes.has(node),
            MemPolicy::Interleave(_) => false,
        }
    }
}

impl Memory {
    /// A task's request on its node, changed as the policy demands; `turn` counts interleaved
    /// requests.
    #[inline(always)]
    pub fn place(&self, r: Request, policy: MemPolicy, turn: u32) -> Request {
        if policy == MemPolicy::Local || r.gfp.has(Gfp::THISNODE) { r } else { self.place_elsewhere(r, policy, turn) }
    }

    #[inline(never)]
    fn place_elsewhere(&self, r: Request, policy: MemPolicy, turn: u32) -> Request {
        let placed = Request::new(r.cpu, policy.prefers(r.node, turn), r.gfp, r.order);
        match policy {
            MemPolicy::Bind(nodes) if r.gfp.highest_zone() >= self.policy_zone() => placed.within(nodes),
            MemPolicy::Interleave(nodes) => placed.interleaved(nodes),
            _ => placed,
        }
    }

    /// The highest zone of the machine except Movable: requests for lower ones are not bound.
    fn policy_zone(&self) -> ZoneType {
        let kinds = self.zones.iter().filter(|zone| zone.managed > 0).map(|zone| zone.kind);
        kinds.filter(|kind| *kind < ZoneType::Movable).max().unwrap_or(ZoneType::Dma)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::{MachineSpec, ZoneSpec};
    use crate::slow_path::AllocSlow;
    use crate::state::NumaCounts;
    use crate::testing::{AllMove, linux};
    use crate::types::{CpuId, Order};
    use alloc::vec::Vec;

    /// Three nodes of 16 pageblocks and a CPU each; below the first one's Normal zone are 8 blocks
    /// of DMA32.
    fn machine() -> Memory {
        machine_of("6.1")
    }

    fn machine_of(profile: &str) -> Memory {
        let zone = |node, kind, first: u32, blocks: u32| ZoneSpec {
            node,
            kind,
            start: first * 512,
            end: (first + blocks) * 512,
            present: u64::from(blocks) * 512,
            managed: u64::from(blocks) * 512,
        };
        let normal = |node: usize| zone(node, ZoneType::Normal, 2048 + 16 * node as u32, 16);
        let zones = [zone(0, ZoneType::Dma32, 8, 8), normal(0), normal(1), normal(2)];
        let spec = MachineSpec { cpus: 3, zones: zones.to_vec(), thp: false, lru: false };
        Memory::new(&spec, linux(profile)).expect("a valid machine")
    }

    fn on(cpu: usize, gfp: Gfp) -> Request {
        Request::new(CpuId::new(cpu), NodeId::new(cpu), gfp, Order::ZERO)
    }

    fn set(nodes: &[usize]) -> NodeSet {
        nodes.iter().map(|node| NodeId::new(*node)).collect()
    }

    /// The nodes from which this many requests get their pages.
    fn nodes(m: &mut Memory, r: Request, policy: MemPolicy, requests: u32) -> Vec<usize> {
        let node = |turn| {
            let pfn = m.alloc(m.place(r, policy, turn)).ok()?;
            Some(m.zones[m.blocks.zone_of(pfn)].node.index())
        };
        (0..requests).map_while(node).collect()
    }

    fn counts(m: &Memory) -> Vec<NumaCounts> {
        let of_node = |node: usize| {
            let own = m.zones.iter().filter(move |zone| zone.node.index() == node);
            own.fold(NumaCounts::default(), |sum, zone| NumaCounts {
                given: sum.given + zone.numa.given,
                miss: sum.miss + zone.numa.miss,
                foreign: sum.foreign + zone.numa.foreign,
                interleave: sum.interleave + zone.numa.interleave,
                other: sum.other + zone.numa.other,
            })
        };
        (0..3).map(of_node).collect()
    }

    #[test]
    fn a_policy_says_which_node_comes_first() {
        let user = on(1, Gfp::HIGHUSER_MOVABLE);
        assert_eq!(nodes(&mut machine(), user, MemPolicy::Local, 3), [1, 1, 1]);
        assert_eq!(nodes(&mut machine(), user, MemPolicy::Preferred(NodeId::new(2)), 3), [2, 2, 2]);
        assert_eq!(nodes(&mut machine(), user, MemPolicy::Interleave(set(&[0, 2])), 4), [0, 2, 0, 2]);
        assert_eq!(nodes(&mut machine(), user, MemPolicy::Bind(set(&[0, 1])), 2), [1, 1], "the nearest of them");
        assert_eq!(nodes(&mut machine(), user, MemPolicy::Bind(set(&[0])), 2), [0, 0]);
    }

    #[test]
    fn a_bound_request_stays_on_its_nodes_and_a_preference_does_not_bind() {
        let user = on(1, Gfp::HIGHUSER_MOVABLE);
        let mut m = machine();
        let bound = nodes(&mut m, user, MemPolicy::Bind(set(&[1])), 100_000);
        assert!(bound.iter().all(|node| *node == 1) && bound.len() < 16 * 512, "{}", bound.len());
        assert!(nodes(&mut m, user, MemPolicy::Bind(set(&[1])), 1).is_empty(), "the node is used up");
        assert_eq!(nodes(&mut m, user, MemPolicy::Preferred(NodeId::new(1)), 2), [2, 2], "the next one has pages");
    }

    #[test]
    fn an_atomic_request_leaves_the_nodes_it_is_bound_to_in_the_end() {
        let last = |profile: &str, gfp: Gfp| {
            let mut m = machine_of(profile);
            let bound = m.place(on(1, gfp), MemPolicy::Bind(set(&[1])), 0);
            let mut node = || {
                let slowly = |m: &mut Memory| AllocSlow::new(m, bound).finish(m, &mut AllMove).ok();
                let pfn = m.alloc(bound).ok().or_else(|| slowly(&mut m))?;
                Some(m.zones[m.blocks.zone_of(pfn)].node.index())
            };
            (0..16 * 512 + 1).map_while(|_| node()).last()
        };
        assert_eq!(["4.6", "5.6", "6.1", "7.2"].map(|profile| last(profile, Gfp::ATOMIC)), [1, 2, 2, 2].map(Some));
        assert_eq!(last("6.1", Gfp::NOWARN), Some(1), "another one fails");
        let alone = Gfp::ATOMIC | Gfp::THISNODE;
        assert_eq!(last("6.1", alone), Some(1), "and so does one that names its node");
    }

    #[test]
    fn requests_for_low_zones_are_not_bound_and_who_names_a_node_gets_it() {
        let bind = MemPolicy::Bind(set(&[2]));
        assert_eq!(nodes(&mut machine(), on(1, Gfp::KERNEL | Gfp::DMA32), bind, 1), [0]);
        assert_eq!(nodes(&mut machine(), on(1, Gfp::KERNEL | Gfp::THISNODE), bind, 1), [1]);
        assert_eq!(nodes(&mut machine(), on(1, Gfp::KERNEL), bind, 1), [2]);
    }

    #[test]
    fn blocks_are_counted_where_they_come_from_and_where_they_were_wanted() {
        let mut m = machine();
        let user = on(1, Gfp::HIGHUSER_MOVABLE);
        // Local, and on another node by choice.
        nodes(&mut m, user, MemPolicy::Local, 3);
        nodes(&mut m, user, MemPolicy::Preferred(NodeId::new(2)), 5);
        let sum =
            |m: &Memory| counts(m).iter().map(|c| (c.hit(), c.miss, c.foreign, c.local(), c.other)).collect::<Vec<_>>();
        assert_eq!(sum(&m), [(0, 0, 0, 0, 0), (3, 0, 0, 3, 0), (5, 0, 0, 0, 5)]);
        // On another node for lack of pages: a miss there, and foreign to the preferred one.
        let given = nodes(&mut m, user, MemPolicy::Bind(set(&[1])), 100_000).len() as u64;
        nodes(&mut m, user, MemPolicy::Local, 7);
        assert_eq!(sum(&m), [(0, 0, 0, 0, 0), (3 + given, 0, 7, 3 + given, 0), (5, 7, 0, 0, 12)]);
        // Interleaved, one request after the other.
        nodes(&mut m, user, MemPolicy::Interleave(set(&[0, 2])), 6);
        assert_eq!(counts(&m).iter().map(|c| c.interleave).collect::<Vec<_>>(), [3, 0, 3]);
    }

    #[test]
    fn a_huge_page_is_looked_for_on_the_preferred_node_by_itself_unless_the_policy_speaks_against_it() {
        let [one, two] = [1, 2].map(NodeId::new);
        assert!(MemPolicy::Local.asks_by_itself(one) && MemPolicy::Preferred(two).asks_by_itself(two));
        assert!(MemPolicy::Bind(set(&[1])).asks_by_itself(one) && !MemPolicy::Bind(set(&[2])).asks_by_itself(one));
        assert!(!MemPolicy::Interleave(set(&[1, 2])).asks_by_itself(one));
    }
}
