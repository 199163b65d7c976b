//! The machine: memory, CPUs and tasks, and what a host may do with them and see of them.

mod check;
mod executor;
mod found;
pub mod machine_file;

pub use found::{FoundIn, FoundPage};

use crate::base::context::TaskPolicy;
use crate::base::cost::{CostModel, ns};
use crate::base::error::SimError;
use crate::base::id::{Place, TaskId, UserPage};
use crate::base::numa::FarCosts;
use crate::base::translate;
use crate::kernel::Kernel;
use crate::machine::machine_file::{MachineFile, WrongEntry};
use crate::sched::{Affinity, CpuTime, CpuUse, Nice, Schedule, Topology};
use crate::state::file::{self, Counts as FileCounts, FileSystem, Files, Frames, SlabInfo, Waiters};
use crate::state::khugepaged::KhugepagedCounts;
use crate::state::object::TABLE_PAGES;
use crate::state::process::family::OomKill;
use crate::state::swap::Swap;
use crate::state::swap::Swapping;
use crate::task::process::Process;
use crate::task::{Body, State, Task};
use crate::thread::KernelThread;
use crate::thread::flusher::FlusherThread;
use crate::thread::kcompactd::KcompactdThread;
use crate::thread::khugepaged::KhugepagedThread;
use crate::thread::kswapd::KswapdThread;
use crate::thread::xfs::{CheckpointThread, PushThread};
use kontig_mm::event::Event;
use kontig_mm::{Counter, CpuId, Daemon, Memory, NodeId, Order, Owner, Pfn, Work};
use kontig_program::{FileName, Placement, Program};

/// Why [`Machine::run`] came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The time asked for has come.
    Time,
    /// The program asked for is done.
    ProgramDone,
}

/// How often the kernel folds per-CPU counters (`vm.stat_interval`): one second.
pub(crate) const STAT_INTERVAL_NS: u64 = 1_000_000_000;

/// A simulated machine with its tasks. A copy goes on from where it is, and shares nothing with it.
#[derive(Clone)]
pub struct Machine {
    pub(crate) kernel: Kernel,
    /// By number, as the schedule knows them.
    pub(crate) tasks: Vec<Task>,
    pub(crate) schedule: Schedule,
    pub(crate) now: u64,
    pub(crate) turns: u64,
    /// When the CPUs next fold their parts of the counters in.
    pub(crate) next_fold: u64,
}

impl Machine {
    /// A machine at time 0 with its kernel threads asleep.
    pub fn new(mem: Memory, costs: CostModel) -> Machine {
        let nodes: Vec<(NodeId, Vec<CpuId>)> = mem.nodes().iter().map(|n| (n.id, n.cpus.clone())).collect();
        let schedule = Schedule::new(topology(&mem, 1), ns(costs.context_switch));
        let mut machine = Machine {
            kernel: Kernel::new(mem, costs),
            tasks: Vec::new(),
            schedule,
            now: 0,
            turns: 0,
            next_fold: STAT_INTERVAL_NS,
        };
        for (node, cpus) in nodes {
            // Programs are placed from a node's first CPU up, kernel threads from its last down.
            let from_last = |i: usize| match cpus.len() {
                0 => CpuId::new(0),
                n => cpus[n - 1 - i.min(n - 1)],
            };
            // They may run on all CPUs of their node; those of a node without any, anywhere.
            let affinity = if cpus.is_empty() { Affinity::Any } else { Affinity::Node(node) };
            let mut rest = |body, i| machine.add(body, affinity, Nice::ZERO, from_last(i).index(), State::Resting);
            let kcompactd = rest(Body::Kcompactd(KcompactdThread::new(node, from_last(0))), 0);
            let kswapd = rest(Body::Kswapd(KswapdThread::new(node, from_last(1))), 1);
            // At boot kcompactd has a first look, and goes to sleep by itself.
            machine.schedule.wake_at(kcompactd.0, 0);
            let rests = [kswapd, kcompactd].map(|task| (task, machine.kernel.queues.add()));
            rests.iter().for_each(|(_, rest)| machine.kernel.queues.open(*rest));
            let awaits_writes = machine.kernel.queues.add();
            machine.kernel.daemons.add_node(rests[0], rests[1], awaits_writes);
        }
        if machine.kernel.mem.lru().is_ordered() {
            machine.kernel.khugepaged.queue = Some(machine.kernel.queues.add());
            let last = machine.schedule.cpus() - 1;
            // It gives way to all others.
            let khugepaged = Body::Khugepaged(KhugepagedThread::new());
            let khugepaged = machine.add(khugepaged, Affinity::Any, Nice::MOST, last, State::Runnable);
            machine.schedule.begin_new(khugepaged.0, 0);
        }
        machine
    }

