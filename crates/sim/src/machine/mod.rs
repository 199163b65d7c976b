//! The machine: memory, CPUs and tasks, and the interface for a host to run and observe it.

mod check;
mod executor;
pub(crate) mod found;
pub(crate) mod groups;
pub mod machine_file;
mod mount;

use crate::base::context::TaskPolicy;
use crate::base::cost::{CostModel, ns};
use crate::base::error::SimError;
use crate::base::id::{PageLocation, TaskId, UserPage};
use crate::base::numa::FarCosts;
use crate::base::traced::{Caller, Comm, Traced};
use crate::base::translate;
use crate::device::Plug;
use crate::kernel::Kernel;
use crate::machine::machine_file::{MachineFile, WrongEntry};
use crate::sched::{Affinity, CpuTime, CpuUse, Nice, Schedule, Topology};
use crate::state::file::{
    self, Allocator, Counts as FileCounts, FileSystem, Files, Frames, SlabInfo, Waiters, ZoneCounts,
};
use crate::state::khugepaged::KhugepagedCounts;
use crate::state::object::TABLE_PAGES;
use crate::state::process::family::OomKill;
use crate::state::swap::{Slot, Swap, Swapping};
use crate::task::process::Process;
use crate::task::{Body, Task, TaskState};
use crate::thread::KernelThread;
use crate::thread::flusher::FlusherThread;
use crate::thread::kcompactd::KcompactdThread;
use crate::thread::khugepaged::KhugepagedThread;
use crate::thread::kswapd::KswapdThread;
use crate::thread::slab::SlabThread;
use crate::thread::xfs::{CheckpointThread, PushThread};
use kontig_mm::{Counter, CpuId, Daemon, GroupId, Memory, NodeId, Owner, Pfn, Work};
use kontig_program::{FileName, Placement, Program};
use kontig_translation::Processor;

/// The reason that [`Machine::run`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The time asked for has come.
    Time,
    /// The program asked for is done.
    ProgramDone,
}

/// Interval at which the kernel folds per-CPU counters (`vm.stat_interval`): one second.
pub(crate) const STAT_INTERVAL_NS: u64 = 1_000_000_000;

/// Interval at which it adds up the counters of memory control groups (`FLUSH_TIME`): two seconds.
pub(crate) const GROUP_STAT_INTERVAL_NS: u64 = 2 * STAT_INTERVAL_NS;

/// A simulated machine with its tasks. A clone goes on independently from the same state.
#[derive(Clone)]
pub struct Machine {
    pub(crate) kernel: Kernel,
    pub(crate) tasks: Vec<Task>,
    pub(crate) schedule: Schedule,
    pub(crate) now: u64,
    pub(crate) turns: u64,
    /// Tasks made so far; the last one's pid.
    tasks_made: u32,
    /// The time of the next folding of per-CPU counters.
    pub(crate) next_fold: u64,
    /// The time of the next sum of the groups' counters.
    pub(crate) next_flush: u64,
    /// The task that each CPU ran last, where pages are in generations.
    last_on: Vec<Option<TaskId>>,
}

impl Machine {
    /// A machine at time 0 with its kernel threads asleep.
    pub fn new(mem: Memory, costs: CostModel) -> Machine {
        let nodes: Vec<(NodeId, Vec<CpuId>)> = mem.nodes().iter().map(|n| (n.id, n.cpus.clone())).collect();
        let schedule = Schedule::new(topology(&mem, 1), &mem.profile().scheduler, ns(costs.context_switch));
        let mut machine = Machine {
            kernel: Kernel::new(mem, costs),
            tasks: Vec::new(),
            schedule,
            now: 0,
            turns: 0,
            tasks_made: 0,
            next_fold: STAT_INTERVAL_NS,
            next_flush: GROUP_STAT_INTERVAL_NS,
            last_on: Vec::new(),
        };
        for (node, cpus) in nodes {
            // Programs are placed from a node's first CPU up, kernel threads from its last down.
            let from_last = |i: usize| match cpus.len() {
                0 => CpuId::new(0),
                n => cpus[n - 1 - i.min(n - 1)],
            };
            // They may run on all CPUs of their node, or anywhere if the node has none.
            let affinity = if cpus.is_empty() { Affinity::Any } else { Affinity::Node(node) };
            let mut rest = |body, i| machine.add(body, affinity, Nice::ZERO, from_last(i).index(), TaskState::Resting);
            let kcompactd = rest(Body::Kcompactd(KcompactdThread::new(node, from_last(0))), 0);
            let kswapd = rest(Body::Kswapd(KswapdThread::new(node, from_last(1))), 1);
            // At boot kcompactd looks once and then goes to sleep.
            machine.schedule.wake_at(kcompactd.0, 0);
            let rests = [kswapd, kcompactd].map(|task| (task, machine.kernel.queues.add()));
            rests.iter().for_each(|(_, rest)| machine.kernel.queues.open(*rest));
            let awaits_writes = machine.kernel.queues.add();
            machine.kernel.daemons.add_node(rests[0], rests[1], awaits_writes);
        }
        if machine.kernel.mem.lru().is_ordered() {
            machine.kernel.khugepaged.queue = Some(machine.kernel.queues.add());
            let last = machine.schedule.cpus() - 1;
            // It runs at the lowest priority.
            let khugepaged = Body::Khugepaged(KhugepagedThread::new());
            let khugepaged = machine.add(khugepaged, Affinity::Any, Nice::MAX, last, TaskState::Runnable);
            machine.schedule.begin_new(khugepaged.0, 0);
        }
        machine
    }

