//! The tests of the project's own source, in one program.

mod floors;
mod words;
