//! The program that needs the blocks: pools it may use beside free memory, and limits of its
//! control groups.

use crate::cgroup::{Limit, Limits, beside_blocks};
use crate::host::pools;
use crate::need::Need;
use crate::roots::Roots;
use serde::Serialize;

/// Free pages of a pool of huge pages (hugetlb).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FreeInPool {
    pub order: u32,
    /// Free pages that are promised to nobody, of all nodes.
    pub all: u64,
    pub of_node: Vec<(u32, u64)>,
}

/// The program that needs the blocks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Caller {
    /// It takes them from pools of huge pages. Blocks above the largest of the free lists come from
    /// pools anyway.
    pub from_pools: bool,
    pub pools: Vec<FreeInPool>,
    pub limits: Limits,
}

/// A limit that is too low for the needs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct InTheWay {
    #[serde(flatten)]
    pub limit: Limit,
    /// Bytes that the group may still have.
    pub room_bytes: u64,
    /// Bytes that the needs take of it.
    pub needed_bytes: u64,
    /// Set aside beside them for page tables and the program itself, bytes.
    pub program_bytes: u64,
}

impl Caller {
    /// With the pools of this host.
    pub fn of_host(roots: &Roots, from_pools: bool, page_size: u64, limits: Limits) -> Caller {
        Caller { from_pools, pools: free_in_pools(roots, page_size), limits }
    }

    /// Free pages of the pool that a need's blocks come from: of its node, or of all.
    pub(crate) fn free_in_pool(&self, need: &Need) -> u64 {
        let all = Need { count: u64::MAX, ..*need };
        self.pools.iter().find(|pool| pool.order == need.order).map_or(0, |pool| pool.clone().take(&all))
    }

    /// Whether a pool serves this need: on request, or if its order exceeds `max_order`. Never for
    /// drivers.
    pub(crate) fn takes_from_pool(&self, need: &Need, max_order: u32) -> bool {
        !need.unmovable && (self.from_pools || need.order > max_order)
    }

    /// The first limit that is too low for these needs together. Memory that the kernel takes for
    /// itself is charged to nobody.
    pub(crate) fn in_the_way(&self, needs: &[Need], max_order: u32, page_size: u64) -> Option<InTheWay> {
        let of = |limit: &Limit, needed_bytes: u64, program_bytes: u64| {
            let room_bytes = limit.room_bytes();
            let is_low = needed_bytes > 0 && needed_bytes.saturating_add(program_bytes) > room_bytes;
            is_low.then(|| InTheWay { limit: limit.clone(), room_bytes, needed_bytes, program_bytes })
        };
        let of_memory = self.limits.memory.iter().flat_map(|limit| {
            let needed = self.memory_bytes(needs, max_order, page_size);
            of(limit, needed, beside_blocks(needed))
        });
        let of_pools = self.limits.pools.iter().flat_map(|(size, limit)| {
            let is_of_pool = |need: &Need| self.takes_from_pool(need, max_order) && page_size << need.order == *size;
            of(limit, users_bytes(needs, page_size, is_of_pool), 0)
        });
        of_memory.chain(of_pools).next()
    }

    /// Bytes that the limit of the caller's memory leaves beside these needs; `None` where they
    /// take nothing of it, or there is no limit.
    pub(crate) fn left_bytes(&self, needs: &[Need], max_order: u32, page_size: u64) -> Option<u64> {
        let needed = Some(self.memory_bytes(needs, max_order, page_size)).filter(|needed| *needed > 0)?;
        self.limits.memory.as_ref().map(|limit| limit.room_bytes().saturating_sub(needed))
    }

    /// Bytes of the needs that are charged to the caller's memory.
    fn memory_bytes(&self, needs: &[Need], max_order: u32, page_size: u64) -> u64 {
        users_bytes(needs, page_size, |need| !self.takes_from_pool(need, max_order))
    }
}

/// Bytes of the users' needs for which this holds.
fn users_bytes(needs: &[Need], page_size: u64, holds: impl Fn(&Need) -> bool) -> u64 {
    let each = needs.iter().filter(|need| !need.unmovable && holds(need));
    each.fold(0u64, |sum, need| sum.saturating_add(need.pages().saturating_mul(page_size)))
}

