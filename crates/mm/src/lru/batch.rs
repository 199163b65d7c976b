//! Batches (pagevecs): pages on their way to another place on the LRU wait on the CPU until a batch
//! is full, so that the LRU lock is taken once for all of them.
//!
//! A batch holds a reference to its pages: a page freed meanwhile is freed only when the batch
//! moves, and reclaim and compaction find it held. Large pages do not wait. Source:
//! kernel-behaviour §4.1.

use super::ToFree;
use crate::prefetch::prefetch;
use crate::rules::BalancedBy;
use crate::state::{BATCH_MAX, BatchKind, FrameKind, Known, Memory, PageFlags, order_on_lru};
use crate::types::{CpuId, LruvecId, Order, Pfn};
use crate::vmstat::VmEvent;

/// Stands in a batch for a page of which nothing is known.
const NOBODY: Pfn = Pfn::new(u32::MAX);

impl Memory {
    /// Adds a page to a CPU's batch, which moves if that fills it.
    pub(crate) fn batch_add(&mut self, cpu: CpuId, pfn: Pfn, kind: BatchKind) {
        self.lru.hold(pfn);
        // Moving the batch will touch it.
        self.lru.prefetch(pfn.get());
        self.batch_push(cpu, pfn, self.frames.tag(pfn).order(), kind);
    }

    /// The same for a page that the batch holds already.
    #[inline(always)]
    pub(in crate::lru) fn batch_push(&mut self, cpu: CpuId, pfn: Pfn, order: Order, kind: BatchKind) {
        let len = self.lru.batches[cpu][kind as usize].push(pfn);
        let large = order > Order::ZERO;
        if len == self.shared.profile.lru.batch as usize || large {
            self.batch_move(cpu, kind);
        }
    }

    /// Puts a page that nobody has any more into the batch of pages to add, which frees it.
    pub(in crate::lru) fn leave_by_batch(&mut self, cpu: CpuId, pfn: Pfn) {
        self.frames.set(pfn, FrameKind::Kernel, Order::ZERO);
        if self.lru.is_ordered() {
            self.lru.set_flags(pfn, self.lru.flags(pfn).without(PageFlags::ACTIVE) | PageFlags::RELEASED);
            self.batch_add(cpu, pfn, BatchKind::Add);
        } else {
            self.wait_in_batch(cpu, Some(pfn));
        }
    }

    /// The same for a page that nobody has had.
    pub(crate) fn leave_unused(&mut self, cpu: CpuId, pfn: Pfn) {
        if self.lru.is_ordered() {
            self.lru.set_flags(pfn, PageFlags::default());
        }
        self.leave_by_batch(cpu, pfn);
    }

    /// Where the LRU has no order: an entry of the batch, for a page to free or for another. The
    /// kernels that need it move a full batch when the next page comes.
    pub(in crate::lru) fn wait_in_batch(&mut self, cpu: CpuId, leaving: Option<Pfn>) {
        if self.lru.batches[cpu][BatchKind::Add as usize].pages().len() == self.shared.profile.lru.batch as usize {
            self.free_leaving(cpu);
        }
        self.lru.batches[cpu][BatchKind::Add as usize].push(leaving.unwrap_or(NOBODY));
    }

    /// Pages that nobody has any more, and that the batch they wait in frees.
    pub fn lru_leaving(&self) -> impl Iterator<Item = Pfn> {
        let batches = (0..self.cpus).map(|cpu| &self.lru.batches[CpuId::new(cpu)][BatchKind::Add as usize]);
        let waiting = batches.flat_map(|batch| batch.pages().iter().copied());
        waiting.filter(|pfn| *pfn != NOBODY && (!self.lru.is_ordered() || self.lru.is_released(*pfn)))
    }

    fn free_leaving(&mut self, cpu: CpuId) {
        let batch = self.lru.batches[cpu][BatchKind::Add as usize].take();
        let mut free = ToFree::new();
        for &pfn in batch.pages().iter().filter(|pfn| **pfn != NOBODY) {
            free.add(self, cpu, pfn);
        }
        free.free(self, cpu);
    }

