//! Rows: single pages that join a list one after the other, or leave it in the order in which they
//! joined.
//!
//! A program that touches memory and later unmaps it puts its pages on the LRU in order and takes
//! them off in the same order. Each page is treated as it would be alone, but their slots are
//! filled and emptied together, and they are counted together.

use crate::event::Listen;
use crate::state::{BatchKind, FrameKind, Known, LruList, Memory, PageFlags, Tag};
use crate::types::{CpuId, Order, Pfn, ZoneId};
use crate::vmstat::VmEvent;

impl Memory {
    /// Adds single pages of one zone, allocated one after the other, to the LRU; each as by
    /// [`Memory::lru_add`].
    ///
    /// # Panics
    /// As [`Memory::lru_add`] does.
    #[inline(always)]
    pub fn lru_add_pages(&mut self, cpu: CpuId, pages: &[Pfn], flags: PageFlags) {
        let Some(&first) = pages.first() else { return };
        if self.lru.is_ordered() {
            self.lru_add_in_batches(cpu, pages, self.flags_of_new(flags));
        } else {
            assert!(!flags.has(PageFlags::FILE), "{first} is of a file, and this machine keeps no order of its pages");
            pages.iter().for_each(|pfn| self.frames.set(*pfn, FrameKind::Lru, Order::ZERO));
            self.count_unordered(first, pages.len() as i64);
        }
    }

    /// How many single pages can be added to the LRU before a CPU's batch moves that holds pages
    /// freed by their owners. With the last of them those pages become free.
    #[inline(always)]
    pub(crate) fn until_batch_frees(&self, cpu: CpuId) -> usize {
        let waiting = self.lru.batch(cpu, BatchKind::Add);
        if waiting.iter().any(|pfn| self.lru.is_released(*pfn)) {
            self.shared.profile.lru.batch as usize - waiting.len()
        } else {
            usize::MAX
        }
    }

    #[inline(never)]
    fn lru_add_in_batches(&mut self, cpu: CpuId, mut pages: &[Pfn], flags: PageFlags) {
        pages.iter().for_each(|pfn| self.lru.prefetch(pfn.get()));
        let size = self.shared.profile.lru.batch as usize;
        let rows = !self.lru.has_generations() && !self.groups.are_kept();
        while let [first, others @ ..] = pages {
            if rows && pages.len() >= size && self.lru.batch(cpu, BatchKind::Add).is_empty() {
                // They would be moved before anyone could look at the batch.
                let (batch, others) = pages.split_at(size);
                self.insert_row(cpu, self.blocks.zone_of(*first), batch, Known::new(flags));
                self.count_lru_lock(self.zones[self.blocks.zone_of(*first)].lruvec, size as u64);
                pages = others;
            } else {
                self.lru.set_known(*first, Known::new(flags).held());
                self.begin_uses(*first, flags);
                self.batch_push(cpu, *first, Order::ZERO, BatchKind::Add);
                pages = others;
            }
        }
    }

    /// Length of the row at the start of `pages`: single pages of one zone with the same LRU state,
    /// held only by this batch and not freed. 0 if the first page is not such a page.
    #[inline(always)]
    pub(super) fn row_to_insert(&self, pages: &[Pfn]) -> usize {
        if self.lru.has_generations() || self.groups.are_kept() {
            return 0;
        }
        let known = self.lru.known(pages[0]);
        if known.holds() != 1 || known.flags().has(PageFlags::RELEASED) || known.flags().has(PageFlags::UNEVICTABLE) {
            return 0;
        }
        let zone = self.blocks.zone_of(pages[0]);
        let alike = |pfn: &Pfn| {
            self.frames.tag(*pfn) == Tag::KERNEL_PAGE
                && self.lru.known(*pfn) == known
                && self.blocks.zone_of(*pfn) == zone
        };
        pages.iter().take_while(|pfn| alike(pfn)).count()
    }

    /// Puts single pages of one zone that were on no list at the head of their list, the last of
    /// them first, with the LRU state `known`.
    #[inline(always)]
    pub(super) fn insert_row(&mut self, cpu: CpuId, zone: ZoneId, pages: &[Pfn], known: Known) {
        let (flags, lruvec) = (known.flags(), self.zones[zone].lruvec);
        for pfn in pages {
            self.lru.set_known(*pfn, known);
            self.frames.set(*pfn, FrameKind::Lru, Order::ZERO);
        }
        self.lru.link_row(lruvec, pages, flags.list());
        self.count_listed_singly(cpu, zone, flags.list(), pages.len() as i64);
        self.note_looked_at(lruvec, flags, pages.len() as u64);
    }

