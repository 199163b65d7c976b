//! Pages that LRU batches hold, as reclaim and compaction meet them, and lazyfree pages that were
//! written to after all.

use super::*;
use crate::compact::{CompactControl, CompactRun};
use crate::event::MigrateMode;
use crate::owner::{MigrateOutcome, References};
use crate::request::Request;
use crate::state::{LruList, SwapSpace};
use crate::step::Step;
use crate::testing::{ordered_machine, user_page, whole_zone};
use crate::types::{CpuId, NodeId, ZoneId, ZoneType};
use alloc::vec::Vec;

const CPU: CpuId = CpuId::new(0);
const OTHER: CpuId = CpuId::new(1);
const NODE: NodeId = NodeId::new(0);
const VEC: LruvecId = LruvecId::new(0);

/// Owns pages that are all in this state; counts those it is asked about and those that are
/// removed.
struct Of {
    state: PageState,
    asked: u32,
    gone: u32,
    /// Those of them that left a shadow.
    shadows: u32,
}

impl Of {
    fn state(state: PageState) -> Of {
        Of { state, asked: 0, gone: 0, shadows: 0 }
    }
}

impl Owner for Of {
    fn may_isolate(&mut self, _: Pfn) -> bool {
        self.asked += 1;
        true
    }
    fn migrate(&mut self, _: Pfn, _: Pfn, _: u32) -> MigrateOutcome {
        MigrateOutcome::Moved
    }
    fn page_state(&mut self, _: Pfn, _: u32) -> PageState {
        self.asked += 1;
        self.state
    }
    fn references(&mut self, _: Pfn, _: u32) -> References {
        References::default()
    }
    fn removed(&mut self, _: Pfn, _: u32, shadow: Option<Shadow>) {
        self.gone += 1;
        self.shadows += u32::from(shadow.is_some());
    }
}

fn sc() -> ScanControl {
    ScanControl::new(CPU, Gfp::KERNEL, Order::ZERO, ZoneType::Normal)
}

#[test]
fn nobody_is_asked_about_a_page_that_was_let_go() {
    for list in [LruList::InactiveFile, LruList::ActiveFile] {
        let mut m = ordered_machine(1);
        let active = if list.is_active() { PageFlags::ACTIVE } else { PageFlags::ANON };
        let pfn = user_page(&mut m, PageFlags::FILE | PageFlags::REFERENCED | active);
        m.lru_add_drain(CPU);
        m.deactivate_file(OTHER, pfn, false);
        m.free(CPU, pfn, Order::ZERO);
        let (mut nobody, mut sc) = (Of::state(PageState::default()), sc());
        if list.is_active() {
            m.shrink_active_list(&mut nobody, VEC, list, 32, &sc);
        } else {
            assert_eq!(m.shrink_inactive_list(&mut nobody, VEC, list, 32, &mut sc), 0);
            assert_eq!((sc.nr_scanned, m.lru.flags(pfn).has(PageFlags::REFERENCED)), (1, false));
        }
        assert_eq!((nobody.asked, nobody.gone), (0, 0));
        assert!(m.is_on_lru(pfn));
        m.lru_add_drain(OTHER);
        assert!(!m.is_on_lru(pfn), "it goes with its batch");
        m.check().expect("consistent");
    }
}

#[test]
fn a_page_that_a_batch_holds_is_kept_and_else_it_goes() {
    let mut m = ordered_machine(1);
    let pfn = user_page(&mut m, PageFlags::FILE);
    m.lru_add_drain(CPU);
    m.deactivate_file(OTHER, pfn, false);
    let mut clean = Of::state(PageState::default());
    assert_eq!(m.shrink_inactive_list(&mut clean, VEC, LruList::InactiveFile, 32, &mut sc()), 0);
    m.lru_add_drain(OTHER);
    assert_eq!(m.shrink_inactive_list(&mut clean, VEC, LruList::InactiveFile, 32, &mut sc()), 1);
    assert_eq!(clean.gone, 1);
    m.check().expect("consistent");
}

