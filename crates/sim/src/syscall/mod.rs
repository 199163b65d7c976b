//! System calls and driver operations, each a value with a step in a file of its own.
//!
//! A step runs until the operation is done, another task's turn has come, or it has woken a kernel
//! thread.

mod access;
mod advise_cold;
mod alloc_pages;
mod barrier;
mod compute;
pub(crate) mod exit;
mod fork;
mod free_pages;
mod meminfo;
mod mempolicy;
mod mincore;
mod mmap;
mod munmap;
mod open;
mod read;
mod spawn;
mod sync;
mod sysctl;
mod touch;
pub(crate) mod truncate;
mod wait_child;
mod write;

use crate::base::context::Context;
use crate::base::error::SimError;
use crate::base::id::ProcessId;
use crate::base::memory_bus::Written;
use crate::base::translate;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::sched::CpuTime;
use crate::syscall::touch::Way;
use kontig_mm::Step;
use kontig_program::{Op, OpenFile, Program, Region, Value};

/// An operation in progress.
#[derive(Clone)]
pub(crate) enum Syscall {
    Mmap(mmap::Mmap),
    AdviseHuge(mmap::AdviseHuge),
    SetMempolicy(mempolicy::SetMempolicy),
    Mbind(mempolicy::Mbind),
    Touch(touch::Touch),
    Munmap(munmap::Munmap),
    AllocPages(alloc_pages::AllocPages),
    FreeBlock(free_pages::FreeBlock),
    SplitPages(free_pages::SplitPages),
    FreePages(free_pages::FreePages),
    FreeAboveHigh(meminfo::FreeAboveHigh),
    Sysctl(Box<sysctl::SysctlWrite>),
    Open(Box<open::Open>),
    Read(read::Read),
    Write(write::Write),
    Fsync(sync::Fsync),
    Sync(sync::Sync),
    Truncate(truncate::Truncate),
    Close(u32),
    /// An operation with nothing left to do.
    Nothing,
    Compute(compute::Compute),
    Access(Box<access::Access>),
    Spin(compute::Spin),
    Barrier(barrier::BarrierWait),
    Fork(Box<fork::Fork>),
    Exec(exit::Exec),
    Wait(wait_child::WaitChild),
    Kill(wait_child::Kill),
    ChildTimes(ProcessId),
    Spawn(Box<spawn::Spawn>),
    Join(spawn::Join),
    Mincore(mincore::Mincore),
    AdviseCold(advise_cold::AdviseCold),
}

/// The start of an operation.
pub(crate) enum Begun {
    Call(Syscall),
    /// An operation that does not enter the kernel.
    Own(Syscall),
    /// The task sleeps for this long, ns.
    Sleep(u64),
    /// The process runs another program when the call is done.
    Exec(exit::Exec, Box<dyn Program>),
    Exit,
}

