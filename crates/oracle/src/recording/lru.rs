//! LRU state of a node (`*.lru`), one file for each state of a trace under memory pressure.
//!
//! A text with an entry a line: event counters (`EVENT`), the node, its `LRUVEC`, counters
//! (`STAT`), with several nodes its zonelist and where blocks came from (`ZONELIST`, `NUMA`), each
//! list from its head on (`LIST`), the CPUs' batches (`BATCH`, and `CPU` before
//! those of CPU 1 and later ones), shadows of evicted pages, the process's pages in swap, and the
//! length of all before. Pfns are hexadecimal and absolute. Each entry appears once, and everything
//! common to all kernels is present. A page is on one list, a page of a file or process is one
//! frame, and a swap slot has an owner and holds one page. A file that breaks these rules is
//! refused with the line.
//!
//! Where the multi-generational LRU is on, `LRUGEN`, `TIER` and `GEN` follow the lists, which are
//! empty, and a page also has its generation and how often it was used (`2.1`).

use crate::error::BadRecording;
use crate::trace::lru::{FilePage, MAX_CPUS, ProcessPage, file_page, process_page};
use kontig_mm::{NodeId, Order, Pfn};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The lists of a node, in file order.
pub const LISTS: [&str; 4] = ["inactive_anon", "active_anon", "inactive_file", "active_file"];
/// The per-CPU batches, by the kernel's names.
pub const BATCHES: [&str; 6] = ["lru_add", "deactivate_file", "deactivate", "lazyfree", "activate", "rotate"];
/// Numbers that `NODE` and `LRUVEC` have on every kernel.
const NODE: [&str; 4] = ["node", "kswapd_order", "kswapd_highest_zoneidx", "kswapd_failures"];
const LRUVEC: [&str; 5] = ["anon_cost", "file_cost", "nonresident_age", "refaults_anon", "refaults_file"];
/// The number that `PROCESS` has of the page that the process's memory begins with.
pub const PROCESS_START: &str = "process_start";
/// The number of the process's pages.
pub const PROCESS_PAGES: &str = "process_pages";
/// Advice for a file that the module cannot have written.
const AGAIN: &str = "record it again with 'kontig oracle record'";
/// Letters of the page flags, in bit order.
const FLAGS: &str = "ARWSDBCLM";

/// Flags of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageFlags(u16);

impl PageFlags {
    fn parse(letters: &str) -> Option<PageFlags> {
        if letters == "-" {
            return Some(PageFlags(0));
        }
        let bit = |c| FLAGS.find(c).map(|at| 1 << at);
        letters.chars().try_fold(0, |all, c| Some(all | bit(c)?)).map(PageFlags)
    }
    const fn bit(self, at: u16) -> bool {
        self.0 & 1 << at != 0
    }
    /// Whether `PG_active` is set.
    pub const fn active(self) -> bool {
        self.bit(0)
    }
    /// Whether `PG_referenced` is set.
    pub const fn referenced(self) -> bool {
        self.bit(1)
    }
    /// Whether `PG_workingset` is set.
    pub const fn workingset(self) -> bool {
        self.bit(2)
    }
    /// Whether `PG_swapbacked` is set.
    pub const fn swapbacked(self) -> bool {
        self.bit(3)
    }
    /// Whether `PG_dirty` is set.
    pub const fn dirty(self) -> bool {
        self.bit(4)
    }
    /// Whether `PG_writeback` is set.
    pub const fn writeback(self) -> bool {
        self.bit(5)
    }
    /// `PG_reclaim`: moves to the tail of its list after writeback.
    pub const fn reclaim(self) -> bool {
        self.bit(6)
    }
    /// Whether `PG_locked` is set.
    pub const fn locked(self) -> bool {
        self.bit(7)
    }
    /// Whether a process has it mapped.
    pub const fn mapped(self) -> bool {
        self.bit(8)
    }
}

/// Owner of a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum OwnedBy {
    /// A file of the trace.
    File(FilePage),
    /// The process of the trace.
    Process(ProcessPage),
    /// The kernel, for a purpose unknown to the trace.
    Other,
}

