//! A small machine and a model of it: the holder of each block and the place of each movable page.
//!
//! [`World::apply`] does one operation; [`World::verify`] then compares the machine with the model
//! and runs the engine's own checker. A history is a `Vec<Op>`. Operations that make no sense in
//! the present state do nothing, so that any part of a failing history can be dropped when it
//! shrinks.

pub mod full;
pub mod full_strategy;
pub mod owner;
pub mod strategy;
pub mod tenant;
pub mod text;

use kontig_mm::Owner;
use kontig_mm::kcompactd::{Kcompactd, NodeSweep};
use kontig_mm::kswapd::Kswapd;
use kontig_mm::rules::CompactStall;
use kontig_mm::state::FrameKind;
use kontig_mm::sysctl::SysctlEffect;
use kontig_mm::*;
use kontig_profiles::linux;
use owner::{Book, Mood};

/// Steps after which an operation that must end is taken to be endless.
const STEPS_MAX: u32 = 400_000;
/// Rounds after which a request is given up on kernels that have endless ones.
const ENDLESS_ROUNDS: u32 = 1_000;

/// A zone of a small machine.
#[derive(Clone, Debug)]
pub struct Area {
    pub node: usize,
    pub kind: ZoneType,
    pub blocks: u32,
    /// Pages at its start that the allocator never gets.
    pub reserved: u32,
    /// Missing pageblocks before it.
    pub hole: u32,
}

/// A kernel generation whose rules the machine follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    Linux3_13,
    /// 3.13 with the four patches of seed 004 that change what compaction does.
    Linux3_14,
    Linux4_4Kcompactd,
    Linux4_6,
    Linux5_6,
    Linux6_1,
    Linux7_2,
    /// 6.12 with the multi-generational LRU on.
    Generations,
    /// 7.2 with the same, where all tiers decide.
    GenerationsByAllTiers,
}

impl Kernel {
    pub const ALL: [Kernel; 7] = [
        Kernel::Linux3_13,
        Kernel::Linux3_14,
        Kernel::Linux4_4Kcompactd,
        Kernel::Linux4_6,
        Kernel::Linux5_6,
        Kernel::Linux6_1,
        Kernel::Linux7_2,
    ];

    pub fn profile(self) -> Profile {
        match self {
            Kernel::Linux3_13 => linux("3.13"),
            Kernel::Linux3_14 => with_all_of_seed_004(linux("3.13")),
            Kernel::Linux4_4Kcompactd => linux("4.4-kcompactd"),
            Kernel::Linux4_6 => linux("4.6"),
            Kernel::Linux5_6 => linux("5.6"),
            Kernel::Linux6_1 => linux("6.1"),
            Kernel::Linux7_2 | Kernel::GenerationsByAllTiers => linux("7.2"),
            Kernel::Generations => linux("6.12"),
        }
    }
}

fn with_all_of_seed_004(profile: Profile) -> Profile {
    let known = kontig_profiles::switches();
    let patches = known.iter().filter(|(_, switch)| switch.summary.starts_with("Seed 004"));
    patches.fold(profile, |profile, (name, patch)| patch.throw(&profile).unwrap_or_else(|| panic!("{name} fits")))
}

/// A small machine to build.
#[derive(Clone, Debug)]
pub struct Plan {
    pub cpus: usize,
    pub areas: Vec<Area>,
    pub kernel: Kernel,
    pub thp: bool,
}

impl Plan {
    pub fn spec(&self) -> MachineSpec {
        let mut at = 0;
        let zones = self
            .areas
            .iter()
            .map(|a| {
                let start = at + a.hole * 512;
                at = start + a.blocks * 512;
                let present = u64::from(a.blocks) * 512;
                let managed = present - u64::from(a.reserved);
                ZoneSpec { node: a.node, kind: a.kind, start, end: at, present, managed }
            })
            .collect();
        MachineSpec { cpus: self.cpus, zones, thp: self.thp, lru: false }
    }

    pub fn profile(&self) -> Profile {
        self.kernel.profile()
    }
}

/// A request, in numbers that are always valid.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    pub cpu: usize,
    pub node: usize,
    pub gfp: Gfp,
    pub order: u8,
}

