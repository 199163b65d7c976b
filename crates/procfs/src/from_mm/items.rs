//! The state counters of `/proc/zoneinfo` and `/proc/vmstat`, by the kernel's names.

use crate::Counters;
use kontig_mm::state::FrameKind;
use kontig_mm::types::PAGEBLOCK_PAGES;
use kontig_mm::{CpuId, LruList, Memory, Zone};

/// What is counted of a zone, a node or the machine.
#[derive(Default)]
pub(super) struct Items {
    free: i64,
    free_in_blocks: i64,
    listed: [u64; LruList::COUNT],
    isolated: u64,
    huge: u64,
}

impl Items {
    /// The sum over some zones.
    pub(super) fn of<'a>(m: &Memory, zones: impl Iterator<Item = &'a Zone>) -> Items {
        let mut sum = Items::default();
        for z in zones {
            let unfolded: i64 = (0..m.nr_cpus()).map(|cpu| z.pcp(CpuId::new(cpu)).free_diff).sum();
            sum.free += z.nr_free_pages_exact() as i64 - unfolded;
            sum.free_in_blocks += z.free_pages_in_blocks();
            LruList::ALL.iter().for_each(|list| sum.listed[list.index()] += z.nr_listed(*list));
            sum.isolated += z.nr_isolated;
            sum.huge += user_huge_pages(m, z);
        }
        sum
    }

    /// These counters with their values; 0 for what the engine does not have.
    pub(super) fn fill(&self, names: &Counters) -> Counters {
        names.with(|name| self.get(name).unwrap_or(0))
    }

    /// The counter of this name; `None` for what the engine does not have.
    pub(super) fn get(&self, name: &str) -> Option<u64> {
        Some(match name {
            // Without the CPUs' unfolded parts, which can make the rest negative: the kernel shows 0 then.
            "nr_free_pages" => self.free.max(0) as u64,
            "nr_free_pages_blocks" => self.free_in_blocks.max(0) as u64,
            "nr_isolated_anon" => self.isolated,
            // Mapped, on the LRU or not.
            "nr_anon_pages" => {
                let of = |list: LruList| self.listed[list.index()];
                of(LruList::InactiveAnon) + of(LruList::ActiveAnon) + self.isolated
            }
            "nr_anon_transparent_hugepages" => self.huge,
            _ => {
                let short = name.strip_prefix("nr_")?;
                let short = short.strip_prefix("zone_").unwrap_or(short);
                let list = LruList::ALL.iter().find(|list| list.name() == short)?;
                self.listed[list.index()]
            }
        })
    }
}

/// Huge pages of user memory in a zone.
fn user_huge_pages(m: &Memory, zone: &Zone) -> u64 {
    (zone.start.pageblock()..=zone.last_pageblock().pageblock())
        .map(|block| m.frames().block_tag(block))
        .filter(|t| matches!(t.kind(), FrameKind::Lru | FrameKind::IsolatedLru))
        .map(|t| u64::from(t.order().pages() / PAGEBLOCK_PAGES))
        .sum()
}
