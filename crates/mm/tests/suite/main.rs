//! The integration tests of `mm`, in one program: linking is what takes long.

mod captured_block;
mod direct_compaction_cost;
mod fragmentation_avoidance;
mod groups;
mod lru;
mod property;
mod support;
