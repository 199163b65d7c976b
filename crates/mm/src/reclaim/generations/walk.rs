//! Walks of page tables, with which aging begins where they are on.
//!
//! A walk goes through the address spaces of the group in their order, and over those not used
//! since the last one, unless they are new. Of each it looks at the tables that the filter has, or
//! at all if it is forced or the address space is new, and makes the pages young whose entries were
//! used. A table in which one entry in eight was used is in the filter of the next walk. Source:
//! kernel-behaviour §4.10.8.

use crate::owner::{Owner, TableWalk};
use crate::reclaim::control::{Promoted, ScanControl};
use crate::state::mm_list::At;
use crate::state::{Gen, Memory, PageFlags};
use crate::types::{GroupId, LruvecId, Pfn};

/// Entries in a cache line: a table is worth a look if one in each was used.
const ENTRIES_IN_LINE: u32 = 8;

/// The walk of one address space's page tables.
struct AgingWalk<'a> {
    lruvec: LruvecId,
    seq: u64,
    can_swap: bool,
    /// Looks at every table.
    force: bool,
    skips_unused: bool,
    promoted: &'a mut Promoted,
}

/// Whether enough entries of a table were used for the next walk to look at it.
pub(super) fn suits(entries: u32, young: u32) -> bool {
    young * ENTRIES_IN_LINE >= entries
}

impl TableWalk for AgingWalk<'_> {
    fn includes_anon(&self) -> bool {
        self.can_swap
    }
    fn wants(&self, m: &Memory, table: u64, used: &mut bool) -> bool {
        if self.force {
            return true;
        }
        if self.skips_unused && !core::mem::take(used) {
            return false;
        }
        m.lru.gens(self.lruvec).walker.has(self.seq, table)
    }
    fn fits(&self, m: &Memory, pfn: Pfn) -> bool {
        let looked_at = |m: &Memory| match m.shared.profile.lru_gen.by_all_tiers() {
            true => m.lru.used(pfn).generation().is_some(),
            false => self.includes_anon() || m.lru.flags(pfn).has(PageFlags::FILE),
        };
        m.lruvec_of(pfn) == self.lruvec && looked_at(m)
    }
    fn found(&mut self, m: &mut Memory, pfn: Pfn) {
        let youngest = Gen::of(m.lru.gens(self.lruvec).max_seq);
        m.promote_and_note(pfn, youngest, self.promoted);
    }
    fn leave(&mut self, m: &mut Memory, table: u64, entries: u32, young: u32) {
        if suits(entries, young) {
            m.lru.gens_mut(self.lruvec).walker.insert(self.seq + 1, table);
        }
    }
}

impl Memory {
    /// Lists an address space that a host has made, and whose page tables aging may walk
    /// ([`Owner::walk`]), for its memory control group.
    pub fn lru_gen_add_mm(&mut self, mm: u32, group: GroupId) {
        self.note_new_mm(mm, group);
        self.lru.mms.add(mm, group);
    }

    /// The address space is gone.
    pub fn lru_gen_del_mm(&mut self, mm: u32) {
        self.leave_mm(mm);
        self.lru.mms.remove(mm);
    }

    /// Its process has moved to another group.
    pub fn lru_gen_migrate_mm(&mut self, mm: u32, group: GroupId) {
        if self.lru.mms.group_of(mm).is_none_or(|of| of == group) {
            return;
        }
        self.leave_mm(mm);
        self.note_new_mm(mm, group);
        self.lru.mms.move_to(mm, group);
    }

    /// The sets of lists that a group has, one for each node; all, where there are no groups.
    fn lists_of(&self, group: GroupId) -> core::ops::Range<usize> {
        match self.groups.are_kept() {
            true => {
                let first = self.groups.lruvec(group, LruvecId::new(0)).index();
                first..first + self.groups.nodes()
            }
            false => 0..self.lru.vecs.len(),
        }
    }

    fn note_new_mm(&mut self, mm: u32, group: GroupId) {
        for lruvec in self.lists_of(group).map(LruvecId::new) {
            if let Some(gens) = &mut self.lru.vecs[lruvec].generations
                && gens.walker.tail == Some(At::End)
            {
                gens.walker.tail = Some(At::Mm(mm));
            }
        }
    }

    fn leave_mm(&mut self, mm: u32) {
        let Some(group) = self.lru.mms.group_of(mm) else { return };
        let (before, after) = (self.lru.mms.before(At::Mm(mm), group), self.lru.mms.after(At::Mm(mm), group));
        for lruvec in self.lists_of(group).map(LruvecId::new) {
            let Some(gens) = &mut self.lru.vecs[lruvec].generations else { continue };
            for (place, instead) in [(&mut gens.walker.head, before), (&mut gens.walker.tail, after)] {
                if *place == Some(At::Mm(mm)) {
                    *place = Some(instead);
                }
            }
        }
    }

    /// A thread of the address space gets a CPU.
    #[inline]
    pub fn lru_gen_use_mm(&mut self, mm: u32) {
        if self.lru.has_generations() {
            self.lru.mms.note_use(mm);
        }
    }

    /// Walks the page tables for generation `seq`. Whether this ended the walk.
    pub(super) fn walk_mms<O: Owner>(
        &mut self,
        owner: &mut O,
        sc: &mut ScanControl,
        lruvec: LruvecId,
        seq: u64,
        can_swap: bool,
        mut force: bool,
    ) -> bool {
        let mut promoted = sc.promoted.take().unwrap_or_default();
        let ended = loop {
            let (mm, ended) = self.next_mm(lruvec, seq, &mut force);
            let Some(mm) = mm else { break ended };
            let skips_unused = self.shared.tunables.lru_gen.skips_unused();
            let mut walk = AgingWalk { lruvec, seq, can_swap, force, skips_unused, promoted: &mut promoted };
            owner.walk(self, mm, &mut walk);
            sc.promoted = Some(promoted);
            self.count_promoted(lruvec, sc);
            self.offer_cpu(owner);
            promoted = sc.promoted.take().unwrap_or_default();
        };
        sc.promoted.replace(promoted);
        ended
    }

    /// The address space to walk next, and whether there is none, because the walk has ended.
    fn next_mm(&mut self, lruvec: LruvecId, seq: u64, force: &mut bool) -> (Option<u32>, bool) {
        let (group, node) = match self.groups.are_kept() {
            true => (self.groups.group_of(lruvec), self.groups.root_of(lruvec)),
            false => (GroupId::ROOT, lruvec),
        };
        let mms = &mut self.lru.mms;
        let gens = self.lru.vecs[lruvec].gens_mut();
        if seq <= gens.walk_seq {
            return (None, false);
        }
        let mut head = gens.walker.head.unwrap_or(At::End);
        let first = head == At::End;
        let next = loop {
            head = mms.after(head, group);
            let At::Mm(mm) = head else { break None };
            if gens.walker.tail.is_none_or(|tail| tail == head) {
                gens.walker.tail = Some(mms.after(head, group));
                *force = true;
            }
            if mms.take_used(mm, node.index()) || *force {
                break Some(mm);
            }
        };
        gens.walker.head = Some(head);
        match next {
            None => gens.walk_seq += 1,
            Some(_) if first => gens.walker.reset(seq + 1),
            Some(_) => {}
        }
        (next, next.is_none())
    }
}
