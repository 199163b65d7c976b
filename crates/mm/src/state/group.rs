//! Memory control groups: what each is charged, what limits and protects it, and where shared walks
//! of reclaim stand.
//!
//! A group's counter holds its own pages, those of the groups below it, and what CPUs have charged
//! in advance (their stocks, of one group or of several). Each group has LRU lists of its own on
//! each node. A machine without groups keeps nothing of this. Source: kernel-behaviour §4.11.

use super::MemcgLru;
use crate::rules::GroupCharges;
use crate::types::{CpuId, GroupId, GroupLimit, LruvecId, Pfn};
use alloc::vec;
use alloc::vec::Vec;

/// Pages charged at a time, so that the next charges find some in their CPU's stock.
pub(crate) const CHARGE_BATCH: u64 = 64;
/// Most groups that a CPU has stocks of.
const MAX_STOCKS: usize = 7;

/// The counter of a group, and what is set for it. In pages.
#[derive(Clone, Debug)]
pub struct PageCounter {
    pub usage: u64,
    pub max: u64,
    pub high: u64,
    pub low: u64,
    pub min: u64,
    /// The parts of `low` and `min` that hold against the reclaim that asked last.
    pub elow: u64,
    pub emin: u64,
    /// The part of the usage that `low` and `min` cover, as its parent has summed it up.
    low_usage: u64,
    min_usage: u64,
    children_low_usage: u64,
    children_min_usage: u64,
}

impl PageCounter {
    /// No limit, as the kernel counts pages: all that a signed byte count can say.
    pub const UNLIMITED: u64 = i64::MAX as u64 / 4096;

    const fn new() -> PageCounter {
        PageCounter {
            usage: 0,
            max: PageCounter::UNLIMITED,
            high: PageCounter::UNLIMITED,
            low: 0,
            min: 0,
            elow: 0,
            emin: 0,
            low_usage: 0,
            min_usage: 0,
            children_low_usage: 0,
            children_min_usage: 0,
        }
    }
}

/// Events of a group itself, as `memory.events.local` and `memory.stat` count them, without those
/// of the groups below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GroupEvents {
    /// Reclaim took from it although `low` covers it.
    pub low: u64,
    /// A task had to reclaim because it is above `high`.
    pub high: u64,
    /// A charge would have exceeded `max`.
    pub max: u64,
    /// Reclaim could not make room below `max`.
    pub oom: u64,
    /// Pages of its lists that requests and charges have scanned, and those they have reclaimed.
    pub pgscan_direct: u64,
    pub pgsteal_direct: u64,
    /// The same by kswapd.
    pub pgscan_kswapd: u64,
    pub pgsteal_kswapd: u64,
}

impl GroupEvents {
    /// Adds those of a group below it.
    pub fn add(&mut self, below: &GroupEvents) {
        let GroupEvents { low, high, max, oom, pgscan_direct, pgsteal_direct, pgscan_kswapd, pgsteal_kswapd } = self;
        *low += below.low;
        *high += below.high;
        *max += below.max;
        *oom += below.oom;
        *pgscan_direct += below.pgscan_direct;
        *pgsteal_direct += below.pgsteal_direct;
        *pgscan_kswapd += below.pgscan_kswapd;
        *pgsteal_kswapd += below.pgsteal_kswapd;
    }
}

/// Where the shared walk of reclaim over a group and those below it stands, on one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SharedWalk {
    /// The group it visited last; none if it has not begun this round.
    pub position: Option<GroupId>,
    /// Rounds that have ended.
    pub rounds: u32,
}

/// A group, its counter and its place in the tree.
#[derive(Clone, Debug)]
pub struct Group {
    /// None of the root.
    pub parent: Option<GroupId>,
    /// In the order they were made.
    children: Vec<GroupId>,
    /// Its number among its parent's children.
    place: usize,
    pub memory: PageCounter,
    pub events: GroupEvents,
    /// One for each node.
    pub walks: Vec<SharedWalk>,
}

/// Pages that a CPU has charged in advance for a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stock {
    /// None where it holds nothing; never the root.
    pub group: Option<GroupId>,
    pub pages: u64,
}

/// The stocks of a CPU, in places of which the kernel's rules say the number.
#[derive(Clone, Debug)]
struct Stocks {
    places: [Stock; MAX_STOCKS],
    nr: usize,
    /// The place that is given back when all are taken and another group needs one.
    next: usize,
}

impl Stocks {
    fn place_of(&self, group: Option<GroupId>) -> Option<usize> {
        self.places[..self.nr].iter().position(|stock| stock.group == group)
    }
}

