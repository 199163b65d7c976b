//! The series of a guard at work, by the state that it leaves for others.

use super::exposition::{Family, Kind};
use crate::error::ReadError;
use crate::guard::state::{NodeState, State};

/// The series of what was read; none where there is no guard. A state file of another
/// version, or one that this user may not read, does not cost the host its own series.
pub(super) fn read(state: &Result<Option<State>, ReadError>) -> Vec<Family> {
    let mut readable = Family::new(
        "kontig_guard_state_readable",
        Kind::Gauge,
        "Whether the state that a guard keeps for others is readable, 0 or 1; absent if there is none.",
    );
    readable.add(Vec::new(), f64::from(u8::from(state.is_ok())));
    match state {
        Ok(None) => Vec::new(),
        Ok(Some(state)) => std::iter::once(readable).chain(of(state)).collect(),
        Err(_) => vec![readable],
    }
}

/// The series of a state; of one that is old, only its time.
fn of(state: &State) -> Vec<Family> {
    let mut at = Family::new(
        "kontig_guard_timestamp_seconds",
        Kind::Gauge,
        "Unix time at which 'kontig guard' last wrote its state; absent if none is at work and none was killed.",
    );
    at.add(Vec::new(), state.unix_s);
    let mut families = vec![at];
    if !state.is_of_a_guard_at_work() {
        return families;
    }
    let mut own = Family::new(
        "kontig_guard_own_cpu_seconds_total",
        Kind::Counter,
        "CPU time of guard itself, without that of its compactions.",
    );
    own.add(Vec::new(), state.own_cpu_s);
    families.push(own);
    families.extend(NODE_SERIES.iter().map(|(name, kind, help, value)| {
        let mut family = Family::new(name, *kind, help);
        family.series.extend(state.nodes.iter().filter_map(|node| Some((labels(node), value(node)?))));
        family
    }));
    families.extend([fruitless(state), resting(state)]);
    families
}

/// A series of each node: its name, kind and help, and its value.
type NodeSeries = (&'static str, Kind, &'static str, fn(&NodeState) -> Option<f64>);

const NODE_SERIES: [NodeSeries; 9] = [
    ("kontig_guard_at_hand_blocks", Kind::Gauge, "Blocks of the size that guard keeps, at hand on the node.", |n| {
        Some(n.at_hand as f64)
    }),
    ("kontig_guard_target_blocks", Kind::Gauge, "Blocks that guard keeps; absent where it keeps a score.", |n| {
        n.target.map(|target| target as f64)
    }),
    ("kontig_guard_kept", Kind::Gauge, "Whether the node has what guard keeps, 0 or 1.", |n| {
        Some(f64::from(u8::from(n.is_kept)))
    }),
    ("kontig_guard_watched_seconds_total", Kind::Counter, "Time for which guard has watched the node.", |n| {
        Some(n.tally.watched_s)
    }),
    ("kontig_guard_kept_seconds_total", Kind::Counter, "The part of it in which the node had what guard keeps.", |n| {
        Some(n.tally.kept_s)
    }),
    ("kontig_guard_runs_total", Kind::Counter, "Compactions by guard, or by the kernel when guard set it to.", |n| {
        Some(n.tally.runs as f64)
    }),
    ("kontig_guard_gained_blocks_total", Kind::Counter, "Blocks that there were more after runs than before.", |n| {
        Some(n.tally.gained as f64)
    }),
    ("kontig_guard_pages_moved_total", Kind::Counter, "Pages moved while guard's runs went on, by anybody.", |n| {
        n.tally.pages_moved.map(|pages| pages as f64)
    }),
    (
        "kontig_guard_cpu_seconds_total",
        Kind::Counter,
        "CPU time of guard's compactions; absent where the kernel compacts for it.",
        |n| n.tally.cpu_s,
    ),
];

fn labels(node: &NodeState) -> Vec<(&'static str, String)> {
    vec![("node", node.tally.node.to_string()), ("block_bytes", node.block_bytes.to_string())]
}

fn fruitless(state: &State) -> Family {
    let mut family = Family::new(
        "kontig_guard_fruitless_runs_total",
        Kind::Counter,
        "Runs of guard that gained nothing, by the reason.",
    );
    for node in &state.nodes {
        for (why, runs) in &node.fruitless_by {
            family.add([labels(node), vec![("no_gain", why.clone())]].concat(), *runs as f64);
        }
    }
    family
}

fn resting(state: &State) -> Family {
    let mut family = Family::new(
        "kontig_guard_resting",
        Kind::Gauge,
        "1 for the reason why guard leaves the node alone; absent while it compacts.",
    );
    for node in &state.nodes {
        let Some(rests) = &node.rests else { continue };
        let no_gain = rests.no_gain.iter().map(|why| ("no_gain", why.clone()));
        family.add([labels(node), vec![("why", rests.why.clone())], no_gain.collect()].concat(), 1.0);
    }
    family
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::event::Tally;
    use crate::guard::state::Resting;
    use crate::metrics::exposition::text;

    #[test]
    fn a_guard_at_work_has_series_of_each_node_and_one_that_is_gone_only_its_time() {
        let node = NodeState {
            block_bytes: 2 << 20,
            at_hand: 7,
            target: None,
            is_kept: false,
            rests: Some(Resting { why: "back_off".into(), no_gain: Some("poisoned".into()) }),
            tally: Tally { runs: 3, fruitless: 2, pages_moved: Some(512), cpu_s: Some(0.25), ..Tally::default() },
            fruitless_by: [("poisoned".to_string(), 2)].into(),
        };
        let mut state = State::now(0.5, vec![node]);
        let said = text(&of(&state));
        let labels = "node=\"0\",block_bytes=\"2097152\"";
        for line in [
            format!("kontig_guard_at_hand_blocks{{{labels}}} 7"),
            format!("kontig_guard_kept{{{labels}}} 0"),
            format!("kontig_guard_cpu_seconds_total{{{labels}}} 0.25"),
            format!("kontig_guard_fruitless_runs_total{{{labels},no_gain=\"poisoned\"}} 2"),
            format!("kontig_guard_resting{{{labels},why=\"back_off\",no_gain=\"poisoned\"}} 1"),
            "kontig_guard_own_cpu_seconds_total 0.5".to_string(),
        ] {
            assert!(said.lines().any(|found| found == line), "{line} in {said}");
        }
        assert!(!said.contains("kontig_guard_target_blocks"), "it keeps a score");
        state.nodes[0].tally = Tally { runs: 3, ..Tally::driven(0) };
        let driven = text(&of(&state));
        assert!(driven.contains("kontig_guard_runs_total{"), "{driven}");
        for unknown in ["kontig_guard_cpu_seconds_total{", "kontig_guard_pages_moved_total{"] {
            assert!(said.contains(unknown) && !driven.contains(unknown), "{unknown} in {driven}");
        }
        state.unix_s -= 3600.0;
        let said = text(&of(&state));
        assert!(said.contains("kontig_guard_timestamp_seconds ") && said.lines().count() == 3, "{said}");
    }
}
