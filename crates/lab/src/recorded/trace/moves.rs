//! Pages that are moved while a trace is recorded.
//!
//! No event names both places. A thread that moves a page maps its copy
//! (`migrate:remove_migration_pte` and `thp:remove_migration_pmd`, since 5.18), and then frees the
//! frame that the page was in, before it allocates anything. What an interrupt frees between is told
//! apart by its order alone. A page that no process maps, as most of files, has no such event. Where
//! a move fails, the page itself is mapped again: it is in use, and no copy.

use crate::recorded::live::Live;
use kontig_procfs::TraceLine;
use std::collections::BTreeMap;

/// The events of a page that is about to be moved, and of a huge one.
pub(super) const SET: [&str; 2] = ["set_migration_pte", "set_migration_pmd"];
/// The events of a copy that was mapped.
pub(super) const REMOVE: &str = "remove_migration_pte";
pub(super) const REMOVE_HUGE: &str = "remove_migration_pmd";

/// The bits of a page table's entry that hold the frame's address, in memory of up to 128 TiB.
/// Above them are arm64's bits and those that say that a page is encrypted.
const ADDRESS: u64 = (1 << 47) - (1 << 12);

/// The copies whose originals are about to be freed, with their orders, by the thread that moves.
#[derive(Default)]
pub(super) struct Moves(BTreeMap<u32, (u64, u64)>);

impl Moves {
    /// Takes in an event. If it frees the frame that a page was moved from: the frame of the copy.
    ///
    /// # Errors
    /// If an entry is none.
    pub(super) fn next(&mut self, event: &TraceLine<'_>, live: &Live) -> Result<Option<u64>, String> {
        let number = |field| event.field(field).and_then(|order| order.parse().ok()).unwrap_or(0);
        match event.event {
            REMOVE => self.mapped(event, "pte", number("order"), live)?,
            REMOVE_HUGE => self.mapped(event, "pmd", u64::from(kontig_program::Order::HUGE.get()), live)?,
            "mm_page_alloc" => drop(self.0.remove(&event.pid)),
            "mm_page_free" if self.0.get(&event.pid).is_some_and(|(_, order)| *order == number("order")) => {
                return Ok(self.0.remove(&event.pid).map(|(frame, _)| frame));
            }
            _ => {}
        }
        Ok(None)
    }

    fn mapped(&mut self, event: &TraceLine<'_>, field: &str, order: u64, live: &Live) -> Result<(), String> {
        let entry = event.field(field).and_then(|entry| u64::from_str_radix(entry, 16).ok());
        let entry =
            entry.ok_or_else(|| format!("{} without an entry {field}: print the event's fields", event.event))?;
        let frame = (entry & ADDRESS) >> 12 >> order << order;
        if live.holds(frame) {
            self.0.remove(&event.pid);
        } else {
            self.0.insert(event.pid, (frame, order));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each event of the thread follows.
    fn copies(events: &[(u32, &str)], live: &Live) -> Vec<Option<u64>> {
        let mut moves = Moves::default();
        let next = |(thread, text): &(u32, &str)| {
            let line = format!("a-{thread} [000] 1.0: {text}");
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
    fn an_interrupt_between_is_told_apart_by_the_order_of_what_it_frees() {
        let interrupt = "mm_page_free: page=0 pfn=0x200000 order=3";
        let switch = "sched_switch: prev_comm=a";
        let all = [(7, MAPS), (7, interrupt), (7, switch), (7, FREES)];
        assert_eq!(copies(&all, &Live::default()), [None, None, None, Some(0x62314d)]);
        let allocates = "mm_page_alloc: page=0 pfn=0x300000 order=0 migratetype=1 gfp_flags=GFP_KERNEL";
        assert_eq!(copies(&[(7, MAPS), (7, allocates), (7, FREES)], &Live::default())[2], None);
    }

    #[test]
    fn a_huge_page_moves_whole() {
        let maps = "remove_migration_pmd: addr=7f9586a00000, pmd=80000006232000e7";
        let frees = "mm_page_free: page=0 pfn=0x101c00 order=9";
        assert_eq!(copies(&[(7, maps), (7, frees)], &Live::default()), [None, Some(0x623200)]);
    }

    #[test]
    fn bits_above_the_address_are_none_of_it() {
        for bit in [47, 51] {
            let maps = MAPS.replace("800000062314d067", &format!("{:x}", 0x6_2314_d067_u64 | 1 << bit));
            assert_eq!(copies(&[(7, &maps), (7, FREES)], &Live::default())[1], Some(0x62314d), "{bit}");
        }
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
