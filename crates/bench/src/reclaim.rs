//! Rows L: the time per page on the LRU, and in reclaim.
//!
//! One program reads files through a page cache: pages join the LRU, are used again, and are
//! reclaimed for others. No page is mapped, dirty or pinned. Reading a page includes the program's
//! own table of the file's pages. The yardsticks are limits of the machine: lines written in
//! order, or random updates, in an array as large as the engine's state of these pages.

use crate::limit::Limits;
use crate::measure::{Samples, ns_each};
use crate::options::{Options, size};
use crate::subject::{CPU, NODE, one_zone};
use crate::table::{Row, Target, Unit};
use kontig_mm::kswapd::Kswapd;
use kontig_mm::state::{Frames, Lru};
use kontig_mm::{
    Gfp, LruList, Memory, MigrateOutcome, NodeStat, Order, Owner, PageFlags, PageState, Pfn, Request, Shadow, Step,
    VmEvent,
};
use kontig_profiles::linux;
use kontig_program::SplitMix64;

/// A page cache: the frame of each page of one file, or its shadow.
#[derive(Clone)]
struct Cache {
    pages: Vec<Place>,
}

#[derive(Clone, Copy)]
enum Place {
    Nowhere,
    At(Pfn),
    Gone(Shadow),
}

impl Owner for Cache {
    fn may_isolate(&mut self, _: Pfn) -> bool {
        true
    }
    fn migrate(&mut self, _: Pfn, _: Pfn, _: u32) -> MigrateOutcome {
        MigrateOutcome::Failed
    }
    #[inline]
    fn page_state(&mut self, _: Pfn, _: u32) -> PageState {
        PageState::default()
    }
    #[inline]
    fn removed(&mut self, _: Pfn, page: u32, shadow: Option<Shadow>) {
        self.pages[page as usize] = shadow.map_or(Place::Nowhere, Place::Gone);
    }
}

/// A machine whose memory caches a file.
#[derive(Clone)]
struct Machine {
    memory: Memory,
    cache: Cache,
}

impl Machine {
    fn new(frames: u32, pages: u32) -> Machine {
        let mut spec = one_zone(frames, 1);
        spec.lru = true;
        let mut memory = Memory::new(&spec, linux("6.1")).expect("a valid machine");
        memory.sysctl_write("vm.watermark_boost_factor", "0").expect("it has this sysctl");
        Machine { memory, cache: Cache { pages: vec![Place::Nowhere; pages as usize] } }
    }

    /// Reads a page that is not cached, with direct reclaim.
    #[inline]
    fn miss(&mut self, page: u32) {
        self.read(page, Gfp::HIGHUSER_MOVABLE.without(Gfp::KSWAPD_RECLAIM));
    }

    #[inline]
    fn read(&mut self, page: u32, gfp: Gfp) {
        let request = Request::new(CPU, NODE, gfp, Order::ZERO);
        let pfn = self.memory.alloc_pages(&mut self.cache, request).expect("the cache can always give way");
        self.memory.set_owner(pfn, Order::ZERO, page);
        let mut flags = PageFlags::FILE;
        if let Place::Gone(shadow) = self.cache.pages[page as usize] {
            flags = self.memory.workingset_refault(CPU, pfn, flags, shadow);
        }
        self.memory.lru_add(CPU, pfn, Order::ZERO, flags);
        self.cache.pages[page as usize] = Place::At(pfn);
    }

    /// Reads pages in order from `from` on, wrapping at the end of the file.
    fn stream(&mut self, from: u32, count: u32) -> u32 {
        let pages = self.cache.pages.len() as u32;
        (0..count).fold(from, |at, _| {
            self.miss(at);
            (at + 1) % pages
        })
    }

    /// The frames of the file's pages, which must all be cached.
    fn frames(&self) -> Vec<Pfn> {
        let of = |place: &Place| if let Place::At(pfn) = place { Some(*pfn) } else { None };
        self.cache.pages.iter().map(|place| of(place).expect("the file fits into memory")).collect()
    }
}

/// Bytes the engine keeps for a page on the LRU.
const BYTES: usize = Frames::BYTES_PER_FRAME + Lru::BYTES_PER_FRAME;

