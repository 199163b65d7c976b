//! The slow path with a bound, because under another kernel's rules a request may never end.

use kontig_mm::{AllocFailure, AllocSlow, Memory, Owner, Pfn, Request, Step};

/// More steps than any recorded request takes, which is a few hundred.
pub(super) const MOST_STEPS: usize = 20_000;
/// Most pageblocks a step visits; the result does not depend on it.
const BUDGET: u64 = 64;

/// Runs the slow path to its end; `None` if it has none.
pub(super) fn finish<O: Owner>(request: Request, m: &mut Memory, owner: &mut O) -> Option<Result<Pfn, AllocFailure>> {
    let mut slow = AllocSlow::new(m, request);
    for _ in 0..MOST_STEPS {
        match slow.step(m, owner, BUDGET) {
            Step::Working => {}
            Step::Wait(wait) => owner.wait(m, wait),
            Step::Done(result) => return Some(result),
        }
    }
    None
}