/// A page or folio on a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LruPage {
    /// Pfn of its first page.
    pub pfn: Pfn,
    pub order: Order,
    pub flags: PageFlags,
    pub owner: OwnedBy,
    /// Its swap slot, if it has one.
    pub slot: Option<u32>,
    /// Its generation of four, if its flags have one: it need not be that of its list.
    pub generation: Option<u8>,
    /// Uses beyond those that flags hold.
    pub refs: u8,
}

/// A list of the multi-generational LRU.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Generation {
    /// The kernel's count of its pages.
    pub size: i64,
    /// From its head on: the tail is evicted first.
    pub pages: Vec<LruPage>,
}

/// The numbers that `TIER` has of the pages of one kind that were used equally often.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tier {
    pub avg_refaulted: u64,
    pub avg_total: u64,
    pub refaulted: u64,
    pub evicted: u64,
    pub protected: u64,
}

/// The place of a list of the multi-generational LRU: its kind (`anon`, `file`), its generation of
/// four and its zone.
pub type GenerationKey = (String, u8, String);

/// Shadow entry of an evicted page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shadow {
    pub page: FilePage,
    /// The node's nonresident age at eviction.
    pub age: u64,
    /// Whether `PG_workingset` was set.
    pub workingset: bool,
    /// The memory control group whose age it is; 0 without groups.
    pub group: u16,
}

/// A counter with its per-CPU deltas.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counter {
    /// The global value that all CPUs read.
    pub counted: i64,
    /// Each CPU's delta, not yet folded in.
    pub unfolded: [i64; MAX_CPUS as usize],
}

impl Counter {
    /// The counter with all deltas.
    pub fn exact(&self) -> i64 {
        self.counted + self.unfolded.iter().sum::<i64>()
    }
}

/// LRU state of a node at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LruState {
    /// Events since the first state, by their names in `vmstat`; zero counts are left out.
    pub events: BTreeMap<String, u64>,
    /// `NODE` and `LRUVEC`: numbers by name, as `kswapd_order`, `anon_cost`; `refaults_anon` and
    /// `refaults_file`. Those of every kernel are there.
    pub numbers: BTreeMap<String, i64>,
    /// How large the CPU's part of a counter becomes, by `node` or the zone's name: of the node,
    /// and of every zone that has counters.
    pub thresholds: BTreeMap<String, i64>,
    /// Counters that are not 0, by `node` or the zone's name, and their own.
    pub counters: BTreeMap<(String, String), Counter>,
    /// The node's zonelist, the nodes that are not recorded left out; told where there are several.
    pub zonelist: Vec<(NodeId, String)>,
    /// By zone and the counter's name, blocks that zones gave; told where there are several nodes.
    pub placed: BTreeMap<(String, String), u64>,
    /// Each of [`LISTS`], from its head on: the tail is evicted first.
    pub lists: [Vec<LruPage>; LISTS.len()],
    /// The generations of the node's pages; of the root's, where there are groups.
    pub generations: GenerationsOf,
    /// By generation and bin, the groups in the order in which reclaim comes to them.
    pub bins: BTreeMap<(u8, u8), Vec<u16>>,
    /// By CPU, each of [`BATCHES`], in the order collected.
    pub batches: Vec<[Vec<LruPage>; BATCHES.len()]>,
    /// Shadows in the files' trees.
    pub shadows: Vec<Shadow>,
    /// The process's pages that are in swap alone, and where.
    pub swapped: BTreeMap<ProcessPage, u32>,
    /// The memory control groups, by number; the root is the first. Empty without any.
    pub groups: Vec<GroupState>,
}

/// The state of a memory control group and of its lists on the node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GroupState {
    /// `GROUP`, `LRUVEC` and the recorded CPU's `STOCK`: numbers by name. A limit that is none is
    /// [`UNLIMITED`].
    pub numbers: BTreeMap<String, i64>,
    /// Counters that are not 0, as reclaim reads them.
    pub states: BTreeMap<String, i64>,
    /// Each of [`LISTS`], from its head on. The root's are the node's ([`LruState::lists`]).
    pub lists: [Vec<LruPage>; LISTS.len()],
    /// The same of its generations.
    pub generations: GenerationsOf,
}

/// The multi-generational LRU of a node or of a group on it, where that LRU is on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GenerationsOf {
    /// `LRUGEN`: numbers by name.
    pub numbers: BTreeMap<String, i64>,
    /// Lists that are not empty.
    pub lists: BTreeMap<GenerationKey, Generation>,
    /// Tiers of each kind. Of a group, those that are not all 0.
    pub tiers: BTreeMap<(String, u8), Tier>,
}

