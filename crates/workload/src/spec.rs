//! Workloads as data: how memory is prepared, how long it then rests, and what is measured.

use crate::fragmenter::{Fragmenter, Holes};
use crate::heap::Heap;
use crate::hugealloc::HugeAlloc;
use crate::simple::{CompactMemory, Watch};
use crate::unmovable::UnmovableFragmenter;
use crate::{Benchmark, Measured};
use kontig_program::{Gfp, Program, parse_size};
use serde::{Deserialize, Serialize};

/// A workload.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// What happens before the measurement.
    pub prepare: Prepare,
    /// Seconds between the end of preparation and the start of the measurement.
    #[serde(default)]
    pub settle_s: f64,
    /// What is measured.
    pub measure: Measure,
}

/// How memory is prepared.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Prepare {
    /// Not at all.
    Nothing,
    /// A process fills memory and unmaps part of every 2 MiB section.
    Fragment {
        /// Which pages of a section go.
        #[serde(default)]
        holes: Holes,
        /// How many of its 512.
        #[serde(default = "three_quarters")]
        freed_per_section: u32,
    },
    /// A driver takes memory as huge pages and frees the first part of each.
    FragmentUnmovable {
        /// How many pages of each 512.
        #[serde(default = "three_quarters")]
        freed_per_section: u32,
        /// Memory it leaves alone, such as `"8 GiB"`.
        leave: String,
    },
}

/// What is measured.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Measure {
    /// A driver allocates huge pages until none can be had.
    Hugealloc {
        /// Its flags, by the kernel's names joined by `|`.
        gfp: String,
        /// Pause after each allocation, µs.
        #[serde(default)]
        pause_us: f64,
        /// Failures in a row after which it gives up.
        #[serde(default = "one")]
        give_up_after: u32,
    },
    /// A process touches a heap with MADV_HUGEPAGE.
    Heap {
        /// Its size, such as `"700 GiB"`.
        size: String,
    },
    /// One full compaction by `vm.compact_memory`.
    Compact,
    /// Nothing, for so long: the machine's own threads are watched.
    Watch {
        /// Virtual seconds.
        seconds: f64,
    },
}

const fn three_quarters() -> u32 {
    384
}
const fn one() -> u32 {
    1
}

/// The workloads `kontig run` knows by name, with a line each; an experiment's own is richer.
pub const WORKLOADS: &[(&str, &str, &str)] = &[
    (
        "hugealloc",
        "fragment memory, then allocate huge pages in the kernel until none can be had",
        "prepare = { kind = \"fragment\", holes = \"random\" }\nsettle_s = 30\nmeasure = { kind = \"hugealloc\", gfp = \"GFP_KERNEL|__GFP_COMP|__GFP_NOWARN\" }",
    ),
    (
        "heap",
        "fragment memory, then touch a 1 GiB heap on huge pages",
        "prepare = { kind = \"fragment\", holes = \"random\" }\nsettle_s = 30\nmeasure = { kind = \"heap\", size = \"1 GiB\" }",
    ),
    (
        "compact",
        "fragment memory, then compact all of it once",
        "prepare = { kind = \"fragment\", holes = \"random\" }\nmeasure = { kind = \"compact\" }",
    ),
    (
        "watch",
        "fragment memory, then watch kcompactd for a minute",
        "prepare = { kind = \"fragment\", holes = \"random\" }\nmeasure = { kind = \"watch\", seconds = 60 }",
    ),
    (
        "watch-unmovable",
        "fragment memory with unmovable pages, then watch kcompactd for three minutes",
        "prepare = { kind = \"fragment-unmovable\", leave = \"16 MiB\" }\nmeasure = { kind = \"watch\", seconds = 180 }",
    ),
];

impl Workload {
    /// Whether every text in it can be read.
    ///
    /// # Errors
    /// Which one cannot, and what would be right.
    pub fn validate(&self) -> Result<(), String> {
        self.preparation(0)?;
        self.measurement(0).map(|_| ())
    }

    /// Whether the preparation has anything to prepare on a machine with so many pages.
    ///
    /// # Errors
    /// If it is to leave alone all that there is.
    pub fn fits(&self, pages: u64) -> Result<(), String> {
        match &self.prepare {
            Prepare::FragmentUnmovable { leave, .. }
                if parse_size(leave).is_some_and(|bytes| bytes / 4096 >= pages) =>
            {
                Err(format!("leave = \"{leave}\" leaves nothing to fragment: the machine has {} MiB", pages / 256))
            }
            _ => Ok(()),
        }
    }

    /// The program that prepares memory, with this seed.
    pub fn preparation(&self, seed: u64) -> Result<Option<Box<dyn Program>>, String> {
        let within = |n: u32| {
            if n <= 512 { Ok(n) } else { Err(format!("freed_per_section = {n}: a section has 512 pages")) }
        };
        Ok(match &self.prepare {
            Prepare::Nothing => None,
            Prepare::Fragment { holes, freed_per_section } => {
                Some(Box::new(Fragmenter::new(*holes, within(*freed_per_section)?, seed)))
            }
            Prepare::FragmentUnmovable { freed_per_section, leave } => {
                let leave = parse_size(leave).ok_or_else(|| format!("leave = \"{leave}\" is not a size"))? / 4096;
                Some(Box::new(UnmovableFragmenter::new(within(*freed_per_section)?, leave)))
            }
        })
    }