/// Rows L to Le.
pub fn rows(o: &Options) -> Vec<Row> {
    let frames = o.frames(4);
    let mut taken: [Vec<f64>; 6] = Default::default();
    let mut in_order = Limits::in_order(frames as usize * BYTES);
    let mut at_random = Limits::random(frames as usize * BYTES);
    let mut random = SplitMix64::new(29);
    // A file of half of memory whose pages were used once.
    let mut cached = Machine::new(frames, frames / 2);
    cached.stream(0, frames / 2);
    cached.memory.lru_add_drain(CPU);
    // A file of twice the memory, read cyclically: the page read is
    // always the one evicted longest ago.
    let (mut stream, mut at) = (Machine::new(frames, 2 * frames), 0);
    at = stream.stream(at, 2 * frames);
    let mut kswapd = Reclaimed::new(frames);
    // A file a little larger than memory, read at random until the hot pages are active.
    let mut thrash = Machine::new(frames, frames + frames / 4);
    thrash.stream(0, frames + frames / 4);
    bring_back(&mut thrash, frames, &mut random);
    let before = Refaults::of(&thrash.memory);
    // The first turn does not count: it touches memory for the first time.
    for _ in 0..=o.repetitions() {
        taken[0].push(add_and_drop(&mut cached.clone().memory, frames / 4));
        taken[1].push(ns_each(frames as usize, || at = stream.stream(at, frames)));
        taken[2].push(use_twice(&mut cached.clone(), &mut random));
        taken[3].push(bring_back(&mut thrash, frames / 4, &mut random));
        taken[4].push(rotate(&mut cached.clone(), &mut random));
        taken[5].push(kswapd.reclaim(frames / 2));
        in_order.sample();
        at_random.sample();
    }
    let active = Refaults::of(&thrash.memory).active_since(&before);
    let column = |values: Vec<f64>| Samples::new(values[1..].to_vec());
    let [add, read, activate, refault, rotated, reclaimed] = taken.map(column);
    let row = |number, what: &str, ours: Samples, limits: &Limits, target| {
        let what = format!("{what}, {} = {:.1} M/s", size(frames), 1000.0 / ours.median());
        Row { number, what, unit: Unit::Ns, yardsticks: limits.beside(&ours), ours, target }
    };
    let aim = o.target(Target::AtMost(100.0));
    vec![
        row("L", "page allocated, put on the LRU, freed", add, &in_order, None),
        row("La", "page read, the oldest reclaimed for it", read, &in_order, aim),
        row("Lb", "use of a page, each used twice at random", activate, &at_random, None),
        row("Lc", &format!("page brought back at random, {active:.0} % active"), refault, &at_random, None),
        row("Ld", "page rotated to the tail, at random", rotated, &at_random, None),
        row("Le", "page reclaimed by kswapd", reclaimed, &in_order, aim),
    ]
}

/// Allocates pages and puts them on the LRU, then frees all. Nanoseconds per page.
fn add_and_drop(memory: &mut Memory, pages: u32) -> f64 {
    let request = Request::new(CPU, NODE, Gfp::HIGHUSER_MOVABLE, Order::ZERO);
    let mut held = Vec::with_capacity(pages as usize);
    ns_each(pages as usize, || {
        for _ in 0..pages {
            let pfn = memory.alloc(request).expect("memory is half empty");
            memory.lru_add(CPU, pfn, Order::ZERO, PageFlags::FILE);
            held.push(pfn);
        }
        memory.lru_add_drain(CPU);
        for pfn in &held {
            memory.free(CPU, *pfn, Order::ZERO);
        }
    })
}

/// Uses every page twice, in random order: the second use activates it. Nanoseconds per use.
fn use_twice(machine: &mut Machine, random: &mut SplitMix64) -> f64 {
    let pages = machine.frames();
    let mut uses = [pages.as_slice(), &pages].concat();
    random.shuffle(&mut uses);
    let memory = &mut machine.memory;
    let took = ns_each(uses.len(), || {
        uses.iter().for_each(|pfn| memory.mark_accessed(CPU, *pfn));
        memory.lru_add_drain(CPU);
    });
    let active = memory.lru().of_node(NODE).size_exact(LruList::ActiveFile);
    assert_eq!(active, pages.len() as i64, "every page has been used twice");
    took
}

