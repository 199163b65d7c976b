//! A request that the fast path cannot serve, with a bound: by another kernel's rules it may have no end.

use kontig_mm::{AllocFailure, AllocSlow, Memory, Owner, Pfn, Request, Step};

/// More steps than any request of the recorded machines takes: they take a few hundred.
pub(super) const MOST_STEPS: usize = 20_000;
/// Pageblocks a step visits at most; it does not change what happens.
const BUDGET: u64 = 64;

/// Takes the slow path to its end; `None` if there is none.
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
