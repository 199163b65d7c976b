//! Memory control groups of a recorded machine: made before its first state, entered and limited by
//! operations, and compared in every state.

use super::host::Files;
use crate::error::BadRecording;
use crate::recording::lru::{GroupState, LISTS, LruPage, LruState, UNLIMITED};
use crate::recording::{CPU, NODE, Recording};
use crate::replay::daemons;
use crate::trace::lru::Answer;
use kontig_mm::state::PageCounter;
use kontig_mm::{
    Charge, ChargeFailure, Gfp, GroupId, GroupLimit, LruList, Memory, NodeStat, Order, OverHigh, Pfn, SetLimit, Step,
};

/// Makes the recording's groups, if it has any.
pub(super) fn enable(rec: &Recording, m: &mut Memory) -> Result<(), BadRecording> {
    if rec.about.groups.is_empty() {
        return Ok(());
    }
    let parents: Vec<GroupId> = rec.about.groups.iter().map(|parent| GroupId::new(*parent)).collect();
    m.enable_groups(&parents).map_err(|e| BadRecording::whole(rec.path("recording.toml"), e))?;
    let start = rec.lru_state("t0", NODE)?;
    if start.groups.len() != m.groups().len() {
        let reason = format!("has {} groups, and recording.toml {}", start.groups.len(), m.groups().len());
        return Err(BadRecording::whole(rec.path("t0.lru"), reason));
    }
    for (group, of) in m.groups().ids().zip(&start.groups) {
        let walk = &mut m.group_mut(group).walks[NODE.index()];
        walk.position = u16::try_from(of.number("position")).ok().map(GroupId::new);
        walk.rounds = of.number("round") as u32;
        let lruvec = m.lruvec_of_group(group, NODE);
        let vec = m.lruvec_mut(lruvec);
        vec.cost = [of.number("anon_cost") as u64, of.number("file_cost") as u64];
        vec.nonresident_age = of.number("nonresident_age") as u64;
        vec.refaults = [of.number("refaults_anon") as u64, of.number("refaults_file") as u64];
        if let Some(counted) = &mut vec.in_group {
            // A group counts what happened before, too: what it has beyond those below it.
            for (name, at) in items() {
                counted.flushed[at] = of.states.get(&name).copied().unwrap_or(0);
                counted.own[at] = counted.flushed[at];
            }
        }
    }
    for group in m.groups().ids().rev() {
        let Some(parent) = m.groups().get(group).parent else { continue };
        let below = m.lruvec_of_group(group, NODE);
        let Some(below) = m.lruvec_mut(below).in_group.as_ref().map(|counted| counted.flushed) else { continue };
        let above = m.lruvec_of_group(parent, NODE);
        if let Some(counted) = &mut m.lruvec_mut(above).in_group {
            counted.own.iter_mut().zip(below).for_each(|(own, pages)| *own -= pages);
        }
    }
    Ok(())
}

/// The counters of a group that are recorded, by the kernel's name and the engine's place.
fn items() -> impl Iterator<Item = (String, usize)> {
    let lists = LruList::EVICTABLE.into_iter().map(|list| (format!("nr_{}", list.name()), list.index()));
    let refaults = [
        NodeStat::WorkingsetRefaultAnon,
        NodeStat::WorkingsetRefaultFile,
        NodeStat::WorkingsetActivateAnon,
        NodeStat::WorkingsetActivateFile,
        NodeStat::WorkingsetRestoreAnon,
        NodeStat::WorkingsetRestoreFile,
    ];
    lists.chain(refaults.into_iter().map(|stat| (stat.name().to_string(), stat as usize)))
}

