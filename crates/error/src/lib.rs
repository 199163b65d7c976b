//! Errors of Kontig's commands, each with one clear line and an exit code; and [`files`] that are
//! written whole or not at all.

mod error;
pub mod files;

pub use error::{AskedWrongly, Error, Failed};
