//! A machine's resources, as far as they are known before anything runs.

use kontig_program::MemPolicy;

/// Memory, CPUs and disks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Room {
    /// Pages of memory, node by node.
    pub nodes: Vec<u64>,
    pub swap: u64,
    pub cpus: usize,
    /// Pages of each disk that are for files.
    pub disks: Vec<u32>,
    /// Whether it is known what address translation costs.
    pub translates: bool,
}

impl Room {
    /// The nodes that a policy names.
    fn named(policy: MemPolicy) -> Option<Vec<usize>> {
        match policy {
            MemPolicy::Default | MemPolicy::Local => None,
            MemPolicy::Preferred(node) => Some(vec![usize::from(node)]),
            MemPolicy::Bind(nodes) | MemPolicy::Interleave(nodes) => Some(nodes.iter().map(usize::from).collect()),
        }
    }

    /// Checks that the machine has the nodes that a policy names.
    ///
    /// # Errors
    /// The node that is missing.
    pub(crate) fn has_nodes(&self, policy: MemPolicy) -> Result<(), String> {
        let named = Room::named(policy);
        if named.as_ref().is_some_and(Vec::is_empty) {
            return Err("memory names no node: bind = [0]".into());
        }
        let Some(missing) = named.into_iter().flatten().find(|node| self.nodes.get(*node).is_none_or(|n| *n == 0))
        else {
            return Ok(());
        };
        let there = match self.nodes.len() {
            0 | 1 => "node 0 alone".into(),
            n => format!("nodes 0 to {}", n - 1),
        };
        Err(format!("memory policy names node {missing}, and the machine has {there}: choose one of them"))
    }

    /// Pages available to a task with this policy, in memory and in swap.
    pub(crate) fn pages(&self, policy: MemPolicy) -> u64 {
        let memory = match policy {
            MemPolicy::Bind(nodes) => nodes.iter().filter_map(|node| self.nodes.get(usize::from(node))).sum(),
            _ => self.nodes.iter().sum::<u64>(),
        };
        memory + self.swap
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_program::Nodes;

    #[test]
    fn a_bound_task_has_the_memory_of_its_nodes_and_all_swap() {
        let room = Room { nodes: vec![10, 20, 40], swap: 100, cpus: 1, ..Room::default() };
        assert_eq!(room.pages(MemPolicy::Bind(Nodes::new([0, 2]))), 150);
        assert_eq!(room.pages(MemPolicy::Preferred(0)), 170);
        assert_eq!(room.has_nodes(MemPolicy::Interleave(Nodes::new([0, 2]))), Ok(()));
        let said = room.has_nodes(MemPolicy::Preferred(3)).unwrap_err();
        assert_eq!(said, "memory policy names node 3, and the machine has nodes 0 to 2: choose one of them");
        assert!(room.has_nodes(MemPolicy::Bind(Nodes::default())).is_err());
    }
}
