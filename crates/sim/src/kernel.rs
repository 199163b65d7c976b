//! The kernel shared by all tasks: memory, processes' pages, and the charge for work.
//!
//! The engine counts work; the cost model turns the counts into time. A task's clock advances by
//! the time of its work and by its wait for zone locks that other CPUs hold.

use crate::base::barrier::Barriers;
use crate::base::context::Context;
use crate::base::cost::{CostModel, ns};
use crate::base::error::SimError;
use crate::base::memory_bus::MemoryBus;
use crate::base::numa::FarCosts;
use crate::base::queue::Queues;
use crate::base::timer::Timers;
use crate::base::traced::{Caller, Comm, Traced};
use crate::owner::Pages;
use crate::state::daemons::Daemons;
use crate::state::khugepaged::Khugepaged;
use crate::state::process::family::{Family, OomKill};
use kontig_mm::compact::Passed;
use kontig_mm::{AllocSlow, CpuId, Event, Listen, Memory, Work};
use kontig_translation::Processor;

/// State shared by all tasks: memory, user pages, costs, wait queues, timers and barriers.
#[derive(Clone)]
pub(crate) struct Kernel {
    pub(crate) mem: Memory,
    pub(crate) pages: Pages,
    pub(crate) family: Family,
    pub(crate) costs: CostModel,
    /// Extra costs of remote memory, if the machine file has them.
    pub(crate) far: Option<FarCosts>,
    pub(crate) bus: MemoryBus,
    /// The cost of address translation, if the machine file has it.
    pub(crate) processor: Option<Processor>,
    pub(crate) queues: Queues,
    pub(crate) timers: Timers,
    pub(crate) barriers: Barriers,
    pub(crate) daemons: Daemons,
    pub(crate) khugepaged: Khugepaged,
    /// The lock of each zone.
    zone_locks: Vec<SpinLock>,
    /// The lock of each LRU. Nobody waits for it here; asynchronous compaction asks whether it is
    /// held.
    lru_locks: Vec<SpinLock>,
    /// OOM kills, in order.
    pub(crate) oom_kills: Vec<OomKill>,
    /// An error that ends the machine's run after this turn.
    pub(crate) failed: Option<SimError>,
    pub(crate) work: Work,
    /// Time spent waiting for zone locks, ns.
    pub(crate) lock_wait_ns: u64,
    /// Events with their times. A task may run past another's next turn, so they are not in order
    /// yet.
    events: Vec<Traced>,
    /// How many of them have their task and CPU.
    signed: usize,
    /// The programs that the task has executed in this turn, and the number of events before each.
    executed: Vec<(&'static str, usize)>,
}

/// A lock that is held for the time of some work.
#[derive(Clone, Copy, Default)]
struct SpinLock {
    /// The last hold known, of this CPU. It may begin later than another task's next step, which
    /// then finds the lock free.
    from: u64,
    free_at: u64,
    cpu: CpuId,
    /// The last CPU whose hold another waited for, and when.
    wanted: Option<(CpuId, u64)>,
}

impl SpinLock {
    /// Whether another CPU holds it.
    fn is_held(&self, now: u64, cpu: CpuId) -> bool {
        (self.from..self.free_at).contains(&now) && self.cpu != cpu
    }

    /// Another CPU needs it at `now`, and gets it at `from` for this long.
    fn hold(&mut self, now: u64, from: u64, ns: u64, cpu: CpuId) {
        let wanted = if self.is_held(now, cpu) { Some((self.cpu, now)) } else { self.wanted };
        *self = SpinLock { from, free_at: from + ns, cpu, wanted };
    }

    /// Whether another CPU has waited for this one's hold since then.
    fn was_wanted(&self, since: u64, cpu: CpuId) -> bool {
        self.wanted.is_some_and(|(of, at)| of == cpu && at >= since)
    }
}

/// The most pageblocks a scanner may visit in one step. It bounds the time until the host can look
/// at the machine.
const MAX_BUDGET: u64 = 4096;

impl Kernel {
    pub(crate) fn new(mem: Memory, costs: CostModel) -> Kernel {
        let zone_locks = vec![SpinLock::default(); mem.zones().len()];
        let lru_locks = vec![SpinLock::default(); mem.lru().vecs().len()];
        let mut pages = Pages::new(mem.lru().is_ordered(), mem.profile().lru_gen.by_all_tiers());
        pages.spaces.mark_tables(mem.lru().has_generations());
        Kernel {
            mem,
            pages,
            family: Family::default(),
            bus: MemoryBus::new(&costs),
            costs,
            far: None,
            processor: None,
            queues: Queues::default(),
            timers: Timers::default(),
            barriers: Barriers::default(),
            daemons: Daemons::default(),
            khugepaged: Khugepaged::default(),
            zone_locks,
            lru_locks,
            oom_kills: Vec::new(),
            failed: None,
            work: Work::default(),
            lock_wait_ns: 0,
            events: Vec::new(),
            signed: 0,
            executed: Vec::new(),
        }
    }

