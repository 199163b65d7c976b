//! Watching: nothing is done for a while, and the machine's own threads do what they do.

use crate::benchmark::{Benchmark, Start};
use crate::limits::{LONGEST_S, within};
use kontig_program::{Batch, Op, Outcome, Program};
use serde::{Deserialize, Serialize};

/// Nothing, for so long.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Watch {
    pub seconds: f64,
}

impl Benchmark for Watch {
    type Program = Watcher;

    fn program(&self, _: &Start) -> Result<Watcher, String> {
        within("seconds", self.seconds, LONGEST_S)?;
        if self.seconds == 0.0 {
            return Err("seconds = 0: nothing is seen in no time".into());
        }
        Ok(Watcher { slice_ns: (self.seconds * 1e9) as u64 / u64::from(SLICES), slept: 0 })
    }
}

/// A process that only sleeps.
#[derive(Clone)]
pub struct Watcher {
    slice_ns: u64,
    slept: u32,
}

/// Parts the watch is divided into, so that its progress can be followed.
const SLICES: u32 = 100;

impl Program for Watcher {
    fn next(&mut self, _done: &[Outcome], todo: &mut Batch) {
        if self.slept < SLICES {
            self.slept += 1;
            todo.push(Op::Sleep(self.slice_ns));
        }
    }
    fn progress(&self) -> f64 {
        f64::from(self.slept) / f64::from(SLICES)
    }
}
