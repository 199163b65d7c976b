//! The kernel generations that come with Kontig, read from the files under `profiles/`.
//!
//! Those files are the only copy of a generation's rules. A file names the profile it starts from
//! (`base = "6.1"`) and the rules that differ, in a table for each mechanism; one without a base
//! has every rule. A user's own file is read the same way ([`read`]). The rules, their values and
//! their descriptions are the engine's ([`kontig_mm::rules`]).

mod builtin;
mod catalog;
mod complaint;
mod error;
mod file;
mod history;
mod kernel;
mod nearest;
mod switch;

pub use builtin::{is_path, names, text};
pub use catalog::{all, find, linux, of_kernel, open};
pub use complaint::Complaint;
pub use error::ProfileError;
pub use file::{MOST_BYTES, STANDARD_INPUT, check, read, read_text, said};
pub use history::History;
pub use kernel::{has_lru_gen, is_of_kernel, lru_gen_left_out, lru_gen_of_distributions};
pub use nearest::nearest;
pub use switch::{Fit, Switch, switches, to_throw_before};