    /// Notes that the task whose turn it is has another program's name from now on.
    pub(crate) fn executes(&mut self, name: &'static str) {
        self.executed.push((name, self.events.len()));
    }

    /// Charges the engine's work since the last charge to `now`. [`Kernel::charge`] also runs
    /// deferred work.
    #[inline(never)]
    pub(crate) fn charge_work(&mut self, now: &mut u64) {
        let w = self.mem.take_work();
        self.work.add(&w);
        let locked = self.costs.locked_ns(&w);
        let mut zones = w.zones;
        let mut begin = *now;
        while zones != 0 {
            begin = begin.max(self.zone_locks[zones.trailing_zeros() as usize].free_at);
            zones &= zones - 1;
        }
        self.lock_wait_ns += begin - *now;
        let cpu = self.pages.cpu;
        let mut zones = w.zones;
        while zones != 0 {
            self.zone_locks[zones.trailing_zeros() as usize].hold(*now, begin, locked, cpu);
            zones &= zones - 1;
        }
        let listed = self.costs.listed_ns(&w);
        let mut lrus = w.lrus;
        while lrus != 0 {
            let lock = &mut self.lru_locks[lrus.trailing_zeros() as usize];
            let from = begin.max(lock.free_at);
            lock.hold(begin, from, listed, cpu);
            lrus &= lrus - 1;
        }
        let shootdowns = self.pages.take_shootdowns();
        self.stamp(begin, &w, shootdowns);
        let walked = std::mem::take(&mut self.pages.walked);
        *now = begin + self.costs.work_ns(&w) + ns(shootdowns * self.costs.tlb_shootdown);
        let rmap_entries = std::mem::take(&mut self.pages.rmap_entries);
        *now += ns(walked * self.costs.walk_entry + rmap_entries * self.costs.rmap_entry);
        if w.migrated > 0 {
            // The cost of a migration already includes the copy by one thread.
            *now += self.bus.write(begin, w.migrated) - self.bus.alone(w.migrated);
        }
    }

    /// Tells the engine which locks other CPUs hold at `now`, and which of this CPU's holds since
    /// then they have waited for.
    #[inline]
    pub(crate) fn note_held_locks(&mut self, now: u64, since: u64) {
        let cpu = self.pages.cpu;
        let wanted = |locks: &[SpinLock]| {
            (0..).zip(locks).fold(0, |all, (i, lock)| all | u64::from(lock.was_wanted(since, cpu)) << i)
        };
        self.pages.wanted = (wanted(&self.zone_locks), wanted(&self.lru_locks));
        let held = |locks: &[SpinLock]| {
            (0..).zip(locks).fold(0, |all, (i, lock)| all | u64::from(lock.is_held(now, cpu)) << i)
        };
        self.pages.held = (held(&self.zone_locks), held(&self.lru_locks));
    }

    /// Dates the events of a step: `begin` plus the cost of the work done before each. TLB
    /// shootdowns are spread in proportion to the pages migrated.
    fn stamp(&mut self, begin: u64, whole: &Work, shootdowns: u64) {
        let (costs, events) = (&self.costs, &mut self.events);
        events.extend(self.mem.trace().take_with_work().map(|(event, done)| {
            let shot = (shootdowns * done.migrated).checked_div(whole.migrated).unwrap_or(0);
            let at_ns = begin + costs.work_ns(&done) + ns(shot * costs.tlb_shootdown);
            Traced { at_ns, cpu: CpuId::new(0), by: Caller::idle(), event }
        }));
    }

    /// Records an event of khugepaged, if the host listens to them.
    pub(crate) fn trace_huge_memory(&mut self, c: &Context, event: impl FnOnce() -> Event) {
        if self.mem.trace().listens_to(Listen::HUGE_MEMORY) {
            self.events.push(Traced { at_ns: c.now, cpu: c.cpu, by: Caller::idle(), event: event() });
        }
    }

