//! Two periods beside each other: what differs by more than each varies in itself.
//!
//! A period is cut into parts of as many samples. Two periods differ in a figure if of all pairs of
//! a part of one and a part of the other nine tenths differ the same way (the rank sum of Mann and
//! Whitney, by its share; equal ones count half for each), and their medians are apart by a tenth
//! or more. Where parts do not depend on each other, one comparison of two like periods in a
//! hundred names a figure; with the fewest parts, six do.

use super::count::{Count, ROWS, Row, Told};
use super::period::Period;
use super::point::Point;
pub use super::spread::Quartiles;
use kontig_text::{grouped, percent};
use serde::{Serialize, Serializer};
use std::cmp::Ordering;

/// Name and version of the schema.
pub const SCHEMA: &str = "kontig.history-compare/1";

/// Parts of a period, and the fewest that say anything.
const PARTS: usize = 12;
const FEWEST_PARTS: usize = 8;
/// The share of pairs that must go the same way.
const SAME_WAY: f64 = 0.9;
/// Medians that are nearer than this do not differ. Chosen, as what an operator would act on.
const NEAR: f64 = 0.1;

/// A figure of a part of a period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Figure {
    AtHand,
    Score,
    /// The share of first touches that were refused a huge page.
    RefusedShare,
    Counted(Count, Told),
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(match self {
            Figure::AtHand => "at_hand",
            Figure::Score => "score",
            Figure::RefusedShare => "refused_share",
            Figure::Counted(_, told) => told.json,
        })
    }
}

impl Figure {
    /// All, those that matter most to a program first.
    pub fn all() -> Vec<Figure> {
        let compared = |row: &Row| row.told.filter(|told| told.title.is_some()).map(|t| Figure::Counted(row.count, t));
        let mut all: Vec<Figure> = ROWS.iter().filter_map(compared).collect();
        all.splice(1..1, [Figure::RefusedShare, Figure::AtHand]);
        all.push(Figure::Score);
        all
    }

    /// Its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Figure::AtHand => "huge pages at hand",
            Figure::Score => "fragmentation score",
            Figure::RefusedShare => "first touches refused a huge page",
            Figure::Counted(_, told) => told.title.unwrap_or(told.json),
        }
    }

    fn is_share(self) -> bool {
        match self {
            Figure::AtHand | Figure::Score => false,
            Figure::RefusedShare => true,
            Figure::Counted(count, _) => count.row().source.is_time(),
        }
    }

    /// A value for people.
    pub fn shown(self, value: f64) -> String {
        match self.is_share() {
            true if value > 0.0 && value < 0.0005 => "below 0.1 %".into(),
            true => percent(value),
            false if value > 0.0 && value < 9.95 && value.fract() != 0.0 => format!("{value:.1}"),
            false => grouped(value.round() as u64),
        }
    }

    /// The figure of a part.
    fn of(self, part: &[(&Point, &Point, f64)]) -> Option<f64> {
        let seconds: f64 = part.iter().map(|(_, _, seconds)| seconds).sum();
        let sum = |count| part.iter().filter_map(|(a, b, _)| b.since(a, count)).reduce(|a, b| a + b);
        let mean = |value: fn(&Point) -> Option<u64>| {
            let values: Vec<f64> = part.iter().filter_map(|(_, b, _)| value(b)).map(|n| n as f64).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        match self {
            Figure::AtHand => mean(Point::at_hand),
            Figure::Score => mean(Point::score),
            Figure::Counted(count, _) => {
                let unit = if self.is_share() { 1.0 } else { 3600.0 };
                sum(count).map(|n| n * unit / seconds)
            }
            Figure::RefusedShare => {
                let (given, refused) = (sum(Count::Given)?, sum(Count::Refused)?);
                (given + refused > 0.0).then(|| refused / (given + refused))
            }
        }
    }
}

/// A figure of both.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Compared {
    pub figure: Figure,
    pub a: Quartiles,
    pub b: Quartiles,
    pub differs: bool,
}

/// A setting that is not the same at the ends of both.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SetOtherwise {
    pub name: String,
    pub a: Option<String>,
    pub b: Option<String>,
}

/// Two periods beside each other.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    pub schema: &'static str,
    pub conclusion: String,
    /// Figures that both tell.
    pub figures: Vec<Compared>,
    pub kernels: [Option<String>; 2],
    pub settings: Vec<SetOtherwise>,
}

