//! Kontig's benchmark: the engine beside a peer, in one process, on the same operations, as ratios.
//!
//! Times depend on the machine, ratios within one run hardly do. So every row has its
//! own yardstick, run by turns with the engine: a peer ([`Subject`]) on the same
//! operations, a [`rival`] from elsewhere, or a limit of the machine itself ([`limit`]).
//! Nothing here fails for being slow.
//!
//! `cargo bench -p kontig-bench` prints the table; [`options`] has its options. Pin it
//! (`taskset -c 1 cargo bench …`) if other programs run.

pub mod compaction;
pub mod compare;
pub mod files;
pub mod limit;
pub mod meaning;
pub mod measure;
pub mod memory;
pub mod metadata;
pub mod options;
pub mod processes;
pub mod quiet;
pub mod reclaim;
pub mod rival;
pub mod rows;
pub mod runs;
pub mod simulator;
pub mod soundness;
pub mod streams;
pub mod subject;
mod switches;
pub mod table;
pub mod translation;
pub mod turns;
mod usage;

pub use options::Options;
pub use subject::{Contender, Kontig, Subject};
pub use table::{Row, Table};
