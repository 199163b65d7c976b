//! A chart over time as SVG: lines of means, with bands from the least to the most where a place
//! on the page stands for several samples.

use super::escape::escaped;
use std::fmt::Write;

/// Values of one place on the page: least, mean, most.
type Spread = (f64, f64, f64);
type Bin = Option<Spread>;
/// Bins that are drawn without a break, with their numbers.
type Run = Vec<(usize, Spread)>;

/// A line of a chart.
pub struct Line {
    pub name: String,
    pub bins: Vec<Bin>,
}

/// A line across a chart at a moment.
pub struct Mark {
    pub unix_ms: i64,
    pub is_boot: bool,
    pub text: String,
}

/// The time that all charts of a page share, cut into bins.
#[derive(Clone, Copy)]
pub struct Axis {
    pub from_ms: i64,
    pub to_ms: i64,
    pub bins: usize,
}

impl Axis {
    /// The bin of a moment.
    pub fn bin(&self, unix_ms: i64) -> usize {
        let share = (unix_ms - self.from_ms) as f64 / self.length();
        ((share * self.bins as f64) as usize).min(self.bins - 1)
    }

    fn length(&self) -> f64 {
        (self.to_ms - self.from_ms).max(1) as f64
    }

    fn x(&self, unix_ms: i64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * ((unix_ms - self.from_ms) as f64 / self.length()).clamp(0.0, 1.0)
    }

    fn x_of_bin(&self, bin: usize) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * (bin as f64 + 0.5) / self.bins as f64
    }
}

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 150.0;
/// Room for ten digits and more at the axis.
const LEFT: f64 = 100.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 24.0;
/// Bins without a sample that a line passes over: samples do not come on the dot.
const PASSED: usize = 2;

/// The chart; `shown` is how a value is written at the axis.
pub fn chart(axis: &Axis, lines: &[Line], marks: &[Mark], shown: fn(f64) -> String) -> String {
    let most = lines.iter().flat_map(|line| &line.bins).flatten().map(|(_, _, most)| *most).fold(0.0, f64::max);
    let step = step(most / 3.0);
    let top = (most / step).ceil().max(1.0) * step;
    let y = |value: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - value / top);
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">");
    let mut value = 0.0;
    while value <= top * 1.001 {
        let at = y(value);
        let _ = write!(svg, "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{}\"/>", WIDTH - RIGHT);
        let (x, y, text) = (LEFT - 6.0, at + 4.0, shown(value));
        let _ = write!(svg, "<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{text}</text>");
        value += step;
    }
    svg += &times(axis);
    for mark in marks {
        let (class, x, bottom) =
            (if mark.is_boot { "mark boot" } else { "mark" }, axis.x(mark.unix_ms), HEIGHT - BOTTOM);
        let title = escaped(&mark.text);
        let _ = write!(svg, "<path class=\"{class}\" d=\"M{x:.1} {TOP}V{bottom}\"><title>{title}</title></path>");
    }
    for (nr, line) in lines.iter().enumerate() {
        for run in runs(&line.bins) {
            let at = |(bin, value): (usize, f64)| format!("{:.1} {:.1}", axis.x_of_bin(bin), y(value));
            let mean: Vec<String> = run.iter().map(|(bin, (_, mean, _))| at((*bin, *mean))).collect();
            if run.iter().any(|(_, (least, _, most))| most > least) {
                let over = run.iter().map(|(bin, (_, _, most))| at((*bin, *most)));
                let under = run.iter().rev().map(|(bin, (least, _, _))| at((*bin, *least)));
                let around: Vec<String> = over.chain(under).collect();
                let _ = write!(svg, "<path class=\"band c{nr}\" d=\"M{}Z\"/>", around.join("L"));
            }
            // A single sample is a point.
            let end = if mean.len() == 1 { "h.1" } else { "" };
            let _ = write!(svg, "<path class=\"line c{nr}\" d=\"M{}{end}\"/>", mean.join("L"));
        }
    }
    svg + "</svg>"
}

/// The bins of a line that are drawn without a break.
fn runs(bins: &[Bin]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (bin, values) in bins.iter().enumerate().filter_map(|(bin, values)| Some((bin, (*values)?))) {
        match runs.last_mut().and_then(|run| Some((run.last()?.0, run))) {
            Some((last, run)) if bin - last <= PASSED + 1 => run.push((bin, values)),
            _ => runs.push(vec![(bin, values)]),
        }
    }
    runs
}

/// A round distance between grid lines.
fn step(least: f64) -> f64 {
    if least <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * power).find(|step| *step >= least * 0.999).unwrap_or(least)
}

/// Times below the chart, as round as there is room for.
fn times(axis: &Axis) -> String {
    const STEPS_S: [i64; 14] =
        [10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 7 * 86_400];
    let seconds = axis.length() / 1000.0;
    let step_s = STEPS_S.into_iter().find(|step| seconds / *step as f64 <= 9.0).unwrap_or(28 * 86_400);
    let first = axis.from_ms.div_euclid(1000 * step_s) + 1;
    let mut svg = String::new();
    for nr in first.. {
        let at = nr * step_s * 1000;
        if at > axis.to_ms {
            break;
        }
        let clock = crate::history::at::clock(at);
        // The year goes without saying, the date where days are apart.
        let text = match step_s {
            s if s >= 86_400 => clock.get(5..10),
            s if s >= 60 => clock.get(11..16),
            _ => clock.get(11..),
        };
        let (x, y) = (axis.x(at), HEIGHT - 8.0);
        let _ = write!(svg, "<path class=\"grid\" d=\"M{x:.1} {TOP}V{}\"/>", HEIGHT - BOTTOM);
        let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{}</text>", text.unwrap_or_default());
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_breaks_where_there_are_no_samples_and_not_where_one_is_late() {
        let value = Some((1.0, 1.0, 1.0));
        let mut bins = vec![value; 12];
        bins[2] = None;
        bins[6..10].fill(None);
        let lengths: Vec<usize> = runs(&bins).iter().map(Vec::len).collect();
        assert_eq!(lengths, [5, 2]);
    }

    #[test]
    fn grid_lines_are_round() {
        assert_eq!([0.0, 0.03, 1.0, 3.3, 700.0].map(step), [1.0, 0.05, 1.0, 5.0, 1000.0]);
    }

    #[test]
    fn a_chart_has_a_line_a_band_and_its_marks() {
        let axis = Axis { from_ms: 1_795_700_000_000, to_ms: 1_795_700_600_000, bins: 3 };
        let bins = vec![Some((1.0, 2.0, 4.0)), Some((2.0, 3.0, 3.0)), None];
        let marks = [Mark { unix_ms: axis.from_ms + 300_000, is_boot: true, text: "a < b".into() }];
        let svg = chart(&axis, &[Line { name: "n".into(), bins }], &marks, |v| v.to_string());
        for part in ["class=\"line c0\" d=\"M248.7", "class=\"band c0\"", "class=\"mark boot\" d=\"M546.0", "a &lt; b"]
        {
            assert!(svg.contains(part), "{part} in {svg}");
        }
    }
}