    /// Sets the number of threads per core. The first half of each node's CPUs are then the first
    /// threads.
    ///
    /// # Panics
    /// If a node's CPUs are no multiple of it.
    pub fn with_threads_per_core(mut self, threads: usize) -> Machine {
        self.schedule.set_topology(topology(&self.kernel.mem, threads));
        self
    }

    /// Sets the distances and costs of remote memory from the machine file.
    ///
    /// # Errors
    /// The invalid distance, and where it is.
    pub fn attach_nodes(&mut self, file: &MachineFile) -> Result<(), WrongEntry> {
        let Some(numa) = &file.numa else { return Ok(()) };
        let wrong = |reason| WrongEntry { way: vec!["numa".into(), "distances".into()], reason };
        self.kernel.mem.set_distances(&numa.distances).map_err(wrong)?;
        self.kernel.far = Some(FarCosts::new(numa));
        Ok(())
    }

    /// Sets the cost of address translation, which accesses need.
    pub fn set_processor(&mut self, processor: Option<Processor>) {
        self.kernel.processor = processor;
    }

    /// Sets the memory policy of a spawned program that has not run yet, as `numactl` would.
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

    /// Attaches the disks and swap of the machine file, if it has any.
    ///
    /// # Errors
    /// The first error, and where it is.
    ///
    /// # Panics
    /// If the machine's memory keeps no LRU order.
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
        let blocks = disks.iter().map(|disk| (disk.files.clone(), queues.add())).collect();
        let allocator = file.slab.as_ref().map(|slab| slab.allocator).unwrap_or_default();
        pages.files = Some(Files::new(mem, allocator, blocks));
        let last = self.schedule.cpus() - 1;
        if allocator == Allocator::Slab {
            self.start(Body::SlabReaper(SlabThread::new()), Affinity::Any, last);
        }
        for disk in disks {
            let Kernel { mem, pages, queues, .. } = &mut self.kernel;
            let room = queues.add();
            let (first, blocks) = (disk.swap.start, disk.swap.len() as u32);
            let number = pages.devices.add(disk.parameters, mem.profile().block, room);
            if blocks > 0 {
                let area = Swap::new(first, blocks, pages.devices.device(number).is_flash(), mem.nr_cpus());
                mem.set_swap(area.space());
                pages.swap = Some(Swapping::new(area, number));
            }
            self.start(Body::Flusher(FlusherThread::new(number)), Affinity::Any, last);
            if disk.filesystem == FileSystem::Ext4 && self.kernel.mem.profile().files.superblock_is_movable {
                self.mount_ext4(number, disk.files.len() as u32);
            }
            if disk.filesystem == FileSystem::Xfs {
                let Kernel { mem, pages, queues, .. } = &mut self.kernel;
                pages.files().make_xfs(mem, queues, number);
                self.start(Body::XfsCheckpoint(CheckpointThread::new(number)), Affinity::Any, last);
                self.start(Body::XfsPush(PushThread::new(number)), Affinity::Any, last);
            }
        }
        Ok(())
    }

    /// Creates a file of this many pages on a disk before anything runs. False if the disk has no
    /// room, or already has a file of that name.
    pub fn lay_file(&mut self, name: FileName, pages: u32) -> bool {
        self.kernel.pages.files.as_mut().is_some_and(|files| files.lay(name, pages))
    }

    /// Marks the blocks of a file's dirty pages as written one by one: the pages stay dirty, but
    /// need no writeback to be reclaimed.
    pub fn blocks_written(&mut self, name: FileName) {
        if let Some(files) = &mut self.kernel.pages.files
            && let Some(inode) = files.named(name)
        {
            files.inodes[inode].blocks_written = true;
        }
    }

    /// Counters of files and swap.
    pub fn file_counts(&self) -> FileCounts {
        self.kernel.pages.files.as_ref().map_or(FileCounts::default(), |files| files.counts)
    }

    /// Counters of `/proc/vmstat` that the engine does not keep: of files, swap and slabs. A
    /// machine without disks has none.
    pub fn counters(&self) -> impl Iterator<Item = (Counter, u64)> {
        self.kernel.pages.files.iter().flat_map(Files::counters)
    }

    /// Of these counters those that `/proc/zoneinfo` has, of each zone; none of a machine without
    /// disks.
    pub fn counts_of_zones(&self) -> Vec<ZoneCounts> {
        let pages = &self.kernel.pages;
        let slots = pages.swap.iter().flat_map(|swap| (0..swap.area.slots()).map(move |slot| (swap, Slot::new(slot))));
        let in_swap_cache = slots.filter_map(|(swap, slot)| swap.area.page(slot));
        pages.files.as_ref().map_or(Vec::new(), |files| files.by_zone(&self.kernel.mem, &pages.frames, in_swap_cache))
    }

    /// The declarations of these counters.
    pub fn declared_counters() -> impl Iterator<Item = Counter> {
        file::declared()
    }

    /// The slab caches of its files; empty without disks.
    pub fn slabs(&self) -> Vec<SlabInfo> {
        self.kernel.pages.files.iter().flat_map(|files| files.slabs.info()).collect()
    }

    /// Whether a page of a file is in memory.
    pub fn is_cached(&self, name: FileName, page: u32) -> bool {
        let files = self.kernel.pages.files.as_ref();
        files.is_some_and(|files| files.named(name).is_some_and(|inode| files.find(inode, page).is_some()))
    }

    /// Adds a waiting task.
    pub(crate) fn add(&mut self, body: Body, affinity: Affinity, nice: Nice, cpu: usize, state: TaskState) -> TaskId {
        let id = TaskId(self.schedule.add(affinity, nice, cpu, body.kernel_thread().is_some()));
        self.tasks_made += 1;
        let pid = self.tasks_made;
        let comm = match body.kernel_thread() {
            Some(thread) => Comm::new(&thread.to_string()),
            None => Comm::new("program"),
        };
        let task = Task { body, state, plug: Plug::default(), caller: Caller { comm, pid, tgid: pid } };
        match self.tasks.get_mut(id.index()) {
            Some(gone) => *gone = task,
            None => self.tasks.push(task),
        }
        id
    }

    /// Starts a task now, on behalf of its parent on `cpu`.
    pub(crate) fn start(&mut self, body: Body, affinity: Affinity, cpu: usize) -> TaskId {
        let id = self.add(body, affinity, Nice::ZERO, cpu, TaskState::Runnable);
        self.schedule.begin_new(id.0, self.now);
        id
    }

    /// Starts a program now, on one CPU or where the scheduler puts it.
    pub fn spawn(&mut self, program: Box<dyn Program>, placement: Placement) -> TaskId {
        let number = self.kernel.pages.spaces.add_process();
        self.kernel.mem.lru_gen_add_mm(number, GroupId::ROOT);
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

    /// Names a spawned program that has not run yet, as traces show it. Those it forks inherit the
    /// name until they execute a [program with one](Program::name).
    pub fn name_task(&mut self, id: TaskId, name: &str) {
        self.tasks[id.index()].caller.comm = Comm::new(name);
    }

    /// Sends `SIGKILL` to a program started with [`Machine::spawn`] and to every process that it or
    /// its descendants have made, orphans included.
    pub fn kill_all_of(&mut self, id: TaskId) {
        for (number, task) in self.tasks.iter().enumerate() {
            if let Body::Process(process) = &task.body
                && (process.root() == Some(id) || number == id.index())
                && task.state != TaskState::Done
            {
                self.kernel.family.kill(process.id());
            }
        }
    }

    /// The program of a task started with [`Machine::spawn`].
    pub fn program(&self, id: TaskId) -> Option<&dyn Program> {
        match &self.tasks[id.index()].body {
            Body::Process(process) => Some(process.program()),
            _ => None,
        }
    }

    /// Mutable access to a program.
    pub fn program_mut(&mut self, id: TaskId) -> Option<&mut dyn Program> {
        match &mut self.tasks[id.index()].body {
            Body::Process(process) => Some(process.program_mut()),
            _ => None,
        }
    }

    /// Clears a user page's accessed state.
    pub fn forget_use(&mut self, pfn: Pfn) {
        let folio = self.kernel.pages.frames.head(pfn);
        let number = self.kernel.mem.frames().owner(folio, self.kernel.pages.frames.flags(folio).order());
        self.kernel.pages.references(folio, number);
    }

    /// The virtual time in nanoseconds.
    pub fn now(&self) -> u64 {
        self.now
    }
    /// The engine's memory of this machine.
    pub fn memory(&self) -> &Memory {
        &self.kernel.mem
    }
    /// The pages of processes that map this frame, or the huge page that begins there.
    pub fn mapped_as(&self, pfn: Pfn) -> impl Iterator<Item = UserPage> {
        let frames = self.kernel.mem.frames();
        self.kernel.pages.mapped_as(pfn, frames.owner(pfn, frames.tag(pfn).order()))
    }
    /// The location of a process's page; `None` if it has none.
    pub fn location_of(&self, page: UserPage) -> Option<PageLocation> {
        self.kernel.pages.location_of(page)
    }
    /// The machine's memory, for tracing and for setting sysctls from outside.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.kernel.mem
    }
    /// Takes the events of the groups listened to (`memory_mut().trace().listen()`) that happened
    /// before `until`, in order of their virtual times. If `until` is no later than the last
    /// [`Machine::run`] was asked to go, no event returned later is earlier than these.
    pub fn take_events(&mut self, until: u64) -> Vec<Traced> {
        self.kernel.take_events(until)
    }
    /// Resident pages of a process, shared ones included; `None` if it is gone.
    pub fn rss(&self, process: kontig_program::Process) -> Option<u64> {
        let number = process.get();
        self.kernel.family.is_alive(number).then(|| self.kernel.pages.spaces.size(number).in_memory)
    }
    /// OOM kills, in order.
    pub fn oom_kills(&self) -> &[OomKill] {
        &self.kernel.oom_kills
    }
    /// Counters of khugepaged, as in its directory in sysfs.
    pub fn khugepaged(&self) -> KhugepagedCounts {
        self.kernel.khugepaged.counts
    }
    /// Number of turns so far.
    pub fn turns(&self) -> u64 {
        self.turns
    }
    /// Number of context switches.
    pub fn context_switches(&self) -> u64 {
        self.schedule.switches()
    }
    /// The engine's work charged so far.
    pub fn work(&self) -> &Work {
        &self.kernel.work
    }
    /// Time all tasks spent waiting for zone locks, ns.
    pub fn lock_wait_ns(&self) -> u64 {
        self.kernel.lock_wait_ns
    }
    /// CPU time of a task, including its descendants that have ended.
    pub fn cpu_time(&self, id: TaskId) -> CpuTime {
        self.schedule.time_of(id.0, self.now)
    }
    /// User, system, I/O wait and idle time of a CPU.
    pub fn cpu_use(&self, cpu: CpuId) -> CpuUse {
        self.schedule.use_of(cpu.index(), self.now)
    }
    /// All kernel threads, with the CPU time of each, ns.
    pub fn kernel_threads(&self) -> Vec<(KernelThread, u64)> {
        let thread = |(i, t): (usize, &Task)| {
            Some((t.body.kernel_thread()?, self.schedule.time_of(i as u32, self.now).system_ns))
        };
        self.tasks.iter().enumerate().filter_map(thread).collect()
    }
    /// CPU time of all daemons of a kind, such as `Daemon::Kswapd`, ns.
    pub fn daemon_ns(&self, kind: fn(NodeId) -> Daemon) -> u64 {
        self.kernel_threads().iter().filter(|(thread, _)| thread.is_daemon(kind)).map(|(_, ns)| ns).sum()
    }
}

/// The CPUs of a machine with this many threads per core.
fn topology(mem: &Memory, threads_per_core: usize) -> Topology {
    Topology::new(mem.nodes().iter().map(|n| (n.id, n.cpus.clone())), threads_per_core)
}
