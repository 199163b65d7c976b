//! A node that guard watches: what is known of it, what was done for it, and why it rests.

use super::controller::Controller;
use super::event::Tally;
use super::look::Looked;
use super::reason::{NoGain, Rest};
use super::rules::Rules;
use super::sample::NodeSample;
use super::state::{NodeState, Resting};
use std::collections::BTreeMap;

/// Seconds after which a reason that lasts is told again, and one that had passed. Chosen.
const REPEAT_S: f64 = 600.0;
const CHANGE_S: f64 = 10.0;

/// A node that is watched.
pub struct Watched {
    pub controller: Controller,
    pub tally: Tally,
    /// The runs that gained nothing, by the reason.
    pub fruitless_by: BTreeMap<String, u64>,
    /// The reason why it rests now.
    pub rests: Option<Rest>,
    /// Reasons for rest that were told since the last run, the latest at the end, and when.
    pub told: Vec<(f64, &'static str)>,
    /// When it was last looked at, and whether it had what is kept.
    pub seen: Option<(f64, bool)>,
    /// Its state, for the service manager.
    pub state: String,
    /// The last look at its frames.
    pub looked: Option<Looked>,
}

impl Watched {
    /// A node of which nothing is known yet.
    pub fn new(tally: Tally, rules: Rules) -> Watched {
        Watched {
            controller: Controller::new(tally.node, rules),
            tally,
            fruitless_by: BTreeMap::new(),
            rests: None,
            told: Vec::new(),
            seen: None,
            state: String::new(),
            looked: None,
        }
    }

    /// Counts the time since the last look by what was seen then.
    pub fn see(&mut self, at_s: f64, kept: bool) {
        if let Some((then, kept)) = self.seen {
            let passed = (at_s - then).max(0.0);
            self.tally.watched_s += passed;
            self.tally.kept_s += if kept { passed } else { 0.0 };
        }
        self.seen = Some((at_s, kept));
    }

    /// Whether this reason for rest should be told now; it is noted then. One that lasts is told
    /// again seldom, one that comes and goes not each time.
    pub fn is_news(&mut self, now_s: f64, why: &'static str) -> bool {
        let lasts = self.told.last().is_some_and(|(_, told)| *told == why);
        let pause = if lasts { REPEAT_S } else { CHANGE_S };
        if self.told.iter().any(|(then, told)| *told == why && now_s - then < pause) {
            return false;
        }
        self.told.retain(|(_, told)| *told != why);
        self.told.push((now_s, why));
        true
    }

    /// Counts a run, and why it gained nothing.
    pub fn ran(&mut self, no_gain: Option<NoGain>) {
        self.tally.runs += 1;
        self.tally.fruitless += u64::from(no_gain.is_some());
        if let Some(why) = no_gain {
            *self.fruitless_by.entry(why.name().into()).or_default() += 1;
        }
    }

    /// The reason why it rests, for others.
    pub fn resting(&self) -> Option<Resting> {
        let no_gain = |why| match why {
            Rest::BackOff { after, .. } => Some(after.name().to_string()),
            _ => None,
        };
        self.rests.map(|why| Resting { why: why.name().into(), no_gain: no_gain(why) })
    }

    /// The state of the node as others see it.
    pub fn node_state(&self, node: &NodeSample, page_bytes: u64) -> NodeState {
        let order = self.controller.order(node);
        NodeState {
            block_bytes: page_bytes << order,
            at_hand: self.controller.at_hand(node),
            target: self.controller.kept(),
            is_kept: self.controller.is_kept(node),
            rests: self.resting(),
            tally: self.tally,
            fruitless_by: self.fruitless_by.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::Rules;
    use super::*;

    #[test]
    fn a_reason_is_told_once_in_ten_minutes_and_one_that_comes_and_goes_every_ten_seconds() {
        let mut watched = Watched::new(Tally::counted(0), Rules::default());
        assert!(watched.is_news(0.0, "busy") && !watched.is_news(599.0, "busy") && watched.is_news(600.0, "busy"));
        watched.told.clear();
        assert!(watched.is_news(601.0, "busy"), "after a run");
        let flips = (0..40).map(|half| (602.0 + f64::from(half) / 2.0, if half % 2 == 0 { "budget" } else { "busy" }));
        let told = flips.filter(|(now, why)| watched.is_news(*now, why)).count();
        assert_eq!(told, 4, "each of the two twice in 20 s");
    }
}
