//! A Java heap with a young generation: objects are allocated one after the other through eden.
//! When it is full, the survivors are copied to the old generation, and allocation restarts at the
//! beginning of eden. Its memory stays mapped, or is given back after each collection, as a
//! shrinking heap does.
//!
//! Almost everything is dead at the next collection: the survivors are a parameter, 2 % by default.
//! They fill the old generation, which restarts empty when it is full, as after a full collection.

use crate::benchmark::{Benchmark, Measured, Start};
use crate::latencies::Latencies;
use crate::limits::within;
use crate::size::{all_fit, pages};
use kontig_program::{Batch, Figure, Op, Outcome, Program, Region, Value};
use serde::{Deserialize, Serialize};

/// Pages allocated between two looks at the clock: a thread-local buffer's worth, 1 MiB.
const BUFFER: u32 = 256;

/// A Java process allocates through its young generation.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct YoungGeneration {
    /// The whole heap, such as `"4 GiB"`.
    pub size: String,
    /// The part of it that is eden.
    pub eden: String,
    /// The share of eden that survives a collection, %.
    #[serde(default = "two")]
    pub survivors: f64,
    /// MiB allocated a second of computing.
    pub mib_s: f64,
    /// Collections after which it ends.
    pub collections: u32,
    /// Whether it asks for huge pages (`-XX:+UseTransparentHugePages`).
    #[serde(default)]
    pub advise: bool,
    /// Whether eden is given back after each collection.
    #[serde(default)]
    pub gives_back: bool,
}

const fn two() -> f64 {
    2.0
}

impl Benchmark for YoungGeneration {
    type Program = Mutator;

    fn program(&self, _: &Start) -> Result<Mutator, String> {
        let (all, eden) = (pages("size", &self.size)?, pages("eden", &self.eden)?);
        if eden >= all {
            return Err(format!(
                "eden = \"{}\" leaves nothing of size = \"{}\" for the old generation",
                self.eden, self.size
            ));
        }
        within("survivors", self.survivors, 100.0)?;
        let survivors = (f64::from(eden) * self.survivors / 100.0) as u32;
        if survivors > all - eden {
            return Err(format!("survivors = {}: they have no room beside eden", self.survivors));
        }
        within("mib_s", self.mib_s, 1e9)?;
        if self.mib_s == 0.0 || self.collections == 0 {
            return Err(format!("mib_s = {}, collections = {}: more than nothing", self.mib_s, self.collections));
        }
        Ok(Mutator {
            all,
            eden,
            survivors,
            buffer_ns: (f64::from(BUFFER) / 256.0 / self.mib_s * 1e9) as u64,
            advise: self.advise,
            gives_back: self.gives_back,
            collections: self.collections,
            collected: 0,
            region: None,
            next: 0,
            old: eden,
            collecting: false,
            allocations: Latencies::new("1 MiB allocated", "nothing was"),
            pauses: Latencies::new("collection", "there was none"),
        })
    }

    fn measured(&self, copies: &[&Mutator]) -> Measured {
        let collected: u32 = copies.iter().map(|copy| copy.collected).sum();
        let figure = Figure::new("collections", "collections").read(f64::from(collected));
        let of = |of: fn(&Mutator) -> &Latencies| Latencies::of_all(copies.iter().map(|copy| of(copy)));
        let latencies = [of(|copy| &copy.allocations), of(|copy| &copy.pauses)];
        Measured { figures: vec![figure], latencies: latencies.into_iter().flatten().collect(), ..Measured::default() }
    }

    fn fits(&self, pages: u64, copies: u64) -> Result<(), String> {
        all_fit("size", &self.size, pages, copies)
    }
}

/// The process that allocates.
#[derive(Clone)]
pub struct Mutator {
    all: u32,
    eden: u32,
    survivors: u32,
    buffer_ns: u64,
    advise: bool,
    gives_back: bool,
    collections: u32,
    collected: u32,
    region: Option<Region>,
    /// The first free page of eden, and of the old generation.
    next: u32,
    old: u32,
    /// Whether the last batch was a collection.
    collecting: bool,
    allocations: Latencies,
    pauses: Latencies,
}

