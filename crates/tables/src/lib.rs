//! Results as flat tables that other tools read: DuckDB, pandas, Polars, R, a spreadsheet.
//!
//! [`schema`] declares every table and column, and says what they mean. [`merged`] finds the runs
//! of stored results, each once, as [`facts`] and files. [`rows`] turns a run into rows, which
//! `sheet` gathers in Arrow's batches. [`files`] writes batches as CSV or Parquet (`parquet_file`),
//! `memory` keeps them. The same runs give the same bytes, in whatever results they are stored.

pub mod column;
pub mod facts;
pub mod files;
pub mod memory;
pub mod merged;
mod parquet_file;
pub mod rows;
pub mod schema;
mod sheet;

pub use column::{Column, Kind, Table};
pub use facts::Facts;
pub use files::{Files, Format};
pub use memory::Tables;
pub use merged::Merged;
pub use rows::{Rows, Sink};
pub use schema::TABLES;
