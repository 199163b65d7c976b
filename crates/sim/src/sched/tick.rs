//! The tick of the scheduler.

/// Time between two ticks (`CONFIG_HZ` 250), ns.
pub(super) const TICK_NS: u64 = 4_000_000;

/// The first tick after a time, ns.
pub(super) fn next_tick(at: u64) -> u64 {
    (at + 1).next_multiple_of(TICK_NS)
}