#[test]
fn an_anonymous_page_that_was_written_to_after_all_is_an_anonymous_one_again() {
    let mut m = ordered_machine(1);
    m.set_swap(SwapSpace { total: 10, free: 10 });
    let pfn = user_page(&mut m, PageFlags::ANON);
    m.lru_add_drain(CPU);
    m.lazyfree(CPU, pfn);
    let state = PageState { anon: true, mapped: true, dirty: true, ..PageState::default() };
    m.shrink_inactive_list(&mut Of::state(state), VEC, LruList::InactiveFile, 32, &mut sc());
    assert_eq!(m.lru.flags(pfn).list(), LruList::ActiveAnon);
    m.check().expect("consistent");
}

/// A machine with one user page of each kind on the LRU, at the bottom of its memory, and single
/// free pages at the top as migration targets.
fn room_above<const N: usize>(kinds: [PageFlags; N]) -> (Memory, [Pfn; N]) {
    let mut m = ordered_machine(4);
    let request = Request::new(CPU, NODE, Gfp::HIGHUSER_MOVABLE, Order::ZERO);
    let mut pages: Vec<Pfn> = core::iter::from_fn(|| m.alloc(request).ok()).collect();
    pages.sort();
    let users = core::array::from_fn(|i| pages[i]);
    for (pfn, flags) in users.into_iter().zip(kinds) {
        m.lru_add(CPU, pfn, Order::ZERO, flags);
    }
    m.lru_add_drain(CPU);
    let stays = |pfn: &&Pfn| pfn.get() < 3 * 512 || pfn.get().is_multiple_of(2);
    pages[N..].iter().filter(|pfn| !stays(pfn)).for_each(|pfn| m.free(CPU, *pfn, Order::ZERO));
    m.drain_cpu(CPU);
    m.sysctl_write("min_free_kbytes", "0").expect("a valid one");
    (m, users)
}

/// Compacts everything on the first CPU; returns the pages that moved and those that could not.
fn compacted(m: &mut Memory, of: &mut Of) -> (u64, u64) {
    let control = CompactControl { direct: false, ignore_skip_hint: true, ..whole_zone(MigrateMode::SyncLight) };
    let mut run = CompactRun::new(control, ZoneId::new(0), CPU);
    while run.step(m, of, 64) == Step::Working {}
    m.check().expect("consistent");
    (m.vmstat().get(VmEvent::PgmigrateSuccess), m.vmstat().get(VmEvent::PgmigrateFail))
}

#[test]
fn a_page_that_a_batch_holds_is_not_migrated() {
    let anon = PageState { anon: true, ..PageState::default() };
    let in_swap = PageState { swap_cache: true, ..anon };
    // Anonymous pages outside the swap cache are not even tried.
    let kinds = [
        (PageFlags::FILE, PageState::default(), (0, 1)),
        (PageFlags::ANON, anon, (0, 0)),
        (PageFlags::ANON, in_swap, (0, 1)),
    ];
    for (flags, state, outcome) in kinds {
        let (mut m, [pfn]) = room_above([flags | PageFlags::ACTIVE]);
        assert_eq!(compacted(&mut m.clone(), &mut Of::state(state)), (1, 0), "not held: {flags:?}");
        m.deactivate(OTHER, pfn);
        let mut of = Of::state(state);
        assert_eq!(compacted(&mut m, &mut of), outcome, "{flags:?}");
        m.lru_add_drain_all();
        assert!(m.is_on_lru(pfn));
        m.check().expect("consistent");
    }
}

#[test]
fn compaction_puts_what_waits_on_its_cpu_on_the_lru_before_it_looks() {
    let (mut m, [own, others]) = room_above([PageFlags::FILE | PageFlags::ACTIVE; 2]);
    m.deactivate(CPU, own);
    m.deactivate(OTHER, others);
    assert_eq!(compacted(&mut m, &mut Of::state(PageState::default())), (1, 1));
}