    /// Counts single pages that joined or left a list one after the other.
    #[inline(always)]
    fn count_listed_singly(&mut self, cpu: CpuId, zone: ZoneId, list: LruList, pages: i64) {
        let zone = &mut self.zones[zone];
        let vec = &mut self.lru.vecs[zone.lruvec];
        vec.stats.add_singly(list.index(), cpu, pages, vec.stat_threshold);
        zone.lru.add_singly(list.index(), cpu, pages, zone.stat_threshold);
    }

    /// Frees the first of these single pages in order, at least one, until there is work to charge
    /// or a page differs from those before it; each as by [`Memory::free`]. Returns how many.
    ///
    /// # Panics
    /// As [`Memory::free`] does.
    pub fn free_some(&mut self, cpu: CpuId, pages: &[Pfn]) -> usize {
        let row = self.row_to_free(cpu, pages);
        if row < 2 {
            self.free(cpu, pages[0], Order::ZERO);
            return 1;
        }
        let pages = &pages[..row];
        let zone = self.blocks.zone_of(pages[0]);
        if self.lru.is_ordered() {
            let known = self.lru.known(pages[0]);
            let list = known.flags().list();
            self.lru.unlink_row(self.zones[zone].lruvec, pages, list);
            self.count_listed_singly(cpu, zone, list, -(row as i64));
            let left = Known::new(known.flags().without(PageFlags::ACTIVE));
            pages.iter().for_each(|pfn| self.lru.set_known(*pfn, left));
        } else {
            self.count_unordered(pages[0], -(row as i64));
        }
        self.shared.vmstat.add(VmEvent::Pgfree, row as u64);
        self.locked(zone, cpu).pcp_free_pages(pages);
        row
    }