/// All groups of a machine.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    all: Vec<Group>,
    /// Those of each CPU.
    stocks: Vec<Stocks>,
    /// The group that each page is charged to; of a block, its first page's counts. Empty where
    /// there are no groups.
    of_page: Vec<u16>,
    /// Sets of lists without groups; as many follow for each group.
    nodes: usize,
    /// In which order reclaim comes to them, on each node, where pages are in generations.
    orders: Vec<MemcgLru>,
}

impl Groups {
    pub(crate) fn new(parents: &[GroupId], charges: GroupCharges, nodes: usize, cpus: usize, frames: usize) -> Groups {
        let group = |parent| Group {
            parent,
            children: Vec::new(),
            place: 0,
            memory: PageCounter::new(),
            events: GroupEvents::default(),
            walks: vec![SharedWalk::default(); nodes],
        };
        let mut all = vec![group(None)];
        for parent in parents {
            let id = GroupId::new(all.len() as u16);
            let siblings = &mut all[parent.index()].children;
            let place = siblings.len();
            siblings.push(id);
            all.push(Group { place, ..group(Some(*parent)) });
        }
        let nr = if charges == GroupCharges::SevenStocksACpu { MAX_STOCKS } else { 1 };
        let stocks = Stocks { places: [Stock::default(); MAX_STOCKS], nr, next: 0 };
        let orders = vec![MemcgLru::new(all.len()); nodes];
        Groups { all, stocks: vec![stocks; cpus], of_page: vec![0; frames], nodes, orders }
    }

