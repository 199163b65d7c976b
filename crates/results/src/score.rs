//! Scores: how many rows of a table agree with what was published.

use crate::ageing::Ageing;
use crate::caveat::CaveatKind;
use crate::judge::Step;
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

/// An experiment's score.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct Score {
    /// Rows whose direction agrees, of those with a published change of 10 % or more.
    pub direction: Tally,
    /// Of the rows whose direction agrees, those that differ by more than from run to run (see [`crate::Statistics::significant`]); of those of which that is
    /// known.
    pub beyond_chance: Tally,
    /// Headline rows that move the published way and whose change is of the published size: within 2×, or as small where nearly nothing was published.
    pub headline_within_2x: Tally,
    /// Figures that age over the rounds as published, in direction and size.
    pub ageing: Tally,
    /// Rows with a caveat, which are in neither of the above, by its kind.
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

impl Score {
    /// The score of a table's rows and of its figures round by round.
    pub fn of(rows: &[Row], ageing: &[Ageing]) -> Score {
        let held: Vec<&Row> = rows.iter().filter(|row| row.caveat.is_none()).collect();
        let mut kinds: Vec<CaveatKind> = rows.iter().filter_map(|row| Some(row.caveat.as_ref()?.kind)).collect();
        kinds.sort();
        kinds.dedup();
        let apart = |kind: CaveatKind| {
            let of: Vec<&Row> =
                rows.iter().filter(|row| row.caveat.as_ref().is_some_and(|caveat| caveat.kind == kind)).collect();
            Apart { kind, rows: of.len() as u32, direction: direction(&of), size: size(&of) }
        };
        let headline: Vec<&Row> = held.iter().copied().filter(|row| row.headline).collect();
        Score {
            direction: direction(&held),
            beyond_chance: Tally::of(held.iter().flat_map(|row| beyond_chance(row))),
            headline_within_2x: Tally::of(steps(&headline).map(Step::agrees_in_full)),
            ageing: Tally::of(ageing.iter().map(|series| series.step.agrees_in_full())),
            apart: kinds.into_iter().map(apart).collect(),
        }
    }

    /// Adds another table's score.
    pub fn add(&mut self, other: &Score) {
        self.direction.add(other.direction);
        self.beyond_chance.add(other.beyond_chance);
        self.headline_within_2x.add(other.headline_within_2x);
        self.ageing.add(other.ageing);
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

fn steps<'a>(rows: &'a [&Row]) -> impl Iterator<Item = &'a Step> {
    rows.iter().flat_map(|row| &row.steps)
}

/// Of each step whose direction agrees, whether it is more than chance; null where that is not known, as of all steps that are not from the baseline.
fn beyond_chance(row: &Row) -> impl Iterator<Item = Option<bool>> {
    let agree = row.steps.iter().filter(|step| step.direction_agrees == Some(true));
    agree.map(|step| row.statistics.get(step.variant)?.as_ref()?.significant.filter(|_| step.against == 0))
}

fn direction(rows: &[&Row]) -> Tally {
    Tally::of(steps(rows).map(|step| step.direction_agrees))
}

fn size(rows: &[&Row]) -> Tally {
    Tally::of(steps(rows).map(|step| step.size_agrees))
}
