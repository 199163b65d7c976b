//! Address translation as a cost: what an access to memory takes, on small pages and on huge ones.
//!
//! The TLB holds a limited number of translations. An access to a page that it does not hold walks
//! the page table, which takes as long as reading the table's entries from the caches or from
//! memory. Huge pages make one translation of 512, and spare the table's last level; pages of 1 GiB
//! make one of 262,144. Folios below 2 MiB (mTHP) lie in contiguous frames, so that their entries
//! in a host's table share cache lines. So the model asks three things of an access: does the TLB
//! hold its page (`tlb`), where are the entries that a walk reads, and how long do such reads take
//! on this processor ([`Processor`]).
//!
//! [`Mapped`] says on which pages the memory lies, a [`Pattern`](kontig_program::Pattern) where the
//! accesses go, and [`Processor::access_ns`] gives the time of one access.
//!
//! A processor's constants are measured on it; a guest's include what its host does. The model
//! knows nothing of instructions, of prefetching across pages, or of entries that a core joins.

mod access;
mod lru;
mod mapped;
mod popularity;
mod processor;
mod tlb;

pub use mapped::{Mapped, PAGES_OF_A_LINE};
pub use processor::{Backing, Independent, Processor, Tlb, WrongConstant};
