//! What a preparation found, did, cost and left, as JSON (`kontig.prepare/2`).

use super::got::Got;
use super::journal::{Leftover, Setting};
use super::plan::{Plan, Step};
use serde::{Deserialize, Serialize};

/// Schema of a receipt.
pub const SCHEMA: &str = "kontig.prepare/2";

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

/// What it is predicted to take.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Predicted {
    /// Seconds, on a CPU of its own.
    pub seconds: f64,
    /// Seconds at most, while the host is as busy as it was; `None` where that is not known.
    pub seconds_at_most: Option<f64>,
    /// Pages that are moved.
    pub pages_moved: u64,
    /// Frames that compaction's two scanners look at.
    pub frames_scanned: u64,
    /// Bytes of clean cache that are dropped.
    pub dropped_bytes: u64,
}

/// What something took. What the kernel counts, it counts of everybody; `None` is what it does not.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Seconds.
    pub seconds: f64,
    /// Seconds of a CPU for the processes that write: the compaction, without what others had of the CPU meanwhile.
    pub cpu_seconds: Option<f64>,
    /// Pages moved (`pgmigrate_success`).
    pub pages_moved: Option<u64>,
    /// Moves that failed (`pgmigrate_fail`).
    pub pages_not_moved: Option<u64>,
    /// Frames that compaction's two scanners looked at (`compact_migrate_scanned`, `compact_free_scanned`).
    pub frames_scanned: Option<u64>,
    /// Bytes of page cache before and afterwards, where something of it was dropped.
    pub cache_bytes: Option<[u64; 2]>,
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

/// Why a preparation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(into = "&'static str")]
pub enum Ended {
    /// The needs are met.
    Reached,
    /// Its time was over.
    TimeOver,
    /// Somebody stopped it.
    Stopped,
    /// A step was not permitted.
    NotPermitted,
    /// All steps were done.
    AllStepsDone,
    /// It was not carried out.
    OnlyPlanned,
}

impl Ended {
    /// In words, as the receipt has it.
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
    /// What was there afterwards; `None` where nothing was done.
    pub after: Option<Vec<Supplied>>,
    /// Whether the needs are met.
    pub reached: bool,
    /// Why it ended.
    pub ended: Ended,
    /// What was predicted.
    pub predicted: Option<Predicted>,
    /// What it took; `None` where nothing was done.
    pub real: Option<Cost>,
    /// What the command got that was run then, once it is over.
    pub got: Option<Got>,
    /// The shell's command that gives back what pools were filled with; `None` where none was.
    pub give_back: Option<String>,
    /// Settings that were restored at the end.
    pub restored: Vec<Setting>,
    /// Settings that an earlier run, which was killed, had left, and that were restored first.
    pub recovered: Vec<Setting>,
    /// The journal of an earlier run that was found and left alone, as nothing was done.
    pub leftover: Option<Leftover>,
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