/// The owner of a block, which decides whether and how it moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    Kernel,
    User,
    Driver,
}

/// One operation. Numbers that choose something are taken modulo the number of choices.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// The fast path only.
    Alloc(Ask),
    /// The fast path, then the slow path to its end, with this budget per step.
    AllocToEnd(Ask, u64),
    /// This many fast-path requests, all for the same use.
    Fill(Ask, u16, Use),
    /// Begins a request on the slow path and leaves it there.
    SlowStart(Ask),
    SlowStep {
        which: usize,
        budget: u64,
        steps: u8,
    },
    KswapdStep {
        node: usize,
        nap_over: bool,
    },
    KcompactdStep {
        node: usize,
        budget: u64,
        timed_out: bool,
        steps: u8,
    },
    SweepStart {
        node: usize,
        cpu: usize,
        proactive: bool,
    },
    SweepStep {
        which: usize,
        budget: u64,
        steps: u8,
    },
    Free {
        which: usize,
        cpu: usize,
    },
    /// Frees every `stride`th held block, which leaves memory fragmented.
    FreeSome {
        stride: usize,
        phase: usize,
        cpu: usize,
    },
    SplitPage {
        which: usize,
    },
    LruAdd {
        which: usize,
    },
    SetMovableOps {
        which: usize,
    },
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
    /// Sets how pages' owners answer from now on.
    Mood(Mood),
}

struct Slow {
    path: AllocSlow,
    request: Ask,
}

/// When a daemon runs next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rest {
    Asleep,
    Napping,
    Runnable { woken: bool },
}

/// A machine, its model, and the operations in progress on it.
pub struct World {
    pub m: Memory,
    pub book: Book,
    reserved: Vec<u32>,
    slow: Vec<Slow>,
    sweeps: Vec<NodeSweep>,
    kswapds: Vec<(Kswapd, Rest)>,
    kcompactds: Vec<(Kcompactd, Rest)>,
    last_vmstat: Vmstat,
    /// The largest boost factor since no zone was boosted: boosts may have been made with it.
    boost_factor: u64,
}

impl World {
    pub fn new(plan: &Plan) -> World {
        let m = Memory::new(&plan.spec(), plan.profile()).expect("plans are valid machines");
        let frames = m.zones().iter().map(|z| z.end.index()).max().unwrap_or(0);
        let nodes = m.nodes().len();
        let cpu_of = |n: usize| m.nodes()[n].cpus.first().copied().unwrap_or_default();
        World {
            book: Book::new(frames),
            reserved: plan.areas.iter().map(|a| a.reserved).collect(),
            slow: Vec::new(),
            sweeps: Vec::new(),
            kswapds: (0..nodes).map(|n| (Kswapd::new(NodeId::new(n), CpuId::new(0)), Rest::Asleep)).collect(),
            kcompactds: (0..nodes).map(|n| (Kcompactd::new(NodeId::new(n), cpu_of(n)), Rest::Asleep)).collect(),
            last_vmstat: m.vmstat().clone(),
            boost_factor: u64::from(m.tunables().watermark_boost_factor),
            m,
        }
    }

    fn cpu(&self, i: usize) -> CpuId {
        CpuId::new(i % self.m.nr_cpus())
    }
    fn node(&self, i: usize) -> NodeId {
        NodeId::new(i % self.m.nodes().len())
    }

    fn asked_for(&self, r: Ask) -> Request {
        Request::new(self.cpu(r.cpu), self.node(r.node), r.gfp, Order::new(r.order))
    }

