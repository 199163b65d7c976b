//! Free blocks of a host held for a while, so that none is at hand and the next request has to wait
//! for compaction.
//!
//! That leaves the host little memory. So some is always left, and if memory runs out all the same,
//! the kernel kills the process that holds it first.

use crate::need::Need;
use crate::own_memory::OwnMemory;
use crate::prepare::execution::supply;
use crate::roots::Roots;
use crate::spare::Spare;
use rustix::mm::Advice;
use std::sync::atomic::{AtomicBool, Ordering};

/// Memory that holds the blocks until this is dropped.
pub struct Held {
    memory: Vec<OwnMemory>,
}

/// Bytes of the available memory left to everybody else.
const LEFT: u64 = 2 << 30;
/// Blocks taken between two looks at what is left.
const STRETCH: usize = 64;
/// Rounds of looking for blocks: somebody may have freed some meanwhile.
const ROUNDS: usize = 8;

impl Held {
    /// Holds all blocks of this order, of a page size of `page` bytes, that are at hand.
    ///
    /// # Errors In one line: mostly that it would leave too little. Everything is given back then.
    pub fn all(roots: &Roots, order: u32, page: u64, stop: &AtomicBool) -> Result<Held, String> {
        // Where the kernel refuses, its own choice stands.
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
        let size = usize::try_from(page << order).map_err(|_| "such blocks are more than there are addresses for")?;
        let mut held = Held { memory: Vec::new() };
        for _ in 0..ROUNDS {
            let blocks = at_hand(roots, order)?;
            if blocks == 0 {
                break;
            }
            held.take(roots, blocks, size, stop)?;
        }
        Ok(held)
    }

    pub fn bytes(&self) -> u64 {
        self.memory.iter().map(|memory| memory.len() as u64).sum()
    }

    fn take(&mut self, roots: &Roots, blocks: u64, size: usize, stop: &AtomicBool) -> Result<(), String> {
        let len = usize::try_from(blocks).ok().and_then(|blocks| blocks.checked_mul(size));
        let len = len.ok_or("the blocks are more than there are addresses for")?;
        let memory = OwnMemory::new(len, size)?;
        memory.advise(0, len, Advice::LinuxHugepage)?;
        for (i, at) in (0..len).step_by(size).enumerate() {
            if stop.load(Ordering::Relaxed) {
                return Err("stopped: all memory is given back".into());
            }
            if i % STRETCH == 0 {
                let spare = Spare::read(roots, LEFT).map_err(|e| e.to_string())?;
                if spare.allows((STRETCH * size) as u64).is_err() {
                    return Err(match spare.limit {
                        None => {
                            "to hold all blocks at hand would leave less than 2 GiB: fragment more with --gib".into()
                        }
                        Some(limit) => format!(
                            "control group {} may not hold all blocks at hand: run this in a group without a limit",
                            limit.group
                        ),
                    });
                }
            }
            memory.touch(at);
        }
        self.memory.push(memory);
        Ok(())
    }
}

/// Blocks of an order at hand for users.
///
/// # Errors
/// In one line, what cannot be read.
pub fn at_hand(roots: &Roots, order: u32) -> Result<u64, String> {
    let all = Need { count: u64::MAX >> order, order, node: None, unmovable: false };
    let found = supply(roots).map_err(|e| e.to_string())?.obtainable(&[all]);
    found[0].ok_or_else(|| "free lists end below blocks of this size".into())
}
