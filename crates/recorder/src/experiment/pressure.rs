//! Plans of traces that put a node under memory pressure, generated or from a file.

use super::scenarios::BOOST;
use super::{Asked, GIVEN, GIVEN_LRU, MOST_OPS, Plan, name_of, owned};
use crate::error::RecordError;
use crate::kernel::Series;
use crate::reclaim::{self, Reclaim};
use kontig_oracle::trace::pressure::Pressure;
use std::collections::BTreeMap;

/// Kernels whose memory control groups are recorded.
const WITH_GROUPS: [Series; 2] = [Series::V6_12, Series::V7_2];
/// Kernels whose multi-generational LRU is recorded.
const WITH_GENERATIONS: [Series; 2] = [Series::V6_12, Series::V7_2];

impl Plan {
    pub(super) fn of_pressure(asked: &Asked, p: &'static Pressure, series: Series) -> Result<Plan, RecordError> {
        let refuse = |reason: String| Err(RecordError::Asked(reason));
        if p.lru_gen > 0 && !WITH_GENERATIONS.contains(&series) {
            return refuse(format!(
                "{}: generations are recorded of 6.12 and 7.2 alone; add --kernel 6.12 or --kernel 7.2",
                p.name
            ));
        }
        if !p.groups.is_empty() && !WITH_GROUPS.contains(&series) {
            return refuse(format!(
                "{}: control groups are recorded of 6.12 and 7.2 alone; add --kernel 6.12 or --kernel 7.2",
                p.name
            ));
        }
        if asked.order.is_some() {
            return refuse("--order: a trace says the sizes of its requests itself".into());
        }
        if let Some(given) = &asked.trace {
            let (name, file) = (p.name, &given.file);
            return refuse(format!("{name} is a trace of its own; for {file} write '{GIVEN} {file}'"));
        }
        let reclaim = Reclaim::new(p, asked.seed, asked.ops.unwrap_or(p.ops));
        Ok(Plan::of_reclaim(asked, reclaim, p.name.into(), Some(asked.seed), p.sysctls))
    }

    /// Operations from a file.
    pub(super) fn of_given_lru(asked: &Asked, series: Series) -> Result<Plan, RecordError> {
        let refuse = |reason: String| Err(RecordError::Asked(reason));
        let Some(given) = &asked.lru else {
            return refuse(format!(
                "{GIVEN_LRU}: which operations? write '{GIVEN_LRU} FILE'; docs/kernel/traces.md says what is in it"
            ));
        };
        if asked.order.is_some() || asked.ops.is_some() {
            return refuse(format!(
                "{}: says itself how many operations and of what size; leave --ops and --order out",
                given.file
            ));
        }
        if given.has_generations() && !WITH_GENERATIONS.contains(&series) {
            return refuse(format!(
                "{}: generations are recorded of 6.12 and 7.2 alone; add --kernel 6.12 or --kernel 7.2",
                given.file
            ));
        }
        if given.has_groups() && !WITH_GROUPS.contains(&series) {
            return refuse(format!(
                "{}: control groups are recorded of 6.12 and 7.2 alone; add --kernel 6.12 or --kernel 7.2",
                given.file
            ));
        }
        if given.has_nodes() && (given.has_generations() || given.has_groups()) {
            return refuse(format!(
                "{}: several nodes are recorded with neither generations nor control groups: leave 'node' out",
                given.file
            ));
        }
        if given.len() > MOST_OPS {
            return refuse(format!("{}: {} operations are more than {MOST_OPS}", given.file, given.len()));
        }
        Ok(Plan::of_reclaim(asked, Reclaim::given(given), name_of(&given.file), None, &[(BOOST, "0")]))
    }

    fn of_reclaim(
        asked: &Asked,
        reclaim: Reclaim,
        name: String,
        seed: Option<u64>,
        usual: &'static [(&'static str, &'static str)],
    ) -> Plan {
        let mut sysctls: BTreeMap<String, String> = owned(usual).collect();
        sysctls.extend(asked.sysctls.clone());
        Plan {
            name,
            seed,
            order: None,
            sysctls,
            usual,
            trace: Some(reclaim.trace()),
            events: false,
            board: reclaim.board(),
            qemu_root: asked.qemu_root.clone(),
            reclaim: Some(reclaim),
            guest: None,
            script: reclaim::SCRIPT,
            expected: reclaim::EXPECTED,
        }
    }
}
