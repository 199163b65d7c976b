//! The history of a host: the kernel's texts again and again, in a file that is only ever appended
//! to.
//!
//! `collect` reads a host, `delta` and `record` make a sample small, `writer` appends it; `file`
//! reads it back and `tree` lays its texts out as files, so that all that reads a host reads any
//! moment of it. What happened in between (boots, jumps of the clock, changed settings) is found
//! when the file is read (`point`, `changes`): a later version finds more.

pub mod at;
mod bytes;
pub mod changes;
pub mod collect;
pub mod compare;
pub mod count;
mod delta;
pub mod file;
pub mod page;
pub mod period;
pub mod point;
mod record;
pub mod sample;
pub mod spread;
pub mod step;
pub mod tree;
pub mod words;
pub mod writer;

pub use at::At;
pub use collect::Collector;
pub use compare::Comparison;
pub use file::{History, Item, Moment, NoHistory};
pub use period::Period;
pub use point::Point;
pub use sample::{Sample, Stored};
pub use step::Step;
pub use tree::Tree;
pub use writer::{NotWritten, Writer};
