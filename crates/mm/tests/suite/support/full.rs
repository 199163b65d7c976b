//! A small machine full of reclaimable pages, and a model of their owners.
//!
//! [`Full::apply`] does one operation; [`Full::verify`] then runs the engine's checker and compares
//! the machine with the [`Tenant`]'s accounts. Operations that make no sense in the present state
//! do nothing.

use super::tenant::{Evicted, OBJECTS_PER_PAGE, Page, Temper, Tenant};
use super::{Ask, Kernel, Plan, every_page_is_somewhere, has_no_end, leaving, none_fell};
use kontig_mm::kcompactd::{Kcompactd, NodeSweep};
use kontig_mm::kswapd::Kswapd;
use kontig_mm::snapshot::ZoneSnapshot;
use kontig_mm::state::{BatchKind, Generations};
use kontig_mm::*;

/// Steps after which an operation that must end is taken to be endless.
const STEPS_MAX: u32 = 400_000;

/// Waits for kswapd after which a request is given up on kernels that have endless requests.
const ENDLESS_WAITS: u32 = 1_000;
/// Steps of requests after which dirty pages are old.
const STEPS_TO_WRITE: u32 = 2_000;

/// The kind of a new page and its initial state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kind {
    pub anon: bool,
    pub active: bool,
    pub dirty: bool,
    pub mapped: bool,
    pub private: bool,
}

/// A change of a page's state outside the LRU.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    Dirty,
    Mapped,
    Pinned,
    Locked,
    Held,
    Private,
    Writeback,
}

/// One operation. Numbers that choose something are taken modulo the number of choices.
#[derive(Clone, Copy, Debug)]
pub enum Do {
    /// Allocates a page of this kind, on the slow path if necessary.
    Fault(Ask, Kind),
    /// Allocates this many on the fast path only.
    Fill(Ask, u16, Kind),
    /// Allocates this many kernel blocks.
    Kernel(Ask, u16),
    /// Adds objects to a cache, with the pages they lie in.
    Cache {
        number: usize,
        pages: u8,
        cpu: usize,
    },
    /// Evicted pages come back.
    Refault {
        which: usize,
        count: u8,
        cpu: usize,
    },
    /// Uses every `stride`th page this many times.
    Use {
        stride: usize,
        phase: usize,
        times: u8,
        cpu: usize,
    },
    /// Has a generation begin.
    Age {
        node: usize,
        swappiness: Option<u8>,
        force: bool,
    },
    /// Has the oldest generation evicted.
    Evict {
        node: usize,
        swappiness: Option<u8>,
        pages: u16,
    },
    Deactivate {
        stride: usize,
        phase: usize,
        cpu: usize,
    },
    /// Marks clean anonymous pages outside the swap cache as lazyfree.
    Lazyfree {
        stride: usize,
        phase: usize,
        cpu: usize,
    },
    DeactivateFile {
        stride: usize,
        phase: usize,
        cpu: usize,
    },
    Change {
        stride: usize,
        phase: usize,
        what: Change,
        to: bool,
    },
    /// Ends all writeback in progress.
    EndWriteback {
        cpu: usize,
        dirty_again: bool,
    },
    Free {
        which: usize,
        cpu: usize,
    },
    FreeSome {
        stride: usize,
        phase: usize,
        cpu: usize,
    },
    SlowStart(Ask),
    SlowStep {
        which: usize,
        steps: u8,
    },
    KswapdStep {
        node: usize,
        steps: u8,
        nap_over: bool,
    },
    KcompactdStep {
        node: usize,
        steps: u8,
    },
    SweepStart {
        node: usize,
        cpu: usize,
    },
    SweepStep {
        steps: u8,
    },
    LruDrain {
        cpu: usize,
    },
    LruDrainAll,
    DrainCpu {
        cpu: usize,
    },
    FoldVmstat {
        cpu: usize,
    },
    Sysctl {
        name: &'static str,
        value: &'static str,
    },
    Temper(Temper),
}

