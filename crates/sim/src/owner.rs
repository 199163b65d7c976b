//! Owner words: how a frame says whose page it holds.
//!
//! The engine keeps two words for the owner of a user page and never reads them. Here, and nowhere else, they are
//! given a meaning: the mapping, and the page within it. A huge page has one owner, its first page's.

/// The owner of a frame: a page of a process's mapping.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UserPage {
    /// The mapping, as regions name it.
    pub mapping: u32,
    /// The page, counted from the mapping's start.
    pub page: u32,
}

impl UserPage {
    /// As the engine keeps it.
    #[inline(always)]
    pub const fn words(self) -> (u32, u32) {
        (self.page, self.mapping)
    }

    /// From what the engine kept.
    #[inline(always)]
    pub const fn of_words((page, mapping): (u32, u32)) -> UserPage {
        UserPage { mapping, page }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_survives_the_way_through_the_words() {
        let owner = UserPage { mapping: 3, page: u32::MAX };
        assert_eq!(UserPage::of_words(owner.words()), owner);
        assert_ne!(UserPage { mapping: 1, page: 2 }.words(), UserPage { mapping: 2, page: 1 }.words());
    }
}
