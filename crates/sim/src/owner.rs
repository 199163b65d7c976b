//! Owners: how a frame says whose page it holds.
//!
//! The engine keeps one number with a user's page and never reads it. Here, and nowhere else, it is given a meaning:
//! the page's place in the address space that all mappings share. Every mapping has a range of that space to itself,
//! in whole page tables, and no two ever have the same one. A huge page has one number, its first page's.

/// Pages a page table maps, and in a huge page.
pub(crate) const TABLE_PAGES: u32 = 512;

/// The owner of a frame: a page of a process's mapping.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UserPage {
    /// The mapping, as regions name it.
    pub mapping: u32,
    /// The page, counted from the mapping's start.
    pub page: u32,
}

/// Who has which range: 2³² pages, 16 TiB, for all that is ever mapped.
#[derive(Clone, Default)]
pub(crate) struct Owners {
    /// The mapping that has each page table's range.
    mapping_of: Vec<u32>,
    /// The first page of each mapping's range.
    first_page: Vec<u32>,
}

impl Owners {
    /// Gives the next mapping a range of `pages`; its first page. `None` if there is no room left for it.
    pub(crate) fn add(&mut self, pages: u32) -> Option<u32> {
        let tables = self.mapping_of.len() + pages.div_ceil(TABLE_PAGES) as usize;
        if tables > (u32::MAX / TABLE_PAGES) as usize {
            return None;
        }
        let first = self.mapping_of.len() as u32 * TABLE_PAGES;
        self.mapping_of.resize(tables, self.first_page.len() as u32);
        self.first_page.push(first);
        Some(first)
    }

    /// The owner whose number this is.
    #[inline(always)]
    pub(crate) fn of_number(&self, number: u32) -> UserPage {
        let mapping = self.mapping_of[(number / TABLE_PAGES) as usize];
        UserPage { mapping, page: number - self.first_page[mapping as usize] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_of_every_mapping_has_a_number_of_its_own_and_is_found_by_it() {
        let mut owners = Owners::default();
        let pages = [1, 700, 0, 512, 513];
        let firsts = pages.map(|n| owners.add(n).expect("a few pages"));
        let mut seen = std::collections::BTreeSet::new();
        for (mapping, (n, first)) in pages.into_iter().zip(firsts).enumerate() {
            for page in 0..n {
                assert_eq!(owners.of_number(first + page), UserPage { mapping: mapping as u32, page });
                assert!(seen.insert(first + page));
            }
        }
    }

    #[test]
    fn more_than_16_tib_cannot_be_mapped() {
        let mut owners = Owners::default();
        for _ in 0..3 {
            owners.add(1 << 30).expect("12 TiB");
        }
        assert_eq!(owners.add(1 << 30), None);
        assert!(owners.add(1 << 29).is_some(), "what was refused takes no room");
    }
}
