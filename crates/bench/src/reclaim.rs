//! Rows L: what a page takes on the LRU, and to be reclaimed.
//!
//! One program reads files through a page cache that fills memory: pages join the LRU, are used again, and go as others
//! come. Nobody's page is mapped, dirty or held. Limits are the machine's own: as many bytes as the engine keeps for a
//! page on the LRU, written in order or at random.

use crate::limit::{RandomUpdates, SequentialWrites};
use crate::measure::{Samples, ns_each};
use crate::options::{Options, size};
use crate::random::Random;
use crate::subject::{CPU, NODE, one_zone};
use crate::table::{Row, Target, Unit};
use kontig_mm::state::{Frames, Lru};
use kontig_mm::{Gfp, LruList, Memory, MigrateOutcome, Order, Owner, PageFlags, PageState, Pfn, Request, Shadow};
use kontig_profiles::linux;

/// A cache: the frame of each page of one file, or the shadow it has left.
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

/// A machine whose memory is a cache of a file of so many pages.
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

    /// Reads a page that is not there.
    #[inline]
    fn miss(&mut self, page: u32) {
        let request = Request::new(CPU, NODE, Gfp::HIGHUSER_MOVABLE.without(Gfp::KSWAPD_RECLAIM), Order::ZERO);
        let pfn = self.memory.alloc_pages(&mut self.cache, request).expect("the cache can always give way");
        self.memory.set_owner(pfn, Order::ZERO, page);
        let mut flags = PageFlags::FILE;
        if let Place::Gone(shadow) = self.cache.pages[page as usize] {
            flags = self.memory.workingset_refault(CPU, pfn, flags, shadow);
        }
        self.memory.lru_add(CPU, pfn, Order::ZERO, flags);
        self.cache.pages[page as usize] = Place::At(pfn);
    }

    /// Reads pages in order, from `from` on, around the end of the file.
    fn stream(&mut self, from: u32, count: u32) -> u32 {
        let pages = self.cache.pages.len() as u32;
        (0..count).fold(from, |at, _| {
            self.miss(at);
            (at + 1) % pages
        })
    }
}

/// Bytes the engine keeps for a page on the LRU.
const BYTES: usize = Frames::BYTES_PER_FRAME + Lru::BYTES_PER_FRAME;

/// Rows L to Lc.
pub fn rows(o: &Options) -> Vec<Row> {
    let frames = o.frames(4);
    let turns = o.repetitions();
    let mut all: [Vec<f64>; 4] = Default::default();
    let mut limits: [Vec<f64>; 2] = Default::default();
    let mut in_order = SequentialWrites::new(frames as usize * BYTES);
    let mut at_random = RandomUpdates::new(frames as usize * BYTES);
    // A file of twice the memory, read from end to end again and again: what is read has gone the longest time ago.
    let (mut stream, mut at) = (Machine::new(frames, 2 * frames), 0);
    at = stream.stream(at, 2 * frames);
    // One that fits, used at random.
    let mut hot = Machine::new(frames, frames / 2);
    hot.stream(0, frames / 2);
    // One a little larger than memory: half of what is missed was active.
    let mut thrash = Machine::new(frames, frames + frames / 4);
    thrash.stream(0, frames + frames / 4);
    let mut random = Random::new(29);
    for _ in 0..=turns {
        all[1].push(ns_each(frames as usize, || at = stream.stream(at, frames)));
        let pages = frames / 2;
        let uses: Vec<Pfn> = (0..pages)
            .filter_map(|_| match hot.cache.pages[random.below(pages) as usize] {
                Place::At(pfn) => Some(pfn),
                _ => None,
            })
            .collect();
        all[2].push(ns_each(uses.len(), || uses.iter().for_each(|pfn| hot.memory.mark_accessed(CPU, *pfn))));
        let misses: Vec<u32> = (0..pages).map(|_| random.below(frames + frames / 4)).collect();
        let mut missed = 0;
        let took = ns_each(1, || {
            for page in misses {
                match thrash.cache.pages[page as usize] {
                    Place::At(pfn) => thrash.memory.mark_accessed(CPU, pfn),
                    _ => {
                        missed += 1;
                        thrash.miss(page);
                    }
                }
            }
        });
        all[3].push(took / f64::from(pages));
        all[0].push(add_and_drop(&mut hot.memory, frames / 4));
        limits[0].push(in_order.sample(frames as usize));
        limits[1].push(at_random.sample(1 << 20));
        assert!(missed > 0, "a file larger than memory is missed now and then");
    }
    assert!(thrash.memory.lru().of_node(NODE).size(LruList::ActiveFile) > 0, "what came back soon enough is active");
    // The first turn touches memory for the first time.
    let column = |values: &mut Vec<f64>| Samples::new(values.split_off(1));
    let of = size(frames);
    let [add, reclaim, activate, refault] = &mut all;
    let (ordered, random) = (column(&mut limits[0]), column(&mut limits[1]));
    let row = |number, what: String, ours: &mut Vec<f64>, limit: (&str, &Samples), target| {
        let ours = column(ours);
        let what = format!("{what}, {of} = {:.1} M pages/s", 1000.0 / ours.median());
        Row { number, what, unit: Unit::Ns, ours, peer: Some((limit.0.into(), limit.1.clone())), target }
    };
    let (in_order, at_random) = (("its bytes written", &ordered), ("one word at random", &random));
    vec![
        row("L", "page of a file on and off the LRU".into(), add, in_order, None),
        row("La", "stream: reclaimed and read".into(), reclaim, in_order, Some(Target::AtMost(100.0))),
        row("Lb", "used at random".into(), activate, at_random, None),
        row("Lc", "used or brought back at random".into(), refault, at_random, None),
    ]
}

/// Pages allocated, put on the LRU and freed again; nanoseconds each.
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
