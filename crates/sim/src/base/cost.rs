//! The cost model: the time of each kind of work, in nanoseconds.
//!
//! There is one model for the whole machine, read from the machine file, where every cost stands
//! with its source. It is linear in the engine's work counters, plus the costs of events above the
//! engine: faults, unmapping, TLB shootdowns. Writing whole pages is charged by bandwidth
//! (`memory_bus.rs`). It does not depend on kernel generations or variants.

use kontig_mm::Work;
use kontig_mm::types::PAGE_SIZE;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// A cost, with its source.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    pub ns: f64,
    /// A measurement, a published figure, or the data it was fitted to.
    pub source: String,
}

/// A second: sums of costs are picoseconds in 64 bits.
const MOST_NS: f64 = 1e9;

impl Cost {
    /// Checks that the cost is in range.
    pub(crate) fn check(&self, name: &str) -> Result<(), String> {
        if (0.0..=MOST_NS).contains(&self.ns) {
            return Ok(());
        }
        Err(format!("cost {name} = {} ns is not from 0 to {MOST_NS}", self.ns))
    }

    /// Whole picoseconds, because sums of integers are the same on every host.
    pub(crate) fn ps(&self) -> u64 {
        (self.ns * 1000.0).round() as u64
    }
}

/// A memory write bandwidth, with its source.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Bandwidth {
    /// Gigabytes (10^9) per second.
    pub gb_s: f64,
    /// A measurement, a published figure, or the data it was fitted to.
    pub source: String,
}

/// The range of bandwidths allowed, GB/s.
const GB_S: std::ops::RangeInclusive<f64> = 0.001..=100_000.0;

impl Bandwidth {
    /// Checks that the bandwidth is in range.
    fn check(&self, name: &str) -> Result<(), String> {
        if GB_S.contains(&self.gb_s) {
            return Ok(());
        }
        Err(format!("{name} = {} GB/s is not from {} to {}", self.gb_s, GB_S.start(), GB_S.end()))
    }

    /// Whole picoseconds per page.
    pub(crate) fn page_ps(&self) -> u64 {
        (PAGE_SIZE as f64 * 1000.0 / self.gb_s).round() as u64
    }
}

