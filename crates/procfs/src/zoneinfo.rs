//! `/proc/zoneinfo`: the watermarks, sizes, counters and per-CPU lists of every zone of every node.
//!
//! A zone without memory has only its watermarks and sizes (since 4.12; before, it is not listed).
//! The node's own counters are in its first zone with memory. Up to 4.7 nodes have none: each zone
//! has them all, before `protection`. The watermarks include the boost.
//! Source: kernel-behaviour §7.3.

use crate::counters::Counters;
use crate::error::BadText;
use crate::lines::{Line, Lines};
use crate::zone_at::ZoneAt;
use std::fmt;

/// The contents of `/proc/zoneinfo`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ZoneInfo {
    pub zones: Vec<Zone>,
}

/// The block of lines of one zone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Zone {
    pub at: ZoneAt,
    /// The node's counters; only in its first zone with memory.
    pub node_stats: Option<Counters>,
    pub free: u64,
    /// Watermarks and sizes: `boost`, `min`, `low`, `high`, `promo`, `scanned`, `spanned`,
    /// `present`, `managed`, `cma`.
    pub sizes: Counters,
    /// Pages kept from requests that prefer higher zones.
    pub protection: Vec<u64>,
    /// The further lines of a zone with memory.
    pub populated: Option<Populated>,
}

/// The lines that only a zone with memory has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Populated {
    /// The counters from `nr_free_pages` to `numa_other`; up to 4.7 to `nr_free_cma`.
    pub counters: Counters,
    /// The per-CPU lists, by CPU.
    pub cpus: Vec<PageSet>,
    /// `node_unreclaimable`, `start_pfn`, `reserved_highatomic`, `free_highatomic`; up to 4.7
    /// `all_unreclaimable`, `start_pfn`, `inactive_ratio`.
    pub last: Counters,
}

impl Populated {
    /// Whether zones have all counters, and nodes none.
    fn counts_by_zone(&self) -> bool {
        self.last.get("all_unreclaimable").is_some()
    }
}

/// The free-page lists of one CPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageSet {
    pub cpu: u32,
    /// `count`, `high`, `batch`, `high_min`, `high_max`.
    pub lists: Counters,
    /// How large this CPU's part of a counter may grow before it is folded in; a kernel for one CPU
    /// has none.
    pub stat_threshold: Option<u64>,
}

const NODE_STATS: &str = "  per-node stats";
const FREE: &str = "  pages free ";
const SIZE: &str = "        ";
const PROTECTION: &str = "        protection: (";
const COUNTER: &str = "      ";
/// The same where zones have all counters.
const OF_ZONE: &str = "    ";
const PAGESETS: &str = "  pagesets";
const CPU: &str = "    cpu: ";
const LIST: &str = "              ";
const THRESHOLD: &str = "  vm stats threshold: ";
const LAST: &str = "  ";

impl ZoneInfo {
    /// Reads the file; `file` is its name in errors.
    ///
    /// # Errors
    /// The first line that is not of this form, and the last line of a text that is cut short.
    pub fn parse(file: &str, text: &str) -> Result<ZoneInfo, BadText> {
        let mut lines = Lines::of(file, text)?;
        let mut info = ZoneInfo::default();
        while let Some(heading) = lines.next() {
            let found = zone(&heading, &mut lines)?;
            info.has_the_same_fields(&found).map_err(|reason| lines.last_read().bad(reason))?;
            info.zones.push(found);
        }
        if info.nodes_are_whole() {
            Ok(info)
        } else {
            Err(lines.last_read().bad("the text is cut short: the node lacks zones"))
        }
    }

    /// The zone of this node and name.
    pub fn zone(&self, node: u32, name: &str) -> Option<&Zone> {
        self.zones.iter().find(|z| z.at.node == node && z.at.zone == name)
    }

