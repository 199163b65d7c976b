//! A kernel generation, as data: the rules of each mechanism.
//!
//! The engine never asks for a version. Where generations differ it asks the profile, and each rule
//! is named after its effect: a value is a field of its mechanism's struct, an algorithm is one of
//! an enumeration's variants. A rule's description and its section of the behaviour document stand
//! with the rule ([`rule`]). The values stand in the files under `profiles/` and nowhere else.

pub mod rule;

mod block;
mod boost;
mod boot;
mod buddy;
mod compaction;
mod fallback;
mod faults;
mod files;
mod groups;
mod highatomic;
mod huge_pages;
mod kcompactd;
mod kswapd;
mod lru;
mod lru_gen;
mod node_reclaim;
mod pcp;
mod proactive;
mod processes;
mod reclaim;
mod scheduler;
mod slab;
mod slow_path;
mod watermark;
mod zonelist;

pub use block::BlockRules;
pub use boost::{BoostRules, IgnoresBoost};
pub use boot::BootRules;
pub use buddy::{BuddyRules, FreeLists};
pub use compaction::{CompactionRules, FastFind, HeldLock, Migration, Positions, Remembers, Scanners, Targets};
pub use fallback::{Fallback, FallbackRules};
pub use faults::FaultRules;
pub use files::{FileRules, LargeFolios, ReadaheadOrder};
pub use groups::{GroupCharges, GroupRules};
pub use highatomic::{HighAtomicLimit, HighAtomicRules};
pub use huge_pages::{Collapses, HugePageRules, HugeRequests};
pub use kcompactd::{KcompactdGoal, KcompactdMark, KcompactdRules};
pub use kswapd::{BalancedIn, KswapdRules, Preemption};
pub use lru::LruRules;
pub use lru_gen::{Generations, LruGenRules};
pub use node_reclaim::NodeReclaimRules;
pub use pcp::{PcpLists, PcpRules};
pub use proactive::{ProactiveBackoff, ProactiveRules, ProactiveScore};
pub use processes::{ProcessRules, Stack};
pub use reclaim::{BalancedBy, ReclaimRules, SlabShare, StallsFor};
pub use scheduler::SchedulerRules;
pub use slab::SlabRules;
pub use slow_path::{Attempts, CompactStall, SlowPathRules};
pub use watermark::{Reserves, WatermarkRules};
pub use zonelist::ZonelistRules;

use alloc::string::String;
use alloc::vec::Vec;
use rule::{Mechanism, Rule, Rules, Setting};

/// The mechanisms in the order a request meets them, each with its rules.
macro_rules! profile {
    ($($mechanism:ident: $Rules:ident),+ $(,)?) => {
        /// The rules of one kernel generation.
        #[derive(Clone, PartialEq, Eq, Debug)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
        pub struct Profile {
            pub name: String,
            pub summary: String,
            /// The built-in generation it starts from, which may be itself: hosts print `/proc` in
            /// that kernel's format.
            pub kernel: String,
            /// Whether a kernel of this generation was recorded and is reproduced; the rules of
            /// others follow descriptions.
            pub recorded: bool,
            /// Whether its reclaim and its LRU lists were recorded, too.
            #[cfg_attr(feature = "serde", serde(default))]
            pub reclaim_recorded: bool,
            /// The patch level whose rules these are, such as `5.10.262`: a stable release can
            /// change one.
            #[cfg_attr(feature = "serde", serde(default))]
            pub version: Option<String>,
            $(
                #[doc = concat!("See [`", stringify!($Rules), "`].")]
                pub $mechanism: $Rules,
            )+
        }

        /// Every mechanism that has rules.
        pub static MECHANISMS: &[Mechanism] = &[$(<$Rules as Rules>::MECHANISM),+];

        impl Profile {
            /// Every rule with this profile's value of it, mechanism by mechanism.
            pub fn settings(&self) -> impl Iterator<Item = (&'static Rule, Setting)> + use<> {
                let settings: Vec<Setting> = [$(self.$mechanism.settings()),+].concat();
                MECHANISMS.iter().flat_map(|m| m.rules).zip(settings)
            }
        }
    };
}

profile! {
    boot: BootRules,
    buddy: BuddyRules,
    pcp: PcpRules,
    fallback: FallbackRules,
    highatomic: HighAtomicRules,
    watermark: WatermarkRules,
    boost: BoostRules,
    zonelist: ZonelistRules,
    slow_path: SlowPathRules,
    lru: LruRules,
    lru_gen: LruGenRules,
    groups: GroupRules,
    reclaim: ReclaimRules,
    node_reclaim: NodeReclaimRules,
    faults: FaultRules,
    files: FileRules,
    block: BlockRules,
    scheduler: SchedulerRules,
    processes: ProcessRules,
    huge_pages: HugePageRules,
    slab: SlabRules,
    kswapd: KswapdRules,
    compaction: CompactionRules,
    kcompactd: KcompactdRules,
    proactive: ProactiveRules,
}

impl Profile {
    /// Whether requests can be marked atomic. The mark went when `__GFP_HIGH` took over the right
    /// to ignore a boost (6.3).
    pub fn has_atomic_mark(&self) -> bool {
        self.boost.ignored_by != IgnoresBoost::MinReserve
    }

    /// Whether two machines, one by these rules and one by `other`, are the same until one begins a
    /// compaction run ([`crate::Memory::has_compacted`]).
    pub fn is_same_until_compaction(&self, other: &Profile) -> bool {
        let compaction = self.compaction.with_runs_of(&other.compaction);
        // What is said of where rules come from does nothing.
        let Profile { recorded, reclaim_recorded, ref version, .. } = *other;
        Profile { compaction, recorded, reclaim_recorded, version: version.clone(), ..self.clone() } == *other
    }
}
