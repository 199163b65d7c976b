//! A model of the owners of reclaimable pages: files, anonymous memory and swap, shrinkable caches.
//!
//! It answers all callbacks of reclaim and compaction from its own account of the page and from a
//! fixed sequence of numbers, and checks what it is told against its answers: no page may be
//! reclaimed that it did not give up.

use kontig_mm::*;
use std::collections::{BTreeMap, BTreeSet};

/// The page table that has a user's page of this number.
fn table_of(number: u32) -> u64 {
    u64::from(number / NEIGHBOURS as u32)
}

/// A page or a large page.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    pub pfn: Pfn,
    pub order: Order,
    /// On the LRU or on its way there; otherwise a kernel page.
    pub user: bool,
    pub state: PageState,
}

/// The record of a reclaimed page.
#[derive(Clone, Copy, Debug)]
pub struct Evicted {
    pub anon: bool,
    pub order: Order,
    pub shadow: Shadow,
}

/// A shrinkable cache of objects, 16 to a page.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    pub objects: u64,
    pub pages: Vec<u32>,
    pub seeks: u32,
    pub batch: u64,
}

pub const OBJECTS_PER_PAGE: u64 = 16;

/// Probabilities of the tenant's answers, in 1/256.
#[derive(Clone, Copy, Debug, Default)]
pub struct Temper {
    /// The page was referenced through a page table.
    pub used: u8,
    /// A callback fails this time.
    pub fails: u8,
    /// Writing a page out is not synchronous.
    pub slow: u8,
    pub seed: u32,
}

/// An owner of pages on the LRU that answers the engine at random.
pub struct Tenant {
    pub pages: BTreeMap<u32, Page>,
    /// The number of the page that each frame belongs to; 0 for none.
    of_frame: Vec<u32>,
    next: u32,
    /// Pages freed while a batch held them.
    pub released: BTreeMap<Pfn, Order>,
    /// Pages reclaimed since the last check.
    removed: BTreeSet<Pfn>,
    pub evicted: Vec<Evicted>,
    pub swap: SwapSpace,
    pub caches: Vec<Cache>,
    pub temper: Temper,
    dice: u64,
    pub reclaimed: u64,
    pub flushers_woken: u64,
}

impl Tenant {
    pub fn new(frames: usize, swap: u64) -> Tenant {
        Tenant {
            pages: BTreeMap::new(),
            of_frame: vec![0; frames],
            next: 1,
            released: BTreeMap::new(),
            removed: BTreeSet::new(),
            evicted: Vec::new(),
            swap: SwapSpace { total: swap, free: swap },
            caches: vec![Cache { seeks: 2, batch: 128, ..Cache::default() }, Cache { batch: 16, ..Cache::default() }],
            temper: Temper::default(),
            dice: 0,
            reclaimed: 0,
            flushers_woken: 0,
        }
    }

    /// Books an allocated block; panics if any of its frames has an owner.
    pub fn add(&mut self, m: &Memory, pfn: Pfn, order: Order) -> u32 {
        let id = self.next;
        self.next += 1;
        for f in &mut self.of_frame[pfn.index()..pfn.plus(order.pages()).index()] {
            assert!(*f == 0, "{pfn} {order:?} was handed out, but {f} is there: {:?}", self.pages[f]);
            *f = id;
        }
        // A page freed while a batch held it has become free since.
        for frame in (0..order.pages()).map(|i| pfn.plus(i)) {
            assert_eq!(m.lru().holds(frame), 0, "{frame} was handed out, and a batch holds it");
            self.released.remove(&frame);
        }
        self.pages.insert(id, Page { pfn, order, user: false, state: PageState::default() });
        id
    }

    /// Forgets a page; its frames have no owner any more.
    pub fn forget(&mut self, id: u32) -> Page {
        let page = self.pages.remove(&id).expect("only pages of the tenant go");
        self.of_frame[page.pfn.index()..page.pfn.plus(page.order.pages()).index()].fill(0);
        if page.state.swap_cache {
            self.swap.free += u64::from(page.order.pages());
        }
        page
    }

