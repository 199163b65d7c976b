//! Charging pages to a memory control group: from the CPU's stock, else a batch at once; where a
//! limit is in the way, it is reclaimed for.
//!
//! A limit that is set below what a group uses is reclaimed for as well ([`SetLimit`]), and a task
//! that has charged above `memory.high` reclaims, and waits, before it goes on ([`OverHigh`]).
//! Source: kernel-behaviour §4.11.

use super::MAX_RECLAIM_RETRIES;
use super::direct::DirectReclaim;
use crate::gfp::Gfp;
use crate::owner::Owner;
use crate::state::{CHARGE_BATCH, Memory};
use crate::step::{Step, Wait};
use crate::types::{CLUSTER_MAX, CpuId, GroupId, GroupLimit, Order, Pfn};

/// Pages up to which a charge is tried again as long as reclaim finds any.
const CHEAP_PAGES: u64 = 8;
/// The kernel's clock ticks in a second, as Debian builds it (`CONFIG_HZ`).
const HZ: u64 = 250;
/// The longest wait of a task above `memory.high`, in ticks: two seconds.
const MOST_TICKS: u64 = 2 * HZ;

/// Why a charge failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChargeFailure {
    /// The group, or one it is in, has no room, and the request gives up.
    OverLimit,
    /// This group has no room, and reclaim finds nothing in it: a task in it must be killed, and
    /// then the charge may be tried anew.
    OutOfMemory(GroupId),
}

/// A charge in progress.
#[derive(Clone, Debug)]
pub struct Charge {
    cpu: CpuId,
    group: GroupId,
    gfp: Gfp,
    pages: u64,
    /// Pages that are tried: at first more than asked for.
    batch: u64,
    retries: u32,
    drained: bool,
    /// The reclaim, and the group whose limit it is for.
    reclaim: Option<(GroupId, DirectReclaim)>,
}

impl Charge {
    /// A charge of pages to a group, by a request with these flags.
    pub fn new(cpu: CpuId, group: GroupId, pages: u64, gfp: Gfp) -> Charge {
        let batch = pages.max(CHARGE_BATCH);
        Charge { cpu, group, gfp, pages, batch, retries: MAX_RECLAIM_RETRIES, drained: false, reclaim: None }
    }

    /// Tries the same pages again, once a task has been killed for them.
    pub fn try_again(&mut self) {
        self.retries = MAX_RECLAIM_RETRIES;
    }

    /// Advances, by a cluster of pages where it reclaims. Returns the pages by which the task has
    /// charged above `memory.high` of some group.
    pub fn step<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> Step<Result<u64, ChargeFailure>> {
        if self.group == GroupId::ROOT {
            return Step::Done(Ok(0));
        }
        loop {
            if let Some((over, reclaim)) = &mut self.reclaim {
                let reclaimed = match reclaim.step(m, owner) {
                    Step::Done(reclaimed) => reclaimed,
                    Step::Working => return Step::Working,
                    Step::Wait(wait) => return Step::Wait(wait),
                };
                let over = *over;
                self.reclaim = None;
                if let Some(failure) = self.gives_up(m, over, reclaimed) {
                    return Step::Done(self.fail(m, failure));
                }
            }
            if m.groups.consume_stock(self.cpu, self.group, self.pages) {
                return Step::Done(Ok(0));
            }
            let over = match m.groups.try_charge(self.group, self.batch) {
                Ok(()) => return Step::Done(Ok(self.charged(m))),
                Err(over) => over,
            };
            if self.batch > self.pages {
                self.batch = self.pages;
                continue;
            }
            let reclaims = self.gfp.has(Gfp::DIRECT_RECLAIM);
            if reclaims || self.is_forced() {
                m.groups.get_mut(over).events.max += 1;
            }
            if !reclaims {
                return Step::Done(self.fail(m, ChargeFailure::OverLimit));
            }
            let reclaim = DirectReclaim::of_group(m, self.cpu, over, self.pages, self.gfp);
            self.reclaim = Some((over, reclaim));
        }
    }

    /// The batch is charged: what is not needed yet stays in the CPU's stock.
    fn charged(&self, m: &mut Memory) -> u64 {
        if self.batch > self.pages {
            m.groups.refill_stock(self.cpu, self.group, self.batch - self.pages);
        }
        let is_high = |group: &GroupId| {
            let memory = &m.groups.get(*group).memory;
            memory.usage > memory.high
        };
        if m.groups.up(self.group).any(|group| is_high(&group)) { self.batch } else { 0 }
    }