    /// CPUs at work: the most of which a zone has lists; `None` if no zone has memory.
    pub fn cpus(&self) -> Option<usize> {
        self.zones.iter().filter_map(|zone| zone.populated.as_ref()).map(|zone| zone.cpus.len()).max()
    }

    /// Checks that a zone has the same fields as the others: every zone of a kernel does, so one
    /// that lacks some was cut short.
    fn has_the_same_fields(&self, found: &Zone) -> Result<(), String> {
        let (Some(first), populated) = (self.zones.first(), self.zones.iter().find_map(|z| z.populated.as_ref()))
        else {
            return Ok(());
        };
        same_names(&first.sizes, &found.sizes)?;
        let (Some(first), Some(found)) = (populated, &found.populated) else { return Ok(()) };
        same_names(&first.counters, &found.counters)?;
        same_names(&first.last, &found.last)
    }

    /// A kernel that lists zones without memory lists every kind of zone for every node, and
    /// `protection` has a number for each.
    fn nodes_are_whole(&self) -> bool {
        let lists_all = self.zones.iter().any(|z| z.populated.is_none());
        let mut nodes = self.zones.chunk_by(|a, b| a.at.node == b.at.node);
        !lists_all || nodes.all(|zones| zones.len() == zones[0].protection.len())
    }
}

fn same_names(first: &Counters, found: &Counters) -> Result<(), String> {
    match first.names().find(|name| found.get(name).is_none()) {
        Some(name) => Err(format!("the zone that ends here has no '{name}', the first one has: the text is cut short")),
        None => Ok(()),
    }
}

fn zone(heading: &Line<'_>, lines: &mut Lines<'_>) -> Result<Zone, BadText> {
    let (at, rest) = ZoneAt::parse(heading)?;
    if !rest.is_empty() {
        return Err(heading.expected("'Node N, zone NAME'"));
    }
    let stats = lines.next_if(|l| l == NODE_STATS);
    let node_stats = stats.map(|_| items(lines, |l| is_counter(l, COUNTER), named)).transpose()?;
    let free = lines.expect("'pages free' line")?;
    let free = free.number(free.after(FREE)?.trim_start())?;
    let sizes = items(lines, |l| l.starts_with(SIZE) && !l.starts_with(PROTECTION), named)?;
    let of_zone = items(lines, |l| is_counter(l, OF_ZONE), named)?;
    let protection = protection(&lines.expect("'protection' line")?)?;
    let populated = match lines.peek() {
        Some(line) if line.text == PAGESETS || is_counter(line.text, COUNTER) => Some(populated(of_zone, lines)?),
        Some(line) if !line.text.starts_with("Node ") => return Err(line.expected("a counter or the next zone")),
        _ if sizes.get("present").is_some_and(|pages| pages > 0) => {
            return Err(lines.expect("counter of the zone").err().unwrap_or_else(|| heading.bad("no counters follow")));
        }
        _ => None,
    };
    Ok(Zone { at, node_stats, free, sizes, protection, populated })
}

/// Reads the lines after `protection`; `of_zone` are the counters before it.
fn populated(of_zone: Counters, lines: &mut Lines<'_>) -> Result<Populated, BadText> {
    let counters = match of_zone.names().count() {
        0 => items(lines, |l| is_counter(l, COUNTER), named)?,
        _ => of_zone,
    };
    let pagesets = lines.expect("'pagesets' line")?;
    if pagesets.text != PAGESETS {
        return Err(pagesets.expected("'pagesets'"));
    }
    let mut cpus = Vec::new();
    while let Some(line) = lines.next_if(|l| l.starts_with(CPU)) {
        let cpu = line.number(line.after(CPU)?)?;
        let lists = items(lines, |l| l.starts_with(LIST), labelled)?;
        let threshold = lines.next_if(|l| l.starts_with(THRESHOLD));
        let stat_threshold = threshold.map(|l| l.number(l.after(THRESHOLD)?)).transpose()?;
        cpus.push(PageSet { cpu, lists, stat_threshold });
    }
    let last = items(lines, |l| l.starts_with(LAST) && !l.starts_with("   "), labelled)?;
    if last.get("start_pfn").is_none() {
        return Err(lines.expect("'start_pfn' line")?.expected("'start_pfn'"));
    }
    Ok(Populated { counters, cpus, last })
}

