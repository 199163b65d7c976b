//! The nodes' daemons on a recorded machine. They share a CPU with the allocating task, and run
//! when they get it, which depends on the profile; or they have a CPU of their own, which they get
//! when an operation has ended, or while it sleeps.

use crate::recording::{CPU, NODE};
use kontig_mm::kcompactd::Kcompactd;
use kontig_mm::kswapd::Kswapd;
use kontig_mm::rules::Preemption;
use kontig_mm::{CpuId, Daemon, Memory, NodeId, Owner, Step, Turn, Wait};
use std::collections::VecDeque;

/// Most pageblocks a step visits; the result does not depend on it.
const BUDGET: u64 = 64;

/// The host of a replay: owner of the pages, with the daemons beside it.
pub(super) trait Host: Owner + Sized {
    fn beside(&mut self) -> &mut Beside;
}

/// The daemons beside the allocating task.
#[derive(Clone)]
pub(super) struct Beside {
    /// `None` while one of them runs, since it is not interrupted.
    daemons: Option<Daemons>,
    preemption: Preemption,
    /// Whether a daemon has run since the last query.
    ran: bool,
    /// Where the allocating task runs.
    task_cpu: CpuId,
    /// The daemons' own, if they do not share the task's.
    own_cpu: Option<CpuId>,
}

/// The nodes' daemons, and which of them are runnable.
#[derive(Clone)]
struct Daemons {
    /// By node, from the first recorded one on.
    of_nodes: Vec<OfNode>,
    /// Those that wait for the CPU, in the order of their wakeups.
    waiting: VecDeque<Daemon>,
    /// Nodes whose kswapd naps and will look again, the first to begin it first.
    naps: VecDeque<NodeId>,
    kcompactd_is_real_time: bool,
}

/// The daemons of one node.
#[derive(Clone)]
struct OfNode {
    kswapd: Kswapd,
    kcompactd: Kcompactd,
}

impl Beside {
    pub(super) fn new(m: &Memory, kcompactd_is_real_time: bool) -> Beside {
        let recorded = m.nodes().iter().map(|node| node.id).filter(|node| *node >= NODE);
        let of_node = |node| OfNode { kswapd: Kswapd::new(node, CPU), kcompactd: Kcompactd::new(node, CPU) };
        let (waiting, naps) = (VecDeque::new(), VecDeque::new());
        let daemons = Daemons { of_nodes: recorded.map(of_node).collect(), waiting, naps, kcompactd_is_real_time };
        let preemption = m.profile().kswapd.preemption;
        Beside { daemons: Some(daemons), preemption, ran: false, task_cpu: CPU, own_cpu: None }
    }

    /// Gives the daemons a CPU of their own.
    pub(super) fn have_own_cpu(&mut self, cpu: CpuId) {
        self.own_cpu = Some(cpu);
        self.move_daemons(cpu);
    }

    /// Moves the task, and the daemons with it unless they have a CPU of their own.
    pub(super) fn run_on(&mut self, cpu: CpuId) {
        self.task_cpu = cpu;
        if self.own_cpu.is_none() {
            self.move_daemons(cpu);
        }
    }

    fn move_daemons(&mut self, cpu: CpuId) {
        for of_node in self.daemons.iter_mut().flat_map(|daemons| &mut daemons.of_nodes) {
            of_node.kswapd.run_on(cpu);
            of_node.kcompactd.run_on(cpu);
        }
    }

    /// The CPU at work: the task's, or while a daemon runs its own.
    pub(super) fn cpu(&self) -> CpuId {
        if self.daemons.is_none() { self.own_cpu.unwrap_or(self.task_cpu) } else { self.task_cpu }
    }

    /// Whether one is runnable.
    fn is_runnable(&self, m: &Memory) -> bool {
        m.has_wakes() || self.daemons.as_ref().is_some_and(|daemons| !daemons.waiting.is_empty())
    }

    /// Whether one waits for the task's CPU.
    pub(super) fn is_awaited(&self, m: &Memory) -> bool {
        self.own_cpu.is_none() && self.is_runnable(m)
    }
}