    /// Sets the failures in a row after which a driver of huge pages gives up; false if nothing here is one.
    pub fn set_give_up_after(&mut self, failures: u32) -> bool {
        match &mut self.measure {
            Measure::Hugealloc { give_up_after, .. } => *give_up_after = failures,
            _ => return false,
        }
        true
    }

    /// Sets the pause after each allocation of a driver of huge pages; false if nothing here is one.
    pub fn set_pause_us(&mut self, pause: f64) -> bool {
        match &mut self.measure {
            Measure::Hugealloc { pause_us, .. } => *pause_us = pause,
            _ => return false,
        }
        true
    }

    /// Sets which pages of a section the fragmenter frees; false if nothing here is one.
    pub fn set_holes(&mut self, pattern: Holes) -> bool {
        match &mut self.prepare {
            Prepare::Fragment { holes, .. } => *holes = pattern,
            _ => return false,
        }
        true
    }

    /// Whether anything in it is random: if not, repetitions are identical and the seed has no effect.
    pub fn is_random(&self) -> bool {
        matches!(self.prepare, Prepare::Fragment { holes: Holes::Random, freed_per_section } if freed_per_section % 512 != 0)
    }

    /// What is measured, on a machine with so many free pages.
    pub fn measurement(&self, free_pages: u64) -> Result<Measurement, String> {
        let nonnegative = |name: &str, x: f64| {
            if x.is_finite() && x >= 0.0 { Ok(x) } else { Err(format!("{name} = {x} must not be negative")) }
        };
        nonnegative("settle_s", self.settle_s)?;
        Ok(match &self.measure {
            Measure::Hugealloc { gfp, pause_us, give_up_after } => {
                let flags = Gfp::parse(gfp).filter(|g| !g.has(Gfp::MOVABLE | Gfp::RECLAIMABLE)).ok_or_else(|| {
                    format!("gfp = \"{gfp}\": flags are kernel names joined by |, such as GFP_KERNEL|__GFP_COMP")
                })?;
                if *give_up_after == 0 {
                    return Err("give_up_after = 0: it takes at least one failure to give up".into());
                }
                let pause_ns = (nonnegative("pause_us", *pause_us)? * 1000.0) as u64;
                Measurement::of(HugeAlloc::new(flags, pause_ns, *give_up_after, free_pages))
            }
            Measure::Heap { size } => {
                let bytes =
                    parse_size(size).ok_or_else(|| format!("size = \"{size}\" is not a size such as \"4 GiB\""))?;
                let pages = u32::try_from(bytes / 4096).map_err(|_| format!("size = \"{size}\" is beyond 16 TiB"))?;
                Measurement::of(Heap::new(pages))
            }
            Measure::Compact => Measurement::of(CompactMemory::new()),
            Measure::Watch { seconds } => Measurement::of(Watch::new(nonnegative("seconds", *seconds)?)),
        })
    }
}

/// A benchmark about to be run, and how to read what it has measured once a machine has it.
pub struct Measurement {
    program: Box<dyn Program>,
    read: Reader,
}

/// Reads what a program has measured.
pub type Reader = fn(&dyn Program) -> Measured;

impl Measurement {
    /// Of a benchmark: its kind is known here and nowhere else.
    pub fn of<B: Benchmark>(benchmark: B) -> Measurement {
        fn read<B: Benchmark>(program: &dyn Program) -> Measured {
            let any: &dyn std::any::Any = program;
            any.downcast_ref::<B>().map(B::measured).expect("the program is the one this measurement started")
        }
        Measurement { program: Box::new(benchmark), read: read::<B> }
    }

    /// The program for a machine, and the reader of what it measures.
    pub fn start(self) -> (Box<dyn Program>, Reader) {
        (self.program, self.read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_of_holes_is_named_as_files_name_it() {
        for (name, holes) in Holes::NAMED {
            let w: Workload = toml::from_str(&format!(
                "prepare = {{ kind = \"fragment\", holes = \"{name}\" }}\nmeasure = {{ kind = \"compact\" }}"
            ))
            .unwrap();
            assert_eq!(w.prepare, Prepare::Fragment { holes, freed_per_section: 384 });
        }
    }

    #[test]
    fn nonsense_is_refused_with_the_reason() {
        let w = |measure| Workload { prepare: Prepare::Nothing, settle_s: 0.0, measure };
        let gfp = w(Measure::Hugealloc { gfp: "GFP_NONSENSE".into(), pause_us: 0.0, give_up_after: 1 });
        let never = w(Measure::Hugealloc { gfp: "GFP_KERNEL".into(), pause_us: 0.0, give_up_after: 0 });
        assert!(never.validate().unwrap_err().contains("give_up_after = 0"));
        assert!(gfp.validate().unwrap_err().contains("GFP_NONSENSE"));
        assert!(w(Measure::Heap { size: "lots".into() }).validate().unwrap_err().contains("lots"));
        assert!(w(Measure::Watch { seconds: -1.0 }).validate().is_err());
        let prepare = Prepare::Fragment { holes: Holes::First, freed_per_section: 513 };
        assert!(Workload { prepare, settle_s: 0.0, measure: Measure::Compact }.validate().is_err());
    }

    #[test]
    fn workloads_known_by_name_follow_the_seed_where_they_make_holes() {
        for (name, _, text) in WORKLOADS {
            let w: Workload = toml::from_str(text).unwrap();
            assert_eq!(w.is_random(), *name != "watch-unmovable", "{name}");
        }
        let first = Prepare::Fragment { holes: Holes::First, freed_per_section: 384 };
        assert!(!Workload { prepare: first, settle_s: 0.0, measure: Measure::Compact }.is_random());
    }
}