/// When a daemon runs next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rest {
    Asleep,
    Napping,
    Runnable,
}

/// A machine with its tenant and daemons, all of whose parts a random history can drive.
pub struct Full {
    pub m: Memory,
    pub tenant: Tenant,
    /// Moves batches after every operation.
    pub eager: bool,
    /// Requests on the slow path, and how often each has waited for kswapd.
    slow: Vec<(AllocSlow, Ask, u32)>,
    /// Steps that requests have taken.
    steps: u32,
    sweeps: Vec<NodeSweep>,
    kswapds: Vec<(Kswapd, Rest)>,
    kcompactds: Vec<(Kcompactd, Rest)>,
    last_vmstat: Vmstat,
}

impl Full {
    /// A machine with an ordered LRU and this many pages of swap.
    pub fn new(plan: &Plan, swap: u64) -> Full {
        Full::with_lru(plan, swap, true)
    }

    /// A machine with or without an ordered LRU.
    pub fn with_lru(plan: &Plan, swap: u64, lru: bool) -> Full {
        let mut m = Memory::new(&MachineSpec { lru, ..plan.spec() }, plan.profile()).expect("plans are valid");
        if matches!(plan.kernel, Kernel::Generations | Kernel::GenerationsByAllTiers) {
            m.enable_lru_gen(kontig_mm::state::LruGen::ALL).expect("the kernel has generations");
            m.lru_gen_add_mm(0, GroupId::ROOT);
        }
        let frames = m.zones().iter().map(|z| z.end.index()).max().unwrap_or(0);
        let nodes = m.nodes().len();
        let cpu_of = |n: usize| m.nodes()[n].cpus.first().copied().unwrap_or_default();
        let mut full = Full {
            tenant: Tenant::new(frames, swap),
            eager: false,
            slow: Vec::new(),
            steps: 0,
            sweeps: Vec::new(),
            kswapds: (0..nodes).map(|n| (Kswapd::new(NodeId::new(n), cpu_of(n)), Rest::Asleep)).collect(),
            kcompactds: (0..nodes).map(|n| (Kcompactd::new(NodeId::new(n), cpu_of(n)), Rest::Asleep)).collect(),
            last_vmstat: m.vmstat().clone(),
            m,
        };
        full.tell();
        full
    }

    fn cpu(&self, i: usize) -> CpuId {
        CpuId::new(i % self.m.nr_cpus())
    }
    /// A node's lists, and the number of one of its generations.
    fn generations(&self, node: usize, of: impl Fn(&Generations) -> u64) -> (LruvecId, u64) {
        let node = node % self.m.nodes().len();
        (LruvecId::new(node), of(self.m.lru().vecs()[node].gens()))
    }
    fn asked_for(&self, r: Ask) -> Request {
        let node = NodeId::new(r.node % self.m.nodes().len());
        Request::new(self.cpu(r.cpu), node, r.gfp, Order::new(r.order))
    }

    /// Passes the engine's wake-ups on to the daemons, and the free swap to the engine.
    fn tell(&mut self) {
        self.m.set_swap(self.tenant.swap);
        for woken in self.m.take_wakes() {
            match woken {
                Daemon::Kswapd(node) => self.kswapds[node.index()].1 = Rest::Runnable,
                Daemon::Kcompactd(node) => self.kcompactds[node.index()].1 = Rest::Runnable,
            }
        }
    }

    /// Tells the engine which pages are in the swap cache.
    fn tell_of_swap_cache(&mut self) {
        let users = self.tenant.pages.values().filter(|page| page.user && page.state.anon);
        users.for_each(|page| self.m.set_swap_cache(page.pfn, page.state.swap_cache));
    }

