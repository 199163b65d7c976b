//! Small machines, scripted programs, and a prompt that runs operations one by one.

pub mod disk;
pub mod family;

use kontig_mm::rules::ProactiveScore;
use kontig_mm::state::FrameKind;
use kontig_mm::{CpuId, GroupId, MachineSpec, Memory, Order, Pfn, Profile, VmEvent, ZoneSpec, ZoneType};
pub use kontig_profiles::linux;
use kontig_program::{Batch, Frame, Gfp, Op, Outcome, Placement, Process, Program, Region, Value};
use kontig_sim::UserPage;
use kontig_sim::{CostModel, Machine, MachineFile, SimError, Stop, TaskId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;
pub const HUGE: Order = Order::new(9);

/// The profiles of the kernels that were recorded, oldest first.
pub fn recorded() -> impl Iterator<Item = &'static str> {
    // Kernels whose zones have the LRU lists have tests of their own.
    kontig_profiles::names().filter(|name| linux(name).recorded && !linux(name).lru.lists_per_zone)
}

/// The machine file whose costs all others share.
pub fn xeon() -> MachineFile {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/xeon-1t.toml");
    toml::from_str(&std::fs::read_to_string(path).expect("the machine file is there")).expect("it is a machine file")
}

/// The zone of all small machines, after a gap of one pageblock.
pub fn spec(cpus: usize, blocks: u32) -> MachineSpec {
    let pages = u64::from(blocks) * 512;
    let zone = ZoneSpec {
        node: 0,
        kind: ZoneType::Normal,
        start: 512,
        end: 512 + blocks * 512,
        present: pages,
        managed: pages - 256,
    };
    MachineSpec { cpus, zones: vec![zone], thp: false, lru: false }
}

/// One zone of this many pageblocks, with the costs of the machine files.
pub fn machine(cpus: usize, blocks: u32, profile: Profile) -> Machine {
    machine_with(cpus, blocks, profile, &[])
}

/// The same, with sysctls set before it starts.
pub fn machine_with(cpus: usize, blocks: u32, profile: Profile, sysctls: &[(&str, &str)]) -> Machine {
    let mut memory = Memory::new(&spec(cpus, blocks), profile).expect("a valid machine");
    for (name, value) in sysctls {
        memory.sysctl_write(name, value).expect("a valid sysctl");
    }
    Machine::new(memory, CostModel::new(&xeon().costs))
}

/// The same, with an ordered LRU.
pub fn ordered_machine(cpus: usize, blocks: u32, profile: Profile) -> Machine {
    let spec = MachineSpec { lru: true, ..spec(cpus, blocks) };
    Machine::new(Memory::new(&spec, profile).expect("a valid machine"), CostModel::new(&xeon().costs))
}

/// 5.6 with seed 000's proactive compaction.
pub fn weighted() -> Profile {
    let mut profile = linux("5.6");
    profile.proactive.score = ProactiveScore::Weighted;
    profile
}

/// A program given as a function from its outcomes so far to the next operation; `None` ends it.
#[derive(Clone)]
pub struct Script {
    next: Box<dyn Next>,
    pub log: Vec<Outcome>,
    started: bool,
}

/// The function; a copy of the program copies it.
trait Next: FnMut(&[Outcome]) -> Option<Op> + Send {
    fn boxed_clone(&self) -> Box<dyn Next>;
}

impl<F: FnMut(&[Outcome]) -> Option<Op> + Clone + Send + 'static> Next for F {
    fn boxed_clone(&self) -> Box<dyn Next> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Next> {
    fn clone(&self) -> Box<dyn Next> {
        self.as_ref().boxed_clone()
    }
}

pub fn script(next: impl FnMut(&[Outcome]) -> Option<Op> + Clone + Send + 'static) -> Box<Script> {
    Box::new(Script { next: Box::new(next), log: Vec::new(), started: false })
}

/// A program of fixed operations.
pub fn ops(list: Vec<Op>) -> Box<Script> {
    let mut list = list.into_iter();
    script(move |_| list.next())
}

impl Program for Script {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        if std::mem::replace(&mut self.started, true) {
            self.log.extend_from_slice(done);
        }
        todo.extend((self.next)(&self.log));
    }
}

/// The outcomes of a script so far.
pub fn log(m: &Machine, id: TaskId) -> &[Outcome] {
    let program: &dyn std::any::Any = m.program(id).expect("a program");
    &program.downcast_ref::<Script>().expect("a script").log
}

/// Starts a program and runs the machine until it is done.
pub fn run(m: &mut Machine, cpu: usize, program: Box<Script>) -> TaskId {
    let id = m.spawn(program, Placement::Cpu(cpu));
    finish(m, id);
    id
}

/// Runs the machine until a program is done.
pub fn finish(m: &mut Machine, id: TaskId) {
    assert_eq!(m.run(u64::MAX / 2, Some(id)), Ok(Stop::ProgramDone));
}

