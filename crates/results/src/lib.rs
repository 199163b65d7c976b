//! Results of Kontig's experiments, as they are stored and shown.
//!
//! A [`RunResult`] is everything one run of one variant left: figures, distributions, values over
//! time, events, and pictures of memory. An [`ExperimentResult`] is the table made of all runs. The
//! code that makes results and the code that shows them share these types and nothing else. In JSON
//! each is its fields, under their names.

pub mod ageing;
pub mod caveat;
pub mod ended;
pub mod endings;
pub mod event_log;
pub mod histogram;
pub mod judge;
pub mod map;
pub mod pace;
pub mod row;
pub mod run;
pub mod score;
pub mod seeds;
pub mod series;
pub mod statistics;
pub mod table;

pub use ageing::Ageing;
pub use caveat::{Caveat, CaveatKind};
pub use ended::Ended;
pub use endings::Endings;
pub use event_log::{EventCount, TimedEvent};
pub use histogram::Histogram;
pub use judge::{JudgedStep, Noise, Rule};
pub use kontig_program::figure::samples_needed;
pub use kontig_program::{Better, Ending, Figure, MEASURE, Merge, Reading, TOTAL};
pub use map::{CELL_HAS_UNMOVABLE, Cell, MapFrame, MapZone, MemoryMap};
pub use pace::PacePoint;
pub use row::{Measured, Pairs, Row};
pub use run::{Phase, Round, RunResult, TaskTime};
pub use score::{Apart, Counts, FalseAlarms, Score, Tally};
pub use seeds::Seeds;
pub use series::{Series, is_drawn};
pub use statistics::Statistics;
pub use table::{
    Answer, COMPARE_SCHEMA, Compared, Comparison, ExperimentResult, NOTHING_IS_RANDOM, REPRODUCE_SCHEMA, Remark,
    Reproduction, Sweep,
};
