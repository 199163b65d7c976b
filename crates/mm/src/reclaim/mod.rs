//! Reclaim: frees pages from the tails of the LRU lists, and objects from shrinkable caches.
//!
//! Direct reclaim ([`direct`]) and kswapd ([`crate::kswapd`]) step through priorities. At each
//! priority they shrink a node ([`node`]): [`balance`] decides how many pages of each list to scan,
//! [`lruvec`] scans them 32 at a time, [`active`] deactivates active pages, [`isolate`] and
//! [`inactive`] take inactive ones off, and [`fate`] decides what becomes of each. Pages in
//! generations are aged and evicted by [`generations`] instead. A task that
//! makes too little progress is throttled ([`throttle`]). With `vm.zone_reclaim_mode` a request
//! reclaims on a near node first ([`node_reclaim`]). Where there are memory control groups,
//! [`groups`] walks over them, and [`charge`] reclaims for their limits. Source: kernel-behaviour
//! §4.

mod active;
mod balance;
pub(crate) mod charge;
mod control;
pub(crate) mod direct;
mod fate;
mod generations;
mod groups;
mod inactive;
mod isolate;
mod lruvec;
pub(crate) mod node;
pub(crate) mod node_reclaim;
mod slab;
mod throttle;

pub(crate) use throttle::ROUND_CONGESTION_NS;

pub use charge::{Charge, ChargeFailure, OverHigh, SetLimit};
pub use generations::command::Refused;

pub(crate) use control::{DEF_PRIORITY, MAX_RECLAIM_RETRIES, ScanControl};
