//! Reclaim of pages that are in generations: the multi-generational LRU.
//!
//! [`shrink`] is one pass over a node: how much to evict, or whether to age first; [`order`] has
//! the memory control groups of one take turns. [`aging`] begins generations and ends the oldest.
//! [`evict`] takes pages from the tail of the oldest generation ([`scan`]) of the kind, up to the
//! tier, that the feedback loop chooses ([`tiers`]), and frees them; what is found used on the way
//! makes its neighbours young ([`look_around`]). Where walks are on, aging begins with one of all
//! page tables ([`walk`]). Source: kernel-behaviour §4.10.

mod aging;
pub(crate) mod command;
mod evict;
mod look_around;
mod order;
mod scan;
pub(super) mod shrink;
mod tiers;
mod walk;

/// Pages that are isolated or passed over at a time.
const MIN_LRU_BATCH: u64 = 64;
/// Pages that are moved at a time while the lock of the LRU is held.
const MAX_LRU_BATCH: u64 = 64 * 64;