impl Syscall {
    /// Begins an operation of a process.
    ///
    /// # Errors
    /// If it uses memory that the process does not have.
    #[inline]
    pub(crate) fn begin(op: Op, k: &mut Kernel, process: ProcessId, thread: u32) -> Result<Begun, SimError> {
        let own = |region: Region| k.pages.spaces.span(process, region).ok_or_else(|| SimError::bad_address(&op));
        let opened = |file: OpenFile| {
            let open = k.pages.files.as_ref().and_then(|files| files.opened(process, file.get()));
            open.map(|open| open.inode).ok_or_else(|| SimError::bad_address(&op))
        };
        let touch = |region, way| Ok(Syscall::Touch(touch::Touch::new(k, process, (region, own(region)?), way)));
        Ok(Begun::Call(match op {
            Op::Mmap { pages } => Syscall::Mmap(mmap::Mmap::anonymous(process, pages, false)),
            Op::MmapAnywhere { pages } => Syscall::Mmap(mmap::Mmap::anonymous(process, pages, true)),
            Op::AdviseHuge(region) => {
                own(region)?;
                Syscall::AdviseHuge(mmap::AdviseHuge::new(process, region))
            }
            Op::AdviseCold(region) if k.pages.spaces.maps_file(process, region) => {
                return Err(SimError::bad_address(&op));
            }
            Op::AdviseCold(region) => {
                own(region)?;
                Syscall::AdviseCold(advise_cold::AdviseCold::new(process, region))
            }
            Op::SetMempolicy(policy) => {
                let policy = translate::policy(policy, &k.mem, &op)?.unwrap_or_default();
                Syscall::SetMempolicy(mempolicy::SetMempolicy { process, thread, policy })
            }
            Op::Mbind { region, policy } => {
                let policy = translate::policy(policy, &k.mem, &op)?;
                own(region)?;
                Syscall::Mbind(mempolicy::Mbind::new(process, region, policy))
            }
            Op::MmapFile { file, first, pages } => {
                let inode = opened(file)?;
                Syscall::Mmap(mmap::Mmap::file(process, (file, inode), first, pages))
            }
            Op::Touch(region) | Op::Use(region) | Op::Fill(region) if k.pages.spaces.maps_file(process, region) => {
                return Err(SimError::bad_address(&op));
            }
            Op::Touch(region) => touch(region, Way::Write(Written::Word))?,
            Op::Use(region) => return Ok(Begun::Own(touch(region, Way::Use)?)),
            Op::Fill(region) => touch(region, Way::Write(Written::Page))?,
            Op::Load(region) => touch(region, Way::Read)?,
            Op::Munmap(region) => {
                own(region)?;
                Syscall::Munmap(munmap::Munmap::new(process, region))
            }
            Op::AllocPages { gfp, order } => {
                Syscall::AllocPages(alloc_pages::AllocPages::new(translate::gfp(gfp), translate::order(order)))
            }
            Op::FreeBlock { block, order } => {
                let order = translate::order(order).ok_or_else(|| SimError::bad_address(&op))?;
                Syscall::FreeBlock(free_pages::FreeBlock { block: translate::pfn(block, &op)?, order })
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
            Op::Open { name, create } => Syscall::Open(Box::new(open::Open::new(k, process, name, create)?)),
            Op::Stat(name) => Syscall::Open(Box::new(open::Open::stat(k, process, name)?)),
            Op::AdviseRandom(file) => {
                opened(file)?;
                k.pages.files().opens[file.get()].readahead.is_random = true;
                Syscall::Nothing
            }
            Op::Read { file, first, pages } => {
                let inode = opened(file)?;
                Syscall::Read(read::Read::new(k, file.get(), inode, first, pages))
            }
            Op::Close(file) => {
                opened(file)?;
                Syscall::Close(file.get())
            }
            Op::Write { file, first, pages } => {
                let inode = opened(file)?;
                Syscall::Write(write::Write::new(k, process, inode, first, pages))
            }
            Op::Fsync(file) => Syscall::Fsync(sync::Fsync::new(opened(file)?)),
            Op::Sync => Syscall::Sync(sync::Sync::new()),
            Op::Truncate { file, pages } => Syscall::Truncate(truncate::Truncate::new(opened(file)?, pages)),
            Op::Unlink(name) => truncate::Truncate::unlink(k, name)?.map_or(Syscall::Nothing, Syscall::Truncate),
            Op::UnlinkIfThere(name) => {
                let gone = truncate::Truncate::unlink(k, name).ok().flatten();
                gone.map_or(Syscall::Nothing, Syscall::Truncate)
            }
            Op::Fork(program) => Syscall::Fork(Box::new(fork::Fork::new(process, thread, program))),
            Op::Wait(child) => Syscall::Wait(wait_child::WaitChild::new(k, process, Some(child), &op)?),
            Op::WaitAny => Syscall::Wait(wait_child::WaitChild::new(k, process, None, &op)?),
            Op::WaitNoHang => Syscall::Wait(wait_child::WaitChild::new(k, process, None, &op)?.no_hang()),
            Op::Kill(process) => Syscall::Kill(wait_child::Kill { process: process.get() }),
            Op::ChildTimes => Syscall::ChildTimes(process),
            Op::Spawn(program) => Syscall::Spawn(Box::new(spawn::Spawn::new(process, thread, program))),
            Op::Join(thread) => Syscall::Join(spawn::Join::new(process, thread)),
            Op::Mincore(region) => {
                own(region)?;
                Syscall::Mincore(mincore::Mincore::new(process, region))
            }
            Op::Exec(program) => return Ok(Begun::Exec(exit::Exec::new(process, thread), program)),
            Op::Exit => return Ok(Begun::Exit),
            Op::Sleep(ns) => return Ok(Begun::Sleep(ns)),
            Op::Compute(ns) => return Ok(Begun::Own(Syscall::Compute(compute::Compute::new(ns)))),
            Op::Access { region, used, pattern, accesses } => {
                own(region)?;
                let access = access::Access::new(process, region, used, pattern, accesses);
                return Ok(Begun::Own(Syscall::Access(Box::new(access))));
            }
            Op::Spin(ns) => Syscall::Spin(compute::Spin::new(ns)),
        }))
    }

    /// Whether a killed process can end at this point.
    pub(crate) fn may_end(&self) -> bool {
        match self {
            Syscall::Touch(call) => call.may_end(),
            Syscall::Exec(call) => call.may_end(),
            Syscall::Wait(_) | Syscall::Join(_) | Syscall::Barrier(_) => true,
            Syscall::Access(_) | Syscall::Compute(_) | Syscall::Spin(_) => true,
            _ => false,
        }
    }

    /// A step; done with the operation's result.
    ///
    /// # Errors
    /// If the machine cannot go on with it.
    #[inline]
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<Value, Wait>, SimError> {
        match self {
            Syscall::Mmap(call) => call.step(k),
            Syscall::AdviseHuge(call) => call.step(k),
            Syscall::SetMempolicy(call) => Ok(Step::Done(call.run(k, c))),
            Syscall::Mbind(call) => call.step(k),
            Syscall::Touch(call) => call.step(k, c),
            Syscall::Munmap(call) => call.step(k, c),
            Syscall::AllocPages(call) => call.step(k, c),
            Syscall::FreeBlock(call) => Ok(Step::Done(call.run(k, c))),
            Syscall::SplitPages(call) => Ok(Step::Done(call.run(k))),
            Syscall::FreePages(call) => Ok(Step::Done(call.run(k, c))),
            Syscall::FreeAboveHigh(call) => Ok(Step::Done(call.run(k))),
            Syscall::Sysctl(call) => call.step(k, c),
            Syscall::Open(call) => {
                let step = call.step(k, c);
                let Some(inode) = call.gone() else { return step };
                *self = Syscall::Truncate(truncate::Truncate::give_up(inode));
                Ok(Step::Working)
            }
            Syscall::Read(call) => call.step(k, c),
            Syscall::Write(call) => call.step(k, c),
            Syscall::Fsync(call) => Ok(call.step(k, c)),
            Syscall::Sync(call) => Ok(call.step(k, c)),
            Syscall::Truncate(call) => Ok(call.step(k, c)),
            Syscall::Close(open) => Ok(match truncate::Truncate::close(k, c, *open) {
                Some(gives_up) => {
                    *self = Syscall::Truncate(gives_up);
                    Step::Working
                }
                None => Step::Done(Value::Unit),
            }),
            Syscall::Nothing => Ok(Step::Done(Value::Unit)),
            Syscall::Access(call) => call.step(k),
            Syscall::Compute(call) => Ok(call.step()),
            Syscall::Spin(call) => Ok(call.step(c)),
            Syscall::Barrier(call) => call.step(k),
            Syscall::Fork(call) => call.step(k, c),
            Syscall::Exec(call) => Ok(call.step(k, c).map(|()| Value::Unit)),
            Syscall::Wait(call) => Ok(call.step(k)),
            Syscall::Kill(call) => Ok(Step::Done(call.run(k))),
            Syscall::ChildTimes(process) => {
                let CpuTime { user_ns, system_ns } = k.family.children_time(*process);
                Ok(Step::Done(Value::Times { user_ns, system_ns }))
            }
            Syscall::Spawn(call) => call.step(k, c),
            Syscall::Join(call) => call.step(k),
            Syscall::Mincore(call) => call.step(k),
            Syscall::AdviseCold(call) => call.step(k, c),
        }
    }
}
