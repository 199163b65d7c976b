//! Whatever is charged to memory control groups, each is charged what its pages, the groups below
//! it and the CPUs' stocks have, and no charge exceeds a limit that it may not exceed: random
//! histories of charges, frees, limits, use, and requests that reclaim, on a small machine.

use kontig_mm::kswapd::Kswapd;
use kontig_mm::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const NODE: NodeId = NodeId::new(0);
const CPUS: usize = 2;
/// Pageblocks of the machine.
const BLOCKS: u32 = 8;

/// Clean pages of files, by the number that the engine keeps with each.
#[derive(Default)]
struct Cache {
    pages: BTreeMap<u32, Pfn>,
    shadows: Vec<Shadow>,
    next: u32,
    draws: u32,
}

impl Owner for Cache {
    fn may_isolate(&mut self, _: Pfn) -> bool {
        true
    }
    fn migrate(&mut self, _: Pfn, to: Pfn, owner: u32) -> MigrateOutcome {
        self.pages.insert(owner, to);
        MigrateOutcome::Moved
    }
    fn page_state(&mut self, _: Pfn, _: u32) -> PageState {
        PageState::default()
    }
    fn draw(&mut self, below: u32) -> u32 {
        self.draws = self.draws.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        (self.draws >> 16) % below
    }
    fn removed(&mut self, _: Pfn, owner: u32, shadow: Option<Shadow>) {
        self.pages.remove(&owner).expect("a page is removed once");
        self.shadows.extend(shadow);
    }
}

#[derive(Clone, Debug)]
enum Do {
    /// Reads this many pages in a group, with or without the right to reclaim.
    Read {
        cpu: usize,
        group: usize,
        pages: usize,
        reclaims: bool,
    },
    /// One page of those is freed, or used.
    Free(usize),
    Use(usize),
    Limit {
        group: usize,
        limit: GroupLimit,
        pages: u64,
    },
    Flush,
    Drain,
    Kswapd,
    /// Puts pages into generations, or back onto the classic lists.
    Switch(bool),
}

fn anything() -> impl Strategy<Value = Do> {
    let limit =
        prop_oneof![Just(GroupLimit::Max), Just(GroupLimit::High), Just(GroupLimit::Low), Just(GroupLimit::Min)];
    prop_oneof![
        6 => (0..CPUS, any::<usize>(), 1..400usize, prop::bool::weighted(0.8))
            .prop_map(|(cpu, group, pages, reclaims)| Do::Read { cpu, group, pages, reclaims }),
        2 => any::<usize>().prop_map(Do::Free),
        2 => any::<usize>().prop_map(Do::Use),
        3 => (any::<usize>(), limit, 0..1500u64).prop_map(|(group, limit, pages)| Do::Limit { group, limit, pages }),
        1 => Just(Do::Flush),
        1 => Just(Do::Drain),
        1 => Just(Do::Kswapd),
        1 => any::<bool>().prop_map(Do::Switch),
    ]
}

struct World {
    m: Memory,
    cache: Cache,
}

fn to_the_end<T>(mut step: impl FnMut() -> Step<T>) -> T {
    loop {
        if let Step::Done(result) = step() {
            return result;
        }
    }
}

impl World {
    fn new(profile: &str, parents: &[GroupId]) -> World {
        let pages = BLOCKS * 512;
        let (present, managed) = (u64::from(pages), u64::from(pages));
        let zone = ZoneSpec { node: 0, kind: ZoneType::Normal, start: 0, end: pages, present, managed };
        let spec = MachineSpec { cpus: CPUS, zones: vec![zone], thp: false, lru: true };
        let mut m = Memory::new(&spec, kontig_profiles::linux(profile)).expect("a machine");
        m.enable_groups(parents).expect("groups");
        World { m, cache: Cache::default() }
    }

    fn read(&mut self, cpu: CpuId, group: GroupId, reclaims: bool) {
        let gfp = if reclaims { Gfp::HIGHUSER_MOVABLE } else { Gfp::HIGHUSER_MOVABLE.without(Gfp::DIRECT_RECLAIM) };
        let request = Request::new(cpu, NODE, gfp | Gfp::NORETRY, Order::ZERO);
        let (m, cache) = (&mut self.m, &mut self.cache);
        let pfn = m.alloc(request).ok().or_else(|| {
            let mut slow = AllocSlow::new(m, request);
            to_the_end(|| slow.step(m, cache, 64)).ok()
        });
        let Some(pfn) = pfn else { return };
        let mut charge = Charge::new(cpu, group, 1, gfp | Gfp::NORETRY);
        match to_the_end(|| charge.step(m, cache)) {
            Ok(over_high) => {
                for at in std::iter::successors(Some(group), |at| m.groups().get(*at).parent) {
                    let memory = &m.groups().get(at).memory;
                    assert!(memory.usage <= memory.max, "{at:?}: {memory:?}");
                }
                m.commit_charge(pfn, group);
                m.set_owner(pfn, Order::ZERO, cache.next);
                cache.pages.insert(cache.next, pfn);
                cache.next += 1;
                m.lru_add(cpu, pfn, Order::ZERO, PageFlags::FILE);
                if over_high > 0 {
                    let mut work = OverHigh::new(cpu, group, over_high, Gfp::KERNEL);
                    to_the_end(|| work.step(m, cache));
                }
            }
            Err(_) => m.free(cpu, pfn, Order::ZERO),
        }
    }

