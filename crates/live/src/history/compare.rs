//! Two periods beside each other: what differs by more than each varies in itself.
//!
//! A period is cut into parts of as many samples. Two periods differ in a figure if of all pairs of
//! a part of one and a part of the other nine tenths differ the same way (the rank sum of Mann and
//! Whitney, by its share; equal ones count half for each), and their medians are apart by a tenth
//! or more. Where parts do not depend on each other, one comparison of two like periods in a
//! hundred names a figure; with the fewest parts, six do.

use super::count::{Count, ROWS, Row, Told};
use super::file::Damage;
use super::period::Period;
use super::point::Point;
pub use super::spread::Quartiles;
use super::step::{Step, grown, refused_share};
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
    fn of(self, part: &[Step]) -> Option<f64> {
        let steps = part.iter().copied();
        let mean = |value: fn(&Point) -> Option<u64>| {
            let values: Vec<f64> = part.iter().filter_map(|step| value(step.after)).map(|n| n as f64).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        match self {
            Figure::AtHand => mean(Point::at_hand),
            Figure::Score => mean(Point::score),
            Figure::Counted(count, _) => Some(count.row().source.told(grown(steps, count)?.a_second())),
            Figure::RefusedShare => refused_share(steps),
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

/// A figure that too few parts of one of the two tell, and the parts that do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct NotCompared {
    pub figure: Figure,
    pub a_parts: usize,
    pub b_parts: usize,
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
    /// Those that one tells, or that both tell in too few parts.
    pub not_compared: Vec<NotCompared>,
    pub kernels: [Option<String>; 2],
    pub settings: Vec<SetOtherwise>,
    /// Of the files of A and B.
    pub damage: [Damage; 2],
}

impl Comparison {
    pub fn of(a: &Period, b: &Period) -> Comparison {
        let (of_a, of_b): (Vec<_>, Vec<_>) = (a.steps().collect(), b.steps().collect());
        let (mut figures, mut not_compared) = (Vec::new(), Vec::new());
        for figure in Figure::all() {
            let (a, b) = (parts(figure, &of_a), parts(figure, &of_b));
            match (a.len(), b.len()) {
                (0, 0) => {}
                (a_parts, b_parts) if a_parts.min(b_parts) < FEWEST_PARTS => {
                    not_compared.push(NotCompared { figure, a_parts, b_parts });
                }
                _ => {
                    let differs = differ(&a, &b);
                    figures.push(Compared { figure, a: Quartiles::of(&a), b: Quartiles::of(&b), differs });
                }
            }
        }
        let has_few = of_a.len().min(of_b.len()) < FEWEST_PARTS;
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
        let damage = [a.damage, b.damage];
        let mut said = vec![match has_few {
            true => "There are too few samples to compare: it takes nine of each.".to_string(),
            false => differences(&figures, &not_compared),
        }];
        said.extend(other_kernel(&kernels));
        said.push(other_settings(&settings));
        said.extend(lost(&damage));
        Comparison { schema: SCHEMA, conclusion: said.join(" "), figures, not_compared, kernels, settings, damage }
    }
}

/// The figure of each part that tells it, in ascending order.
fn parts(figure: Figure, steps: &[Step]) -> Vec<f64> {
    let parts = PARTS.min(steps.len());
    let part = |nr: usize| figure.of(&steps[steps.len() * nr / parts..steps.len() * (nr + 1) / parts]);
    let mut values: Vec<f64> = (0..parts).filter_map(part).filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
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

/// The figures that differ, and those of which that is not known.
fn differences(figures: &[Compared], not_compared: &[NotCompared]) -> String {
    let difference = |c: &Compared| {
        let more = if c.b.median > c.a.median { "more" } else { "less" };
        let (a, b) = (c.figure.shown(c.a.median), c.figure.shown(c.b.median));
        format!("{} ({b} instead of {a}: {more})", c.figure.title())
    };
    let differ: Vec<String> = figures.iter().filter(|c| c.differs).map(difference).collect();
    let said = match (figures.is_empty(), differ.as_slice()) {
        (true, _) => "No figure can be compared.".to_string(),
        (_, []) if not_compared.is_empty() => {
            "B differs from A in no figure by more than each varies in itself.".into()
        }
        (_, []) => "B differs from A in no figure that can be compared by more than each varies in itself.".into(),
        (_, [one]) => format!("B differs from A in one figure: {one}."),
        (_, several) => format!("B differs from A in {}.", several.join("; ")),
    };
    let titles: Vec<&str> = not_compared.iter().map(|not| not.figure.title()).collect();
    match titles.is_empty() {
        true => said,
        false => {
            let titles = titles.join("; ");
            format!("{said} Not compared, as fewer than {FEWEST_PARTS} parts of A or of B tell it: {titles}.")
        }
    }
}

fn other_kernel(kernels: &[Option<String>; 2]) -> Option<String> {
    let [Some(a), Some(b)] = kernels else { return None };
    (a != b).then(|| format!("A ran Linux {a}, B Linux {b}."))
}

fn other_settings(settings: &[SetOtherwise]) -> String {
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
        [] => "All settings are the same.".into(),
        set => format!("Set otherwise: {}; that alone does not make them the cause.", set.join(", ")),
    }
}

/// Sentences on the damage of the two files.
fn lost(damage: &[Damage; 2]) -> Vec<String> {
    let damaged = ["A", "B"].into_iter().zip(damage).filter(|(_, damage)| damage.is_any());
    damaged.map(|(name, damage)| format!("Of the file of {name} {damage}.")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::point::NodePoint;
    use std::collections::BTreeMap;

    /// Samples of ten seconds, with `waited` waits for compaction in each.
    fn period(samples: i64, at_hand: fn(i64) -> u64, waited: f64, proactiveness: &str) -> Period {
        let point = |i: i64| Point {
            unix_ms: i * 10_000,
            boot: None,
            uptime_s: Some(i as f64 * 10.0),
            interval_s: 10.0,
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

    /// A period with its waits told in some samples only, by their number.
    fn told(samples: i64, tells: fn(i64) -> bool) -> Period {
        let mut period = period(samples, |_| 7, 1000.0, "20");
        for (i, point) in (0..).zip(&mut period.points) {
            point.counts.retain(|_, _| tells(i));
        }
        period
    }

    #[test]
    fn a_count_that_was_not_told_for_a_while_is_no_difference() {
        let of = Comparison::of(&told(100, |_| true), &told(100, |i| i % 5 != 4));
        let said = "B differs from A in no figure by more than each varies in itself. All settings are the same.";
        assert_eq!((of.conclusion.as_str(), &of.not_compared), (said, &Vec::new()));
        let waits = of.figures.iter().find(|c| matches!(c.figure, Figure::Counted(..))).expect("it is told");
        assert_eq!((waits.a.median, waits.b.lower, waits.b.upper), (360_000.0, 360_000.0, 360_000.0));
    }

    #[test]
    fn a_figure_that_too_few_parts_tell_is_named() {
        let (whole, half, none) = (told(100, |_| true), told(100, |i| i < 50), told(100, |_| false));
        let waits = Figure::all()[0];
        let not = |a_parts, b_parts| vec![NotCompared { figure: waits, a_parts, b_parts }];
        assert_eq!(Comparison::of(&whole, &half).not_compared, not(12, 6));
        assert_eq!(Comparison::of(&half, &half).not_compared, not(6, 6));
        assert_eq!(Comparison::of(&none, &whole).not_compared, not(0, 12));
        assert_eq!(Comparison::of(&none, &none).not_compared, Vec::new());
        assert_eq!(
            Comparison::of(&whole, &half).conclusion,
            "B differs from A in no figure that can be compared by more than each varies in itself. Not compared, as \
             fewer than 8 parts of A or of B tell it: waits for compaction, an hour. All settings are the same."
        );
    }

    #[test]
    fn enough_samples_that_tell_too_little_are_not_called_too_few() {
        let (mut a, b) = (told(100, |_| false), told(100, |_| true));
        a.points.iter_mut().for_each(|point| point.nodes.clear());
        let said = Comparison::of(&a, &b).conclusion;
        assert!(said.starts_with("No figure can be compared. Not compared, as fewer than 8 parts"), "{said}");
    }

    #[test]
    fn the_damage_of_each_file_is_told() {
        let (a, mut b) = (period(100, |_| 7, 1.0, "20"), period(100, |_| 7, 1.0, "20"));
        b.damage = Damage { bytes: 0, samples: 3 };
        let of = Comparison::of(&a, &b);
        let lost = " Of the file of B 3 samples cannot be read, as they build on one that is missing.";
        assert!(of.conclusion.ends_with(lost) && !of.conclusion.contains("of A "), "{}", of.conclusion);
        assert_eq!(of.damage, [a.damage, b.damage]);
    }
}