impl Mutator {
    fn allocate(&mut self, heap: Region, todo: &mut Batch) {
        let pages = BUFFER.min(self.eden - self.next);
        todo.extend([Op::Touch(Region { first: self.next, pages, ..heap }), Op::Compute(self.buffer_ns)]);
        self.next += pages;
    }

    /// Eden is full: the survivors, which lie all over it, go to the old generation.
    fn collect(&mut self, heap: Region, todo: &mut Batch) {
        if self.old + self.survivors > self.all {
            self.old = self.eden;
        }
        if self.survivors > 0 {
            todo.push(Op::Touch(Region { first: self.old, pages: self.survivors, ..heap }));
        }
        self.old += self.survivors;
        if self.gives_back {
            todo.push(Op::Munmap(Region { pages: self.eden, ..heap }));
        }
        // The last operation marks the end of the batch.
        todo.push(Op::Compute(0));
        (self.next, self.collecting) = (0, true);
        self.collected += 1;
    }
}

impl Program for Mutator {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        let Some((first, last)) = done.first().zip(done.last()) else { return };
        let heap = match (self.region, last.value) {
            (Some(heap), _) => heap,
            (None, Value::Region(heap)) => {
                self.region = Some(heap);
                todo.extend(self.advise.then_some(Op::AdviseHuge(heap)));
                return self.allocate(heap, todo);
            }
            (None, _) => return todo.push(Op::Mmap { pages: self.all }),
        };
        if std::mem::take(&mut self.collecting) {
            self.pauses.record(last.end_ns - first.start_ns);
        } else if let [.., touch, _] = done {
            self.allocations.record(touch.latency_ns());
        }
        if self.collected == self.collections {
            return;
        }
        if self.next < self.eden { self.allocate(heap, todo) } else { self.collect(heap, todo) }
    }

    fn progress(&self) -> f64 {
        let eden = f64::from(self.next) / f64::from(self.eden);
        ((f64::from(self.collected) + eden) / f64::from(self.collections)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::player::lived;

    fn young() -> YoungGeneration {
        YoungGeneration {
            size: "4 MiB".into(),
            eden: "2 MiB".into(),
            survivors: 50.0,
            mib_s: 1000.0,
            collections: 3,
            advise: false,
            gives_back: false,
        }
    }

    #[test]
    fn eden_is_filled_from_its_begin_after_each_collection_and_survivors_are_laid_behind_it() {
        let mut process = young().program(&Start::default()).expect("it can be read");
        let ops = lived(&mut process);
        let touched: Vec<(u32, u32)> = ops
            .iter()
            .filter_map(|op| if let Op::Touch(region) = op { Some((region.first, region.pages)) } else { None })
            .collect();
        let round = |old| [(0, 256), (256, 256), (old, 256)];
        // The old generation has room for two, and begins anew.
        assert_eq!(touched, [round(512), round(768), round(512)].concat());
        assert_eq!((process.allocations.histogram.len(), process.pauses.histogram.len()), (6, 3));
        assert!(!ops.iter().any(|op| matches!(op, Op::Munmap(_))));
    }

    #[test]
    fn eden_is_given_back_where_the_heap_shrinks() {
        let mut process = YoungGeneration { gives_back: true, advise: true, ..young() };
        process.collections = 1;
        let ops = lived(&mut process.program(&Start::default()).expect("it can be read"));
        let eden = Region { mapping: 3, first: 0, pages: 512 };
        assert!(ops.contains(&Op::Munmap(eden)) && ops.contains(&Op::AdviseHuge(Region { pages: 1024, ..eden })));
    }

    #[test]
    fn impossible_heaps_are_refused() {
        let refused = |of: YoungGeneration| of.program(&Start::default()).err().expect("refused");
        assert!(refused(YoungGeneration { eden: "4 MiB".into(), ..young() }).contains("leaves nothing"));
        assert!(refused(YoungGeneration { size: "3 MiB".into(), survivors: 90.0, ..young() }).contains("no room"));
        assert!(refused(YoungGeneration { mib_s: 0.0, ..young() }).contains("more than nothing"));
    }
}
