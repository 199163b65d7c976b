//! A program's times by turns, beside what the model says.

use crate::translation::measured::{Measured, gain, holds, within};
use crate::translation::pages::Lying;
use kontig_program::Pattern;
use kontig_translation::Mapped;
use std::fs;
use std::path::{Path, PathBuf};

/// Runs of a program on each kind of pages.
pub const TURNS: usize = 5;

/// A program that was held against the model.
pub struct Held {
    /// Its accesses, as its source or a count before the run tells them.
    pub known: String,
    /// Its time on small pages and on huge ones, s: the least of several.
    pub seconds: [f64; 2],
    /// The lowest and the highest gain of one pair of runs, %.
    pub range: [f64; 2],
    /// The gain that the model says, %.
    pub predicted: f64,
}

impl Held {
    /// The share of the time that huge pages saved, %.
    pub fn measured(&self) -> f64 {
        gain(self.seconds)
    }
    /// Whether the prediction is near enough, as far as the runs tell.
    pub fn verdict(&self) -> Verdict {
        let measured = self.measured();
        let ([lowest, highest], within) = (self.range, within(measured));
        if self.predicted < lowest - within || self.predicted > highest + within {
            Verdict::Missed
        } else if highest - lowest <= 2.0 * within {
            if holds(self.predicted, measured) { Verdict::Holds } else { Verdict::Missed }
        } else {
            Verdict::Undecided
        }
    }
}

/// Whether the runs bear a prediction out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Holds,
    Missed,
    /// The runs differ by more than a prediction may.
    Undecided,
}

/// A run: its time, s, and how its memory lay.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) seconds: f64,
    pub(super) lying: Lying,
}

/// The least time of several runs on small pages, and on huge ones, by turns.
pub(super) struct Timed {
    pub(super) best: [Run; 2],
    /// The lowest and the highest gain of one pair.
    range: [f64; 2],
}

impl Timed {
    pub(super) fn by_turns(run: impl Fn(bool) -> Result<Run, String>) -> Result<Timed, String> {
        let mut best = [run(false)?, run(true)?];
        let first = gain(best.map(|run| run.seconds));
        let mut range = [first, first];
        for _ in 1..TURNS {
            let turn = [run(false)?, run(true)?];
            let gain = gain(turn.map(|run| run.seconds));
            range = [range[0].min(gain), range[1].max(gain)];
            for (best, run) in best.iter_mut().zip(turn) {
                if run.seconds < best.seconds {
                    *best = run;
                }
            }
        }
        Ok(Timed { best, range })
    }

    /// The time that an access to this much of the memory saves on huge pages, ns, as it lay.
    pub(super) fn saved_ns(&self, m: &Measured, pattern: Pattern, bytes: u64) -> f64 {
        let pages = bytes / 4096;
        let [on_small, on_huge] = self.best.map(|run| run.lying);
        let per_group = on_small.per_group.unwrap_or(m.per_group);
        let in_huge = (pages as f64 * on_huge.in_huge as f64 / on_huge.bytes.max(1) as f64) as u64;
        let all_huge = Mapped::all_huge(in_huge);
        let huge = Mapped { small: pages - in_huge, per_group, ..all_huge };
        let time = |mapped| m.processor.access_ns(pattern, mapped);
        time(Mapped::all_small(pages, per_group)) - time(huge)
    }

    /// Beside the seconds that the model says are saved.
    pub(super) fn beside(self, known: String, saved_s: f64) -> Held {
        let seconds = self.best.map(|run| run.seconds);
        let [small, huge] = self.best.map(|run| run.lying);
        let share = 100.0 * huge.in_huge as f64 / huge.bytes.max(1) as f64;
        let lay =
            small.per_group.map_or(String::new(), |count| format!("{count:.1} small pages to a group of frames; "));
        let known = format!("{known}; {lay}{share:.0} % on huge pages if asked for");
        Held { known, seconds, range: self.range, predicted: 100.0 * saved_s / seconds[0] }
    }
}

pub(super) fn written(dir: &Path, name: &str, text: &str) -> Result<PathBuf, String> {
    let path = dir.join(name);
    fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn runs_that_differ_by_more_than_a_prediction_may_decide_nothing() {
        let verdict = |range, predicted| {
            let seconds = [100.0, 80.0];
            Held { known: String::new(), seconds, range, predicted }.verdict()
        };
        assert_eq!(verdict([18.0, 22.0], 24.0), Verdict::Holds);
        assert_eq!(verdict([18.0, 22.0], 26.0), Verdict::Missed);
        assert_eq!(verdict([10.0, 41.0], 20.0), Verdict::Undecided);
        assert_eq!(verdict([10.0, 41.0], 47.0), Verdict::Missed);
    }

    #[test]
    fn time_on_each_kind_of_pages_is_the_least_of_all_turns() {
        let count = Cell::new(0);
        let run = |huge: bool| {
            let turn = count.replace(count.get() + 1) / 2;
            let seconds = if huge { 1.5 } else { [2.0, 4.0, 3.0, 2.5, 6.0][turn] };
            Ok(Run { seconds, lying: Lying { bytes: 8, in_huge: 8 * u64::from(huge), per_group: Some(2.0) } })
        };
        let held = Timed::by_turns(run).expect("it runs").beside("known".into(), 0.5);
        assert_eq!((held.seconds, held.range, held.predicted), ([2.0, 1.5], [25.0, 75.0], 25.0));
        assert_eq!(held.known, "known; 2.0 small pages to a group of frames; 100 % on huge pages if asked for");
        assert!(Timed::by_turns(|_| Err("no java".into())).is_err());
    }
}
