//! Zonelists: the order in which a request tries the machine's zones.
//!
//! Each node has a list of all zones. It begins with those of the node itself and continues with
//! the nearest node that is not in it yet; of nodes equally near, with the one behind it in number,
//! and with one that fewer lists have in that place. Within a node the highest zone comes first.
//! Source: kernel-behaviour §1.5; `find_next_best_node` and `build_zonelists` of 5.10, 6.1 and 7.2.

use crate::state::{Memory, Zone};
use crate::types::{NodeId, NodeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// The distance of a node from itself.
pub const LOCAL_DISTANCE: u8 = 10;
/// The distance of two nodes if firmware does not give one.
pub const REMOTE_DISTANCE: u8 = 20;

impl Memory {
    /// Sets the distances between nodes before memory is used; the kernel learns them from firmware
    /// (SLIT).
    ///
    /// # Errors
    /// The impossible distance.
    pub fn set_distances(&mut self, distances: &[Vec<u8>]) -> Result<(), String> {
        check_distances(distances, self.nodes.len())?;
        for (node, row) in self.nodes.iter_mut().zip(distances) {
            node.distances.clone_from(row);
        }
        self.build_zonelists();
        Ok(())
    }

    /// Builds the zonelist of every node, lowest node first, as at boot.
    pub(crate) fn build_zonelists(&mut self) {
        let nodes: Vec<NodeId> = self.nodes.iter().map(|node| node.id).collect();
        // For each node, the lists that have it first among nodes at the same distance.
        let mut load = vec![0u32; nodes.len()];
        for local in nodes.iter().copied() {
            let mut order = vec![local];
            let mut left = nodes.len() as u32;
            while let Some(best) = self.next_best_node(local, &order, &load) {
                left -= 1;
                let far = |other: NodeId| self.nodes[local].distances[other.index()];
                if far(best) != far(order[order.len() - 1]) {
                    let so_far = load[best.index()];
                    load[best.index()] = if self.shared.profile.zonelist.loads_add_up { so_far + 1 } else { left };
                }
                order.push(best);
            }
            self.nodes[local].zonelist = order.into_iter().flat_map(|node| self.zones_of_list(node)).collect();
        }
    }

    /// The node that comes next in the list of `local`.
    fn next_best_node(&self, local: NodeId, taken: &[NodeId], load: &[u32]) -> Option<NodeId> {
        let cost = |node: &NodeId| {
            let far = u32::from(self.nodes[local].distances[node.index()]);
            let (before, has_cpus) = (u32::from(*node < local), u32::from(!self.nodes[*node].cpus.is_empty()));
            (far + before + has_cpus, load[node.index()], *node)
        };
        let has_memory = |node: &NodeId| self.zones.iter().any(|zone| zone.node == *node && zone.managed > 0);
        let others = self.nodes.iter().map(|node| node.id);
        others.filter(|node| !taken.contains(node) && has_memory(node)).min_by_key(cost)
    }

    /// A node's zones that have memory, the highest first.
    fn zones_of_list(&self, node: NodeId) -> Vec<crate::types::ZoneId> {
        let mut zones: Vec<&Zone> = self.zones.iter().filter(|z| z.node == node && z.managed > 0).collect();
        zones.sort_by_key(|zone| core::cmp::Reverse(zone.kind));
        zones.into_iter().map(|zone| zone.id).collect()
    }

    /// The nodes that have memory.
    pub fn nodes_with_memory(&self) -> NodeSet {
        self.zones.iter().filter(|zone| zone.managed > 0).map(|zone| zone.node).collect()
    }

    /// The zones that a request for this node tries, in their order.
    pub fn zonelist(&self, node: NodeId) -> impl Iterator<Item = &Zone> {
        self.nodes[node].zonelist.iter().map(|zone| &self.zones[*zone])
    }

    /// The distance from the first node to the second.
    #[inline(always)]
    pub fn distance(&self, from: NodeId, to: NodeId) -> u8 {
        self.nodes[from].distances[to.index()]
    }
}

/// Whether this many nodes can have these distances.
///
/// # Errors
/// The impossible distance, and a possible one.
pub fn check_distances(distances: &[Vec<u8>], nodes: usize) -> Result<(), String> {
    let rows = distances.len();
    if rows != nodes {
        return Err(format!("there are distances of {rows} nodes, and the machine has {nodes}: a row for each"));
    }
    for (from, row) in distances.iter().enumerate() {
        if row.len() != nodes {
            return Err(format!("node {from} has {} distances, and the machine {nodes} nodes: one to each", row.len()));
        }
        for (to, far) in row.iter().enumerate() {
            if from == to && *far != LOCAL_DISTANCE {
                return Err(format!("node {from} is {far} from itself: a node is {LOCAL_DISTANCE} from itself"));
            }
            if from != to && *far <= LOCAL_DISTANCE {
                return Err(format!(
                    "node {to} is {far} from node {from}: another node is further than {LOCAL_DISTANCE}"
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::{MachineSpec, ZoneSpec};
    use crate::rules::Profile;
    use crate::testing::linux;
    use crate::types::ZoneType;
    use alloc::string::ToString;

    /// Nodes of one Normal zone each, with this many CPUs together.
    fn nodes(n: usize, cpus: usize, profile: Profile) -> Memory {
        let zone = |node| {
            let start = (node as u32 + 1) * 16 * 512;
            let pages = u64::from(16u32 * 512);
            ZoneSpec { node, kind: ZoneType::Normal, start, end: start + 16 * 512, present: pages, managed: pages }
        };
        let zones = (0..n).map(zone).collect();
        Memory::new(&MachineSpec { cpus, zones, thp: false, lru: false }, profile).expect("a valid machine")
    }

    fn order(m: &Memory, node: usize) -> Vec<usize> {
        m.nodes[NodeId::new(node)].zonelist.iter().map(|zone| m.zones[*zone].node.index()).collect()
    }

    #[test]
    fn nodes_equally_far_apart_come_in_a_ring() {
        for profile in ["5.6", "6.1"] {
            let m = nodes(4, 8, linux(profile));
            assert_eq!(
                [0, 1, 2, 3].map(|node| order(&m, node)),
                [[0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2]]
            );
        }
    }

    #[test]
    fn the_nearest_node_comes_first_and_of_several_the_one_that_fewer_lists_begin_with() {
        // Two pairs: each node has one near it.
        let rows = [[10, 16, 32, 32], [16, 10, 32, 32], [32, 32, 10, 16], [32, 32, 16, 10]].map(Vec::from);
        let mut m = nodes(4, 8, linux("6.1"));
        m.set_distances(&rows).expect("distances that can be");
        assert_eq!([0, 1, 2, 3].map(|node| order(&m, node)), [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]]);
    }

    #[test]
    fn a_node_without_cpus_comes_before_one_as_far_away_that_has_some() {
        // One CPU: node 0 has it.
        let mut m = nodes(3, 1, linux("6.1"));
        assert_eq!(order(&m, 1), [1, 2, 0]);
        let rows = [[10, 20, 20], [20, 10, 21], [20, 21, 10]].map(Vec::from);
        m.set_distances(&rows).expect("distances that can be");
        // 20 + 1 for lying before it + 1 for its CPU, against 21.
        assert_eq!(order(&m, 1), [1, 2, 0]);
    }

    #[test]
    fn distances_that_cannot_be_are_refused() {
        let mut m = nodes(2, 2, linux("6.1"));
        let mut said = |rows: &[&[u8]]| {
            let rows: Vec<Vec<u8>> = rows.iter().map(|row| row.to_vec()).collect();
            m.set_distances(&rows).expect_err("it cannot be").to_string()
        };
        assert_eq!(said(&[&[10, 20]]), "there are distances of 1 nodes, and the machine has 2: a row for each");
        assert_eq!(said(&[&[10], &[20, 10]]), "node 0 has 1 distances, and the machine 2 nodes: one to each");
        assert_eq!(said(&[&[10, 20], &[20, 11]]), "node 1 is 11 from itself: a node is 10 from itself");
        assert_eq!(said(&[&[10, 9], &[20, 10]]), "node 1 is 9 from node 0: another node is further than 10");
    }
}
