//! Figures round by round on one ageing machine, as a part of the page, beside what was published of each round.

use super::{escape, variant_line};
use crate::{ageing, number};
use kontig_results::{Ageing, ExperimentResult};
use std::fmt::Write;

/// Figures round by round on one ageing machine: a line a round.
pub(super) fn write(out: &mut String, e: &ExperimentResult) {
    if e.ageing.is_empty() {
        return;
    }
    out.push_str("<div class=\"part\"><h3>Round by round</h3><div class=\"scroll\"><table><thead><tr><th rowspan=\"2\">Round</th>");
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