    /// A page for which `wanted` holds.
    pub fn nth(&self, which: usize, wanted: impl Fn(&Page) -> bool) -> Option<u32> {
        let from = (which as u32) % self.next;
        let first = self.pages.range(from..).find(|(_, p)| wanted(p));
        first.or_else(|| self.pages.iter().find(|(_, p)| wanted(p))).map(|(id, _)| *id)
    }

    fn page(&mut self, pfn: Pfn, owner: u32) -> &mut Page {
        let id = self.of_frame[pfn.index()];
        assert!(id != 0, "{pfn} is asked about, and it is nobody's");
        assert_eq!(owner, id, "{pfn} is asked about as somebody else's");
        let page = self.pages.get_mut(&id).expect("frames and pages agree");
        assert!(page.user && page.pfn == pfn, "{page:?} is asked about as {pfn}");
        page
    }

    /// Whether the machine's frames agree with the tenant.
    pub fn verify(&mut self, m: &Memory) -> Result<(), String> {
        use kontig_mm::state::FrameKind;
        for (&id, p) in &self.pages {
            let tag = m.frames().tag(p.pfn);
            let waits = m.lru().holds(p.pfn) > 0 && tag.kind() == FrameKind::Kernel;
            let right = if p.user { tag.kind() == FrameKind::Lru || waits } else { tag.kind() == FrameKind::Kernel };
            if !right || tag.order() != p.order {
                return Err(format!("{id} is {p:?}, tagged {:?} {:?}", tag.kind(), tag.order()));
            }
            let owner = m.frames().owner(p.pfn, p.order);
            if owner != id {
                return Err(format!("{id} at {} is kept as {owner}", p.pfn));
            }
        }
        // A freed page becomes free as soon as no batch holds it any more.
        self.released.retain(|pfn, _| m.lru().holds(*pfn) > 0);
        for pfn in core::mem::take(&mut self.removed) {
            let tag = m.frames().tag(pfn);
            if self.of_frame[pfn.index()] == 0 && (tag.is_allocated() || tag.kind() == FrameKind::IsolatedLru) {
                return Err(format!("{pfn} was reclaimed, and is {:?}", tag.kind()));
            }
        }
        if self.swap.free > self.swap.total {
            return Err(format!("{:?}", self.swap));
        }
        Ok(())
    }

    /// Pages in `[from, to)` that the allocator does not have: held, or freed and still in a batch.
    pub fn pages_in(&self, from: Pfn, to: Pfn) -> u64 {
        let held = self.of_frame[from.index()..to.index()].iter().filter(|f| **f != 0).count() as u64;
        held + self.released.range(from..to).map(|(_, order)| u64::from(order.pages())).sum::<u64>()
    }

    /// The next of a fixed sequence of numbers below 256.
    fn roll(&mut self) -> u8 {
        let seed = u64::from(self.temper.seed);
        self.dice = (self.dice ^ seed).wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e);
        (self.dice >> 56) as u8
    }
    fn fails(&mut self) -> bool {
        self.roll() < self.temper.fails
    }
}

impl Owner for Tenant {
    fn may_isolate(&mut self, pfn: Pfn) -> bool {
        let id = self.of_frame[pfn.index()];
        assert!(id != 0, "{pfn} is isolated, but it has no owner");
        let page = self.pages[&id];
        assert!(page.user, "{page:?} is isolated, but it is no user page");
        !page.state.pinned && !self.fails()
    }

    fn moves_after_writing(&mut self, pfn: Pfn, owner: u32) -> bool {
        let state = self.page(pfn, owner).state;
        state.writeback || state.dirty && !state.anon
    }

    fn has_mapping(&mut self, pfn: Pfn, owner: u32) -> bool {
        let state = self.page(pfn, owner).state;
        !state.anon || state.swap_cache
    }

