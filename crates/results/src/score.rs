//! Scores: how many rows of a table agree with what was published, and how many would if nothing changed.

use crate::ageing::Ageing;
use crate::caveat::CaveatKind;
use crate::judge::{Rule, Step};
use crate::table::Row;
use serde::{Deserialize, Serialize};

/// How many rows agree, of how many that count. A row of several steps counts once for each.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct Tally {
    /// Rows that agree.
    pub agree: u32,
    /// Rows that count.
    pub of: u32,
}

impl Tally {
    /// Of those of these that count.
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

/// Rows that should not move: published to change by less than a tenth.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct FalseAlarms {
    /// Those that move by a tenth or more here.
    pub moved: u32,
    /// All of them.
    pub of: u32,
}

/// What a table's rows score.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct Counts {
    /// Rows whose direction agrees, of those published to change by a tenth or more; without those that fall to nearly
    /// nothing.
    pub direction: Tally,
    /// Rows that fall to nearly nothing as published: what a patch switches off, any model without it gets right.
    pub to_zero: Tally,
    /// Rows that should not move.
    pub false_alarms: FalseAlarms,
    /// Of the headline rows, those that move the published way and whose change is of the published size.
    pub headline_within_2x: Tally,
    /// Figures that age over the rounds as published, in direction and size.
    pub ageing: Tally,
}

/// An experiment's score. Rows with a caveat are in `apart` alone; steps that were published no larger than a null test are
/// nowhere but in `within_noise`.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct Score {
    /// What was measured.
    pub measured: Counts,
    /// What a model in which nothing ever changes would score of the same rows.
    pub nothing_changes: Counts,
    /// Of the rows whose direction agrees, those that differ by more than from run to run (see
    /// [`crate::Statistics::significant`]); of those of which that is known.
    pub beyond_chance: Tally,
    /// Steps published no larger than between two runs of one kernel.
    pub within_noise: u32,
    /// Rows with a caveat, by its kind.
    pub apart: Vec<Apart>,
}

/// The rows with a caveat of one kind.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Apart {
    /// The kind.
    pub kind: CaveatKind,
    /// How many rows there are.
    pub rows: u32,
    /// Of them, those whose direction agrees.
    pub direction: Tally,
    /// Of them, headline or not, those whose change is of the published size, or within a null test's noise.
    pub size: Tally,
}

impl FalseAlarms {
    fn add(&mut self, other: FalseAlarms) {
        self.moved += other.moved;
        self.of += other.of;
    }
}

impl Counts {
    /// Of steps, each with whether its row is a headline row, and of the steps of series.
    fn of(steps: &[(bool, Step)], ageing: &[Step]) -> Counts {
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
            ageing: Tally::of(ageing.iter().map(Step::agrees_in_full)),
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
    /// The score of a table's rows and of its figures round by round.
    pub fn of(rows: &[Row], ageing: &[Ageing]) -> Score {
        let held: Vec<&Row> = rows.iter().filter(|row| row.caveat.is_none()).collect();
        let steps: Vec<(bool, Step)> =
            held.iter().flat_map(|row| row.steps.iter().map(|step| (row.headline, *step))).collect();
        let series: Vec<Step> = ageing.iter().map(|series| series.step).collect();
        let still: Vec<(bool, Step)> = steps.iter().map(|(head, step)| (*head, step.if_nothing_changed())).collect();
        let still_series: Vec<Step> = series.iter().map(Step::if_nothing_changed).collect();
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

/// Of each step whose direction agrees, whether it is more than chance; null where that is not known, as of all steps that
/// are not from the baseline.
fn beyond_chance(row: &Row) -> impl Iterator<Item = Option<bool>> {
    let agree = row.steps.iter().filter(|step| step.direction_agrees == Some(true) && step.rule != Rule::ToZero);
    agree.map(|step| row.statistics.get(step.variant)?.as_ref()?.significant.filter(|_| step.against == 0))
}
