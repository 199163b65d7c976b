//! Figures by round on one ageing machine, beside the published ones:
//! a plot and a table of the page.

use super::{escape, variant_line};
use crate::{ageing, number};
use kontig_results::{Ageing, ExperimentResult};
use std::fmt::Write;

/// A line for each round.
pub(super) fn write(out: &mut String, e: &ExperimentResult) {
    if e.ageing.is_empty() {
        return;
    }
    out.push_str("<div class=\"part\"><h3>Round by round</h3>");
    plot(out, e);
    out.push_str("<div class=\"scroll\"><table><thead><tr><th rowspan=\"2\">Round</th>");
    for series in &e.ageing {
        let variant = e.variants.get(series.variant).map_or("", String::as_str);
        let head = variant_line(series.variant, variant);
        let _ = write!(out, "<th class=\"group\" colspan=\"2\">{}, {head}</th>", escape(&series.name));
    }
    out.push_str("</tr><tr>");
    for _ in &e.ageing {
        out.push_str("<th class=\"figure edge\">published</th><th class=\"figure\">measured</th>");
    }
    out.push_str("</tr></thead><tbody>");
    let mut line = |name: &str, cells: &[[Option<String>; 2]]| {
        let _ = write!(out, "<tr><th scope=\"row\">{name}</th>");
        for (i, cell) in cells.iter().flatten().enumerate() {
            let edge = if i % 2 == 0 { " edge" } else { "" };
            let _ = write!(out, "<td class=\"figure{edge}\">{}</td>", escape(cell.as_deref().unwrap_or("–")));
        }
        out.push_str("</tr>");
    };
    for round in 0..e.ageing.iter().map(|series| series.published.len()).max().unwrap_or(0) {
        let of = |series: &Ageing| {
            let published = series.published.get(round).map(|value| number::exact(*value));
            [published, series.measured.get(round).copied().flatten().map(number::rounded)]
        };
        line(&(round + 1).to_string(), &e.ageing.iter().map(of).collect::<Vec<_>>());
    }
    let change = |series: &Ageing| [series.published_change(), series.measured_change()].map(|c| c.map(number::factor));
    line("last third over first", &e.ageing.iter().map(change).collect::<Vec<_>>());
    out.push_str("</tbody></table></div><ul class=\"remarks\">");
    for series in &e.ageing {
        let variant = e.variants.get(series.variant).map_or("", String::as_str);
        let (of, words) = (variant_line(series.variant, variant), escape(&ageing::words(series)));
        let _ = write!(out, "<li>{}, <b>{of}</b>: {words}</li>", escape(&series.name));
    }
    out.push_str("</ul></div>");
}

/// Size and margins of the plot, in its own units.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 70.0;
const MARGIN: f64 = 30.0;

/// Two lines for each series, published dashed and measured solid, as shares of the mean of its
/// first third. Shares, because builds of another length have other counts.
fn plot(out: &mut String, e: &ExperimentResult) {
    let lines = e.ageing.iter().flat_map(|series| {
        let published = shares(series.published.iter().copied().map(Some));
        [
            (series.variant, "6 4", "published", published),
            (series.variant, "none", "measured", shares(series.measured.iter().copied())),
        ]
    });
    let lines: Vec<_> = lines.collect();
    let values = || lines.iter().flat_map(|line| &line.3).flatten();
    let (top, rounds) =
        (values().copied().fold(1.0, f64::max), lines.iter().map(|line| line.3.len()).max().unwrap_or(0));
    let plane = Plane { top: (top * 4.0).ceil() / 4.0, rounds };
    let _ = write!(
        out,
        "<p class=\"hint\">Each round over the mean of the first third of its own line: dashed as published, solid \
         as measured.</p>\
         <svg class=\"rounds\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         style=\"max-width:{WIDTH}px\"><title>Round by round, each line in shares of its own first third</title>"
    );
    for quarter in (0..).map(|n| f64::from(n) / 4.0).take_while(|share| *share <= plane.top) {
        let (y, right) = (plane.y(quarter), WIDTH - MARGIN);
        let _ = write!(
            out,
            "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"currentColor\" opacity=\"0.15\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{:.0} %</text>",
            LEFT - 8.0,
            y + 4.0,
            quarter * 100.0
        );
    }
    for round in 0..rounds {
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            plane.x(round),
            HEIGHT - MARGIN + 18.0,
            round + 1
        );
    }
    for (variant, dashes, what, values) in &lines {
        let name = escape(e.variants.get(*variant).map_or("", String::as_str));
        let _ = write!(
            out,
            "<path d=\"{}\" fill=\"none\" stroke=\"var(--v{})\" stroke-width=\"2\" \
             stroke-dasharray=\"{dashes}\"><title>{name}, {what}</title></path>",
            plane.line_through(values),
            *variant % super::COLOURS
        );
    }
    out.push_str("</svg>");
}

/// Values over the mean of their first third; none if that mean is 0.
fn shares(values: impl Iterator<Item = Option<f64>>) -> Vec<Option<f64>> {
    let values: Vec<Option<f64>> = values.collect();
    let third: Vec<f64> = values.iter().take(values.len().div_ceil(3)).filter_map(|value| *value).collect();
    let mean = third.iter().sum::<f64>() / third.len().max(1) as f64;
    values.into_iter().map(|value| value.filter(|_| mean > 0.0).map(|value| value / mean)).collect()
}

/// The place of a round and a share on the plot.
struct Plane {
    /// The share at the upper edge; 0 is at the lower.
    top: f64,
    rounds: usize,
}

impl Plane {
    fn x(&self, round: usize) -> f64 {
        LEFT + (WIDTH - LEFT - MARGIN) / (self.rounds.max(2) - 1) as f64 * round as f64
    }

    fn y(&self, share: f64) -> f64 {
        HEIGHT - MARGIN - share / self.top * (HEIGHT - 2.0 * MARGIN)
    }

    /// A line through the rounds that have a value.
    fn line_through(&self, shares: &[Option<f64>]) -> String {
        let mut path = String::new();
        for (round, share) in shares.iter().enumerate().filter_map(|(round, share)| Some((round, (*share)?))) {
            let _ =
                write!(path, "{}{:.1} {:.1}", if path.is_empty() { 'M' } else { 'L' }, self.x(round), self.y(share));
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_shares_of_the_mean_of_their_first_third_and_what_is_missing_stays_missing() {
        assert_eq!(
            shares([Some(10.0), None, Some(20.0), Some(5.0)].into_iter()),
            [Some(1.0), None, Some(2.0), Some(0.5)]
        );
        assert_eq!(
            shares([Some(0.0), Some(3.0), Some(1.0)].into_iter()),
            [None; 3],
            "nothing is no measure of anything"
        );
    }

    #[test]
    fn a_line_leaves_out_rounds_without_a_value_and_fits_between_the_axes() {
        let plane = Plane { top: 2.0, rounds: 4 };
        assert_eq!(plane.line_through(&[Some(1.0), None, Some(2.0), Some(0.0)]), "M70.0 120.0L430.0 30.0L610.0 210.0");
        assert_eq!(plane.line_through(&[]), "");
    }
}
