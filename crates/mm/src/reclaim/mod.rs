//! Reclaim: taking pages back from the end of the LRU, and from caches that can be shrunk.
//!
//! Who reclaims ([`direct`], [`crate::kswapd`]) goes through priorities; at each a node is shrunk ([`node`]): of each
//! list a share is looked at ([`balance`]), 32 pages at a time ([`lruvec`]); active pages are made inactive ([`active`]),
//! inactive ones are taken off ([`isolate`], [`inactive`]), and what becomes of each is its [`fate`].
//! Who makes too little progress is throttled ([`throttle`]). Source: kernel-behaviour §4.

mod active;
mod balance;
mod control;
pub(crate) mod direct;
mod fate;
mod inactive;
mod isolate;
mod lruvec;
pub(crate) mod node;
mod slab;
mod throttle;

pub use fate::ReclaimStat;
pub(crate) use throttle::ROUND_CONGESTION_NS;
pub use throttle::Throttle;

pub(crate) use control::{DEF_PRIORITY, MAX_RECLAIM_RETRIES, ScanControl};
