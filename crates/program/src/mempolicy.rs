//! Memory policies: on which of the machine's nodes a program wants its memory.

/// A set of nodes, by number from 0 to 63.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Nodes(u64);

impl Nodes {
    /// These nodes; those beyond 63, of which no machine has any, are left out.
    pub fn new(nodes: impl IntoIterator<Item = u8>) -> Nodes {
        Nodes(nodes.into_iter().filter(|node| *node < 64).fold(0, |set, node| set | 1 << node))
    }
    /// The nodes, lowest first.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..64).filter(move |node| self.0 >> node & 1 != 0)
    }
}

/// NUMA memory policies, by the kernel's names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MemPolicy {
    /// `MPOL_DEFAULT`: of a process as the kernel does it, of a mapping as its process has it.
    #[default]
    Default,
    /// `MPOL_LOCAL`: on the node of the CPU that faults.
    Local,
    /// `MPOL_PREFERRED`: on this node, if it has any.
    Preferred(u8),
    /// `MPOL_BIND`: on these nodes alone, on the nearest one first.
    Bind(Nodes),
    /// `MPOL_INTERLEAVE`: on these by turns.
    Interleave(Nodes),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_nodes_it_was_made_of() {
        assert_eq!(Nodes::new([5, 0, 63, 64]).iter().collect::<Vec<_>>(), [0, 5, 63]);
        assert_eq!(Nodes::default().iter().count(), 0);
    }
}
