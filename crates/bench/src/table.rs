//! The table: a row for each figure, with its yardsticks.

use crate::limit::Yardstick;
use crate::measure::Samples;
use std::fmt;

/// The unit of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Nanoseconds per operation of a subject.
    Ns,
    Ms,
    /// Bytes per page frame.
    Bytes,
    /// A ratio of two figures of the engine.
    Times,
    /// 1 for yes, 0 for no.
    YesNo,
}

impl Unit {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Ns => "ns",
            Unit::Ms => "ms",
            Unit::Bytes => "bytes",
            Unit::Times => "times",
            Unit::YesNo => "yes",
        }
    }
}

/// The target of a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Target {
    /// At most this multiple of the yardstick.
    Ratio(f64),
    /// At most this value.
    AtMost(f64),
    Yes,
}

/// A figure with its yardsticks.
#[derive(Clone, Debug)]
pub struct Row {
    /// Number; rows of one measurement share the digits.
    pub number: &'static str,
    /// Description, with the size of the machine.
    pub what: String,
    pub unit: Unit,
    pub ours: Samples,
    /// The yardsticks, sampled by turns with ours.
    pub yardsticks: Vec<Yardstick>,
    /// The target, if there is one; a ratio is to the first yardstick.
    pub target: Option<Target>,
}

impl Row {
    /// The ratio of the medians.
    pub fn ratio(&self, yardstick: &Samples) -> f64 {
        self.ours.median() / yardstick.median()
    }

    /// Whether the row meets its target.
    pub fn target_met(&self) -> Option<bool> {
        Some(match self.target? {
            Target::Ratio(r) => self.ratio(&self.yardsticks.first()?.1) <= r,
            Target::AtMost(v) => self.ours.median() <= v,
            Target::Yes => self.ours.min() == 1.0,
        })
    }

    fn json(&self) -> String {
        let of = |s: &Samples| {
            format!("{{\"median\":{},\"min\":{},\"max\":{},\"n\":{}}}", s.median(), s.min(), s.max(), s.count())
        };
        let mut out = format!("{{\"row\":{:?},\"what\":{:?},\"unit\":\"{}\"", self.number, self.what, self.unit.name());
        out += &format!(",\"ours\":{}", of(&self.ours));
        let yardsticks = self
            .yardsticks
            .iter()
            .map(|(name, s)| format!("{{\"name\":{name:?},\"figure\":{},\"ratio\":{}}}", of(s), self.ratio(s)));
        out += &format!(",\"yardsticks\":[{}]", yardsticks.collect::<Vec<_>>().join(","));
        if let Some(met) = self.target_met() {
            out += &format!(",\"target_met\":{met}");
        }
        out + "}"
    }
}

/// Three or four significant digits.
pub fn number(v: f64) -> String {
    match v.abs() {
        a if a >= 1000.0 => format!("{v:.0}"),
        a if a >= 100.0 => format!("{v:.1}"),
        a if a >= 1.0 => format!("{v:.2}"),
        _ => format!("{v:.3}"),
    }
}

/// A figure with its unit.
pub fn figure(unit: Unit, v: f64) -> String {
    match unit {
        Unit::Ns => format!("{} ns", number(v)),
        Unit::Ms => format!("{} ms", number(v)),
        Unit::Bytes => format!("{} B", number(v)),
        Unit::Times => format!("{} ×", number(v)),
        Unit::YesNo => if v == 1.0 { "yes" } else { "NO" }.into(),
    }
}

/// Prints rows as they are measured, since a full run takes minutes.
pub struct Table {
    json: bool,
}

const HEAD: [&str; 7] = ["row", "what", "ours", "min–max", "peer or limit", "ratio (min–max)", "target"];
const WIDTH: [usize; 7] = [4, 62, 11, 15, 31, 24, 0];

impl Table {
    pub fn new(json: bool) -> Table {
        if !json {
            print_line(&HEAD.map(String::from));
        }
        Table { json }
    }

    pub fn add(&self, rows: impl IntoIterator<Item = Row>) {
        for row in rows {
            if self.json { println!("{}", row.json()) } else { lines(&row).iter().for_each(print_line) }
        }
    }

    /// Prints which rows lack a missing peer.
    pub fn without(&self, numbers: &[&str], peer: &str) {
        const WHY: &str = "no rival of this name was given; see --rival and KONTIG_RIVALS in --help";
        if self.json {
            println!("{{\"without\":{peer:?},\"rows\":{numbers:?},\"why\":{WHY:?}}}");
        } else {
            println!("Not compared with {peer}: rows {}: {WHY}.", numbers.join(", "));
        }
    }
}

/// A line for the row and its first yardstick, and one for each other yardstick.
fn lines(row: &Row) -> Vec<[String; 7]> {
    let spread = |s: &Samples| {
        if s.count() == 1 { "one run".into() } else { format!("{}–{}", number(s.min()), number(s.max())) }
    };
    let met = row.target_met().map_or("", |met| if met { ", met" } else { ", MISSED" });
    let target = match row.target {
        None => String::new(),
        Some(Target::Ratio(r)) => format!("≤ {r} × peer{met}"),
        Some(Target::AtMost(v)) => format!("≤ {}{met}", figure(row.unit, v)),
        Some(Target::Yes) => format!("yes{met}"),
    };
    let beside = |(name, samples): &Yardstick| {
        let of_medians = number(row.ratio(samples));
        let name = format!("{name} {}", figure(row.unit, samples.median()));
        (name, format!("{of_medians} ({})", spread(&row.ours.ratios(samples))))
    };
    let mut yardsticks = row.yardsticks.iter().map(beside);
    let (peer, ratio) = yardsticks.next().unwrap_or_default();
    let first = [
        row.number.into(),
        row.what.clone(),
        figure(row.unit, row.ours.median()),
        if row.unit == Unit::YesNo { String::new() } else { spread(&row.ours) },
        peer,
        ratio,
        target,
    ];
    let other = |(peer, ratio)| {
        let mut line = [const { String::new() }; 7];
        (line[4], line[5]) = (peer, ratio);
        line
    };
    std::iter::once(first).chain(yardsticks.map(other)).collect()
}

fn print_line(cells: &[String; 7]) {
    println!("{}", Line(cells));
}

struct Line<'a>(&'a [String; 7]);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (cell, width) in self.0.iter().zip(WIDTH) {
            write!(f, "{cell:<width$}  ")?;
        }
        Ok(())
    }
}
