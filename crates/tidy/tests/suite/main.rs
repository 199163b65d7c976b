//! The tests of the project's own source, in one program.

mod documents;
mod floors;
mod runs;
mod words;
