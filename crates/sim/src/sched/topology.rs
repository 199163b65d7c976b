//! CPUs, their nodes and cores, and the CPUs that a task may run on.
//!
//! A node's CPUs share its last-level cache. With two threads per core, the first half of a node's
//! CPUs are the first threads of its cores and the second half the second ones, as firmware numbers
//! them.

use kontig_mm::{CpuId, NodeId};

/// The CPUs a task may run on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Affinity {
    Cpu(usize),
    /// Any CPU of a node, as for its daemons.
    Node(NodeId),
    Any,
}

#[derive(Clone, Debug)]
pub(crate) struct Group {
    id: NodeId,
    cpus: Vec<usize>,
    cores: usize,
}

impl Group {
    /// Its CPUs, the first threads of the cores first.
    pub(crate) fn cpus(&self) -> &[usize] {
        &self.cpus
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Topology {
    /// The nodes that have CPUs.
    groups: Vec<Group>,
    /// Each CPU's group, and its place there.
    places: Vec<(u32, u32)>,
}

impl Topology {
    /// The topology of nodes with these CPUs.
    pub(crate) fn new(nodes: impl Iterator<Item = (NodeId, Vec<CpuId>)>, threads_per_core: usize) -> Topology {
        let group = |(id, cpus): (NodeId, Vec<CpuId>)| {
            let cpus: Vec<usize> = cpus.into_iter().map(CpuId::index).collect();
            (!cpus.is_empty()).then(|| Group { id, cores: cpus.len().div_ceil(threads_per_core), cpus })
        };
        let groups: Vec<Group> = nodes.filter_map(group).collect();
        let mut places = vec![(0, 0); groups.iter().map(|g| g.cpus.len()).sum()];
        for (g, group) in groups.iter().enumerate() {
            group.cpus.iter().enumerate().for_each(|(i, cpu)| places[*cpu] = (g as u32, i as u32));
        }
        Topology { groups, places }
    }

    pub(crate) fn cpus(&self) -> usize {
        self.places.len()
    }

    /// The nodes that have CPUs.
    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The node of a CPU.
    pub(crate) fn group_of(&self, cpu: usize) -> &Group {
        &self.groups[self.places[cpu].0 as usize]
    }

    /// Whether two CPUs share a cache.
    pub(crate) fn are_near(&self, a: usize, b: usize) -> bool {
        self.places[a].0 == self.places[b].0
    }

    /// Whether a task of this affinity may run there.
    pub(crate) fn allows(&self, affinity: Affinity, cpu: usize) -> bool {
        match affinity {
            Affinity::Cpu(only) => only == cpu,
            Affinity::Node(node) => self.group_of(cpu).id == node,
            Affinity::Any => true,
        }
    }

    /// The CPUs of the CPU's node, starting after it and ending with itself.
    pub(crate) fn around(&self, cpu: usize) -> impl Iterator<Item = usize> {
        let (group, place) = self.places[cpu];
        let (before, after) = self.groups[group as usize].cpus.split_at(place as usize + 1);
        after.iter().chain(before).copied()
    }

    /// The threads of the CPU's core, itself included.
    pub(crate) fn core(&self, cpu: usize) -> impl Iterator<Item = usize> {
        let (group, place) = self.places[cpu];
        let group = &self.groups[group as usize];
        group.cpus.iter().copied().skip(place as usize % group.cores).step_by(group.cores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_has_a_thread_in_each_half_of_its_node() {
        let nodes = [(0, 0..8), (1, 8..8), (2, 8..16)]
            .map(|(node, cpus)| (NodeId::new(node), cpus.map(CpuId::new).collect::<Vec<_>>()));
        let topology = Topology::new(nodes.into_iter(), 2);
        assert_eq!((topology.cpus(), topology.groups().len()), (16, 2));
        assert_eq!(topology.core(1).collect::<Vec<_>>(), [1, 5]);
        assert_eq!(topology.core(15).collect::<Vec<_>>(), [11, 15]);
        assert_eq!(topology.around(10).collect::<Vec<_>>(), [11, 12, 13, 14, 15, 8, 9, 10]);
        assert!(topology.are_near(8, 15) && !topology.are_near(7, 8));
        assert!(
            topology.allows(Affinity::Node(NodeId::new(2)), 8) && !topology.allows(Affinity::Node(NodeId::new(2)), 7)
        );
    }
}
