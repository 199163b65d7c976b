//! Puts a page into a generation, and takes it out.
//!
//! A page joins, by the first of these that holds: active, the youngest; anonymous and not in the
//! swap cache, or waiting for its write to be reclaimed, the second youngest; to the tail, or with
//! three generations at most, the oldest; else the second oldest. Where all tiers decide, an active
//! page joins the youngest only if it is of the working set, and any other the fourth youngest, or
//! the third if it was used. The flag for active is clear while a page is listed; it is set again
//! if a page leaves one of the two youngest for anything but eviction. Source: kernel-behaviour
//! §4.10.1, §4.10.9.

use crate::state::{Backing, Gen, MIN_NR_GENS, Memory, PageFlags};
use crate::types::{CpuId, LruList, LruvecId, Order, Pfn, ZoneId, ZoneType};

/// The place where a page is counted: its lists, its zone, and its kind.
pub(crate) struct Place {
    pub(crate) lruvec: LruvecId,
    pub(crate) zone: ZoneId,
    pub(crate) zone_type: ZoneType,
    pub(crate) backing: Backing,
}

impl Place {
    pub(crate) fn kind(&self) -> usize {
        self.backing.index()
    }
    /// The list that a kernel without generations would count it on.
    fn counted(&self, active: bool) -> LruList {
        if active { self.backing.active() } else { self.backing.inactive() }
    }
}

impl Memory {
    pub(crate) fn gen_place(&self, pfn: Pfn) -> Place {
        let zone = self.blocks.zone_of(pfn);
        let (lruvec, zone_type) = (self.lruvec_in(zone, pfn), self.zones[zone].kind);
        Place { lruvec, zone, zone_type, backing: self.lru.flags(pfn).backing() }
    }

    /// Links an evictable page. `waits`: it will be reclaimed once it is written.
    pub(crate) fn gen_add(&mut self, cpu: CpuId, pfn: Pfn, order: Order, tail: bool, waits: bool) {
        let place = self.gen_place(pfn);
        let kind = place.kind();
        let flags = self.lru.flags(pfn);
        let of = Gen::of(self.seq_to_join(pfn, &place, tail, waits));
        self.lru.set_flags(pfn, flags.without(PageFlags::ACTIVE));
        self.lru.used_mut(pfn).set_generation(Some(of));
        self.gen_count(cpu, &place, None, Some(of), i64::from(order.pages()));
        self.lru.gen_link(place.lruvec, pfn, (of, kind, place.zone_type), tail);
    }

    /// The number of the generation that an evictable page joins.
    pub(crate) fn seq_to_join(&self, pfn: Pfn, place: &Place, tail: bool, waits: bool) -> u64 {
        let flags = self.lru.flags(pfn);
        let gens = self.lru.gens(place.lruvec);
        let (max_seq, min_seq) = (gens.max_seq, gens.min_seq[place.kind()]);
        let waits = waits || place.backing == Backing::Anon && !self.lru.used(pfn).in_swap_cache();
        if self.shared.profile.lru_gen.by_all_tiers() {
            let workingset = flags.has(PageFlags::WORKINGSET);
            let seq = match () {
                () if flags.has(PageFlags::ACTIVE) => max_seq - u64::from(!workingset),
                () if tail => max_seq - 3,
                () if waits => max_seq - 1,
                () if workingset || flags.has(PageFlags::REFERENCED) => max_seq - 2,
                () => max_seq - 3,
            };
            return seq.max(min_seq);
        }
        if flags.has(PageFlags::ACTIVE) {
            max_seq
        } else if waits {
            max_seq - 1
        } else if tail || min_seq + MIN_NR_GENS >= max_seq {
            min_seq
        } else {
            min_seq + 1
        }
    }

