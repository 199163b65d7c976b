//! A processor's constants: TLBs, what a program gets of its caches, and how long reads take.

use kontig_text::parse_size;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// The cost of translation on a processor, as the `[translation]` table of a machine file says it.
/// Times are nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// Its name, and what it was measured in.
    pub processor: String,
    /// Where the constants come from.
    pub source: String,
    pub backing: Backing,
    /// The first level of the TLB for data, and the second.
    pub tlb1: Tlb,
    pub tlb2: Tlb,
    /// The size of the second level of caches, such as `"1 MiB"`.
    pub l2: String,
    /// The part of the last level that one program gets.
    pub l3: String,
    /// An access whose data and translation the first levels hold, and the work around it.
    pub work_ns: f64,
    /// The time on top if the second level of the TLB has the translation.
    pub tlb2_ns: f64,
    /// The time on top if it must walk, without reading the entries.
    pub walk_ns: f64,
    /// The time on top if the data, or an entry, are in the second level of caches, in the last,
    /// and in memory.
    pub l2_ns: f64,
    pub l3_ns: f64,
    pub memory_ns: f64,
    /// Reading the next cache line of a stream.
    pub sequential_ns: f64,
    /// The first touch of 2 MiB, on small pages and on a huge one, of memory that a host must
    /// supply. The costs of a machine are of memory that is there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh_ns: Option<[f64; 2]>,
    /// Accesses that do not wait for each other, as measured: how far walks overlap has no formula.
    pub independent: Vec<Independent>,
    /// How far the model is from what was measured: the root mean square of logarithms, %.
    pub error_percent: f64,
}

/// The pages behind the memory that the kernel takes for physical.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Backing {
    /// Memory itself: no virtual machine.
    Native,
    /// Small pages of a host. A guest's huge page then takes an entry of the TLB for each.
    Small,
    /// Huge pages of a host.
    Huge,
}

/// A level of the TLB.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Tlb {
    pub entries: u32,
    /// The entries for huge pages, if these have their own. Where they can take only some of those
    /// that all pages share (Golden Cove), their number, as if they were apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge: Option<u32>,
    /// The entries for pages of 1 GiB, if these have their own. A level without takes them as huge
    /// pages, piece by piece.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gigantic: Option<u32>,
}

impl Tlb {
    /// A level whose entries all take small and huge pages.
    pub const fn of(entries: u32) -> Tlb {
        Tlb { entries, huge: None, gigantic: None }
    }
}

/// Independent accesses to memory of one size.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Independent {
    /// Such as `"1 GiB"`.
    pub size: String,
    /// An access on small pages, and on huge ones.
    pub small_ns: f64,
    pub huge_ns: f64,
}

/// A constant that cannot be: its key, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongConstant {
    pub key: &'static str,
    pub reason: String,
}

/// The longest time that a constant may say: a second.
const MOST_NS: f64 = 1e9;
/// Entries of a level of the TLB: no processor has a thousand times what the largest of today have.
const TLB: RangeInclusive<u32> = 1..=1 << 20;
/// A model that is further off says nothing.
const MOST_ERROR: f64 = 1000.0;

impl Processor {
    /// How far to trust the times of accesses, in a line.
    pub fn said(&self) -> String {
        let most = self.independent.last().map_or("nothing", |at| at.size.as_str());
        let ms = |ns: f64| format!("{:.2} ms", ns / 1e6);
        let fresh = self.fresh_ns.map_or(String::new(), |[small, huge]| {
            format!(
                "; memory is filled as if the host had given it before: else 2 MiB took {} on small pages and {} on a \
                 huge one",
                ms(small),
                ms(huge)
            )
        });
        format!(
            "accesses take what a model says that is {} % off the loops it is fitted to, over up to {most} on one \
             host; differences below 5 % say nothing, and independent accesses to more take what they take \
             there{fresh}",
            self.error_percent
        )
    }