    /// Moves a CPU's batches of every kind, before something on that CPU looks at the LRU.
    pub fn lru_add_drain(&mut self, cpu: CpuId) {
        if self.lru.is_ordered() {
            for kind in BatchKind::ALL {
                if !self.lru.batch(cpu, kind).is_empty() {
                    self.batch_move(cpu, kind);
                }
            }
        } else if self.shared.profile.compaction.frees_by_batch {
            self.free_leaving(cpu);
        }
    }

    /// Moves the batches of all CPUs.
    pub fn lru_add_drain_all(&mut self) {
        for cpu in (0..self.cpus).map(CpuId::new) {
            self.lru_add_drain(cpu);
        }
    }

    fn batch_move(&mut self, cpu: CpuId, kind: BatchKind) {
        let batch = self.lru.batches[cpu][kind as usize].take();
        if let Some(first) = batch.pages().first() {
            self.count_lru_lock(self.lruvec_of(*first), batch.pages().len() as u64);
        }
        if kind == BatchKind::Add {
            self.batch_insert(cpu, batch.pages());
            return;
        }
        batch.pages().iter().for_each(|pfn| self.prefetch_slot(*pfn));
        for &pfn in batch.pages() {
            if let Some(order) = order_on_lru(self.frames.tag(pfn)) {
                self.move_within(cpu, pfn, order, kind);
            }
        }
        self.let_batch_go(cpu, batch.pages());
    }

    /// Puts pages that were on no list at the heads of their lists, and drops the batch's
    /// references.
    fn batch_insert(&mut self, cpu: CpuId, mut pages: &[Pfn]) {
        let drops_dead = self.shared.profile.lru.drops_dead_pages;
        // Pages that others hold, and pages that their owners have freed meanwhile.
        let (mut dead, mut kept, mut count) = (ToFree::new(), [Pfn::default(); BATCH_MAX], 0);
        while let [pfn, others @ ..] = pages {
            let row = self.row_to_insert(pages);
            if row > 0 {
                let known = Known::new(self.lru.flags(*pfn));
                self.insert_row(cpu, self.blocks.zone_of(*pfn), &pages[..row], known);
                pages = &pages[row..];
                continue;
            }
            pages = others;
            if drops_dead && self.lru.holds(*pfn) == 1 && self.lru.is_released(*pfn) {
                self.lru.let_go(*pfn);
                self.free_dead(&mut dead, cpu, *pfn);
                continue;
            }
            kept[count] = *pfn;
            count += 1;
            self.insert(cpu, *pfn, self.frames.tag(*pfn).order());
        }
        dead.free(self, cpu);
        self.let_batch_go(cpu, &kept[..count]);
    }

    /// Prefetches the list slot that a page will leave.
    #[inline(always)]
    fn prefetch_slot(&self, pfn: Pfn) {
        let lists = &self.lru.vecs[self.lruvec_of(pfn)].lists;
        let list = lists.get(self.lru.flags(pfn).list().index());
        if let Some(slot) = list.and_then(|list| list.slot_of(self.lru.place(pfn))) {
            prefetch(slot);
        }
    }

    /// Drops the batch's references. A page nobody else holds by then is freed: it was on the LRU
    /// only for this moment.
    fn let_batch_go(&mut self, cpu: CpuId, pages: &[Pfn]) {
        let mut free = ToFree::new();
        for &pfn in pages {
            self.lru.let_go(pfn);
            if self.lru.holds(pfn) == 0 && self.lru.flags(pfn).has(PageFlags::RELEASED) {
                if self.is_on_lru(pfn) {
                    self.lru_del(cpu, pfn, self.frames.tag(pfn).order());
                }
                self.free_dead(&mut free, cpu, pfn);
            }
        }
        free.free(self, cpu);
    }

    /// Frees a page that its owner freed before the batch moved.
    fn free_dead(&mut self, to_free: &mut ToFree, cpu: CpuId, pfn: Pfn) {
        self.lru.set_flags(pfn, self.lru.flags(pfn).without(PageFlags::RELEASED));
        to_free.add(self, cpu, pfn);
    }

    /// Puts a page that was on no list at the head of its list.
    fn insert(&mut self, cpu: CpuId, pfn: Pfn, order: Order) {
        self.link(cpu, pfn, order, false);
        self.frames.set(pfn, FrameKind::Lru, order);
        self.note_looked_at(self.lruvec_of(pfn), self.lru.flags(pfn), 1);
    }