impl FreeInPool {
    /// Takes pages for a need, and says how many.
    pub(crate) fn take(&mut self, need: &Need) -> u64 {
        let of_nodes = self.of_node.iter_mut().filter(|(node, _)| need.node.is_none_or(|n| n == *node));
        let mut left = need.count.min(self.all);
        if need.node.is_some() {
            left = left.min(of_nodes.map(|(_, pages)| *pages).sum());
        }
        self.all -= left;
        let taken = left;
        for (_, pages) in self.of_node.iter_mut().filter(|(node, _)| need.node.is_none_or(|n| n == *node)) {
            let here = left.min(*pages);
            *pages -= here;
            left -= here;
        }
        taken
    }
}

/// Free pages of the pools, for pages of `page_size` bytes.
pub(crate) fn free_in_pools(roots: &Roots, page_size: u64) -> Vec<FreeInPool> {
    let pools = pools::read(roots).unwrap_or_default();
    let of = |pool: &pools::Pool| {
        let pages = pool.bytes / page_size;
        let number = |name| pool.all.get(name).unwrap_or(0);
        let of_node = pool.of_node.iter().map(|(node, of)| (*node, of.get("free_hugepages").unwrap_or(0)));
        pages.is_power_of_two().then(|| FreeInPool {
            order: pages.ilog2(),
            all: number("free_hugepages").saturating_sub(number("resv_hugepages")),
            of_node: of_node.collect(),
        })
    };
    pools.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(count: u64, order: u32, node: Option<u32>) -> Need {
        Need { count, order, node, unmovable: false }
    }

    #[test]
    fn pages_of_a_node_are_also_pages_of_all_nodes() {
        let mut pool = FreeInPool { order: 9, all: 7, of_node: vec![(0, 5), (1, 4)] };
        assert_eq!(pool.take(&need(6, 9, Some(0))), 5);
        assert_eq!((pool.all, pool.take(&need(9, 9, None)), pool.all), (2, 2, 0), "two are promised");
    }

    fn limit(limit_bytes: u64) -> Limit {
        Limit { group: "/a".into(), file: "f".into(), limit_bytes, used_bytes: 1 << 20, cache_bytes: 0 }
    }

    #[test]
    fn the_limits_of_memory_and_of_a_pool_are_held_against_what_is_taken_of_each() {
        let limits = Limits { memory: Some(limit(32 << 20)), pools: vec![(2 << 20, limit(5 << 20))] };
        let mut caller = Caller { limits, ..Caller::default() };
        let needed = |caller: &Caller, needs: &[Need]| caller.in_the_way(needs, 10, 4096).map(|way| way.needed_bytes);
        assert_eq!(needed(&caller, &[need(7, 9, None)]), None);
        assert_eq!(needed(&caller, &[need(7, 9, None), need(256, 0, None)]), Some(15 << 20));
        assert_eq!(needed(&caller, &[Need { unmovable: true, ..need(19, 9, None) }]), None);
        caller.from_pools = true;
        assert_eq!(needed(&caller, &[need(2, 9, None), need(9, 8, None)]), None, "only pages of that size");
        assert_eq!(needed(&caller, &[need(3, 9, None)]), Some(6 << 20));
    }

    #[test]
    fn a_program_needs_page_tables_and_memory_of_its_own_beside_its_blocks() {
        let limits = Limits { memory: Some(limit(512 << 20)), pools: Vec::new() };
        let caller = Caller { limits, ..Caller::default() };
        let way = |blocks| caller.in_the_way(&[need(blocks, 9, None)], 10, 4096);
        assert_eq!(way(247), None);
        assert_eq!(caller.left_bytes(&[need(247, 9, None)], 10, 4096), Some(17 << 20));
        let refused = way(248).expect("511 MiB less 496 are 15");
        assert_eq!(refused.program_bytes, (16 << 20) + 248 * 4096);
        assert_eq!(limit(512 << 20).blocks_bytes() >> 21, 247);
    }
}