    /// Whether to give up after a reclaim for a group, and how.
    fn gives_up(&mut self, m: &mut Memory, over: GroupId, reclaimed: u64) -> Option<ChargeFailure> {
        if m.groups.margin(over) >= self.pages {
            return None;
        }
        if !core::mem::replace(&mut self.drained, true) {
            m.groups.drain_all_stock(over);
            return None;
        }
        if self.gfp.has(Gfp::NORETRY) {
            return Some(ChargeFailure::OverLimit);
        }
        if reclaimed > 0 && self.pages <= CHEAP_PAGES {
            return None;
        }
        if self.retries > 0 {
            self.retries -= 1;
            return None;
        }
        if self.gfp.has(Gfp::RETRY_MAYFAIL) || self.pages > CHEAP_PAGES {
            return Some(ChargeFailure::OverLimit);
        }
        m.groups.get_mut(over).events.oom += 1;
        Some(ChargeFailure::OutOfMemory(over))
    }

    /// Whether the charge is made above the limit rather than fail.
    fn is_forced(&self) -> bool {
        self.gfp.has(Gfp::NOFAIL) || self.gfp.has(Gfp::HIGH)
    }

    fn fail(&self, m: &mut Memory, failure: ChargeFailure) -> Result<u64, ChargeFailure> {
        if !self.is_forced() {
            return Err(failure);
        }
        m.groups.charge(self.group, self.pages);
        Ok(0)
    }
}

/// The work of a task that has charged above `memory.high`, before it goes on.
#[derive(Clone, Debug)]
pub struct OverHigh {
    cpu: CpuId,
    group: GroupId,
    gfp: Gfp,
    /// Pages that it charged there.
    pages: u64,
    again: bool,
    retries: u32,
    /// The group that is looked at next.
    at: Option<GroupId>,
    reclaimed: u64,
    reclaim: Option<DirectReclaim>,
    waited: bool,
}

impl OverHigh {
    /// The work of a task in this group.
    pub fn new(cpu: CpuId, group: GroupId, pages: u64, gfp: Gfp) -> OverHigh {
        let (at, retries) = (Some(group), MAX_RECLAIM_RETRIES);
        OverHigh { cpu, group, gfp, pages, again: false, retries, at, reclaimed: 0, reclaim: None, waited: false }
    }

    /// Advances by a cluster of pages.
    pub fn step<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> Step<()> {
        loop {
            if self.waited {
                return Step::Done(());
            }
            if let Some(reclaim) = &mut self.reclaim {
                match reclaim.step(m, owner) {
                    Step::Done(reclaimed) => self.reclaimed += reclaimed,
                    Step::Working => return Step::Working,
                    Step::Wait(wait) => return Step::Wait(wait),
                }
                self.reclaim = None;
            }
            if let Some(group) = self.at {
                self.at = m.groups.get(group).parent.filter(|parent| *parent != GroupId::ROOT);
                let of = m.groups.get_mut(group);
                if of.memory.usage > of.memory.high {
                    of.events.high += 1;
                    let pages = if self.again { u64::from(CLUSTER_MAX) } else { self.pages };
                    self.reclaim = Some(DirectReclaim::of_group(m, self.cpu, group, pages, self.gfp));
                }
                continue;
            }
            let ticks = self.delay(m);
            if ticks <= HZ / 100 {
                return Step::Done(());
            }
            if self.reclaimed > 0 || self.retries > 0 {
                self.retries -= u32::from(self.reclaimed == 0);
                (self.again, self.at, self.reclaimed) = (true, Some(self.group), 0);
                continue;
            }
            self.waited = true;
            return Step::Wait(Wait::Time(ticks * (1_000_000_000 / HZ)));
        }
    }

    /// How long the task should wait: by the square of how far above its mark the worst of its
    /// groups is.
    fn delay(&self, m: &Memory) -> u64 {
        let overage = |group: GroupId| {
            let memory = &m.groups.get(group).memory;
            let over = memory.usage.saturating_sub(memory.high);
            (u128::from(over) << 20) / u128::from(memory.high.max(1))
        };
        let above = m.groups.up(self.group).filter(|group| *group != GroupId::ROOT);
        let most = above.map(overage).max().unwrap_or(0);
        let ticks = ((most * most * u128::from(HZ)) >> 34) * u128::from(self.pages) / u128::from(CHARGE_BATCH);
        ticks.min(u128::from(MOST_TICKS)) as u64
    }
}

/// A write to one of a group's limits.
#[derive(Clone, Debug)]
pub struct SetLimit {
    cpu: CpuId,
    group: GroupId,
    limit: GroupLimit,
    pages: u64,
    written: bool,
    drained: bool,
    retries: u32,
    reclaim: Option<DirectReclaim>,
}

impl SetLimit {
    /// A write of this many pages.
    pub fn new(cpu: CpuId, group: GroupId, limit: GroupLimit, pages: u64) -> SetLimit {
        let retries = MAX_RECLAIM_RETRIES;
        SetLimit { cpu, group, limit, pages, written: false, drained: false, retries, reclaim: None }
    }