    pub fn apply(&mut self, op: &Do) {
        self.m.lru_gen_use_mm(0);
        match *op {
            Do::Fault(r, kind) => {
                if let Some(id) = self.alloc_to_end(r) {
                    self.becomes_users(id, r.cpu, kind, None);
                }
            }
            Do::Fill(r, n, kind) => {
                for _ in 0..n {
                    let Some(id) = self.alloc(r) else { break };
                    self.becomes_users(id, r.cpu, kind, None);
                }
            }
            Do::Kernel(r, n) => drop((0..n).map_while(|_| self.alloc(r)).count()),
            Do::Cache { number, pages, cpu } => self.grow_cache(number % self.tenant.caches.len(), pages, cpu),
            Do::Refault { which, count, cpu } => (0..count).for_each(|_| self.refault(which, cpu)),
            Do::Use { stride, phase, times, cpu } => {
                for id in self.users(stride, phase) {
                    let pfn = self.tenant.pages[&id].pfn;
                    (0..times).for_each(|_| self.m.mark_accessed(self.cpu(cpu), pfn));
                }
            }
            Do::Age { .. } | Do::Evict { .. } if !self.m.lru().has_generations() => {}
            Do::Age { node, swappiness, force } => {
                let (lruvec, seq) = self.generations(node, |gens| gens.max_seq);
                // What is refused changes nothing.
                let _ = self.m.lru_gen_age(&mut self.tenant, CpuId::new(0), lruvec, seq, swappiness, force);
                self.tell();
            }
            Do::Evict { node, swappiness, pages } => {
                let (lruvec, seq) = self.generations(node, |gens| gens.min_seq[1]);
                let _ = self.m.lru_gen_evict(&mut self.tenant, CpuId::new(0), lruvec, seq, swappiness, pages.into());
                self.tell();
            }
            Do::Deactivate { stride, phase, cpu } => {
                for id in self.users(stride, phase) {
                    self.m.deactivate(self.cpu(cpu), self.tenant.pages[&id].pfn);
                }
            }
            Do::Lazyfree { stride, phase, cpu } => {
                for id in self.users(stride, phase) {
                    let Page { pfn, state, .. } = self.tenant.pages[&id];
                    if state.anon && !state.swap_cache {
                        self.m.lazyfree(self.cpu(cpu), pfn);
                    }
                }
            }
            Do::DeactivateFile { stride, phase, cpu } => {
                for id in self.users(stride, phase) {
                    let Page { pfn, state, .. } = self.tenant.pages[&id];
                    if !state.anon && !state.mapped {
                        self.m.deactivate_file(self.cpu(cpu), pfn, state.dirty || state.writeback);
                    }
                }
            }
            Do::Change { stride, phase, what, to } => self.change(stride, phase, what, to),
            Do::EndWriteback { cpu, dirty_again } => self.end_writeback(cpu, dirty_again),
            Do::Free { which, cpu } => {
                if let Some(id) = self.tenant.nth(which, |p| !p.state.writeback) {
                    self.free(id, cpu);
                }
            }
            Do::FreeSome { stride, phase, cpu } => {
                let all = self.tenant.pages.iter().filter(|(_, p)| !p.state.writeback).map(|(id, _)| *id);
                let ids: Vec<u32> = all.skip(phase % stride).step_by(stride).collect();
                ids.into_iter().for_each(|id| self.free(id, cpu));
            }
            Do::SlowStart(r) => {
                if self.slow.len() < 4 {
                    self.slow.push((AllocSlow::new(&self.m, self.asked_for(r)), r, 0));
                }
            }
            Do::SlowStep { which, steps } => {
                for _ in 0..steps {
                    if self.slow.is_empty() || self.slow_step(which % self.slow.len()).is_some() {
                        break;
                    }
                }
            }
            Do::KswapdStep { node, steps, nap_over } => {
                (0..steps).for_each(|_| self.kswapd_step(node % self.kswapds.len(), nap_over));
            }
            Do::KcompactdStep { node, steps } => {
                (0..steps).for_each(|_| self.kcompactd_step(node % self.kcompactds.len(), true));
            }
            Do::SweepStart { node, cpu } => {
                if self.sweeps.len() < 2 {
                    let node = NodeId::new(node % self.m.nodes().len());
                    self.sweeps.push(NodeSweep::new(node, self.cpu(cpu), false));
                }
            }
            Do::SweepStep { steps } => {
                for _ in 0..steps {
                    let Some(sweep) = self.sweeps.last_mut() else { break };
                    if sweep.step(&mut self.m, &mut self.tenant, 4) == Step::Done(()) {
                        self.sweeps.pop();
                    }
                }
            }
            Do::LruDrain { cpu } => self.m.lru_add_drain(self.cpu(cpu)),
            Do::LruDrainAll => self.m.lru_add_drain_all(),
            Do::DrainCpu { cpu } => self.m.drain_cpu(self.cpu(cpu)),
            Do::FoldVmstat { cpu } => self.m.vmstat_update(self.cpu(cpu)),
            Do::Sysctl { name, value } => {
                if self.m.sysctl_write(name, value).is_ok() && name == "lru_gen.enabled" {
                    self.tell_of_swap_cache();
                }
            }
            Do::Temper(temper) => self.tenant.temper = temper,
        }
        if self.eager {
            self.m.lru_add_drain_all();
        }
        self.tell();
    }

