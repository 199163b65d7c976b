//! What the kernel does for whoever needs memory.

mod numa;
mod wait;
