//! `fsync` of a file, and `sync` of all of them: what is dirty is written, and then waited for.
//!
//! Each page is written once and waited for once, however many others are dirtied meanwhile. The file system's journal,
//! and the flush of the disk's own cache, are left out.

use crate::context::Context;
use crate::file::{Flags, Halt, Pass};
use crate::kernel::Kernel;
use crate::wait::Wait;
use kontig_mm::Step;
use kontig_program::Value;

/// A file that is written to its disk.
#[derive(Clone)]
pub(crate) struct Fsync {
    pass: Pass,
    /// Once all is asked for: the next page to wait for.
    waits_for: Option<u32>,
}

impl Fsync {
    pub(crate) fn new(inode: u32) -> Fsync {
        Fsync { pass: Pass { inode, next: 0, left: u64::MAX }, waits_for: None }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Value, Wait> {
        let inode = self.pass.inode;
        loop {
            if k.pages.files().inodes.get(inode).is_none() {
                return Step::Done(Value::Unit);
            }
            let Some(next) = self.waits_for else {
                match k.write_pass(c, &mut self.pass) {
                    Halt::Done => self.waits_for = Some(0),
                    Halt::Turn => return Step::Working,
                    Halt::Full(room) => return Step::Wait(Wait::Queue(room)),
                }
                continue;
            };
            let files = k.pages.files();
            let Some(index) = files.next_marked(inode, next, true) else { return Step::Done(Value::Unit) };
            self.waits_for = Some(index);
            let pfn = files.find(inode, index).expect("it is being written, and stays");
            debug_assert!(k.pages.frames.flags(pfn).any(Flags::WRITEBACK));
            return Step::Wait(k.wait_for_page(pfn));
        }
    }
}

/// All files.
#[derive(Clone)]
pub(crate) struct Sync {
    /// The next file to write, and then to wait for.
    next: u32,
    current: Option<Fsync>,
    begun: bool,
}

impl Sync {
    pub(crate) fn new() -> Sync {
        Sync { next: 0, current: None, begun: false }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Value, Wait> {
        if k.pages.files.is_none() {
            return Step::Done(Value::Unit);
        }
        if !std::mem::replace(&mut self.begun, true) {
            k.wake_flushers();
        }
        loop {
            if let Some(current) = &mut self.current {
                match current.step(k, c) {
                    Step::Done(_) => self.current = None,
                    step => return step,
                }
            }
            if k.must_yield(c) {
                return Step::Working;
            }
            let Some((inode, _)) = k.pages.files().inodes.next(self.next) else { return Step::Done(Value::Unit) };
            self.next = inode + 1;
            self.current = Some(Fsync::new(inode));
        }
    }
}