    /// Every `stride`th user page.
    fn users(&self, stride: usize, phase: usize) -> Vec<u32> {
        let all = self.tenant.pages.iter().filter(|(_, p)| p.user).map(|(id, _)| *id);
        all.skip(phase % stride).step_by(stride).collect()
    }

    fn becomes_users(&mut self, id: u32, cpu: usize, kind: Kind, shadow: Option<Shadow>) {
        let cpu = self.cpu(cpu);
        let page = self.tenant.pages.get_mut(&id).expect("it is held");
        let Kind { anon, active, dirty, mapped, private } = kind;
        page.user = true;
        page.state =
            PageState { anon, mapped, dirty: dirty && !anon, private: private && !anon, ..PageState::default() };
        // An anonymous page comes back from swap and stays in the swap cache for the time being.
        page.state.swap_cache = anon && shadow.is_some();
        let (pfn, order) = (page.pfn, page.order);
        let flags = if anon { PageFlags::ANON } else { PageFlags::FILE };
        let flags = match shadow {
            Some(shadow) => self.m.workingset_refault(cpu, pfn, flags, shadow),
            None if active => flags | PageFlags::ACTIVE,
            None => flags,
        };
        self.m.lru_add(cpu, pfn, order, flags);
        if self.eager {
            self.m.lru_add_drain(cpu);
        }
    }

    fn refault(&mut self, which: usize, cpu: usize) {
        if self.tenant.evicted.is_empty() {
            return;
        }
        let at = which % self.tenant.evicted.len();
        let Evicted { anon, order, shadow } = self.tenant.evicted.swap_remove(at);
        let node = self.m.lru().vecs()[shadow.lruvec.index()].node.index();
        let ask = Ask { cpu, node, gfp: Gfp::HIGHUSER_MOVABLE, order: order.get() };
        match self.alloc_to_end(ask) {
            Some(id) => self.becomes_users(id, cpu, Kind { anon, ..Kind::default() }, Some(shadow)),
            // Its contents are lost, so its swap entry is free.
            None if anon => self.tenant.swap.free += u64::from(order.pages()),
            None => {}
        }
    }

    fn grow_cache(&mut self, number: usize, pages: u8, cpu: usize) {
        for _ in 0..pages {
            let ask = Ask { cpu, node: 0, gfp: Gfp::KERNEL | Gfp::RECLAIMABLE, order: 0 };
            let Some(id) = self.alloc(ask) else { break };
            let cache = &mut self.tenant.caches[number];
            cache.pages.push(id);
            cache.objects += OBJECTS_PER_PAGE;
        }
    }

