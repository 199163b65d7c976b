//! Figures round by round on one ageing machine, as a part of the page, beside what was published of each round: a plot and a table.

use super::{escape, variant_line};
use crate::{ageing, number};
use kontig_results::{Ageing, ExperimentResult};
use std::fmt::Write;

/// Figures round by round on one ageing machine: a line a round.
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

/// The plot's size and its margin, in its own units.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 220.0;
const MARGIN: f64 = 30.0;

/// Each series as two lines, in shares of the mean of its first third: published dashed, measured solid. Shares, because builds of another length have other
/// counts.
fn plot(out: &mut String, e: &ExperimentResult) {
    let _ = write!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" style=\"max-width:{WIDTH}px\"><title>Round by round, each line in shares of its own first third</title>"
    );
    let _ = write!(
        out,
        "<path d=\"M{MARGIN} {MARGIN}V{0}H{1}\" fill=\"none\" stroke=\"currentColor\" opacity=\"0.4\"/>",
        HEIGHT - MARGIN,
        WIDTH - MARGIN
    );
    for (i, series) in e.ageing.iter().enumerate() {
        let hue = 210 + 150 * i;
        let name = escape(e.variants.get(series.variant).map_or("", String::as_str));
        let published: Vec<Option<f64>> = series.published.iter().copied().map(Some).collect();
        for (values, dashes, what) in [(&published, "6 4", "published"), (&series.measured, "none", "measured")] {
            let _ = write!(
                out,
                "<path d=\"{}\" fill=\"none\" stroke=\"hsl({hue} 70% 45%)\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"><title>{name}, {what}</title></path>",
                line_through(values)
            );
        }
        let _ = write!(
            out,
            "<text x=\"{MARGIN}\" y=\"{}\" font-size=\"11\" fill=\"hsl({hue} 70% 45%)\">{}, {name}: dashed as published, solid as measured, of the mean of the first third</text>",
            12 + 13 * i,
            escape(&series.name)
        );
    }
    out.push_str("</svg>");
}

/// A line through the rounds' values over the mean of their first third, from 0 at the bottom to twice that mean.
fn line_through(values: &[Option<f64>]) -> String {
    let third: Vec<f64> = values.iter().take(values.len().div_ceil(3)).filter_map(|value| *value).collect();
    let mean = third.iter().sum::<f64>() / third.len().max(1) as f64;
    let step = (WIDTH - 2.0 * MARGIN) / (values.len().max(2) - 1) as f64;
    let mut path = String::new();
    for (round, value) in values.iter().enumerate().filter_map(|(round, value)| Some((round, (*value)?))) {
        let share = if mean > 0.0 { (value / mean).min(2.0) } else { 0.0 };
        let (x, y) = (MARGIN + step * round as f64, HEIGHT - MARGIN - share / 2.0 * (HEIGHT - 2.0 * MARGIN));
        let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' });
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_from_the_mean_of_its_first_third_in_the_middle_and_leaves_out_what_is_missing() {
        let line = line_through(&[Some(10.0), None, Some(20.0), Some(5.0)]);
        assert_eq!(line, "M30.0 110.0L416.7 30.0L610.0 150.0");
        assert_eq!(line_through(&[]), "");
    }
}
