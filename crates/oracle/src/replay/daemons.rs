//! The node's daemons on a recorded machine. They share a CPU with the allocating task, and run
//! when they get it, which depends on the profile; or they have a CPU of their own, which they get
//! when an operation has ended, or while it sleeps.

use crate::recording::{CPU, NODE};
use kontig_mm::kcompactd::Kcompactd;
use kontig_mm::kswapd::Kswapd;
use kontig_mm::rules::Preemption;
use kontig_mm::{CpuId, Daemon, Memory, Owner, Profile, Step, Turn, Wait};

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
    kcompactd_is_real_time: bool,
    /// Whether a daemon has run since the last query.
    ran: bool,
    /// Where the allocating task runs.
    task_cpu: CpuId,
    /// The daemons' own, if they do not share the task's.
    own_cpu: Option<CpuId>,
}

/// The node's daemons, and which of them are runnable.
#[derive(Clone)]
struct Daemons {
    kswapd: Kswapd,
    kswapd_waits: bool,
    /// kswapd naps and will look again.
    kswapd_naps: bool,
    kcompactd: Kcompactd,
    kcompactd_waits: bool,
}

impl Beside {
    pub(super) fn new(profile: &Profile, kcompactd_is_real_time: bool) -> Beside {
        let daemons = Daemons {
            kswapd: Kswapd::new(NODE, CPU),
            kswapd_waits: false,
            kswapd_naps: false,
            kcompactd: Kcompactd::new(NODE, CPU),
            kcompactd_waits: false,
        };
        let preemption = profile.kswapd.preemption;
        let daemons = Some(daemons);
        Beside { daemons, preemption, kcompactd_is_real_time, ran: false, task_cpu: CPU, own_cpu: None }
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
        if let Some(daemons) = &mut self.daemons {
            daemons.kswapd.run_on(cpu);
            daemons.kcompactd.run_on(cpu);
        }
    }

    /// The CPU at work: the task's, or while a daemon runs its own.
    pub(super) fn cpu(&self) -> CpuId {
        if self.daemons.is_none() { self.own_cpu.unwrap_or(self.task_cpu) } else { self.task_cpu }
    }

    /// Whether one is runnable.
    fn is_runnable(&self, m: &Memory) -> bool {
        let waits = |d: &Daemons| d.kswapd_waits || d.kcompactd_waits;
        m.has_wakes() || self.daemons.as_ref().is_some_and(waits)
    }

    /// Whether one waits for the task's CPU.
    pub(super) fn is_awaited(&self, m: &Memory) -> bool {
        self.own_cpu.is_none() && self.is_runnable(m)
    }
}

impl Daemons {
    fn take_wakes(&mut self, m: &mut Memory) {
        for woken in m.take_wakes() {
            match woken {
                Daemon::Kswapd(_) => self.kswapd_waits = true,
                Daemon::Kcompactd(_) => self.kcompactd_waits = true,
            }
        }
    }

    fn kswapd_runs<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, mut nap_over: bool) {
        loop {
            match self.kswapd.step(m, owner, nap_over) {
                Step::Working => {}
                Step::Wait(wait) => {
                    self.kswapd_naps = matches!(wait, Wait::Time(_) | Wait::Written { .. });
                    return;
                }
            }
            nap_over = false;
        }
    }

    fn run_kswapd<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) {
        self.take_wakes(m);
        while std::mem::take(&mut self.kswapd_waits) {
            self.kswapd_runs(m, owner, false);
            self.take_wakes(m);
        }
    }

    fn run_both<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) {
        self.run_kswapd(m, owner);
        while std::mem::take(&mut self.kcompactd_waits) {
            let again = [Step::Working, Step::Wait(Wait::Time(0))];
            while again.contains(&self.kcompactd.step(m, owner, BUDGET, false)) {}
            self.run_kswapd(m, owner);
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

/// Runs the node's daemons until they wait.
#[cold]
pub(super) fn run<H: Host>(host: &mut H, m: &mut Memory) {
    if host.beside().is_runnable(m) {
        give_cpu(host, |daemons, host| daemons.run_both(m, host));
    }
}

/// Lets daemons that have run go to sleep: kswapd naps first, and looks again.
pub(super) fn let_sleep<H: Host>(host: &mut H, m: &mut Memory) {
    run(host, m);
    if std::mem::take(&mut host.beside().ran) {
        give_cpu(host, |daemons, host| {
            while daemons.kswapd_naps {
                daemons.kswapd_runs(m, host, true);
                daemons.run_both(m, host);
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
    let (preemption, kcompactd_is_real_time) = (host.beside().preemption, host.beside().kcompactd_is_real_time);
    match (preemption, turn) {
        (Preemption::Voluntary, Turn::Offered) => run(host, m),
        // In older recordings only kswapd has a real-time policy. When it sleeps, a kcompactd it
        // has woken mostly runs before the request; one woken by the request runs after it.
        (Preemption::Immediate, Turn::Woken) => give_cpu(host, |daemons, host| {
            daemons.take_wakes(m);
            let kcompactd_too = daemons.kswapd_waits && !daemons.kcompactd_waits;
            if kcompactd_is_real_time || kcompactd_too {
                daemons.run_both(m, host);
            } else {
                daemons.run_kswapd(m, host);
            }
        }),
        (Preemption::Voluntary, Turn::Woken) | (Preemption::Immediate, Turn::Offered) => {}
    }
}