    /// Checks that each constant is in range.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), WrongConstant> {
        let wrong = |key, reason| Err(WrongConstant { key, reason });
        let times = [
            ("work_ns", self.work_ns),
            ("tlb2_ns", self.tlb2_ns),
            ("walk_ns", self.walk_ns),
            ("l2_ns", self.l2_ns),
            ("l3_ns", self.l3_ns),
            ("memory_ns", self.memory_ns),
            ("sequential_ns", self.sequential_ns),
            ("fresh_ns", self.fresh_ns.map_or(0.0, |ns| ns[0])),
            ("fresh_ns", self.fresh_ns.map_or(0.0, |ns| ns[1])),
        ];
        if let Some((key, ns)) = times.into_iter().find(|(_, ns)| !(0.0..=MOST_NS).contains(ns)) {
            return wrong(key, format!("{key} = {ns} is not from 0 to {MOST_NS}"));
        }
        for (key, tlb) in [("tlb1", self.tlb1), ("tlb2", self.tlb2)] {
            if let Some(entries) =
                [Some(tlb.entries), tlb.huge, tlb.gigantic].into_iter().flatten().find(|n| !TLB.contains(n))
            {
                return wrong(key, format!("{key} has {entries} entries, not {} to {}", TLB.start(), TLB.end()));
            }
        }
        for (key, size) in [("l2", &self.l2), ("l3", &self.l3)] {
            if parse_size(size).is_none_or(|bytes| bytes == 0) {
                return wrong(key, format!("{key} = \"{size}\" is not a size such as \"1 MiB\""));
            }
        }
        if !(0.0..=MOST_ERROR).contains(&self.error_percent) {
            return wrong(
                "error_percent",
                format!("error_percent = {} is not from 0 to {MOST_ERROR}", self.error_percent),
            );
        }
        self.check_independent().map_err(|reason| WrongConstant { key: "independent", reason })
    }

    fn check_independent(&self) -> Result<(), String> {
        let mut last = 0;
        for Independent { size, small_ns, huge_ns } in &self.independent {
            let bytes = parse_size(size).filter(|bytes| *bytes > last);
            last = bytes.ok_or_else(|| format!("size = \"{size}\" is not a size larger than the one before"))?;
            if let Some(ns) = [small_ns, huge_ns].into_iter().find(|ns| !(0.0..=MOST_NS).contains(*ns)) {
                return Err(format!("{ns} ns at {size} is not from 0 to {MOST_NS}"));
            }
        }
        if self.independent.is_empty() { Err("no size is measured".into()) } else { Ok(()) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A Zen 4 core's guest on small pages of the host, with what a fit to two loops gave there.
    pub(crate) fn zen4() -> Processor {
        let at = |size: &str, small_ns, huge_ns| Independent { size: size.into(), small_ns, huge_ns };
        Processor {
            processor: "Zen 4".into(),
            source: "a test".into(),
            backing: Backing::Small,
            tlb1: Tlb::of(72),
            tlb2: Tlb::of(3072),
            l2: "1 MiB".into(),
            l3: "3891 KiB".into(),
            work_ns: 2.5,
            tlb2_ns: 7.0 / 3.6,
            walk_ns: 9.6,
            l2_ns: 14.0 / 3.6,
            l3_ns: 51.0,
            memory_ns: 159.0,
            sequential_ns: 2.4,
            fresh_ns: None,
            independent: vec![at("1 GiB", 12.0, 10.0), at("4 GiB", 40.0, 30.0)],
            error_percent: 8.0,
        }
    }

    #[test]
    fn a_constant_out_of_range_is_named() {
        let wrong = |cpu: Processor| cpu.check().expect_err("refused").key;
        assert_eq!(zen4().check(), Ok(()));
        assert_eq!(wrong(Processor { walk_ns: -1.0, ..zen4() }), "walk_ns");
        assert_eq!(wrong(Processor { l3: "much".into(), ..zen4() }), "l3");
        assert_eq!(wrong(Processor { l3: "0 KiB".into(), ..zen4() }), "l3");
        assert_eq!(wrong(Processor { error_percent: -1.0, ..zen4() }), "error_percent");
        assert_eq!(wrong(Processor { tlb1: Tlb { huge: Some(9_999_999), ..Tlb::of(64) }, ..zen4() }), "tlb1");
        assert_eq!(wrong(Processor { independent: vec![], ..zen4() }), "independent");
        assert_eq!(wrong(Processor { tlb2: Tlb::of(0), ..zen4() }), "tlb2");
    }
}