impl Daemons {
    fn take_wakes(&mut self, m: &mut Memory) {
        for woken in m.take_wakes() {
            if !self.waiting.contains(&woken) {
                self.waiting.push_back(woken);
            }
        }
    }

    fn of_node(&mut self, node: NodeId) -> &mut OfNode {
        &mut self.of_nodes[node.index() - NODE.index()]
    }

    fn is_kswapd(daemon: &Daemon) -> bool {
        matches!(daemon, Daemon::Kswapd(_))
    }

    /// The first that waits for the CPU. A kcompactd without a real-time policy comes after every
    /// kswapd.
    fn next(&mut self, m: &mut Memory, kswapds_only: bool) -> Option<Daemon> {
        self.take_wakes(m);
        let kswapd = self.waiting.iter().position(Daemons::is_kswapd);
        let at = match kswapds_only || !self.kcompactd_is_real_time {
            true => kswapd.or((!kswapds_only).then_some(0))?,
            false => 0,
        };
        self.waiting.remove(at)
    }

    fn kswapd_runs<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, node: NodeId, mut nap_over: bool) {
        self.naps.retain(|of| *of != node);
        loop {
            match self.of_node(node).kswapd.step(m, owner, nap_over) {
                Step::Working => {}
                Step::Wait(wait) => {
                    if matches!(wait, Wait::Time(_) | Wait::Written { .. }) {
                        self.naps.push_back(node);
                    }
                    return;
                }
            }
            nap_over = false;
        }
    }

    /// Runs those that wait for the CPU.
    fn run<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, kswapds_only: bool) {
        while let Some(daemon) = self.next(m, kswapds_only) {
            match daemon {
                Daemon::Kswapd(node) => self.kswapd_runs(m, owner, node, false),
                Daemon::Kcompactd(node) => {
                    let again = [Step::Working, Step::Wait(Wait::Time(0))];
                    while again.contains(&self.of_node(node).kcompactd.step(m, owner, BUDGET, false)) {}
                }
            }
        }
    }
}

/// Gives the CPU to runnable daemons, unless one is running already.
#[cold]
fn give_cpu<H: Host>(host: &mut H, run: impl FnOnce(&mut Daemons, &mut H)) {
    if let Some(mut daemons) = host.beside().daemons.take() {
        run(&mut daemons, host);
        let beside = host.beside();
        beside.daemons = Some(daemons);
        beside.ran = true;
    }
}

/// Runs the nodes' daemons until they wait.
#[cold]
pub(super) fn run<H: Host>(host: &mut H, m: &mut Memory) {
    if host.beside().is_runnable(m) {
        give_cpu(host, |daemons, host| daemons.run(m, host, false));
    }
}

/// Lets daemons that have run go to sleep: kswapd naps first, and looks again.
pub(super) fn let_sleep<H: Host>(host: &mut H, m: &mut Memory) {
    run(host, m);
    if std::mem::take(&mut host.beside().ran) {
        give_cpu(host, |daemons, host| {
            while let Some(node) = daemons.naps.pop_front() {
                daemons.kswapd_runs(m, host, node, true);
                daemons.run(m, host, false);
            }
        });
        host.beside().ran = false;
    }
}

/// A point at which the task may lose the CPU, or offers it.
pub(super) fn turn<H: Host>(host: &mut H, m: &mut Memory, turn: Turn) {
    if host.beside().own_cpu.is_some() {
        return;
    }
    match (host.beside().preemption, turn) {
        (Preemption::Voluntary, Turn::Offered) => run(host, m),
        // In older recordings only kswapd has a real-time policy. When it sleeps, a kcompactd it
        // has woken mostly runs before the request; one woken by the request runs after it.
        (Preemption::Immediate, Turn::Woken) => give_cpu(host, |daemons, host| {
            daemons.take_wakes(m);
            let kcompactd_too = !daemons.waiting.is_empty() && daemons.waiting.iter().all(Daemons::is_kswapd);
            let kswapds_only = !daemons.kcompactd_is_real_time && !kcompactd_too;
            daemons.run(m, host, kswapds_only);
        }),
        (Preemption::Voluntary, Turn::Woken) | (Preemption::Immediate, Turn::Offered) => {}
    }
}
