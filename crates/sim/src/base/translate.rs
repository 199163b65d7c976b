//! Translates a program's plain values to the engine's types, and back. Only here do the two
//! vocabularies meet.

use crate::base::error::SimError;
use kontig_mm::{Gfp, MemPolicy, Memory, NodeId, NodeSet, Order, Pfn};
use kontig_program as program;

/// The engine's flag for each of [`program::Gfp::FLAGS`].
const FLAGS: [Gfp; 19] = [
    Gfp::DMA,
    Gfp::HIGHMEM,
    Gfp::DMA32,
    Gfp::MOVABLE,
    Gfp::RECLAIMABLE,
    Gfp::HIGH,
    Gfp::IO,
    Gfp::FS,
    Gfp::DIRECT_RECLAIM,
    Gfp::KSWAPD_RECLAIM,
    Gfp::NORETRY,
    Gfp::RETRY_MAYFAIL,
    Gfp::NOMEMALLOC,
    Gfp::THISNODE,
    Gfp::NOWARN,
    Gfp::COMP,
    Gfp::HARDWALL,
    Gfp::ZERO,
    Gfp::ATOMIC_MARK,
];
const _: () = assert!(FLAGS.len() == program::Gfp::FLAGS.len());

pub(crate) fn gfp(flags: program::Gfp) -> Gfp {
    flags.places().fold(Gfp::NONE, |all, place| all | FLAGS[place])
}

/// `None` for an order above the buddy allocator's largest: there is no such block.
pub(crate) fn order(order: program::Order) -> Option<Order> {
    (order.get() <= kontig_mm::types::MAX_ORDER.get()).then(|| Order::new(order.get()))
}

/// A policy; `None` for the default, which is the process's or the kernel's. Nodes without memory
/// are removed from a set.
///
/// # Errors
/// If no node of it has memory.
pub(crate) fn policy(
    policy: program::MemPolicy,
    mem: &Memory,
    op: &program::Op,
) -> Result<Option<MemPolicy>, SimError> {
    let there = |nodes: program::Nodes| {
        let named: NodeSet = nodes.iter().map(|node| NodeId::new(usize::from(node))).collect();
        let nodes = named.and(mem.nodes_with_memory());
        if nodes.is_empty() { Err(SimError::NoSuchNode { op: format!("{op:?}") }) } else { Ok(nodes) }
    };
    Ok(match policy {
        program::MemPolicy::Default => None,
        program::MemPolicy::Local => Some(MemPolicy::Local),
        program::MemPolicy::Preferred(node) => {
            there(program::Nodes::new([node]))?.iter().next().map(MemPolicy::Preferred)
        }
        program::MemPolicy::Bind(nodes) => Some(MemPolicy::Bind(there(nodes)?)),
        program::MemPolicy::Interleave(nodes) => Some(MemPolicy::Interleave(there(nodes)?)),
    })
}

pub(crate) fn frame(pfn: Pfn) -> program::Frame {
    program::Frame::new(u64::from(pfn.get()))
}

/// The frame of a driver's block.
///
/// # Errors
/// If the number is too large to be one of this machine's.
pub(crate) fn pfn(frame: program::Frame, op: &program::Op) -> Result<Pfn, SimError> {
    u32::try_from(frame.get()).map(Pfn::new).map_err(|_| SimError::bad_address(op))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_has_the_same_name_in_a_program_and_in_the_engine() {
        for (flag, name) in program::Gfp::FLAGS {
            assert_eq!(gfp(*flag).to_string(), *name);
        }
        for name in ["GFP_KERNEL", "GFP_ATOMIC", "GFP_HIGHUSER_MOVABLE", "GFP_TRANSHUGE_LIGHT", "GFP_TRANSHUGE", "none"]
        {
            assert_eq!(Some(gfp(program::Gfp::parse(name).unwrap())), Gfp::parse(name), "{name}");
        }
    }

    #[test]
    fn orders_beyond_the_buddy_lists_have_no_block() {
        assert_eq!(order(program::Order::new(10)), Some(Order::new(10)));
        assert_eq!(order(program::Order::new(11)), None);
    }
}