    fn change(&mut self, stride: usize, phase: usize, what: Change, to: bool) {
        for id in self.users(stride, phase) {
            let state = &mut self.tenant.pages.get_mut(&id).expect("it is held").state;
            match what {
                // An anonymous page is only written if it is in the swap cache.
                Change::Dirty => state.dirty = to && (!state.anon || state.swap_cache),
                Change::Mapped => state.mapped = to,
                Change::Pinned => state.pinned = to,
                Change::Locked => state.locked = to,
                Change::Held => state.held = to,
                Change::Private => state.private = to && !state.anon,
                // The flusher begins to write; [`Do::EndWriteback`] ends it.
                Change::Writeback if to && state.dirty && !state.anon => (state.dirty, state.writeback) = (false, true),
                Change::Writeback => {}
            }
        }
    }

    fn end_writeback(&mut self, cpu: usize, dirty_again: bool) {
        let cpu = self.cpu(cpu);
        let written: Vec<u32> =
            self.tenant.pages.iter().filter(|(_, p)| p.state.writeback).map(|(id, _)| *id).collect();
        for id in written {
            let page = self.tenant.pages.get_mut(&id).expect("it is held");
            page.state.writeback = false;
            page.state.dirty |= dirty_again;
            self.m.end_writeback(cpu, page.pfn, page.state.dirty);
        }
    }

    /// Flushers write what has been dirty for long. Without them, reclaim up to 5.3 goes on for
    /// ever for a request that insists on a large block, as long as there are pages to scan.
    fn write_old_pages(&mut self) {
        let dirty = self.tenant.pages.values_mut().filter(|page| page.state.dirty);
        dirty.for_each(|page| (page.state.dirty, page.state.writeback) = (false, true));
        self.end_writeback(0, false);
    }

    /// Frees a page, at once or, if a batch holds it, with the batch.
    pub fn free(&mut self, id: u32, cpu: usize) {
        for cache in &mut self.tenant.caches {
            if let Some(at) = cache.pages.iter().position(|page| *page == id) {
                cache.pages.swap_remove(at);
                cache.objects = cache.objects.saturating_sub(OBJECTS_PER_PAGE);
            }
        }
        let Page { pfn, order, .. } = self.tenant.forget(id);
        let held = self.m.lru().holds(pfn) > 0;
        let free = |m: &Memory| m.zones().iter().map(|z| z.nr_free_pages_exact() + z.pcp_pages()).sum::<u64>();
        let before = free(&self.m);
        self.m.free(self.cpu(cpu), pfn, order);
        let freed = if held { 0 } else { u64::from(order.pages()) };
        assert_eq!(free(&self.m), before + freed, "{pfn} {order:?} was let go, held: {held}");
        if held {
            self.tenant.released.insert(pfn, order);
        }
        self.m.set_swap(self.tenant.swap);
    }

    fn alloc(&mut self, r: Ask) -> Option<u32> {
        let got = self.m.alloc(self.asked_for(r));
        self.tell();
        Some(self.received(r, got.ok()?))
    }

    /// The fast path, then the slow path to its end.
    pub fn alloc_to_end(&mut self, r: Ask) -> Option<u32> {
        if let Some(id) = self.alloc(r) {
            return Some(id);
        }
        self.slow.push((AllocSlow::new(&self.m, self.asked_for(r)), r, 0));
        let i = self.slow.len() - 1;
        for step in 0..STEPS_MAX {
            if let Some(end) = self.slow_step(i) {
                return end;
            }
            self.others_run(step);
        }
        panic!("the slow path of {r:?} never ends");
    }

    /// Runs the daemons on other CPUs while a task keeps working: a boost in its way ends only with
    /// kswapd's run.
    fn others_run(&mut self, step: u32) {
        if step % 64 == 63 {
            (0..self.kswapds.len()).for_each(|n| self.kswapd_step(n, false));
            (0..self.kcompactds.len()).for_each(|n| self.kcompactd_step(n, false));
        }
    }

