//! A node that guard watches: what is known of it, what was done for it, and why it rests.

use super::controller::Controller;
use super::event::Tally;
use super::look::Looked;
use super::reason::{NoGain, Rest};
use super::rules::Rules;
use super::sample::NodeSample;
use super::state::{NodeState, Resting};
use std::collections::BTreeMap;

/// A node that is watched.
pub struct Watched {
    pub controller: Controller,
    pub tally: Tally,
    /// The runs that gained nothing, by the reason.
    pub fruitless_by: BTreeMap<String, u64>,
    /// The reason why it rests now.
    pub rests: Option<Rest>,
    /// When it was last told why it rests, and why.
    pub told: Option<(f64, Rest)>,
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
            told: None,
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
