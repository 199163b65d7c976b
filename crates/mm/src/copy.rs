//! A page that a process gets in place of one it may not write to: a copy, or zeroes of its own.
//!
//! The kernel tells whoever mirrors the page table before it changes the entry. They may sleep, so
//! it offers the CPU, and a daemon that the request for the page woke runs first: what it drains
//! from the batch does not include the new page. Source: kernel-behaviour §4.7.

use crate::owner::{Owner, Turn};
use crate::state::{Memory, PageFlags};
use crate::types::{CpuId, Order, Pfn};

impl Memory {
    /// As [`Memory::lru_add_in_fault`], of a single page that replaces a protected one.
    ///
    /// # Panics
    /// As [`Memory::lru_add`] does.
    pub fn lru_add_copy<O: Owner>(&mut self, owner: &mut O, cpu: CpuId, pfn: Pfn, flags: PageFlags) {
        if self.shared.profile.faults.copying_offers_cpu && owner.is_awaited(self) {
            owner.turn(self, Turn::Offered);
        }
        self.lru_add_in_fault(cpu, pfn, Order::ZERO, flags);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gfp::Gfp;
    use crate::owner::MigrateOutcome;
    use crate::request::Request;
    use crate::testing::{linux, ordered_machine_with, take, user_page};
    use crate::types::NodeId;

    const CPU: CpuId = CpuId::new(0);

    /// A daemon waits for the CPU, and drains its batches when it gets it.
    struct Drains;

    impl Owner for Drains {
        fn is_awaited(&self, _: &Memory) -> bool {
            true
        }
        fn turn(&mut self, m: &mut Memory, turn: Turn) {
            assert_eq!(turn, Turn::Offered);
            m.lru_add_drain(CPU);
        }
        fn may_isolate(&mut self, _: Pfn) -> bool {
            true
        }
        fn migrate(&mut self, _: Pfn, _: Pfn, _: u32) -> MigrateOutcome {
            MigrateOutcome::Moved
        }
    }

    #[test]
    fn since_5_4_a_daemon_runs_before_a_copy_joins_the_batch() {
        let listed = |profile: &str| {
            let mut m = ordered_machine_with(2, linux(profile));
            let before = user_page(&mut m, PageFlags::ANON);
            let request = Request::new(CPU, NodeId::new(0), Gfp::HIGHUSER_MOVABLE, Order::ZERO);
            let copy = take(&mut m, request).expect("memory is free");
            m.lru_add_copy(&mut Drains, CPU, copy, PageFlags::ANON);
            [before, copy].map(|pfn| m.is_on_lru(pfn))
        };
        assert_eq!(["5.10", "6.12"].map(listed), [[true, false]; 2]);
        assert_eq!(listed("5.0"), [false, false]);
    }
}
