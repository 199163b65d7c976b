//! Whatever happens to a small machine that is full of files and anonymous memory, no page is lost, none is freed
//! twice, and none is reclaimed that its owner did not give: random histories of faults, use, writing, truncation,
//! requests that reclaim, daemons and compaction at the same time.
//!
//! The histories are the same on every run; `PROPTEST_RNG_SEED=… PROPTEST_CASES=…` looks for new ones. A history that
//! finds a fault is shrunk and becomes a small test of its own: those are at the end.

mod support;

use proptest::prelude::*;
use support::full::{Full, play};
use support::full_strategy::{history, small_plan, swap};
use support::strategy::cases;

proptest! {
    #![proptest_config(cases(800))]

    #[test]
    fn after_every_operation_the_machine_and_its_owners_agree(plan in small_plan(), swap in swap(), ops in history(40)) {
        let mut full = play(&plan, swap, &ops);
        full.settle();
        full.verify().expect("consistent when everything has come to its end");
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn a_history_ends_the_same_every_time(plan in small_plan(), swap in swap(), ops in history(40)) {
        let [one, other] = [(); 2].map(|()| {
            let mut full = Full::new(&plan, swap);
            ops.iter().for_each(|op| full.apply(op));
            full.settle();
            full.portrait()
        });
        prop_assert!(one == other);
    }
}