/// Uses random pages until `count` had to be read back. Only these reads are timed, a round at a
/// time. Nanoseconds per read.
fn bring_back(machine: &mut Machine, count: u32, random: &mut SplitMix64) -> f64 {
    const ROUND: usize = 1 << 14;
    let pages = machine.cache.pages.len() as u32;
    let (mut took, mut brought) = (0.0, 0);
    let before = Refaults::of(&machine.memory);
    while brought < count as usize {
        let mut gone = Vec::with_capacity(ROUND);
        for page in (0..ROUND).map(|_| random.below(pages)) {
            match machine.cache.pages[page as usize] {
                Place::At(pfn) => machine.memory.mark_accessed(CPU, pfn),
                _ => gone.push(page),
            }
        }
        gone.sort_unstable();
        gone.dedup();
        random.shuffle(&mut gone);
        took += ns_each(1, || gone.iter().for_each(|page| machine.miss(*page)));
        brought += gone.len();
    }
    let refaults = Refaults::of(&machine.memory).all - before.all;
    assert_eq!(refaults, brought as u64, "every page has been there before");
    took / brought as f64
}

/// Rotates every page to the tail of its list, in random order. Nanoseconds per page.
fn rotate(machine: &mut Machine, random: &mut SplitMix64) -> f64 {
    let mut pages = machine.frames();
    random.shuffle(&mut pages);
    let memory = &mut machine.memory;
    let took = ns_each(pages.len(), || {
        pages.iter().for_each(|pfn| memory.deactivate_file(CPU, *pfn, false));
        memory.lru_add_drain(CPU);
    });
    assert_eq!(memory.vmstat().get(VmEvent::Pgrotated), pages.len() as u64, "every page has been rotated");
    took
}

/// A machine that reads through a file of twice its memory, and its kswapd.
struct Reclaimed {
    machine: Machine,
    kswapd: Kswapd,
    at: u32,
}

impl Reclaimed {
    fn new(frames: u32) -> Reclaimed {
        let mut machine = Machine::new(frames, 2 * frames);
        // A tenth of memory lies between the watermarks: that is what kswapd reclaims once woken.
        machine.memory.sysctl_write("vm.watermark_scale_factor", "1000").expect("it has this sysctl");
        Reclaimed { machine, kswapd: Kswapd::new(NODE, CPU), at: 0 }
    }

    /// Reads until kswapd is woken and lets it reclaim, until it has reclaimed `pages`. Only kswapd
    /// is timed. Nanoseconds per page reclaimed.
    fn reclaim(&mut self, pages: u32) -> f64 {
        let machine = &mut self.machine;
        let file = machine.cache.pages.len() as u32;
        let stolen = |machine: &Machine| machine.memory.vmstat().get(VmEvent::PgstealKswapd);
        let (mut took, before) = (0.0, stolen(machine));
        while stolen(machine) - before < u64::from(pages) {
            while !machine.memory.has_wakes() {
                machine.read(self.at, Gfp::HIGHUSER_MOVABLE);
                self.at = (self.at + 1) % file;
            }
            machine.memory.take_wakes().for_each(drop);
            let Machine { memory, cache } = machine;
            took += ns_each(1, || while self.kswapd.step(memory, cache, false) == Step::Working {});
        }
        took / (stolen(machine) - before) as f64
    }
}

/// Refaults since the machine began, and how many of them activated the page.
struct Refaults {
    all: u64,
    active: u64,
}

impl Refaults {
    fn of(memory: &Memory) -> Refaults {
        let count = |item| memory.lru().of_node(NODE).stat_exact(item);
        Refaults { all: count(NodeStat::WorkingsetRefaultFile), active: count(NodeStat::WorkingsetActivateFile) }
    }

    /// The percentage of refaults that activated the page.
    fn active_since(&self, before: &Refaults) -> f64 {
        100.0 * (self.active - before.active) as f64 / (self.all - before.all) as f64
    }
}