    /// Links an evictable page at the tail of the oldest generation, whatever its state.
    pub(crate) fn gen_put_last(&mut self, cpu: CpuId, pfn: Pfn, order: Order) {
        let place = self.gen_place(pfn);
        let of = Gen::of(self.lru.gens(place.lruvec).min_seq[place.kind()]);
        self.lru.set_flags(pfn, self.lru.flags(pfn).without(PageFlags::ACTIVE));
        self.lru.used_mut(pfn).set_generation(Some(of));
        self.gen_count(cpu, &place, None, Some(of), i64::from(order.pages()));
        self.lru.gen_link(place.lruvec, pfn, (of, place.kind(), place.zone_type), true);
    }

    /// Unlinks a page that is in a generation; false if it is in none. `evicted`: the page is
    /// looked at to be evicted, and is not active for having been young.
    pub(crate) fn gen_del(&mut self, cpu: CpuId, pfn: Pfn, order: Order, evicted: bool) -> bool {
        let Some(of) = self.lru.used(pfn).generation() else { return false };
        let place = self.gen_place(pfn);
        if !evicted && self.lru.gens(place.lruvec).is_active(of) {
            self.lru.set_flags(pfn, self.lru.flags(pfn) | PageFlags::ACTIVE);
        }
        self.lru.used_mut(pfn).set_generation(None);
        self.gen_count(cpu, &place, Some(of), None, i64::from(order.pages()));
        self.lru.gen_unlink(place.lruvec, pfn, place.kind(), place.zone_type);
        true
    }

    /// Takes a page off its list to be split. Its parts are of its generation, so nothing is
    /// counted.
    pub(crate) fn gen_unlink_to_split(&mut self, pfn: Pfn) {
        let place = self.gen_place(pfn);
        self.lru.gen_unlink(place.lruvec, pfn, place.kind(), place.zone_type);
    }

    /// Puts a part of a page that was split at the head of the list that the whole was on.
    pub(crate) fn gen_link_part(&mut self, whole: Pfn, part: Pfn) {
        let (place, used) = (self.gen_place(part), self.lru.used(whole));
        *self.lru.used_mut(part) = used;
        self.lru.gen_link(place.lruvec, part, (used.listed(), place.kind(), place.zone_type), false);
    }

    /// Moves a listed page to the list of a generation, whichever it belongs to.
    pub(crate) fn gen_move(&mut self, pfn: Pfn, to: Gen, tail: bool) {
        let place = self.gen_place(pfn);
        self.lru.gen_unlink(place.lruvec, pfn, place.kind(), place.zone_type);
        self.lru.gen_link(place.lruvec, pfn, (to, place.kind(), place.zone_type), tail);
    }