    /// Whether there are groups at all.
    #[inline(always)]
    pub fn are_kept(&self) -> bool {
        !self.of_page.is_empty()
    }
    /// Number of groups with the root; 0 where there are none.
    pub fn len(&self) -> usize {
        self.all.len()
    }
    /// Whether there are none, not even the root.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
    /// All ids, each after that of the group it is in.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = GroupId> + use<> {
        (0..self.all.len() as u16).map(GroupId::new)
    }
    /// The group of this number.
    pub fn get(&self, group: GroupId) -> &Group {
        &self.all[group.index()]
    }
    pub(crate) fn get_mut(&mut self, group: GroupId) -> &mut Group {
        &mut self.all[group.index()]
    }
    /// The stocks of a CPU, charged in advance, by place.
    pub fn stocks(&self, cpu: CpuId) -> &[Stock] {
        self.stocks.get(cpu.index()).map_or(&[], |stocks| &stocks.places[..stocks.nr])
    }
    /// The place of a CPU's stocks that makes room next.
    pub fn next_stock(&self, cpu: CpuId) -> usize {
        self.stocks.get(cpu.index()).map_or(0, |stocks| stocks.next)
    }
    /// The group that a page is charged to.
    #[inline(always)]
    pub fn of_page(&self, pfn: Pfn) -> GroupId {
        GroupId::new(self.of_page.get(pfn.index()).copied().unwrap_or(0))
    }
    pub(crate) fn set_of_page(&mut self, pfn: Pfn, group: GroupId) {
        self.of_page[pfn.index()] = group.index() as u16;
    }
    /// Sets of lists that one group has.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes
    }
    /// The lists of a group where the root's are these.
    pub(crate) fn lruvec(&self, group: GroupId, of_root: LruvecId) -> LruvecId {
        LruvecId::new(of_root.index() + group.index() * self.nodes)
    }
    /// The group that has these lists.
    pub(crate) fn group_of(&self, lruvec: LruvecId) -> GroupId {
        GroupId::new((lruvec.index() / self.nodes) as u16)
    }
    /// The root's lists on the same node.
    pub(crate) fn root_of(&self, lruvec: LruvecId) -> LruvecId {
        LruvecId::new(lruvec.index() % self.nodes)
    }

    /// The order in which reclaim comes to groups on the node with these lists.
    pub(crate) fn order(&self, of_root: LruvecId) -> &MemcgLru {
        &self.orders[of_root.index()]
    }
    /// The same, to be set.
    pub(crate) fn order_mut(&mut self, of_root: LruvecId) -> &mut MemcgLru {
        &mut self.orders[of_root.index()]
    }

    /// A group, then those it is in, up to the root.
    pub(crate) fn up(&self, group: GroupId) -> impl Iterator<Item = GroupId> + '_ {
        core::iter::successors(Some(group), |at| self.get(*at).parent)
    }
    /// Whether a group is another or below it.
    pub fn is_within(&self, group: GroupId, other: GroupId) -> bool {
        self.up(group).any(|at| at == other)
    }

    /// The group after `at` in a walk over `root` and all below it, parents first; the first of
    /// such a walk after none.
    pub(crate) fn next(&self, root: GroupId, at: Option<GroupId>) -> Option<GroupId> {
        let Some(at) = at else { return Some(root) };
        if let Some(child) = self.get(at).children.first() {
            return Some(*child);
        }
        let mut at = at;
        while at != root {
            let group = self.get(at);
            let parent = group.parent?;
            if let Some(next) = self.get(parent).children.get(group.place + 1) {
                return Some(*next);
            }
            at = parent;
        }
        None
    }

    /// Charges pages, level by level up to the root.
    ///
    /// # Errors
    /// The first group that would exceed its maximum; nothing is charged then.
    pub(crate) fn try_charge(&mut self, group: GroupId, pages: u64) -> Result<(), GroupId> {
        let mut at = Some(group);
        while let Some(id) = at {
            let memory = &mut self.get_mut(id).memory;
            if memory.usage + pages > memory.max {
                self.uncharge_below(group, id, pages);
                return Err(id);
            }
            memory.usage += pages;
            self.pass_on_protected(id);
            at = self.get(id).parent;
        }
        Ok(())
    }

    /// Charges pages whatever the limits are.
    pub(crate) fn charge(&mut self, group: GroupId, pages: u64) {
        let mut at = Some(group);
        while let Some(id) = at {
            self.get_mut(id).memory.usage += pages;
            self.pass_on_protected(id);
            at = self.get(id).parent;
        }
    }

    /// Takes pages off a group and all that it is in.
    pub(crate) fn uncharge(&mut self, group: GroupId, pages: u64) {
        let mut at = Some(group);
        while let Some(id) = at {
            self.uncharge_one(id, pages);
            at = self.get(id).parent;
        }
    }

    fn uncharge_below(&mut self, group: GroupId, end: GroupId, pages: u64) {
        let mut at = group;
        while at != end {
            self.uncharge_one(at, pages);
            at = self.get(at).parent.expect("the end is above");
        }
    }

    fn uncharge_one(&mut self, group: GroupId, pages: u64) {
        let memory = &mut self.get_mut(group).memory;
        memory.usage = memory.usage.checked_sub(pages).expect("no more is uncharged than was charged");
        self.pass_on_protected(group);
    }

    /// Tells a group's parent how much of its usage is protected.
    fn pass_on_protected(&mut self, group: GroupId) {
        let Group { parent: Some(parent), memory, .. } = self.get_mut(group) else { return };
        let (parent, low, min) = (*parent, memory.usage.min(memory.low), memory.usage.min(memory.min));
        let before = (core::mem::replace(&mut memory.low_usage, low), core::mem::replace(&mut memory.min_usage, min));
        let above = &mut self.get_mut(parent).memory;
        above.children_low_usage = above.children_low_usage + low - before.0;
        above.children_min_usage = above.children_min_usage + min - before.1;
    }

    /// Sets a limit, and nothing else: [`crate::SetLimit`] also does what follows from it.
    pub(crate) fn set(&mut self, group: GroupId, limit: GroupLimit, pages: u64) {
        let memory = &mut self.get_mut(group).memory;
        match limit {
            GroupLimit::Max => memory.max = pages,
            GroupLimit::High => memory.high = pages,
            GroupLimit::Low => memory.low = pages,
            GroupLimit::Min => memory.min = pages,
        }
        if matches!(limit, GroupLimit::Low | GroupLimit::Min) {
            let mut at = Some(group);
            while let Some(id) = at {
                self.pass_on_protected(id);
                at = self.get(id).parent;
            }
        }
    }

    /// Pages that a group has left below its maximum.
    pub(crate) fn margin(&self, group: GroupId) -> u64 {
        let memory = &self.get(group).memory;
        memory.max.saturating_sub(memory.usage)
    }

    /// Takes a charge from the CPU's stock; false if that is another group's, or too small.
    pub(crate) fn consume_stock(&mut self, cpu: CpuId, group: GroupId, pages: u64) -> bool {
        let stocks = &mut self.stocks[cpu.index()];
        let Some(place) = stocks.place_of(Some(group)).filter(|_| pages <= CHARGE_BATCH) else { return false };
        let stock = &mut stocks.places[place];
        let enough = stock.pages >= pages;
        if enough {
            stock.pages -= pages;
        }
        enough
    }

    /// Keeps what has been charged and is not needed yet. Where no place is left, another group's
    /// stock is given back.
    pub(crate) fn refill_stock(&mut self, cpu: CpuId, group: GroupId, pages: u64) {
        let stocks = &mut self.stocks[cpu.index()];
        let place = match stocks.place_of(Some(group)).or_else(|| stocks.place_of(None)) {
            Some(place) => place,
            None => {
                let place = stocks.next;
                stocks.next = (place + 1) % stocks.nr;
                self.drain_stock(cpu, place);
                place
            }
        };
        let stock = &mut self.stocks[cpu.index()].places[place];
        stock.group = Some(group);
        stock.pages += pages;
        if stock.pages > CHARGE_BATCH {
            self.drain_stock(cpu, place);
        }
    }

    fn drain_stock(&mut self, cpu: CpuId, place: usize) {
        let stock = core::mem::take(&mut self.stocks[cpu.index()].places[place]);
        if let Some(group) = stock.group {
            self.uncharge(group, stock.pages);
        }
    }

    /// Gives back all that a CPU has charged in advance, of each CPU that has some for a group or
    /// one below it.
    pub(crate) fn drain_all_stock(&mut self, root: GroupId) {
        for cpu in (0..self.stocks.len()).map(CpuId::new) {
            let is_below = |stock: &Stock| stock.group.is_some_and(|group| self.is_within(group, root));
            if self.stocks(cpu).iter().any(|stock| stock.pages > 0 && is_below(stock)) {
                (0..self.stocks[cpu.index()].nr).for_each(|place| self.drain_stock(cpu, place));
            }
        }
    }

    /// Works out which part of a group's protection holds against reclaim from `root`. Those it is
    /// in have been worked out before.
    pub(crate) fn calculate_protection(&mut self, root: GroupId, group: GroupId) {
        let (of, parent) = (&self.get(group).memory, self.get(group).parent);
        let Some(parent) = parent.filter(|_| group != root && of.usage > 0) else { return };
        let (elow, emin) = if parent == root {
            (of.low, of.min)
        } else {
            let above = &self.get(parent).memory;
            let part = |setting, parent_effective, siblings| {
                effective_protection(of.usage, above.usage, setting, parent_effective, siblings)
            };
            (part(of.low, above.elow, above.children_low_usage), part(of.min, above.emin, above.children_min_usage))
        };
        let memory = &mut self.get_mut(group).memory;
        (memory.elow, memory.emin) = (elow, emin);
    }
}