impl GenerationsOf {
    /// A number, 0 where there is none of this name.
    pub fn number(&self, name: &str) -> i64 {
        self.numbers.get(name).copied().unwrap_or(0)
    }
}

impl GroupState {
    /// A number, 0 where there is none of this name.
    pub fn number(&self, name: &str) -> i64 {
        self.numbers.get(name).copied().unwrap_or(0)
    }
}

/// The number that stands for a limit that is none.
pub const UNLIMITED: i64 = i64::MAX;

impl LruState {
    /// A number of the node, 0 where the kernel has none of this name.
    pub fn number(&self, name: &str) -> i64 {
        self.numbers.get(name).copied().unwrap_or(0)
    }
}

/// Reads a state.
///
/// # Errors
/// In one line: what is wrong, and in which line of the file.
pub fn parse(path: &Path, text: &str) -> Result<LruState, BadRecording> {
    let mut reader = Reader::default();
    let mut over = None;
    for (number, line) in (1..).zip(text.lines()) {
        let bad = |reason: String| BadRecording::line(path, number, reason);
        if over.is_some() {
            return Err(bad("comes after the line END".into()));
        }
        over = reader.line(number, line).map_err(bad)?;
    }
    let whole = |reason: String| BadRecording::whole(path, reason);
    let length = over.ok_or_else(|| whole("is cut short: it has no line END".into()))?;
    let written = text.rfind("END").unwrap_or(0);
    if length != written {
        return Err(whole(format!("END says {length} bytes before it, but there are {written}")));
    }
    reader.finish().map_err(|(line, reason)| BadRecording::line(path, line, reason))
}

/// Where pages are read into.
#[derive(Clone, PartialEq, Eq)]
enum Into {
    List(usize),
    /// A list of a group.
    OfGroup(usize, usize),
    Generation(GenerationKey),
    Batch(usize),
}

