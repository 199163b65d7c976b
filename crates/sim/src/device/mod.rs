//! Block devices: the order and the completion times of I/O.
//!
//! A [`bio::Bio`] asks for a run of blocks, each of a page. It waits in the host's queue, where
//! adjacent bios are merged into one request and an elevator orders the requests ([`elevator`]),
//! until the device takes it. Service times follow from the machine file ([`parameters`]): flash
//! serves as many requests at once as its queue holds and moves their data over one link
//! ([`flash`]); a disk has one head, which seeks, waits for the platter and transfers
//! ([`platter`]). What a task asks for waits in its plug first ([`plug`]); [`queues`] has all
//! devices, and for each bio what it is for.
//!
//! A device knows no pages and no tasks. It is told the time, and says when to call it again.

mod bio;
mod block_device;
mod elevator;
mod flash;
mod parameters;
mod platter;
mod plug;
mod queues;
mod run;

pub(crate) use parameters::{BLOCK_BYTES, Parameters};
pub use parameters::{DiskEntry, Kind};
pub(crate) use plug::Plug;
pub(crate) use queues::{Devices, Io, Target};

#[cfg(test)]
mod tests;
