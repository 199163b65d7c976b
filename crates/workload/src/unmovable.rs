//! Seed 000's back-off test: a driver takes almost all memory as huge pages and frees the first
//! part of each.
//!
//! The rest cannot be moved, so compaction has nothing to gain anywhere.

use crate::benchmark::{Benchmark, Start};
use crate::fragmenter::{of_a_section, three_quarters};
use crate::size::HPAGE_PMD_NR;
use kontig_program::{Batch, Frame, Gfp, Op, Order, Outcome, Program, Value};
use kontig_text::parse_size;
use serde::{Deserialize, Serialize};

/// A driver takes memory as huge pages and frees the first part of each.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct FragmentUnmovable {
    /// Pages freed of each 512.
    #[serde(default = "three_quarters")]
    pub freed_per_section: u32,
    /// Memory it leaves alone, such as `"8 GiB"`.
    pub leave: String,
}

impl Benchmark for FragmentUnmovable {
    type Program = UnmovableFragmenter;

    fn program(&self, _: &Start) -> Result<UnmovableFragmenter, String> {
        let leave = parse_size(&self.leave).ok_or_else(|| format!("leave = \"{}\" is not a size", self.leave))?;
        Ok(UnmovableFragmenter::new(of_a_section(self.freed_per_section)?, leave / 4096))
    }

    fn fits(&self, pages: u64, _: u64) -> Result<(), String> {
        if parse_size(&self.leave).is_some_and(|bytes| bytes / 4096 >= pages) {
            let (leave, mib) = (&self.leave, pages / 256);
            return Err(format!(
                "leave = \"{leave}\" leaves nothing to fragment: the machine has {mib} MiB; \
                 choose less, or another machine"
            ));
        }
        Ok(())
    }
}

/// The driver that takes and frees blocks.
#[derive(Clone)]
pub struct UnmovableFragmenter {
    freed_per_section: u32,
    leave_pages: u64,
    target: u64,
    blocks: Vec<Frame>,
    freed: usize,
    splitting: bool,
    stage: Stage,
}

#[derive(Clone, PartialEq)]
enum Stage {
    Size,
    Alloc,
    Free,
}

impl UnmovableFragmenter {
    /// Leaves `leave_pages` free, takes the rest, and frees the first `freed_per_section` of every
    /// 512 pages.
    pub fn new(freed_per_section: u32, leave_pages: u64) -> UnmovableFragmenter {
        UnmovableFragmenter {
            freed_per_section: freed_per_section.min(HPAGE_PMD_NR),
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
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        match (&self.stage, done.last().map(|last| last.value)) {
            (Stage::Size, Some(Value::Pages(free))) => {
                self.target = free.saturating_sub(self.leave_pages) / u64::from(HPAGE_PMD_NR);
                self.stage = Stage::Alloc;
            }
            (Stage::Size, _) => return todo.push(Op::FreeAboveHigh),
            (Stage::Alloc, Some(Value::Block(Some(block)))) => self.blocks.push(block),
            // Without reclaim, a failure means that no block is left.
            (Stage::Alloc, Some(Value::Block(None))) => self.target = self.blocks.len() as u64,
            _ => {}
        }
        if self.stage == Stage::Alloc {
            if (self.blocks.len() as u64) < self.target {
                return todo.push(Op::AllocPages { gfp: Gfp::KERNEL.without(Gfp::RECLAIM), order: Order::HUGE });
            }
            self.stage = Stage::Free;
        }
        let Some(&block) = self.blocks.get(self.freed) else { return };
        if std::mem::replace(&mut self.splitting, false) {
            return todo.push(Op::SplitPages { block, order: Order::HUGE });
        }
        self.splitting = true;
        self.freed += 1;
        todo.push(Op::FreePages { first: block, pages: self.freed_per_section });
    }

    fn progress(&self) -> f64 {
        self.freed as f64 / self.blocks.len().max(1) as f64
    }
}
