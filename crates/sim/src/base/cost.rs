//! The cost model: what each piece of work takes, in nanoseconds.
//!
//! One model for the whole machine, read from the machine file, where every cost stands with its source. The model
//! is linear in the engine's work counters, plus the costs of what happens above the engine: faults, unmapping, TLB
//! shootdowns. Writing whole pages is charged by bandwidth (`memory_bus.rs`). The model knows nothing of kernel
//! generations or variants.

use kontig_mm::Work;
use kontig_mm::types::PAGE_SIZE;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// One cost with where it comes from.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Nanoseconds.
    pub ns: f64,
    /// A measurement, a published figure, or what it was fitted to.
    pub source: String,
}

/// A second: sums of costs are picoseconds in 64 bits.
const MOST_NS: f64 = 1e9;

impl Cost {
    /// Whether a thing of this name can cost that.
    pub(crate) fn check(&self, name: &str) -> Result<(), String> {
        if (0.0..=MOST_NS).contains(&self.ns) {
            return Ok(());
        }
        Err(format!("cost {name} = {} ns is not from 0 to {MOST_NS}", self.ns))
    }

    /// Whole picoseconds: sums of integers are the same on every machine.
    pub(crate) fn ps(&self) -> u64 {
        (self.ns * 1000.0).round() as u64
    }
}

/// How fast memory is written, with where that comes from.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Bandwidth {
    /// Gigabytes (10^9) a second.
    pub gb_s: f64,
    /// A measurement, a published figure, or what it was fitted to.
    pub source: String,
}

/// The slowest and the fastest memory, GB/s.
const GB_S: std::ops::RangeInclusive<f64> = 0.001..=100_000.0;

impl Bandwidth {
    /// Whether there can be such memory.
    fn check(&self, name: &str) -> Result<(), String> {
        if GB_S.contains(&self.gb_s) {
            return Ok(());
        }
        Err(format!("{name} = {} GB/s is not from {} to {}", self.gb_s, GB_S.start(), GB_S.end()))
    }

    /// Whole picoseconds for a page.
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
            /// From the named costs.
            pub fn new(c: &Costs) -> CostModel {
                let mut model = CostModel {
                    $($work: c.$work.ps(),)*
                    $($other: c.$other.ps(),)*
                    $($bandwidth: c.$bandwidth.page_ps(),)*
                };
                model.migrated += model.copy_page + model.write_one;
                model
            }

            /// Picoseconds that this work takes.
            fn work_ps(&self, w: &Work) -> u64 {
                0 $(+ w.$work * self.$work)*
            }
        }

        impl Costs {
            /// The costs, and after them the bandwidths.
            const NAMES: &[&str] =
                &[$(stringify!($work),)* $(stringify!($other),)* $(stringify!($bandwidth),)*];
            /// How many of them are costs.
            const COSTS: usize = [$(stringify!($work),)* $(stringify!($other),)*].len();

            /// From costs and bandwidths in the order of their names, or the name of the first that is missing.
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

            /// Whether a machine can cost that; the name of what it cannot, and why.
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

            /// Every cost with its name; no bandwidth.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Cost)> {
                [$((stringify!($work), &self.$work),)* $((stringify!($other), &self.$other),)*].into_iter()
            }
        }
    };
}

costs! {
    work {
        /// A zone considered and passed over by a free-list walk.
        zones_tried;
        /// Taking and releasing a zone's lock.
        zone_locks;
        /// A block taken from or given to the free lists.
        buddy_blocks;
        /// A block halved.
        splits;
        /// Two buddies joined.
        merges;
        /// A free block moved to another type's list.
        stolen_blocks;
        /// A page looked at when a pageblock may change hands.
        steal_scanned;
        /// A pageblock visited by a compaction scanner: its first page's descriptor is read.
        blocks_visited;
        /// A pageblock the migration scanner passes over by its skip hint, a bit in a bitmap.
        blocks_hinted;
        /// A frame looked at by the migration scanner.
        migrate_scanned;
        /// A frame looked at by the free scanner.
        free_scanned;
        /// A free-list entry looked at by a fast search.
        list_scanned;
        /// A page isolated from the LRU.
        isolated;
        /// A free page isolated as a target.
        free_isolated;
        /// A page migrated: unmapped and mapped elsewhere. Its copy is copy_page and what writing a page takes.
        migrated;
        /// A migration that failed.
        migrate_failed;
        /// A per-CPU list drained.
        drains;
        /// A frame sampled to reset skip hints.
        reset_sampled;
        /// A suitability or finished test.
        tests;
        /// A page looked at by reclaim.
        reclaim_scanned;
        /// A page that reclaim passes over: it moves from the list's end to its head.
        reclaim_skipped;
    }
    other {
        /// Entering and leaving the kernel for one system call.
        syscall;
        /// A minor fault of a 4 KiB page, without clearing it, with a page from the per-CPU list.
        fault;
        /// A huge-page fault, without clearing and without allocation beyond the per-CPU list.
        fault_huge;
        /// User time to write a word of a page.
        touch;
        /// Unmapping and freeing a 4 KiB page to the per-CPU list.
        unmap;
        /// An allocation or free by the kernel itself that the per-CPU or free lists serve.
        kernel_alloc;
        /// Making one page of an allocated block ready: its descriptor is written.
        prepare_page;
        /// Opening a file whose inode and dentry are in memory, and closing it.
        open;
        /// Finding a page of a file in the page cache and copying it to the reader.
        read_page;
        /// Copying a page from the writer to one of a file, and what its file system does for that.
        write_page;
        /// Handing a dirty page of a file to its disk, and being told that it is written.
        write_back;
        /// Putting a page that was just allocated into the page cache, and making it ready when it has been read.
        cache_page;
        /// Mapping a page of a file, one of those around a fault; or unmapping a page that stays where it is.
        map_page;
        /// A write fault on a page that was shared and is no longer.
        reuse_page;
        /// Reading a page that is copied, on top of writing it.
        copy_page;
        /// A read fault on a page that was never written to.
        zero_page;
        /// Making a process, and its end, without its memory.
        fork;
        /// Copying a page table entry for a new process.
        fork_page;
        /// Looking at a page table entry and its page, as khugepaged does.
        scan_entry;
        /// A TLB shootdown of one page on another CPU, on top of a migration.
        tlb_shootdown;
        /// From waking a kernel thread to its first instruction.
        wakeup;
        /// Going from one task to another on a CPU that both want.
        context_switch;
    }
    bandwidth {
        /// What one thread writes: pages that it clears, copies or fills.
        write_one;
        /// What all threads write together.
        write_all;
    }
}

/// By hand, and short to compile: what serde derives is code of each of the many fields for every format that costs are read from.
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

/// The number of a cost in [`Costs::NAMES`].
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
    /// Nanoseconds that this work takes.
    #[inline]
    pub fn work_ns(&self, w: &Work) -> u64 {
        ns(self.work_ps(w))
    }

    /// Of that, nanoseconds with a zone's lock held.
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

    /// Pageblocks a scanner can visit in so many nanoseconds.
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
