//! The measured subjects: allocators of page frames, reduced to their common operations.

use kontig_mm::{
    CpuId, Gfp, MachineSpec, Memory, MigrateOutcome, NodeId, Order, Owner, Pfn, Request, ZoneSpec, ZoneType,
};
use kontig_profiles::linux;
use std::rc::Rc;

/// A named constructor of subjects, with all frames free.
pub struct Contender<S> {
    pub name: String,
    make: Rc<dyn Fn(u32) -> S>,
}

impl<S> Contender<S> {
    /// A contender with this name and constructor.
    pub fn new(name: impl Into<String>, make: impl Fn(u32) -> S + 'static) -> Contender<S> {
        Contender { name: name.into(), make: Rc::new(make) }
    }

    /// Makes a subject with all of `frames` frames free.
    pub fn make(&self, frames: u32) -> S {
        (self.make)(frames)
    }
}

// Not derived, because `S` need not be `Clone`.
impl<S> Clone for Contender<S> {
    fn clone(&self) -> Contender<S> {
        Contender { name: self.name.clone(), make: self.make.clone() }
    }
}

pub fn kontig() -> Contender<Kontig> {
    Contender::new("Kontig", Kontig::new)
}

/// An allocator of page frames. Orders are at most 10.
pub trait Subject {
    fn alloc(&mut self, order: u8) -> Option<u32>;
    fn free(&mut self, pfn: u32, order: u8);
    /// Frees single frames that are all known before the first is freed.
    fn free_all(&mut self, pfns: &[u32]) {
        pfns.iter().for_each(|pfn| self.free(*pfn, 0));
    }
    /// Declares that the frames of an allocated block will be freed one by one.
    fn split(&mut self, _pfn: u32, _order: u8) {}
    /// Frees frames cached for a CPU, so that all free memory can be allocated.
    fn settle(&mut self) {}

    /// Allocates a block, if need be from frames cached for a CPU, which do not count as free.
    fn alloc_last(&mut self, order: u8) -> Option<u32> {
        self.alloc(order).or_else(|| {
            self.settle();
            self.alloc(order)
        })
    }

    /// Allocates blocks until none is left.
    fn fill(&mut self, order: u8) -> Vec<u32> {
        std::iter::from_fn(|| self.alloc_last(order)).collect()
    }
}

/// The only CPU of the machine.
pub const CPU: CpuId = CpuId::new(0);
pub const NODE: NodeId = NodeId::new(0);
/// Movable user memory, without reclaim or compaction.
pub const GFP: Gfp = Gfp::MOVABLE.with(Gfp::HIGHMEM).with(Gfp::NOWARN);

/// The engine, on a machine of one zone and one CPU whose min watermark is 0. The low
/// watermark, which sizes the per-CPU lists, is the kernel's thousandth of memory; below
/// it requests take the slow path.
pub struct Kontig {
    pub memory: Memory,
}

/// Owns no pages; no request here compacts.
struct Nobody;

impl Owner for Nobody {
    fn may_isolate(&mut self, _pfn: Pfn) -> bool {
        false
    }
    fn migrate(&mut self, _from: Pfn, _to: Pfn, _owner: u32) -> MigrateOutcome {
        unreachable!("nothing is ever isolated")
    }
}

/// A machine with one zone of `frames` frames.
pub fn one_zone(frames: u32, cpus: usize) -> MachineSpec {
    let pages = u64::from(frames);
    let zone = ZoneSpec { node: 0, kind: ZoneType::Normal, start: 0, end: frames, present: pages, managed: pages };
    MachineSpec { cpus, zones: vec![zone], thp: false, lru: false }
}

impl Kontig {
    /// All of `frames` frames free.
    pub fn new(frames: u32) -> Kontig {
        let mut memory = Memory::new(&one_zone(frames, 1), linux("6.1")).expect("a valid machine");
        memory.sysctl_write("vm.min_free_kbytes", "0").expect("a known sysctl");
        Kontig { memory }
    }
}

impl Subject for Kontig {
    #[inline(always)]
    fn alloc(&mut self, order: u8) -> Option<u32> {
        let request = Request::new(CPU, NODE, GFP, Order::new(order));
        self.memory.alloc_pages(&mut Nobody, request).ok().map(Pfn::get)
    }

    #[inline(always)]
    fn free(&mut self, pfn: u32, order: u8) {
        self.memory.free(CPU, Pfn::new(pfn), Order::new(order));
    }

    /// Prefetches, as the simulator does where a process or a batch gives up its pages.
    fn free_all(&mut self, pfns: &[u32]) {
        const AHEAD: usize = 16;
        pfns.iter().take(AHEAD).for_each(|pfn| self.memory.prefetch(Pfn::new(*pfn)));
        for (i, pfn) in pfns.iter().enumerate() {
            if let Some(ahead) = pfns.get(i + AHEAD) {
                self.memory.prefetch(Pfn::new(*ahead));
            }
            self.free(*pfn, 0);
        }
    }

    fn split(&mut self, pfn: u32, order: u8) {
        self.memory.split_page(Pfn::new(pfn), Order::new(order));
    }

    fn settle(&mut self) {
        self.memory.drain_cpu(CPU);
        self.memory.fold_vmstat(CPU);
    }
}
