//! A guest's memory while a program ran: free huge pages and some counters, sample by sample.
//!
//! The file is a table in words: a line with the columns' names, then a line of numbers a sample.
//! The first column is the time in ns since the program began, the next ones the free blocks of
//! order 9 and more of each zone, counted in huge pages; the others are counters of `/proc/vmstat`.

use kontig_mm::types::PAGEBLOCK_ORDER;
use kontig_procfs::{BuddyInfo, Counters, VmStat};
use std::fmt::Write;

/// The name of the first column.
const NS: &str = "ns";
/// Begins the name of a column of free huge pages; the zone's name follows.
const FREE: &str = "free_huge_";
/// A sum of several counters.
const ALLOCSTALL: &str = "allocstall";
/// The counters kept, where the kernel has them.
const KEPT: [&str; 10] = [
    "nr_free_pages",
    "thp_fault_alloc",
    "thp_fault_fallback",
    "pswpin",
    "pswpout",
    "swpout_zero",
    ALLOCSTALL,
    "pgscan_kswapd",
    "pgscan_direct",
    "workingset_refault_file",
];

/// A look at the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Since the program began.
    pub ns: u64,
    /// Free huge pages by zone, in the order of the addresses.
    pub free_huge: Vec<(String, u64)>,
    pub counters: Counters,
}

impl Sample {
    /// From a text as the guest sends it: a line `ns N`, then `/proc/buddyinfo` and `/proc/vmstat`.
    ///
    /// # Errors
    /// One line, if it has another form.
    pub fn of_texts(name: &str, text: &str) -> Result<Sample, String> {
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        let ns = first.strip_prefix("ns ").and_then(|n| n.parse().ok());
        let ns = ns.ok_or_else(|| format!("{name}: does not begin with a line 'ns N'"))?;
        let is_zone = |line: &&str| line.starts_with("Node ");
        let lines = rest.lines().take_while(is_zone).map(|line| line.len() + 1).sum();
        let (buddyinfo, vmstat) = rest.split_at(rest.len().min(lines));
        let buddyinfo = BuddyInfo::parse(name, buddyinfo).map_err(|e| e.to_string())?;
        let vmstat = VmStat::parse(name, vmstat).map_err(|e| e.to_string())?.0;
        let huge = |of_order: &[u64]| -> u64 {
            let large = of_order.iter().enumerate().skip(usize::from(PAGEBLOCK_ORDER.get()));
            large.map(|(order, blocks)| blocks << (order - usize::from(PAGEBLOCK_ORDER.get()))).sum()
        };
        let free_huge = buddyinfo.zones.iter().map(|zone| (zone.at.zone.to_string(), huge(&zone.of_order))).collect();
        let stalls = vmstat.iter().filter(|(counter, _)| counter.starts_with(ALLOCSTALL)).map(|(_, n)| n).sum();
        let value = |counter: &'static str| match counter {
            ALLOCSTALL => Some(stalls),
            _ => vmstat.get(counter),
        };
        let counters = KEPT.into_iter().filter_map(|counter| Some((counter.to_string(), value(counter)?)));
        Ok(Sample { ns, free_huge, counters: counters.collect() })
    }

    /// Free huge pages in the zone with the most memory, which is the last one.
    pub fn free_in_last_zone(&self) -> u64 {
        self.free_huge.last().map_or(0, |(_, free)| *free)
    }

    fn columns(&self) -> Vec<String> {
        let zones = self.free_huge.iter().map(|(zone, _)| format!("{FREE}{zone}"));
        let counters = self.counters.names().map(str::to_string);
        std::iter::once(NS.to_string()).chain(zones).chain(counters).collect()
    }

    fn numbers(&self) -> impl Iterator<Item = u64> {
        let zones = self.free_huge.iter().map(|(_, free)| *free);
        std::iter::once(self.ns).chain(zones).chain(self.counters.iter().map(|(_, n)| n))
    }
}

