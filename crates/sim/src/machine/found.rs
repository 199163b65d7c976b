//! User pages present before anything runs, as imported from a snapshot of a real host.
//!
//! A snapshot knows neither their owners nor when they were last used. Anonymous pages belong to
//! one idle process: they can be moved, swapped out and split, and go with the process if memory
//! runs out. File pages are in the page cache, in files of 64 pages that stay open. Each inode
//! itself holds its pages: the tree nodes of the host's files are among the kernel pages of the
//! snapshot, so none are allocated here. A machine without disks has no page cache; there, file
//! pages belong to the process as well.

use crate::machine::Machine;
use crate::state::file::Flags;
use crate::state::file::NODE_PAGES;
use crate::state::object::TABLE_PAGES;
use crate::task::Body;
use kontig_mm::types::PAGEBLOCK_ORDER;
use kontig_mm::{Order, Pfn};
use kontig_program::{Batch, FileName, Outcome, Placement, Program};

/// A user page, or a huge page, of a host snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundPage {
    pub pfn: Pfn,
    /// Whether it is a huge page; never one of a file.
    pub huge: bool,
    pub of: FoundIn,
}

/// The owner of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FoundIn {
    /// A process, or memory shared by processes.
    Process,
    File {
        /// Whether it must be written back before it can be reclaimed.
        dirty: bool,
    },
}

/// A process that does nothing and keeps its memory.
#[derive(Clone)]
struct Resting;

impl Program for Resting {
    fn next(&mut self, _: &[Outcome], _: &mut Batch) {}
    fn progress(&self) -> f64 {
        1.0
    }
}

impl Machine {
    /// Assigns the user pages of a snapshot to their owners. Call it after the disks are attached
    /// and before anything runs.
    ///
    /// # Errors
    /// If the first disk has no room for the file pages, or there are more others than can be
    /// mapped.
    pub fn adopt(&mut self, found: &[FoundPage]) -> Result<(), String> {
        let has_files = self.kernel.pages.files.is_some();
        let is_of_file = |page: &&FoundPage| has_files && page.of != FoundIn::Process && !page.huge;
        self.adopt_files(found.iter().filter(is_of_file))?;
        let others = || found.iter().filter(|page| !is_of_file(page));
        let huge = others().filter(|page| page.huge).count();
        let small = others().count() - huge;
        let pages = huge as u64 * u64::from(TABLE_PAGES) + small as u64;
        if pages == 0 {
            return Ok(());
        }
        let rest = self.spawn(Box::new(Resting), Placement::Any);
        let Body::Process(rest) = &self.tasks[rest.index()].body else { return Err("it is a process".into()) };
        let process = rest.id();
        let region = u32::try_from(pages).ok().and_then(|pages| self.kernel.pages.mmap(process, pages));
        let region = region.ok_or("more memory of users than 16 TiB")?;
        let span = self.kernel.pages.spaces.span(process, region).ok_or("the process has just mapped it")?;
        let (mut next_huge, mut next) = (0, huge as u32 * TABLE_PAGES);
        for page in others() {
            let mapping = self.kernel.pages.spaces.mapping(span.mapping);
            let (at, order) = if page.huge {
                mapping.table_mut(next_huge).set_huge(Some(page.pfn));
                next_huge += TABLE_PAGES;
                (next_huge - TABLE_PAGES, PAGEBLOCK_ORDER)
            } else {
                mapping.set_pte(next, page.pfn);
                next += 1;
                (next - 1, Order::ZERO)
            };
            let number = mapping.number(at);
            self.kernel.mem.set_owner(page.pfn, order, number);
        }
        Ok(())
    }
}

/// Names of imported files: numbers that no workload uses.
const FIRST_NAME: u64 = 1 << 63;

impl Machine {
    /// Puts pages into the cache in the order found, since pages of one file lie close together.
    pub(crate) fn adopt_files<'a>(&mut self, found: impl Iterator<Item = &'a FoundPage>) -> Result<(), String> {
        let mut last: Option<(u32, u32)> = None;
        for (name, page) in (0u64..).zip(found) {
            let (inode, index) = match last {
                Some((inode, index)) if index + 1 < NODE_PAGES => (inode, index + 1),
                _ => {
                    let name = FileName::new(0, FIRST_NAME + name);
                    let files = self.kernel.pages.files();
                    if !files.lay(name, NODE_PAGES) {
                        return Err("the machine's first disk has no room for the files that are in memory".into());
                    }
                    let inode = files.named(name).ok_or("it has just been laid")?;
                    files.inodes[inode].pin();
                    (inode, 0)
                }
            };
            last = Some((inode, index));
            let number = self.kernel.pages.files().adopt(inode, index, page.pfn);
            self.kernel.pages.frames.reset(page.pfn, Flags::FILE);
            self.kernel.pages.mapcounts.unmapped(page.pfn);
            self.kernel.mem.set_owner(page.pfn, Order::ZERO, number);
            if page.of == (FoundIn::File { dirty: true }) {
                self.kernel.dirty_page(inode, index, page.pfn, self.now).map_err(|e| e.to_string())?;
            }
        }
        Ok(())
    }
}
