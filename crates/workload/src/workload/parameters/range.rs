//! The values that a parameter takes: found by trying what the checks of the whole workload refuse.

use super::{Parameter, bytes};
use crate::room::Room;
use crate::shape::Shape;
use crate::workload::Workload;
use kontig_text::{grouped, size};

/// The values that a parameter takes while all else is as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Range {
    least: u64,
    /// Whether numbers below the least are taken, too, but not 0.
    above_nothing: bool,
    /// `None` if none was refused that was tried.
    most: Option<u64>,
}

/// The most that is tried where nothing refuses more: programs keep a few bytes for each of the
/// things they count.
const MOST_COUNTED: u64 = 1 << 20;
const MOST_NUMBER: u64 = 1 << 30;
const MOST_BYTES: u64 = 1 << 44;
const PAGE: u64 = 4096;
const HUGE_PAGE: u64 = 2 << 20;

impl Workload {
    /// The values that these parameters take, in words, while all else is as it is; numbers as far
    /// as the machine has room for them.
    pub fn takes(&self, parameters: &[&Parameter], room: Option<&Room>) -> Option<String> {
        let first = parameters.first()?;
        match first.shape {
            Shape::YesNo => return Some("true or false".into()),
            Shape::OneOf(words) => return Some(words.join(", ")),
            Shape::List | Shape::Table => return None,
            Shape::Text if !first.is_size() => return None,
            Shape::Text | Shape::Whole { .. } | Shape::Number => {}
        }
        let Range { least, above_nothing, most } = self.range(parameters, room)?;
        let text = |number: u64| if first.is_size() { size(number) } else { grouped(number) };
        Some(match (most, above_nothing) {
            (Some(most), false) if most == least => format!("only {}", text(most)),
            (Some(most), false) => format!("{} to {}", text(least), text(most)),
            (Some(most), true) => format!("more than 0, up to {}", text(most)),
            (None, false) => format!("{} or more", text(least)),
            (None, true) => "more than 0".into(),
        })
    }

    /// The least and the most that the checks of the whole workload let pass: those in between do,
    /// too. `None` if every value is refused that is tried.
    fn range(&self, parameters: &[&Parameter], room: Option<&Room>) -> Option<Range> {
        let first = parameters.first()?;
        let value = first.value.as_ref()?;
        let (now, step, most) = match first.shape {
            Shape::Whole { .. } => (u64::try_from(value.as_integer()?).ok()?, 1, MOST_COUNTED),
            Shape::Number => (value.as_float()? as u64, 1, MOST_NUMBER),
            _ => {
                let bytes = bytes(value)?;
                (bytes, if bytes.is_multiple_of(HUGE_PAGE) { HUGE_PAGE } else { PAGE }, MOST_BYTES)
            }
        };
        fn each<'a>(all: &[&'a Parameter], value: &'a toml::Value) -> Vec<(&'a Parameter, &'a toml::Value)> {
            all.iter().map(|parameter| (*parameter, value)).collect()
        }
        let takes = |steps: u64| {
            let number = steps * step;
            let value = match first.shape {
                Shape::Whole { .. } => toml::Value::Integer(number as i64),
                Shape::Number => toml::Value::Float(number as f64),
                _ => toml::Value::String(format!("{} KiB", number / 1024)),
            };
            self.set(&each(parameters, &value)).is_ok_and(|w| room.is_none_or(|room| w.fits(room).is_ok()))
        };
        let powers = (0..).map(|n| 1 << n).take_while(|n| *n <= most / step);
        let now = [now / step, now / step + 1].into_iter().chain(powers).find(|now| takes(*now))?;
        let least = if takes(0) { 0 } else { between(0, now, |steps| !takes(steps)) + 1 };
        let (mut taken, last) = (now, most / step);
        let refused = loop {
            let next = (taken * 2).clamp(1, last.max(1));
            match takes(next) {
                true if next >= last => break None,
                true => taken = next,
                false => break Some(next),
            }
        };
        let most = refused.map(|refused| between(taken, refused, takes) * step);
        let little = toml::Value::Float(1e-3);
        let above_nothing = first.shape == Shape::Number && least == 1 && self.set(&each(parameters, &little)).is_ok();
        Some(Range { least: least * step, above_nothing, most })
    }
}

/// The last number that holds, of which the lower one does and the upper one does not.
fn between(mut lower: u64, mut upper: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while upper - lower > 1 {
        let middle = lower + (upper - lower) / 2;
        if holds(middle) { lower = middle } else { upper = middle }
    }
    lower
}
