//! Pages of files that were in memory before anything ran ([`crate::machine::found`]).

use super::tree::PAGES;
use super::{Files, Flags};
use crate::machine::Machine;
use crate::machine::found::{FoundIn, FoundPage};
use crate::state::entry::Entry;
use kontig_mm::{Order, Pfn};
use kontig_program::FileName;

/// Their names: numbers that no workload gives.
const FIRST_NAME: u64 = 1 << 63;

impl Machine {
    /// Puts pages into the cache, in the order in which they are found: those of a file lie near each other.
    pub(crate) fn adopt_files<'a>(&mut self, found: impl Iterator<Item = &'a FoundPage>) -> Result<(), String> {
        let mut last: Option<(u32, u32)> = None;
        for (name, page) in (0u64..).zip(found) {
            let (inode, index) = match last {
                Some((inode, index)) if index + 1 < PAGES => (inode, index + 1),
                _ => {
                    let name = FileName::new(0, FIRST_NAME + name);
                    let files = self.kernel.pages.files();
                    if !files.lay(name, PAGES) {
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

impl Files {
    /// A page of a file's first node, which is the inode's own; the number that the engine is to keep.
    fn adopt(&mut self, inode: u32, index: u32, pfn: Pfn) -> u32 {
        let leaf = match self.inodes[inode].tree.leaf(index) {
            Some(leaf) => leaf,
            None => {
                let leaf = self.nodes.add(inode, 0, None);
                self.inodes[inode].tree.add(index, leaf, std::iter::empty());
                leaf
            }
        };
        self.nodes.set(leaf, index, Entry::of_page(pfn));
        self.inodes[inode].pages += 1;
        self.counts.file_pages += 1;
        leaf * PAGES + index
    }
}
