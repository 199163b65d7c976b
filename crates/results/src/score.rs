//! Scores: the rows of a table that agree with the publication, and those that would if nothing
//! changed.

use crate::ageing::Ageing;
use crate::caveat::CaveatKind;
use crate::judge::{JudgedStep, Rule};
use crate::row::Row;
use serde::{Deserialize, Serialize};

/// Rows that agree, of those that count. A row of several steps counts once for each.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct Tally {
    pub agree: u32,
    pub of: u32,
}

impl Tally {
    /// `None` does not count.
    fn of(these: impl Iterator<Item = Option<bool>>) -> Tally {
        let mut tally = Tally::default();
        for agrees in these.flatten() {
            tally.of += 1;
            tally.agree += u32::from(agrees);
        }
        tally
    }

    fn add(&mut self, other: Tally) {
        self.agree += other.agree;
        self.of += other.of;
    }
}

/// Rows that should not move: the published change is less than a tenth.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct FalseAlarms {
    /// Those that move by a tenth or more when measured.
    pub moved: u32,
    pub of: u32,
}

/// The score of a table's rows.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct Counts {
    /// Rows whose direction agrees, of those published to change by a tenth or more but not to
    /// nearly nothing.
    pub direction: Tally,
    /// Rows that fall to nearly nothing as published. A model gets those right by having the patch
    /// that switches something off.
    pub to_zero: Tally,
    /// Rows that should not move.
    pub false_alarms: FalseAlarms,
    /// Headline rows that move the published way by the published size.
    pub headline_within_2x: Tally,
    /// Figures that age over the rounds as published, in direction and size.
    pub ageing: Tally,
}

/// An experiment's score. Rows with a caveat count in `apart` alone, steps published no larger than
/// a null test in `within_noise` alone.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct Score {
    /// The measured figures' score.
    pub measured: Counts,
    /// The score of the same rows if nothing ever changed.
    pub nothing_changes: Counts,
    /// Rows whose direction agrees and that differ by more than noise (see
    /// [`crate::Statistics::significant`]), of those for which that is known.
    pub beyond_chance: Tally,
    /// Steps published no larger than the difference between two runs of one kernel.
    pub within_noise: u32,
    /// Rows with a caveat, by its kind.
    pub apart: Vec<Apart>,
}

/// The rows with a caveat of one kind.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Apart {
    pub kind: CaveatKind,
    pub rows: u32,
    /// Their steps whose direction agrees.
    pub direction: Tally,
    /// Their steps that have the published size, or are within a null test's noise, headline or
    /// not.
    pub size: Tally,
}

impl FalseAlarms {
    fn add(&mut self, other: FalseAlarms) {
        self.moved += other.moved;
        self.of += other.of;
    }
}

impl Counts {
    /// The steps carry whether their row is a headline row; `ageing` are those of series.
    fn of(steps: &[(bool, JudgedStep)], ageing: &[JudgedStep]) -> Counts {
        let counted = || steps.iter().filter(|(_, step)| step.rule != Rule::WithinNoise);
        let by_rule = |to_zero: bool| counted().filter(move |(_, step)| (step.rule == Rule::ToZero) == to_zero);
        let alarms = || counted().filter_map(|(_, step)| step.false_alarm);
        let headline = counted().filter(|(headline, _)| *headline);
        Counts {
            direction: Tally::of(by_rule(false).map(|(_, step)| step.direction_agrees)),
            to_zero: Tally::of(by_rule(true).map(|(_, step)| step.agrees_in_full())),
            false_alarms: FalseAlarms {
                moved: alarms().filter(|moves| *moves).count() as u32,
                of: alarms().count() as u32,
            },
            headline_within_2x: Tally::of(headline.map(|(_, step)| step.agrees_in_full())),
            ageing: Tally::of(ageing.iter().map(JudgedStep::agrees_in_full)),
        }
    }

    fn add(&mut self, other: &Counts) {
        self.direction.add(other.direction);
        self.to_zero.add(other.to_zero);
        self.false_alarms.add(other.false_alarms);
        self.headline_within_2x.add(other.headline_within_2x);
        self.ageing.add(other.ageing);
    }
}

impl Score {
    /// The score of a table's rows and series.
    pub fn of(rows: &[Row], ageing: &[Ageing]) -> Score {
        let held: Vec<&Row> = rows.iter().filter(|row| row.caveat.is_none()).collect();
        let steps: Vec<(bool, JudgedStep)> =
            held.iter().flat_map(|row| row.steps.iter().map(|step| (row.headline, *step))).collect();
        let series: Vec<JudgedStep> = ageing.iter().map(|series| series.step).collect();
        let still: Vec<(bool, JudgedStep)> =
            steps.iter().map(|(head, step)| (*head, step.if_nothing_changed())).collect();
        let still_series: Vec<JudgedStep> = series.iter().map(JudgedStep::if_nothing_changed).collect();
        let mut kinds: Vec<CaveatKind> = rows.iter().filter_map(|row| Some(row.caveat.as_ref()?.kind)).collect();
        kinds.sort();
        kinds.dedup();
        let apart = |kind: CaveatKind| {
            let of: Vec<&Row> =
                rows.iter().filter(|row| row.caveat.as_ref().is_some_and(|caveat| caveat.kind == kind)).collect();
            let steps = || of.iter().flat_map(|row| &row.steps);
            Apart {
                kind,
                rows: of.len() as u32,
                direction: Tally::of(steps().map(|step| step.direction_agrees)),
                size: Tally::of(steps().map(|step| step.size_agrees)),
            }
        };
        Score {
            measured: Counts::of(&steps, &series),
            nothing_changes: Counts::of(&still, &still_series),
            beyond_chance: Tally::of(held.iter().flat_map(|row| beyond_chance(row))),
            within_noise: steps.iter().filter(|(_, step)| step.rule == Rule::WithinNoise).count() as u32,
            apart: kinds.into_iter().map(apart).collect(),
        }
    }

    /// Adds another table's score.
    pub fn add(&mut self, other: &Score) {
        self.measured.add(&other.measured);
        self.nothing_changes.add(&other.nothing_changes);
        self.beyond_chance.add(other.beyond_chance);
        self.within_noise += other.within_noise;
        for apart in &other.apart {
            match self.apart.iter_mut().find(|own| own.kind == apart.kind) {
                Some(own) => {
                    own.rows += apart.rows;
                    own.direction.add(apart.direction);
                    own.size.add(apart.size);
                }
                None => self.apart.push(apart.clone()),
            }
        }
    }
}

/// For each step whose direction agrees, whether it exceeds chance; `None` if that is not known, as
/// for all steps not from the baseline.
fn beyond_chance(row: &Row) -> impl Iterator<Item = Option<bool>> {
    let agree = row.steps.iter().filter(|step| step.direction_agrees == Some(true) && step.rule != Rule::ToZero);
    agree.map(|step| row.statistics.get(step.variant)?.as_ref()?.significant.filter(|_| step.against == 0))
}
