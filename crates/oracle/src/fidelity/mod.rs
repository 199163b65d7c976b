//! Fidelity: how each mechanism of the engine stands against each recorded kernel.
//!
//! [`evidence`] reads which mechanisms each recording runs through, and which planted mistakes it
//! notices. [`page`] replays all recordings and derives the standings; [`markdown`] writes them to
//! `docs/generated/fidelity.md`. Nothing on that page is an opinion: a mechanism is exact against a
//! kernel if
//! a recording of that kernel runs through it and is equal, and some recording of that kernel
//! differs once a mistake is planted in it.

pub mod evidence;
pub mod markdown;
pub mod page;

pub use evidence::Evidence;
pub use page::{Page, Standing};