    fn page(&self, which: usize) -> Option<(u32, Pfn)> {
        let at = which % self.cache.pages.len().max(1);
        self.cache.pages.iter().nth(at).map(|(number, pfn)| (*number, *pfn))
    }

    fn apply(&mut self, what: &Do) {
        let groups = self.m.groups().len();
        let cpu = CpuId::new(0);
        match *what {
            Do::Read { cpu, group, pages, reclaims } => {
                let group = GroupId::new((group % groups) as u16);
                (0..pages).for_each(|_| self.read(CpuId::new(cpu), group, reclaims));
            }
            Do::Free(which) => {
                if let Some((number, pfn)) = self.page(which) {
                    self.cache.pages.remove(&number);
                    self.m.free(cpu, pfn, Order::ZERO);
                }
            }
            Do::Use(which) => {
                if let Some((_, pfn)) = self.page(which) {
                    self.m.mark_accessed(cpu, pfn);
                }
            }
            Do::Limit { group, limit, pages } => {
                let group = GroupId::new(1 + (group % (groups - 1)) as u16);
                let mut set = SetLimit::new(cpu, group, limit, pages);
                to_the_end(|| set.step(&mut self.m, &mut self.cache));
            }
            Do::Switch(on) => self.m.set_lru_gen(on, std::iter::empty()),
            Do::Flush => self.m.flush_group_stats(),
            Do::Drain => self.m.lru_add_drain_all(),
            Do::Kswapd => {
                let mut kswapd = Kswapd::new(NODE, cpu);
                for _ in 0..2_000 {
                    if matches!(kswapd.step(&mut self.m, &mut self.cache, true), Step::Wait(Wait::Wakeup)) {
                        break;
                    }
                }
            }
        }
        self.m.check().expect("consistent");
    }
}

/// A tree of up to seven groups below the root.
fn tree() -> impl Strategy<Value = Vec<GroupId>> {
    prop::collection::vec(any::<usize>(), 1..7)
        .prop_map(|any| any.iter().enumerate().map(|(i, any)| GroupId::new((any % (i + 1)) as u16)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn each_group_is_charged_what_is_its_own(
        profile in prop_oneof![Just("6.12"), Just("7.2")],
        generations: bool,
        parents in tree(),
        ops in prop::collection::vec(anything(), 1..40),
    ) {
        let mut w = World::new(profile, &parents);
        w.apply(&Do::Switch(generations));
        ops.iter().for_each(|op| w.apply(op));
        while let Some((number, pfn)) = w.page(0) {
            w.cache.pages.remove(&number);
            w.m.free(CpuId::new(0), pfn, Order::ZERO);
        }
        w.m.lru_add_drain_all();
        w.m.check().expect("consistent at the end");
        let stocks: u64 = (0..CPUS).flat_map(|cpu| w.m.groups().stocks(CpuId::new(cpu))).map(|stock| stock.pages).sum();
        prop_assert_eq!(w.m.groups().get(GroupId::ROOT).memory.usage, stocks, "only stocks are left");
    }
}

#[test]
fn a_group_keeps_no_more_than_its_limit_and_what_comes_back_is_known_again() {
    for (profile, generations) in [("6.12", false), ("6.12", true), ("7.2", false), ("7.2", true)] {
        keeps_to_its_limit(profile, generations);
    }
}

fn keeps_to_its_limit(profile: &str, generations: bool) {
    let mut w = World::new(profile, &[GroupId::ROOT, GroupId::ROOT]);
    w.apply(&Do::Switch(generations));
    let (limited, other) = (GroupId::new(1), GroupId::new(2));
    w.apply(&Do::Limit { group: 0, limit: GroupLimit::Max, pages: 500 });
    (0..300).for_each(|_| w.read(CpuId::new(0), other, true));
    (0..900).for_each(|_| w.read(CpuId::new(0), limited, true));
    let usage = |w: &World, group| w.m.groups().get(group).memory.usage;
    assert!(usage(&w, limited) <= 500 && usage(&w, limited) > 400, "{}", usage(&w, limited));
    assert!(usage(&w, other) >= 300, "the neighbour pays nothing");
    let of_limited = w.m.lruvec_of_group(limited, NODE);
    assert!(w.cache.shadows.iter().all(|shadow| shadow.lruvec == of_limited), "its own age is in the shadows");
    w.m.check().expect("consistent");
}
