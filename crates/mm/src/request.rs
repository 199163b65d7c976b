//! A request for memory: its CPU, flags, order, and the zones it may use.
//!
//! A request may use the zones of its node's list, nearest node first and highest zone first, up to
//! the highest zone its flags allow, on the nodes it may use: all of them, its own with
//! `__GFP_THISNODE`, or those of a policy that binds it. [`Memory::next_zone`] is the only walk
//! over them: the fast path, the slow path and direct compaction all take their zones from it.
//! Source: kernel-behaviour §3.3, §3.4.

use crate::gfp::Gfp;
use crate::state::{Memory, Zone};
use crate::types::{CpuId, NodeId, NodeSet, Order, ZoneId};

/// A request for one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The CPU it runs on.
    pub cpu: CpuId,
    /// The node it prefers.
    pub node: NodeId,
    pub gfp: Gfp,
    pub order: Order,
    /// The nodes it may use.
    nodes: NodeSet,
    /// The nodes of an interleaving policy; none without such a policy. A flag would have padding
    /// behind it, which is copied with it: a load of bytes of which only some have just been stored
    /// waits for the store to finish.
    goes_round: NodeSet,
}

// A request has no padding.
const _: () = assert!(
    size_of::<Request>()
        == size_of::<CpuId>() + size_of::<NodeId>() + size_of::<Gfp>() + size_of::<Order>() + 2 * size_of::<NodeSet>()
);

impl Request {
    /// A request that runs on `cpu` and prefers `node`.
    #[inline(always)]
    pub const fn new(cpu: CpuId, node: NodeId, gfp: Gfp, order: Order) -> Request {
        let nodes = if gfp.has(Gfp::THISNODE) { NodeSet::only(node) } else { NodeSet::ALL };
        Request { cpu, node, gfp, order, nodes, goes_round: NodeSet::NONE }
    }

    /// The same request, limited to these nodes.
    pub const fn within(self, nodes: NodeSet) -> Request {
        Request { nodes: self.nodes.and(nodes), ..self }
    }

    /// The same request, bound to no nodes but by `__GFP_THISNODE`.
    pub(crate) const fn anywhere(self) -> Request {
        Request { nodes: Request::new(self.cpu, self.node, self.gfp, self.order).nodes, ..self }
    }

    /// The same request, by a policy that interleaves these nodes and has come to the preferred
    /// one.
    pub(crate) const fn interleaved(self, nodes: NodeSet) -> Request {
        Request { goes_round: nodes, ..self }
    }

    /// Whether an interleaving policy chose the preferred node.
    pub(crate) const fn interleaves(&self) -> bool {
        !self.goes_round.is_empty()
    }

    /// The nodes the request may use.
    pub const fn nodes(&self) -> NodeSet {
        self.nodes
    }

    /// Whether it is an atomic request of high order, which the HIGHATOMIC reserve is for (since
    /// 6.3).
    #[inline(always)]
    pub(crate) fn is_highatomic(&self) -> bool {
        self.order > Order::ZERO
            && self.gfp.has(Gfp::HIGH)
            && !self.gfp.has(Gfp::DIRECT_RECLAIM)
            && !self.gfp.has(Gfp::NOMEMALLOC)
    }

    /// Whether it may use the zone.
    #[inline(always)]
    pub(crate) fn may_use(&self, zone: &Zone) -> bool {
        zone.kind <= self.gfp.highest_zone() && self.nodes.has(zone.node)
    }
}

impl Memory {
    /// The next zone the request may use, in order of preference. `at` is the position of the walk:
    /// 0 at its start.
    #[inline(always)]
    pub(crate) fn next_zone(&self, r: &Request, at: &mut usize) -> Option<ZoneId> {
        let zonelist = &self.nodes[r.node].zonelist;
        while let Some(&id) = zonelist.get(*at) {
            *at += 1;
            if r.may_use(&self.zones[id]) {
                return Some(id);
            }
        }
        None
    }

    /// The zones the request may use, in order of preference.
    #[inline(always)]
    pub(crate) fn zones_for(&self, r: &Request) -> impl Iterator<Item = ZoneId> {
        let mut at = 0;
        core::iter::from_fn(move || self.next_zone(r, &mut at))
    }

    /// The zone the request prefers.
    #[inline(always)]
    pub(crate) fn preferred_zone(&self, r: &Request) -> Option<ZoneId> {
        self.next_zone(r, &mut 0)
    }
}
