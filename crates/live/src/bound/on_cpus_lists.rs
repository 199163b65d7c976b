//! Free pages on CPUs' lists: compaction neither finds them nor joins them with others, so a block
//! that has one counts as no free block, though nothing is in its way.

use crate::frame::State;
use crate::snapshot::Snapshot;
use kontig_text::{grouped, percent, size};
use serde::Serialize;

/// The share of all free pages from which on it is told in words.
const MATTERS: f64 = 0.01;

/// The free pages on CPUs' lists.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct OnCpusLists {
    pub pages: u64,
    /// Their share of all free pages, those among them that are on no list yet.
    pub share: f64,
}

impl OnCpusLists {
    /// Those of a node, or of all.
    pub fn of(snapshot: &Snapshot, node: Option<u32>) -> OnCpusLists {
        let zones = snapshot.zones.iter().filter(|zone| node.is_none_or(|node| node == zone.node));
        let (pages, free) = zones.fold((0, 0), |(pages, free), zone| {
            let census = snapshot.census(zone.frames());
            let of_zone: u64 = State::ALL.iter().filter(|s| s.is_free()).map(|s| census[*s as usize]).sum();
            (pages + census[State::Cached as usize], free + of_zone)
        });
        OnCpusLists { pages, share: pages as f64 / free.max(1) as f64 }
    }

    /// A sentence with what to do, where they are many enough to matter.
    pub fn words(&self, page_bytes: u64) -> Option<String> {
        (self.share >= MATTERS).then(|| {
            format!(
                "{} free pages ({}, {} of the free memory) lie on CPUs' lists, where compaction neither finds nor \
                 joins them: the next requests take them, and 'kontig prepare' empties the lists",
                grouped(self.pages),
                size(self.pages.saturating_mul(page_bytes)),
                percent(self.share)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_told_from_one_in_a_hundred_free_pages_on() {
        let said = |pages| OnCpusLists { pages, share: pages as f64 / 32_000_000.0 }.words(4096);
        assert_eq!(said(319_999), None);
        let words = said(320_000).expect("they matter");
        assert!(
            words.starts_with("320,000 free pages (1.22 GiB, 1.0 % of the free memory) lie on CPUs' lists"),
            "{words}"
        );
    }
}