#[derive(Default)]
struct Reader {
    state: LruState,
    into: Option<Into>,
    /// Pages the list or batch being read is said to have left, and the line that said so.
    left: (usize, usize),
    /// Lists and batches so far, in order.
    headings: usize,
    /// The group that is described, once groups are, and how many of its lists have been.
    group: Option<(usize, usize)>,
    /// The line a page stands in, and the list.
    seen: BTreeMap<Pfn, (usize, &'static str)>,
    owned: BTreeMap<OwnedBy, usize>,
    /// Places in swap that pages on lists or in batches have: by which page, and in which line.
    slots: Vec<(u32, LruPage, usize)>,
    /// Places in swap, and the line that has each: of a page in memory, or of one that is in swap
    /// alone (`true`).
    places: BTreeMap<(bool, u32), usize>,
    /// Places in swap that entries of the process name.
    held: BTreeSet<u32>,
    /// Lines of which there is one, by how they begin.
    said: BTreeMap<String, usize>,
}

impl Reader {
    /// Takes a line in; what END says, if it is that.
    fn line(&mut self, number: usize, line: &str) -> Result<Option<usize>, String> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if self.left.0 > 0 && matches!(words.first(), Some(w) if w.chars().all(|c| c.is_ascii_uppercase())) {
            return Err(format!("line {} says that {} more pages come before this", self.left.1, self.left.0));
        }
        self.is_said_once(number, &words)?;
        match words[..] {
            ["NODE", id, ref rest @ ..] => {
                self.number("node", id)?;
                self.numbers(rest)?;
            }
            ["LRUVEC", ref rest @ ..] => {
                let at = rest.iter().position(|w| *w == "refaults").filter(|at| at + 2 < rest.len());
                let at = at.ok_or_else(|| "LRUVEC has no 'refaults' of two numbers".to_string())?;
                if let Some((group, _)) = self.group {
                    let (of, costs) = (&mut self.state.groups[group], rest[..at].chunks_exact(2));
                    for pair in costs.chain([&["refaults_anon", rest[at + 1]][..], &["refaults_file", rest[at + 2]]]) {
                        of.numbers.insert(pair[0].into(), integer(pair[1])?);
                    }
                    return Ok(None);
                }
                self.number("refaults_anon", rest[at + 1])?;
                self.number("refaults_file", rest[at + 2])?;
                self.numbers(&[&rest[..at], &rest[at + 3..]].concat())?;
            }
            ["GROUP", number, ref rest @ ..] => {
                if integer(number)? != self.state.groups.len() as i64 {
                    return Err(format!("group {number} comes after {} others: {AGAIN}", self.state.groups.len()));
                }
                let mut of = GroupState::default();
                for pair in rest.chunks(2) {
                    let [name, value] = pair else { return Err(format!("'{}' has no number", pair.concat())) };
                    let value = if *value == "max" { UNLIMITED } else { integer(value)? };
                    of.numbers.insert((*name).into(), value);
                }
                self.state.groups.push(of);
            }
            ["STOCK", group, pages] => {
                if let Ok(group) = usize::try_from(integer(group)?) {
                    let pages = integer(pages)?;
                    self.group_mut(group)?.numbers.insert("stock".into(), pages);
                }
            }
            ["STOCK", place, group, pages] => {
                let group = usize::try_from(integer(group)?).map_err(|_| format!("'{group}' is no group"))?;
                let (place, pages) = (integer(place)?, integer(pages)?);
                let numbers = &mut self.group_mut(group)?.numbers;
                numbers.insert("stock".into(), pages);
                numbers.insert("stock_place".into(), place);
            }
            ["NEXTSTOCK", place] => self.number("next_stock", place)?,
            ["OF", group] => {
                let group = usize::try_from(integer(group)?).map_err(|_| format!("'{group}' is no group"))?;
                self.group_mut(group)?;
                self.group = Some((group, 0));
            }
            ["STATE", group, name, pages] => {
                let group = usize::try_from(integer(group)?).map_err(|_| format!("'{group}' is no group"))?;
                let pages = integer(pages)?;
                self.group_mut(group)?.states.insert(name.into(), pages);
            }
            ["LIST", name, n] if self.group.is_some() => {
                let (group, at) = self.group.unwrap_or_default();
                if LISTS.get(at) != Some(&name) {
                    return Err(format!("LIST {name} of group {group} does not come next: {AGAIN}"));
                }
                self.group = Some((group, at + 1));
                self.into = Some(Into::OfGroup(group, at));
                self.left = (integer(n)?.try_into().map_err(|_| format!("'{n}' is no number of pages"))?, number);
            }
            ["LRUGEN", ref rest @ ..] => {
                for pair in rest.chunks(2) {
                    let [name, value] = pair else { return Err(format!("'{}' has no number", pair.concat())) };
                    let value = integer(value)?;
                    self.generations().numbers.insert((*name).into(), value);
                }
            }
            ["BINS", "seq", seq] => self.number("bins_seq", seq)?,
            ["BIN", generation, bin, ref groups @ ..] => {
                let place = |word: &str| u8::try_from(integer(word)?).map_err(|_| format!("'{word}' is no place"));
                let group = |word: &&str| word.parse().map_err(|_| format!("'{word}' is no group: {AGAIN}"));
                let groups = groups.iter().map(group).collect::<Result<_, String>>()?;
                self.state.bins.insert((place(generation)?, place(bin)?), groups);
            }
            ["PROCESS", start, pages] => {
                let start = i64::from_str_radix(start, 16).map_err(|_| format!("'{start}' is no page"))?;
                self.state.numbers.insert(PROCESS_START.into(), start);
                self.number(PROCESS_PAGES, pages)?;
            }
            ["TIER", kind, tier, ref rest @ ..] => self.tier(kind, tier, rest)?,
            ["GEN", kind, of, zone, "size", size, n] => {
                let key = (kind.to_string(), integer(of)? as u8, zone.to_string());
                let list = Generation { size: integer(size)?, pages: Vec::new() };
                if self.generations().lists.insert(key.clone(), list).is_some() {
                    return Err(format!("generation {of} of {kind} in {zone} is listed already: {AGAIN}"));
                }
                self.into = Some(Into::Generation(key));
                self.left = (integer(n)?.try_into().map_err(|_| format!("'{n}' is no number of pages"))?, number);
            }
            ["EVENT", name, n] => {
                self.state.events.insert(name.into(), n.parse().map_err(|_| format!("'{n}' is no count"))?);
            }
            ["STAT", of, "threshold", n] => {
                self.state.thresholds.insert(of.into(), integer(n)?);
            }
            ["STAT", of, name, counted, ref parts @ ..] if (1..=MAX_CPUS.into()).contains(&parts.len()) => {
                let mut counter = Counter { counted: integer(counted)?, ..Counter::default() };
                for (unfolded, part) in counter.unfolded.iter_mut().zip(parts) {
                    *unfolded = integer(part)?;
                }
                self.state.counters.insert((of.into(), name.into()), counter);
            }
            ["ZONELIST", ref zones @ ..] => {
                let zone = |word: &&str| {
                    let (node, name) = word.split_once('.')?;
                    Some((NodeId::new(node.parse().ok()?), name.to_string()))
                };
                let zones: Option<_> = zones.iter().map(zone).collect();
                self.state.zonelist = zones.ok_or_else(|| format!("'{line}' names no zones, such as 1.Normal"))?;
            }
            ["NUMA", zone, name, n] => {
                let blocks = n.parse().map_err(|_| format!("'{n}' is no count"))?;
                self.state.placed.insert((zone.into(), name.into()), blocks);
            }
            ["CPU", n] if self.headings == LISTS.len() + BATCHES.len() => {
                if integer(n)? != self.state.batches.len() as i64 || n == MAX_CPUS.to_string() {
                    return Err(format!("CPU {n} stands where CPU {} should", self.state.batches.len()));
                }
                self.headings = LISTS.len();
            }
            [kind @ ("LIST" | "BATCH"), name, n] => {
                let expected = LISTS.iter().chain(&BATCHES).nth(self.headings).copied().unwrap_or("nothing more");
                if name != expected || (kind == "LIST") != (self.headings < LISTS.len()) {
                    return Err(format!("{kind} {name} stands where {expected} should"));
                }
                let at = self.headings;
                if at == LISTS.len() {
                    self.state.batches.push(Default::default());
                }
                self.into = Some(at.checked_sub(LISTS.len()).map_or(Into::List(at), Into::Batch));
                self.headings += 1;
                self.left = (integer(n)?.try_into().map_err(|_| format!("'{n}' is no number of pages"))?, number);
            }
            ["SHADOW", page, age, workingset @ ("0" | "1"), ref rest @ ..] if rest.len() <= 1 => {
                let group = rest
                    .first()
                    .map_or(Ok(0), |group| group.parse().map_err(|_| format!("'{group}' is no group: {AGAIN}")))?;
                let age = u64::from_str_radix(age, 16).map_err(|_| format!("'{age}' is no age"))?;
                let page = file_page(page)?;
                if let Some(line) = self.owned.insert(OwnedBy::File(page), number) {
                    return Err(format!("{page} is in line {line}, too: {AGAIN}"));
                }
                self.state.shadows.push(Shadow { page, age, workingset: workingset == "1", group });
            }
            ["SWAPPED", page, slot] => {
                let page = process_page(page)?;
                let slot = hexadecimal(slot)?;
                self.holds_one_page(number, true, slot)?;
                self.held.insert(slot);
                // It may still be in the swap cache.
                let owner = OwnedBy::Process(page);
                let cached = |(at, listed, _): &(u32, LruPage, usize)| *at == slot && listed.owner == owner;
                let cached = self.slots.iter().any(|of| cached(of) && !of.1.flags.mapped());
                if let Some(line) = self.owned.insert(owner, number).filter(|_| !cached) {
                    return Err(format!("{page} is in memory, too: line {line}"));
                }
                if !cached {
                    self.state.swapped.insert(page, slot);
                }
            }
            ["END", n] => return integer(n)?.try_into().map(Some).map_err(|_| format!("'{n}' is no length")),
            [pfn, flags, owner] if self.left.0 > 0 => self.page(number, pfn, flags, owner, (None, 0))?,
            [pfn, flags, owner, uses] if self.left.0 > 0 => self.page(number, pfn, flags, owner, used(uses)?)?,
            _ => return Err(format!("'{line}' is not understood here")),
        }
        Ok(None)
    }