    /// Whether a turn has left events without their task, or a name that its task lacks.
    #[inline(always)]
    pub(crate) fn has_unsigned_events(&self) -> bool {
        self.events.len() > self.signed || !self.executed.is_empty()
    }

    /// Notes that the task `by` ran on `cpu` when the events since the last call happened. It gets
    /// the name of the program it has executed.
    #[cold]
    pub(crate) fn sign_events(&mut self, cpu: CpuId, by: &mut Caller) {
        for (name, before) in std::mem::take(&mut self.executed) {
            self.sign_until(before, cpu, *by);
            by.comm = Comm::new(name);
        }
        self.sign_until(self.events.len(), cpu, *by);
    }

    fn sign_until(&mut self, end: usize, cpu: CpuId, by: Caller) {
        for traced in &mut self.events[self.signed..end] {
            (traced.cpu, traced.by) = (cpu, by);
        }
        self.signed = end;
    }

    /// Takes the events before `until`, by time; ties stay in the order recorded.
    pub(crate) fn take_events(&mut self, until: u64) -> Vec<Traced> {
        self.events.sort_by_key(|traced| traced.at_ns);
        let later = self.events.partition_point(|traced| traced.at_ns < until);
        let taken = self.events.drain(..later).collect();
        self.signed = self.events.len();
        taken
    }

    /// The number of pageblocks a scanner may visit before the horizon.
    pub(crate) fn budget(&self, c: &Context) -> u64 {
        budget(&self.costs, c)
    }

    /// Continues an unfinished walk over pageblocks, budget by budget as the request's steps would:
    /// each is charged separately, and the turn ends where it would have ended.
    pub(crate) fn walk_on(&mut self, c: &mut Context, slow: &mut AllocSlow) {
        if self.must_yield(c) {
            return;
        }
        let (costs, work) = (&self.costs, &mut self.work);
        slow.walk_on(&mut self.mem, budget(costs, c), |Passed { visited, hinted }| {
            work.blocks_visited += visited;
            work.blocks_hinted += hinted;
            c.now += costs.work_ns(&Work { blocks_visited: visited, blocks_hinted: hinted, ..Work::default() });
            (!c.is_over()).then(|| budget(costs, c))
        });
    }

    /// How many operations of `each_ns` can begin before the turn must end, if nothing wakes a task
    /// meanwhile.
    #[inline(always)]
    pub(crate) fn begun_in_turn(&self, c: &Context, each_ns: u64) -> u64 {
        let end = c.horizon.min(c.until).min(self.timers.next_at());
        if each_ns == 0 { u64::MAX } else { end.saturating_sub(c.now).div_ceil(each_ns) }
    }

    /// Whether the turn must end: another task's turn or an event is due, or a task was woken.
    #[inline(always)]
    pub(crate) fn must_yield(&self, c: &Context) -> bool {
        c.is_over() || self.mem.has_wakes() || self.queues.has_woken() || self.timers.next_at() <= c.now
    }
}

fn budget(costs: &CostModel, c: &Context) -> u64 {
    costs.blocks_in(c.horizon.saturating_sub(c.now)).clamp(32, MAX_BUDGET)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_by_another_cpu_while_its_work_lasts() {
        let (one, other) = (CpuId::new(0), CpuId::new(1));
        let lock = SpinLock { from: 1_000, free_at: 1_800, cpu: one, wanted: None };
        let held = |cpu| [999, 1_000, 1_799, 1_800].map(|now| lock.is_held(now, cpu));
        assert_eq!(held(other), [false, true, true, false]);
        assert_eq!(held(one), [false; 4]);
    }

    #[test]
    fn a_hold_is_wanted_where_another_cpu_comes_while_it_lasts() {
        let (one, other) = (CpuId::new(0), CpuId::new(1));
        let wanted = |comes_at, since| {
            let mut lock = SpinLock::default();
            lock.hold(1_000, 1_000, 800, one);
            lock.hold(comes_at, 1_800.max(comes_at), 100, other);
            [one, other].map(|cpu| lock.was_wanted(since, cpu))
        };
        assert_eq!(wanted(1_500, 1_000), [true, false]);
        assert_eq!(wanted(1_800, 1_000), [false, false], "it had been let go of");
        assert_eq!(wanted(1_500, 1_600), [false, false], "that was before the last step");
    }
}