impl Comparison {
    pub fn of(a: &Period, b: &Period) -> Comparison {
        let (of_a, of_b): (Vec<_>, Vec<_>) = (a.steps().collect(), b.steps().collect());
        let compared = |figure: Figure| {
            let (a, b) = (parts(figure, &of_a)?, parts(figure, &of_b)?);
            Some(Compared { figure, a: Quartiles::of(&a), b: Quartiles::of(&b), differs: differ(&a, &b) })
        };
        let figures: Vec<Compared> = Figure::all().into_iter().filter_map(compared).collect();
        let kernels = [a.kernel.clone(), b.kernel.clone()];
        let mut names: Vec<&String> = a.settings.keys().chain(b.settings.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let set = |name: &&String| SetOtherwise {
            name: name.to_string(),
            a: a.settings.get(*name).cloned(),
            b: b.settings.get(*name).cloned(),
        };
        let settings: Vec<SetOtherwise> = names.iter().map(set).filter(|set| set.a != set.b).collect();
        let conclusion = conclusion(&figures, &kernels, &settings);
        Comparison { schema: SCHEMA, conclusion, figures, kernels, settings }
    }
}

/// The figure of each part, in ascending order; `None` if too few tell it.
fn parts(figure: Figure, steps: &[(&Point, &Point, f64)]) -> Option<Vec<f64>> {
    let parts = PARTS.min(steps.len());
    let part = |nr: usize| figure.of(&steps[steps.len() * nr / parts..steps.len() * (nr + 1) / parts]);
    let mut values: Vec<f64> = (0..parts).filter_map(part).filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    (values.len() >= FEWEST_PARTS).then_some(values)
}

/// Whether the values of two periods differ by more than each varies in itself.
fn differ(a: &[f64], b: &[f64]) -> bool {
    let pairs = a.iter().flat_map(|a| b.iter().map(move |b| a.total_cmp(b)));
    let less: f64 = pairs
        .map(|order| match order {
            Ordering::Less => 1.0,
            Ordering::Equal => 0.5,
            Ordering::Greater => 0.0,
        })
        .sum();
    let less = less / (a.len() * b.len()) as f64;
    let [a, b] = [a, b].map(|values| Quartiles::of(values).median);
    less.max(1.0 - less) >= SAME_WAY && (a - b).abs() >= NEAR * a.abs().max(b.abs())
}

/// Settings that a conclusion names; the rest is counted.
const NAMED: usize = 4;

fn conclusion(figures: &[Compared], kernels: &[Option<String>; 2], settings: &[SetOtherwise]) -> String {
    let difference = |c: &Compared| {
        let more = if c.b.median > c.a.median { "more" } else { "less" };
        let (a, b) = (c.figure.shown(c.a.median), c.figure.shown(c.b.median));
        format!("{} ({b} instead of {a}: {more})", c.figure.title())
    };
    let differ: Vec<String> = figures.iter().filter(|c| c.differs).map(difference).collect();
    let mut said = match (figures.is_empty(), differ.as_slice()) {
        (true, _) => "There are too few samples to compare: it takes nine of each.".to_string(),
        (_, []) => "B differs from A in no figure by more than each varies in itself.".into(),
        (_, [one]) => format!("B differs from A in one figure: {one}."),
        (_, several) => format!("B differs from A in {}.", several.join("; ")),
    };
    if let [Some(a), Some(b)] = kernels
        && a != b
    {
        said += &format!(" A ran Linux {a}, B Linux {b}.");
    }
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not there".into());
    let mut set: Vec<String> = settings
        .iter()
        .take(NAMED)
        .map(|set| format!("{} ({} in A, {} in B)", set.name, value(&set.a), value(&set.b)))
        .collect();
    if settings.len() > NAMED {
        set.push(format!("{} more", settings.len() - NAMED));
    }
    match set.as_slice() {
        [] => said += " All settings are the same.",
        set => said += &format!(" Set otherwise: {}; that alone does not make them the cause.", set.join(", ")),
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::file::Damage;
    use crate::history::point::NodePoint;
    use std::collections::BTreeMap;

    /// Samples of ten seconds; `waited` requests wait for compaction in each.
    fn period(samples: i64, at_hand: fn(i64) -> u64, waited: f64, proactiveness: &str) -> Period {
        let point = |i: i64| Point {
            unix_ms: i * 10_000,
            boot: None,
            uptime_s: Some(i as f64 * 10.0),
            nodes: vec![NodePoint { node: 0, at_hand: Some(at_hand(i)), score: None, free_bytes: 0 }],
            counts: [(Count::WaitedForCompaction, i as f64 * waited)].into(),
            groups: BTreeMap::new(),
        };
        Period {
            points: (0..samples).map(point).collect(),
            changes: Vec::new(),
            damage: Damage::default(),
            settings: [("vm.compaction_proactiveness".to_string(), proactiveness.to_string())].into(),
            kernel: Some("6.12".into()),
            huge_page_bytes: Some(2 << 20),
        }
    }

    #[test]
    fn a_difference_greater_than_each_varies_is_said_with_both_medians() {
        let (a, b) = (period(100, |i| 900 + i as u64 % 40, 0.1, "20"), period(100, |i| 100 + i as u64 % 40, 0.0, "60"));
        assert_eq!(
            Comparison::of(&a, &b).conclusion,
            "B differs from A in waits for compaction, an hour (0 instead of 36: less); huge pages at \
             hand (118 instead of 918: less). Set otherwise: vm.compaction_proactiveness (20 in A, 60 in B); that \
             alone does not make them the cause."
        );
    }

    #[test]
    fn like_periods_are_seldom_told_apart() {
        let mut state = 1u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64
        };
        let mut named = |parts: usize| {
            let mut values = || -> Vec<f64> {
                let mut values: Vec<f64> = (0..parts).map(|_| draw()).collect();
                values.sort_by(f64::total_cmp);
                values
            };
            // As many figures as a comparison has.
            (0..1000).filter(|_| (0..Figure::all().len()).any(|_| differ(&values(), &values()))).count()
        };
        let (with_most, with_fewest) = (named(PARTS), named(FEWEST_PARTS));
        assert!((1..=20).contains(&with_most), "{with_most} of 1000");
        assert!((30..=90).contains(&with_fewest), "{with_fewest} of 1000");
    }

    #[test]
    fn a_figure_that_varies_as_much_in_itself_does_not_differ() {
        let (a, b) = (period(100, |i| 10 * i as u64, 0.1, "20"), period(100, |i| 8 * i as u64 + 150, 0.1, "20"));
        let said = Comparison::of(&a, &b).conclusion;
        assert_eq!(
            said,
            "B differs from A in no figure by more than each varies in itself. All settings are the same."
        );
        let few = Comparison::of(&period(4, |_| 1, 0.1, "20"), &b).conclusion;
        assert!(few.starts_with("There are too few samples"), "{few}");
    }
}
