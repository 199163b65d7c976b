//! Seed 002's patches on small machines: each does what it says, and without it that does not
//! happen.
//!
//! The machine is full of clean pages of files, except for single free pages in the pageblocks of
//! the kernel's own memory. A movable page can only come from those, from another zone, or from
//! reclaim.

use kontig_mm::kswapd::Kswapd;
use kontig_mm::{
    AllocSlow, CpuId, Daemon, Event, Gfp, Listen, MachineSpec, Memory, MigrateOutcome, NodeId, Order, Owner, PageFlags,
    PageState, Pfn, Profile, Request, Shrinker, Shrunk, Step, Wait, ZoneId, ZoneSpec, ZoneType,
};
use kontig_profiles::{linux, switches};

const CPU: CpuId = CpuId::new(0);
const NODE: NodeId = NodeId::new(0);

/// 4.20-rc3 with these patches on top.
fn patched(names: &[&str]) -> Profile {
    let known = switches();
    names.iter().fold(linux("4.20-rc3"), |profile, name| known[*name].throw(&profile).expect("it fits"))
}

const SPREAD: &str = "spread-before-fragmenting";
const RECORD: &str = "record-kswapd";
const BOOST: &str = "boost-watermarks";
const STALL: &str = "stall-movable";

/// The owner of clean pages of files, and of a slab cache with plenty of objects.
#[derive(Default)]
struct Files {
    shrunk: u64,
}

impl Owner for Files {
    fn may_isolate(&mut self, _: Pfn) -> bool {
        true
    }
    fn migrate(&mut self, _: Pfn, _: Pfn, _: u32) -> MigrateOutcome {
        MigrateOutcome::Moved
    }
    fn page_state(&mut self, _: Pfn, _: u32) -> PageState {
        PageState::default()
    }
    fn shrinker(&mut self, _: NodeId, number: usize) -> Option<Shrinker> {
        (number == 0).then_some(Shrinker { freeable: 1 << 20, seeks: 2, batch: 128 })
    }
    fn shrink(&mut self, _: &mut Memory, _: NodeId, _: usize, objects: u64, _: Gfp) -> Option<Shrunk> {
        self.shrunk += objects;
        Some(Shrunk { scanned: objects, freed: 0, pages: 0 })
    }
}

fn request(gfp: Gfp) -> Request {
    Request::new(CPU, NODE, gfp, Order::ZERO)
}

fn huge(gfp: Gfp) -> Request {
    Request::new(CPU, NODE, gfp, Order::new(9))
}

/// How many fragmenting events have happened since the last look.
fn mixed(m: &mut Memory) -> usize {
    let is_fragmenting = |event: &&Event| matches!(event, Event::PageAllocExtfrag { fallback_order, .. } if !fallback_order.is_whole_pageblock());
    m.trace().take().iter().filter(is_fragmenting).count()
}

/// A machine whose Normal zone has these free pages, all of them single and in pageblocks of kernel
/// memory. Below it lies a free DMA32 zone, or none.
fn full(profile: Profile, has_dma32: bool, free: usize) -> Memory {
    let zone = |kind, first: u32, blocks: u32| ZoneSpec {
        node: 0,
        kind,
        start: first * 512,
        end: (first + blocks) * 512,
        present: u64::from(blocks) * 512,
        managed: u64::from(blocks) * 512,
    };
    let dma32 = has_dma32.then(|| zone(ZoneType::Dma32, 8, 16));
    let zones = dma32.into_iter().chain([zone(ZoneType::Normal, 2048, 48)]).collect();
    let spec = MachineSpec { cpus: 1, zones, thp: false, lru: true };
    let mut m = Memory::new(&spec, profile).expect("a valid machine");
    m.sysctl_write("vm.min_free_kbytes", "128").expect("every kernel has it");
    let normal = m.zones().last().expect("it has zones").id;
    let blocks = (2 * free).div_ceil(512);
    let kernel: Vec<Pfn> = (0..blocks).map(|_| m.alloc(huge(Gfp::KERNEL)).expect("memory is free")).collect();
    let fill = |m: &mut Memory| -> bool {
        let Ok(pfn) = m.alloc(request(Gfp::HIGHUSER_MOVABLE)) else { return false };
        if m.pageblocks().zone_of(pfn) != normal {
            m.free(CPU, pfn, Order::ZERO);
            return false;
        }
        m.lru_add(CPU, pfn, Order::ZERO, PageFlags::FILE);
        true
    };
    while fill(&mut m) {}
    kernel.iter().for_each(|block| m.split_page(*block, Order::new(9)));
    let pages = kernel.iter().flat_map(|block| (0..512).step_by(2).map(|page| block.plus(page)));
    pages.take(free).for_each(|pfn| m.free(CPU, pfn, Order::ZERO));
    m.drain_cpu(CPU);
    m.trace().listen(Listen::EXTFRAG);
    // The last pages of its own, up to the first refill with foreign ones, and these; or up to the
    // first page that comes from DMA32 instead.
    let foreign = loop {
        match mixed(&mut m) {
            0 if fill(&mut m) => {}
            0 => break 1,
            some => break some,
        }
    };
    (1..foreign).for_each(|_| assert!(fill(&mut m)));
    m.lru_add_drain(CPU);
    m.take_wakes().for_each(drop);
    m
}