/// The samples as a file.
pub fn text(samples: &[Sample]) -> String {
    let mut out = samples.first().map(|sample| sample.columns().join(" ")).unwrap_or_default();
    for sample in samples {
        let mut space = '\n';
        for number in sample.numbers() {
            let _ = write!(out, "{space}{number}");
            space = ' ';
        }
    }
    out.push('\n');
    out
}

/// Reads such a file.
///
/// # Errors
/// The line that is wrong, from 1, and why.
pub fn parse(text: &str) -> Result<Vec<Sample>, (usize, String)> {
    let mut lines = text.lines().enumerate();
    let columns: Vec<&str> = lines.next().map(|(_, line)| line.split(' ').collect()).unwrap_or_default();
    let zones = columns.iter().skip(1).take_while(|name| name.starts_with(FREE)).count();
    if columns.first() != Some(&NS) || zones == 0 {
        return Err((1, format!("does not name the columns {NS}, {FREE}ZONE ... and counters")));
    }
    let mut samples: Vec<Sample> = Vec::new();
    for (at, line) in lines {
        let numbers: Option<Vec<u64>> = line.split(' ').map(|n| n.parse().ok()).collect();
        let numbers = numbers.filter(|numbers| numbers.len() == columns.len());
        let Some(numbers) = numbers else {
            return Err((at + 1, format!("is not {} numbers, one for each column", columns.len())));
        };
        if samples.last().is_some_and(|last| last.ns >= numbers[0]) {
            return Err((at + 1, "is not later than the line before".into()));
        }
        let (free, counted) = (1..=zones, zones + 1..columns.len());
        let zone = |i: usize| (columns[i][FREE.len()..].to_string(), numbers[i]);
        let counters = counted.map(|i| (columns[i].to_string(), numbers[i])).collect();
        samples.push(Sample { ns: numbers[0], free_huge: free.map(zone).collect(), counters });
    }
    if samples.is_empty() { Err((1, "has no sample".into())) } else { Ok(samples) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: &str = "ns 250\n\
        Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      2 \n\
        Node 0, zone    DMA32      9      8      7      6      5      4      3      2      1      3      4 \n\
        nr_free_pages 900\nallocstall_normal 2\nallocstall_movable 3\nother 7\n";

    #[test]
    fn a_sample_keeps_free_huge_pages_and_some_counters() {
        let sample = Sample::of_texts("s00000", SENT).expect("as sent");
        assert_eq!(sample.free_huge, [("DMA".to_string(), 5), ("DMA32".to_string(), 11)]);
        assert_eq!(sample.free_in_last_zone(), 11);
        assert_eq!(text(&[sample]), "ns free_huge_DMA free_huge_DMA32 nr_free_pages allocstall\n250 5 11 900 5\n");
    }

    #[test]
    fn a_table_that_is_written_is_read() {
        let first = Sample::of_texts("s00000", SENT).expect("as sent");
        let both = [first.clone(), Sample { ns: 500, ..first }];
        assert_eq!(parse(&text(&both)), Ok(both.to_vec()));
    }

    #[test]
    fn a_damaged_table_is_refused_at_its_line() {
        let refused = |text: &str| parse(text).expect_err("refused");
        assert_eq!(refused("").0, 1);
        assert_eq!(refused("ns pswpout\n1 2\n").0, 1);
        assert_eq!(refused("ns free_huge_DMA\n"), (1, "has no sample".into()));
        assert_eq!(refused("ns free_huge_DMA\n1 2\n2\n"), (3, "is not 2 numbers, one for each column".into()));
        assert_eq!(refused("ns free_huge_DMA\n1 x\n").0, 2);
        assert_eq!(refused("ns free_huge_DMA\n9 2\n9 2\n").0, 3);
        assert!(Sample::of_texts("s1", "nr_free_pages 1\n").expect_err("refused").starts_with("s1: "));
    }
}