    /// One step of a slow allocation; returns its result if that step was its last. A wait is over
    /// at once.
    fn slow_step(&mut self, i: usize) -> Option<Option<u32>> {
        let step = self.slow[i].0.step(&mut self.m, &mut self.tenant, 8);
        self.tell();
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_TO_WRITE) {
            self.write_old_pages();
        }
        let end = match step {
            Step::Working if has_no_end(&self.m, &self.slow[i].0) => None,
            Step::Working => return None,
            Step::Wait(Wait::Throttled { .. }) if self.throttles_for_ever() && self.slow[i].2 > ENDLESS_WAITS => None,
            Step::Wait(Wait::Throttled { node, .. }) => {
                self.slow[i].2 += 1;
                (0..8).for_each(|_| self.kswapd_step(node.index(), true));
                // Time passes: kswapd uses exact counts, but the task those that CPUs fold in once
                // a second.
                (0..self.m.nr_cpus()).for_each(|cpu| self.m.vmstat_update(CpuId::new(cpu)));
                return None;
            }
            Step::Wait(_) => {
                self.end_writeback(0, false);
                return None;
            }
            Step::Done(Ok(pfn)) => Some(self.received(self.slow[i].1, pfn)),
            Step::Done(Err(_)) => None,
        };
        self.slow.remove(i);
        Some(end)
    }

    /// Whether throttled tasks wait for ever if kswapd finds nothing to free: up to 4.11 kswapd's
    /// failures are not counted, so tasks that wait for half of the min watermarks are woken and
    /// wait again (§4.5).
    fn throttles_for_ever(&self) -> bool {
        self.m.profile().lru.lists_per_zone
    }

    fn received(&mut self, r: Ask, pfn: Pfn) -> u32 {
        let order = Order::new(r.order);
        let id = self.tenant.add(&self.m, pfn, order);
        self.m.set_owner(pfn, order, id);
        id
    }

    fn kswapd_step(&mut self, n: usize, nap_over: bool) {
        let (daemon, rest) = &mut self.kswapds[n];
        let timed_out = match *rest {
            Rest::Asleep => return,
            Rest::Napping if !nap_over => return,
            Rest::Napping => true,
            Rest::Runnable => false,
        };
        *rest = match daemon.step(&mut self.m, &mut self.tenant, timed_out) {
            Step::Working => Rest::Runnable,
            Step::Wait(Wait::Time(_)) if !self.m.nodes()[n].kswapd.running => Rest::Napping,
            Step::Wait(Wait::Wakeup) => Rest::Asleep,
            Step::Wait(_) => Rest::Runnable,
        };
        if *rest == Rest::Runnable {
            self.end_writeback(n, false);
        }
        self.tell();
    }

    fn kcompactd_step(&mut self, n: usize, timed_out: bool) {
        let (daemon, rest) = &mut self.kcompactds[n];
        if *rest == Rest::Asleep && !timed_out {
            return;
        }
        let timed_out = timed_out && *rest != Rest::Runnable;
        *rest = match daemon.step(&mut self.m, &mut self.tenant, 8, timed_out) {
            Step::Working | Step::Wait(Wait::Time(0)) => Rest::Runnable,
            _ => Rest::Asleep,
        };
        self.tell();
    }

    /// Runs all operations in progress to their end.
    pub fn settle(&mut self) {
        let mut steps = 0;
        let mut limit = |what: &str| {
            steps += 1;
            assert!(steps < STEPS_MAX, "{what} never ends");
            steps
        };
        while !self.slow.is_empty() {
            self.slow_step(0);
            self.others_run(limit("a slow allocation"));
        }
        while let Some(sweep) = self.sweeps.last_mut() {
            if sweep.step(&mut self.m, &mut self.tenant, 64) == Step::Done(()) {
                self.sweeps.pop();
            }
            limit("a sweep");
        }
        self.tell();
        // Up to 4.7 kswapd never stops if too few pages are left for it to scan any.
        let gives_up = !self.m.profile().lru.lists_per_zone;
        for n in 0..self.kswapds.len() {
            let mut steps = 0;
            while self.kswapds[n].1 != Rest::Asleep && (gives_up || steps < 2000) {
                self.kswapd_step(n, true);
                limit("kswapd");
                steps += 1;
            }
            while self.kcompactds[n].1 != Rest::Asleep {
                self.kcompactd_step(n, false);
                limit("kcompactd");
            }
        }
    }

    /// Compares the machine with the model.
    pub fn verify(&mut self) -> Result<(), String> {
        self.m.check()?;
        self.tenant.verify(&self.m)?;
        for z in self.m.zones() {
            // The tenant counts those that it has let go itself.
            let left = leaving(&self.m, z, |pfn| !self.tenant.released.contains_key(&pfn));
            every_page_is_somewhere(&self.m, z, self.tenant.pages_in(z.start, z.end) + left)?;
            if z.nr_isolated > 0 {
                return Err(format!("{} pages are left isolated between two steps", z.nr_isolated));
            }
        }
        none_fell(self.m.vmstat(), &self.last_vmstat)?;
        self.last_vmstat = self.m.vmstat().clone();
        let count = |e| self.m.vmstat().get(e);
        let (by_whom, of_what) = (
            count(VmEvent::PgstealKswapd)
                + count(VmEvent::PgstealDirect)
                + count(VmEvent::PgstealKhugepaged)
                + count(VmEvent::PgstealProactive),
            count(VmEvent::PgstealAnon) + count(VmEvent::PgstealFile),
        );
        if by_whom != self.tenant.reclaimed || of_what != by_whom {
            let told = self.tenant.reclaimed;
            return Err(format!("{told} pages were reclaimed; counted {by_whom} by whom, {of_what} of what"));
        }
        let [direct, proactive, kswapd] =
            [VmEvent::PgscanDirect, VmEvent::PgscanProactive, VmEvent::PgscanKswapd].map(count);
        let [anon, file] = [VmEvent::PgscanAnon, VmEvent::PgscanFile].map(count);
        if direct + proactive + kswapd != anon + file || of_what > anon + file {
            return Err(format!(
                "scanned: {direct} + {proactive} + {kswapd} by whom, {anon} + {file} of what; {of_what} freed"
            ));
        }
        Ok(())
    }

    /// The observable state of the machine, as text.
    pub fn portrait(&self) -> String {
        let mut text = format!("{:?}\n{:?}\n", self.m.vmstat(), self.tenant.pages);
        for z in self.m.zones() {
            text += &ZoneSnapshot::of(&self.m, z.id).to_string();
        }
        for vec in self.m.lru().vecs() {
            for list in LruList::EVICTABLE {
                text += &format!("{} {:?}\n", list.name(), vec.list(list).collect::<Vec<_>>());
            }
            text += &format!("{:?} {} {:?}\n", vec.cost, vec.nonresident_age, vec.refaults);
            if self.m.lru().has_generations() {
                text += &format!("{:?}\n", vec.gens());
            }
        }
        for cpu in (0..self.m.nr_cpus()).map(CpuId::new) {
            for kind in BatchKind::ALL {
                text += &format!("{:?}\n", self.m.lru().batch(cpu, kind));
            }
        }
        text
    }
}

/// Plays a history, verifying after every operation.
pub fn play(plan: &Plan, swap: u64, ops: &[Do]) -> Full {
    let mut full = Full::new(plan, swap);
    for (i, op) in ops.iter().enumerate() {
        full.apply(op);
        full.verify().unwrap_or_else(|e| panic!("after operation {i}, {op:?}: {e}"));
    }
    full
}