    pub fn apply(&mut self, op: &Op) {
        match *op {
            Op::Alloc(r) => drop(self.alloc(r)),
            Op::AllocToEnd(r, budget) => drop(self.alloc_to_end(r, budget)),
            Op::Fill(r, n, what_for) => {
                for _ in 0..n {
                    let Some(id) = self.alloc(r) else { break };
                    match what_for {
                        Use::Kernel => {}
                        Use::User => self.lru_add(id),
                        Use::Driver => self.set_movable_ops(id),
                    }
                }
            }
            Op::SlowStart(r) => {
                if self.slow.len() < 4 {
                    let path = AllocSlow::new(&self.m, self.asked_for(r));
                    self.slow.push(Slow { path, request: r });
                }
            }
            Op::SlowStep { which, budget, steps } => {
                for _ in 0..steps {
                    if self.slow.is_empty() {
                        break;
                    }
                    let i = which % self.slow.len();
                    if self.slow_step(i, budget).is_some() {
                        break;
                    }
                }
            }
            Op::KswapdStep { node, nap_over } => self.kswapd_step(node % self.m.nodes().len(), nap_over),
            Op::KcompactdStep { node, budget, timed_out, steps } => {
                for _ in 0..steps {
                    self.kcompactd_step(node % self.m.nodes().len(), budget, timed_out);
                }
            }
            Op::SweepStart { node, cpu, proactive } => {
                if self.sweeps.len() < 2 {
                    self.sweeps.push(NodeSweep::new(self.node(node), self.cpu(cpu), proactive));
                }
            }
            Op::SweepStep { which, budget, steps } => {
                for _ in 0..steps {
                    if self.sweeps.is_empty() {
                        break;
                    }
                    let i = which % self.sweeps.len();
                    if self.sweeps[i].step(&mut self.m, &mut self.book, budget) == Step::Done(()) {
                        self.sweeps.remove(i);
                    }
                }
            }
            Op::Free { which, cpu } => {
                if let Some(id) = self.book.nth(which) {
                    self.free(id, cpu);
                }
            }
            Op::FreeSome { stride, phase, cpu } => {
                let ids: Vec<u32> = self.book.ids().skip(phase % stride).step_by(stride).collect();
                for id in ids {
                    self.free(id, cpu);
                }
            }
            Op::SplitPage { which } => {
                if let Some(id) = self.book.nth(which) {
                    let b = self.book.get(id);
                    self.m.split_page(b.pfn, b.order);
                    self.book.split(id);
                }
            }
            Op::LruAdd { which } => {
                if let Some(id) = self.book.nth(which) {
                    self.lru_add(id);
                }
            }
            Op::SetMovableOps { which } => {
                if let Some(id) = self.book.nth(which) {
                    self.set_movable_ops(id);
                }
            }
            Op::DrainCpu { cpu } => self.m.drain_cpu(self.cpu(cpu)),
            Op::FoldVmstat { cpu } => self.m.vmstat_update(self.cpu(cpu)),
            Op::Sysctl { name, value } => self.sysctl(name, value),
            Op::Mood(mood) => self.book.mood = mood,
        }
        self.deliver_wakes();
    }

    /// Makes a kernel block a user page.
    fn lru_add(&mut self, id: u32) {
        let b = self.book.get(id);
        if b.kind == FrameKind::Kernel {
            self.m.lru_add(CpuId::new(0), b.pfn, b.order, PageFlags::ANON);
            self.book.set_kind(id, FrameKind::Lru);
        }
    }

    /// Makes a single page one that its driver can migrate.
    fn set_movable_ops(&mut self, id: u32) {
        let b = self.book.get(id);
        if b.kind == FrameKind::Kernel && b.order == Order::ZERO {
            self.m.set_movable_ops(b.pfn);
            self.book.set_kind(id, FrameKind::MovableOps);
        }
    }

    /// The fast path; returns the block's number in the book.
    pub fn alloc(&mut self, r: Ask) -> Option<u32> {
        let got = self.m.alloc(self.asked_for(r));
        self.deliver_wakes();
        Some(self.received(r, got.ok()?))
    }

    /// The fast path, then the slow path to its end.
    pub fn alloc_to_end(&mut self, r: Ask, budget: u64) -> Option<u32> {
        if let Some(id) = self.alloc(r) {
            return Some(id);
        }
        let path = AllocSlow::new(&self.m, self.asked_for(r));
        self.slow.push(Slow { path, request: r });
        let i = self.slow.len() - 1;
        for _ in 0..STEPS_MAX {
            if let Some(end) = self.slow_step(i, budget) {
                return end;
            }
        }
        panic!("the slow path of {r:?} never ends");
    }