/// Whether a line is indented as far as a counter.
fn is_counter(line: &str, indent: &str) -> bool {
    line.strip_prefix(indent).is_some_and(|rest| !rest.starts_with(' '))
}

/// Reads the lines from here on that satisfy `belongs` with `one`.
fn items(
    lines: &mut Lines<'_>,
    belongs: impl Fn(&str) -> bool,
    one: impl Fn(&Line<'_>) -> Result<(String, u64), BadText>,
) -> Result<Counters, BadText> {
    std::iter::from_fn(|| lines.next_if(&belongs)).map(|line| one(&line)).collect()
}

/// Parses a line `name value`.
fn named(line: &Line<'_>) -> Result<(String, u64), BadText> {
    let mut words = line.text.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some(name), Some(value), None) => Ok((name.into(), line.number(value)?)),
        _ => Err(line.expected("a name and a number")),
    }
}

/// Parses a line `name: value`.
fn labelled(line: &Line<'_>) -> Result<(String, u64), BadText> {
    let (name, value) = line.text.split_once(':').ok_or_else(|| line.expected("a name, a colon and a number"))?;
    Ok((name.trim_start().into(), line.number(value.trim_start())?))
}

fn protection(line: &Line<'_>) -> Result<Vec<u64>, BadText> {
    let pages = line.after(PROTECTION)?.strip_suffix(')').ok_or_else(|| line.expected("a list in brackets"))?;
    pages.split(", ").map(|p| line.number(p)).collect()
}

impl fmt::Display for ZoneInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.zones.iter().try_for_each(|zone| write!(f, "{zone}"))
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.at)?;
        if let Some(stats) = &self.node_stats {
            writeln!(f, "{NODE_STATS}")?;
            counters(f, stats, COUNTER)?;
        }
        writeln!(f, "{FREE}    {}", self.free)?;
        self.sizes.iter().try_for_each(|(name, value)| writeln!(f, "{SIZE}{name:<8} {value}"))?;
        if let Some(populated) = self.populated.as_ref().filter(|populated| populated.counts_by_zone()) {
            counters(f, &populated.counters, OF_ZONE)?;
        }
        let pages: Vec<String> = self.protection.iter().map(u64::to_string).collect();
        writeln!(f, "{PROTECTION}{})", pages.join(", "))?;
        self.populated.as_ref().map_or(Ok(()), |populated| write!(f, "{populated}"))
    }
}

impl fmt::Display for Populated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by_zone = self.counts_by_zone();
        if !by_zone {
            counters(f, &self.counters, COUNTER)?;
        }
        writeln!(f, "{PAGESETS}")?;
        for set in &self.cpus {
            writeln!(f, "{CPU}{}", set.cpu)?;
            // Values are aligned after the longest name, so they are further to the right since
            // there is 'high_min'.
            let width = set.lists.names().map(str::len).max().unwrap_or(0) + 1;
            for (name, value) in set.lists.iter() {
                writeln!(f, "{LIST}{:<width$} {value}", format!("{name}:"))?;
            }
            if let Some(pages) = set.stat_threshold {
                writeln!(f, "{THRESHOLD}{pages}")?;
            }
        }
        let width = if by_zone { 18 } else { 20 };
        self.last.iter().try_for_each(|(name, value)| writeln!(f, "{LAST}{:<width$} {value}", format!("{name}:")))
    }
}

fn counters(f: &mut fmt::Formatter<'_>, counters: &Counters, indent: &str) -> fmt::Result {
    counters.iter().try_for_each(|(name, value)| writeln!(f, "{indent}{name:<12} {value}"))
}
