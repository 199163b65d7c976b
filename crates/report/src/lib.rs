//! Kontig's reports: an experiment's results as a table for a terminal, a
//! page for a browser and a picture.
//!
//! Everything here is a pure function from results to text: it does no I/O. A result file may come
//! from anywhere, so names in it are treated as hostile.

mod ageing;
mod conclusion;
mod curve;
mod data;
pub mod html;
pub mod limits;
pub mod map;
pub mod markdown;
mod number;
pub mod overview;
pub mod pace;
pub mod palette;
pub mod scanners;
mod standing;
pub mod statistics;
pub mod svg;
pub mod table;
mod terminal;
mod thin;
pub mod verdict;

pub use standing::UNRESOLVED;
