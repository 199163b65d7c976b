//! What a preparation found, did, cost and left, as JSON (`kontig.prepare/1`).

use super::got::Got;
use super::journal::Setting;
use super::plan::{Plan, Step};
use serde::{Deserialize, Serialize};

/// Schema of a receipt.
pub const SCHEMA: &str = "kontig.prepare/1";

/// A need and what is there of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Supplied {
    /// As it was asked for.
    pub need: String,
    /// Blocks needed.
    pub needed: u64,
    /// Blocks that are there; `None` where that is not known.
    pub blocks: Option<u64>,
}

/// What something took.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Seconds.
    pub seconds: f64,
    /// Seconds of a CPU for the compaction, without those in which others had it; `None` where the kernel does not say, and of
    /// what is foretold.
    pub cpu_seconds: Option<f64>,
    /// Frames that compaction's two scanners looked at.
    pub frames_scanned: u64,
    /// Pages moved: `pgmigrate_success`, which counts everybody's moves.
    pub pages_moved: u64,
    /// Moves that failed: `pgmigrate_fail`.
    pub pages_not_moved: u64,
    /// Bytes of page cache that went.
    pub dropped_bytes: u64,
}

/// A step that was carried out.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Done {
    /// Which.
    #[serde(flatten)]
    pub step: Step,
    /// What it took.
    pub cost: Cost,
    /// Whether it was ended early, as the needs were met.
    pub ended_early: bool,
    /// Why it failed, if it did.
    pub failed: Option<String>,
}

/// Everything about one preparation.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Receipt {
    /// The schema's name and version.
    pub schema: &'static str,
    /// What was found, predicted and planned.
    pub plan: Plan,
    /// Whether it was carried out, or only planned.
    pub executed: bool,
    /// What was there before.
    pub before: Vec<Supplied>,
    /// What was done, in order.
    pub done: Vec<Done>,
    /// What was there afterwards.
    pub after: Vec<Supplied>,
    /// Whether the needs are met.
    pub reached: bool,
    /// Why it ended: `reached`, `time over`, `stopped`, `not permitted`, `all steps done`, `only planned`.
    pub ended: &'static str,
    /// What was predicted.
    pub predicted: Option<Cost>,
    /// What it took.
    pub real: Cost,
    /// What the command got that was run then, once it is over.
    pub got: Option<Got>,
    /// Settings that were restored at the end.
    pub restored: Vec<Setting>,
    /// Settings that an earlier run, which was killed, had left, and that were restored first.
    pub recovered: Vec<Setting>,
}

impl Receipt {
    /// One that says what would be done.
    pub fn planned(plan: Plan) -> Receipt {
        let of = |asked: &crate::check::Asked| Supplied {
            need: asked.need.clone(),
            needed: asked.needed,
            blocks: asked.now,
        };
        let before: Vec<Supplied> = plan.check.needs.iter().map(of).collect();
        let predicted = plan.check.prediction.as_ref().map(|p| Cost {
            seconds: p.seconds,
            cpu_seconds: None,
            frames_scanned: p.frames_scanned,
            pages_moved: p.pages_moved,
            pages_not_moved: 0,
            dropped_bytes: p.dropped_bytes,
        });
        let met = plan.check.verdict == crate::check::Verdict::Met;
        Receipt {
            schema: SCHEMA,
            executed: false,
            after: before.clone(),
            before,
            done: Vec::new(),
            reached: met,
            ended: "only planned",
            predicted,
            real: Cost::default(),
            got: None,
            restored: Vec::new(),
            recovered: Vec::new(),
            plan,
        }
    }
}
