//! Processes: address spaces, relations, threads, and the locks of their memory maps.

pub(crate) mod address_space;
pub(crate) mod family;
pub(crate) mod mapping;
pub(crate) mod mmap_lock;
mod page_table;
pub(crate) mod threads;
mod young;