    fn migrate(&mut self, from: Pfn, to: Pfn, owner: u32) -> MigrateOutcome {
        let page = *self.page(from, owner);
        let frames = |at: Pfn| at.index()..at.plus(page.order.pages()).index();
        assert!(self.of_frame[frames(to)].iter().all(|f| *f == 0), "{from} is migrated to {to}, which is somebody's");
        if page.state.locked || page.state.held || page.state.writeback {
            return MigrateOutcome::Busy;
        }
        if self.fails() {
            return MigrateOutcome::Failed;
        }
        self.of_frame[frames(from)].fill(0);
        self.of_frame[frames(to)].fill(owner);
        self.pages.insert(owner, Page { pfn: to, ..page });
        MigrateOutcome::Moved
    }

    fn split(&mut self, pfn: Pfn, owner: u32, numbers: &mut [u32]) -> bool {
        let whole = *self.page(pfn, owner);
        assert_eq!(numbers.len(), whole.order.pages() as usize);
        if whole.state.locked || whole.state.held || whole.state.writeback || self.fails() {
            return false;
        }
        self.pages.remove(&owner);
        for (i, number) in (0..).zip(numbers) {
            *number = self.next;
            self.next += 1;
            self.of_frame[pfn.index() + i as usize] = *number;
            self.pages.insert(*number, Page { pfn: pfn.plus(i), order: Order::ZERO, ..whole });
        }
        true
    }

    fn page_state(&mut self, pfn: Pfn, owner: u32) -> PageState {
        self.page(pfn, owner).state
    }

    fn references(&mut self, pfn: Pfn, owner: u32) -> References {
        assert!(self.page(pfn, owner).state.mapped, "{pfn} is not mapped");
        let (used, roll) = (self.roll() < self.temper.used, self.roll());
        References { ptes: if used { 1 + u32::from(roll >> 7) } else { 0 }, executable: roll % 4 == 0, mlocked: false }
    }

    fn references_around(
        &mut self,
        pfn: Pfn,
        owner: u32,
        _counts: &dyn Fn(GroupId) -> bool,
        fits: &dyn Fn(Pfn) -> bool,
        found: &mut dyn FnMut(Around),
    ) -> References {
        let by = self.references(pfn, owner);
        if by.ptes == 0 {
            return by;
        }
        // Its neighbours are the pages that came after it.
        let beside: Vec<Page> = self.pages.range(owner + 1..owner + NEIGHBOURS as u32).map(|(_, p)| *p).collect();
        let mut young = 1;
        for page in beside.iter().filter(|page| page.user && page.state.mapped) {
            if self.roll() < self.temper.used && fits(page.pfn) {
                young += 1;
                found(Around::Page(page.pfn));
            }
        }
        found(Around::Table { table: table_of(owner), entries: NEIGHBOURS as u32, young });
        by
    }

    /// All users' pages are one address space's, in tables of 64 by number.
    fn walk(&mut self, m: &mut Memory, _: u32, walk: &mut dyn TableWalk) {
        let mapped: Vec<(u32, Page)> =
            self.pages.iter().filter(|(_, p)| p.user && p.state.mapped).map(|(n, p)| (*n, *p)).collect();
        for table in mapped.chunk_by(|(a, _), (b, _)| table_of(*a) == table_of(*b)) {
            let (number, mut young) = (table_of(table[0].0), 0);
            if !walk.wants(m, number, &mut true) {
                continue;
            }
            for (_, page) in table {
                let included = walk.includes_anon() || !page.state.anon;
                if included && self.roll() < self.temper.used && walk.fits(m, page.pfn) {
                    young += 1;
                    walk.found(m, page.pfn);
                }
            }
            walk.leave(m, number, table.len() as u32, young);
        }
    }

    fn add_to_swap(&mut self, _: &mut Memory, pfn: Pfn, owner: u32) -> bool {
        let room = self.swap.free > 0 && !self.fails();
        let state = &mut self.page(pfn, owner).state;
        assert!(state.anon && !state.swap_cache);
        if room {
            (state.swap_cache, state.dirty) = (true, true);
            self.swap.free -= 1;
        }
        room
    }

