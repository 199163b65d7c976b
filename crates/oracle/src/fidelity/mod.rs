//! What to believe: mechanism by mechanism, which kernel the engine was held against, and how it came out.
//!
//! [`evidence`] reads what is known of the recordings: which mechanisms each runs through, and which mistakes planted in
//! them it notices. [`page`] replays all of them and concludes; [`markdown`] writes it down, as `docs/fidelity.md`. Nothing
//! on that page is an opinion: a mechanism is exact against a kernel if a recording of that kernel runs through it and is
//! equal, and a recording of that kernel differs once something in it is done wrongly.

pub mod evidence;
pub mod markdown;
pub mod page;

pub use evidence::Evidence;
pub use page::{Page, Standing};
