//! `fork`: a process with a copy of every mapping, which shares all pages until one of the two writes to one.
//!
//! It begins with the child's own kernel pages. Then every page table is copied, which takes a page for each and leaves
//! all entries write-protected in both.

use super::exit;
use super::exit::UnmapAll;
use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::error::SimError;
use crate::base::id::ProcessId;
use crate::base::rw_lock::Mode;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::kernel::Kernel;
use crate::paging::allocation::Allocation;
use crate::paging::hold_map::Hold;
use crate::state::object::TABLE_PAGES;
use crate::state::process::family::{STACK_PAGES, TASK_PAGES, UPPER_PAGES};
use kontig_mm::{AllocFailure, Gfp, Order, Step};
use kontig_program::{Process, Program, Value};

/// A fork.
#[derive(Clone)]
pub(crate) struct Fork {
    parent: ProcessId,
    /// Which of its threads.
    thread: u32,
    /// The parent's memory map.
    hold: Hold,
    /// What the child is to run, until it has it.
    program: Option<Box<dyn Program>>,
    child: Option<ProcessId>,
    page: Allocation,
    /// There is no memory, and what there is of the child goes.
    undo: Option<UnmapAll>,
    /// The mapping and the page of it that are next.
    mapping: u32,
    next: u32,
}

impl Fork {
    pub(crate) fn new(parent: ProcessId, thread: u32, program: Box<dyn Program>) -> Fork {
        Fork {
            parent,
            thread,
            hold: Hold::new(parent, Mode::Write),
            program: Some(program),
            child: None,
            page: Allocation::new(Gfp::KERNEL, Order::ZERO),
            undo: None,
            mapping: 0,
            next: 0,
        }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<Value, Wait>, SimError> {
        let child = match self.child {
            Some(child) => child,
            None => match self.hold.take(k) {
                Some(wait) => return Ok(Step::Wait(wait)),
                None => self.begin(k, c),
            },
        };
        if let Some(undo) = &mut self.undo {
            let step = undo.step(k, c);
            if step == Step::Done(()) {
                exit::free_upper(k, c, child);
                k.remove_process(child);
            }
            return Ok(step.map(|()| Value::Unit));
        }
        while k.pages.spaces.upper(child).len() < STACK_PAGES + TASK_PAGES + UPPER_PAGES {
            match done!(self.page.step(k, c), Ok) {
                Ok(pfn) => k.pages.spaces.upper(child).push(pfn),
                Err(failure) => return self.give_up(k, child, failure),
            }
        }
        while let Some((mapping, from)) = k.pages.spaces.next_mapping(self.parent, self.mapping) {
            if mapping != self.mapping {
                (self.mapping, self.next) = (mapping, 0);
            }
            let Some((_, to)) = k.pages.spaces.next_mapping(child, mapping) else { break };
            while self.next < k.pages.spaces.mapping(from).pages() {
                if k.pages.spaces.mapping(from).table(self.next).page().is_some() {
                    if k.must_yield(c) {
                        return Ok(Step::Working);
                    }
                    let pfn = match done!(self.page.step(k, c), Ok) {
                        Ok(pfn) => pfn,
                        Err(failure) => return self.give_up(k, child, failure),
                    };
                    k.pages.spaces.mapping(to).table_mut(self.next).set_page(Some(pfn));
                    let entries = k.pages.share_table(from, to, self.next);
                    c.now += ns(k.costs.fork_page * entries);
                }
                self.next += TABLE_PAGES;
            }
            (self.mapping, self.next) = (mapping + 1, 0);
        }
        k.flush_tlb(self.parent, &mut c.now);
        self.hold.give_back(k);
        if let Some(program) = self.program.take() {
            k.family.add_child((self.parent, self.thread), child, program);
            if k.khugepaged.processes.contains(&self.parent) {
                k.khugepaged.enter(child, &mut k.queues);
            }
        }
        // The child is to have its first turn.
        c.horizon = c.now;
        Ok(Step::Done(Value::Child(Process::new(child))))
    }

    /// The parent is to go: there will be no child. Otherwise nothing can be done.
    fn give_up(
        &mut self,
        k: &mut Kernel,
        child: ProcessId,
        failure: AllocFailure,
    ) -> Result<Step<Value, Wait>, SimError> {
        match failure {
            AllocFailure::Failed => {
                self.hold.give_back(k);
                self.undo = Some(UnmapAll::new(child));
                Ok(Step::Working)
            }
            AllocFailure::OutOfMemory => {
                Err(SimError::OutOfMemory { what: "a page of the kernel, for a process".to_string() })
            }
        }
    }

    fn begin(&mut self, k: &mut Kernel, c: &mut Context) -> ProcessId {
        let frames = k.mem.frames().nr_pageblocks() * TABLE_PAGES as usize;
        k.pages.mapcounts.keep(frames);
        let child = k.pages.fork(self.parent);
        c.now += ns(k.costs.fork);
        *self.child.insert(child)
    }
}