    /// Counts pages that leave one generation, join another, or both.
    pub(crate) fn gen_count(&mut self, cpu: CpuId, at: &Place, from: Option<Gen>, to: Option<Gen>, pages: i64) {
        let gens = self.lru.gens_mut(at.lruvec);
        let (kind, zone) = (at.kind(), at.zone_type.index());
        if let Some(from) = from {
            gens.nr_pages[from.index()][kind][zone] -= pages;
        }
        if let Some(to) = to {
            gens.nr_pages[to.index()][kind][zone] += pages;
        }
        let active = |of: Gen| gens.is_active(of);
        match (from.map(active), to.map(active)) {
            (None, Some(active)) => self.count_listed_of(cpu, at.zone, at.lruvec, at.counted(active), pages),
            (Some(active), None) => self.count_listed_of(cpu, at.zone, at.lruvec, at.counted(active), -pages),
            (Some(false), Some(true)) => {
                self.count_listed_of(cpu, at.zone, at.lruvec, at.counted(false), -pages);
                self.count_listed_of(cpu, at.zone, at.lruvec, at.counted(true), pages);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{in_generations, in_generations_of, user_page};
    use alloc::vec::Vec;

    const CPU: CpuId = CpuId::new(0);
    const VEC: LruvecId = LruvecId::new(0);

    /// The number of the generation that a page with these flags joins, with the oldest of its kind
    /// at `min_seq` and the youngest at 7.
    fn joins(flags: PageFlags, min_seq: u64) -> u64 {
        joins_by("6.12", flags, min_seq)
    }

    fn joins_by(profile: &str, flags: PageFlags, min_seq: u64) -> u64 {
        let mut m = in_generations_of(profile, 2);
        let gens = m.lru.gens_mut(VEC);
        (gens.max_seq, gens.min_seq) = (7, [min_seq; 2]);
        let pfn = user_page(&mut m, flags);
        m.lru_add_drain(CPU);
        m.check().expect("consistent");
        let of = m.lru.used(pfn).generation().expect("it is in one");
        assert!(!m.lru.flags(pfn).has(PageFlags::ACTIVE), "nothing listed is active");
        (4..8).find(|seq| Gen::of(*seq) == of).expect("one of four")
    }

    #[test]
    fn a_page_joins_by_how_soon_it_may_be_evicted() {
        assert_eq!(joins(PageFlags::FILE | PageFlags::ACTIVE, 4), 7);
        assert_eq!(joins(PageFlags::ANON | PageFlags::ACTIVE, 4), 7);
        assert_eq!(joins(PageFlags::ANON, 4), 6, "without a slot");
        assert_eq!(joins(PageFlags::FILE | PageFlags::RECLAIM, 4), 6, "not written yet");
        assert_eq!(joins(PageFlags::FILE, 4), 5, "of four generations the second oldest");
        assert_eq!(joins(PageFlags::FILE, 5), 5, "of three the oldest");
    }

    #[test]
    fn by_all_tiers_only_the_working_set_is_as_young_as_can_be() {
        let joins = |flags, min_seq| joins_by("7.2", flags, min_seq);
        let (file, active) = (PageFlags::FILE, PageFlags::FILE | PageFlags::ACTIVE);
        assert_eq!((joins(active | PageFlags::WORKINGSET, 4), joins(active, 4)), (7, 6));
        assert_eq!((joins(PageFlags::ANON, 4), joins(file | PageFlags::RECLAIM, 4)), (6, 6));
        assert_eq!((joins(file | PageFlags::REFERENCED, 4), joins(file | PageFlags::WORKINGSET, 4)), (5, 5));
        assert_eq!((joins(file, 4), joins(file, 6)), (4, 6), "none is older than the oldest");
    }

    #[test]
    fn a_written_page_goes_to_the_end_of_the_oldest_generation() {
        let mut m = in_generations(2);
        let pages = [(); 3].map(|()| user_page(&mut m, PageFlags::FILE));
        m.lru_add_drain(CPU);
        m.lru.set_flags(pages[2], m.lru.flags(pages[2]) | PageFlags::RECLAIM);
        m.end_writeback(CPU, pages[2], false);
        m.deactivate_file(CPU, pages[1], false);
        m.lru_add_drain(CPU);
        let listed: Vec<Pfn> = m.lru.gens(VEC).list(Gen::of(0), Backing::File.index(), ZoneType::Normal).collect();
        assert_eq!(listed, [pages[2], pages[1]], "rotated first");
        m.check().expect("consistent");
    }

    #[test]
    fn a_page_that_leaves_a_young_generation_is_active_unless_it_is_evicted() {
        for (flags, evicted, active) in
            [(PageFlags::ANON, false, true), (PageFlags::ANON, true, false), (PageFlags::FILE, false, false)]
        {
            let mut m = in_generations(2);
            let pfn = user_page(&mut m, flags);
            m.lru_add_drain(CPU);
            assert!(m.gen_del(CPU, pfn, Order::ZERO, evicted));
            assert_eq!(m.lru.flags(pfn).has(PageFlags::ACTIVE), active);
            assert!(!m.gen_del(CPU, pfn, Order::ZERO, evicted), "it is in none now");
        }
    }
}
