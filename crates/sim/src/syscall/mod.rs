//! System calls and what drivers ask of the kernel, each a value with a step in a file of its own.
//!
//! A step runs until the operation is done, until another task's turn has come, or until it has woken a kernel
//! thread.

mod alloc_pages;
mod barrier;
mod compute;
mod free_pages;
mod meminfo;
mod mmap;
mod munmap;
mod sysctl;
mod touch;

use crate::context::Context;
use crate::error::SimError;
use crate::kernel::Kernel;
use crate::process::ProcessId;
use crate::translate;
use crate::wait::Wait;
use kontig_mm::Step;
use kontig_program::{Op, Region, Value};

/// An operation in progress.
#[derive(Clone)]
pub(crate) enum Syscall {
    Mmap(mmap::Mmap),
    AdviseHuge(mmap::AdviseHuge),
    Touch(touch::Touch),
    Munmap(munmap::Munmap),
    AllocPages(alloc_pages::AllocPages),
    SplitPages(free_pages::SplitPages),
    FreePages(free_pages::FreePages),
    FreeAboveHigh(meminfo::FreeAboveHigh),
    Sysctl(Box<sysctl::SysctlWrite>),
    Compute(compute::Compute),
    Barrier(barrier::BarrierWait),
}

/// What begins with an operation.
pub(crate) enum Begun {
    Call(Syscall),
    /// Nothing the kernel is called for.
    Own(Syscall),
    /// The task sleeps for so long; there is nothing for the kernel to carry out.
    Sleep(u64),
}

impl Syscall {
    /// Begins an operation of a process.
    ///
    /// # Errors
    /// If it uses memory that is not the process's.
    #[inline]
    pub(crate) fn begin(op: Op, k: &Kernel, process: ProcessId) -> Result<Begun, SimError> {
        let own = |region: Region| k.pages.spaces.span(process, region).ok_or_else(|| SimError::bad_address(&op));
        Ok(Begun::Call(match op {
            Op::Mmap { pages } => Syscall::Mmap(mmap::Mmap { process, pages }),
            Op::AdviseHuge(region) => Syscall::AdviseHuge(mmap::AdviseHuge { region: own(region)? }),
            Op::Touch(region) => Syscall::Touch(touch::Touch::new(own(region)?)),
            Op::Munmap(region) => Syscall::Munmap(munmap::Munmap::new(own(region)?)),
            Op::AllocPages { gfp, order } => {
                Syscall::AllocPages(alloc_pages::AllocPages::new(translate::gfp(gfp), translate::order(order)))
            }
            Op::SplitPages { block, order } => {
                let order = translate::order(order).ok_or_else(|| SimError::bad_address(&op))?;
                Syscall::SplitPages(free_pages::SplitPages { block: translate::pfn(block, &op)?, order })
            }
            Op::FreePages { first, pages } => {
                Syscall::FreePages(free_pages::FreePages { first: translate::pfn(first, &op)?, pages })
            }
            Op::FreeAboveHigh => Syscall::FreeAboveHigh(meminfo::FreeAboveHigh),
            Op::Sysctl { name, value } => Syscall::Sysctl(Box::new(sysctl::SysctlWrite::new(name, value))),
            Op::Barrier { barrier, parties } => Syscall::Barrier(barrier::BarrierWait::new(barrier, parties)),
            Op::Sleep(ns) => return Ok(Begun::Sleep(ns)),
            Op::Compute(ns) => return Ok(Begun::Own(Syscall::Compute(compute::Compute::new(ns)))),
        }))
    }

    /// A step; when the operation is done, what it gave.
    ///
    /// # Errors
    /// If the machine cannot go on with it.
    #[inline]
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<Value, Wait>, SimError> {
        match self {
            Syscall::Mmap(call) => call.run(k).map(Step::Done),
            Syscall::AdviseHuge(call) => Ok(Step::Done(call.run(k))),
            Syscall::Touch(call) => call.step(k, c),
            Syscall::Munmap(call) => Ok(call.step(k, c)),
            Syscall::AllocPages(call) => call.step(k, c),
            Syscall::SplitPages(call) => Ok(Step::Done(call.run(k))),
            Syscall::FreePages(call) => Ok(Step::Done(call.run(k, c))),
            Syscall::FreeAboveHigh(call) => Ok(Step::Done(call.run(k))),
            Syscall::Sysctl(call) => call.step(k, c),
            Syscall::Compute(call) => Ok(call.step()),
            Syscall::Barrier(call) => call.step(k),
        }
    }
}
