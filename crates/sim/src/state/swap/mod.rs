//! Swap: the area with its slots, readahead, and I/O in progress.

mod area;
mod clusters;
pub(crate) mod readahead;
mod swapping;

pub(crate) use area::{Slot, Swap};
pub(crate) use swapping::Swapping;
