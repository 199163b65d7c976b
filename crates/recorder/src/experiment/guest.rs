//! Plans of patterns recorded on a guest.

use super::{Asked, Plan};
use crate::error::RecordError;
use crate::guest::Guest;
use crate::image;
use crate::kernel::Series;
use kontig_oracle::guest::Pattern;

impl Plan {
    pub(super) fn of_guest(asked: &Asked, pattern: &Pattern, series: Series) -> Result<Plan, RecordError> {
        let refuse = |reason: &str| Err(RecordError::Asked(format!("{}: {reason}", asked.experiment)));
        if series == Series::V5_10 || series.is_of_ubuntu() {
            return refuse("a guest's disks are for kernel 6.1 and later");
        }
        if asked.ops.is_some() || asked.order.is_some() || asked.trace.is_some() {
            return refuse("a pattern has the steps it has: neither --ops, --order nor a FILE means anything");
        }
        if asked.events {
            return refuse("what a guest counts is written down anyway; leave --events out");
        }
        if asked.sources.is_some() && !matches!(pattern, Pattern::Build) {
            return refuse("builds nothing; leave --sources out");
        }
        let guest = Guest::new(pattern, asked.seed, asked.sources.clone())?;
        Ok(Plan {
            name: asked.experiment.clone(),
            seed: Some(asked.seed),
            order: None,
            sysctls: asked.sysctls.clone(),
            usual: &[],
            trace: None,
            events: false,
            board: Guest::board(pattern),
            qemu_root: asked.qemu_root.clone(),
            reclaim: None,
            script: guest.script(),
            guest: Some(guest),
            expected: &[],
        })
    }

    /// Checks that the host has a suitable emulator, and what a guest's disk is made of.
    ///
    /// # Errors
    /// One line: the first part that is missing, and how to get it.
    pub fn check_host(&self) -> Result<(), RecordError> {
        self.qemu()?;
        match &self.guest {
            Some(Guest::Build(build)) => image::check(build.sources.as_deref()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(experiment: &str) -> Asked {
        Asked { experiment: experiment.into(), seed: 3, ..Asked::default() }
    }

    #[test]
    fn a_pattern_is_an_experiment_and_every_phase_is_sent() {
        let plan = Plan::new(&asked("guest-anon"), Series::V7_2).expect("a pattern");
        assert_eq!(plan.folder_name(Series::V7_2), "7.2-guest-anon-seed3");
        let expected = plan.expected();
        assert_eq!(expected.len(), 40);
        assert_eq!((expected[0].as_str(), expected[39].as_str()), ("start.clock", "unmapped.daemons"));
        assert!(plan.parameters().contains("MODULE=guest=1\n"), "{}", plan.parameters());
    }

    #[test]
    fn a_build_is_a_pattern_whose_seed_is_the_order_of_its_files() {
        let set = std::collections::BTreeMap::from([("vm.defrag_mode".to_string(), "1".to_string())]);
        let plan = Plan::new(&Asked { sysctls: set, ..asked("guest-build") }, Series::V7_2).expect("a pattern");
        assert_eq!(plan.folder_name(Series::V7_2), "7.2-guest-build-seed3-defrag_mode1");
        let parameters = plan.parameters();
        for part in
            ["EXPERIMENT=build\n", "SYSCTLS='vm.defrag_mode=1'", "SWAP_AT=4416\n", "SOURCES='kernel/stacktrace.c "]
        {
            assert!(parameters.contains(part), "{part} in {parameters}");
        }
        assert_eq!(plan.expected().len(), 16);
    }

    #[test]
    fn a_guest_has_its_pages_in_generations_if_that_is_set() {
        let set = std::collections::BTreeMap::from([("lru_gen.enabled".to_string(), "7".to_string())]);
        let of_seven = Asked { sysctls: set, ..asked("guest-file") };
        let plan = Plan::new(&of_seven, Series::V7_2).expect("a pattern");
        assert_eq!(plan.folder_name(Series::V7_2), "7.2-guest-file-seed3-lru_gen7");
        assert!(plan.parameters().contains("SYSCTLS=''\nLRU_GEN=7\n"), "{}", plan.parameters());
        let refused = Plan::new(&Asked { experiment: "mixed".into(), ..of_seven }, Series::V7_2).expect_err("refused");
        assert!(refused.to_string().contains("is for guest-*"), "{refused}");
    }

    #[test]
    fn senseless_requests_are_refused_in_words() {
        let refused = |asked: &Asked, series| Plan::new(asked, series).expect_err("refused").to_string();
        assert!(refused(&asked("guest-tea"), Series::V6_1).contains("known: "));
        assert!(refused(&asked("guest-file"), Series::V5_10).contains("6.1 and later"));
        assert!(refused(&asked("guest-build"), Series::V5_10).contains("6.1 and later"));
        let sources = Some("/tree".into());
        assert!(refused(&Asked { sources, ..asked("guest-file") }, Series::V6_1).contains("leave --sources out"));
        assert!(refused(&Asked { ops: Some(1), ..asked("guest-file") }, Series::V6_1).contains("neither --ops"));
        assert!(refused(&Asked { events: true, ..asked("guest-file") }, Series::V6_1).contains("leave --events out"));
    }
}
