//! The fragmentation scores at which a host's kernel compacts by itself: those of
//! `vm.compaction_proactiveness`, by the rules of the profile for its release.

use kontig_mm::compact::proactive::{fragmentation_score_high, fragmentation_score_low};
use kontig_mm::rules::ProactiveRules;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The scores of a value of the setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Scores {
    /// Above it, the kernel begins.
    pub above: u64,
    /// Once it is there, the kernel ends.
    pub until: u64,
}

/// The scores on a kernel of this release; `None` where the value means that it does not compact,
/// or the release has no version.
pub(crate) fn scores(release: &str, proactiveness: u64) -> Option<Scores> {
    let proactiveness = u32::try_from(proactiveness).ok().filter(|p| (1..=100).contains(p))?;
    let rules = rules(release)?;
    Some(Scores {
        above: fragmentation_score_high(rules, proactiveness),
        until: fragmentation_score_low(rules, proactiveness),
    })
}

/// The rules of a release. They are read once: a history asks for every sample.
fn rules(release: &str) -> Option<ProactiveRules> {
    static KNOWN: Mutex<BTreeMap<String, Option<ProactiveRules>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(rules) = known.get(release) {
        return *rules;
    }
    let rules = kontig_profiles::of_kernel(release).map(|profile| profile.proactive);
    known.insert(release.into(), rules);
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scores_are_those_of_the_hosts_kernel() {
        let of = |release, proactiveness| scores(release, proactiveness).map(|scores| (scores.above, scores.until));
        assert_eq!((of("6.1.0-49-amd64", 20), of("6.18.44", 20)), (Some((90, 80)), Some((90, 80))));
        assert_eq!((of("6.1.0-49-amd64", 90), of("6.18.44", 90)), (Some((20, 10)), Some((15, 10))));
        assert_eq!((of("6.14.3", 100), of("6.15.0", 100)), (Some((15, 5)), Some((0, 0))));
        assert_eq!((of("6.18.44", 0), of("6.18.44", 101), of("strange", 20)), (None, None, None));
    }
}
