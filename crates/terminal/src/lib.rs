//! The shared parts of Kontig's commands: output and how they end, numbers of the command line,
//! text and tables that fit the terminal, progress, completions, man pages, the action at Ctrl-C.

pub mod completions;
mod grid;
pub mod interrupt;
pub mod man;
pub mod number;
mod out;
mod progress;
mod wrap;

pub use grid::Grid;
pub use out::{Ending, ended, print, print_json, print_while_read, say};
pub use progress::bar;
pub use wrap::{columns, width, wrap};