/// The part of a group's protection that its parent affords. Where the children claim more than
/// that, each gets its share of what they use under protection. Where they claim less, the rest is
/// shared by what they use beyond it, as on a hierarchy mounted with `memory_recursiveprot`.
fn effective_protection(usage: u64, parent_usage: u64, setting: u64, parent_effective: u64, siblings: u64) -> u64 {
    let protected = usage.min(setting);
    if siblings > parent_effective {
        return protected * parent_effective / siblings;
    }
    let unclaimed = if parent_effective > siblings && parent_usage > siblings && usage > protected {
        (parent_effective - siblings) * (usage - protected) / (parent_usage - siblings)
    } else {
        0
    };
    protected + unclaimed
}

#[cfg(test)]
mod tests {
    //! Figures are worked out by hand from the kernel's formulas.
    use super::*;

    const CPU: CpuId = CpuId::new(0);
    const OTHER_CPU: CpuId = CpuId::new(1);
    const ROOT: GroupId = GroupId::ROOT;
    const A: GroupId = GroupId::new(1);
    const B: GroupId = GroupId::new(2);
    const C: GroupId = GroupId::new(3);
    const D: GroupId = GroupId::new(4);

    /// A and D below the root, B and C below A.
    fn tree() -> Groups {
        Groups::new(&[ROOT, A, A, ROOT], GroupCharges::OneStockACpu, 1, 2, 16)
    }

    fn usage(groups: &Groups) -> [u64; 5] {
        [ROOT, A, B, C, D].map(|group| groups.get(group).memory.usage)
    }

    #[test]
    fn groups_are_visited_parents_first_in_the_order_they_were_made() {
        let groups = tree();
        let from = |root| core::iter::successors(groups.next(root, None), move |at| tree().next(root, Some(*at)));
        assert!(from(ROOT).eq([ROOT, A, B, C, D]));
        assert!(from(A).eq([A, B, C]));
        assert!(from(C).eq([C]));
    }

    #[test]
    fn a_charge_counts_up_to_the_root_or_not_at_all() {
        let mut groups = tree();
        groups.set(A, GroupLimit::Max, 100);
        assert_eq!(groups.try_charge(B, 70), Ok(()));
        assert_eq!((groups.try_charge(C, 31), usage(&groups)), (Err(A), [70, 70, 70, 0, 0]));
        assert_eq!((groups.try_charge(C, 30), usage(&groups)), (Ok(()), [100, 100, 70, 30, 0]));
        assert_eq!((groups.margin(A), groups.margin(B) > 1 << 40), (0, true));
        groups.uncharge(B, 70);
        assert_eq!(usage(&groups), [30, 30, 0, 30, 0]);
    }

