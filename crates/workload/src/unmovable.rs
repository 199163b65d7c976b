//! Seed 000's back-off test: a driver takes almost all memory as huge pages and frees the first part of each.
//!
//! What is left cannot be moved, so compaction has nothing to gain anywhere.

use kontig_mm::{Gfp, Order, Pfn};
use kontig_sim::{Op, Outcome, Program, Value};

const HUGE: Order = Order::new(9);

/// The driver.
pub struct UnmovableFragmenter {
    freed_per_section: u32,
    leave_pages: u64,
    target: u64,
    blocks: Vec<Pfn>,
    freed: usize,
    splitting: bool,
    stage: Stage,
}

#[derive(PartialEq)]
enum Stage {
    Size,
    Alloc,
    Free,
}

impl UnmovableFragmenter {
    /// Leaves `leave_pages` free, takes the rest, and frees the first `freed_per_section` of every 512 pages.
    pub fn new(freed_per_section: u32, leave_pages: u64) -> UnmovableFragmenter {
        UnmovableFragmenter {
            freed_per_section: freed_per_section.min(HUGE.pages()),
            leave_pages,
            target: 0,
            blocks: Vec::new(),
            freed: 0,
            splitting: true,
            stage: Stage::Size,
        }
    }
}

impl Program for UnmovableFragmenter {
    fn next(&mut self, last: &Outcome) -> Op {
        match (&self.stage, last.value) {
            (Stage::Size, Value::Pages(free)) => {
                self.target = free.saturating_sub(self.leave_pages) / u64::from(HUGE.pages());
                self.stage = Stage::Alloc;
            }
            (Stage::Size, _) => return Op::FreeAboveHigh,
            (Stage::Alloc, Value::Block(Some(pfn))) => self.blocks.push(pfn),
            // Without reclaim a failure means that there are no more.
            (Stage::Alloc, Value::Block(None)) => self.target = self.blocks.len() as u64,
            _ => {}
        }
        if self.stage == Stage::Alloc {
            if (self.blocks.len() as u64) < self.target {
                return Op::AllocPages { gfp: Gfp::KERNEL.without(Gfp::RECLAIM), order: HUGE };
            }
            self.stage = Stage::Free;
        }
        let Some(&pfn) = self.blocks.get(self.freed) else { return Op::Done };
        if std::mem::replace(&mut self.splitting, false) {
            return Op::SplitPages { pfn, order: HUGE };
        }
        self.splitting = true;
        self.freed += 1;
        Op::FreePages { pfn, pages: self.freed_per_section }
    }

    fn progress(&self) -> f64 {
        self.freed as f64 / self.blocks.len().max(1) as f64
    }
}
