//! Plans of patterns recorded on a guest.

use super::{Asked, Plan};
use crate::error::RecordError;
use crate::guest::{self, Guest};
use crate::kernel::Series;
use kontig_oracle::patterns::Named;

impl Plan {
    pub(super) fn of_guest(asked: &Asked, pattern: &Named, series: Series) -> Result<Plan, RecordError> {
        let refuse = |reason: &str| Err(RecordError::Asked(format!("{}: {reason}", asked.experiment)));
        if series == Series::V5_10 {
            return refuse("a guest's disks are for kernel 6.1 and later");
        }
        if asked.ops.is_some() || asked.order.is_some() || asked.trace.is_some() {
            return refuse("a pattern has the steps it has: neither --ops, --order nor a FILE means anything");
        }
        if asked.events {
            return refuse("what a guest counts is written down anyway; leave --events out");
        }
        Ok(Plan {
            name: asked.experiment.clone(),
            seed: Some(asked.seed),
            order: None,
            sysctls: asked.sysctls.clone(),
            usual: &[],
            trace: None,
            events: false,
            board: Guest::board(pattern),
            reclaim: None,
            guest: Some(Guest::new(pattern, asked.seed)?),
            script: guest::SCRIPT,
            expected: &[],
        })
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
    fn senseless_requests_are_refused_in_words() {
        let refused = |asked: &Asked, series| Plan::new(asked, series).expect_err("refused").to_string();
        assert!(refused(&asked("guest-tea"), Series::V6_1).contains("known: "));
        assert!(refused(&asked("guest-file"), Series::V5_10).contains("6.1 and later"));
        assert!(refused(&Asked { ops: Some(1), ..asked("guest-file") }, Series::V6_1).contains("neither --ops"));
        assert!(refused(&Asked { events: true, ..asked("guest-file") }, Series::V6_1).contains("leave --events out"));
    }
}
