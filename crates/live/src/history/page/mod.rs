//! A period as one page that needs nothing else: the answer, time lines, what changed, who paid.

mod chart;
mod escape;

use super::at::clock;
use super::changes::What;
use super::count::{CHARTS, Count, ROWS, Row};
use super::period::{Period, Summary};
use super::point::Point;
use super::step::{Step, grown};
use super::words;
use chart::{Axis, Line, Mark, chart};
use escape::escaped;
use kontig_text::{grouped, time};

const STYLE: &str = include_str!("page.css");

/// Places on the page for values, at most.
const BINS: usize = 400;
/// Changes that the page lists, at most.
const CHANGES: usize = 200;
/// Groups and nodes that it shows.
const GROUPS: usize = 12;
const NODES: usize = 4;

/// The page; `name` is the history's.
pub fn page(name: &str, period: &Period) -> String {
    let summary = period.summary();
    let said: String = words::conclusion(&summary).iter().map(|line| format!("<p>{}</p>", escaped(line))).collect();
    let head = words::heading(&summary);
    let title = escaped(name);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n<p class=\"soft\">{}</p>\n\
         <div class=\"conclusion\">{said}</div>\n{}{}{}</body></html>\n",
        escaped(&head),
        charts(period),
        changes(period, &summary),
        paid(&summary)
    )
}

