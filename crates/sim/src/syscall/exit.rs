//! The end of an address space: `exit` frees everything the process has, `exec` its memory.

use super::munmap::Zap;
use super::truncate::Truncate;
use crate::base::context::Context;
use crate::base::id::ProcessId;
use crate::base::rw_lock::Mode;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::kernel::Kernel;
use crate::paging::hold_map::Hold;
use kontig_mm::Step;

/// Unmaps every mapping of a process.
#[derive(Clone)]
pub(crate) struct UnmapAll {
    process: ProcessId,
    hold: Hold,
    current: Option<Zap>,
    /// Eviction of a file that lost its last user.
    gives_up: Option<Truncate>,
}

impl UnmapAll {
    pub(crate) fn new(process: ProcessId) -> UnmapAll {
        UnmapAll { process, hold: Hold::new(process, Mode::Write), current: None, gives_up: None }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<(), Wait> {
        // khugepaged may hold it.
        if let Some(wait) = self.hold.take(k) {
            return Step::Wait(wait);
        }
        loop {
            if let Some(gives_up) = &mut self.gives_up {
                done!(gives_up.step(k, c));
                self.gives_up = None;
            }
            if let Some(current) = &mut self.current {
                let Step::Done(gives_up) = current.step(k, c) else { return Step::Working };
                self.current = None;
                if gives_up.is_some() {
                    self.gives_up = gives_up;
                    continue;
                }
            }
            match k.pages.spaces.next_mapping(self.process, 0) {
                Some((_, mapping)) => self.current = Some(Zap::new(k.pages.spaces.whole(mapping))),
                None => {
                    self.hold.give_back(k);
                    return Step::Done(());
                }
            }
        }
    }
}

/// Drops all memory to run another program, after the other threads have ended.
#[derive(Clone)]
pub(crate) struct Exec {
    process: ProcessId,
    thread: u32,
    memory: Option<UnmapAll>,
}

impl Exec {
    pub(crate) fn new(process: ProcessId, thread: u32) -> Exec {
        Exec { process, thread, memory: None }
    }

    /// Whether a killed process can end at this point.
    pub(crate) fn may_end(&self) -> bool {
        self.memory.is_none()
    }

    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<(), Wait> {
        if self.memory.is_none() && !k.family.threads(self.process).is_alone() {
            k.family.end_others(self.process, self.thread);
            let Kernel { family, queues, .. } = k;
            return Step::Wait(Wait::Queue(family.threads(self.process).alone(|| queues.add())));
        }
        self.memory.get_or_insert_with(|| UnmapAll::new(self.process)).step(k, c)
    }
}

/// The end of a process.
#[derive(Clone)]
pub(crate) struct Exit {
    process: ProcessId,
    memory: UnmapAll,
    /// Eviction of a file that lost its last user when it was closed.
    file: Option<Truncate>,
}

impl Exit {
    pub(crate) fn new(process: ProcessId) -> Exit {
        Exit { process, memory: UnmapAll::new(process), file: None }
    }

    /// When it is done, nothing may refer to the process any more.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<(), Wait> {
        let step = self.memory.step(k, c);
        if step != Step::Done(()) {
            return step;
        }
        loop {
            if let Some(file) = &mut self.file {
                done!(file.step(k, c));
                self.file = None;
            }
            let Some(open) = k.pages.files.as_ref().and_then(|files| files.any_opened(self.process)) else { break };
            self.file = Truncate::close(k, c, open);
        }
        free_own(k, c, self.process);
        k.khugepaged.exit(self.process);
        let (gone, queue) = k.family.end(self.process);
        for process in gone {
            k.remove_process(process);
        }
        if let Some(queue) = queue {
            k.queues.wake_all(queue);
        }
        Step::Done(())
    }
}

/// Frees the kernel's blocks and objects of a process, except its page tables.
pub(super) fn free_own(k: &mut Kernel, c: &mut Context, process: ProcessId) {
    for (pfn, order) in std::mem::take(k.pages.spaces.own(process)) {
        k.mem.free(c.cpu, pfn, order);
    }
    for (cache, object) in std::mem::take(k.pages.spaces.objects(process)) {
        k.pages.files().slabs.free(&mut k.mem, c.cpu, cache, object);
    }
    k.charge(&mut c.now);
}