    /// The same with so many threads to a core, of which the first half of each node's CPUs are the first ones.
    ///
    /// # Panics
    /// If a node's CPUs are no multiple of that.
    pub fn with_threads_per_core(mut self, threads: usize) -> Machine {
        self.schedule.set_topology(topology(&self.kernel.mem, threads));
        self
    }

    /// Gives the machine's nodes the distances of its file, and memory of other nodes its costs.
    ///
    /// # Errors
    /// Which distance cannot be, and where.
    pub fn attach_nodes(&mut self, file: &MachineFile) -> Result<(), WrongEntry> {
        let Some(numa) = &file.numa else { return Ok(()) };
        let wrong = |reason| WrongEntry { way: vec!["numa".into(), "distances".into()], reason };
        self.kernel.mem.set_distances(&numa.distances).map_err(wrong)?;
        self.kernel.far = Some(FarCosts::new(numa));
        Ok(())
    }

    /// Has memory of a program, that was started and has not run, be there, as `numactl` does.
    ///
    /// # Errors
    /// If no node that the policy names has memory.
    pub fn set_mempolicy(&mut self, id: TaskId, policy: kontig_program::MemPolicy) -> Result<(), SimError> {
        let Body::Process(process) = &self.tasks[id.index()].body else { return Ok(()) };
        let op = kontig_program::Op::SetMempolicy(policy);
        let policy = translate::policy(policy, &self.kernel.mem, &op)?.unwrap_or_default();
        self.kernel.family.set_policy(process.id(), 0, TaskPolicy { policy, turn: 0 });
        Ok(())
    }

    /// Gives the machine the disks of its file, and its swap. A machine without any is left as it is.
    ///
    /// # Errors
    /// What is wrong with them, and where.
    ///
    /// # Panics
    /// If its memory keeps no order of its pages.
    pub fn attach_disks(&mut self, file: &MachineFile) -> Result<(), WrongEntry> {
        let disks = file.disks()?;
        if disks.is_empty() {
            return Ok(());
        }
        let Kernel { mem, pages, queues, .. } = &mut self.kernel;
        assert!(mem.lru().is_ordered(), "a machine with disks reclaims memory");
        pages.frames = Frames::new(mem.zones().iter().map(|zone| zone.end.index()).max().unwrap_or(0));
        pages.mapcounts.keep(mem.frames().nr_pageblocks() * TABLE_PAGES as usize);
        pages.waiters = Waiters::new(queues);
        pages.files = Some(Files::new(mem, disks.iter().map(|disk| (disk.files.clone(), queues.add())).collect()));
        for disk in disks {
            let Kernel { mem, pages, queues, .. } = &mut self.kernel;
            let room = queues.add();
            let (first, blocks) = (disk.swap.start, disk.swap.len() as u32);
            let number = pages.devices.add(disk.parameters, room);
            if blocks > 0 {
                let area = Swap::new(first, blocks, pages.devices.device(number).is_flash(), mem.nr_cpus());
                mem.set_swap(area.space());
                pages.swap = Some(Swapping::new(area, number));
            }
            let last = self.schedule.cpus() - 1;
            self.start(Body::Flusher(FlusherThread::new(number)), Affinity::Any, last);
            if disk.filesystem == FileSystem::Xfs {
                let Kernel { mem, pages, queues, .. } = &mut self.kernel;
                pages.files().make_xfs(mem, queues, number);
                self.start(Body::XfsCheckpoint(CheckpointThread::new(number)), Affinity::Any, last);
                self.start(Body::XfsPush(PushThread::new(number)), Affinity::Any, last);
            }
        }
        Ok(())
    }