    #[test]
    fn a_stock_is_one_groups_and_goes_back_when_another_needs_it() {
        let mut groups = tree();
        groups.charge(B, 64);
        groups.refill_stock(CPU, B, 63);
        assert!(groups.consume_stock(CPU, B, 60) && !groups.consume_stock(CPU, B, 4));
        assert!(!groups.consume_stock(CPU, C, 1) && !groups.consume_stock(OTHER_CPU, B, 1));
        groups.charge(C, 64);
        groups.refill_stock(CPU, C, 63);
        assert_eq!(usage(&groups), [125, 125, 61, 64, 0], "three of B's have gone back");
        groups.drain_all_stock(D);
        assert_eq!(groups.stocks(CPU), [Stock { group: Some(C), pages: 63 }], "it is not below D");
        groups.drain_all_stock(A);
        assert_eq!((usage(&groups), groups.stocks(CPU)), ([62, 62, 61, 1, 0], &[Stock::default()][..]));
        groups.charge(C, 65);
        groups.refill_stock(CPU, C, 65);
        assert_eq!(usage(&groups)[3], 1, "more than a batch is not kept");
    }

    #[test]
    fn of_seven_stocks_the_eighth_group_takes_the_oldest_place_and_all_go_back_together() {
        let parents = [ROOT; 9];
        let mut groups = Groups::new(&parents, GroupCharges::SevenStocksACpu, 1, 1, 16);
        let stocked = |groups: &Groups| -> Vec<usize> {
            groups.stocks(CPU).iter().map(|stock| stock.group.map_or(0, GroupId::index)).collect()
        };
        for group in (1..8).map(GroupId::new) {
            groups.charge(group, 64);
            groups.refill_stock(CPU, group, 10);
        }
        assert_eq!((stocked(&groups), groups.next_stock(CPU)), ((1..8).collect(), 0));
        for group in [8, 9].map(GroupId::new) {
            groups.charge(group, 64);
            groups.refill_stock(CPU, group, 10);
        }
        assert_eq!(stocked(&groups), [8, 9, 3, 4, 5, 6, 7]);
        assert_eq!([1, 3].map(|group| groups.get(GroupId::new(group)).memory.usage), [54, 64]);
        assert!(groups.consume_stock(CPU, GroupId::new(3), 10));
        groups.drain_all_stock(GroupId::new(3));
        assert_eq!(stocked(&groups)[2], 3, "it has nothing left to give back");
        groups.drain_all_stock(GroupId::new(4));
        assert_eq!(stocked(&groups), [0; 7]);
        assert_eq!(groups.get(GroupId::new(9)).memory.usage, 54);
        groups.refill_stock(CPU, GroupId::new(9), 1);
        assert_eq!((stocked(&groups)[0], groups.next_stock(CPU)), (9, 2), "the first that is free");
    }

    #[test]
    fn children_share_what_their_parent_affords() {
        let mut groups = tree();
        for (group, low, pages) in [(B, 300, 400), (C, 100, 150)] {
            groups.set(group, GroupLimit::Low, low);
            groups.charge(group, pages);
        }
        groups.set(A, GroupLimit::Low, 200);
        let effective = |groups: &mut Groups, root| {
            [A, B, C].map(|group| {
                groups.calculate_protection(root, group);
                groups.get(group).memory.elow
            })
        };
        // Both claim 400 of 200.
        assert_eq!(effective(&mut groups, ROOT), [200, 150, 50]);
        // Against reclaim from A they are protected by their own.
        assert_eq!(effective(&mut groups, A), [200, 300, 100]);
        groups.set(A, GroupLimit::Low, 475);
        // 75 are left, and 100 and 50 of 150 are used beyond what is claimed.
        assert_eq!(effective(&mut groups, ROOT), [475, 350, 125]);
    }

    #[test]
    fn a_group_without_pages_keeps_what_was_worked_out_for_it() {
        let mut groups = tree();
        groups.set(D, GroupLimit::Min, 10);
        groups.calculate_protection(ROOT, D);
        assert_eq!(groups.get(D).memory.emin, 0);
        groups.charge(D, 5);
        groups.calculate_protection(ROOT, D);
        assert_eq!(groups.get(D).memory.emin, 10);
    }
}
