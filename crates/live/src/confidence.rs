//! How far a prediction of compaction can be relied on, and why.

use crate::frame::State;
use crate::snapshot::Snapshot;
use kontig_mm::Profile;
use serde::Serialize;

/// How far something can be relied on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Everything that decides it is known.
    High,
    /// One or two things are not known.
    Medium,
    /// More is not known, or the snapshot does not agree with itself.
    Low,
}

impl Level {
    /// The level in one word.
    pub const fn word(self) -> &'static str {
        match self {
            Level::High => "high",
            Level::Medium => "medium",
            Level::Low => "low",
        }
    }
}

/// How far a prediction can be relied on, and why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Confidence {
    pub level: Level,
    pub because: Vec<String>,
}

/// Inferred and listed blocks agree from this share of free memory on.
const AGREES: f64 = 0.98;

impl Confidence {
    /// Of a compaction of this snapshot by these rules.
    pub fn of(snapshot: &Snapshot, profile: &Profile) -> Confidence {
        let mut because = Vec::new();
        let host = &snapshot.host;
        let agreement = snapshot.agreement();
        if agreement < AGREES {
            let differs = (1.0 - agreement) * 100.0;
            because.push(format!("{differs:.0} % of the free memory was elsewhere by the time it was counted"));
        }
        let unknown = snapshot.zones.iter().map(|z| snapshot.census(z.frames())[State::Unknown as usize]).sum::<u64>();
        let managed: u64 = snapshot.zones.iter().map(|z| z.managed).sum();
        if unknown * 100 > managed {
            because.push(format!("{unknown} pages are of unknown use, and taken for immovable"));
        }
        match host.pinned {
            Some(0) => {}
            Some(n) => because
                .push(format!("{n} pages are pinned for I/O: which ones is not shown, so they are taken for movable")),
            None => because.push("this kernel does not say how many pages are pinned".into()),
        }
        if !kontig_profiles::is_of_kernel(&profile.name, &host.kernel) {
            because.push(format!("the rules of {} stand for those of {}", profile.name, host.kernel));
        }
        let level = match because.len() {
            0 => Level::High,
            1 | 2 if agreement >= AGREES => Level::Medium,
            _ => Level::Low,
        };
        Confidence { level, because }
    }
}
