//! The receipt of a preparation as JSON (`kontig.prepare/2`): the check, the steps, their cost, the
//! result.

use super::got::Got;
use super::journal::{Leftover, Setting};
use super::plan::{Plan, PlanStep};
use serde::{Deserialize, Serialize};

/// Name and version of a receipt's schema.
pub const SCHEMA: &str = "kontig.prepare/2";

/// A need and the blocks that are there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Supplied {
    pub need: String,
    pub needed: u64,
    /// Blocks that are there; `None` where that is not known.
    pub blocks: Option<u64>,
}

/// The predicted cost of a preparation.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Predicted {
    /// Seconds, on a CPU of its own.
    pub seconds: f64,
    /// Seconds at most, while the host is as busy as it was; `None` where that is not known.
    pub seconds_at_most: Option<f64>,
    pub pages_moved: u64,
    /// Frames that compaction's two scanners look at.
    pub frames_scanned: u64,
    /// Bytes of clean cache that are dropped.
    pub dropped_bytes: u64,
}

/// The cost of a preparation or a step. The kernel's counts include everybody's work; `None` where
/// it does not count.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Cost {
    pub seconds: f64,
    /// Seconds of a CPU for the writing processes: the compaction itself, without others' turns.
    pub cpu_seconds: Option<f64>,
    /// The counter `pgmigrate_success`, pages moved.
    pub pages_moved: Option<u64>,
    /// Moves that failed (`pgmigrate_fail`).
    pub pages_not_moved: Option<u64>,
    /// Frames that compaction's two scanners looked at (`compact_migrate_scanned`,
    /// `compact_free_scanned`).
    pub frames_scanned: Option<u64>,
    /// Bytes of page cache before and afterwards, where a step drops cache.
    pub cache_bytes: Option<[u64; 2]>,
}

/// A step that was carried out.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Done {
    #[serde(flatten)]
    pub step: PlanStep,
    pub cost: Cost,
    /// Whether it was ended early, as the needs were met.
    pub ended_early: bool,
    pub failed: Option<String>,
}

/// Why a preparation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(into = "&'static str")]
pub enum Ended {
    Reached,
    TimeOver,
    Stopped,
    NotPermitted,
    AllStepsDone,
    OnlyPlanned,
}

impl Ended {
    /// The word in the receipt.
    pub const fn words(self) -> &'static str {
        match self {
            Ended::Reached => "reached",
            Ended::TimeOver => "time over",
            Ended::Stopped => "stopped",
            Ended::NotPermitted => "not permitted",
            Ended::AllStepsDone => "all steps done",
            Ended::OnlyPlanned => "only planned",
        }
    }
}

impl From<Ended> for &'static str {
    fn from(ended: Ended) -> &'static str {
        ended.words()
    }
}

/// Everything about one preparation.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Receipt {
    pub schema: &'static str,
    pub plan: Plan,
    /// Whether it was carried out, or only planned.
    pub executed: bool,
    pub before: Vec<Supplied>,
    pub done: Vec<Done>,
    /// `None` where nothing was done.
    pub after: Option<Vec<Supplied>>,
    pub reached: bool,
    pub ended: Ended,
    pub predicted: Option<Predicted>,
    /// `None` where nothing was done.
    pub real: Option<Cost>,
    /// Huge pages of the command that was run then, once it is over.
    pub got: Option<Got>,
    /// The shell's command that gives back what pools have for the needs; `None` where no pool is
    /// used.
    pub give_back: Option<String>,
    /// Settings that were restored at the end.
    pub restored: Vec<Setting>,
    /// Settings of an earlier run that was killed, restored first.
    pub recovered: Vec<Setting>,
    /// The journal of an earlier run that was found and left alone, as nothing was done.
    pub leftover: Option<Leftover>,
}

impl Receipt {
    /// The receipt of a plan that is not carried out.
    pub fn planned(plan: Plan) -> Receipt {
        let of = |asked: &crate::check::Asked| Supplied {
            need: asked.need.clone(),
            needed: asked.needed,
            blocks: asked.now,
        };
        let before: Vec<Supplied> = plan.check.needs.iter().map(of).collect();
        let predicted = plan.check.prediction.as_ref().map(|p| Predicted {
            seconds: p.seconds,
            seconds_at_most: p.seconds_at_most,
            pages_moved: p.pages_moved,
            frames_scanned: p.frames_scanned,
            dropped_bytes: p.dropped_bytes,
        });
        let met = plan.check.verdict == crate::check::Verdict::Met;
        Receipt {
            schema: SCHEMA,
            executed: false,
            after: None,
            before,
            done: Vec::new(),
            reached: met,
            ended: Ended::OnlyPlanned,
            predicted,
            real: None,
            got: None,
            give_back: None,
            restored: Vec::new(),
            recovered: Vec::new(),
            leftover: None,
            plan,
        }
    }
}
