//! Experiments as one page for a browser: tables, percentile curves, the pace sweep, series over time and the memory
//! map.
//!
//! The page is a single file that loads nothing, so it can be mailed, archived and opened offline. Tables and text are
//! HTML made here; the rest is drawn by the page's script from JSON that can contain neither tags nor comments.

use crate::data::Data;
use crate::number;
use crate::verdict::{self, Verdict};
use kontig_lab::result::{ExperimentResult, Row, RunResult};
use kontig_lab::session::PacePoint;
use std::fmt::Write;

/// What a page shows.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    /// Heading and window title.
    pub title: String,
    /// A sentence under the heading; may be empty.
    pub subtitle: String,
    /// The experiments, in order.
    pub experiments: Vec<PageExperiment<'a>>,
}

/// One experiment of a page.
#[derive(Clone, Debug)]
pub struct PageExperiment<'a> {
    /// Its table.
    pub result: &'a ExperimentResult,
    /// Its runs, in any order. Curves add up all repetitions; phases and maps are the first repetition's.
    pub runs: &'a [RunResult],
    /// Its pace sweep; may be empty.
    pub pace: &'a [PacePoint],
    /// The name of the machine the sweep ran on; may be empty.
    pub pace_machine: String,
    /// What it is and what came out, as plain text; an empty line starts a paragraph. May be empty.
    pub summary: String,
    /// Assumptions and caveats, likewise.
    pub notes: String,
}

const TEMPLATE: &str = include_str!("../assets/page.html");
const STYLE: &str = include_str!("../assets/page.css");
const SCRIPTS: [&str; 6] = [
    include_str!("../assets/core.js"),
    include_str!("../assets/chart.js"),
    include_str!("../assets/plots.js"),
    include_str!("../assets/map.js"),
    include_str!("../assets/transport.js"),
    include_str!("../assets/page.js"),
];

/// The page as one HTML document.
pub fn page(page: &Page<'_>) -> String {
    let mut body = String::new();
    for (i, experiment) in page.experiments.iter().enumerate() {
        section(&mut body, i, experiment);
    }
    let subtitle = paragraphs(&page.subtitle);
    // Results hold only strings, numbers and lists, which always serialise; were that to change, the page says
    // "no data" rather than failing to be written.
    let json = serde_json::to_string(&Data::of(&page.experiments)).unwrap_or_else(|_| "null".into());
    let parts = [
        ("title", escape(&page.title)),
        ("subtitle", subtitle),
        ("style", STYLE.to_owned()),
        ("nav", navigation(page)),
        ("body", body),
        ("data", script_safe(&json)),
        ("script", SCRIPTS.join("\n")),
    ];
    fill(TEMPLATE, &parts)
}

