//! Pools of huge pages that are set aside (hugetlb): `/sys/kernel/mm/hugepages`, and each node's
//! part of them.

use super::numbers::{self, Numbers};
use super::{NODES, Reading};
use crate::pool_sizes::{DIR, of_directory};
use crate::roots::{Roots, names};

/// The pool of one size of page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pool {
    pub bytes: u64,
    /// `nr_hugepages`, `free_hugepages`, `resv_hugepages` … of the whole machine.
    pub all: Numbers,
    /// The same of each node, with its number.
    pub of_node: Vec<(u32, Numbers)>,
}

impl Pool {
    /// Files of it that were not read, though they are there.
    pub(super) fn unread(&self) -> impl Iterator<Item = &crate::error::ReadError> {
        self.all.unread.iter().chain(self.of_node.iter().flat_map(|(_, numbers)| &numbers.unread))
    }
}

pub(crate) fn read(roots: &Roots) -> Reading<Vec<Pool>> {
    let all = names(&roots.sys(DIR))?;
    let nodes = names(&roots.sys(NODES)).unwrap_or_default();
    let mut pools: Vec<Pool> = all.iter().filter_map(|name| pool(roots, name, &nodes)).collect();
    pools.sort_by_key(|pool| pool.bytes);
    Ok(pools)
}

fn pool(roots: &Roots, name: &str, nodes: &[String]) -> Option<Pool> {
    let bytes = of_directory(name)?;
    let of_node = |node: &String| {
        let number: u32 = node.strip_prefix("node")?.parse().ok()?;
        Some((number, numbers::read(roots, &format!("{NODES}/{node}/hugepages/{name}"))))
    };
    let mut of_node: Vec<_> = nodes.iter().filter_map(of_node).collect();
    of_node.sort_by_key(|(number, _)| *number);
    Some(Pool { bytes, all: numbers::read(roots, &format!("{DIR}/{name}")), of_node })
}
