//! The multi-generational LRU: how pages join generations, are promoted, and come back.
//!
//! [`switch`] turns it on and off, [`add`] puts pages on the lists and takes them off, [`uses`]
//! counts their uses, [`refault`] keeps their shadows. What evicts and ages them is reclaim's.
//! Source: kernel-behaviour §4.10.

pub(crate) mod add;
mod refault;
mod switch;
pub(crate) mod uses;
