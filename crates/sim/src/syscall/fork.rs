//! `fork`: a child with a copy of every mapping, sharing all pages until either process writes.
//!
//! The child's own slab objects and kernel pages are allocated first. Then every page table is
//! copied, which takes a page each and leaves all entries write-protected in both processes.

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
use crate::paging::preload::Preload;
use crate::state::file::{Cache, Object};
use crate::state::object::TABLE_PAGES;
use crate::state::process::family::{OBJECTS, TASK_PAGES, UPPER_TABLES, stack, top_table};
use kontig_mm::{AllocFailure, Gfp, Order, Profile, Step};
use kontig_program::{Process, Program, Value};

/// A fork in progress.
#[derive(Clone)]
pub(crate) struct Fork {
    parent: ProcessId,
    thread: u32,
    hold: Hold,
    /// The child's program, until it is handed over.
    program: Option<Box<dyn Program>>,
    child: Option<ProcessId>,
    /// Objects and a block of the child's own that are being allocated.
    objects: Option<Preload>,
    block: Option<Allocation>,
    page: Allocation,
    /// Removal of the partial child when memory has run out.
    undo: Option<UnmapAll>,
    /// The next mapping and page to copy.
    mapping: u32,
    next: u32,
}

/// The slab objects that a process gets next; `None` if it has all.
fn next_object(has: &[(Cache, Object)]) -> Option<(Cache, usize)> {
    OBJECTS.into_iter().find(|(cache, _)| !has.iter().any(|(its, _)| its == cache))
}

/// The order of the block that a process gets after this many of its own: its stack, single pages
/// that describe it, the top table of its memory map, and those below; `None` after the last.
fn next_own(has: usize, described_by: usize, profile: &Profile) -> Option<Order> {
    let (stack, of_stack) = stack(profile);
    let tables = stack + described_by;
    match has {
        _ if has < stack => Some(of_stack),
        _ if has == tables => Some(top_table(profile)),
        _ if has < tables + UPPER_TABLES => Some(Order::ZERO),
        _ => None,
    }
}

impl Fork {
    pub(crate) fn new(parent: ProcessId, thread: u32, program: Box<dyn Program>) -> Fork {
        Fork {
            parent,
            thread,
            hold: Hold::new(parent, Mode::Write),
            program: Some(program),
            child: None,
            objects: None,
            block: None,
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
                exit::free_own(k, c, child);
                k.remove_process(child);
            }
            return Ok(step.map(|()| Value::Unit));
        }
        if k.pages.files.is_some() {
            while let Some((cache, wanted)) = next_object(k.pages.spaces.objects(child)) {
                let taking = self.objects.get_or_insert_with(|| Preload::new(cache, wanted));
                if let Err(failure) = done!(taking.step(k, c), Ok) {
                    return self.give_up(k, child, failure);
                }
                let got = taking.objects().drain(..).map(|object| (cache, object));
                k.pages.spaces.objects(child).extend(got);
                self.objects = None;
            }
        }
        let described_by = if k.pages.files.is_some() { 0 } else { TASK_PAGES };
        while let Some(order) = next_own(k.pages.spaces.own(child).len(), described_by, k.mem.profile()) {
            let block = self.block.get_or_insert_with(|| Allocation::new(Gfp::KERNEL, order));
            match done!(block.step(k, c), Ok) {
                Ok(pfn) => k.pages.spaces.own(child).push((pfn, order)),
                Err(failure) => return self.give_up(k, child, failure),
            }
            self.block = None;
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
        // Ends the turn, so that the child gets its first one.
        c.horizon = c.now;
        Ok(Step::Done(Value::Child(Process::new(child))))
    }

    /// Gives up the child, if the parent has been killed; otherwise the machine is out of memory.
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
        k.mem.lru_gen_add_mm(child, k.pages.spaces.group_of(child));
        c.now += ns(k.costs.fork);
        *self.child.insert(child)
    }
}