    fn may_free_swap(&mut self, _: &mut Memory, pfn: Pfn, owner: u32) {
        let state = &mut self.page(pfn, owner).state;
        assert!(state.swap_cache, "{pfn} has no place in swap");
        if !state.writeback {
            (state.swap_cache, state.dirty) = (false, true);
            self.swap.free += 1;
        }
    }

    fn unmap(&mut self, pfn: Pfn, owner: u32) -> bool {
        let fails = self.fails();
        let state = &mut self.page(pfn, owner).state;
        assert!(state.mapped && !state.locked && !state.unevictable, "{pfn} is unmapped: {state:?}");
        state.mapped = fails;
        !fails
    }

    fn write_out(&mut self, pfn: Pfn, owner: u32) -> WriteOut {
        let (roll, slow) = (self.roll(), self.roll() < self.temper.slow);
        let fails = self.fails();
        let state = &mut self.page(pfn, owner).state;
        assert!(state.dirty && !state.mapped && !state.writeback && !state.pinned, "{pfn} is written: {state:?}");
        assert!(!state.held, "{pfn} is written while somebody holds it");
        if fails {
            return if roll < 128 { WriteOut::Kept } else { WriteOut::Activate };
        }
        state.dirty = false;
        state.writeback = slow;
        match slow {
            true => WriteOut::Queued,
            false if roll < 64 => WriteOut::Clean,
            false => WriteOut::Written,
        }
    }

    fn release(&mut self, pfn: Pfn, owner: u32) -> bool {
        let fails = self.fails();
        let state = &mut self.page(pfn, owner).state;
        assert!(state.private && !state.dirty && !state.mapped, "{pfn} is released: {state:?}");
        state.private = fails;
        !fails
    }

    fn removed(&mut self, pfn: Pfn, owner: u32, shadow: Option<Shadow>) {
        let page = *self.page(pfn, owner);
        let PageState {
            locked, unevictable, mapped, dirty, writeback, anon, swap_cache, private, pinned, held, ..
        } = page.state;
        let stays = locked || unevictable || mapped || dirty || writeback || private || pinned || held;
        assert!(!stays, "{page:?} is reclaimed");
        assert!(!anon || swap_cache || shadow.is_none(), "{page:?} is reclaimed and was not written anywhere");
        // A swap entry outlives its page.
        self.pages.get_mut(&owner).expect("it is there").state.swap_cache = false;
        self.forget(owner);
        self.removed.insert(pfn);
        self.reclaimed += u64::from(page.order.pages());
        if let Some(shadow) = shadow {
            self.evicted.push(Evicted { anon, order: page.order, shadow });
        }
    }

    fn write_pending(&mut self, _: NodeId) -> u64 {
        self.pages.values().filter(|p| p.user && !p.state.anon && (p.state.dirty || p.state.writeback)).count() as u64
    }

    fn wake_flushers(&mut self) {
        self.flushers_woken += 1;
    }

    fn shrinker(&mut self, _: NodeId, number: usize) -> Option<Shrinker> {
        let cache = self.caches.get(number)?;
        Some(Shrinker { freeable: cache.objects, seeks: cache.seeks, batch: cache.batch })
    }

    fn shrink(&mut self, m: &mut Memory, node: NodeId, number: usize, objects: u64, _: Gfp) -> Option<Shrunk> {
        if self.fails() {
            return None;
        }
        let cpu = m.nodes()[node.index()].cpus.first().copied().unwrap_or_default();
        let freed = objects.min(self.caches[number].objects);
        self.caches[number].objects -= freed;
        let mut pages = 0;
        while self.caches[number].pages.len() as u64 * OBJECTS_PER_PAGE
            >= self.caches[number].objects + OBJECTS_PER_PAGE
        {
            let Some(id) = self.caches[number].pages.pop() else { break };
            let page = self.forget(id);
            m.free(cpu, page.pfn, page.order);
            pages += 1;
        }
        Some(Shrunk { scanned: objects, freed, pages })
    }
}
