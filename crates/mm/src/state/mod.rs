//! All state of the engine, and none of its mechanisms.
//!
//! [`Memory`] holds the nodes, the zones, every frame and pageblock, and the state they share.
//! Mechanisms (every other module) import from here; nothing here imports a mechanism.

mod compaction;
mod content;
mod frames;
mod generations;
mod group;
mod list;
mod locked;
mod lru;
mod lru_gen;
mod marks;
mod memcg_lru;
mod memory;
pub(crate) mod mm_list;
mod node;
mod pageblock;
pub mod pcp_lists;
mod shared;
mod stat;
mod table;
mod tag;
mod tunables;
mod zone;

pub use crate::types::{Backing, LruList};
pub use compaction::ZoneCompaction;
pub use content::{BlockContent, PagesInUse};
pub use frames::Frames;
pub use generations::{Gen, Generations, MAX_NR_GENS, MAX_NR_TIERS, MIN_NR_GENS, Tier, Used};
pub use group::{Group, GroupEvents, Groups, PageCounter, SharedWalk, Stock};
pub use list::List;
pub use lru::{BatchKind, CostsRead, GroupLists, Lru, Lruvec, NodeStat, PageFlags, SwapSpace};
pub use marks::Watermarks;
pub use memcg_lru::{MemcgLru, NR_BINS};
pub use memory::Memory;
pub use node::{KcompactdState, KswapdState, Node, PassedBy, WentOn};
pub use pageblock::Pageblocks;
pub use pcp_lists::{AutoTuning, PerCpuPages};
pub use tag::{FrameKind, Tag};
pub use tunables::{Dirty, Khugepaged, Limit, LruGen, Tunables};
pub use zone::{NumaCounts, Zone};

pub(crate) use generations::{MAX_REFS, Sizes};
pub(crate) use group::CHARGE_BATCH;
pub(crate) use list::{MAX_FRAMES, NIL, Walk};
pub(crate) use locked::Locked;
pub(crate) use lru::new_lruvecs;
pub(crate) use lru::{BATCH_MAX, Known, order_on_lru};
pub(crate) use memcg_lru::{Link, Rotation};
pub(crate) use pageblock::BlockFilter;
pub(crate) use pcp_lists::NR_LISTS;
pub(crate) use shared::Shared;
pub(crate) use stat::Stats;
pub(crate) use table::Table;
pub(crate) use tunables::SYSCTL_COUNT;
