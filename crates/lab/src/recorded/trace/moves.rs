//! Pages that are moved while a trace is recorded.
//!
//! No event names both places. A thread that moves a page maps its copy
//! (`migrate:remove_migration_pte`, since 5.18), and then, as its next event, frees the frame that
//! the page was in. A page that no process maps, as most of files, has no such event. Where a move
//! fails, the page itself is mapped again: it is in use, and no copy.

use crate::recorded::live::Live;
use kontig_procfs::TraceLine;
use std::collections::BTreeMap;

/// The event of a page that is about to be moved.
pub(super) const SET: &str = "set_migration_pte";
/// The event of a copy that was mapped.
pub(super) const REMOVE: &str = "remove_migration_pte";

/// The bits of a page table's entry that hold the frame's address.
const ADDRESS: u64 = (1 << 52) - (1 << 12);

/// The copies whose originals are about to be freed, by the thread that moves.
#[derive(Default)]
pub(super) struct Moves(BTreeMap<u32, u64>);

impl Moves {
    /// Takes in a thread's next event; the frame that it mapped as the one before.
    ///
    /// # Errors
    /// If an entry is none.
    pub(super) fn next(&mut self, event: &TraceLine<'_>, live: &Live) -> Result<Option<u64>, String> {
        let copy = self.0.remove(&event.pid);
        if event.event == REMOVE {
            let pte = event.field("pte").and_then(|pte| u64::from_str_radix(pte, 16).ok());
            let pte = pte.ok_or_else(|| format!("{REMOVE} without an entry pte: print the event's fields"))?;
            let frame = (pte & ADDRESS) >> 12;
            if !live.holds(frame) {
                self.0.insert(event.pid, frame);
            }
        }
        Ok(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each event of the thread follows.
    fn copies(events: &[(u32, &str)], live: &Live) -> Vec<Option<u64>> {
        let mut moves = Moves::default();
        let next = |(thread, text): &(u32, &str)| {
            let line = format!("a-{thread} [000] 1.0: {text}\n");
            let event = TraceLine::parse("t.txt", 1, &line).expect("a line").expect("an event");
            moves.next(&event, live).expect("it has its fields")
        };
        events.iter().map(next).collect()
    }

    const MAPS: &str = "remove_migration_pte: addr=7f9586bc3000, pte=800000062314d067 order=0";
    const FREES: &str = "mm_page_free: page=0 pfn=0x101c4b order=0";

    #[test]
    fn what_a_thread_frees_next_is_the_original_of_what_it_mapped() {
        let none = Live::default();
        assert_eq!(copies(&[(7, MAPS), (7, FREES), (7, FREES)], &none), [None, Some(0x62314d), None]);
        assert_eq!(copies(&[(7, MAPS), (8, FREES), (7, FREES)], &none), [None, None, Some(0x62314d)]);
        let other = MAPS.replace("14d067", "14e067");
        assert_eq!(copies(&[(7, MAPS), (7, &other), (7, FREES)], &none)[2], Some(0x62314e));
    }

    #[test]
    fn a_page_that_was_not_moved_after_all_is_no_copy() {
        let mut live = Live::default();
        live.take(0x62314d, 1, (7, 0));
        assert_eq!(copies(&[(7, MAPS), (7, FREES)], &live), [None, None]);
    }

    #[test]
    fn an_event_without_its_entry_is_refused() {
        let event = TraceLine::parse("t.txt", 1, "a-7 [000] 1.0: remove_migration_pte: addr=7f\n");
        let said = Moves::default().next(&event.expect("a line").expect("an event"), &Live::default());
        assert!(said.is_err_and(|said| said.starts_with("remove_migration_pte without an entry pte")));
    }
}
