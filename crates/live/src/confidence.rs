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
        if !profile.recorded {
            because.push(format!("no recording holds the rules of {}", profile.name));
        }
        let level = match because.len() {
            0 => Level::High,
            1 | 2 if agreement >= AGREES => Level::Medium,
            _ => Level::Low,
        };
        Confidence { level, because }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_no_recording_holds_are_a_reason_of_their_own() {
        let of = |kernel: &str, pinned: u64| {
            let text = concat!(
                r#"{"schema":"kontig.snapshot/1","host":{"kernel":"KERNEL","page_size":4096,"block_order":9,"#,
                r#""cpus":1,"pinned":PINNED,"sysctls":[]},"zones":[{"node":0,"name":"Normal","start":0,"#,
                r#""spanned":512,"present":512,"managed":512,"marks":[0,0,0,0],"boost":0,"protection":[0,0],"#,
                r#""cached":0,"free":[0,0,0,0,0,0,0,0,0,0,0],"blocks":null}]}"#,
                "\n0 M a512\n",
            );
            let text = text.replace("KERNEL", kernel).replace("PINNED", &pinned.to_string());
            let snapshot = Snapshot::parse(&text).expect("a snapshot");
            let profile = kontig_profiles::of_kernel(kernel).expect("a kernel");
            let Confidence { level, because } = Confidence::of(&snapshot, &profile);
            (level, because.join("; "))
        };
        assert_eq!(of("6.12.9", 0), (Level::High, String::new()));
        assert_eq!(of("6.15.2", 0), (Level::Medium, "no recording holds the rules of 6.15".into()));
        let others = "the rules of 6.15 stand for those of 6.18.44; no recording holds the rules of 6.15";
        assert_eq!(of("6.18.44", 0), (Level::Medium, others.into()));
        let (level, because) = of("6.18.44", 3);
        assert!(level == Level::Low && because.ends_with(others), "{because}");
    }
}