/// A chart's title, its lines, and how a value is written.
type Figure = (&'static str, Vec<Line>, fn(f64) -> String);

fn charts(period: &Period) -> String {
    let (Some(first), Some(last)) = (period.points.first(), period.points.last()) else { return String::new() };
    let (from_ms, to_ms) = period
        .points
        .iter()
        .fold((first.unix_ms, last.unix_ms), |(from, to), point| (from.min(point.unix_ms), to.max(point.unix_ms)));
    let axis = Axis { from_ms, to_ms, bins: (period.points.len() / 2).clamp(1, BINS) };
    let marks: Vec<Mark> = period
        .changes
        .iter()
        .filter(|change| !matches!(change.what, What::Gap { .. }))
        .map(|change| Mark {
            unix_ms: change.unix_ms,
            is_boot: matches!(change.what, What::Boot { .. }),
            text: format!("{}: {}", clock(change.unix_ms), change.words()),
        })
        .collect();
    let nodes: Vec<u32> = first.nodes.iter().map(|node| node.node).take(NODES).collect();
    let of_nodes = |value: fn(&super::point::NodePoint) -> Option<u64>| -> Vec<Line> {
        let line = |node: &u32| {
            let of = |p: &Point| p.nodes.iter().find(|n| n.node == *node).and_then(value).map(|n| n as f64);
            Line { name: format!("node {node}"), bins: levels(&axis, period, of) }
        };
        nodes.iter().map(line).collect()
    };
    let number = |value: f64| match value.fract() == 0.0 {
        true => grouped(value as u64),
        false => kontig_text::without_zeros(&format!("{value:.3}")).to_string(),
    };
    let mut charts: Vec<Figure> = vec![
        ("Huge pages that requests get at once", of_nodes(|node| node.at_hand), number),
        ("The kernel's fragmentation score", of_nodes(|node| node.score), number),
    ];
    charts.extend(CHARTS.iter().map(|chart| {
        let rows = ROWS.iter().filter_map(|row| Some((row, row.line.filter(|(of, _)| of == chart)?.1)));
        let is_time = rows.clone().any(|(row, _)| row.source.is_time());
        let line = |(row, name): (&Row, &str)| Line {
            name: name.into(),
            bins: rates(&axis, period, row.count, chart.seconds),
        };
        (chart.title, rows.map(line).collect(), if is_time { share_text } else { number })
    }));
    let figure = |(title, mut lines, shown): Figure| {
        lines.retain(|line| line.bins.iter().any(Option::is_some));
        if lines.is_empty() {
            return String::new();
        }
        let name = |(nr, line): (usize, &Line)| format!("<span><i class=\"c{nr}\"></i>{}</span>", line.name);
        let names: String = lines.iter().enumerate().map(name).collect();
        let svg = chart(&axis, &lines, &marks, shown);
        format!("<figure><figcaption>{title}{names}</figcaption>{svg}</figure>\n")
    };
    charts.into_iter().map(figure).collect()
}

fn share_text(share: f64) -> String {
    format!("{} %", kontig_text::without_zeros(&format!("{:.4}", share * 100.0)))
}

/// The values of a level in each bin.
fn levels(axis: &Axis, period: &Period, of: impl Fn(&Point) -> Option<f64>) -> Vec<Option<(f64, f64, f64)>> {
    let mut bins: Vec<Vec<f64>> = vec![Vec::new(); axis.bins];
    for point in &period.points {
        bins[axis.bin(point.unix_ms)].extend(of(point));
    }
    let spread = |values: &Vec<f64>| {
        let least = values.iter().copied().reduce(f64::min)?;
        let most = values.iter().copied().fold(least, f64::max);
        Some((least, values.iter().sum::<f64>() / values.len() as f64, most))
    };
    bins.iter().map(spread).collect()
}

/// How fast a count grew in each bin, in `seconds`.
fn rates(axis: &Axis, period: &Period, count: Count, seconds: f64) -> Vec<Option<(f64, f64, f64)>> {
    let mut bins: Vec<Vec<Step>> = vec![Vec::new(); axis.bins];
    for step in period.steps() {
        bins[axis.bin(step.after.unix_ms)].push(step);
    }
    let rate = |steps| Some(grown(steps, count)?.a_second() * seconds);
    bins.into_iter().map(|steps| rate(steps).map(|rate| (rate, rate, rate))).collect()
}

fn changes(period: &Period, summary: &Summary) -> String {
    let mut text = "<h2>What changed</h2>\n".to_string();
    if period.changes.is_empty() {
        return text + &format!("<p class=\"soft\">{}</p>\n", words::no_change(summary));
    }
    let row = |change: &super::changes::Change| {
        format!("<tr><td class=\"time\">{}</td><td>{}</td></tr>", clock(change.unix_ms), escaped(&change.words()))
    };
    let rows: String = period.changes.iter().take(CHANGES).map(row).collect();
    text += &format!(
        "<div class=\"scroll\"><table><thead><tr><th>when (UTC)</th><th>what</th></tr></thead>\
         <tbody>{rows}</tbody></table></div>\n"
    );
    if let Some(more) = period.changes.len().checked_sub(CHANGES).filter(|more| *more > 0) {
        text += &format!("<p class=\"soft\">and {} more</p>\n", grouped(more));
    }
    text
}

fn paid(summary: &Summary) -> String {
    let rows: String = words::paid(summary)
        .iter()
        .map(|(who, what, how_much)| {
            format!("<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td></tr>", escaped(who), what, how_much)
        })
        .collect();
    let groups: String = summary
        .groups
        .iter()
        .take(GROUPS)
        .map(|group| {
            format!(
                "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
                 <td class=\"n\">{}</td></tr>",
                escaped(&group.path),
                time(group.waited_s),
                grouped(group.at_limit),
                grouped(group.slowed),
                grouped(group.killed)
            )
        })
        .collect();
    let groups = match groups.is_empty() {
        true => format!("<p class=\"soft\">{}</p>\n", words::NO_GROUPS),
        false => format!(
            "<h2>Control groups</h2>\n<div class=\"scroll\"><table><thead><tr><th>group</th>\
             <th class=\"n\">some task waited for memory</th><th class=\"n\">times at its limit</th>\
             <th class=\"n\">times slowed</th><th class=\"n\">tasks killed</th></tr></thead>\
             <tbody>{groups}</tbody></table></div>\n"
        ),
    };
    format!(
        "<h2>Who paid</h2>\n<div class=\"scroll\"><table><thead><tr><th>who</th><th>what</th>\
         <th class=\"n\">how much</th></tr></thead><tbody>{rows}</tbody></table></div>\n{groups}"
    )
}
