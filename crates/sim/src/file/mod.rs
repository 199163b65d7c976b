//! Files.

mod slab;
mod tree;