    /// Advances by a cluster of pages. False if the group still uses more than its maximum, and a
    /// task in it must be killed.
    pub fn step<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> Step<bool> {
        if !core::mem::replace(&mut self.written, true) {
            m.groups.set(self.group, self.limit, self.pages);
        }
        if matches!(self.limit, GroupLimit::Low | GroupLimit::Min) {
            return Step::Done(true);
        }
        loop {
            if let Some(reclaim) = &mut self.reclaim {
                let reclaimed = match reclaim.step(m, owner) {
                    Step::Done(reclaimed) => reclaimed,
                    Step::Working => return Step::Working,
                    Step::Wait(wait) => return Step::Wait(wait),
                };
                self.reclaim = None;
                if reclaimed == 0 && !self.goes_on() {
                    return Step::Done(true);
                }
            }
            let usage = m.groups.get(self.group).memory.usage;
            if usage <= self.pages {
                return Step::Done(true);
            }
            if !core::mem::replace(&mut self.drained, true) {
                m.groups.drain_all_stock(self.group);
                continue;
            }
            if self.limit == GroupLimit::Max && self.retries == 0 {
                m.groups.get_mut(self.group).events.oom += 1;
                return Step::Done(false);
            }
            let pages = usage - self.pages;
            self.reclaim = Some(DirectReclaim::of_group(m, self.cpu, self.group, pages, Gfp::KERNEL));
        }
    }

    /// Reclaim has found nothing: whether it is tried again. For `max` the loop itself ends.
    fn goes_on(&mut self) -> bool {
        let left = self.retries > 0;
        self.retries = self.retries.saturating_sub(1);
        left || self.limit == GroupLimit::Max
    }
}

impl Memory {
    /// Charges pages to a group if no limit is in the way, without more effort. Returns the pages
    /// by which the task has charged above `memory.high`; `None` if it takes a [`Charge`].
    pub fn charge_if_room(&mut self, cpu: CpuId, group: GroupId, pages: u64) -> Option<u64> {
        if self.groups.consume_stock(cpu, group, pages) {
            return Some(0);
        }
        let charge = Charge::new(cpu, group, pages, Gfp::KERNEL);
        self.groups.try_charge(group, charge.batch).ok()?;
        Some(charge.charged(self))
    }

    /// Notes which group a page is charged to, before it joins the LRU.
    pub fn commit_charge(&mut self, pfn: Pfn, group: GroupId) {
        if self.groups.are_kept() {
            self.groups.set_of_page(pfn, group);
        }
    }

