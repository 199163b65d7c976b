//! The engine's questions about use, where reclaim is for the limit of a memory control group: only
//! the tasks in it count.

use crate::base::id::MappingId;
use crate::owner::Pages;
use crate::state::file::Flags;
use kontig_mm::{GroupId, Memory, Pfn, References};

impl Pages {
    /// Counts and clears the accessed bits of a page in processes that are in a group or below it;
    /// those of others stay.
    pub(crate) fn references_in_group(&mut self, m: &Memory, pfn: Pfn, number: u32, target: GroupId) -> References {
        let is_file = self.frames.flags(pfn).any(Flags::FILE);
        let (object, page) = match is_file {
            true => {
                let (inode, index) = self.files().place(number);
                let Some(object) = self.files().inodes[inode].object else { return References::default() };
                (object, index)
            }
            false => self.objects.at(number),
        };
        let pages = if is_file { self.frames.flags(pfn).order().pages() } else { 1 };
        let Pages { spaces, objects, .. } = self;
        let mut ptes = 0;
        for mapping in objects.mappings(object) {
            let group = spaces.group_of(spaces.process_of(MappingId(*mapping)));
            if m.groups().is_within(group, target) {
                let young = match is_file {
                    true => (0..pages)
                        .map(|i| spaces.take_young(*mapping, page + i, pfn.plus(i)))
                        .fold(false, |any, one| any | one),
                    false => spaces.test_and_clear_young(*mapping, page, pfn),
                };
                ptes += u32::from(young);
            }
        }
        References { ptes, ..References::default() }
    }
}