/// `template` with every `{{name}}` replaced, in one pass, so that nothing put in is itself searched.
fn fill(template: &str, parts: &[(&str, String)]) -> String {
    let mut out = String::with_capacity(template.len() + parts.iter().map(|p| p.1.len()).sum::<usize>());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let Some((name, after)) = after.split_once("}}") else { break };
        out.push_str(parts.iter().find(|part| part.0 == name).map_or("", |part| &part.1));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Text with everything HTML gives a meaning to replaced.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// JSON that cannot end or change the script element it stands in: no `<` means no tag and no comment.
fn script_safe(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

fn paragraphs(text: &str) -> String {
    let parts = text.split("\n\n").map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| format!("<p>{}</p>", escape(part))).collect()
}

/// A variant's name behind its colour; a line ends after each `+`, which variants are joined with, and nowhere else.
fn variant_head(index: usize, name: &str) -> String {
    let key = format!("<i class=\"key v{}\"></i>", index.min(4));
    let part = |(i, part)| format!("<span class=\"whole\">{}{}</span>", if i == 0 { &key } else { "" }, escape(part));
    name.split_inclusive('+').enumerate().map(part).collect()
}

fn navigation(page: &Page<'_>) -> String {
    if page.experiments.len() < 2 {
        return String::new();
    }
    let links: String = (page.experiments.iter().enumerate())
        .map(|(i, e)| format!("<a href=\"#experiment-{i}\">{}</a>", escape(&e.result.id)))
        .collect();
    format!("<nav aria-label=\"Experiments\">{links}</nav>")
}

fn section(out: &mut String, i: usize, e: &PageExperiment<'_>) {
    let (id, machine) = (escape(&e.result.id), escape(&e.result.machine));
    let held = e.result.rows.iter().any(|row| !row.published.is_empty());
    let _ = write!(
        out,
        "<section class=\"experiment\" id=\"experiment-{i}\" data-experiment=\"{i}\"><h2>{id} on {machine}</h2>"
    );
    if !e.summary.is_empty() {
        let _ = write!(out, "<div class=\"prose\">{}</div>", paragraphs(&e.summary));
    }
    if held {
        pills(out, e.result);
    }
    if !e.result.rows.is_empty() {
        table(out, e.result, held);
    }
    if !e.result.notes.is_empty() {
        let _ = write!(out, "<div class=\"prose remarks\">{}</div>", paragraphs(&e.result.notes.join("\n\n")));
    }
    for part in ["curves", "pace", "map", "series"] {
        let _ = write!(out, "<div class=\"part {part}\" hidden></div>");
    }
    if !e.notes.is_empty() {
        let _ = write!(out, "<div class=\"prose notes\"><h3>Notes</h3>{}</div>", paragraphs(&e.notes));
    }
    out.push_str("</section>");
}

fn pills(out: &mut String, e: &ExperimentResult) {
    let missed = e.rows.iter().filter(|row| Verdict::of(row).missed()).count();
    let (direction, headline) = (e.score.direction, e.score.headline_within_2x);
    let pills = [
        (
            direction.agree == direction.of,
            format!("{}/{}", direction.agree, direction.of),
            "rows move the published way",
        ),
        (headline.agree == headline.of, format!("{}/{}", headline.agree, headline.of), "headline rows within 2×"),
        (missed == 0, missed.to_string(), if missed == 1 { "row missed" } else { "rows missed" }),
    ];
    out.push_str("<ul class=\"pills\">");
    for (good, figure, words) in pills {
        let class = if good { "good" } else { "short" };
        let _ = write!(out, "<li class=\"{class}\"><b>{figure}</b> {words}</li>");
    }
    out.push_str("</ul>");
}

fn table(out: &mut String, e: &ExperimentResult, held: bool) {
    let change = usize::from(e.variants.len() > 1);
    let groups: &[&str] = if held { &["Published", "Measured"] } else { &["Measured"] };
    out.push_str("<div class=\"scroll\"><table><thead><tr><th rowspan=\"2\">Row</th>");
    for group in groups {
        let _ = write!(out, "<th class=\"group\" colspan=\"{}\">{group}</th>", e.variants.len() + change);
    }
    out.push_str(if held { "<th rowspan=\"2\">Verdict</th></tr><tr>" } else { "</tr><tr>" });
    for _ in groups {
        for (i, variant) in e.variants.iter().enumerate() {
            let edge = if i == 0 { " edge" } else { "" };
            let _ = write!(out, "<th class=\"figure{edge}\">{}</th>", variant_head(i, variant));
        }
        if change == 1 {
            out.push_str("<th class=\"figure\">change</th>");
        }
    }
    out.push_str("</tr></thead><tbody>");
    let (published, others): (Vec<_>, Vec<_>) = e.rows.iter().partition(|row| !row.published.is_empty());
    for row in published {
        table_row(out, row, e.variants.len(), held);
    }
    if held && !others.is_empty() {
        let columns = 2 + groups.len() * (e.variants.len() + change);
        let heading = format!("<th scope=\"rowgroup\" colspan=\"{columns}\">Not published</th>");
        let _ = write!(out, "</tbody><tbody><tr class=\"rows-head\">{heading}</tr>");
    }
    for row in others {
        table_row(out, row, e.variants.len(), held);
    }
    out.push_str("</tbody></table></div>");
    if e.rows.iter().any(|row| row.headline) {
        out.push_str("<p class=\"small\">Headline rows, whose size counts, are in bold.</p>");
    }
}

fn table_row(out: &mut String, row: &Row, variants: usize, held: bool) {
    let verdict = Verdict::of(row);
    let class = match (row.headline, verdict.missed()) {
        (true, true) => "headline missed",
        (true, false) => "headline",
        (false, true) => "missed",
        (false, false) => "",
    };
    let (name, unit) = (escape(&row.name), escape(&row.unit));
    let _ = write!(out, "<tr class=\"{class}\"><th scope=\"row\">{name} <span class=\"unit\">{unit}</span></th>");
    let mut cell = |class: &str, text: Option<String>| {
        let _ = write!(out, "<td class=\"figure{class}\">{}</td>", text.as_deref().unwrap_or("–"));
    };
    let edge = |i: usize| if i == 0 { " edge" } else { "" };
    if held {
        for i in 0..variants {
            cell(edge(i), row.published.get(i).map(|&value| number::exact(value)));
        }
        if variants > 1 {
            cell(" change", verdict::published_change(row).map(number::factor));
        }
    }
    for i in 0..variants {
        cell(edge(i), row.measured.get(i).copied().flatten().map(number::rounded));
    }
    if variants > 1 {
        cell(" change", verdict::measured_change(row).map(number::factor));
    }
    if held {
        let class = match verdict {
            _ if verdict.missed() => "missed",
            Verdict::Agrees => "agrees",
            Verdict::AgreesOff(_) => "loose",
            _ => "none",
        };
        let _ = write!(out, "<td class=\"verdict {class}\"><span>{}</span></td>", escape(&verdict.text()));
    }
    out.push_str("</tr>");
}
