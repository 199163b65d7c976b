//! Steps that system calls and kernel threads share: allocating, faulting, reading, writing and
//! freeing memory.

pub(crate) mod allocation;
mod charge;
pub(crate) mod collapse;
mod copy;
mod deferred;
pub(crate) mod fault;
pub(crate) mod file_fault;
pub(crate) mod hold_map;
pub(crate) mod inode_table;
mod io;
mod memory_writes;
mod mempolicy;
mod numa;
mod oom;
pub(crate) mod preload;
mod protected_fault;
mod purpose;
pub(crate) mod read_in;
pub(crate) mod swap_in;
mod wait;
pub(crate) mod write_pass;
pub(crate) mod xfs;
mod zap;
