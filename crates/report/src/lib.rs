//! Kontig's reports: an experiment's results as a table for a terminal, a
//! page for a browser and a picture.
//!
//! Everything here is a pure function from results to text: it does no I/O. A result file may come
//! from anywhere, so names in it are treated as hostile.

mod ageing;
mod bounds;
mod conclusion;
mod curve;
mod data;
pub mod html;
pub mod limits;
pub mod map;
pub mod markdown;
mod number;
mod order;
pub mod overview;
pub mod pace;
pub mod palette;
pub mod published;
pub mod scanners;
mod shown;
mod standing;
pub mod statistics;
pub mod svg;
mod sweep;
pub mod table;
mod take_away;
mod terminal;
#[cfg(test)]
mod test_rows;
mod thin;
mod transposed;
pub mod verdict;

/// A table with its conclusion, in which variants have their names.
pub fn answer(result: &kontig_results::ExperimentResult) -> kontig_results::Answer {
    let conclusion = conclusion::lines(result, conclusion::Called::ByName);
    kontig_results::Answer { conclusion, result: result.clone() }
}
