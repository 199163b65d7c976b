//! A part of a history in figures: huge pages at hand, stalls, what they cost, who paid, and what
//! changed.

use super::at::At;
use super::changes::{Change, between};
use super::count::{Count, ROWS};
use super::file::{Damage, History, Item, NoHistory};
use super::point::{AT_LIMIT, KILLED, Point, SLOWED, WAITED_S};
use super::sample::Sample;
use super::spread::Spread;
use super::step::{Step, grown, refused_share};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// A part of a history.
#[derive(Clone, Debug)]
pub struct Period {
    pub points: Vec<Point>,
    pub changes: Vec<Change>,
    pub damage: Damage,
    /// The settings at the end.
    pub settings: BTreeMap<String, String>,
    /// The kernel's release at the end.
    pub kernel: Option<String>,
    /// Bytes of a page at the middle level; `None` on a kernel without huge pages.
    pub huge_page_bytes: Option<u64>,
}

impl Period {
    /// The samples from one moment to another.
    ///
    /// # Errors
    /// If there is none.
    pub fn of(history: &History, from: At, to: At) -> Result<Period, NoHistory> {
        let (first, last) = history.span()?;
        let (from, to) = (from.unix_ms(first, last), to.unix_ms(first, last));
        let mut items = history.items();
        let (mut points, mut changes) = (Vec::new(), Vec::new());
        let mut before: Option<Sample> = None;
        for item in items.by_ref() {
            let Item::Sample(sample) = item else { continue };
            if !(from..=to).contains(&sample.unix_ms) {
                continue;
            }
            points.push(Point::of(&sample));
            changes.extend(before.iter().flat_map(|before| between(before, &sample)));
            before = Some(sample);
        }
        let damage = items.damage();
        let none = || {
            let damage = match damage {
                Damage { samples: 0, .. } => String::new(),
                damage => format!("; of the file {damage}"),
            };
            let why = format!("no sample from {} to {}{damage}", super::at::clock(from), super::at::clock(to));
            NoHistory::NoMoment(history.path.clone(), why)
        };
        let end = before.ok_or_else(none)?;
        Ok(Period {
            points,
            changes,
            damage,
            settings: super::changes::values(&end),
            kernel: end.release().map(str::to_string),
            huge_page_bytes: super::point::huge_page_bytes(&end),
        })
    }

    /// The steps from each point to the next, without those over a boot or a gap.
    pub fn steps(&self) -> impl Iterator<Item = Step<'_>> {
        self.points.windows(2).filter_map(|pair| Step::between(&pair[0], &pair[1]))
    }

    /// Seconds that the samples cover.
    pub fn seconds(&self) -> f64 {
        // From +0: the sum of nothing is -0 otherwise.
        self.steps().fold(0.0, |sum, step| sum + step.seconds)
    }

    /// The period in figures.
    pub fn summary(&self) -> Summary {
        let rate = |count: Count| Some(count.row().source.told(grown(self.steps(), count)?.a_second()));
        let told = ROWS.iter().filter(|row| row.told.is_some());
        let at_hand: Vec<(u64, i64)> = self.points.iter().filter_map(|p| Some((p.at_hand()?, p.unix_ms))).collect();
        let fewest = at_hand.iter().min();
        let score: Vec<u64> = self.points.iter().filter_map(Point::score).collect();
        Summary {
            from_unix_ms: self.points.first().map_or(0, |p| p.unix_ms),
            to_unix_ms: self.points.last().map_or(0, |p| p.unix_ms),
            samples: self.points.len(),
            seconds: self.seconds(),
            kernel: self.kernel.clone(),
            huge_page_bytes: self.huge_page_bytes,
            at_hand: Spread::of(at_hand.iter().map(|(n, _)| *n).collect()),
            fewest_at_unix_ms: fewest.map(|(_, at)| *at),
            score: Spread::of(score),
            rates: Rates(told.map(|row| (row.count, rate(row.count))).collect()),
            refused_share: refused_share(self.steps()),
            groups: self.groups(),
            damage: self.damage,
        }
    }

    /// The groups that went through something, those that waited longest first.
    fn groups(&self) -> Vec<Group> {
        let mut all: BTreeMap<&str, Group> = BTreeMap::new();
        for Step { before, after, .. } in self.steps() {
            for ((path, what), now) in &after.groups {
                let earlier = before.groups.get(&(path.clone(), *what));
                let Some(more) = earlier.map(|earlier| now - earlier).filter(|more| *more > 0.0) else { continue };
                let group = all.entry(path).or_insert_with(|| Group { path: path.clone(), ..Group::default() });
                match *what {
                    WAITED_S => group.waited_s += more,
                    AT_LIMIT => group.at_limit += more as u64,
                    SLOWED => group.slowed += more as u64,
                    KILLED => group.killed += more as u64,
                    _ => {}
                }
            }
        }
        let mut groups: Vec<Group> = all.into_values().filter(|group| group.path != "/").collect();
        groups.sort_by(|a, b| b.waited_s.total_cmp(&a.waited_s).then_with(|| a.path.cmp(&b.path)));
        groups
    }
}

/// The waits and events of a control group.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Group {
    pub path: String,
    /// Seconds in which some task of it waited for memory.
    pub waited_s: f64,
    /// Times that it was at its limit, that it was slowed down, and that a task of it was killed.
    pub at_limit: u64,
    pub slowed: u64,
    pub killed: u64,
}

/// Counts over a period: times an hour, and shares of the time.
#[derive(Clone, PartialEq, Debug)]
pub struct Rates(Vec<(Count, Option<f64>)>);

impl Rates {
    pub fn of(&self, count: Count) -> Option<f64> {
        self.0.iter().find(|(of, _)| *of == count)?.1
    }
}

impl Serialize for Rates {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().filter_map(|(count, rate)| Some((count.row().told?.json, rate))))
    }
}

/// A period in figures. Rates are per hour; what no sample tells is `None`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    pub from_unix_ms: i64,
    pub to_unix_ms: i64,
    pub samples: usize,
    /// Seconds that the samples cover.
    pub seconds: f64,
    pub kernel: Option<String>,
    pub huge_page_bytes: Option<u64>,
    pub at_hand: Option<Spread>,
    pub fewest_at_unix_ms: Option<i64>,
    pub score: Option<Spread>,
    #[serde(flatten)]
    pub rates: Rates,
    pub refused_share: Option<f64>,
    pub groups: Vec<Group>,
    pub damage: Damage,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_over_the_time_that_tells_the_count() {
        // 100 waits in each second, and half of it waited; told of the first eight seconds of 23.
        let point = |second: i64| {
            let told = [(Count::WaitedForCompaction, 100.0), (Count::SomeWaited, 0.5)];
            let counts = told.into_iter().filter(|_| second <= 8).map(|(count, n)| (count, n * second as f64));
            Point {
                unix_ms: second * 1000,
                uptime_s: Some(second as f64),
                counts: counts.chain([(Count::Moved, 7.0 * second as f64)]).collect(),
                ..Point::of(&Sample::default())
            }
        };
        let period = Period {
            points: (0..24).map(point).collect(),
            changes: Vec::new(),
            damage: Damage::default(),
            settings: BTreeMap::new(),
            kernel: None,
            huge_page_bytes: None,
        };
        let summary = period.summary();
        let counts = [Count::WaitedForCompaction, Count::SomeWaited, Count::Moved, Count::Kcompactd];
        assert_eq!(counts.map(|count| summary.rates.of(count)), [Some(360_000.0), Some(0.5), Some(25_200.0), None]);
        assert_eq!(summary.seconds, 23.0);
    }
}