/// Free pages, those on per-CPU lists included.
pub fn free_pages(m: &Machine) -> u64 {
    m.memory().zones().iter().map(|z| z.nr_free_pages_exact() + z.pcp_pages()).sum()
}

/// Forks the process at the prompt's first task; the child runs this program.
pub fn fork(p: &mut Prompt, program: Box<dyn Program>) -> Process {
    match p.call(0, Op::Fork(program)).expect("a child").value {
        Value::Child(child) => child,
        other => panic!("{other:?}"),
    }
}

/// Runs for this long, ns.
pub fn pass(m: &mut Machine, ns: u64) {
    let until = m.now() + ns;
    assert_eq!(m.run(until, None), Ok(Stop::Time));
}

/// Fills the machine with a process's pages and unmaps the first `freed` of every 512.
pub fn fragmenter(freed: u32) -> Box<Script> {
    let mut section = 0;
    script(move |log| match log {
        [] => Some(Op::FreeAboveHigh),
        [free] => {
            let Value::Pages(free) = free.value else { panic!("{free:?}") };
            Some(Op::Mmap { pages: (free / 513) as u32 * 512 })
        }
        [_, map, rest @ ..] => {
            let Value::Region(region) = map.value else { panic!("{map:?}") };
            if rest.is_empty() {
                return Some(Op::Touch(region));
            }
            if section * 512 == region.pages {
                return None;
            }
            section += 1;
            Some(Op::Munmap(Region { first: (section - 1) * 512, pages: freed, ..region }))
        }
    })
}

/// Fills a machine with unmovable pages: `freed` of every 512 are free, and no block of 512 is
/// left.
pub fn fill_unmovable(m: &mut Machine, freed: u32) {
    run(m, 0, unmovable_fragmenter(freed));
    take_huge(m);
}

/// Takes every free block of 512 pages, those on per-CPU lists too.
pub fn take_huge(m: &mut Machine) {
    loop {
        m.memory_mut().drain_cpu(CpuId::new(0));
        if m.memory().zones()[0].nr_free(HUGE) == 0 {
            return;
        }
        let id = run(m, 0, allocator(Gfp::KERNEL.without(Gfp::RECLAIM), HUGE, usize::MAX, 0));
        assert!(!blocks(log(m, id)).is_empty(), "there is one, but nobody gets it");
    }
}

/// Takes all huge pages it can get and frees the first `freed` of each: the rest is unmovable.
pub fn unmovable_fragmenter(freed: u32) -> Box<Script> {
    let mut blocks: Vec<Frame> = Vec::new();
    let mut full = false;
    let mut queue: VecDeque<Op> = VecDeque::new();
    script(move |log| {
        if let Some(Outcome { value: Value::Block(got), .. }) = log.last()
            && !full
        {
            match got {
                Some(block) => blocks.push(*block),
                None => {
                    full = true;
                    for &block in &blocks {
                        queue.push_back(Op::SplitPages { block, order: kontig_program::Order::HUGE });
                        queue.push_back(Op::FreePages { first: block, pages: freed });
                    }
                }
            }
        }
        if full { queue.pop_front() } else { Some(alloc_pages(Gfp::KERNEL.without(Gfp::RECLAIM), HUGE)) }
    })
}

/// Allocates blocks until that fails or it has `most`, with a pause after each.
pub fn allocator(gfp: Gfp, order: Order, most: usize, pause: u64) -> Box<Script> {
    let mut paused = false;
    script(move |log| {
        let failed = log.iter().any(|o| o.value == Value::Block(None));
        let got = log.iter().filter(|o| matches!(o.value, Value::Block(Some(_)))).count();
        if failed || got == most {
            return None;
        }
        paused = !paused && !log.is_empty() && pause > 0;
        Some(if paused { Op::Sleep(pause) } else { alloc_pages(gfp, order) })
    })
}

/// A driver's allocation of a block of one of the engine's orders.
pub fn alloc_pages(gfp: Gfp, order: Order) -> Op {
    Op::AllocPages { gfp, order: kontig_program::Order::new(order.get()) }
}

/// The blocks allocated by a script.
pub fn blocks(log: &[Outcome]) -> Vec<Pfn> {
    let of = |o: &Outcome| if let Value::Block(b) = o.value { b } else { None };
    log.iter().filter_map(of).map(|block| Pfn::new(block.get() as u32)).collect()
}

pub fn event(m: &Machine, e: VmEvent) -> u64 {
    m.memory().vmstat().get(e)
}

pub fn score(m: &Machine) -> u64 {
    m.memory().fragmentation_score_node(m.memory().nodes()[0].id)
}

pub fn proactive_runs(m: &Machine) -> u64 {
    m.memory().nodes()[0].kcompactd.proactive_runs
}