    /// Up to 5.7, pages that join a list or change lists count as scanned and, if active, as
    /// rotated.
    #[inline(always)]
    pub(super) fn note_looked_at(&mut self, lruvec: LruvecId, flags: PageFlags, pages: u64) {
        if self.shared.profile.reclaim.balance == BalancedBy::Rotations {
            let (vec, of) = (&mut self.lru.vecs[lruvec], flags.backing().index());
            vec.recent_scanned[of] += pages;
            vec.recent_rotated[of] += if flags.has(PageFlags::ACTIVE) { pages } else { 0 };
        }
    }

    /// Makes the move for which a page on the LRU was in the batch.
    fn move_within(&mut self, cpu: CpuId, pfn: Pfn, order: Order, kind: BatchKind) {
        let flags = self.lru.flags(pfn);
        if flags.has(PageFlags::UNEVICTABLE) {
            return;
        }
        let pages = u64::from(order.pages());
        let idle = flags.without(PageFlags::ACTIVE).without(PageFlags::REFERENCED);
        let by_all_tiers = self.counts_all_tiers();
        let (to, tail, counts) = match kind {
            BatchKind::Add => unreachable!("pages on the LRU are not added to it"),
            // Where pages that reclaim waits for stay inactive, an active page is in use.
            BatchKind::Rotate if flags.has(PageFlags::ACTIVE) && !self.shared.profile.reclaim.activates_unwritten => {
                return;
            }
            BatchKind::Rotate => (flags.without(PageFlags::ACTIVE), true, Some(VmEvent::Pgrotated)),
            BatchKind::DeactivateFile => {
                if flags.has(PageFlags::ACTIVE) || by_all_tiers {
                    self.shared.vmstat.add(VmEvent::Pgdeactivate, pages);
                }
                // A page that must be written first goes to the head, and is reclaimed once it is
                // written.
                let written = !flags.has(PageFlags::WRITE_FIRST);
                (idle.without(PageFlags::WRITE_FIRST), written, written.then_some(VmEvent::Pgrotated))
            }
            BatchKind::Deactivate if flags.has(PageFlags::ACTIVE) || self.lru.has_generations() => {
                (idle, false, Some(VmEvent::Pgdeactivate))
            }
            BatchKind::Lazyfree if !flags.has(PageFlags::FILE) => {
                let idle = if by_all_tiers { flags.without(PageFlags::ACTIVE) } else { idle };
                (idle | PageFlags::FILE, false, Some(VmEvent::Pglazyfree))
            }
            BatchKind::Activate if !flags.has(PageFlags::ACTIVE) => {
                (flags | PageFlags::ACTIVE, false, Some(VmEvent::Pgactivate))
            }
            BatchKind::Deactivate | BatchKind::Lazyfree | BatchKind::Activate => return,
        };
        self.unlink(cpu, pfn, order);
        self.lru.set_flags(pfn, to);
        self.link(cpu, pfn, order, tail);
        if kind == BatchKind::DeactivateFile && flags.has(PageFlags::WRITE_FIRST) {
            self.lru.set_flags(pfn, self.lru.flags(pfn) | PageFlags::RECLAIM);
        }
        if kind != BatchKind::Rotate {
            self.note_looked_at(self.lruvec_of(pfn), to, 1);
        }
        if let Some(event) = counts {
            self.shared.vmstat.add(event, pages);
        }
    }

    /// Frees a page through the batches that hold it; false if none does.
    ///
    /// # Panics
    /// If it has been freed already: a double free.
    pub(crate) fn release_to_batches(&mut self, pfn: Pfn) -> bool {
        let held = self.lru.holds(pfn) > 0;
        if held {
            assert!(!self.lru.is_released(pfn), "free of {pfn}, which has been let go already");
            self.lru.set_flags(pfn, self.lru.flags(pfn) | PageFlags::RELEASED);
        }
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Listen};
    use crate::state::LruList;
    use crate::testing::{linux, ordered_machine, ordered_machine_with, user_page};
    use alloc::vec::Vec;

    const CPU: CpuId = CpuId::new(0);
    const OTHER: CpuId = CpuId::new(1);

