//! The table: one row a figure, with its yardstick.

use crate::measure::Samples;
use std::fmt;

/// What a figure is counted in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Nanoseconds per operation.
    Ns,
    /// Milliseconds.
    Ms,
    /// Bytes per frame.
    Bytes,
    /// A ratio of two figures of ours.
    Times,
    /// 1 for yes, 0 for no.
    YesNo,
}

/// What a row is held against.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Target {
    /// At most so many times the yardstick.
    Ratio(f64),
    /// At most so much.
    AtMost(f64),
    /// Yes.
    Yes,
}

/// A figure with its yardstick.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its number; rows of one measure share the digits.
    pub number: &'static str,
    /// What is measured, and at what size.
    pub what: String,
    /// What it is counted in.
    pub unit: Unit,
    /// Ours.
    pub ours: Samples,
    /// The yardstick and its name, sampled by turns with ours.
    pub peer: Option<(String, Samples)>,
    /// What it ought to be, where that can be said against this yardstick.
    pub target: Option<Target>,
}

impl Row {
    /// Ours over the yardstick, turn by turn.
    fn ratios(&self) -> Option<Samples> {
        self.peer.as_ref().map(|(_, peer)| self.ours.ratios(peer))
    }

    /// Ours over the yardstick, of the medians.
    pub fn ratio(&self) -> Option<f64> {
        self.peer.as_ref().map(|(_, peer)| self.ours.median() / peer.median())
    }

    /// Whether it is as it ought to be.
    pub fn target_met(&self) -> Option<bool> {
        Some(match self.target? {
            Target::Ratio(r) => self.ours.median() / self.peer.as_ref()?.1.median() <= r,
            Target::AtMost(v) => self.ours.median() <= v,
            Target::Yes => self.ours.min() == 1.0,
        })
    }

    fn json(&self) -> String {
        let of = |s: &Samples| {
            format!("{{\"median\":{},\"min\":{},\"max\":{},\"n\":{}}}", s.median(), s.min(), s.max(), s.count())
        };
        let mut out = format!("{{\"row\":{:?},\"what\":{:?},\"unit\":\"{:?}\"", self.number, self.what, self.unit);
        out += &format!(",\"ours\":{}", of(&self.ours));
        if let Some((name, peer)) = &self.peer {
            let ratio = self.ours.median() / peer.median();
            out += &format!(",\"peer\":{name:?},\"peer_figure\":{},\"ratio\":{ratio}", of(peer));
        }
        if let Some(met) = self.target_met() {
            out += &format!(",\"target_met\":{met}");
        }
        out + "}"
    }
}

/// Four significant digits, without a tail of zeros after large numbers.
fn number(v: f64) -> String {
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

/// Rows, printed as they come: a full run takes minutes.
pub struct Table {
    json: bool,
}

const HEAD: [&str; 7] = ["row", "what", "ours", "min–max", "peer or limit", "ratio (min–max)", "target"];
const WIDTH: [usize; 7] = [4, 62, 11, 15, 24, 24, 0];

impl Table {
    /// Begins a table.
    pub fn new(json: bool) -> Table {
        if !json {
            print_line(&HEAD.map(String::from));
        }
        Table { json }
    }

    /// Prints rows.
    pub fn add(&self, rows: impl IntoIterator<Item = Row>) {
        for row in rows {
            if self.json { println!("{}", row.json()) } else { print_line(&cells(&row)) }
        }
    }

    /// Says which rows were to be held against a peer that is not there.
    pub fn without(&self, numbers: &[&str], peer: &str) {
        const WHY: &str = "no rival of this name was given; --rival FILE gives one, --help says what it has to be";
        if self.json {
            println!("{{\"without\":{peer:?},\"rows\":{numbers:?},\"why\":{WHY:?}}}");
        } else {
            println!("Not held against {peer}: rows {}: {WHY}.", numbers.join(", "));
        }
    }
}

fn cells(row: &Row) -> [String; 7] {
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
    let peer = row.peer.as_ref().map(|(name, p)| format!("{name} {}", figure(row.unit, p.median())));
    let ratio = row.peer.as_ref().zip(row.ratios()).map(|((_, p), each)| {
        let of_medians = number(row.ours.median() / p.median());
        format!("{of_medians} ({})", spread(&each))
    });
    [
        row.number.into(),
        row.what.clone(),
        figure(row.unit, row.ours.median()),
        if row.unit == Unit::YesNo { String::new() } else { spread(&row.ours) },
        peer.unwrap_or_default(),
        ratio.unwrap_or_default(),
        target,
    ]
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