    /// Length of the row at the start of `pages`: users' single pages of one zone that can be freed
    /// before there is work to charge, and that are neighbours on a list.
    #[inline(always)]
    fn row_to_free(&self, cpu: CpuId, pages: &[Pfn]) -> usize {
        if self.has_work() || self.shared.trace.listens_to(Listen::KMEM) {
            return 0;
        }
        let zone = self.blocks.zone_of(pages[0]);
        let most = self.zones[zone].pcps[cpu].room(&self.zones[zone], self.shared.profile.pcp.lists) as usize;
        let pages = &pages[..pages.len().min(most)];
        let alike =
            |pfn: Pfn| self.frames.tag_of(pfn, Order::ZERO) == Tag::LRU_PAGE && self.blocks.zone_of(pfn) == zone;
        if !self.lru.is_ordered() {
            return pages.iter().take_while(|pfn| alike(**pfn)).count();
        }
        if self.lru.has_generations() || self.groups.are_kept() {
            return 0;
        }
        let (known, place) = (self.lru.known(pages[0]), self.lru.place(pages[0]));
        if known.holds() > 0 || known.flags().has(PageFlags::UNEVICTABLE) {
            return 0;
        }
        let is_next = |(i, pfn): &(u32, &Pfn)| {
            alike(**pfn) && self.lru.known(**pfn) == known && self.lru.place(**pfn) == place.before(*i)
        };
        (0..).zip(pages).take_while(is_next).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gfp::Gfp;
    use crate::request::Request;
    use crate::snapshot::ZoneSnapshot;
    use crate::state::Lruvec;
    use crate::testing::{linux, two_zones};
    use crate::types::NodeId;
    use crate::work::Work;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const CPU: CpuId = CpuId::new(0);

    /// Operations on a machine: stretches of pages are touched and unmapped, and some pages are
    /// used in between.
    #[derive(Clone, Debug)]
    enum Do {
        /// Touches this many pages as a new stretch.
        Touch(usize),
        /// Unmaps a stretch from a page on.
        Unmap(usize, usize),
        /// Marks a page of a stretch used, or deactivates it.
        Use(usize, usize, bool),
    }

    fn anything() -> impl Strategy<Value = Do> {
        prop_oneof![
            3 => (1..200usize).prop_map(Do::Touch),
            3 => (any::<usize>(), 0..100usize).prop_map(|(which, from)| Do::Unmap(which, from)),
            1 => (any::<usize>(), any::<usize>(), any::<bool>()).prop_map(|(which, page, on)| Do::Use(which, page, on)),
        ]
    }

    /// The observable state of zones, lists and counters.
    type Seen = (Vec<ZoneSnapshot>, Vec<Vec<(Pfn, PageFlags)>>, Vec<(u64, i64)>, Vec<(VmEvent, u64)>);

    fn seen(m: &Memory) -> Seen {
        let vecs = || m.lru.vecs.iter().flat_map(|vec| LruList::EVICTABLE.map(|list| (vec, list)));
        let pages = |(vec, list): (&Lruvec, _)| vec.list(list).map(|pfn| (pfn, m.lru.flags(pfn))).collect();
        let counted =
            m.zones.iter().flat_map(|z| LruList::ALL.map(|list| (z.lru.get(list.index()), z.nr_listed(list) as i64)));
        let given = m.zones.iter().map(|z| (z.numa.given, z.alloc_batch.total(0)));
        let looked_at = m.lru.vecs.iter().map(|vec| (vec.recent_scanned[0], vec.recent_rotated[0] as i64));
        (
            m.zones.ids().map(|id| ZoneSnapshot::of(m, id)).collect(),
            vecs().map(pages).collect(),
            vecs()
                .map(|(vec, list)| (vec.size(list), vec.size_exact(list)))
                .chain(counted)
                .chain(given)
                .chain(looked_at)
                .collect(),
            m.vmstat().iter().collect(),
        )
    }

    /// Performs the operations page by page or in rows. Returns the stretches left and the work,
    /// without zonelist walks.
    fn history(m: &mut Memory, all: &[Do], rows: bool) -> (Vec<Vec<Pfn>>, Work) {
        let mut work = Work::default();
        let request = Request::new(CPU, NodeId::new(0), Gfp::HIGHUSER_MOVABLE, Order::ZERO);
        let mut stretches: Vec<Vec<Pfn>> = Vec::new();
        for what in all {
            match *what {
                Do::Touch(pages) => {
                    let mut touched: Vec<Pfn> = Vec::new();
                    while touched.len() < pages {
                        let Ok((pfn, mut source)) = m.alloc_from(request) else { break };
                        m.lru_add(CPU, pfn, Order::ZERO, PageFlags::ANON);
                        touched.push(pfn);
                        while rows && touched.len() < pages {
                            let mut run = [Pfn::default(); 24];
                            let most = run.len().min(pages - touched.len());
                            let count = m.alloc_again(request, &mut source, &mut run[..most]);
                            if count == 0 {
                                break;
                            }
                            m.lru_add_pages(CPU, &run[..count], PageFlags::ANON);
                            touched.extend(&run[..count]);
                        }
                    }
                    stretches.push(touched);
                }
                Do::Unmap(which, from) if !stretches.is_empty() => {
                    let which = which % stretches.len();
                    let mut stretch = core::mem::take(&mut stretches[which]);
                    let mut left = &stretch.split_off(from.min(stretch.len()))[..];
                    while let [first, others @ ..] = left {
                        if rows {
                            work.add(&m.take_work());
                            left = &left[m.free_some(CPU, left)..];
                        } else {
                            m.free(CPU, *first, Order::ZERO);
                            left = others;
                        }
                    }
                    stretches[which] = stretch;
                }
                Do::Use(which, page, on) if !stretches.is_empty() => {
                    let stretch = &stretches[which % stretches.len()];
                    if let Some(pfn) = stretch.get(page % stretch.len().max(1)) {
                        if on { m.mark_accessed(CPU, *pfn) } else { m.deactivate(CPU, *pfn) }
                    }
                }
                _ => {}
            }
            m.check().expect("consistent");
        }
        work.add(&m.take_work());
        // The caller counts the cost of the walk.
        work.zones_tried = 0;
        (stretches, work)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn a_row_is_what_its_pages_are_one_by_one(all in proptest::collection::vec(anything(), 1..30)) {
            for profile in ["4.4-kcompactd", "5.6", "6.1", "7.2"] {
                let [mut singly, mut in_rows] = [(); 2].map(|()| two_zones(linux(profile)));
                let [a, b] = [history(&mut singly, &all, false), history(&mut in_rows, &all, true)];
                prop_assert_eq!(a, b, "{}", profile);
                prop_assert_eq!(seen(&singly), seen(&in_rows), "{}", profile);
            }
        }
    }
}