macro_rules! costs {
    (
        work { $($(#[$wdoc:meta])* $work:ident;)* }
        other { $($(#[$odoc:meta])* $other:ident;)* }
        bandwidth { $($(#[$bdoc:meta])* $bandwidth:ident;)* }
    ) => {
        /// The costs of a machine file, by name.
        #[derive(Clone, Debug, Serialize, PartialEq)]
        #[allow(missing_docs)]
        pub struct Costs {
            $($(#[$wdoc])* pub $work: Cost,)*
            $($(#[$odoc])* pub $other: Cost,)*
            $($(#[$bdoc])* pub $bandwidth: Bandwidth,)*
        }

        /// The costs as integers, ready to be summed.
        #[derive(Clone, Debug)]
        #[allow(missing_docs)]
        pub struct CostModel {
            $($work: u64,)*
            $(pub(crate) $other: u64,)*
            $($(#[$bdoc])* pub(crate) $bandwidth: u64,)*
        }

        impl CostModel {
            /// Converts the named costs.
            pub fn new(c: &Costs) -> CostModel {
                let mut model = CostModel {
                    $($work: c.$work.ps(),)*
                    $($other: c.$other.ps(),)*
                    $($bandwidth: c.$bandwidth.page_ps(),)*
                };
                model.migrated += model.copy_page + model.write_one;
                model
            }

            /// Picoseconds of this work.
            fn work_ps(&self, w: &Work) -> u64 {
                0 $(+ w.$work * self.$work)*
            }
        }

        impl Costs {
            /// Names of the costs, then of the bandwidths.
            const NAMES: &[&str] =
                &[$(stringify!($work),)* $(stringify!($other),)* $(stringify!($bandwidth),)*];
            /// The number of costs among the names.
            const COSTS: usize = [$(stringify!($work),)* $(stringify!($other),)*].len();

            /// Builds the struct from values in the order of the names. The error is the first name
            /// missing.
            fn of(costs: Vec<Option<Cost>>, bandwidths: Vec<Option<Bandwidth>>) -> Result<Costs, &'static str> {
                let (mut costs, mut bandwidths) = (costs.into_iter(), bandwidths.into_iter());
                let mut cost = |name| costs.next().flatten().ok_or(name);
                let mut bandwidth = |name| bandwidths.next().flatten().ok_or(name);
                Ok(Costs {
                    $($work: cost(stringify!($work))?,)*
                    $($other: cost(stringify!($other))?,)*
                    $($bandwidth: bandwidth(stringify!($bandwidth))?,)*
                })
            }

            /// Checks all costs; the error names one and gives the reason.
            pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
                $(self.$work.check(stringify!($work)).map_err(|e| (stringify!($work), e))?;)*
                $(self.$other.check(stringify!($other)).map_err(|e| (stringify!($other), e))?;)*
                $(self.$bandwidth.check(stringify!($bandwidth)).map_err(|e| (stringify!($bandwidth), e))?;)*
                if self.write_all.gb_s < self.write_one.gb_s {
                    let (one, all) = (self.write_one.gb_s, self.write_all.gb_s);
                    return Err(("write_all", format!("write_all = {all} GB/s is less than write_one = {one} GB/s")));
                }
                Ok(())
            }

            /// Every cost with its name, without the bandwidths.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Cost)> {
                [$((stringify!($work), &self.$work),)* $((stringify!($other), &self.$other),)*].into_iter()
            }
        }
    };
}

costs! {
    work {
        /// A zone considered and skipped by a free-list walk.
        zones_tried;
        /// Taking and releasing a zone's lock.
        zone_locks;
        /// A block taken from or given to the free lists.
        buddy_blocks;
        /// A free block split in two halves.
        splits;
        /// Two buddy blocks merged into one.
        merges;
        /// A free block moved to another type's list.
        stolen_blocks;
        /// A page examined when a pageblock may change its type.
        steal_scanned;
        /// A pageblock visited by a compaction scanner: its first page's descriptor is read.
        blocks_visited;
        /// A pageblock skipped by the migration scanner for its skip hint, a bit in a bitmap.
        blocks_hinted;
        /// A frame examined by the migration scanner.
        migrate_scanned;
        /// A frame examined by the free scanner.
        free_scanned;
        /// A free-list entry examined by a fast search.
        list_scanned;
        /// A page isolated from the LRU.
        isolated;
        /// A free page isolated as a target.
        free_isolated;
        /// A page migrated: unmapped and mapped elsewhere. The copy is charged as copy_page and the
        /// write of a page.
        migrated;
        /// A page migration that failed.
        migrate_failed;
        /// A per-CPU list drained.
        drains;
        /// A frame sampled to reset skip hints.
        reset_sampled;
        /// A suitability or finished test.
        tests;
        /// A page examined by reclaim.
        reclaim_scanned;
        /// A page skipped by reclaim: it moves from the tail of the list to its head.
        reclaim_skipped;
    }
    other {
        /// Entering and leaving the kernel for one system call.
        syscall;
        /// A minor fault of a 4 KiB page from the per-CPU list, without clearing it.
        fault;
        /// Added to any fault for each other thread of its process on a CPU: they pass the cache
        /// lines of `mmap_lock` and of the process's counts to each other.
        fault_beside;
        /// A huge-page fault, without clearing and without allocation beyond the per-CPU list.
        fault_huge;
        /// User time to write a word of a page.
        touch;
        /// Unmapping and freeing a 4 KiB page to the per-CPU list.
        unmap;
        /// A kernel allocation or free that the per-CPU or free lists serve.
        kernel_alloc;
        /// Preparation of one page of an allocated block: writing its descriptor.
        prepare_page;
        /// Opening a file whose inode and dentry are in memory, and closing it.
        open;
        /// Looking up a page in the page cache and copying it to the reader.
        read_page;
        /// Copying a page from the writer into the page cache, including the file system's work.
        write_page;
        /// Submission and completion of the write of a dirty page.
        write_back;
        /// Adding a newly allocated page to the page cache, and completing its read.
        cache_page;
        /// Swapping out a page, on top of examining it: its place in swap, its unmapping, and the
        /// submission and completion of its write.
        swap_out;
        /// Reading a page from swap: its allocation, its place in the swap cache, and the
        /// submission and completion of the read.
        swap_in;
        /// Mapping one of the pages around a file fault, or unmapping a page that stays in memory.
        map_page;
        /// A write fault on a page that is no longer shared.
        reuse_page;
        /// Reading a page to be copied, on top of writing the copy.
        copy_page;
        /// A read fault on a page never written to.
        zero_page;
        /// Creation and end of a process, without its memory.
        fork;
        /// Copying a page table entry for a new process.
        fork_page;
        /// Examining a page table entry and its page, by khugepaged.
        scan_entry;
        /// Examining a further page table entry of a page that reclaim looks at.
        rmap_entry;
        /// Examining a page table entry in a walk that ages generations.
        walk_entry;
        /// A TLB shootdown of one page on another CPU, on top of a migration.
        tlb_shootdown;
        /// Time from the wake-up of a kernel thread to its first instruction.
        wakeup;
        /// A switch between two tasks that share a CPU.
        context_switch;
    }
    bandwidth {
        /// Write bandwidth of one thread that clears, copies or fills pages.
        write_one;
        /// Write bandwidth of all threads together.
        write_all;
    }
}

/// Written by hand to compile quickly: serde's derived code would repeat for each of the many
/// fields in every format that costs are read from.
impl<'de> Deserialize<'de> for Costs {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Costs, D::Error> {
        d.deserialize_struct("Costs", Costs::NAMES, OfCosts)
    }
}

struct OfCosts;

impl<'de> Visitor<'de> for OfCosts {
    type Value = Costs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("struct Costs")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Costs, A::Error> {
        let mut costs = vec![None; Costs::COSTS];
        let mut bandwidths = vec![None; Costs::NAMES.len() - Costs::COSTS];
        while let Some(CostName(i)) = map.next_key()? {
            let is_double = match costs.get_mut(i) {
                Some(cost) => cost.replace(map.next_value()?).is_some(),
                None => bandwidths[i - Costs::COSTS].replace(map.next_value()?).is_some(),
            };
            if is_double {
                return Err(A::Error::duplicate_field(Costs::NAMES[i]));
            }
        }
        Costs::of(costs, bandwidths).map_err(A::Error::missing_field)
    }
}

/// The index of a cost in [`Costs::NAMES`].
struct CostName(usize);

impl<'de> Deserialize<'de> for CostName {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<CostName, D::Error> {
        d.deserialize_identifier(NameOfCost)
    }
}

struct NameOfCost;

impl Visitor<'_> for NameOfCost {
    type Value = CostName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a cost")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<CostName, E> {
        let number = Costs::NAMES.iter().position(|known| *known == name);
        number.map(CostName).ok_or_else(|| E::unknown_field(name, Costs::NAMES))
    }
}

impl CostModel {
    /// Nanoseconds of this work.
    #[inline]
    pub fn work_ns(&self, w: &Work) -> u64 {
        ns(self.work_ps(w))
    }

    /// The part of that with a zone's lock held, ns.
    #[inline]
    pub(crate) fn locked_ns(&self, w: &Work) -> u64 {
        ns(w.zone_locks * self.zone_locks
            + w.buddy_blocks * self.buddy_blocks
            + w.splits * self.splits
            + w.merges * self.merges
            + w.stolen_blocks * self.stolen_blocks
            + w.steal_scanned * self.steal_scanned
            + w.list_scanned * self.list_scanned
            + w.free_scanned * self.free_scanned)
    }

    /// The time the lock of an LRU is held for this work, ns.
    #[inline]
    pub(crate) fn listed_ns(&self, w: &Work) -> u64 {
        ns(w.listed * self.isolated)
    }

    /// Pageblocks that a scanner can visit in this many nanoseconds.
    pub(crate) fn blocks_in(&self, ns: u64) -> u64 {
        ns.saturating_mul(1000) / self.blocks_visited.max(1)
    }
}

/// Picoseconds to nanoseconds, rounded to the nearest.
#[inline]
pub(crate) const fn ns(ps: u64) -> u64 {
    (ps + 500) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The costs of a machine file, as TOML.
    fn table() -> toml::Table {
        let file: toml::Table = include_str!("../../../../machines/xeon-1t.toml").parse().expect("a machine file");
        file["costs"].as_table().expect("it has costs").clone()
    }

    fn read(table: &toml::Table) -> Result<Costs, String> {
        toml::from_str(&table.to_string()).map_err(|e| e.message().to_string())
    }

    #[test]
    fn every_cost_is_the_one_of_its_name() {
        let table = table();
        let costs = read(&table).expect("costs");
        assert_eq!(costs.iter().count() + 2, table.len());
        for (name, read) in [("write_one", &costs.write_one), ("write_all", &costs.write_all)] {
            assert_eq!((Some(read.gb_s), Some(read.source.as_str())), {
                let of = &table[name];
                (of["gb_s"].as_float().or(of["gb_s"].as_integer().map(|rate| rate as f64)), of["source"].as_str())
            });
        }
        for (name, cost) in costs.iter() {
            let read = &table[name];
            let ns = read["ns"].as_float().or(read["ns"].as_integer().map(|ns| ns as f64));
            assert_eq!((Some(cost.ns), Some(cost.source.as_str())), (ns, read["source"].as_str()), "{name}");
        }
        assert_eq!(read(&toml::Table::try_from(&costs).expect("a table")), Ok(costs));
    }

    #[test]
    fn a_cost_that_is_missing_or_unknown_is_named() {
        let mut without = table();
        without.remove("drains");
        assert_eq!(read(&without), Err("missing field `drains`".into()));
        let mut with = table();
        with.insert("drain".into(), with["drains"].clone());
        let said = read(&with).expect_err("unknown");
        assert!(said.starts_with("unknown field `drain`, expected one of `zones_tried`, `zone_locks`"), "{said}");
    }
}