    /// The generations that are described: the node's, or, once groups are, those of one.
    fn generations(&mut self) -> &mut GenerationsOf {
        match self.group {
            Some((group, _)) => &mut self.state.groups[group].generations,
            None => &mut self.state.generations,
        }
    }

    fn group_mut(&mut self, group: usize) -> Result<&mut GroupState, String> {
        self.state.groups.get_mut(group).ok_or_else(|| format!("there is no group {group}: {AGAIN}"))
    }

    fn number(&mut self, name: &str, value: &str) -> Result<(), String> {
        self.state.numbers.insert(name.into(), integer(value)?);
        Ok(())
    }

    /// A tier's numbers, each by its name.
    fn tier(&mut self, kind: &str, tier: &str, words: &[&str]) -> Result<(), String> {
        let number = |name: &str| {
            let at = words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1));
            at.and_then(|word| word.parse().ok()).ok_or_else(|| format!("TIER has no '{name}': {AGAIN}"))
        };
        let numbers = Tier {
            avg_refaulted: number("avg_refaulted")?,
            avg_total: number("avg_total")?,
            refaulted: number("refaulted")?,
            evicted: number("evicted")?,
            protected: number("protected")?,
        };
        let key = (kind.into(), integer(tier)? as u8);
        self.generations().tiers.insert(key, numbers);
        Ok(())
    }

    /// Names and numbers in turn. Flags are hexadecimal.
    fn numbers(&mut self, words: &[&str]) -> Result<(), String> {
        for pair in words.chunks(2) {
            match pair {
                ["flags", value] => {
                    let name = if self.state.numbers.contains_key("flags") { "lruvec_flags" } else { "flags" };
                    self.state.numbers.insert(name.into(), hexadecimal(value)?.into());
                }
                [name, value] => self.number(name, value)?,
                _ => return Err(format!("'{}' has no number", pair.concat())),
            }
        }
        Ok(())
    }

    fn page(
        &mut self,
        number: usize,
        pfn: &str,
        flags: &str,
        owner: &str,
        (generation, refs): (Option<u8>, u8),
    ) -> Result<(), String> {
        let (pfn, order) = match pfn.split_once('+') {
            Some((pfn, order)) => (pfn, order.parse().ok().filter(|o| *o <= kontig_mm::types::MAX_ORDER.get())),
            None => (pfn, Some(0)),
        };
        let pfn = Pfn::new(hexadecimal(pfn)?);
        let order = Order::new(order.ok_or_else(|| format!("{pfn} has no possible order"))?);
        let flags = PageFlags::parse(flags).ok_or_else(|| format!("'{flags}' are no flags, of {FLAGS} or -"))?;
        let (owner, slot) = match owner.split_once('@') {
            Some((owner, slot)) => (owner, Some(hexadecimal(slot)?)),
            None => (owner, None),
        };
        let owner = match owner {
            "?" => OwnedBy::Other,
            _ if owner.starts_with('a') => OwnedBy::Process(process_page(owner)?),
            _ => OwnedBy::File(file_page(owner)?),
        };
        let page = LruPage { pfn, order, flags, owner, slot, generation, refs };
        self.left.0 -= 1;
        let into = self.into.clone().ok_or_else(|| format!("page {pfn} is on no list"))?;
        // Only pages of the lru_add batch are on no list; those of other batches stay on theirs.
        let exclusive = match into {
            Into::List(at) | Into::OfGroup(_, at) => Some(LISTS[at]),
            Into::Generation(_) => Some("a generation"),
            Into::Batch(0) => Some(BATCHES[0]),
            Into::Batch(_) => None,
        };
        if let Some(name) = exclusive {
            if let Some((line, other)) = self.seen.insert(pfn, (number, name)) {
                return Err(format!("page {pfn} is on two lists: {other} (line {line}) and {name}"));
            }
            if owner != OwnedBy::Other
                && let Some(line) = self.owned.insert(owner, number)
                && !self.is_in_swap_cache(&page)
            {
                return Err(format!("the page of line {line} belongs to the same"));
            }
            if let Some(slot) = slot {
                self.holds_one_page(number, false, slot)?;
                self.slots.push((slot, page, number));
            }
        }
        match into {
            Into::List(at) => self.state.lists[at].push(page),
            Into::OfGroup(group, at) => self.state.groups[group].lists[at].push(page),
            Into::Generation(key) => self.generations().lists.entry(key).or_default().pages.push(page),
            Into::Batch(at) => {
                if let Some(of_cpu) = self.state.batches.last_mut() {
                    of_cpu[at].push(page);
                }
            }
        }
        Ok(())
    }

    /// Whether a page was said to be in swap alone, at this place: it is still in the swap cache.
    /// Groups come after what is in swap.
    fn is_in_swap_cache(&mut self, page: &LruPage) -> bool {
        let OwnedBy::Process(at) = page.owner else { return false };
        let cached = !page.flags.mapped() && page.slot.is_some() && self.state.swapped.get(&at).copied() == page.slot;
        if cached {
            self.state.swapped.remove(&at);
        }
        cached
    }

    /// A line of which there is one is the first of its kind.
    fn is_said_once(&mut self, number: usize, words: &[&str]) -> Result<(), String> {
        let begins = match words {
            ["LRUVEC" | "LRUGEN" | "TIER", ..] if self.group.is_some() => return Ok(()),
            ["BIN", _, _, ..] => 3,
            ["STOCK", _, _, _] => 2,
            ["NODE" | "LRUVEC" | "LRUGEN" | "PROCESS" | "STOCK" | "NEXTSTOCK" | "BINS" | "ZONELIST", ..] => 1,
            ["OF", _] => 2,
            ["TIER", _, _, ..] => 3,
            ["EVENT", _, _] => 2,
            ["STAT" | "NUMA", _, _, ..] => 3,
            _ => return Ok(()),
        };
        let what = words[..begins].join(" ");
        match self.said.insert(what.clone(), number) {
            Some(line) => Err(format!("{what} is said in line {line} already: {AGAIN}")),
            None => Ok(()),
        }
    }

    /// A place in swap is no other page's.
    fn holds_one_page(&mut self, number: usize, swapped: bool, slot: u32) -> Result<(), String> {
        match self.places.insert((swapped, slot), number) {
            Some(line) => Err(format!("swap entry {slot:x} holds another page: line {line}: {AGAIN}")),
            None => Ok(()),
        }
    }

    /// Checks that need the whole file. An error has its line.
    fn finish(self) -> Result<LruState, (usize, String)> {
        self.nothing_is_left_out()?;
        if let Some(missing) = LISTS.iter().chain(&BATCHES).nth(self.headings) {
            return Err((1, format!("{missing} is missing")));
        }
        for (slot, page, line) in &self.slots {
            // The process has the page, or the place it is at.
            if !page.flags.mapped() && !self.held.contains(slot) {
                return Err((*line, format!("swap entry {slot:x} of page {} is held by nobody", page.pfn)));
            }
        }
        Ok(self.state)
    }

    /// The node, its LRU, and a threshold of whatever has counters.
    fn nothing_is_left_out(&self) -> Result<(), (usize, String)> {
        for (heading, names) in [("NODE", &NODE[..]), ("LRUVEC", &LRUVEC[..])] {
            let line = self.said.get(heading).copied().ok_or_else(|| (1, format!("{heading} is missing: {AGAIN}")))?;
            if let Some(missing) = names.iter().find(|name| !self.state.numbers.contains_key(**name)) {
                return Err((line, format!("{heading} has no '{missing}': {AGAIN}")));
            }
        }
        let of_counters = self.state.counters.keys().map(|(of, _)| of.as_str());
        for of in ["node"].into_iter().chain(of_counters) {
            if !self.state.thresholds.contains_key(of) {
                let counter =
                    |(what, line): (&String, &usize)| what.starts_with(&format!("STAT {of} ")).then_some(*line);
                let line = self.said.iter().find_map(counter).unwrap_or(1);
                return Err((line, format!("'STAT {of} threshold' is missing: {AGAIN}")));
            }
        }
        Ok(())
    }
}

/// Reads `2.1`: a generation, or `-` for none, and uses.
fn used(word: &str) -> Result<(Option<u8>, u8), String> {
    let wrong = || format!("'{word}' is no generation and number of uses, such as 2.1");
    let (generation, refs) = word.split_once('.').ok_or_else(wrong)?;
    let generation = match generation {
        "-" => None,
        n => Some(n.parse().ok().filter(|n| *n < 4).ok_or_else(wrong)?),
    };
    Ok((generation, refs.parse().map_err(|_| wrong())?))
}

fn integer(word: &str) -> Result<i64, String> {
    word.parse().map_err(|_| format!("'{word}' is no number"))
}

fn hexadecimal(word: &str) -> Result<u32, String> {
    u32::from_str_radix(word, 16).map_err(|_| format!("'{word}' is no hexadecimal number"))
}
