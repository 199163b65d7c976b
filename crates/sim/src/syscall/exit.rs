//! The end of an address space: `exit` gives back everything the process has, `exec` all but the process.

use super::munmap::Munmap;
use super::truncate::Truncate;
use crate::context::Context;
use crate::kernel::Kernel;
use crate::process::ProcessId;
use crate::wait::Wait;
use kontig_mm::{Order, Step};

/// Every mapping of a process is unmapped.
#[derive(Clone)]
pub(crate) struct UnmapAll {
    process: ProcessId,
    current: Option<Munmap>,
}

impl UnmapAll {
    pub(crate) fn new(process: ProcessId) -> UnmapAll {
        UnmapAll { process, current: None }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<(), Wait> {
        loop {
            if let Some(current) = &mut self.current {
                match current.step(k, c) {
                    Step::Done(_) => self.current = None,
                    Step::Working => return Step::Working,
                    Step::Wait(wait) => return Step::Wait(wait),
                }
            }
            match k.pages.spaces.next_mapping(self.process, 0) {
                Some((_, mapping)) => self.current = Some(Munmap::new(k.pages.spaces.whole(mapping))),
                None => return Step::Done(()),
            }
        }
    }
}

/// A process that ends.
#[derive(Clone)]
pub(crate) struct Exit {
    process: ProcessId,
    memory: UnmapAll,
    /// A file that is gone when it is closed.
    file: Option<Truncate>,
}

impl Exit {
    pub(crate) fn new(process: ProcessId) -> Exit {
        Exit { process, memory: UnmapAll::new(process), file: None }
    }

    /// When it is done nobody may ask anything of the process any more.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<(), Wait> {
        let step = self.memory.step(k, c);
        if step != Step::Done(()) {
            return step;
        }
        loop {
            if let Some(file) = &mut self.file {
                match file.step(k, c) {
                    Step::Done(_) => self.file = None,
                    Step::Working => return Step::Working,
                    Step::Wait(wait) => return Step::Wait(wait),
                }
            }
            let Some(open) = k.pages.files.as_ref().and_then(|files| files.any_opened(self.process)) else { break };
            self.file = Truncate::close(k, c, open);
        }
        free_upper(k, c, self.process);
        k.khugepaged_exit(self.process);
        let (gone, queue) = k.family.end(self.process);
        for process in gone {
            k.pages.spaces.remove_process(process);
        }
        if let Some(queue) = queue {
            k.queues.wake_all(queue);
        }
        Step::Done(())
    }
}

/// Gives back the kernel's pages of a process, page tables aside.
pub(super) fn free_upper(k: &mut Kernel, c: &mut Context, process: ProcessId) {
    for pfn in std::mem::take(k.pages.spaces.upper(process)) {
        k.mem.free(c.cpu, pfn, Order::ZERO);
    }
    k.charge(&mut c.now);
}