/// The frames of user pages: the first frame, and the block's order.
pub fn user_pages(m: &Machine) -> BTreeMap<UserPage, (Pfn, Order)> {
    let mut found = BTreeMap::new();
    let frames = m.memory().frames();
    for z in m.memory().zones() {
        for pfn in (z.start.get()..z.end.get()).map(Pfn::new) {
            let tag = frames.tag(pfn);
            if matches!(tag.kind(), FrameKind::Lru | FrameKind::IsolatedLru) {
                let before = found.len();
                for at in m.mapped_as(pfn) {
                    assert_eq!(found.insert(at, (pfn, tag.order())), None, "two frames for {at:?}");
                }
                assert!(found.len() > before, "no process has {pfn}");
            }
        }
    }
    found
}

/// Pages that are neither free, nor on per-CPU lists, nor a user's.
pub fn kernel_pages(m: &Machine) -> u64 {
    let of = |z: &kontig_mm::Zone| z.managed - z.nr_free_pages_exact() - z.pcp_pages() - z.nr_lru() - z.nr_isolated;
    m.memory().zones().iter().map(of).sum()
}

/// Processes that take orders, one operation at a time.
pub struct Prompt {
    pub m: Machine,
    who: Vec<Arc<Mutex<Inbox>>>,
}

#[derive(Default)]
struct Inbox {
    todo: Option<Op>,
    busy: bool,
    done: Option<Outcome>,
}

#[derive(Clone)]
struct Obedient(Arc<Mutex<Inbox>>);

/// How often a process looks for something to do.
const POLL_NS: u64 = 10_000;

impl Program for Obedient {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        let mut inbox = self.0.lock().expect("nobody panics with it");
        if std::mem::take(&mut inbox.busy) {
            inbox.done = done.last().copied();
        }
        let op = inbox.todo.take();
        inbox.busy = op.is_some();
        todo.push(op.unwrap_or(Op::Sleep(POLL_NS)));
    }
}

impl Prompt {
    /// This many processes, one on each CPU from the first.
    pub fn new(mut m: Machine, processes: usize) -> Prompt {
        let who: Vec<_> = (0..processes).map(|_| Arc::<Mutex<Inbox>>::default()).collect();
        for (cpu, inbox) in who.iter().enumerate() {
            m.spawn(Box::new(Obedient(Arc::clone(inbox))), Placement::Cpu(cpu));
        }
        Prompt { m, who }
    }

    /// One process more, in a memory control group: its task.
    pub fn add_in(&mut self, group: GroupId, cpu: usize) -> usize {
        let inbox = Arc::<Mutex<Inbox>>::default();
        let id = self.m.spawn(Box::new(Obedient(Arc::clone(&inbox))), Placement::Cpu(cpu));
        self.m.set_group(id, group);
        self.who.push(inbox);
        self.who.len() - 1
    }

    /// Makes a process run an operation, and waits for it.
    pub fn call(&mut self, who: usize, op: Op) -> Result<Outcome, SimError> {
        self.who[who].lock().expect("nobody panics with it").todo = Some(op);
        loop {
            let until = self.m.now() + POLL_NS;
            self.m.run(until, None)?;
            if let Some(outcome) = self.who[who].lock().expect("nobody panics with it").done.take() {
                return Ok(outcome);
            }
        }
    }

    /// Makes a process fork a child that takes orders, too: its task, and its number.
    pub fn fork(&mut self, who: usize) -> (usize, Process) {
        let inbox = Arc::<Mutex<Inbox>>::default();
        self.who.push(Arc::clone(&inbox));
        match self.call(who, Op::Fork(Box::new(Obedient(inbox)))).expect("a child").value {
            Value::Child(process) => (self.who.len() - 1, process),
            other => panic!("{other:?} is not a child"),
        }
    }

    /// Makes a process start a thread that takes orders, too: its task.
    pub fn spawn(&mut self, who: usize) -> usize {
        let inbox = Arc::<Mutex<Inbox>>::default();
        self.who.push(Arc::clone(&inbox));
        let made = self.call(who, Op::Spawn(Box::new(Obedient(inbox)))).expect("a thread").value;
        assert!(matches!(made, Value::Thread(_)), "{made:?} is not a thread");
        self.who.len() - 1
    }

    /// Makes a process run an operation from which it does not return.
    pub fn last_call(&mut self, who: usize, op: Op) {
        self.who[who].lock().expect("nobody panics with it").todo = Some(op);
        pass(&mut self.m, MS);
    }

    pub fn mmap(&mut self, who: usize, pages: u32) -> Region {
        match self.call(who, Op::Mmap { pages }).expect("a mapping").value {
            Value::Region(r) => r,
            other => panic!("{other:?} is not a mapping"),
        }
    }
}

/// A part of a region.
pub fn part(r: Region, first: u32, pages: u32) -> Region {
    Region { first: r.first + first, pages, ..r }
}
