//! Files.

mod frames;
mod readahead;
mod slab;
mod space;
mod tree;
