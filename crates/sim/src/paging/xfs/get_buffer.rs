//! Getting a buffer of XFS: allocates it, reads it unless its chunk is new, and holds it.

use crate::base::context::Context;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::device::{Io, Target};
use crate::kernel::Kernel;
use crate::paging::allocation::Allocation;
use crate::paging::preload::Preload;
use crate::state::file::{Cache, Object};
use kontig_mm::{AllocFailure, Gfp, Order, Pfn, Step};

/// A request for a buffer.
#[derive(Clone)]
pub(crate) struct GetBuffer {
    disk: u8,
    chunk: u32,
    object: Option<Object>,
    preload: Option<Preload>,
    page: Option<Allocation>,
    frames: Vec<Pfn>,
}

impl GetBuffer {
    pub(crate) fn new(disk: u8, chunk: u32) -> GetBuffer {
        GetBuffer { disk, chunk, object: None, preload: None, page: None, frames: Vec::new() }
    }

    /// A step; done with the held buffer, once no I/O is in progress on it.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Result<u32, AllocFailure>, Wait> {
        loop {
            let buffers = &mut k.pages.files().xfs(self.disk).buffers;
            let chunk = &buffers.chunks[self.chunk as usize];
            let (block, blocks, is_new, buffer) = (chunk.block, chunk.blocks, chunk.is_new, chunk.buffer);
            if let Some(number) = buffer {
                if buffers.all[number].is_busy {
                    let busy = buffers.busy;
                    self.give_back(k, c);
                    return Step::Wait(Wait::Io(busy));
                }
                buffers.hold(number);
                self.give_back(k, c);
                return Step::Done(Ok(number));
            }
            if let Some(preload) = &mut self.preload {
                match done!(preload.step(k, c)) {
                    Err(failure) => return self.fail(k, c, failure),
                    Ok(()) => self.object = preload.objects().pop(),
                }
                self.preload = None;
                continue;
            }
            if self.object.is_none() {
                self.object = k.pages.files().slabs.take(Cache::XfsBuffer, c.cpu, c.node);
                if self.object.is_none() {
                    self.preload = Some(Preload::new(Cache::XfsBuffer, 1));
                }
                continue;
            }
            if (self.frames.len() as u32) < blocks {
                let gfp = Gfp::KERNEL.without(Gfp::FS) | Gfp::NOWARN;
                match done!(self.page.get_or_insert_with(|| Allocation::new(gfp, Order::ZERO)).step(k, c)) {
                    Err(failure) => return self.fail(k, c, failure),
                    Ok(pfn) => self.frames.push(pfn),
                }
                continue;
            }
            let (object, frames) = (self.object.take().expect("it was taken"), std::mem::take(&mut self.frames));
            let buffers = &mut k.pages.files().xfs(self.disk).buffers;
            let number = buffers.add(self.chunk, object, frames);
            if !is_new {
                let target = Target::Buffer { disk: self.disk, number };
                k.pages.devices.add_to_plug(self.disk, block, Io { target, pages: blocks, write: false, cpu: c.cpu });
                k.charge(&mut c.now);
            }
        }
    }

    fn fail(
        &mut self,
        k: &mut Kernel,
        c: &mut Context,
        failure: AllocFailure,
    ) -> Step<Result<u32, AllocFailure>, Wait> {
        self.preload = None;
        self.give_back(k, c);
        Step::Done(Err(failure))
    }

    /// Frees what was allocated: another task added the buffer first, or memory ran short.
    fn give_back(&mut self, k: &mut Kernel, c: &mut Context) {
        if let Some(object) = self.object.take() {
            k.pages.files().slabs.free(&mut k.mem, c.cpu, Cache::XfsBuffer, object);
        }
        for pfn in self.frames.drain(..) {
            k.mem.free(c.cpu, pfn, Order::ZERO);
        }
        k.charge(&mut c.now);
    }
}