    /// One step of a slow allocation; returns its result if that step was its last.
    fn slow_step(&mut self, i: usize, budget: u64) -> Option<Option<u32>> {
        let step = self.slow[i].path.step(&mut self.m, &mut self.book, budget);
        let end = match step {
            Step::Working if has_no_end(&self.m, &self.slow[i].path) => None,
            Step::Working => return None,
            Step::Wait(wait) => panic!("{wait:?}: no request waits yet"),
            Step::Done(Ok(pfn)) => Some(self.received(self.slow[i].request, pfn)),
            Step::Done(Err(AllocFailure::Failed)) => None,
            Step::Done(Err(AllocFailure::OutOfMemory)) => {
                let r = self.slow[i].request;
                let may_fail = Gfp::NORETRY.with(Gfp::RETRY_MAYFAIL);
                assert!(
                    r.order <= 3 && !r.gfp.has(Gfp::NORETRY) && !r.gfp.has(Gfp::RETRY_MAYFAIL),
                    "{r:?} may fail ({may_fail}), yet is said to be out of memory"
                );
                None
            }
        };
        self.slow.remove(i);
        Some(end)
    }

    /// Books a block that a request got: the request must be entitled to it, and no one else may
    /// hold it.
    fn received(&mut self, r: Ask, pfn: Pfn) -> u32 {
        let order = Order::new(r.order);
        assert!(pfn.is_aligned(order), "{r:?} got {pfn}, which is misaligned");
        let id = self.m.pageblocks().zone_of(pfn);
        let z = self.m.zone(id);
        assert!(z.spans(pfn) && z.spans(pfn.plus(order.pages() - 1)), "{r:?} got {pfn}, which leaves its zone");
        assert!(pfn >= z.start.plus(self.reserved[id.index()]), "{r:?} got {pfn}, which is reserved");
        assert!(z.kind <= r.gfp.highest_zone(), "{r:?} got {pfn} from {}", z.kind.name());
        let this_node = r.gfp.has(Gfp::THISNODE);
        assert!(!this_node || z.node == self.node(r.node), "{r:?} got {pfn} from node {}", z.node.index());
        let id = self.book.add(pfn, order);
        self.m.set_owner(pfn, order, id);
        id
    }

    /// Frees a block and checks that exactly its pages become free or go to a per-CPU list.
    fn free(&mut self, id: u32, cpu: usize) {
        let spare =
            |m: &Memory| -> Vec<u64> { m.zones().iter().map(|z| z.nr_free_pages_exact() + z.pcp_pages()).collect() };
        let b = self.book.get(id);
        let before = spare(&self.m);
        self.m.free(self.cpu(cpu), b.pfn, b.order);
        self.book.remove(id);
        let own = self.m.pageblocks().zone_of(b.pfn).index();
        for (z, (before, after)) in before.into_iter().zip(spare(&self.m)).enumerate() {
            let freed = if z == own { u64::from(b.order.pages()) } else { 0 };
            assert_eq!(after, before + freed, "zone {z} after the free of {} {:?}", b.pfn, b.order);
        }
        for i in 0..b.order.pages() {
            let tag = self.m.frames().tag(b.pfn.plus(i));
            let spare = matches!(tag.kind(), FrameKind::Tail | FrameKind::Buddy(_) | FrameKind::Pcp(_));
            assert!(spare, "{} is {:?} after the free of {} {:?}", b.pfn.plus(i), tag.kind(), b.pfn, b.order);
        }
    }

    fn sysctl(&mut self, name: &str, value: &str) {
        let before = *self.m.tunables();
        let marks = |m: &Memory| m.zones().iter().map(|z| (z.watermarks, z.watermark_boost)).collect::<Vec<_>>();
        let marks_before = marks(&self.m);
        let written = self.m.sysctl_write(name, value);
        const NEVER_VALID: [&str; 7] = ["-1", "4294967296", "3001", "x", "", "101", "no"];
        assert!(written.is_err() || !NEVER_VALID.contains(&value), "'{value}' was accepted for {name}");
        let switch = name.ends_with("_allowed") || name.ends_with("compact_memory");
        assert!(written.is_err() || !switch || value != "2", "'2' was accepted for {name}");
        match written {
            Err(_) => {
                assert_eq!(before, *self.m.tunables(), "a refused write of '{value}' to {name} changes nothing");
                assert_eq!(marks_before, marks(&self.m), "a refused write of '{value}' to {name} changes no mark");
            }
            Ok(SysctlEffect::None) => {}
            Ok(SysctlEffect::WakeKcompactd) => self.m.trigger_proactive_compaction(),
            Ok(SysctlEffect::CompactMemory) => {
                for n in 0..self.m.nodes().len() {
                    self.sweeps.push(NodeSweep::new(NodeId::new(n), CpuId::new(0), false));
                }
            }
        }
        let factor = u64::from(self.m.tunables().watermark_boost_factor);
        let unboosted = self.m.zones().iter().all(|z| z.watermark_boost == 0);
        self.boost_factor = if unboosted { factor } else { self.boost_factor.max(factor) };
    }