    /// Lays a file of so many pages on a disk before anything runs. False if the disk has no room for it, or has a file of
    /// that name.
    pub fn lay_file(&mut self, name: FileName, pages: u32) -> bool {
        self.kernel.pages.files.as_mut().is_some_and(|files| files.lay(name, pages))
    }

    /// The blocks of a file's dirty pages have been written one by one: its pages stay dirty, and nobody has to hurry.
    pub fn blocks_written(&mut self, name: FileName) {
        if let Some(files) = &mut self.kernel.pages.files
            && let Some(inode) = files.named(name)
        {
            files.inodes[inode].blocks_written = true;
        }
    }

    /// What is counted of files and swap.
    pub fn file_counts(&self) -> FileCounts {
        self.kernel.pages.files.as_ref().map_or(FileCounts::default(), |files| files.counts)
    }

    /// The counters of `/proc/vmstat` that are not the engine's: of files, swap and slabs. A machine
    /// without disks has none.
    pub fn counters(&self) -> impl Iterator<Item = (Counter, u64)> {
        self.kernel.pages.files.iter().flat_map(Files::counters)
    }

    /// The declarations of these counters.
    pub fn declared_counters() -> impl Iterator<Item = Counter> {
        file::declared()
    }

    /// The slab caches of its files; none of a machine without disks.
    pub fn slabs(&self) -> Vec<SlabInfo> {
        self.kernel.pages.files.iter().flat_map(|files| files.slabs.info()).collect()
    }

    /// Whether a page of a file is in memory.
    pub fn is_cached(&self, name: FileName, page: u32) -> bool {
        let files = self.kernel.pages.files.as_ref();
        files.is_some_and(|files| files.named(name).is_some_and(|inode| files.find(inode, page).is_some()))
    }

    /// Adds a task that waits.
    pub(crate) fn add(&mut self, body: Body, affinity: Affinity, nice: Nice, cpu: usize, state: State) -> TaskId {
        let id = TaskId(self.schedule.add(affinity, nice, cpu));
        let task = Task { body, state };
        match self.tasks.get_mut(id.index()) {
            Some(gone) => *gone = task,
            None => self.tasks.push(task),
        }
        id
    }

    /// Starts a task now, which its parent on `cpu` has made.
    pub(crate) fn start(&mut self, body: Body, affinity: Affinity, cpu: usize) -> TaskId {
        let id = self.add(body, affinity, Nice::ZERO, cpu, State::Runnable);
        self.schedule.begin_new(id.0, self.now);
        id
    }

    /// Starts a program now.
    pub fn spawn(&mut self, program: Box<dyn Program>, placement: Placement) -> TaskId {
        let number = self.kernel.pages.spaces.add_process();
        let body = Body::Process(Box::new(Process::new(number, program, self.now)));
        let (affinity, cpu) = match placement {
            Placement::Cpu(cpu) => {
                let cpu = cpu.min(self.schedule.cpus() - 1);
                (Affinity::Cpu(cpu), cpu)
            }
            Placement::Any => (Affinity::Any, 0),
        };
        let id = self.start(body, affinity, cpu);
        self.kernel.family.add(number);
        self.kernel.family.threads(number).set_task(0, id);
        id
    }

    /// The program of a task started with [`Machine::spawn`].
    pub fn program(&self, id: TaskId) -> Option<&dyn Program> {
        match &self.tasks[id.index()].body {
            Body::Process(process) => Some(process.program()),
            _ => None,
        }
    }

    /// The same, to be changed from outside.
    pub fn program_mut(&mut self, id: TaskId) -> Option<&mut dyn Program> {
        match &mut self.tasks[id.index()].body {
            Body::Process(process) => Some(process.program_mut()),
            _ => None,
        }
    }

