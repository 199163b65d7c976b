//! `open`. A file that is open has its inode, its dentry and itself in memory, as objects of slab caches; when nobody
//! has it open any more the first two stay until they are shrunk.

use crate::context::Context;
use crate::cost::ns;
use crate::error::SimError;
use crate::file::room::Room;
use crate::file::{Cache, OBJECTS};
use crate::kernel::Kernel;
use crate::process::ProcessId;
use crate::wait::Wait;
use kontig_mm::{AllocFailure, Step};
use kontig_program::{FileName, OpenFile, Value};

/// Opens a file.
#[derive(Clone)]
pub(crate) struct Open {
    process: ProcessId,
    inode: u32,
    /// The object being taken.
    taking: Option<(Cache, Room)>,
    next: usize,
}

impl Open {
    /// Of the file of this name, which is made if it is not there and may be.
    ///
    /// # Errors
    /// If it is not there, or there is no such disk.
    pub(crate) fn new(k: &mut Kernel, process: ProcessId, name: FileName, create: bool) -> Result<Open, SimError> {
        let files = k.pages.files.as_mut().filter(|files| usize::from(name.disk()) < files.disks());
        let files = files.ok_or(SimError::NoSuchDisk { disk: name.disk() })?;
        let inode = match files.named(name) {
            Some(inode) => inode,
            None if create => files.make(name),
            None => return Err(SimError::NoSuchFile { name }),
        };
        files.inodes[inode].pin();
        Ok(Open { process, inode, taking: None, next: 1 })
    }

    /// Takes an inode and a dentry, where they are not in memory, and the open file's own object.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<Value, Wait>, SimError> {
        loop {
            let Some((cache, room)) = &mut self.taking else {
                let cache = OBJECTS[self.next % OBJECTS.len()];
                let is_there = cache != Cache::Open && k.pages.files().has(self.inode, cache);
                if is_there {
                    self.next += 1;
                } else {
                    self.taking = Some((cache, Room::of(cache, 1)));
                }
                continue;
            };
            match room.step(k, c) {
                Step::Working => return Ok(Step::Working),
                Step::Wait(wait) => return Ok(Step::Wait(wait)),
                Step::Done(Err(AllocFailure::Failed)) => {
                    // It was killed for want of memory.
                    k.pages.files().unpin(self.inode);
                    return Ok(Step::Done(Value::Unit));
                }
                Step::Done(Err(AllocFailure::OutOfMemory)) => {
                    return Err(SimError::OutOfMemory { what: "the kernel's own object for a file".into() });
                }
                Step::Done(Ok(())) => {}
            }
            let cache = *cache;
            let files = k.pages.files();
            if cache == Cache::Open {
                let object = room.objects().pop().expect("one was taken");
                let open = files.open(self.process, self.inode, object);
                c.now += ns(k.costs.open);
                k.charge(&mut c.now);
                return Ok(Step::Done(Value::File(OpenFile::new(open))));
            }
            let object = room.objects()[0];
            if files.give(self.inode, cache, object) {
                room.objects().clear();
            } else {
                room.give_back(k, c);
            }
            self.taking = None;
            self.next += 1;
        }
    }
}