    fn deliver_wakes(&mut self) {
        for woken in self.m.take_wakes() {
            let state = match woken {
                Daemon::Kswapd(node) => &mut self.kswapds[node.index()].1,
                Daemon::Kcompactd(node) => &mut self.kcompactds[node.index()].1,
            };
            if !matches!(state, Rest::Runnable { .. }) {
                *state = Rest::Runnable { woken: true };
            }
        }
    }

    /// One step of a kswapd that has a reason to run. Its nap may end just as it is woken.
    fn kswapd_step(&mut self, n: usize, nap_over: bool) {
        let (daemon, state) = &mut self.kswapds[n];
        let timed_out = match *state {
            Rest::Asleep => return,
            Rest::Napping if !nap_over => return,
            Rest::Napping => true,
            Rest::Runnable { woken } => woken && nap_over,
        };
        *state = match daemon.step(&mut self.m, &mut self.book, timed_out) {
            Step::Working => Rest::Runnable { woken: false },
            Step::Wait(Wait::Time(_)) => Rest::Napping,
            Step::Wait(_) => Rest::Asleep,
        };
        self.deliver_wakes();
    }

    fn kcompactd_step(&mut self, n: usize, budget: u64, timed_out: bool) {
        let (daemon, state) = &mut self.kcompactds[n];
        if *state == Rest::Asleep && !timed_out {
            return;
        }
        let timed_out = timed_out && !matches!(state, Rest::Runnable { .. });
        *state = match daemon.step(&mut self.m, &mut self.book, budget, timed_out) {
            Step::Working | Step::Wait(Wait::Time(0)) => Rest::Runnable { woken: false },
            Step::Wait(_) => Rest::Asleep,
        };
        self.deliver_wakes();
    }

    /// Runs all operations in progress to their end.
    pub fn settle(&mut self) {
        let limit = |what: &str, steps: &mut u32| {
            *steps += 1;
            assert!(*steps < STEPS_MAX, "{what} never ends");
        };
        let mut steps = 0;
        while !self.slow.is_empty() {
            self.slow_step(0, 64);
            limit("a slow allocation", &mut steps);
        }
        while let Some(s) = self.sweeps.last_mut() {
            if s.step(&mut self.m, &mut self.book, 64) == Step::Done(()) {
                self.sweeps.pop();
            }
            limit("a sweep", &mut steps);
        }
        self.deliver_wakes();
        for n in 0..self.m.nodes().len() {
            while self.kswapds[n].1 != Rest::Asleep {
                self.kswapd_step(n, true);
                limit("kswapd", &mut steps);
            }
        }
        for n in 0..self.m.nodes().len() {
            while self.kcompactds[n].1 != Rest::Asleep {
                self.kcompactd_step(n, 64, false);
                limit("kcompactd", &mut steps);
            }
        }
    }

    /// Frees every held block, on all CPUs in turn, and drains all per-CPU lists.
    pub fn free_everything(&mut self) {
        for (i, id) in self.book.ids().collect::<Vec<_>>().into_iter().enumerate() {
            self.free(id, i);
        }
        self.m.lru_add_drain_all();
        for cpu in 0..self.m.nr_cpus() {
            self.m.drain_cpu(CpuId::new(cpu));
            self.m.fold_vmstat(CpuId::new(cpu));
        }
    }

