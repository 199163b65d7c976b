//! What the engine asks of its host: the owner of pages knows what they are for, whether they can move now, and how.
//!
//! The engine keeps frames without contents. Everything that needs the contents, the mappings or another task's CPU is
//! a question to the [`Owner`].

use crate::state::Memory;
use crate::step::Wait;
use crate::types::Pfn;

/// How moving one page went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MigrateOutcome {
    /// The page's contents and mappings are at the new place.
    Moved,
    /// Not now: locked or referenced for the moment.
    Busy,
    /// Not at all.
    Failed,
}

/// A moment at which a task in the kernel may lose the CPU to a daemon it has woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// It has just woken kswapd.
    Woken,
    /// It offers the CPU itself (`cond_resched`).
    Offered,
}

/// Who owns pages: the host's side of migration.
pub trait Owner {
    /// Whether a daemon that was woken waits for the CPU of the task that allocates. On hosts where daemons run beside
    /// it, between its steps, none ever does.
    #[inline(always)]
    fn is_awaited(&self, _: &Memory) -> bool {
        false
    }
    /// The task may lose its CPU now, to a daemon that waits for it.
    fn turn(&mut self, _: &mut Memory, _: Turn) {}
    /// Lets happen what the task waits for, where it is the only one: its next step comes at once after this.
    fn wait(&mut self, _: &mut Memory, _: Wait) {}
    /// Whether the movable page may be taken off the LRU now (it is not pinned).
    fn may_isolate(&mut self, pfn: Pfn) -> bool;
    /// Moves the contents and mappings of `from`, with which the number `owner` is kept, to `to`.
    fn migrate(&mut self, from: Pfn, to: Pfn, owner: u32) -> MigrateOutcome;
}
