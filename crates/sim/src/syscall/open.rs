//! `open` and `stat`. An open file has an inode, a dentry and a `struct file` in memory, as slab
//! objects; after the last `close` the first two stay until they are shrunk. `stat` needs these two
//! alone.

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::error::SimError;
use crate::base::id::ProcessId;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::kernel::Kernel;
use crate::paging::inode_table::InodeRead;
use crate::paging::preload::Preload;
use crate::paging::xfs::Make;
use crate::state::file::{Cache, OBJECTS};
use kontig_mm::{AllocFailure, Step};
use kontig_program::{FileName, OpenFile, Value};

#[derive(Clone)]
pub(crate) struct Open {
    process: ProcessId,
    inode: u32,
    /// The object being allocated.
    taking: Option<(Cache, Preload)>,
    next: usize,
    /// Whether the file is opened, or only looked at.
    opens: bool,
    /// The file, if it was only looked at and must now be evicted, because its name is gone.
    gone: Option<u32>,
    /// Creation of the file, or the read of its inode, in its file system.
    making: Option<Box<Make>>,
    /// The read of the block that has its inode.
    reading: Option<Box<InodeRead>>,
}

impl Open {
    /// Opens the file of this name, and creates it first if it is missing and `create` is set.
    ///
    /// # Errors
    /// If there is no such file or no such disk.
    pub(crate) fn new(k: &mut Kernel, process: ProcessId, name: FileName, create: bool) -> Result<Open, SimError> {
        let files = k.pages.files.as_mut().filter(|files| usize::from(name.disk()) < files.disks());
        let files = files.ok_or(SimError::NoSuchDisk { disk: name.disk() })?;
        let inode = match files.named(name) {
            Some(inode) => inode,
            None if create => files.make(name),
            None => return Err(SimError::NoSuchFile { name }),
        };
        let is_new = files.inodes[inode].is_new();
        let making = match is_new {
            true => Make::of_new(files, inode).map_err(|()| SimError::DiskFull { name })?,
            false if files.has(inode, Cache::Inode) => None,
            false => Make::of_known(files, inode),
        };
        let is_missing = !is_new && !files.has(inode, Cache::Inode);
        let reading = is_missing.then(|| InodeRead::of(files, inode)).flatten().map(Box::new);
        files.inodes[inode].pin();
        Ok(Open {
            reading,
            process,
            inode,
            taking: None,
            next: 1,
            opens: true,
            gone: None,
            making: making.map(Box::new),
        })
    }

    /// Looks at the file of this name.
    ///
    /// # Errors
    /// If there is no such file or no such disk.
    pub(crate) fn stat(k: &mut Kernel, process: ProcessId, name: FileName) -> Result<Open, SimError> {
        Ok(Open { opens: false, ..Open::new(k, process, name, false)? })
    }

    /// A file that its last user has let go, and that has no name.
    pub(crate) fn gone(&self) -> Option<u32> {
        self.gone
    }

    /// Allocates the inode and the dentry, unless they are in memory, and the open file's object.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<Value, Wait>, SimError> {
        if let Some(making) = &mut self.making {
            match done!(making.step(k, c), Ok) {
                Err(failure) => return self.no_memory(k, failure),
                Ok(()) => self.making = None,
            }
        }
        if let Some(reading) = &mut self.reading {
            match done!(reading.step(k, c), Ok) {
                Err(failure) => return self.no_memory(k, failure),
                Ok(()) => self.reading = None,
            }
        }
        loop {
            if self.next == OBJECTS.len() && !self.opens {
                self.gone = k.pages.files().unpin(self.inode);
                c.now += ns(k.costs.open);
                return Ok(Step::Done(Value::Unit));
            }
            let Some((cache, preload)) = &mut self.taking else {
                let cache = OBJECTS[self.next % OBJECTS.len()];
                let is_there = cache != Cache::Open && k.pages.files().has(self.inode, cache);
                if is_there {
                    self.next += 1;
                } else {
                    let of = match cache {
                        Cache::Inode => k.pages.files().filesystem(self.inode).inodes(),
                        cache => cache,
                    };
                    self.taking = Some((cache, Preload::new(of, 1)));
                }
                continue;
            };
            if let Err(failure) = done!(preload.step(k, c), Ok) {
                return self.no_memory(k, failure);
            }
            let cache = *cache;
            let files = k.pages.files();
            if cache == Cache::Open {
                let object = preload.objects().pop().expect("one was taken");
                let open = files.open(self.process, self.inode, object);
                c.now += ns(k.costs.open);
                k.charge(&mut c.now);
                return Ok(Step::Done(Value::File(OpenFile::new(open))));
            }
            let object = preload.objects()[0];
            if files.give(self.inode, cache, object) {
                preload.objects().clear();
            } else {
                preload.give_back(k, c);
            }
            self.taking = None;
            self.next += 1;
        }
    }

    /// Ends the call of a killed process.
    fn no_memory(&self, k: &mut Kernel, failure: AllocFailure) -> Result<Step<Value, Wait>, SimError> {
        match failure {
            AllocFailure::Failed => {
                k.pages.files().unpin(self.inode);
                Ok(Step::Done(Value::Unit))
            }
            AllocFailure::OutOfMemory => {
                Err(SimError::OutOfMemory { what: "the kernel's own object for a file".into() })
            }
        }
    }
}