    /// Compares the machine with the model.
    pub fn verify(&mut self) -> Result<(), String> {
        self.m.check()?;
        self.book.verify(&self.m)?;
        for z in self.m.zones() {
            let held = self.book.pages_in(z.start, z.end) + leaving(&self.m, z, |_| true);
            every_page_is_somewhere(&self.m, z, held)?;
            let ceiling = (z.watermarks.high * self.boost_factor / 10_000).max(512);
            if z.watermark_boost > ceiling {
                return Err(format!("a boost of {}, above its ceiling {ceiling}", z.watermark_boost));
            }
        }
        none_fell(self.m.vmstat(), &self.last_vmstat)?;
        self.last_vmstat = self.m.vmstat().clone();
        let count = |e| self.m.vmstat().get(e);
        let (stalls, ends) =
            (count(VmEvent::CompactStall), count(VmEvent::CompactSuccess) + count(VmEvent::CompactFail));
        // In 3.13 a stall is counted even if every zone is skipped then.
        let at_entry = self.m.profile().slow_path.compact_stall == CompactStall::AtEntry;
        if stalls < ends || stalls > ends && !at_entry {
            return Err(format!("{stalls} compaction stalls, {ends} successes and failures"));
        }
        for (node, (_, state)) in self.m.nodes().iter().zip(&self.kswapds) {
            let runnable = matches!(state, Rest::Runnable { .. });
            if node.kswapd.running != runnable {
                return Err(format!("kswapd of node {}: running {}, {state:?}", node.id.index(), node.kswapd.running));
            }
        }
        Ok(())
    }

    /// Free pages that compactions in progress have isolated as targets.
    pub fn isolated(&self) -> u64 {
        self.m.zones().iter().map(|z| isolated_free(&self.m, z)).sum()
    }
}

/// Pages of a zone that compaction has migrated from and a batch will free.
fn leaving(m: &Memory, z: &Zone, counts: impl Fn(Pfn) -> bool) -> u64 {
    m.lru_leaving().filter(|pfn| (z.start..z.end).contains(pfn) && counts(*pfn)).count() as u64
}

/// Compares a zone's managed pages with those that are free, held, or on their way.
fn every_page_is_somewhere(m: &Memory, z: &Zone, held: u64) -> Result<(), String> {
    let sum = z.nr_free_pages_exact() + z.pcp_pages() + held + isolated_free(m, z);
    match sum == z.managed {
        true => Ok(()),
        false => Err(format!("{} pages managed, {sum} free, on per-CPU lists, held or isolated", z.managed)),
    }
}

/// Compares counters with those of the last look.
fn none_fell(counters: &Vmstat, last: &Vmstat) -> Result<(), String> {
    match counters.iter().zip(last.iter()).find(|((_, now), (_, before))| now < before) {
        Some(((e, now), (_, before))) => Err(format!("{} went back from {before} to {now}", e.name())),
        None => Ok(()),
    }
}

/// Free pages of the zone that compaction has isolated as targets.
fn isolated_free(m: &Memory, z: &Zone) -> u64 {
    let mut at = z.start;
    let mut pages = 0;
    while at < z.end {
        let tag = m.frames().tag(at);
        if tag.kind() == FrameKind::IsolatedFree {
            pages += u64::from(tag.order().pages());
        }
        at = at.plus(tag.order().pages());
    }
    pages
}

/// Plays a history, verifying after every operation.
pub fn play(plan: &Plan, ops: &[Op]) -> World {
    let mut w = World::new(plan);
    for (i, op) in ops.iter().enumerate() {
        w.apply(op);
        w.verify().unwrap_or_else(|e| panic!("after operation {i}, {op:?}: {e}"));
    }
    w
}

// Owners answer through this trait; a book that does not implement it does not compile here.
const _: fn() = || {
    fn is_owner<T: Owner>() {}
    is_owner::<Book>();
};

/// Whether this is one of the requests in defrag_mode that never end on 7.2 and on 6.15 as posted
/// (§3.5.1).
pub fn has_no_end(m: &Memory, path: &AllocSlow) -> bool {
    let rules = &m.profile().slow_path;
    let kernel_has_some = rules.makes_pageblocks && !rules.retries_for_pageblocks || !rules.breaks_up_at_last;
    m.profile().fallback.defrag_mode && kernel_has_some && path.rounds() > ENDLESS_ROUNDS
}