    /// The same, and charges the pages at once, above any limit: for pages that are there already.
    pub fn charge_at_once(&mut self, pfn: Pfn, order: Order, group: GroupId) {
        if self.groups.are_kept() && group != GroupId::ROOT {
            self.groups.charge(group, u64::from(order.pages()));
            self.groups.set_of_page(pfn, group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{AllMove, linux, ordered_machine_with};

    const CPU: CpuId = CpuId::new(0);
    const GROUP: GroupId = GroupId::new(1);

    /// A machine with a group of this maximum, which has nothing to reclaim.
    fn limited(max: u64) -> Memory {
        let mut m = ordered_machine_with(1, linux("6.12"));
        m.enable_groups(&[GroupId::ROOT]).expect("6.12 has groups");
        m.groups.set(GROUP, GroupLimit::Max, max);
        m
    }

    fn charge(m: &mut Memory, pages: u64, gfp: Gfp) -> Result<u64, ChargeFailure> {
        let mut charge = Charge::new(CPU, GROUP, pages, gfp);
        loop {
            if let Step::Done(result) = charge.step(m, &mut AllMove) {
                return result;
            }
        }
    }

    fn usage(m: &Memory) -> (u64, u64) {
        (m.groups.get(GROUP).memory.usage, m.groups.stocks(CPU)[0].pages)
    }

    #[test]
    fn a_batch_is_charged_at_once_and_near_the_limit_what_is_needed() {
        let mut m = limited(100);
        assert_eq!((charge(&mut m, 1, Gfp::KERNEL), usage(&m)), (Ok(0), (64, 63)));
        assert_eq!((charge(&mut m, 60, Gfp::KERNEL), usage(&m)), (Ok(0), (64, 3)));
        assert_eq!((charge(&mut m, 36, Gfp::KERNEL), usage(&m)), (Ok(0), (100, 3)));
        assert_eq!((charge(&mut m, 3, Gfp::KERNEL), usage(&m)), (Ok(0), (100, 0)));
    }

    #[test]
    fn a_charge_that_has_room_is_the_same_without_steps() {
        let mut m = limited(100);
        assert_eq!((m.charge_if_room(CPU, GROUP, 1), usage(&m)), (Some(0), (64, 63)));
        assert_eq!((m.charge_if_room(CPU, GROUP, 60), usage(&m)), (Some(0), (64, 3)));
        assert_eq!((m.charge_if_room(CPU, GROUP, 4), usage(&m)), (None, (64, 3)), "a batch has no room");
        m.groups.set(GROUP, GroupLimit::Max, 1000);
        m.groups.set(GROUP, GroupLimit::High, 100);
        assert_eq!((m.charge_if_room(CPU, GROUP, 4), usage(&m)), (Some(64), (128, 63)));
    }

    #[test]
    fn a_request_without_reclaim_fails_at_once_and_others_after_sixteen_times_in_vain() {
        let mut m = limited(10);
        assert_eq!(charge(&mut m, 10, Gfp::KERNEL), Ok(0));
        assert_eq!(charge(&mut m, 1, Gfp::KSWAPD_RECLAIM), Err(ChargeFailure::OverLimit));
        let events = |m: &Memory| (m.groups.get(GROUP).events.max, m.groups.get(GROUP).events.oom);
        assert_eq!(events(&m), (0, 0));
        assert_eq!(charge(&mut m, 1, Gfp::KERNEL | Gfp::NORETRY), Err(ChargeFailure::OverLimit));
        assert_eq!(events(&m), (2, 0), "once more after the stocks have been given back");
        assert_eq!(charge(&mut m, 1, Gfp::KERNEL), Err(ChargeFailure::OutOfMemory(GROUP)));
        assert_eq!(events(&m), (2 + 18, 1));
        assert_eq!(charge(&mut m, 16, Gfp::KERNEL), Err(ChargeFailure::OverLimit), "nobody is killed for 16 pages");
        assert_eq!((charge(&mut m, 1, Gfp::KERNEL | Gfp::NOFAIL), usage(&m).0), (Ok(0), 11), "above the limit");
    }

    #[test]
    fn after_a_kill_a_charge_tries_sixteen_times_more_and_no_batch_again() {
        let mut m = limited(10);
        assert_eq!(charge(&mut m, 10, Gfp::KERNEL), Ok(0));
        let mut charge = Charge::new(CPU, GROUP, 1, Gfp::KERNEL);
        let run = |charge: &mut Charge, m: &mut Memory| {
            loop {
                if let Step::Done(result) = charge.step(m, &mut AllMove) {
                    return (result, m.groups.get(GROUP).events.max, m.groups.get(GROUP).events.oom);
                }
            }
        };
        let killed = Err(ChargeFailure::OutOfMemory(GROUP));
        assert_eq!(run(&mut charge, &mut m), (killed, 18, 1), "once more after the stocks have been given back");
        charge.try_again();
        assert_eq!(run(&mut charge, &mut m), (killed, 18 + 17, 2), "they are given back once");
        charge.try_again();
        m.groups.set(GROUP, GroupLimit::Max, 100);
        assert_eq!(run(&mut charge, &mut m), (Ok(0), 35, 2));
        assert_eq!(usage(&m), (11, 0), "what is needed, no batch");
    }

    #[test]
    fn a_task_above_the_high_mark_waits_by_the_square_of_how_far() {
        let mut m = limited(1 << 30);
        m.groups.set(GROUP, GroupLimit::High, 1000);
        assert_eq!(charge(&mut m, 960, Gfp::KERNEL), Ok(0));
        assert_eq!(charge(&mut m, 1, Gfp::KERNEL), Ok(64), "the batch is above the mark");
        let ticks = |m: &Memory| OverHigh::new(CPU, GROUP, 64, Gfp::KERNEL).delay(m);
        // 24 of 1000: 25165² × 250 >> 34.
        assert_eq!(ticks(&m), 9);
        m.groups.charge(GROUP, 976);
        assert_eq!(ticks(&m), MOST_TICKS, "twice as much as it should");
        let mut work = OverHigh::new(CPU, GROUP, 64, Gfp::KERNEL);
        let wait = loop {
            match work.step(&mut m, &mut AllMove) {
                Step::Wait(wait) => break wait,
                step => assert_eq!(step, Step::Working),
            }
        };
        assert_eq!(wait, Wait::Time(2_000_000_000));
        assert_eq!(m.groups.get(GROUP).events.high, 17);
        assert_eq!(work.step(&mut m, &mut AllMove), Step::Done(()));
    }

    #[test]
    fn a_maximum_that_cannot_be_met_asks_for_a_task_to_be_killed() {
        let mut m = limited(1000);
        m.groups.charge(GROUP, 500);
        let mut set = SetLimit::new(CPU, GROUP, GroupLimit::Max, 400);
        let met = loop {
            if let Step::Done(met) = set.step(&mut m, &mut AllMove) {
                break met;
            }
        };
        assert_eq!((met, m.groups.get(GROUP).memory.max, m.groups.get(GROUP).events.oom), (false, 400, 1));
    }
}