    fn is_free(m: &Memory, pfn: Pfn) -> bool {
        matches!(m.frames.tag(pfn).kind(), FrameKind::Pcp(_) | FrameKind::Buddy(_))
    }

    #[test]
    fn a_full_batch_is_moved_and_its_size_is_the_kernels() {
        for (profile, size) in [("6.1", 15), ("7.2", 31)] {
            let mut m = ordered_machine_with(1, linux(profile));
            let pages: Vec<Pfn> = (0..size).map(|_| user_page(&mut m, PageFlags::FILE)).collect();
            let last = pages[size - 1];
            assert!(pages.iter().all(|pfn| m.is_on_lru(*pfn) && m.lru.holds(*pfn) == 0), "{profile}");
            let list = m.lru.vecs[m.lruvec_of(last)].list(LruList::InactiveFile);
            assert!(list.eq(pages.iter().rev().copied()), "the last added comes first");
        }
    }

    #[test]
    fn large_pages_do_not_wait_and_take_the_batch_with_them() {
        let mut m = ordered_machine(2);
        let waiting = user_page(&mut m, PageFlags::ANON);
        let request = crate::Request::new(CPU, crate::NodeId::new(0), crate::Gfp::HIGHUSER_MOVABLE, Order::new(9));
        let huge = m.alloc(request).expect("a pageblock is free");
        m.lru_add(CPU, huge, Order::new(9), PageFlags::ANON);
        assert!(m.is_on_lru(waiting) && m.is_on_lru(huge));
        assert_eq!(m.lru.vecs[m.lruvec_of(huge)].size_exact(LruList::InactiveAnon), 513);
    }

    #[test]
    fn pages_let_go_are_freed_when_their_batch_moves_the_last_first() {
        let mut m = ordered_machine(1);
        let pages: Vec<Pfn> = (0..6).map(|_| user_page(&mut m, PageFlags::FILE)).collect();
        for pfn in [pages[1], pages[4], pages[3]] {
            m.free(OTHER, pfn, Order::ZERO);
            assert!(!is_free(&m, pfn), "the batch holds it");
        }
        m.trace().listen(Listen::KMEM);
        m.lru_add_drain(CPU);
        let freed: Vec<Pfn> = m
            .trace()
            .take()
            .into_iter()
            .filter_map(|event| if let Event::PageFree { pfn, .. } = event { Some(pfn) } else { None })
            .collect();
        assert_eq!(freed, [pages[4], pages[3], pages[1]], "in the order of the batch, not in that they were let go in");
        m.check().expect("consistent");
    }

    #[test]
    fn a_page_in_two_batches_is_freed_with_the_second() {
        let mut m = ordered_machine(1);
        let pfn = user_page(&mut m, PageFlags::FILE | PageFlags::ACTIVE);
        m.lru_add_drain(CPU);
        m.deactivate(CPU, pfn);
        m.deactivate_file(OTHER, pfn, false);
        assert_eq!(m.lru.holds(pfn), 2);
        m.free(CPU, pfn, Order::ZERO);
        m.lru_add_drain(OTHER);
        assert!(m.is_on_lru(pfn) && m.lru.holds(pfn) == 1);
        m.check().expect("consistent while a batch holds it");
        m.lru_add_drain(CPU);
        assert!(is_free(&m, pfn) && m.lru.holds(pfn) == 0);
        m.check().expect("nothing says any more that it was let go");
    }

    #[test]
    fn a_page_that_is_twice_in_one_batch_is_freed_once() {
        let mut m = ordered_machine(1);
        let pfn = user_page(&mut m, PageFlags::FILE);
        m.lru_add_drain(CPU);
        m.deactivate_file(CPU, pfn, false);
        m.deactivate_file(CPU, pfn, false);
        m.free(CPU, pfn, Order::ZERO);
        m.lru_add_drain(CPU);
        assert!(is_free(&m, pfn));
        m.check().expect("consistent");
    }

    #[test]
    #[should_panic(expected = "let go already")]
    fn a_page_that_a_batch_holds_cannot_be_let_go_twice() {
        let mut m = ordered_machine(1);
        let pfn = user_page(&mut m, PageFlags::FILE);
        m.free(CPU, pfn, Order::ZERO);
        m.free(CPU, pfn, Order::ZERO);
    }
}
