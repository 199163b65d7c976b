//! The checker's part for the multi-generational LRU: every evictable page is on one list, of its
//! kind and zone; the counts of generations agree with the pages that belong to them; and kinds
//! have as many generations as they may.

use super::ensure;
use super::lru::Listed;
use crate::state::{Backing, FrameKind, Gen, MAX_NR_GENS, MIN_NR_GENS, Memory, PageFlags, Sizes};
use crate::types::{LruList, LruvecId, Pfn, ZoneType};
use alloc::format;
use alloc::string::String;

impl Memory {
    /// The list that a page on the LRU is counted on.
    pub(super) fn counted_on(&self, pfn: Pfn) -> LruList {
        let flags = self.lru.flags(pfn);
        let Some(of) = self.lru.used(pfn).generation() else { return flags.list() };
        let active = self.lru.gens(self.lruvec_of(pfn)).is_active(of);
        if active { flags.backing().active() } else { flags.backing().inactive() }
    }

    /// Walks the lists, and counts their pages by zone as other kernels would list them.
    pub(super) fn check_generations(&self, lruvec: LruvecId, listed: &mut Listed) -> Result<(), String> {
        let gens = self.lru.gens(lruvec);
        let [anon, file] = [0, 1].map(|kind| gens.nr_gens(kind));
        // Where the first tiers decide, files do not run ahead of anonymous pages.
        let most_files = if self.shared.profile.lru_gen.by_all_tiers() { MAX_NR_GENS as u64 } else { anon };
        ensure!(
            MIN_NR_GENS <= file.min(anon) && file <= most_files && anon <= MAX_NR_GENS as u64,
            "{anon} generations of anonymous pages and {file} of files"
        );
        let mut sizes = Sizes::default();
        for of in Gen::all() {
            for backing in Backing::ALL {
                for zone in 0..ZoneType::COUNT {
                    self.check_generation(lruvec, (of, backing, zone), &mut sizes, listed)
                        .map_err(|e| format!("list {} of {backing:?} in zone {zone}: {e}", of.index()))?;
                }
            }
        }
        ensure!(sizes == gens.nr_pages, "pages by generation {sizes:?}, counted {:?}", gens.nr_pages);
        Ok(())
    }

    fn check_generation(
        &self,
        lruvec: LruvecId,
        (of, backing, zone): (Gen, Backing, usize),
        sizes: &mut Sizes,
        listed: &mut Listed,
    ) -> Result<(), String> {
        let list = &self.lru.gens(lruvec).lists[of.index()][backing.index()][zone];
        if let Err(e) = list.check() {
            return Err(format!("the list has {e}"));
        }
        for (pfn, place) in list.places() {
            ensure!(pfn.index() < self.frames.nr_frames(), "{pfn} is no frame");
            let (tag, flags, used) = (self.frames.tag(pfn), self.lru.flags(pfn), self.lru.used(pfn));
            let (kind, order) = (tag.kind(), tag.order());
            ensure!(kind == FrameKind::Lru && pfn.is_aligned(order), "{pfn} is listed, tagged {kind:?} {order:?}");
            ensure!(self.lru.place(pfn) == place && used.listed() == of, "{pfn} has lost its place");
            ensure!(flags.backing() == backing, "{pfn} is of the other kind");
            ensure!(!flags.has(PageFlags::ACTIVE), "{pfn} is listed, and says it is active");
            ensure!(!flags.has(PageFlags::UNEVICTABLE), "{pfn} is unevictable");
            let Some(generation) = used.generation() else { return Err(format!("{pfn} is in no generation")) };
            let at = self.blocks.zone_of(pfn);
            ensure!(self.lruvec_of(pfn) == lruvec, "{pfn} is of another node or group");
            ensure!(self.zones[at].kind.index() == zone, "{pfn} is of another zone");
            sizes[generation.index()][backing.index()][zone] += i64::from(order.pages());
            listed[at.index()][self.counted_on(pfn).index()] += u64::from(order.pages());
        }
        Ok(())
    }
}