/// The numbers of all groups: name, the kernel's and the engine's.
pub(super) fn numbers(want: &LruState, m: &Memory) -> Vec<(String, String, String)> {
    let mut all = Vec::new();
    if !want.groups.is_empty() {
        let next = m.groups().next_stock(CPU).to_string();
        all.push(("the stock that makes room next".into(), want.number("next_stock").to_string(), next));
    }
    for (group, of) in m.groups().ids().zip(&want.groups) {
        let mut add = |what: &str, kernel: i64, engine: i64| {
            all.push((format!("{what} of group {}", group.index()), kernel.to_string(), engine.to_string()));
        };
        let is = m.groups().get(group);
        let limit = |pages: u64| if pages >= PageCounter::UNLIMITED { UNLIMITED } else { pages as i64 };
        for (name, engine) in [
            ("usage", is.memory.usage as i64),
            ("max", limit(is.memory.max)),
            ("high", limit(is.memory.high)),
            ("low", limit(is.memory.low)),
            ("min", limit(is.memory.min)),
            ("elow", limit(is.memory.elow)),
            ("emin", limit(is.memory.emin)),
            ("high_events", is.events.high as i64),
            ("max_events", is.events.max as i64),
            ("oom_events", is.events.oom as i64),
            ("position", is.walks[NODE.index()].position.map_or(-1, |at| at.index() as i64)),
            ("round", i64::from(is.walks[NODE.index()].rounds)),
        ] {
            add(name, of.number(name), engine);
        }
        // A CPU has at most one stock of a group. Without one, both sides' place is 0.
        let mut stocks = (0..).zip(m.groups().stocks(CPU).iter().copied());
        let (place, stock) = stocks.find(|(_, stock)| stock.group == Some(group)).unwrap_or_default();
        add("stock", of.number("stock"), stock.pages as i64);
        add("place of the stock", of.number("stock_place"), place);
        let vec = &m.lru().vecs()[m.lruvec_of_group(group, NODE).index()];
        let Some(counted) = &vec.in_group else { continue };
        for (name, at) in items() {
            add(&name, of.states.get(&name).copied().unwrap_or(0), counted.flushed[at].max(0));
        }
        if group == GroupId::ROOT {
            // Its lists' numbers are the node's.
            continue;
        }
        for (name, engine) in [
            ("anon_cost", vec.cost[0]),
            ("file_cost", vec.cost[1]),
            ("nonresident_age", vec.nonresident_age),
            ("refaults_anon", vec.refaults[0]),
            ("refaults_file", vec.refaults[1]),
        ] {
            add(name, of.number(name), engine as i64);
        }
    }
    all
}

/// The lists of all groups but the root's: their names, the kernel's pages and the engine's.
pub(super) fn lists<'a>(want: &'a LruState, m: &Memory) -> Vec<(String, &'a [LruPage], Vec<Pfn>)> {
    let of_group = |(group, of): (GroupId, &'a GroupState)| {
        let vec = &m.lru().vecs()[m.lruvec_of_group(group, NODE).index()];
        let lists = LISTS.iter().zip(&of.lists).zip(LruList::EVICTABLE);
        let named = |name: &str| format!("{name} of group {}", group.index());
        lists.map(|((name, pages), list)| (named(name), &pages[..], vec.list(list).collect())).collect::<Vec<_>>()
    };
    m.groups().ids().zip(&want.groups).skip(1).flat_map(of_group).collect()
}

/// The group whose age a shadow has.
pub(super) fn of_shadow(m: &Memory, shadow: &kontig_mm::Shadow) -> u16 {
    let groups = m.groups();
    let is = |group: &GroupId| m.lruvec_of_group(*group, NODE) == shadow.lruvec;
    groups.ids().find(is).map_or(0, |group| group.index() as u16)
}

/// Charges a page that has just been allocated; it is given back if that fails.
pub(super) fn charge(m: &mut Memory, host: &mut Files, pfn: Pfn, order: Order, group: GroupId, gfp: Gfp) -> bool {
    if !m.groups().are_kept() {
        return true;
    }
    let mut charge = Charge::new(CPU, group, u64::from(order.pages()), gfp);
    let done: Result<u64, ChargeFailure> = to_the_end(m, host, |m, host| charge.step(m, host));
    match done {
        Ok(over_high) => {
            host.over_high += over_high;
            m.commit_charge(pfn, group);
            true
        }
        Err(_) => {
            m.free(CPU, pfn, order);
            false
        }
    }
}

/// Steps until it is done.
fn to_the_end<T>(m: &mut Memory, host: &mut Files, mut step: impl FnMut(&mut Memory, &mut Files) -> Step<T>) -> T {
    loop {
        match step(m, host) {
            Step::Done(result) => return result,
            Step::Working => {}
            Step::Wait(_) => daemons::run(host, m),
        }
    }
}

/// Sets one of a group's limits.
pub(super) fn set_limit(
    m: &mut Memory,
    host: &mut Files,
    group: GroupId,
    limit: GroupLimit,
    pages: Option<u32>,
) -> Answer {
    if group == GroupId::ROOT || group.index() >= m.groups().len() {
        return Answer::Skipped;
    }
    let pages = pages.map_or(PageCounter::UNLIMITED, u64::from);
    let mut set = SetLimit::new(CPU, group, limit, pages);
    // The kernel takes the limit whether or not the group comes below it.
    to_the_end(m, host, |m, host| set.step(m, host));
    Answer::Number(0)
}

/// Does the work of the process before it leaves the kernel.
pub(super) fn return_to_user(m: &mut Memory, host: &mut Files) {
    let pages = std::mem::take(&mut host.over_high);
    if pages > 0 {
        let mut work = OverHigh::new(CPU, host.group, pages, Gfp::KERNEL);
        to_the_end(m, host, |m, host| work.step(m, host));
    }
}