    /// Has a user's frame be one that nobody has used since reclaim last looked at it.
    pub fn forget_use(&mut self, pfn: Pfn) {
        let number = self.kernel.mem.frames().owner(pfn, Order::ZERO);
        self.kernel.pages.references(pfn, number);
    }

    /// Virtual time, ns.
    pub fn now(&self) -> u64 {
        self.now
    }
    /// The machine's memory.
    pub fn memory(&self) -> &Memory {
        &self.kernel.mem
    }
    /// The processes' pages that a user's frame, or the huge page that begins there, is mapped as.
    pub fn mapped_as(&self, pfn: Pfn) -> impl Iterator<Item = UserPage> {
        let frames = self.kernel.mem.frames();
        self.kernel.pages.mapped_as(pfn, frames.owner(pfn, frames.tag(pfn).order()))
    }
    /// Where a process's page is; `None` if it is nowhere.
    pub fn place_of(&self, page: UserPage) -> Option<Place> {
        self.kernel.pages.place_of(page)
    }
    /// The machine's memory, for tracing and for sysctls set from outside.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.kernel.mem
    }
    /// Hands over the events of the groups listened to (`memory_mut().trace().listen()`) that happened before `until`,
    /// each with its virtual time, in order. With `until` no later than a [`Machine::run`] that came back for the time
    /// asked for, none that is handed over afterwards is earlier.
    pub fn take_events(&mut self, until: u64) -> Vec<(u64, Event)> {
        self.kernel.take_events(until)
    }
    /// Pages that a process has in memory, those it shares with others included; `None` if it is gone.
    pub fn rss(&self, process: kontig_program::Process) -> Option<u64> {
        let number = process.get();
        self.kernel.family.is_alive(number).then(|| self.kernel.pages.spaces.size(number).in_memory)
    }
    /// Processes that were killed for want of memory, in that order.
    pub fn oom_kills(&self) -> &[OomKill] {
        &self.kernel.oom_kills
    }
    /// What khugepaged has done.
    pub fn khugepaged(&self) -> KhugepagedCounts {
        self.kernel.khugepaged.counts
    }
    /// Turns that tasks have had.
    pub fn turns(&self) -> u64 {
        self.turns
    }
    /// How often a CPU went from one task to another.
    pub fn context_switches(&self) -> u64 {
        self.schedule.switches()
    }
    /// All work charged so far.
    pub fn work(&self) -> &Work {
        &self.kernel.work
    }
    /// Time all tasks spent waiting for zone locks, ns.
    pub fn lock_wait_ns(&self) -> u64 {
        self.kernel.lock_wait_ns
    }
    /// Time a task has been on a CPU, with that of processes it has forked that are gone.
    pub fn cpu_time(&self, id: TaskId) -> CpuTime {
        self.schedule.time_of(id.0, self.now)
    }
    /// What a CPU's time went into.
    pub fn cpu_use(&self, cpu: CpuId) -> CpuUse {
        self.schedule.use_of(cpu.index(), self.now)
    }
    /// Every kernel thread with its time on a CPU, ns.
    pub fn kernel_threads(&self) -> Vec<(KernelThread, u64)> {
        let thread = |(i, t): (usize, &Task)| {
            Some((t.body.kernel_thread()?, self.schedule.time_of(i as u32, self.now).system_ns))
        };
        self.tasks.iter().enumerate().filter_map(thread).collect()
    }
    /// Time all daemons of a kind, such as `Daemon::Kswapd`, have been on a CPU, ns.
    pub fn daemon_ns(&self, kind: fn(NodeId) -> Daemon) -> u64 {
        self.kernel_threads().iter().filter(|(thread, _)| thread.is_daemon(kind)).map(|(_, ns)| ns).sum()
    }
}

/// The CPUs of a machine with so many threads to a core.
fn topology(mem: &Memory, threads_per_core: usize) -> Topology {
    Topology::new(mem.nodes().iter().map(|n| (n.id, n.cpus.clone())), threads_per_core)
}