#[test]
fn compaction_asks_nobody_about_a_page_that_was_let_go() {
    let (mut m, [pfn]) = room_above([PageFlags::FILE | PageFlags::ACTIVE]);
    m.deactivate(OTHER, pfn);
    m.free(CPU, pfn, Order::ZERO);
    let mut nobody = Of::state(PageState::default());
    assert_eq!((compacted(&mut m, &mut nobody), nobody.asked), ((0, 0), 0));
    m.lru_add_drain(OTHER);
    assert!(!m.is_on_lru(pfn));
}

/// The list a file page in this state is on after reclaim has scanned it.
fn list_after(profile: &str, state: PageState) -> LruList {
    let mut m = crate::testing::ordered_machine_with(1, crate::testing::linux(profile));
    let pfn = user_page(&mut m, PageFlags::FILE);
    m.lru_add_drain(CPU);
    assert_eq!(m.shrink_inactive_list(&mut Of::state(state), VEC, LruList::InactiveFile, 32, &mut sc()), 0);
    m.lru.flags(pfn).list()
}

#[test]
fn up_to_4_10_pages_that_have_to_be_written_first_stay_inactive() {
    let states =
        [PageState { dirty: true, ..PageState::default() }, PageState { writeback: true, ..PageState::default() }];
    for state in states {
        assert_eq!(list_after("4.6", state), LruList::InactiveFile);
        assert_eq!(list_after("5.6", state), LruList::ActiveFile);
    }
}

#[test]
fn up_to_4_15_mapped_pages_count_twice_for_what_is_asked_of_caches() {
    for (profile, scanned) in [("4.6", 2), ("5.6", 1)] {
        let mut m = crate::testing::ordered_machine_with(1, crate::testing::linux(profile));
        user_page(&mut m, PageFlags::FILE);
        m.lru_add_drain(CPU);
        let mut sc = sc();
        let mapped = PageState { mapped: true, ..PageState::default() };
        m.shrink_inactive_list(&mut Of::state(mapped), VEC, LruList::InactiveFile, 32, &mut sc);
        assert_eq!(sc.nr_scanned, scanned, "{profile}");
    }
}

#[test]
fn a_dirty_page_whose_blocks_are_written_stays_and_hurries_nobody() {
    for (blocks_written, unqueued) in [(false, 1), (true, 0)] {
        let mut m = ordered_machine(1);
        user_page(&mut m, PageFlags::FILE);
        m.lru_add_drain(CPU);
        let mut dirty = Of::state(PageState { dirty: true, blocks_written, ..PageState::default() });
        let mut sc = sc();
        assert_eq!(m.shrink_inactive_list(&mut dirty, VEC, LruList::InactiveFile, 32, &mut sc), 0);
        assert_eq!((sc.met.unqueued_dirty, dirty.gone), (unqueued, 0));
    }
}

/// Reclaims a page of a file; returns the shadows left, and whether the page is the next to be
/// allocated although another was freed before it.
fn reclaimed(profile: &str) -> (u32, bool) {
    let mut m = crate::testing::ordered_machine_with(16, crate::testing::linux(profile));
    let (freed, page) = (user_page(&mut m, PageFlags::FILE), user_page(&mut m, PageFlags::FILE));
    m.lru_add_drain(CPU);
    m.free(CPU, freed, Order::ZERO);
    let mut owner = Of::state(PageState::default());
    assert_eq!(m.shrink_inactive_list(&mut owner, VEC, LruList::InactiveFile, 32, &mut sc()), 1);
    let next = m.alloc(Request::new(CPU, NODE, Gfp::HIGHUSER_MOVABLE, Order::ZERO)).expect("memory is free");
    (owner.shadows, next == page)
}

#[test]
fn up_to_4_14_a_reclaimed_page_is_the_last_to_be_used_again_and_in_3_13_it_leaves_no_shadow() {
    assert_eq!(["3.13", "4.6", "4.20-rc3"].map(reclaimed), [(0, false), (1, false), (1, true)]);
}
