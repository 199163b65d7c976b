//! Programs: what processes and kernel drivers do, as streams of operations.
//!
//! A [`Program`] hands over operations ([`Op`]) and is told how they went ([`Outcome`]). It knows
//! nothing of the machine that carries them out, so the same program can run on the simulated
//! machine and on a real host. A machine depends on this crate, a workload depends on this crate,
//! and this crate depends on nothing (but on `serde` for hosts that store what was measured).
//!
//! A program declares its measurements as [`figure`]s.
//!
//! Operations come in batches ([`Batch`]). A program that needs an outcome before it can go on
//! hands over one operation at a time; one that does not hands over many, and is then asked less
//! often. The machine carries a batch out in order, and what it does to memory, and when, is the
//! same as if each operation had been asked for alone.
//!
//! ```
//! use kontig_program::{Batch, Op, Outcome, Program, Region, Value};
//!
//! /// Maps 16 pages, touches them, and unmaps every second one.
//! #[derive(Clone)]
//! struct EverySecond {
//!     mapped: bool,
//!     holes: bool,
//! }
//!
//! impl Program for EverySecond {
//!     fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
//!         if !self.mapped {
//!             self.mapped = true;
//!             todo.push(Op::Mmap { pages: 16 });
//!         } else if !self.holes {
//!             self.holes = true;
//!             let Some(Value::Region(region)) = done.last().map(|o| o.value) else { return };
//!             todo.push(Op::Touch(region));
//!             // The touch's outcome changes nothing: the holes go with it in one batch.
//!             let hole = |i| Op::Munmap(Region { first: 2 * i, pages: 1, ..region });
//!             todo.extend((0..8u32).map(hole));
//!         }
//!         // Nothing handed over: the program is done.
//!     }
//!     fn progress(&self) -> f64 {
//!         if self.holes { 1.0 } else { 0.0 }
//!     }
//! }
//!
//! let (mut program, mut todo) = (EverySecond { mapped: false, holes: false }, Batch::new());
//! program.next(&[Outcome::at_start(0)], &mut todo);
//! assert_eq!(todo.pop(), Some(Op::Mmap { pages: 16 }));
//! assert!(todo.is_empty());
//! ```

mod access;
pub mod act;
mod batch;
mod ending;
pub mod figure;
mod gfp;
mod mempolicy;
mod op;
mod outcome;
mod program;
mod random;

pub use access::{Hot, Pattern};
pub use batch::Batch;
pub use ending::Ending;
pub use figure::{Better, Figure, MEASURE, Merge, Reading, TOTAL, Text};
pub use gfp::{Gfp, NotTaken};
pub use mempolicy::{MemPolicy, Nodes};
pub use op::{FileName, Frame, HPAGE_PMD_NR, Op, OpenFile, Order, Process, Region, Thread};
pub use outcome::{Outcome, Value};
pub use program::{BoxedClone, Placement, Program};
pub use random::SplitMix64;
