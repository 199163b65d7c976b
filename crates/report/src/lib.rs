//! Kontig's reports: what an experiment measured, as a table for a terminal, a page for a browser and a picture.
//!
//! Everything here is a pure function from results to text: nothing is read, fetched or written, and names inside
//! results are treated as hostile, for a result file may come from anywhere.

mod ageing;
mod curve;
mod data;
pub mod html;
pub mod limits;
pub mod map;
pub mod markdown;
mod number;
pub mod pace;
pub mod palette;
mod standing;
pub mod statistics;
pub mod svg;
pub mod table;
mod terminal;
mod thin;
pub mod verdict;

pub use standing::UNRESOLVED;