fn normal(m: &Memory) -> ZoneId {
    m.zones().last().expect("it has zones").id
}

#[test]
fn patch_1_a_movable_page_comes_from_a_lower_zone_rather_than_from_a_foreign_pageblock_until_patch_3() {
    let events = |names: &[&str]| {
        let mut m = full(patched(names), true, 1000);
        let given = (0..300).filter(|_| m.alloc(request(Gfp::HIGHUSER_MOVABLE)).is_ok()).count();
        assert_eq!(given, 300);
        mixed(&mut m)
    };
    assert_eq!(events(&[SPREAD]), 0);
    assert!(events(&[]) >= 200, "without it, nearly every page mixes a pageblock");
    assert_eq!(events(&[SPREAD, RECORD]), events(&[]));
}

#[test]
fn patches_2_to_4_a_mixed_pageblock_raises_the_marks_and_wakes_kswapd() {
    let after_one = |names: &[&str]| {
        let mut m = full(patched(names), false, 1000);
        let zone = normal(&m);
        while mixed(&mut m) == 0 {
            m.alloc(request(Gfp::HIGHUSER_MOVABLE)).expect("pages are free");
        }
        let woken = m.nodes()[NODE.index()].kswapd.running;
        (m.zones()[zone.index()].watermark_boost, woken)
    };
    let (boost, woken) = after_one(&[SPREAD, BOOST]);
    assert!(boost >= 512 && woken, "{boost}, {woken}");
    assert_eq!(after_one(&[SPREAD]), (0, false));
}

/// Lets kswapd run until it sleeps; the pages it reclaimed, the objects of slabs that it had
/// scanned, and whether it woke kcompactd.
fn kswapd_runs(profile: Profile) -> (u64, u64, bool) {
    let mut m = full(profile, false, 1500);
    let mut files = Files::default();
    let before = m.nr_free_pages();
    m.alloc(request(Gfp::HIGHUSER_MOVABLE)).expect("pages are free");
    if m.take_wakes().any(|daemon| daemon == Daemon::Kswapd(NODE)) || m.nodes()[NODE.index()].kswapd.running {
        let mut kswapd = Kswapd::new(NODE, CPU);
        while kswapd.step(&mut m, &mut files, false) == Step::Working {}
    }
    let zone = normal(&m);
    assert_eq!(m.zones()[zone.index()].watermark_boost, 0, "it takes the boost back");
    let kcompactd = m.take_wakes().any(|daemon| daemon == Daemon::Kcompactd(NODE));
    (m.nr_free_pages().saturating_sub(before), files.shrunk, kcompactd)
}

#[test]
fn patches_2_to_4_kswapd_then_reclaims_as_much_spares_slabs_and_wakes_kcompactd() {
    let (reclaimed, shrunk, kcompactd) = kswapd_runs(patched(&[SPREAD, BOOST]));
    assert!(reclaimed >= 400 && kcompactd, "{reclaimed} pages, {kcompactd}");
    assert_eq!(shrunk, 0, "not before 5.3");
    let (reclaimed, shrunk, kcompactd) = kswapd_runs(patched(&[SPREAD]));
    assert_eq!((reclaimed, shrunk, kcompactd), (0, 0, false));
    let (_, shrunk, _) = kswapd_runs(linux("5.6"));
    assert!(shrunk > 0, "5.3 and later shrink slab caches for a boost");
}

/// A movable request on the slow path that finds nothing but small foreign blocks: whether it
/// waited for kswapd, the boost then, and whether it mixed a pageblock.
fn slow(names: &[&str]) -> (bool, u64, bool) {
    let mut m = full(patched(names), false, 2300);
    // Below the low mark, so that the fast path fails, and above the min mark.
    m.sysctl_write("vm.min_free_kbytes", "8192").expect("every kernel has it");
    let (zone, r) = (normal(&m), request(Gfp::HIGHUSER_MOVABLE));
    assert!(m.alloc(r).is_err());
    let mut slow = AllocSlow::new(&m, r);
    let (mut files, mut waited, mut boost) = (Files::default(), false, 0);
    loop {
        match slow.step(&mut m, &mut files, 64) {
            Step::Working => {}
            Step::Wait(wait) => {
                assert_eq!(wait, Wait::Throttled { node: NODE, at_most_ns: Some(20_000_000) });
                (waited, boost) = (true, m.zones()[zone.index()].watermark_boost);
                assert!(m.nodes()[NODE.index()].kswapd.running && !m.take_eased(NODE));
                let mut kswapd = Kswapd::new(NODE, CPU);
                while kswapd.step(&mut m, &mut files, false) == Step::Working {}
                assert!(m.take_eased(NODE), "it has gone over the node");
            }
            Step::Done(got) => {
                got.expect("pages are free");
                return (waited, boost, mixed(&mut m) > 0);
            }
        }
    }
}

#[test]
fn patch_5_a_movable_request_waits_for_kswapd_rather_than_mix_a_pageblock() {
    let (waited, boost, mixed) = slow(&[SPREAD, BOOST, STALL]);
    assert!(waited && boost >= 7 * 512 && !mixed, "{waited}, {boost}, {mixed}");
    let (waited, _, mixed) = slow(&[SPREAD, BOOST]);
    assert!(!waited && mixed, "without it, it takes what there is");
}
