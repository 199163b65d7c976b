//! Whatever happens to a small machine, its state stays consistent: random histories of allocations, frees, daemons
//! and slow paths in progress at the same time, with the whole machine checked after every operation.
//!
//! The histories are the same on every run; `PROPTEST_RNG_SEED=… PROPTEST_CASES=…` looks for new ones. A history
//! that finds a fault is shrunk and becomes a small test of its own, in `regressions` below.

mod support;

use kontig_mm::snapshot::ZoneSnapshot;
use kontig_mm::*;
use proptest::prelude::*;
use support::strategy::{cases, history, plan};
use support::{Op, Plan, Request, World, play};

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn after_every_operation_the_machine_is_consistent(plan in plan(), ops in history(60)) {
        play(&plan, &ops).settle();
    }
}
